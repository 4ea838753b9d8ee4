"""Aggregates over rows chosen by x IN (SELECT key FROM t WHERE "…") or EXISTS (…) are aggregates over a join: they can be estimated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from uql.base.names import free_name, free_names
from uql.base.schema import Field
from uql.compiler.bind.lateral import put, table_of
from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundItem,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundTable,
    BoundUnion,
)
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.joins import asks
from uql.compiler.merge_subqueries import chooses_rows
from uql.compiler.subqueries import aliases, expressions, in_expressions, leaves, with_expressions
from uql.compiler.syntax import Binary, Boolean, Call, Column, Exists, Expr, InQuery
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import ROWS_FROM_ONE, columns, has_window, is_semantic, rewrite, walk

IsKey = Callable[[BoundTable, str], bool]


def unnested(query: BoundQuery, is_key: IsKey) -> BoundQuery:
    """SELECT COUNT(*) FROM s WHERE s.k IN (SELECT t.id FROM t WHERE "…") → SELECT COUNT(*) FROM s JOIN t ON s.k = t.id WHERE "…".

    By itself the sub-query is a search, which below its budget finds some of its rows: a number over those says nothing about the others.

    Safe: no value of t.id is there twice, so a row of s has one partner at most.

    Args:
        is_key: has no value of a table's column more than one row?
    """
    if isinstance(query, BoundUnion):
        return replace(query, left=unnested(query.left, is_key), right=unnested(query.right, is_key))
    assert isinstance(query, BoundSelect)
    if not query.aggregated or query.sets or query.source is None or query.where is None:
        return query
    for term in conjuncts(query.where):
        with_join = _joined(query, term, is_key)
        if with_join is not None:
            return unnested(with_join, is_key)
    return query


def _joined(query: BoundSelect, term: Expr, is_key: IsKey) -> BoundSelect | None:
    """The query with the term's table in its FROM clause; None where the term is none of these."""
    match term:
        case InQuery(query=Bound(query=BoundSelect(items=(_,)) as inner, correlated=False), negated=False):
            keys: list[Expr] = [inner.items[0].expr]
        case Exists(query=Bound(query=BoundSelect() as inner)):
            keys = []
        case _:
            return None
    table = inner.source
    if not isinstance(table, BoundTable) or not inner.virtuals or not chooses_rows(inner):
        return None
    if list(in_expressions(*expressions(inner))) or query.source is None:
        return None
    if table.alias in aliases(query.source) and any("{" in v.text for v in inner.virtuals):  # a hole may name the table
        return None
    terms = conjuncts(inner.where)
    if isinstance(term, Exists):
        keys = [side for t in terms for side in _matched(t, table.alias)]
    if not any(isinstance(k, Column) and k.table == table.alias and is_key(table, k.name) for k in keys):
        return None
    moved = _Moved(query, inner, table)
    if isinstance(term, InQuery):
        on: list[Expr] = [Binary("=", term.operand, moved.expr(keys[0]), span=term.span)]
    else:
        on = [moved.expr(t) for t in terms if _matched(t, table.alias)]
        terms = [t for t in terms if not _matched(t, table.alias)]
    rest = [t for t in conjuncts(query.where) if t is not term]
    return replace(
        query,
        source=BoundJoin("INNER", query.source, replace(table, alias=moved.alias), conjunction(on)),
        where=conjunction([*rest, *map(moved.expr, terms)]),
        virtuals=(*query.virtuals, *moved.virtuals.values()),
    )


def _matched(term: Expr, alias: str) -> list[Expr]:
    """The columns of the inner table that a term says are equal to something of the query around it."""
    if not isinstance(term, Binary) or term.op != "=":
        return []
    sides = ((term.left, term.right), (term.right, term.left))
    return [
        one
        for one, other in sides
        if isinstance(one, Column)
        and one.table == alias
        and not is_semantic(other)
        and columns(other)
        and all(c.table != alias for c in columns(other))
    ]


class _Moved:
    """What stood in the sub-query, under an alias and with numbers of virtual columns that are free around it."""

    def __init__(self, query: BoundSelect, inner: BoundSelect, table: BoundTable) -> None:
        outer_aliases = set(aliases(query.source))
        names = (f"{table.alias}_{i}" for i in count(2))
        self.own = table.alias
        self.alias = (
            self.own if self.own not in outer_aliases else next(name for name in names if name not in outer_aliases)
        )
        first = max((v.id for v in query.virtuals), default=-1) + 1
        self.virtuals: dict[VirtualColumn, VirtualColumn] = {
            v: replace(v.moved(self._at), id=first + i) for i, v in enumerate(inner.virtuals)
        }

    def _at(self, column: Column) -> Column:
        return replace(column, table=self.alias) if column.table == self.own else column

    def expr(self, expr: Expr) -> Expr:
        def change(node: Any) -> Any:
            if isinstance(node, Virtual):
                return replace(node, column=self.virtuals[node.column])
            return self._at(node) if isinstance(node, Column) else node

        result: Expr = rewrite(expr, change)
        return result


def items_as_rows(query: BoundSelect) -> BoundSelect:
    """SELECT unnest(l) FROM t WHERE "…" LIMIT k → SELECT u FROM (SELECT *, unnest(l) AS u FROM t) t WHERE "…" LIMIT k.

    Lists of several tables stand behind them, in a sub-query that reads their columns. Rows of one row show the model the same, and are
    asked once. Not where a window counts the rows before they are taken apart, where the model makes the list, or joins the tables.
    """
    lists = _lists(query)
    if not lists or query.aggregated or (query.limit is None and not query.distinct):
        return query
    if query.qualify is not None or has_window(*expressions(query)) or any(map(_is_made_later, lists)):
        return query
    assert query.source is not None
    tables = {c.table for c in columns(*lists)} or {leaf.alias for leaf in leaves(query.source)[:1]}
    of = table_of(query.source, tables)
    if of is None and asks(query.source):
        return query
    alias = of.alias if of is not None else free_name("items", (leaf.alias for leaf in leaves(query.source)))
    fields = () if of is None else of.table.readable if isinstance(of, BoundTable) else of.fields
    names = free_names((call.name for call in lists), (f.name for f in fields))
    items = [BoundItem(Column(alias, f.name), f.name, f.type) for f in fields]
    items += [BoundItem(call, name, "") for call, name in zip(lists, names, strict=True)]
    fields = (*fields, *(Field(name, "") for name in names))
    table = BoundDerived(BoundSelect(tuple(items), of), alias, fields)
    source = put(query.source, table) if of is not None else BoundJoin("INNER", query.source, table, Boolean(True))
    values: dict[Expr, Expr] = {call: Column(alias, name) for call, name in zip(lists, names, strict=True)}

    def change(expr: Any) -> Any:
        return rewrite(expr, lambda node: values.get(node, node))

    return replace(with_expressions(query, change), source=source)


def _lists(query: BoundSelect) -> tuple[Call, ...]:
    """The calls in SELECT and ORDER BY that give several rows for one, each once."""
    exprs = (*(item.expr for item in query.items), *(key.expr for key in query.order_by))
    calls = (node for expr in exprs for node in walk(expr) if isinstance(node, Call))
    return tuple(dict.fromkeys(call for call in calls if call.name in ROWS_FROM_ONE))


def _is_made_later(call: Call) -> bool:
    return is_semantic(call) or any(True for _ in in_expressions(call))
