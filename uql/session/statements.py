"""What a statement leaves behind: tables that TO, CREATE, INSERT and COPY write, and what DuckDB runs unchanged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from uql.base.arrow_values import arrow_of
from uql.base.duckdb_connections import current_database
from uql.base.errors import BindError, BudgetError, DataError, UQLSyntaxError, out_of_memory
from uql.base.names import free_names
from uql.base.sql_text import dotted, first_line, literal, quote
from uql.compiler.bound import BoundItem, BoundStatement
from uql.compiler.lexer import is_free_text, tokenize
from uql.compiler.parser import options
from uql.compiler.statement_targets import changed, without_options
from uql.compiler.syntax import CopyQuery, CreateTable, Insert, Query, Span, Statement
from uql.engine.outcome import Outcome, text_outcome
from uql.kernels.duck import Duck, typed_columns
from uql.session.prepared import PreparedStatement
from uql.session.read_only import check_sql_reads, reading
from uql.session.store_estimates import check_stored, counted, listed, mark, placed, rows_with_bounds, together
from uql.sources.catalog import ESTIMATED, Catalog
from uql.sources.frames import MADE_BY

_OF_PLACES = ("UQL202", "UQL209", "UQL212")  # of names in FROM, of what may stand there, of SQL that we wrote
_MACRO = re.compile(r"\s*CREATE\b.*?\b(?:MACRO|FUNCTION)\b", re.IGNORECASE | re.DOTALL)
_SET = re.compile(r"\s*SET\b", re.IGNORECASE)
_NAMES_NOTHING = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
_MANY_FILES = (
    r"\b(partition_by|per_thread_output|file_size_bytes|row_groups_per_file)\b"  # of COPY: its target is a folder
)
MADE_BY_TO = "uql: made by TO"  # starts the comment of tables that TO made: those it may replace


def write(
    catalog: Catalog,
    statement: CreateTable | Insert | CopyQuery,
    outcome: Outcome,
    text: str,
    bound: BoundStatement,
) -> Outcome:
    """CREATE TABLE … AS, INSERT INTO … and COPY (…) TO: DuckDB writes the rows of the query. The count of the rows.

    An estimated column x takes x_low and x_high along; what reads a table of which not every row is certain says so (`based_on`).

    Args:
        statement: INSERT with the columns that its items are for.
        text: the statement as written.
    Raises: DataError (UQL509); BudgetError (UQL401) where a table has no columns for the interval of an estimate.
    """
    duck = Duck(catalog.cursor)
    if isinstance(statement, Insert) and len(statement.columns) == outcome.table.num_columns:
        rows, into, types = rows_with_bounds(catalog, statement.name, statement.columns, outcome)
        statement = replace(statement, columns=tuple(into))
    else:
        rows, types = _bounded(outcome)
    chosen = f"SELECT {typed_columns(rows, types)} FROM __rows"
    try:
        with together(catalog.cursor):
            noted = None if outcome.exact else text
            counts = duck.execute(written(statement, chosen, noted), {"__rows": rows})
            if isinstance(statement, CreateTable | Insert) and not outcome.exact:
                mark(catalog, statement.name, text)
    except duckdb.Error as error:
        raise refused(error, bound).at(text) from error
    return counted(outcome, counts)


def _bounded(outcome: Outcome) -> tuple[pa.Table, list[str]]:
    """The rows of an outcome with the ends of its intervals, each column with a name of its own, and their DuckDB types."""
    table = outcome.bounded()
    types = iter(outcome.types)
    own = set(outcome.table.column_names)
    kinds = [next(types) if name in own else "DOUBLE" for name in table.column_names]
    return table.rename_columns(free_names(table.column_names)), kinds


FAILURES = (duckdb.InternalException, duckdb.FatalException)  # errors in DuckDB, which may end its database
OPEN_AGAIN = "where the next statement fails too, open the database again: uql.connect(path)"


_DID_YOU_MEAN = re.compile(r"^Did you mean:? (.+?)\??$", re.MULTILINE)


def refused(error: duckdb.Error, bound: BoundStatement | None = None) -> DataError:
    """What DuckDB says of values while a statement runs, at the place of the expression that it is about."""
    from uql.session.error_spans import is_value_of_case, place

    if isinstance(error, duckdb.OutOfMemoryException):
        return out_of_memory(error)
    message = first_line(error)
    help = None
    if isinstance(error, duckdb.ConnectionException) and "closed" in message:
        return DataError("the connection is closed", code="UQL506", help="open it again: duckdb.connect(path)")
    if isinstance(error, FAILURES):
        return DataError(f"DuckDB failed on the statement: {message}", code="UQL509", help=OPEN_AGAIN)
    if any(part in message for part in ("Could not convert", "Unimplemented type for cast", "field format")):
        help = "TRY_CAST(x AS type) gives NULL where a value is none of the type"
    elif "out of range" in message.lower():
        help = (
            "a wider type holds it, as in x::HUGEINT or x::DOUBLE; TRY_CAST(x AS type) gives NULL where it is too large"
        )
    span = None if bound is None else place(message, bound.query)
    if bound is not None and span is not None and is_value_of_case(bound.query, span):
        help = "the values of CASE have one type: write them alike, as in CASE WHEN … THEN '1' ELSE 'no' END"
    elif "More than one row returned by a subquery" in message:
        help = "a sub-query as a value gives one row: write max(…), LIMIT 1, or x IN (SELECT …)"
    elif isinstance(error, duckdb.TransactionException) and "conflict" in message.lower():
        help = "another statement changed the same table at the same time: run this one again, its answers are kept"
    elif near := _DID_YOU_MEAN.search(str(error)):
        help = f"did you mean {near[1]}?"
    elif 'schema "uql" does not exist' in message:  # SHOW uql.budget
        help = "`uql config show` prints the settings, con.configured.budget is one of a connection"
    elif "transaction is aborted" in message:
        help = 'an error before it has ended the transaction: con.uql("ROLLBACK")'
    start, end = (-1, -1) if span is None else (span.start, span.end)
    return DataError(f"DuckDB: {message}", code="UQL509", start=start, end=end, help=help)


@contextmanager
def errors_as_ours() -> Iterator[None]:
    """What DuckDB refuses when a statement is looked at later, as in a transaction that has ended, is a DataError (UQL509)."""
    try:
        yield
    except duckdb.Error as error:
        raise refused(error) from error


def answer_types(catalog: Catalog, statement: Insert, bound: BoundStatement) -> tuple[str, ...]:
    """For each item of INSERT the type of its column, where the item is an answer to a text without a type; else "".

    Args:
        bound: the query of the statement.
    """
    from uql.compiler.bind.fields import output_fields

    fields = output_fields(bound.query)
    if not any(field.is_answer and field.type == "VARCHAR" for field in fields):
        return ()
    table = catalog.table(statement.name, plain=True)
    columns = [table.field(name) for name in statement.columns or listed(catalog, statement.name, len(fields))]
    return tuple(
        column.type if column is not None and field.is_answer and field.type == "VARCHAR" != column.type else ""
        for field, column in zip(fields, columns, strict=False)
    )


def check_target(
    connection: duckdb.DuckDBPyConnection,
    statement: CreateTable | Insert | CopyQuery,
    items: tuple[BoundItem, ...],
    source: str,
    *,
    folder: bool = True,
) -> None:
    """What is certain to fail when the rows are there fails before they are paid for, at the place of the target.

    Args:
        items: the columns that its query gives.
        folder: may COPY write to any folder, as shards do, or one that a statement before it makes or empties?
    Raises: DataError (UQL509, UQL203) for a table that exists or does not, other columns, a folder or an option that does not exist.
    """
    from uql.kernels.finish import null_columns

    target = statement.path if isinstance(statement, CopyQuery) else statement.name[-1]
    start = source.find(target)

    def error(message: str, code: str, help: str | None = None) -> DataError:
        failure = DataError(message, code=code, start=start, end=start + len(target), help=help)
        failure.at(source)
        return failure

    new = isinstance(statement, CreateTable) and not (statement.replace or statement.if_not_exists)
    if new and is_there(connection, statement):
        way = "CREATE OR REPLACE TABLE creates it again, INSERT INTO adds rows to it"
        raise error(f"there is a table {target} already", "UQL203", way)
    if isinstance(statement, CopyQuery) and "://" not in target and not Path(target).parent.is_dir():
        raise error(f"there is no folder {Path(target).parent}", "UQL509", "make the folder, or name another file")
    if isinstance(statement, CopyQuery) and not folder and os.path.isdir(target):  # False of a name that is too long
        if not re.search(_MANY_FILES, statement.options, re.IGNORECASE):
            raise error(f"{target} is a folder", "UQL509", "name a file in it, or write PARTITION_BY (column)")
        if any(Path(target).iterdir()) and not re.search(r"\b(append|overwrite)", statement.options, re.IGNORECASE):
            raise error(f"the folder {target} is not empty", "UQL509", "OVERWRITE, OVERWRITE_OR_IGNORE or APPEND")
    nulls = null_columns(free_names([item.name for item in items]), [item.type for item in items])
    try:
        connection.execute("EXPLAIN " + written(statement, f"SELECT {nulls} LIMIT 0")).fetchall()
    except duckdb.Error as refused:
        near = next((line for line in str(refused).splitlines() if line.startswith("Did you mean")), None)
        raise error(f"DuckDB: {first_line(refused)}", "UQL509", near and near[0].lower() + near[1:]) from None


def is_there(connection: duckdb.DuckDBPyConnection, statement: CreateTable | Insert | CopyQuery) -> bool:
    """Is there a table of the name already that CREATE TABLE gives?"""
    if not isinstance(statement, CreateTable):
        return False
    *_, name = statement.name
    if len(statement.name) > 1:
        try:
            connection.execute(f"DESCRIBE {dotted(statement.name)}").fetchall()
        except duckdb.CatalogException:
            return False
        return True
    matches = connection.execute(
        "SELECT 1 FROM system.main.duckdb_tables() WHERE system.main.lower(table_name) = system.main.lower($name)"
        " AND CASE WHEN $temporary THEN temporary"
        " ELSE database_name = system.main.current_database() AND schema_name = system.main.current_schema() END",
        {"name": name, "temporary": statement.temporary},
    ).fetchall()
    return bool(matches)


def written(statement: CreateTable | Insert | CopyQuery, rows: str, made_by: str | None = None) -> str:
    """The statement as DuckDB has it, over a query for the rows.

    Args: made_by: the statement whose estimates, or part of the rows, they are: a Parquet file says so.
    """
    if isinstance(statement, CreateTable):
        how = ("OR REPLACE " if statement.replace else "") + ("TEMP " if statement.temporary else "")
        exists = "IF NOT EXISTS " if statement.if_not_exists else ""
        return f"CREATE {how}TABLE {exists}{dotted(statement.name)} AS {rows}"
    if isinstance(statement, Insert):
        columns = f" ({', '.join(map(quote, statement.columns))})" if statement.columns else ""
        return f"INSERT INTO {dotted(statement.name)}{columns} {rows}"
    options = statement.options
    if "return_stats" in options.lower():
        help = "RETURN_FILES lists the files; COPY of a table's name gives statistics: COPY name TO … (RETURN_STATS)"
        raise DataError("RETURN_STATS is not read beside a query", code="UQL509", help=help)
    formats = re.findall(r"\bFORMAT\W+(\w+)", options, re.IGNORECASE) or [statement.path.rpartition(".")[2]]
    if made_by is not None and formats[0].lower() == "parquet" and "kv_metadata" not in options.lower():
        note = f"KV_METADATA {{{literal(MADE_BY)}: {literal(made_by)}}}"
        options = f"{options}, {note}" if options else note
    options = f" ({options})" if options else ""
    return f"COPY ({rows}) TO {literal(statement.path)}{options}"


def store(connection: duckdb.DuckDBPyConnection, name: str, outcome: Outcome, text: str) -> None:
    """TO name: the rows as a table; an estimated column x is stored with x_low and x_high.

    In a read-only database it is a temporary table. Raises BindError (UQL203) for a table that TO did not make.

    Args:
        text: the statement, for the comment of the table.
    """
    check_to(connection, name, text)
    table, kinds = _bounded(outcome)
    chosen = typed_columns(table, kinds)
    duck = Duck(connection)
    temporary = "TEMP " if current_database(connection).read_only else ""
    duck.execute(f"CREATE OR REPLACE {temporary}TABLE {quote(name)} AS SELECT {chosen} FROM __rows", {"__rows": table})
    comment = MADE_BY_TO if outcome.exact else ESTIMATED + " ".join(text.split())[:200]
    duck.execute(f"COMMENT ON TABLE {quote(name)} IS {literal(comment)}")


def check_to(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    """May TO store a table under this name? Raises BindError (UQL203) for one that TO did not make.

    Args:
        text: the statement, for the place of the error.
    """
    matches = connection.execute(
        "SELECT comment FROM system.main.duckdb_tables() WHERE system.main.lower(table_name) = system.main.lower(?) "
        "UNION ALL SELECT comment FROM system.main.duckdb_views()"
        " WHERE system.main.lower(view_name) = system.main.lower(?) AND NOT internal",
        [name, name],
    ).fetchall()
    if matches and not _made_by_to(str(matches[0][0] or "")):
        start = text.rfind(name)
        end = start + len(name) if start >= 0 else -1
        message = f"there is a table {name} already, and TO did not make it"
        raise BindError(message, code="UQL203", start=start, end=end, help="choose another name").at(text)


def _made_by_to(comment: str) -> bool:
    from uql.session.semantic_store import MADE_ESTIMATED

    other = comment.removeprefix(ESTIMATED).upper().startswith(("CREATE", "INSERT", "UPDATE", "DELETE", "MERGE"))
    return comment.startswith((MADE_BY_TO, ESTIMATED)) and not comment.startswith(MADE_ESTIMATED) and not other


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a script.

    Attributes:
        tree: of its grammar; a str is not UQL: it may be DuckDB's.
        script: the text that the places of the tree are in.
        source: its own part of the script.
        span: where that part stands.
        parameters: values of `$name`, of the whole script.
        frames: data frames that FROM may name.
    """

    tree: Statement | str
    script: str
    source: str
    span: Span
    parameters: Mapping[str, Any]
    frames: Mapping[str, Any]


def duckdb_own(catalog: Catalog, piece: Piece, error: UQLSyntaxError, partial: bool) -> PreparedStatement:
    """What UQL's grammar does not have: unchanged. What it quotes are names where DuckDB knows them: it binds a statement before it runs.

    Args:
        error: of UQL's parser.
        partial: may estimates go into tables? `WITH (partial = true)` at the end of the statement says so too.
    Raises: the error, where a quoted text is not a name that DuckDB knows, or DuckDB cannot run it either; BudgetError (UQL401) where the
        statement would put what it reads of estimates into a table.
    """
    source, partial = without_own_options(str(piece.tree), partial)
    quoted = has_free_text(source)
    if quoted and _MACRO.match(source):  # DuckDB would keep what it names, and look for it later
        raise error.at(source)
    try:
        return passed_on(catalog, source, partial, piece.parameters)
    except duckdb.Error as other:
        if quoted and isinstance(other, _NAMES_NOTHING):
            raise error.at(source) from None
        # UQL has SET too: it says how a setting is written. A word in quotes that is nested too deep may be a text or a name
        told = error.help is not None and _SET.match(source) is not None
        duckdbs_own = not (quoted or told or (error.code == "UQL103" and '"' in source))
        ended = isinstance(other, duckdb.TransactionException)
        begins = f'at or near "{source.split(maxsplit=1)[0]}"' not in str(other)  # a statement that DuckDB alone has
        of_duckdb = not isinstance(other, duckdb.ParserException) or (
            begins and "expected a statement" in error.message
        )
        if ended or (duckdbs_own and of_duckdb):
            from uql.compiler.bind.types import other_model_call

            failure = refused(other)
            if not ended:
                failure.help = other_model_call(source) or (failure.help if _SET.match(source) is None else None)
            raise failure from other
        raise neither(error, other, source) from None


def neither(error: UQLSyntaxError, other: duckdb.Error, text: str, offset: int = 0) -> UQLSyntaxError:
    """The error for a statement that is neither UQL nor DuckDB's: what both say, at the place that UQL's parser gives.

    Args:
        text: what the place is in.  offset: of the statement in it.
    """
    from uql.compiler.bind.types import other_model_call

    return UQLSyntaxError(
        f"{error.message}; and DuckDB says: {first_line(other)}",
        code=error.code,
        text=text,
        start=error.start + offset,
        end=error.end + offset,
        help=other_model_call(text) or error.help,
    )


def duckdb_names(catalog: Catalog, piece: Piece, error: BindError, partial: bool) -> PreparedStatement:
    """A statement with names that only DuckDB can place, such as those of a lateral sub-query: its own text. Raises: the error.

    Args:
        partial: as in `duckdb_own`.
    """
    placed = placed_by_duckdb(catalog, piece, error)
    if placed is None:
        raise error
    sql, parameters = placed
    return passed_on(catalog, sql, without_own_options(piece.source, partial)[1], parameters)


def placed_by_duckdb(catalog: Catalog, piece: Piece, error: BindError) -> tuple[str, Mapping[str, Any]] | None:
    """The SQL of such a statement with its parameters; None where DuckDB cannot place the names either.

    Args:
        piece: the statement, which the binder refused.
    """
    from uql.compiler.bind.own_text import duckdb_text

    source, parameters = without_own_options(piece.source, False)[0], piece.parameters
    sql = source if '"' not in source else None
    if isinstance(piece.tree, Query):
        own = duckdb_text(piece.tree, piece.script, parameters)
        sql, parameters = (sql, parameters) if own is None else (own, {})
    if error.code not in _OF_PLACES or sql is None:
        return None
    try:
        catalog.cursor.sql(f"EXPLAIN {sql}", params=dict(parameters) or None)
    except duckdb.Error:
        return None
    return sql, parameters


def without_own_options(source: str, partial: bool) -> tuple[str, bool]:
    """A statement of DuckDB's own without UQL's `WITH (…)`, and whether estimates may go into tables."""
    statement, tail = without_options(source)
    return statement, bool(options(tail, source).get("partial", partial))


def passed_on(catalog: Catalog, source: str, partial: bool, parameters: Mapping[str, Any]) -> PreparedStatement:
    """What DuckDB makes of a statement. Raises: duckdb.Error; BudgetError (UQL401).

    Args:
        partial: may estimates go into tables?
    """
    run = catalog.executed(source)
    change = changed(run)
    reads = catalog.estimates_read(run, change.name if change is not None else ())
    try:
        check_stored(run, change, (), reads, partial=partial)
    except BudgetError as error:
        at = source.find(run) if change is not None else -1
        start, end = (at + change.start, at + change.end) if change is not None and at >= 0 else (0, len(source))
        raise placed(error, source, start, end) from None
    if change is None or not reads:
        outcome = own_rows(catalog, source, parameters)
    else:
        with together(catalog.cursor):
            outcome = own_rows(catalog, source, parameters)
            if change.name:
                mark(catalog, change.name, run)
    outcome.based_on, outcome.exact = reads, not reads
    return done(catalog, outcome, "DuckDB", source)


def own_rows(catalog: Catalog, sql: str, parameters: Mapping[str, Any]) -> Outcome:
    """The rows that DuckDB gives for a statement: of one that writes rows their count. Raises: duckdb.Error.

    Args:
        sql: one statement of DuckDB's.
        parameters: values of `$name`.
    """
    check_sql_reads(catalog, sql)
    catalog.orders_known = False
    outcome, connection = text_outcome([], None), catalog.cursor
    with reading(connection, catalog.read_only):
        if changed(sql) is not None and "RETURN" not in sql.upper():  # as a relation it has no count before DuckDB 2.0
            return counted(outcome, connection.execute(sql, dict(parameters) or None).fetchall())
        relation = connection.sql(sql, params=dict(parameters)) if parameters else connection.sql(sql)
        if relation is not None:
            outcome.table, outcome.types = arrow_of(relation), [str(kind) for kind in relation.types]
        return outcome


def done(catalog: Catalog, outcome: Outcome, explained: str, source: str) -> PreparedStatement:
    """A statement that has run when it was read, or that makes no call.

    Args:
        explained: what EXPLAIN says of it.
    """
    from uql.compiler.cost import FREE

    return PreparedStatement(
        lambda: outcome,
        lambda: explained,
        lambda: FREE,
        source,
        lambda name, rows: store(catalog.cursor, name, rows, source),
    )


def has_free_text(source: str) -> bool:
    """Does a double-quoted text of the statement hold white space? Then DuckDB would take it for a name."""
    try:
        tokens = tokenize(source)
    except UQLSyntaxError:
        return True
    return any(map(is_free_text, tokens))
