"""Aggregates over a sub-query of FROM that only chooses rows are aggregates over its rows: they can be estimated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.compiler.bound import BoundDerived, BoundItem, BoundSelect
from uql.compiler.formula import conjunction
from uql.compiler.rules.inside import changed, reachable
from uql.compiler.subqueries import (
    aliases,
    derived,
    expressions,
    in_expressions,
    outer_columns,
    with_expressions,
    with_leaves,
)
from uql.compiler.syntax import Call, Column, Expr
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import VOLATILE, needs_every_row, rewrite, walk


def merged(query: BoundSelect) -> BoundSelect:
    """SELECT COUNT(*) FROM (SELECT * FROM t WHERE "…") x → SELECT COUNT(*) FROM t WHERE "…", and so of a CTE that stands there.

    The rows are the same where all are asked. Where they are not, the sub-query by itself is a search that finds some of the rows that
    pass, and a number over those says nothing about the others; as one block the number is an estimate with an interval.

    Safe: the sub-query is a plain SELECT … FROM … WHERE of rows, its names meet no others, and it stands once in the FROM clause.
    """
    while query.aggregated and not query.sets:
        next_query = next(filter(None, (_merged(query, part) for part in reachable(query.source).values())), None)
        if next_query is None:
            return query
        query = next_query
    return query


def _merged(query: BoundSelect, part: BoundDerived) -> BoundSelect | None:
    inner = part.query
    if not isinstance(inner, BoundSelect) or inner.source is None or not chooses_rows(inner):
        return None
    beside = [d for d in derived(query.source) if d.query is inner]
    others = set(aliases(query.source)) - {part.alias}
    if len(beside) > 1 or others & set(aliases(inner.source)):
        return None
    nested = in_expressions(*expressions(query))
    if any(c.table == part.alias for bound in nested if bound.correlated for c in outer_columns(bound.query)):
        return None
    items = {Column(part.alias, f.name): item for f, item in zip(part.fields, inner.items, strict=True)}
    if any(c.table == part.alias and not _is_that_column(c, items) for v in query.virtuals for c in v.inputs):
        return None
    first = max((v.id for v in query.virtuals), default=-1) + 1
    ids = {v: replace(v, id=first + i) for i, v in enumerate(inner.virtuals)}
    columns = {v: _moved(v, items) for v in query.virtuals}

    def own(expr: Expr) -> Expr:
        result: Expr = rewrite(expr, lambda n: replace(n, column=ids[n.column]) if isinstance(n, Virtual) else n)
        return result

    values = {column: own(item.expr) for column, item in items.items()}

    def outer(node: Any) -> Any:
        if isinstance(node, Virtual):
            return replace(node, column=columns[node.column])
        return values.get(node, node) if isinstance(node, Column) else node

    def change(expr: Any) -> Any:
        return rewrite(expr, outer)

    assert query.source is not None
    below = with_leaves(inner.source, lambda leaf: leaf, own)
    terms = [own(inner.where)] if inner.where is not None else []
    terms += [change(query.where)] if query.where is not None else []
    return replace(
        with_expressions(query, change),
        source=changed(with_leaves(query.source, lambda leaf: leaf, change), part.alias, lambda _: below),
        where=conjunction(terms),
        virtuals=(*columns.values(), *ids.values()),
    )


def chooses_rows(query: BoundSelect) -> bool:
    """Is it a SELECT … FROM … WHERE whose every row is one row of its FROM clause, the same each time it is run?"""
    if query.aggregated or query.distinct or query.limit is not None or query.offset or query.qualify is not None:
        return False
    exprs = [item.expr for item in query.items]
    calls = (n for expr in exprs for n in walk(expr) if isinstance(n, Call))
    return (
        not needs_every_row(*exprs)
        and not any(call.name.lower() in VOLATILE for call in calls)
        and all(column.by_row and not column.is_score for column in query.virtuals)
    )


def _is_that_column(column: Column, items: dict[Column, BoundItem]) -> bool:
    """Is it a column of the sub-query's FROM clause under its own name? Then the model is shown the same."""
    origin = items[column].expr
    return isinstance(origin, Column) and origin.name == column.name


def _moved(column: VirtualColumn, items: dict[Column, BoundItem]) -> VirtualColumn:
    """A virtual column that reads the columns themselves in the place of the sub-query's."""

    def at(read: Column) -> Column:
        origin = items[read].expr if read in items else read
        assert isinstance(origin, Column)
        return origin

    return column.moved(at)
