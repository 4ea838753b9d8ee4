"""Bound queries inside bound queries: finding them, and saying which hold virtual columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from uql.base.names import free_names
from uql.base.schema import Field
from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundItem,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundSource,
    BoundTable,
    BoundUnion,
)
from uql.compiler.syntax import Column, Expr
from uql.compiler.walk import children, columns, has_window, walk

S = TypeVar("S", bound=BoundSource)


def expressions(query: BoundSelect) -> Iterator[Expr]:
    """Every expression of one block, sub-queries not entered."""
    yield from (item.expr for item in (*query.items, *query.group_by))
    yield from (part for part in (query.where, query.having, query.qualify) if part is not None)
    yield from (key.expr for key in query.order_by)
    yield from join_conditions(query.source)


def with_expressions(query: BoundSelect, change: Callable[[Any], Any]) -> BoundSelect:
    """The block with its expressions changed, but those of FROM and WHERE.

    Args:
        change: gives what stands in the place of an expression.
    """

    def items(parts: tuple[BoundItem, ...]) -> tuple[BoundItem, ...]:
        return tuple(replace(part, expr=change(part.expr)) for part in parts)

    return replace(
        query,
        items=items(query.items),
        group_by=items(query.group_by),
        having=None if query.having is None else change(query.having),
        qualify=None if query.qualify is None else change(query.qualify),
        order_by=tuple(replace(key, expr=change(key.expr)) for key in query.order_by),
    )


def join_conditions(source: BoundSource | None) -> Iterator[Expr]:
    if isinstance(source, BoundJoin):
        yield from join_conditions(source.left)
        yield from join_conditions(source.right)
        if source.on is not None:
            yield source.on


def in_expressions(*parts: Expr | None) -> Iterator[Bound]:
    """The bound sub-queries that stand in expressions: IN (SELECT …), EXISTS (…), (SELECT …)."""
    for part in parts:
        for node in walk(part):
            yield from (below for below in children(node, queries=True) if isinstance(below, Bound))


def allows_try(expr: Expr) -> bool:
    """May the expression stand in DuckDB's TRY, which takes no window and no sub-query?"""
    return not has_window(expr) and not any(True for _ in in_expressions(expr))


def leaves(source: BoundSource | None) -> list[BoundTable | BoundDerived]:
    """The tables and sub-queries of a FROM clause, in order."""
    if isinstance(source, BoundJoin):
        return leaves(source.left) + leaves(source.right)
    return [source] if isinstance(source, BoundTable | BoundDerived) else []


def with_leaves(source: S, leaf: Callable[[Any], Any], on: Callable[[Expr], Expr] | None = None) -> S:
    """A FROM clause with its tables and sub-queries as `leaf` has them, its conditions as `on`; what stays is the same object.

    Args:
        leaf: gives what stands in the place of a table or sub-query.
        on: gives what stands in the place of a join condition; None: it stays.
    """
    if not isinstance(source, BoundJoin):
        changed: S = leaf(source)
        return changed
    left, right = with_leaves(source.left, leaf, on), with_leaves(source.right, leaf, on)
    condition = source.on if on is None or source.on is None else on(source.on)
    same = left is source.left and right is source.right and condition is source.on
    return source if same else replace(source, left=left, right=right, on=condition)


def derived(source: BoundSource | None) -> list[BoundDerived]:
    """The sub-queries of a FROM clause."""
    return [leaf for leaf in leaves(source) if isinstance(leaf, BoundDerived)]


def fields_in(*sources: BoundSource | None) -> dict[Column, Field]:
    """What is known of the columns of FROM clauses, by alias and name."""
    return {Column(leaf.alias, f.name): f for source in sources for leaf in leaves(source) for f in leaf.fields}


def aliases(source: BoundSource | None) -> list[str]:
    """The aliases of a FROM clause, in order."""
    return [leaf.alias for leaf in leaves(source)]


def visible_aliases(source: BoundSource | None) -> Iterator[str]:
    """The aliases whose columns the rows of a FROM clause have: not the right one of a SEMI or ANTI join."""
    if isinstance(source, BoundJoin) and source.kind in ("SEMI", "ANTI"):
        yield from visible_aliases(source.left)
    elif isinstance(source, BoundJoin):
        yield from visible_aliases(source.left)
        yield from visible_aliases(source.right)
    else:
        yield from aliases(source)


def selects(query: BoundQuery) -> Iterator[BoundSelect]:
    """Every SELECT of a query, those of its sub-queries included."""
    if isinstance(query, BoundUnion):
        yield from selects(query.left)
        yield from selects(query.right)
        return
    assert isinstance(query, BoundSelect)
    yield query
    for part in derived(query.source):
        yield from selects(part.query)
    for bound in in_expressions(*expressions(query)):
        yield from selects(bound.query)


def named_apart(query: BoundQuery) -> BoundQuery:
    """The query with columns that are each called otherwise, as estimates are known by name, and so those that it reads.

    What stays is the same object.
    """
    assert isinstance(query, BoundSelect | BoundUnion)
    names = free_names(item.name for item in query.items)
    if names != tuple(item.name for item in query.items):
        items = (replace(item, name=name) for item, name in zip(query.items, names, strict=True))
        query = replace(query, items=tuple(items))
    if isinstance(query, BoundUnion):
        left, right = named_apart(query.left), named_apart(query.right)
        return query if left is query.left and right is query.right else replace(query, left=left, right=right)
    source = with_leaves(query.source, _named_apart) if query.source is not None else None
    return query if source is query.source else replace(query, source=source)


def _named_apart(leaf: BoundTable | BoundDerived) -> BoundTable | BoundDerived:
    if not isinstance(leaf, BoundDerived):
        return leaf
    query = named_apart(leaf.query)
    return leaf if query is leaf.query else replace(leaf, query=query)


def outer_columns(query: BoundQuery) -> Iterator[Column]:
    """The columns of queries around it that a sub-query reads: of tables that neither its FROM clause nor one between names."""
    if isinstance(query, BoundUnion):
        yield from outer_columns(query.left)
        yield from outer_columns(query.right)
        return
    assert isinstance(query, BoundSelect)
    exprs, own = list(expressions(query)), set(aliases(query.source))
    below = (*(part.query for part in derived(query.source)), *(bound.query for bound in in_expressions(*exprs)))
    read = (*columns(*exprs), *(column for inner in below for column in outer_columns(inner)))
    yield from (column for column in read if column.table and column.table not in own)


def is_semantic_query(query: BoundQuery) -> bool:
    """Does the query, or any query in it, hold a virtual column?"""
    return any(part.virtuals for part in selects(query))


def estimated_sources(query: BoundQuery) -> list[str]:
    """The estimates that the tables of a query were made from (by TO)."""
    tables = [leaf.table for part in selects(query) for leaf in leaves(part.source) if isinstance(leaf, BoundTable)]
    return [f"{table.name} ({table.estimated_by})" for table in tables if table.estimated_by]
