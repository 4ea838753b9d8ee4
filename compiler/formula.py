"""A WHERE condition as a formula over leaves, evaluated row by row in three-valued logic while some leaves are not known yet.

Each leaf of a row carries the set of truth values it may still have, as a mask of TRUE, FALSE, NULL. AND, OR and NOT of sets
are table look-ups, so a formula of any depth is evaluated without a disjunctive normal form and without its blow-up: a row is
decided as soon as TRUE is its only possible value, or no longer possible. A leaf that failed keeps TRUE and FALSE in its set,
so a row is unknown only if the failure matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from uql.compiler.syntax import Binary, Boolean, Expr, IsNull, Null, Number, String, Unary
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import is_semantic, virtuals

Masks = NDArray[np.uint8]
T = TypeVar("T")
_Known = tuple[frozenset[int], frozenset[int]]  # leaves that have an answer where a step is true, where it is false
FALSE, TRUE, NULL = 1, 2, 4
OPEN = FALSE | TRUE | NULL  # not asked yet
UNKNOWN = FALSE | TRUE  # asked, without an answer
_COMPARED = {"=": (0,), "<>": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


def _table(op: str) -> NDArray[np.uint8]:
    """(8, 8) masks of `a op b` for every pair of masks, from Kleene's three-valued truth tables."""
    order = {FALSE: 0, NULL: 1, TRUE: 2}
    table = np.zeros((8, 8), dtype=np.uint8)
    for a in range(8):
        for b in range(8):
            for x in (FALSE, TRUE, NULL):
                for y in (FALSE, TRUE, NULL):
                    if a & x and b & y:
                        table[a, b] |= (min if op == "AND" else max)(x, y, key=lambda v: order[v])
    return table


_AND, _OR = _table("AND"), _table("OR")
_NOT = np.array([(m & NULL) | ((m & FALSE) << 1) | ((m & TRUE) >> 1) for m in range(8)], dtype=np.uint8)


def masks_of(values: Iterable[object]) -> Masks:
    """(n,) the masks of values of DuckDB: None is NULL, others are true or false."""
    return np.array([NULL if v is None else TRUE if v else FALSE for v in values], dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition that is neither AND, OR nor NOT."""

    expr: Expr
    columns: tuple[VirtualColumn, ...]  # virtual columns it needs; none: DuckDB decides it alone

    @property
    def semantic(self) -> bool:
        return bool(self.columns)


@dataclass(frozen=True, slots=True)
class Formula:
    """`program` is the formula in postfix: the index of a leaf, or AND, OR (of the two below), NOT."""

    leaves: tuple[Leaf, ...]
    program: tuple[int | str, ...]

    @classmethod
    def of(cls, expr: Expr) -> Formula:
        """The formula of a condition; equal leaves are one leaf."""
        leaves: dict[Expr, int] = {}
        program: list[int | str] = []
        stack: list[Expr | str] = [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                program.append(node)
            elif isinstance(node, Binary) and node.op in ("AND", "OR"):
                stack += [node.op, node.right, node.left]
            elif isinstance(node, Unary) and node.op == "NOT":
                stack += ["NOT", node.operand]
            else:
                program.append(leaves.setdefault(node, len(leaves)))
        return cls(tuple(Leaf(leaf, virtuals(leaf)) for leaf in leaves), tuple(program))

    def fold(self, leaf: Callable[[int], T], negate: Callable[[T], T], join: Callable[[str, T, T], T]) -> T:
        """What the program comes to, from its leaves up.

        Args:
            leaf: the value of a leaf, by its index.
            negate: that of NOT.
            join: that of AND and OR, which comes first, of its left and its right side.
        """
        stack: list[T] = []
        for step in self.program:
            if isinstance(step, int):
                stack.append(leaf(step))
            elif step == "NOT":
                stack.append(negate(stack.pop()))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(join(step, left, right))
        return stack[0]

    def evaluate(self, masks: Masks) -> Masks:
        """(n,) possible values of the formula, from (leaves, n) possible values of its leaves."""
        return self.fold(
            lambda i: masks[i],
            lambda one: _NOT[one],
            lambda op, left, right: (_AND if op == "AND" else _OR)[left, right],
        )

    def chance(self, leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the chance that the formula is true, from (leaves, n) those of its leaves, taken as independent."""

        def join(op: str, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
            return left * right if op == "AND" else 1 - (1 - left) * (1 - right)

        return self.fold(lambda i: leaves[i], lambda one: 1 - one, join)

    def sure(self) -> frozenset[int]:
        """The ids of the virtual columns that are answered on every row that passes, in whatever order they are asked.

        "a" AND ("b" OR "c") passes with "b" unasked, never with "a" unasked.
        """

        def join(op: str, left: _Known, right: _Known) -> _Known:
            (a, b), (c, d) = left, right
            return (a | c, b & d) if op == "AND" else (a & c, b | d)

        where_true, _ = self.fold(lambda i: (frozenset({i}), frozenset({i})), lambda one: (one[1], one[0]), join)
        return frozenset(column.id for leaf in where_true for column in self.leaves[leaf].columns)

    def relevant(self, masks: Masks) -> NDArray[np.bool_]:
        """(leaves, n) where the value of a leaf can still change whether the row passes.

        A leaf beside a term that settles their AND or OR for this row is irrelevant, and so is everything below it.

        >>> a, b = Leaf(Null(), ()), Leaf(Boolean(True), ())
        >>> Formula((a, b), (0, 1, "AND")).relevant(np.array([[FALSE], [OPEN]], dtype=np.uint8)).tolist()
        [[False], [False]]
        """
        n = masks.shape[1]
        values: list[Masks] = []  # of every step of the program
        sides: list[tuple[int, ...]] = []  # the steps below it
        stack: list[int] = []
        for i, step in enumerate(self.program):
            if isinstance(step, int):
                values.append(masks[step])
                sides.append(())
            elif step == "NOT":
                below = stack.pop()
                values.append(_NOT[values[below]])
                sides.append((below,))
            else:
                right, left = stack.pop(), stack.pop()
                values.append((_AND if step == "AND" else _OR)[values[left], values[right]])
                sides.append((left, right))
            stack.append(i)
        matters = np.zeros((len(self.program), n), dtype=bool)
        positive = np.ones(len(self.program), dtype=bool)  # False below an odd number of NOTs
        matters[-1] = ~decided(values[-1])
        result = np.zeros((len(self.leaves), n), dtype=bool)
        for i in range(len(self.program) - 1, -1, -1):
            step = self.program[i]
            if isinstance(step, int):
                result[step] |= matters[i]
            for side in sides[i]:
                positive[side] = positive[i] != (step == "NOT")
                matters[side] = matters[i]
                for other in sides[i]:
                    if other != side:
                        matters[side] &= ~_settles(str(step), values[other], bool(positive[i]))
        return result


def _settles(op: str, masks: Masks, positive: bool) -> NDArray[np.bool_]:
    """Where a term alone settles its AND or OR. Only TRUE passes: above the NOTs NULL is as good as FALSE, below one as TRUE."""
    outcomes = FALSE if op == "AND" else TRUE
    if (positive and op == "AND") or (not positive and op == "OR"):
        outcomes |= NULL
    settled: NDArray[np.bool_] = (masks & ~np.uint8(outcomes)) == 0
    return settled


def decided(masks: Masks) -> NDArray[np.bool_]:
    """Where it is settled whether the row passes: TRUE is certain, or impossible."""
    settled: NDArray[np.bool_] = (masks == TRUE) | (masks & TRUE == 0)
    return settled


def conjuncts(expr: Expr | None) -> list[Expr]:
    """The terms of the outermost AND, in order."""
    terms: list[Expr] = []
    stack = [expr] if expr is not None else []
    while stack:
        node = stack.pop()
        if isinstance(node, Binary) and node.op == "AND":
            stack += [node.right, node.left]
        else:
            terms.append(node)
    return terms


def conjunction(terms: list[Expr]) -> Expr | None:
    """`a AND b AND …`, or None for no terms."""
    result: Expr | None = None
    for term in terms:
        result = term if result is None else Binary("AND", result, term)
    return result


def implied(expr: Expr) -> Expr | None:
    """The strongest concrete condition that every passing row meets, or None when there is none.

    Semantic leaves are taken for whatever lets the row pass: (a AND "x") OR (b AND "y") implies a OR b. This gives DuckDB what a
    disjunctive normal form would, without making one.
    """
    condition = _weaken(expr, positive=True)
    return None if condition == Boolean(True) else condition


def _weaken(expr: Expr, *, positive: bool) -> Expr:
    match expr:
        case Unary(op="NOT", operand=operand):
            return folded(Unary("NOT", _weaken(operand, positive=not positive)))
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            return folded(Binary(op, _weaken(left, positive=positive), _weaken(right, positive=positive)))
    if is_semantic(expr):
        return Boolean(positive)
    return Boolean(False) if isinstance(expr, Null) and positive else expr


def folded(expr: Expr) -> Expr:
    """An expression whose parts are folded already, as a constant where it is one.

    >>> folded(Binary("OR", Null(), Boolean(True)))
    Boolean(value=True)
    """
    match expr:
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            settles, neutral = Boolean(op == "OR"), Boolean(op == "AND")
            if settles in (left, right):
                return settles
            return right if left == neutral else left if right == neutral else expr
        case Unary(op="NOT", operand=Boolean(value=value)):
            return Boolean(not value)
        case Unary(op="NOT", operand=Null()):
            return Null()
        case IsNull(operand=Null(), negated=negated):
            return Boolean(not negated)
        case IsNull(operand=Number() | String() | Boolean(), negated=negated):
            return Boolean(negated)
        case Binary(op=op, left=left, right=right) if op in _COMPARED and Null() in (left, right):
            return Null()
        case Binary(op=op, left=Number(text=a), right=Number(text=b)) if op in _COMPARED:
            one, two = Decimal(a), Decimal(b)
            return Boolean(((one > two) - (one < two)) in _COMPARED[op])
        case Binary(op="=" | "<>" as op, left=String(value=c), right=String(value=d)):
            return Boolean((c == d) == (op == "="))
    return expr
