"""Expressions over estimates: one that only rises, or only falls, as each number in it grows has the range of their intervals' ends."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf, isnan
from typing import Any

from uql.compiler.syntax import Binary, Call, Case, Cast, Expr, ListExpr, Named, Node, Query, TypeName, Unary, When
from uql.compiler.walk import children, walk, with_children
from uql.sampling.base import Estimate

METHOD = "of estimates"
MOST = 3  # estimated numbers in one expression: every combination of their ends is computed

MONOTONE = frozenset(
    {"sum", "avg", "mean", "min", "max", "any_value", "first", "last", "arbitrary"}
    | {"round", "floor", "ceil", "ceiling", "trunc", "sqrt", "cbrt", "ln", "log", "log2", "log10", "exp"}
    | {"greatest", "least", "coalesce", "ifnull"}
)  # functions that never fall where one argument grows
HOLDING = frozenset(
    {"list", "struct_pack", "struct_extract", "unnest"}
)  # functions that put values together and give them back


def holds(expr: Node, leaves: Container[Expr]) -> bool:
    """Is it made of these values as they are, put into lists and structs or taken from there? Then its ends are made of their ends.

    >>> from uql.compiler.syntax import Column, Number
    >>> n = Column("x", "n")
    >>> holds(Call("list", (n,)), {n}), holds(Call("list", (Binary("+", n, Number("1")),)), {n})
    (True, False)
    """
    if isinstance(expr, Expr) and expr in leaves:
        return True
    below = [child for child in children(expr) if any(isinstance(n, Expr) and n in leaves for n in walk(child))]
    match expr:
        case Binary(left=Call(name="array_length")):  # lists of the ends are as long
            return True
        case Call(name=name, distinct=False, filter=None, over=None) if name in HOLDING:
            return all(holds(child, leaves) for child in below)
        case Named() | ListExpr() | Case() | When():
            return all(holds(child, leaves) for child in below)
    return not below


def monotone(expr: Node, leaf: Expr) -> bool:
    """Does the expression only rise, or only fall, as the one number in it grows?

    >>> from uql.compiler.syntax import Column, Number
    >>> n = Column("x", "n")
    >>> monotone(Binary("*", n, Number("2")), n), monotone(Binary("%", n, Number("2")), n)
    (True, False)
    """
    if expr == leaf:
        return True
    below = [child for child in children(expr) if any(node == leaf for node in walk(child))]
    if len(below) != 1:
        return False
    match expr:
        case Binary(op="+" | "-" | "*" | "/" | "<" | "<=" | ">" | ">=") | Unary(op="-" | "+"):
            pass
        case Cast(type=TypeName(name=name)) if name != "VARCHAR":  # '120' comes before '40'
            pass
        case Call(over=None, distinct=False, filter=None) if expr.name in MONOTONE or expr.name == "struct_extract":
            pass
        case _:
            return False
    return monotone(below[0], leaf)


def has_range(expr: Expr, leaves: Sequence[Expr]) -> bool:
    """Is the range of an expression that of its values at the ends of these few numbers, each in it once?"""
    return len(leaves) <= MOST and len(set(leaves)) == len(leaves) and all(monotone(expr, leaf) for leaf in leaves)


def corners(expr: Expr, leaves: Sequence[Expr], ends: Mapping[Expr, tuple[Expr, Expr]]) -> list[Expr]:
    """The expression with each combination of the ends of the numbers in it.

    Args:
        leaves: the k numbers in it.
        ends: the lowest and the highest value of each.
    Returns: 2^k expressions; one is NULL where a divisor has another sign at its ends than at the numbers themselves.
    """
    choices = product((0, 1), repeat=len(leaves))
    return [
        replaced(expr, {leaf: ends[leaf][end] for leaf, end in zip(leaves, choice, strict=True)}) for choice in choices
    ]


def replaced(expr: Expr, at: Mapping[Expr, Expr]) -> Expr:
    """The expression with other values in the place of some in it; NULL where a divisor has another sign then."""

    def moved(node: Any) -> Any:
        if node in at:
            return at[node]
        below = with_children(node, lambda part: part if isinstance(part, Query) else moved(part))
        if isinstance(node, Binary) and node.op == "/" and below.right is not node.right:
            same_sign = Binary("=", Call("system.main.sign", (below.right,)), Call("system.main.sign", (node.right,)))
            return replace(below, right=Case(None, (When(same_sign, below.right),)))
        return below

    result: Expr = moved(expr)
    return result


def lenient(node: Any, whole: Container[Expr] = ()) -> Any:
    """An expression whose casts, but those inside of some parts of it, give NULL where they fail."""
    if node in whole or isinstance(node, Query):
        return node
    below = with_children(node, lambda child: lenient(child, whole))
    return replace(below, lenient=True) if isinstance(below, Cast) else below


def between(values: Sequence[float | None], confidence: float, calls: int = 0, unknown: int = 0) -> Estimate:
    """The first value, and the range over all of them; open where one of them is none, or there is no other.

    Args:
        values: the number itself, then those at the ends of what it was made of.
        calls, unknown: rows asked for the numbers below, and those without an answer.
    """
    numbers = [v for v in values if v is not None and not isnan(v)]
    is_bounded = len(values) > 1 and len(numbers) == len(values)
    low, high = (min(numbers), max(numbers)) if is_bounded else (-inf, inf)
    return Estimate(values[0], low, high, confidence, False, calls, unknown, METHOD)


def open_ended(estimate: Estimate | list[Estimate], low: float = -inf) -> Estimate | list[Estimate]:
    """Estimates of which it is not known how far off they are: over rows of which some may be missing, or over other estimates."""
    if isinstance(estimate, list):
        return [replace(e, low=low, high=inf, exact=False, method=METHOD) for e in estimate]
    return replace(estimate, low=low, high=inf, exact=False, method=METHOD)
