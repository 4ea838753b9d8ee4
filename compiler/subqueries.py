"""Bound queries inside bound queries: finding them, and saying which hold virtual columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from uql.base.schema import Field
from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundSource,
    BoundTable,
    BoundUnion,
)
from uql.compiler.syntax import Column, Expr
from uql.compiler.walk import columns, walk


def expressions(query: BoundSelect) -> Iterator[Expr]:
    """Every expression of one block, sub-queries not entered."""
    yield from (item.expr for item in (*query.items, *query.group_by))
    yield from (part for part in (query.where, query.having, query.qualify) if part is not None)
    yield from (key.expr for key in query.order_by)
    yield from join_conditions(query.source)


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
            for f in fields(node):
                value = getattr(node, f.name)
                if isinstance(value, Bound):
                    yield value


def derived(source: BoundSource | None) -> Iterator[BoundDerived]:
    """The sub-queries of a FROM clause."""
    if isinstance(source, BoundDerived):
        yield source
    elif isinstance(source, BoundJoin):
        yield from derived(source.left)
        yield from derived(source.right)


def field_of(source: BoundSource, column: Column) -> Field:
    """What is known of a column of a FROM clause; of one that is not in it, that it is a text."""
    found: Field | None = None
    match source:
        case BoundTable(table=table, alias=column.table):
            found = table.field(column.name)
        case BoundDerived(alias=column.table, fields=fields):
            found = next((f for f in fields if f.name == column.name), None)
        case BoundJoin():
            side = source.left if column.table in set(aliases(source.left)) else source.right
            return field_of(side, column)
    return found or Field(column.name, "VARCHAR")


def aliases(source: BoundSource | None) -> Iterator[str]:
    """The aliases of a FROM clause, in order."""
    if isinstance(source, BoundJoin):
        yield from aliases(source.left)
        yield from aliases(source.right)
    elif isinstance(source, BoundTable | BoundDerived):
        yield source.alias


def visible_aliases(source: BoundSource | None) -> Iterator[str]:
    """The aliases whose columns the rows of a FROM clause have: not the right one of a SEMI or ANTI join."""
    if isinstance(source, BoundJoin) and source.kind in ("SEMI", "ANTI"):
        yield from visible_aliases(source.left)
    elif isinstance(source, BoundJoin):
        yield from visible_aliases(source.left)
        yield from visible_aliases(source.right)
    else:
        yield from aliases(source)


def aliases_of(query: BoundQuery) -> Iterator[str]:
    """The aliases that a query and the queries in it define."""
    if isinstance(query, BoundUnion):
        yield from aliases_of(query.left)
        yield from aliases_of(query.right)
        return
    assert isinstance(query, BoundSelect)
    yield from aliases(query.source)
    for part in derived(query.source):
        yield from aliases_of(part.query)
    for bound in in_expressions(*expressions(query)):
        yield from aliases_of(bound.query)


def outer_columns(query: BoundQuery) -> Iterator[Column]:
    """The columns of queries around it that a sub-query reads."""
    hidden = set(aliases_of(query))
    for part in (query.left, query.right) if isinstance(query, BoundUnion) else ():
        yield from outer_columns(part)
    if isinstance(query, BoundSelect):
        parts = list(expressions(query))
        inside = [*columns(*parts), *(c for part in in_expressions(*parts) for c in outer_columns(part.query))]
        inside += [c for part in derived(query.source) for c in outer_columns(part.query)]
        yield from (c for c in inside if c.table and c.table not in hidden)


def is_semantic_query(query: BoundQuery) -> bool:
    """Does the query, or any query in it, hold a virtual column?"""
    if isinstance(query, BoundUnion):
        return is_semantic_query(query.left) or is_semantic_query(query.right)
    assert isinstance(query, BoundSelect)
    return (
        bool(query.virtuals)
        or any(is_semantic_query(part.query) for part in derived(query.source))
        or any(is_semantic_query(part.query) for part in in_expressions(*expressions(query)))
    )


def estimated_sources(query: BoundQuery) -> list[str]:
    """The estimates that the tables of a query were made from (by TO)."""
    if isinstance(query, BoundUnion):
        return estimated_sources(query.left) + estimated_sources(query.right)
    assert isinstance(query, BoundSelect)
    found = [
        f"{leaf.table.name} ({leaf.table.estimated_by})"
        for leaf in leaves(query.source)
        if isinstance(leaf, BoundTable) and leaf.table.estimated_by
    ]
    for part in derived(query.source):
        found += estimated_sources(part.query)
    for bound in in_expressions(*expressions(query)):
        found += estimated_sources(bound.query)
    return found


def leaves(source: BoundSource | None) -> list[BoundTable | BoundDerived]:
    """The tables and sub-queries of a FROM clause."""
    if isinstance(source, BoundJoin):
        return leaves(source.left) + leaves(source.right)
    return [source] if isinstance(source, BoundTable | BoundDerived) else []
