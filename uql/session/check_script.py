"""A script is bound whole before its first statement runs: what is wrong with the last one is said before the first one is paid for.

A table that a statement of UQL makes stands for itself in those that follow, with its columns and no rows. What DuckDB's own statements
and files change is not known ahead: what fails behind them is said when its turn comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import duckdb

from uql.base.errors import BindError, UQLError, UQLSyntaxError
from uql.base.schema import Table
from uql.compiler import syntax as ast
from uql.compiler.bind.fields import output_fields
from uql.compiler.parser import parse
from uql.kernels.finish import null_columns
from uql.session.statements import Piece, check_target, has_free_text, neither, placed_by_duckdb

if TYPE_CHECKING:
    from uql.compiler.bound import BoundStatement
    from uql.sources.catalog import Catalog

    Bind = Callable[[Piece, ast.Query], BoundStatement]

_KEEPS = re.compile(
    r"(?:BEGIN|START|COMMIT|END|ROLLBACK|ABORT|CHECKPOINT|ANALYZE|VACUUM|EXPLAIN|SHOW|DESCRIBE|DESC|SUMMARIZE|PIVOT|UNPIVOT|WITH|FROM"
    r"|SELECT|VALUES|TABLE|INSERT|UPDATE|DELETE|MERGE|TRUNCATE|EXECUTE|PREPARE|DEALLOCATE)\b",
    re.IGNORECASE,
)
"""How statements of DuckDB's own begin behind which the same names stand for the same columns."""


def check(pieces: Sequence[Piece], catalog: Catalog, bind: Bind) -> None:
    """Parses and binds every statement as far as it can be known ahead. Raises: as the statements would.

    Args:
        bind: binds a query of a piece.
    """
    try:
        _check(pieces, catalog, bind)
    finally:
        catalog.planned.clear()


def _check(pieces: Sequence[Piece], catalog: Catalog, bind: Bind) -> None:
    certain = True
    for piece in pieces:
        tree = piece.tree
        if isinstance(tree, str):
            _check_own(piece, tree, catalog)
            certain = certain and _KEEPS.match(tree) is not None
            continue
        if isinstance(tree, ast.SetOption):
            certain = certain and tree.name != "quoted"
            continue
        runs = not isinstance(tree, ast.Explain) or tree.mode == "ANALYZE"
        tree = tree.statement if isinstance(tree, ast.Explain) else tree
        query = getattr(tree, "query", tree)
        if not isinstance(query, ast.Query):  # REFRESH, DROP SEMANTIC TABLE
            certain = certain and not runs
            continue
        try:
            bound = bind(piece, query)
            if (
                certain
                and isinstance(tree, ast.CreateTable | ast.Insert | ast.CopyQuery)
                and not _is_made(tree, catalog)
            ):
                check_target(catalog.cursor, tree, bound.query.items, piece.script)
        except UQLError as error:
            by_duckdb = isinstance(error, BindError) and placed_by_duckdb(catalog, piece, error) is not None
            if certain and not by_duckdb:
                raise error.at(piece.script) from None
            certain = certain and not (runs and isinstance(tree, ast.CreateTable | ast.CreateSemanticTable))
            continue
        if runs:
            _make(tree, query, bound, catalog)
        certain = certain and not (runs and isinstance(tree, ast.CopyQuery))


def makes_tables(statement: ast.Statement | str) -> bool:
    """May those behind a statement read a table or a column that is there once it has run?"""
    if isinstance(statement, str):
        return _KEEPS.match(statement) is None
    makes = isinstance(statement, ast.CreateTable | ast.CreateSemanticTable | ast.CopyQuery)
    return makes or getattr(statement, "to", None) is not None


def _is_made(piece: ast.CreateTable | ast.Insert | ast.CopyQuery, catalog: Catalog) -> bool:
    return not isinstance(piece, ast.CopyQuery) and piece.name[-1].lower() in catalog.planned


def _make(piece: ast.Statement, query: ast.Query, bound: BoundStatement, catalog: Catalog) -> None:
    """Notes the table that a statement makes."""
    name = bound.to if piece is query else None
    if isinstance(piece, ast.CreateTable | ast.CreateSemanticTable):
        name = piece.name[-1]
    if name is not None:
        fields = output_fields(bound.query)
        columns = null_columns([f.name for f in fields], [f.type for f in fields])
        catalog.planned[name.lower()] = Table(name, f"(SELECT {columns} WHERE false)", fields, 0)


def _check_own(piece: Piece, statement: str, catalog: Catalog) -> None:
    """A statement that is none of UQL's: is it one of DuckDB's? Raises: UQLSyntaxError with what both say."""
    if '"' in statement and has_free_text(statement):  # sub-queries with texts: bound when its turn comes
        return
    try:
        parse(statement)
    except UQLSyntaxError as error:
        try:
            catalog.cursor.extract_statements(statement)
        except duckdb.Error as other:
            raise neither(error, other, piece.script, piece.span.start) from None
