"""A query without texts for a model is DuckDB's own: what it gives is known from DuckDB's description, and nothing is bound for it.

The binder is asked where DuckDB does not read the query alike, for EXPLAIN, and for the place of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import duckdb

from uql.base.errors import BindError
from uql.compiler import syntax as ast
from uql.compiler.bind.own_text import duckdb_text
from uql.compiler.bind.parameters import names, parameter_keys, refuse_unused
from uql.compiler.statement_targets import tables
from uql.compiler.subqueries import estimated_sources
from uql.compiler.walk import aggregate_calls, walk
from uql.engine.outcome import Outcome, text_outcome
from uql.engine.plain_sql import exact_estimates
from uql.llm.run_record import Cost
from uql.session.events import PlanEvent
from uql.session.execute_statement import prepare
from uql.session.prepared import PreparedStatement
from uql.session.read_only import check_sql_reads, reading
from uql.session.statements import written
from uql.session.store_estimates import counted
from uql.sources.frames import is_frame

if TYPE_CHECKING:
    from uql.compiler.bound import BoundStatement
    from uql.session.session import Session
    from uql.session.statements import Piece
    from uql.sources.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Described:
    """A query as DuckDB's own.

    Attributes:
        sql: its text for DuckDB.
        names: of its columns.
        types: of DuckDB.
        aggregates: the columns that are calculated from aggregates.
        grouped: has each group a row?
    """

    sql: str
    names: list[str]
    types: list[str]
    aggregates: list[int]
    grouped: bool


def plain_query(
    session: Session, tree: ast.Query, piece: Piece, bound: Callable[[], BoundStatement]
) -> PreparedStatement | None:
    """The statement as DuckDB's own; None where `described` gives none.

    Args:
        tree: its query.
        bound: binds it.
    """
    description = described(session.catalog, tree, piece)
    if description is None or session.settings.disabled_rules:
        return None
    settings = session.settings

    def work() -> Outcome:
        check_sql_reads(session.catalog, description.sql)
        session.emit(PlanEvent(None))
        with reading(session.catalog.cursor, session.catalog.read_only):
            table = session.kernel_duck().arrow(description.sql).rename_columns(description.names)
        estimates = exact_estimates(table, description.aggregates, description.grouped, settings.confidence)
        return Outcome(table, description.types, estimates, [], Cost())

    def whole() -> PreparedStatement:
        return prepare(session, bound(), piece.script)

    return PreparedStatement(
        lambda: session.run_locked(piece.script, work, settings, bound),
        lambda: whole().explain(),
        lambda: whole().quote(),
        piece.script,
        session.store(piece.script),
    )


def plain_write(
    session: Session, tree: ast.CreateTable | ast.CopyQuery, piece: Piece, bound: BoundStatement
) -> Outcome | None:
    """The count of the rows that DuckDB itself writes, none of which comes here; None where it is not certain that it writes the same.

    Args:
        tree: what is written.
        bound: its query.
    """
    catalog, sql = session.catalog, bound.sql
    if bound.semantic or sql is None or catalog.read_only or session.settings.disabled_rules:
        return None
    if estimated_sources(bound.query) or catalog.estimates_called(bound.text):
        return None
    column_names = [item.name for item in bound.query.items]
    one_each = len({name.lower() for name in column_names}) == len(column_names)
    if not one_each or column_names != [name for name, _ in catalog.describe(sql)]:
        return None

    def work() -> Outcome:
        check_sql_reads(catalog, sql)
        session.emit(PlanEvent(None))
        counts = session.kernel_duck().execute(written(tree, sql))
        return replace(counted(text_outcome([], None), counts), warnings=list(bound.warnings))

    return session.run_locked(piece.script, work, session.settings, lambda: bound)


def described(catalog: Catalog, tree: ast.Query, piece: Piece) -> Described | None:
    """A query as DuckDB describes it.

    None where a text for a model stands in it, where a stored estimate is read, or where that is not certain without binding it.

    Args:
        piece: the statement that it is the query of.
    Raises: duckdb.Error where it has ended the transaction that is open.
    """
    first = tree
    while isinstance(first, ast.Union):
        first = first.left
    if not isinstance(first, ast.Select) or any(_is_other(node, piece) for node in walk(tree, queries=True)):
        return None
    try:
        refuse_unused(piece.parameters, names(tree))
        sql = duckdb_text(tree, piece.script, piece.parameters)
        columns = [] if sql is None else catalog.describe(sql)
    except BindError:
        return None
    except duckdb.Error:
        if catalog.aborted():
            raise
        return None
    column_names = _named(first, [name for name, _ in columns], piece.script) if columns else None
    aggregates = _aggregates(first, catalog.aggregates) if first is tree else []
    if sql is None or column_names is None or aggregates is None:
        return None
    table_names = list(tables(sql))
    if table_names and (catalog.may_be_estimated(table_names) or catalog.is_behind()):
        return None
    return Described(
        sql, column_names, [type for _, type in columns], aggregates, first is tree and bool(first.group_by)
    )


def _is_other(node: object, piece: Piece) -> bool:
    """Does the binder say what it means: a text, a file, a data frame, what gives several columns, a parameter as a key, GROUP BY ALL?"""
    match node:
        case ast.TableName(parts=(name,), file=False):
            return is_frame(piece.frames.get(name))
        case (
            ast.Quoted()
            | ast.String(double=True)
            | ast.TableFunction()
            | ast.TableName(file=True)
            | ast.Call(name="columns" | "unnest")
            | ast.Like(operand=ast.Star())
        ):
            return True
        case ast.OrderKey(expr=ast.Name(parts=(word,))) | ast.GroupKey(expr=ast.Name(parts=(word,))):
            return word.lower() == "all"
        case ast.Select() | ast.Union():
            return any(parameter_keys(node))
    return False


def _named(select: ast.Select, duckdb_names: Sequence[str], script: str) -> list[str] | None:
    """The names of the columns: AS, else the column's name, else the item as written. None where a column may be of several items."""
    stars = [i for i, item in enumerate(select.items) if isinstance(item.expr, ast.Star)]
    if len(stars) > 1 or (stars and isinstance(select.source, ast.Join)):
        return None
    last = len(select.items) - stars[0] - 1 if stars else 0
    if len(duckdb_names) != len(select.items) and not (stars and len(duckdb_names) >= len(select.items) - 1):
        return None
    places = [i if not stars or i < stars[0] else i - len(select.items) for i in range(len(select.items))]
    column_names = list(duckdb_names)
    for i, item in enumerate(select.items):
        if i not in stars:
            column_names[places[i]] = _name(item, duckdb_names[places[i]], script)
    own = [column_names[places[i]].lower() for i in range(len(select.items)) if i not in stars]
    star_names = duckdb_names[stars[0] : len(duckdb_names) - last] if stars else []
    return None if any(name.lower().startswith(n) for name in star_names for n in own) else column_names


def _name(item: ast.SelectItem, duckdb_name: str, script: str) -> str:
    expr = item.expr
    if item.alias is not None:
        return item.alias
    while isinstance(expr, ast.Cast):
        expr = expr.operand
    if isinstance(expr, ast.Name):
        return duckdb_name if duckdb_name.lower() == expr.parts[-1].lower() else expr.parts[-1]
    if isinstance(expr, ast.Position):
        return duckdb_name
    return " ".join(script[item.expr.span.start : item.expr.span.end].split())


def _aggregates(select: ast.Select, aggregates: Container[str]) -> list[int] | None:
    """The items that are calculated from aggregates; None where a name may stand for one of them."""
    parts: list[ast.Expr] = [item.expr for item in select.items]
    around = [*(key.expr for key in select.order_by), *([] if select.qualify is None else [select.qualify])]
    positions = [i for i, part in enumerate(parts) if aggregate_calls(part, aggregates)]
    grouped = bool(select.group_by) or select.having is not None
    if not (grouped or positions or any(aggregate_calls(part, aggregates) for part in around)):
        return []
    nodes = [node for part in parts for node in walk(part)]
    aliases = {(select.items[i].alias or "").lower() for i in positions}
    reads_alias = any(isinstance(node, ast.Name) and node.parts[0].lower() in aliases for node in nodes)
    methods = any(isinstance(node, ast.Call) and "." in node.name for node in nodes)
    return (
        None if reads_alias or methods or any(isinstance(item.expr, ast.Star) for item in select.items) else positions
    )
