"""LIMIT and OFFSET that are more than a number: a share of the rows, a sub-query, ALL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from uql.base.errors import BindError
from uql.base.sql_text import first_line
from uql.compiler import syntax as ast
from uql.compiler.bind.statement import Statement
from uql.compiler.bound import BoundQuery
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import is_semantic_query
from uql.compiler.syntax import Binary, Call, Expr, Null, Number, ScalarQuery, Select
from uql.compiler.walk import rewrite

ALIAS = "limited"


def by_share(query: Select | ast.Union) -> Select:
    """`… LIMIT 10%` as a query over all the rows, of which the first are kept. Raises: BindError (UQL208).

    As in DuckDB the share is of all rows, rounded down, and OFFSET skips rows before it.
    """
    share, offset = query.limit, query.offset or Number("0")
    if not isinstance(share, Number) or float(share.text) > 100:
        place = share.span if share is not None else query.span
        raise BindError(
            "LIMIT … PERCENT takes a number from 0 to 100", code="UQL208", span=place, help="as in LIMIT 10%"
        )
    inner = replace(query, limit=None, offset=None, percent=False, ctes=(), to=None, options=())
    nth = Call("system.main.row_number", over=ast.Window())
    rows = Call("system.main.count", over=ast.Window())
    part = Call("system.main.floor", (Binary("/", Binary("*", rows, share), Number("100")),))
    condition = Binary("AND", Binary(">", nth, offset), Binary("<=", nth, Binary("+", offset, part)), span=share.span)
    return Select(
        (ast.SelectItem(ast.Star()),),
        ast.Derived(inner, ALIAS),
        qualify=condition,
        ctes=query.ctes,
        to=query.to,
        options=query.options,
        span=query.span,
    )


def is_all(expr: Expr | None) -> bool:
    """Is it the word ALL, where a name may stand?"""
    return isinstance(expr, ast.Name) and [part.lower() for part in expr.parts] == ["all"]


def counted(
    expr: Expr | None, clause: str, statement: Statement, bind: Callable[[ast.Query], tuple[BoundQuery, bool]]
) -> Expr | None:
    """LIMIT with sub-queries as the numbers that DuckDB gives for them; ALL and NULL mean unlimited. Raises: BindError (UQL208).

    Args:
        bind: binds a query; says whether it reads columns of a query around it.
    """
    if clause == "LIMIT" and (isinstance(expr, Null) or is_all(expr)):
        return None

    def number(node: object) -> object:
        return _number(node, clause, statement, bind) if isinstance(node, ScalarQuery) else node

    value: Expr | None = rewrite(expr, number) if expr is not None else None
    return None if isinstance(expr, ScalarQuery) and isinstance(value, Null) else value


def _number(
    query: ScalarQuery, clause: str, statement: Statement, bind: Callable[[ast.Query], tuple[BoundQuery, bool]]
) -> Expr:
    bound, correlated = bind(query.query)
    if correlated or len(bound.items) != 1 or is_semantic_query(bound):
        raise BindError(
            f"{clause} takes a sub-query that gives one number, reads no column around it and asks no text",
            code="UQL208",
            span=query.span,
            help=f"store what it counts first (… TO counted), then write {clause} (SELECT n FROM counted)",
        )
    try:
        value = statement.catalog.value(query_sql(bound))
    except statement.types.error as error:
        raise BindError(f"{clause}: {first_line(error)}", code="UQL208", span=query.span) from error
    if value is None:
        return Null(span=query.span)
    if isinstance(value, str) and not value.isdigit():
        return ast.String(value, span=query.span)
    return Number(str(value), span=query.span)
