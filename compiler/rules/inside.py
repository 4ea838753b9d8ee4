"""Moving things into the sub-queries of FROM: where a condition may go, and what it is called there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from uql.compiler.bound import BoundDerived, BoundItem, BoundJoin, BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.subqueries import in_expressions, is_semantic_query, with_leaves
from uql.compiler.syntax import Binary, Call, Column, Expr
from uql.compiler.walk import VOLATILE, has_window, is_semantic, needs_every_row, rewrite, walk


def changed(source: BoundSource, alias: str, change: Callable[[BoundDerived], BoundSource]) -> BoundSource:
    """The FROM clause with one sub-query changed.

    Args:
        change: gives what stands in its place.
    """
    return with_leaves(
        source, lambda leaf: change(leaf) if isinstance(leaf, BoundDerived) and leaf.alias == alias else leaf
    )


def reachable(source: BoundSource | None, may_drop: bool = True) -> dict[str, BoundDerived]:
    """The semantic sub-queries of a FROM clause whose rows a condition above may drop early, by alias.

    Not below the side of an outer join that is filled up with NULLs: there a dropped row would come back as NULLs.
    """
    if isinstance(source, BoundDerived):
        return {source.alias: source} if may_drop and is_semantic_query(source.query) else {}
    if not isinstance(source, BoundJoin):
        return {}
    left = may_drop and source.kind in ("INNER", "CROSS", "LEFT", "SEMI", "ANTI")
    right = may_drop and source.kind in ("INNER", "CROSS", "RIGHT")
    return reachable(source.left, left) | reachable(source.right, right)


def is_plain(expr: Expr) -> bool:
    """Concrete, without sub-queries, and the same each time it is evaluated."""
    called = [node for node in walk(expr) if isinstance(node, Call)]
    fixed = not any(call.over is not None or call.name.lower() in VOLATILE for call in called)
    return fixed and not is_semantic(expr) and not list(in_expressions(expr))


def with_condition(query: BoundQuery, alias: str, names: list[str], condition: Expr) -> BoundQuery | None:
    """A query that gives only the rows for which a condition on its output columns is true; None where that is not possible inside.

    Legal: no LIMIT or OFFSET chooses among the rows before; no window looks at the rows dropped; with GROUP BY, the condition is on
    concrete keys alone; no column that it names is of items that unnest makes rows; the columns it names are concrete inside. A union
    takes it on both sides or not at all.

    Args:
        alias: of the query, which the columns of the condition name.
        names: of the output columns, in their order.
        condition: on those columns.
    """
    if isinstance(query, BoundUnion):
        if query.limit is not None or query.offset:
            return None
        left = with_condition(query.left, alias, names, condition)
        right = with_condition(query.right, alias, names, condition)
        return replace(query, left=left, right=right) if left is not None and right is not None else None
    assert isinstance(query, BoundSelect)
    inside = translated(query, alias, names, condition)
    if inside is None:
        return None
    return replace(query, where=inside if query.where is None else Binary("AND", inside, query.where))


def translated(query: BoundSelect, alias: str, names: list[str], condition: Expr) -> Expr | None:
    """A condition on the output columns of a query as one on its rows, or None where it must stay outside.

    Args:
        alias: of the query, which the columns of the condition name.
        names: of the output columns, in their order.
        condition: on those columns.
    """
    if query.limit is not None or query.offset or query.source is None:
        return None
    if query.qualify is not None or query.sets or has_window(*(item.expr for item in query.items)):
        return None
    items = dict(zip(names, query.items, strict=True))
    used = {node for node in walk(condition) if isinstance(node, Column)}
    keys = {key.expr for key in query.group_by}
    for column in used:
        item: BoundItem | None = items.get(column.name) if column.table == alias else None
        if item is None or not is_plain(item.expr) or needs_every_row(item.expr):
            return None
        if query.aggregated and item.expr not in keys:
            return None
    row_condition: Expr = rewrite(condition, lambda n: items[n.name].expr if isinstance(n, Column) and n in used else n)
    return row_condition
