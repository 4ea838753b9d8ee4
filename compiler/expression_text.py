"""Expressions and sources as a person reads them, in plans and in the names of statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.base.sql_text import OWN
from uql.compiler import syntax as ast
from uql.compiler.bound import BoundDerived, BoundJoin, BoundQuery, BoundSelect, BoundSource, BoundTable, BoundUnion
from uql.compiler.subqueries import in_expressions
from uql.compiler.unparse import unparse
from uql.compiler.virtual import Virtual
from uql.compiler.walk import rewrite, with_queries

LONGEST = 240  # characters of a shown expression


def show(expr: ast.Expr | None) -> str:
    """An expression as a person writes it: a virtual column is its text in quotes, a bound sub-query is a query again."""
    if expr is None:
        return ""
    text = unparse(_unbound(expr))
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def describe_source(source: BoundSource | None) -> str:
    """One short phrase for what stands after FROM; sub-queries are left out: `(…) AS p`."""
    match source:
        case BoundTable(table=table, alias=alias):
            return table.name if table.name == alias else f"{table.name} AS {alias}"
        case BoundDerived(alias=alias):
            return f"(…) AS {alias}"
        case BoundJoin(kind=kind, left=left, right=right, on=on):
            how = "" if kind == "INNER" else f"{kind} "
            condition = f" ON {show(on)}" if on is not None else ""
            return f"{describe_source(left)} {how}JOIN {describe_source(right)}{condition}"
    return "one row"


def _unbound(expr: Any) -> Any:
    """The expression without what only the binder knows."""
    swap = {id(part): _query(part.query) for part in in_expressions(expr)}
    return rewrite(with_queries(expr, swap) if swap else expr, _plain)


def _plain(node: Any) -> Any:
    if isinstance(node, Virtual):
        return ast.Quoted(node.column.text)
    if isinstance(node, ast.Call):
        name = node.name.removeprefix(OWN)  # as UQL's own calls are written
        return replace(node, name="COUNT" if name == "count" else name)
    return node


def _query(query: BoundQuery) -> ast.Query:
    if isinstance(query, BoundUnion):
        return ast.Union(_query(query.left), _query(query.right), query.all, query.op)
    assert isinstance(query, BoundSelect)
    return ast.Select(
        tuple(ast.SelectItem(_unbound(item.expr)) for item in query.items),
        _source(query.source),
        _unbound(query.where) if query.where is not None else None,
        tuple(ast.GroupKey(_unbound(key.expr)) for key in query.group_by),
        _unbound(query.having) if query.having is not None else None,
        limit=ast.Number(str(query.limit)) if query.limit is not None else None,
        distinct=query.distinct,
        qualify=_unbound(query.qualify) if query.qualify is not None else None,
    )


def _source(source: BoundSource | None) -> ast.Source | None:
    match source:
        case BoundTable(table=table, alias=alias):
            return ast.TableName((table.name,), None if table.name == alias else alias)
        case BoundDerived(query=query, alias=alias):
            return ast.Derived(_query(query), alias)
        case BoundJoin(kind=kind, left=left, right=right, on=on):
            first, second = _source(left), _source(right)
            assert first is not None and second is not None
            return ast.Join(kind, first, second, _unbound(on) if on is not None else None)
    return None
