"""Read-only sessions: which statements only read, decided here for the page, the shell and the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from uql.base.errors import DataError, UQLError, UQLSyntaxError
from uql.compiler.changing_functions import READS_ONLY, TO_CHANGE, calls_change, statement_tree, tree_nodes
from uql.compiler.statement_targets import tokens
from uql.compiler.syntax import Explain, Option, Select, SetOption, Statement, Union

if TYPE_CHECKING:
    from uql.sources.catalog import Catalog

_EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:(?!/\*|\*/).)*\*/)*EXPLAIN\b", re.IGNORECASE | re.DOTALL)
# no quotes and no comments: they could hide a parenthesis
_OPTIONS = re.compile(r"\s*(?:ANALYZE\b|\([\w\s,]*\))", re.IGNORECASE)
_READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_READING_WORDS = {
    "SELECT",
    "FROM",
    "WITH",
    "VALUES",
    "TABLE",
    "PIVOT",
    "UNPIVOT",
    "SUMMARIZE",
    "DESCRIBE",
    "DESC",
    "SHOW",
    "",
}
_CHANGING_WORDS = {"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"}  # in a WITH, or behind one


def check_reads(catalog: Catalog, text: str) -> None:
    """Raises DataError (UQL511) where the session is read-only and a statement of a script would change something.

    Where its first word begins no statement, of UQL or DuckDB, it raises the UQLSyntaxError.
    """
    from uql.compiler.parser import parse_script

    if not catalog.read_only:
        return
    temporary = catalog.database.read_only  # a table of TO is then
    for piece, span in parse_script(text):
        if not reads(piece, temporary=temporary) or calls_change(text[span.start : span.end]):
            raise _mistake(text, span.start, span.end) or _refusal(text, span.start, span.end)


def check_sql_reads(catalog: Catalog, sql: str) -> None:
    """As `check_reads`, for the text that DuckDB gets: it may read quotes in another way than UQL. Raises DataError (UQL511)."""
    if catalog.read_only and not reads(sql):
        raise _refusal(sql, 0, len(sql))
    catalog.check_calls(sql)


def _mistake(text: str, start: int, end: int) -> UQLError | None:
    """What is wrong with a text whose first word begins no statement, of UQL or DuckDB; None: it begins one."""
    from uql.compiler.parser import parse

    statement = text[start:end]
    try:
        duckdb.extract_statements(statement)
    except (duckdb.Error, ValueError, TypeError) as other:
        if f'syntax error at or near "{statement.split(maxsplit=1)[0]}"' in str(other):
            try:
                parse(statement)
            except UQLSyntaxError as error:
                return UQLSyntaxError(
                    error.message,
                    code=error.code,
                    text=text,
                    start=start + error.start,
                    end=start + error.end,
                    help=error.help,
                )
    return None


def _refusal(text: str, start: int, end: int) -> DataError:
    return DataError(READS_ONLY, code="UQL511", text=text, start=start, end=end, help=TO_CHANGE)


def reads(piece: Statement | str, *, temporary: bool = False) -> bool:
    """Does a statement only read? The statement below EXPLAIN decides, for ANALYZE runs it.

    >>> reads("EXPLAIN ANALYZE COPY t TO 'x.csv'"), reads("FROM query('FROM enable_logging()')"), reads("PIVOT t ON a")
    (False, False, True)
    """
    if isinstance(piece, str):
        return not calls_change(piece) and any(map(_is_query, _below_explain(piece)))
    query = piece.statement if isinstance(piece, Explain) else piece
    if isinstance(query, Select | Union):
        return (query.to is None or temporary) and not any(map(_chooses_file, query.options))
    return isinstance(query, SetOption) and not _chooses_file(query)


def _chooses_file(option: Option | SetOption) -> bool:
    """Does a setting choose a file that is then written?"""
    return option.name == "ledger" and option.value not in (None, ":memory:")


@contextmanager
def reading(connection: duckdb.DuckDBPyConnection, only: bool) -> Iterator[None]:
    """What runs within is a read-only transaction of DuckDB's where `only`: temporary tables alone may change."""
    if not only:
        yield
        return
    connection.execute("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _below_explain(text: str) -> Iterator[str]:
    """The statement; of an EXPLAIN what may be the statement below it. DuckDB's parser then takes one of them at most."""
    explain = _EXPLAIN.match(text)
    if explain is None:
        yield text
        return
    yield text[explain.end() :]
    options = _OPTIONS.match(text, explain.end())
    if options is not None:
        yield text[options.end() :]


def _is_query(text: str) -> bool:
    """Is a statement one query by DuckDB's parser, without INSERT, UPDATE, DELETE or COPY in a WITH?"""
    try:
        kinds = [statement.type for statement in duckdb.extract_statements(text)]
    except duckdb.Error:
        return _has_query_words(text)
    except (ValueError, TypeError):  # a kind that the client has no name for, as UPDATE EXTENSIONS; half of a character
        return False
    if kinds == [duckdb.StatementType.SELECT]:
        try:
            return all(map(_READING_NODES.__contains__, _node_types(text)))
        except RecursionError:
            return False
    return kinds == [duckdb.StatementType.MULTI] and _has_query_words(text)  # DuckDB gives no tree of a PIVOT


def _has_query_words(text: str) -> bool:
    """As `_is_query`, for what DuckDB's parser does not read, such as UQL within a PIVOT: no word of it may be of a change."""
    words = [token.word for token in tokens(text)]
    first = next((word for word in words if word), "")
    return first in _READING_WORDS and _CHANGING_WORDS.isdisjoint(words)


def _node_types(text: str) -> Iterator[str]:
    """The kinds of the queries in DuckDB's tree of a query; "error" where it could not make one."""
    for node in tree_nodes(statement_tree(text)):
        kind = str(node.get("type", ""))
        if kind.endswith("_NODE"):
            yield kind
        if node.get("error"):
            yield "error"
