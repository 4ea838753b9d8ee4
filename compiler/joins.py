"""Joins on quoted texts: which terms of ON are conditions like those of WHERE, and which joins have to be asked where they stand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from uql.compiler.bound import BoundJoin, BoundSource
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.subqueries import join_conditions
from uql.compiler.syntax import Expr
from uql.compiler.walk import is_semantic

# kinds of joins that a condition on left rows, and on right rows, may leave: it is the same before and after the join
LEFT_KEPT = ("INNER", "CROSS", "LEFT", "SEMI", "ANTI", "ASOF", "ASOF LEFT")
RIGHT_KEPT = ("INNER", "CROSS", "RIGHT")


def is_inner(source: BoundJoin) -> bool:
    return source.kind in ("INNER", "CROSS")


def asks(source: BoundSource | None, holds_text: Callable[[Expr | None], bool] = is_semantic) -> bool:
    """Is there a join in it whose pairs have to be asked before anything else: one on a text that is not a mere condition?

    Args:
        holds_text: whether a text stands in an expression; the binder has one of its own for texts that are not settled.
    """
    if not isinstance(source, BoundJoin):
        return False
    sides = ((source.left, LEFT_KEPT), (source.right, RIGHT_KEPT))
    if any(asks(side, holds_text) for side, _ in sides) or (not is_inner(source) and holds_text(source.on)):
        return True
    fixed = [side for side, kept in sides if source.kind not in kept]
    return any(holds_text(on) for side in fixed for on in join_conditions(side))


def inner_terms(on: Expr | None) -> tuple[Expr | None, list[Expr]]:
    """The concrete part of an inner join's ON, and its terms with quoted texts."""
    parts = conjuncts(on)
    return conjunction([p for p in parts if not is_semantic(p)]), [p for p in parts if is_semantic(p)]


def without_semantic_on(source: BoundSource | None) -> tuple[BoundSource | None, list[Expr]]:
    """A FROM clause that does not ask, for DuckDB, and the terms of its inner joins that hold quoted texts."""
    if not isinstance(source, BoundJoin):
        return source, []
    left, left_terms = without_semantic_on(source.left)
    right, right_terms = without_semantic_on(source.right)
    assert left is not None and right is not None
    on, kind, terms = source.on, source.kind, left_terms + right_terms
    if is_inner(source) and is_semantic(source.on):
        on, own = inner_terms(source.on)
        kind = "INNER" if on is not None else "CROSS"
        terms = terms + own
    return replace(source, left=left, right=right, on=on, kind=kind), terms
