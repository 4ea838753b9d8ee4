"""SELECT unnest(list) … LIMIT k stops once k rows are there: the items of the list are rows before anything is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.base.names import free_name, free_names
from uql.base.schema import Field
from uql.compiler.bind.lateral import put, table_of
from uql.compiler.bound import BoundDerived, BoundItem, BoundJoin, BoundSelect, BoundTable
from uql.compiler.joins import asks
from uql.compiler.subqueries import expressions, in_expressions, leaves, with_expressions
from uql.compiler.syntax import Boolean, Call, Column, Expr
from uql.compiler.walk import ROWS_FROM_ONE, columns, has_window, is_semantic, rewrite, walk


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
