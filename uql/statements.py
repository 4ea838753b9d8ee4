"""What a statement leaves behind: tables that TO, CREATE, INSERT and COPY write, and what DuckDB runs unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from uql.errors import BindError, ConfigError, DataError, UQLSyntaxError
from uql.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.compiler.bound import BoundItem, BoundStatement
    from uql.compiler.syntax import CopyQuery, CreateTable, Insert, SetOption
    from uql.connection import Connection
    from uql.result import Outcome, Result

_OF_PLACES = ("UQL202", "UQL212")  # of names in FROM and of what may stand there
MADE_BY_TO = "uql: made by TO"  # starts the comment of tables that TO made: those it may replace


def write(
    connection: duckdb.DuckDBPyConnection,
    statement: CreateTable | Insert | CopyQuery,
    outcome: Outcome,
    text: str,
) -> None:
    """CREATE TABLE … AS, INSERT INTO … and COPY (…) TO: DuckDB writes the rows of the query. Raises DataError (UQL509).

    What reads a table of which not every row is certain says so (`based_on`).
    """
    from uql.catalog import ESTIMATED
    from uql.compiler.sql import literal
    from uql.compiler.syntax import CreateTable
    from uql.kernels.duck import Duck, quote, typed_columns
    from uql.render import unique_names

    rows = outcome.table.rename_columns(unique_names(outcome.table.column_names))
    chosen = f"SELECT {typed_columns(rows.column_names, outcome.types)} FROM __rows"
    try:
        Duck(connection).execute(_written(statement, chosen), {"__rows": rows})
        if isinstance(statement, CreateTable) and not outcome.exact:
            name = ".".join(map(quote, statement.name))
            words = " ".join(text[max(text.upper().find("CREATE"), 0) :].split())[:200]
            Duck(connection).execute(f"COMMENT ON TABLE {name} IS {literal(ESTIMATED + words)}")
    except duckdb.Error as error:
        raise refused(error) from error


def refused(error: duckdb.Error, bound: BoundStatement | None = None) -> DataError:
    """What DuckDB says of values while a statement runs, at the place of the expression that it is about."""
    from uql.places import place

    message = str(error).strip().splitlines()[0]
    help = None
    if any(part in message for part in ("Could not convert", "Unimplemented type for cast", "field format")):
        help = "TRY_CAST(x AS type) gives NULL where a value is none of the type"
    elif "More than one row returned by a subquery" in message:
        help = "a sub-query as a value gives one row: write max(…), LIMIT 1, or x IN (SELECT …)"
    elif "transaction is aborted" in message:
        help = 'an error before it has ended the transaction: con.uql("ROLLBACK")'
    span = None if bound is None else place(message, bound.query)
    start, end = (-1, -1) if span is None else (span.start, span.end)
    return DataError(f"DuckDB: {message}", code="UQL509", start=start, end=end, help=help)


def check_target(
    connection: duckdb.DuckDBPyConnection,
    statement: CreateTable | Insert | CopyQuery,
    items: tuple[BoundItem, ...],
    source: str,
) -> None:
    """What is certain to fail when the rows are there fails before they are paid for, at the place of the target.

    Raises: DataError (UQL509, UQL203) for a table that exists or does not, other columns, a folder or an option that does not exist.
    """
    from uql.compiler.syntax import CopyQuery, CreateTable
    from uql.kernels.duck import quote
    from uql.render import unique_names

    target = statement.path if isinstance(statement, CopyQuery) else statement.name[-1]
    start = source.find(target)

    def error(message: str, code: str, help: str | None = None) -> DataError:
        found = DataError(message, code=code, start=start, end=start + len(target), help=help)
        found.at(source)
        return found

    new = isinstance(statement, CreateTable) and not (statement.replace or statement.if_not_exists)
    if new and is_there(connection, statement):
        way = "CREATE OR REPLACE TABLE makes it anew, INSERT INTO adds rows to it"
        raise error(f"there is a table {target} already", "UQL203", way)
    if isinstance(statement, CopyQuery) and "://" not in target and not Path(target).parent.is_dir():
        raise error(f"there is no folder {Path(target).parent}", "UQL509", "make the folder, or name another file")
    names = unique_names([item.name for item in items])
    parts = [
        f"CAST(NULL AS {item.type}) AS {quote(name)}"
        if item.type.strip('"') not in ("", "NULL")
        else f"NULL AS {quote(name)}"
        for name, item in zip(names, items, strict=True)
    ]
    try:
        connection.execute("EXPLAIN " + _written(statement, f"SELECT {', '.join(parts)} LIMIT 0")).fetchall()
    except duckdb.Error as refused:
        first, *rest = str(refused).strip().splitlines()
        near = next((line for line in rest if line.startswith("Did you mean")), None)
        raise error(f"DuckDB: {first}", "UQL509", near and near[0].lower() + near[1:]) from None


def is_there(connection: duckdb.DuckDBPyConnection, statement: CreateTable | Insert | CopyQuery) -> bool:
    """Is there a table of the name already that CREATE TABLE gives?"""
    from uql.compiler.syntax import CreateTable
    from uql.kernels.duck import quote

    if not isinstance(statement, CreateTable):
        return False
    *_, name = statement.name
    if len(statement.name) > 1:
        try:
            connection.execute(f"DESCRIBE {'.'.join(map(quote, statement.name))}").fetchall()
        except duckdb.CatalogException:
            return False
        return True
    found = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE lower(table_name) = lower($name) AND CASE WHEN $temporary THEN temporary"
        " ELSE database_name = current_database() AND schema_name = current_schema() END",
        {"name": name, "temporary": statement.temporary},
    ).fetchall()
    return bool(found)


def _written(statement: CreateTable | Insert | CopyQuery, rows: str) -> str:
    """The statement as DuckDB has it, over a query for the rows."""
    from uql.compiler.sql import literal
    from uql.compiler.syntax import CreateTable, Insert
    from uql.kernels.duck import quote

    if isinstance(statement, CreateTable):
        how = ("OR REPLACE " if statement.replace else "") + ("TEMP " if statement.temporary else "")
        exists = "IF NOT EXISTS " if statement.if_not_exists else ""
        return f"CREATE {how}TABLE {exists}{'.'.join(map(quote, statement.name))} AS {rows}"
    if isinstance(statement, Insert):
        columns = f" ({', '.join(map(quote, statement.columns))})" if statement.columns else ""
        return f"INSERT INTO {'.'.join(map(quote, statement.name))}{columns} {rows}"
    options = f" ({statement.options})" if statement.options else ""
    return f"COPY ({rows}) TO {literal(statement.path)}{options}"


def store(connection: duckdb.DuckDBPyConnection, name: str, outcome: Outcome, text: str) -> None:
    """TO name: the rows as a table; an estimated column x is stored with x_low and x_high.

    In a read-only database it is a temporary table. Raises BindError (UQL203) for a table that TO did not make.
    """
    from uql.catalog import ESTIMATED
    from uql.compiler.sql import literal
    from uql.kernels.duck import Duck, quote, typed_columns
    from uql.render import unique_names

    check_to(connection, name, text)
    table = bounded(outcome)
    types = dict(zip(outcome.table.column_names, outcome.types, strict=True))
    kinds = [types.get(c, "") for c in table.column_names]
    table = table.rename_columns(unique_names(table.column_names))
    chosen = typed_columns(table.column_names, kinds)
    duck = Duck(connection)
    temporary = "TEMP " if is_read_only(connection) else ""
    duck.execute(f"CREATE OR REPLACE {temporary}TABLE {quote(name)} AS SELECT {chosen} FROM __rows", {"__rows": table})
    said = MADE_BY_TO if outcome.exact else ESTIMATED + " ".join(text.split())[:200]
    duck.execute(f"COMMENT ON TABLE {quote(name)} IS {literal(said)}")


def check_to(connection: duckdb.DuckDBPyConnection, name: str, text: str) -> None:
    """May TO store a table under this name? Raises BindError (UQL203) for one that TO did not make."""
    found = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE lower(table_name) = lower(?) "
        "UNION ALL SELECT comment FROM duckdb_views() WHERE lower(view_name) = lower(?) AND NOT internal",
        [name, name],
    ).fetchall()
    if found and not _made_by_to(str(found[0][0] or "")):
        start = text.rfind(name)
        end = start + len(name) if start >= 0 else -1
        message = f"there is a table {name} already, and TO did not make it"
        raise BindError(message, code="UQL203", start=start, end=end, help="choose another name").at(text)


def _made_by_to(comment: str) -> bool:
    from uql.catalog import ESTIMATED
    from uql.semantic_store import MADE_ESTIMATED

    by_create = comment.removeprefix(ESTIMATED).upper().startswith("CREATE")
    return comment.startswith((MADE_BY_TO, ESTIMATED)) and not comment.startswith(MADE_ESTIMATED) and not by_create


def bounded(outcome: Outcome, always: frozenset[str] = frozenset()) -> pa.Table:
    """The rows of an outcome, with x_low and x_high behind an estimated column x, and behind those of `always`."""
    import pyarrow as pa

    table = outcome.table
    for column, estimates in outcome.estimates.items():
        values = estimates if isinstance(estimates, list) else [estimates]
        if column not in always and all(e.exact for e in values):
            continue
        at = table.column_names.index(column) + 1
        low = pa.array([e.low for e in values], type=pa.float64())
        high = pa.array([e.high for e in values], type=pa.float64())
        table = table.add_column(at, f"{column}_low", low).add_column(at + 1, f"{column}_high", high)
    return table


def is_read_only(connection: duckdb.DuckDBPyConnection) -> bool:
    from uql.kernels.duck import Duck

    return bool(
        Duck(connection).scalar("SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()")
    )


def set_option(con: Connection, piece: SetOption, source: str) -> Result:
    """SET uql.name = value and RESET uql.name. Raises: ConfigError (UQL105) at the place of the name."""
    from uql.compiler.cost import FREE
    from uql.compiler.rules import known_names
    from uql.result import Result

    name = piece.name
    value = getattr(Settings(), name, None) if piece.value is None else piece.value
    try:
        known_names(con.configured.with_values(**{name: value}).disabled_rules)
        con.use(**{name: value})
    except ConfigError as error:
        place = source.lower().find(name.lower())
        error.start, error.end = place, place + len(name)
        raise error.at(source) from None
    empty = text_outcome([], None)
    return Result(
        lambda: empty, lambda: "SET", lambda: FREE, source, lambda to, done: store(con.catalog.cursor, to, done, source)
    )


def duckdb_own(
    connection: duckdb.DuckDBPyConnection,
    error: UQLSyntaxError | BindError,
    source: str,
    parameters: Mapping[str, Any],
) -> Result:
    """What UQL's grammar does not have, and names that only DuckDB can place, such as those of a lateral sub-query: unchanged.

    Raises: the error, where a quoted text may be free text, or where DuckDB cannot either.
    """
    if isinstance(error, BindError):
        if error.code not in _OF_PLACES or '"' in source:
            raise error
        try:
            connection.sql(f"EXPLAIN {source}", params=dict(parameters) or None)
        except duckdb.Error:
            raise error from None
        return _passed_on(connection, source, parameters)
    if _has_free_text(source):
        raise error.at(source)
    try:
        return _passed_on(connection, source, parameters)
    except duckdb.Error as other:
        said = str(other).strip().splitlines()[0]
        message = f"{error.message}; and DuckDB says: {said}"
        raise UQLSyntaxError(
            message, code=error.code, text=source, start=error.start, end=error.end, help=error.help
        ) from None


def _passed_on(connection: duckdb.DuckDBPyConnection, source: str, parameters: Mapping[str, Any]) -> Result:
    """What DuckDB makes of a statement. Raises: duckdb.Error."""
    from uql.compiler.cost import FREE
    from uql.result import Result

    relation = connection.sql(source, params=dict(parameters)) if parameters else connection.sql(source)
    outcome = text_outcome([], None)
    if relation is not None:
        outcome.table = (
            relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
        )
        outcome.types = [str(t) for t in relation.types]
    return Result(
        lambda: outcome,
        lambda: "DuckDB",
        lambda: FREE,
        source,
        lambda name, done: store(connection, name, done, source),
    )


def nothing(source: str, store: Callable[[str, Outcome], None]) -> Result:
    """The result of a statement for which there is nothing to do."""
    from uql.compiler.cost import FREE
    from uql.result import Result

    done = text_outcome([], None)
    return Result(lambda: done, lambda: "nothing to do", lambda: FREE, source, store)


def _has_free_text(source: str) -> bool:
    """Does a double-quoted text of the statement hold white space? Then DuckDB would take it for a name."""
    from uql.compiler.lexer import tokenize

    try:
        tokens = tokenize(source)
    except UQLSyntaxError:
        return True
    return any(len(token.value.split()) > 1 for token in tokens if token.type == "QUOTED")


def text_outcome(lines: list[str], of: Outcome | None) -> Outcome:
    """An outcome of lines of text, with the cost of another."""
    import pyarrow as pa

    from uql.llm.gate import Cost
    from uql.result import Outcome

    table = text_table(lines) if lines else pa.table({})
    outcome = Outcome(table, ["VARCHAR"] * table.num_columns, {}, [], Cost())
    if of is not None:
        outcome.cost, outcome.errors, outcome.warnings = of.cost, of.errors, of.warnings
    return outcome


def text_table(lines: list[str]) -> pa.Table:
    """Lines of text as a table of one column, `plan`, marked as such for printing."""
    import pyarrow as pa

    from uql.render import TEXT

    return pa.table({"plan": pa.array(lines, type=pa.string())}, metadata={TEXT: b""})
