"""Expressions that only rise, or only fall, as a number in them grows: their range is that of the ends of its interval."""

from __future__ import annotations

from uql.compiler.syntax import Binary, Call, Cast, Expr, Node, Unary
from uql.compiler.walk import children, walk

MONOTONE = frozenset(
    {"sum", "avg", "mean", "min", "max", "any_value", "first", "last", "arbitrary"}
    | {"round", "floor", "ceil", "ceiling", "trunc", "sqrt", "cbrt", "ln", "log", "log2", "log10", "exp"}
    | {"greatest", "least", "coalesce", "ifnull"}
)  # functions that never fall where one argument grows


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
        case Binary(op="+" | "-" | "*" | "/" | "<" | "<=" | ">" | ">=") | Cast() | Unary(op="-" | "+"):
            pass
        case Call(over=None, distinct=False, filter=None) if expr.name in MONOTONE:
            pass
        case _:
            return False
    return monotone(below[0], leaf)
