"""What a database holds of its semantic tables: their definitions, what is known of each source row, and how new rows come in.

`uql_semantic_tables` has a row for each: its name, the query, the key, the columns, the groups of the first build, when (UTC), and what was
stated of rows that were not asked, with the score that chose them. Of a table
made row by row, `__uql_rows_NAME` has a row for each candidate: its key, and a digest of what the query reads of it, NULL where it has no
answer yet. `__by_small` is true where the small of two models answered: the row is not looked at again, and not sure either.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.duckdb_connections import current_database
from uql.base.errors import BindError, DataError
from uql.base.sql_text import dotted, literal, quote
from uql.kernels.duck import Duck, collated
from uql.kernels.kept_proxy import StatedSet
from uql.sources.catalog import ESTIMATED

if TYPE_CHECKING:
    import pyarrow as pa

REGISTRY = "uql_semantic_tables"
_SO_CALLED = (
    "system.main.lower(schema_name) = system.main.lower(?) AND system.main.lower(table_name) = system.main.lower(?)"
)
MADE = "uql: semantic table: "  # begins the comment of a table whose rows are all answered
MADE_ESTIMATED = ESTIMATED + "semantic table: "  # of another
COLUMNS = {
    "schema_name": "VARCHAR", "table_name": "VARCHAR", "definition": "VARCHAR", "key": "VARCHAR[]", "columns": "JSON",
    "groups": "JSON", "by_row": "BOOLEAN", "model": "VARCHAR", "built": "TIMESTAMP", "refreshed": "TIMESTAMP",
    "calls": "BIGINT", "stated": "JSON",
}  # fmt: skip
OPEN, BY_SMALL = "__digest IS NULL", "__by_small"  # of a source row: it has no answer; a small model gave it
Groups = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Definition:
    """One semantic table, as `uql_semantic_tables` holds it."""

    schema: str
    name: str
    text: str  # of the query
    key: tuple[str, ...]  # output columns
    columns: tuple[tuple[str, str], ...] = ()  # output columns and their DuckDB types
    groups: Groups = field(default_factory=dict)  # names and descriptions by quoted text
    by_row: bool = False  # is every output row made of one row of one table?
    model: str = ""
    refreshed_s: float = 0.0  # seconds since the epoch
    calls: int = 0  # that it has taken so far
    stated: StatedSet | None = None  # what the latest run stated of rows that it did not ask
    database: str = ""  # that is open: of a schema's name alone, DuckDB finds temporary tables first

    @property
    def sql(self) -> str:
        return dotted((self.database, self.schema, self.name))

    @property
    def rows_sql(self) -> str:
        """The table of what is known of the source rows."""
        return dotted((self.database, self.schema, "__uql_rows_" + self.name))


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows of a semantic table that one refresh changed."""

    added: int
    changed: int
    removed: int
    rows: int  # there are now


# --------------------------------------------------------------------------------------------------------- definitions
def named(cursor: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> tuple[str, str]:
    """Schema and name that a statement means. Raises: BindError (UQL520) where another database is meant."""
    if len(parts) > 2 and parts[0].lower() == current_database(cursor).name.lower():
        parts = parts[1:]
    if len(parts) > 2:
        raise BindError(
            f"a semantic table belongs to the database that is open, not to {parts[0]}",
            code="UQL520",
            help="write table, or schema.table",
        )
    schema = parts[0] if len(parts) == 2 else str(Duck(cursor).scalar("SELECT system.main.current_schema()"))
    return schema, parts[-1]


def find(cursor: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> Definition | None:
    """The definition of a name, None where there is none."""
    schema, name = named(cursor, parts)
    low = (schema.lower(), name.lower())
    return next((d for d in definitions(cursor) if (d.schema.lower(), d.name.lower()) == low), None)


def needed(cursor: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> Definition:
    """The same. Raises: BindError (UQL520) where there is none."""
    definition = find(cursor, parts)
    if definition is None:
        here, _ = named(cursor, parts[-1:])
        names = ", ".join(_listed(d, here) for d in definitions(cursor))
        there = kind_of(cursor, *named(cursor, parts)) is not None
        what = f"{parts[-1]} is a table, but no semantic one" if there else f"no semantic table {'.'.join(parts)}"
        raise BindError(
            what,
            code="UQL520",
            help=f"semantic tables: {names}" if names else "CREATE SEMANTIC TABLE name AS SELECT … KEY (id) makes one",
        )
    return definition


def definitions(cursor: duckdb.DuckDBPyConnection) -> list[Definition]:
    """All of the database, in the order of their names."""
    there = Duck(cursor).scalar(
        f"SELECT system.main.count(*) FROM system.main.duckdb_tables() WHERE table_name = '{REGISTRY}' AND schema_name = 'main' "
        "AND database_name = system.main.current_database()"
    )
    if not there:
        return []
    try:
        stated = "stated::VARCHAR" if "stated" in cursor.sql(f"FROM main.{REGISTRY}").columns else "NULL"
        rows = cursor.execute(
            "SELECT schema_name, table_name, definition, key, columns::VARCHAR, groups::VARCHAR, "
            f"{stated}, by_row, model, system.main.epoch(refreshed), calls FROM main.{REGISTRY} ORDER BY ALL"
        ).fetchall()
        database = current_database(cursor).name
        return [replace(_definition(*row), database=database) for row in rows]
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError, duckdb.BinderException) as error:
        raise DataError(
            f"the definitions of semantic tables in main.{REGISTRY} cannot be read",
            code="UQL522",
            help=f"DROP TABLE main.{REGISTRY} forgets them; the tables stay",
        ) from error


def _definition(
    schema: str, name: str, text: str, key: list[str], columns: str, groups: str, stated: str | None, *others: Any
) -> Definition:
    """A row of the registry. `columns`: JSON, [[name, type]]; `groups`: JSON, {question: [labels, descriptions]}; `stated`: JSON."""
    definition = Definition(
        schema,
        name,
        text,
        tuple(key),
        tuple((column, kind) for column, kind in json.loads(columns)),
        {question: (tuple(labels), tuple(about)) for question, (labels, about) in json.loads(groups).items()},
        *others,
    )
    return replace(definition, stated=StatedSet.of(json.loads(stated)) if stated else None)


def keep(cursor: duckdb.DuckDBPyConnection, definition: Definition, *, calls: int) -> None:
    """Writes a definition in the place of the earlier one of its name, as refreshed now.

    Args:
        calls: made by this refresh.
    """
    listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    cursor.execute(f"CREATE TABLE IF NOT EXISTS main.{REGISTRY} ({listed})")
    cursor.execute(f"ALTER TABLE main.{REGISTRY} ADD COLUMN IF NOT EXISTS stated JSON")  # of an earlier version
    values = [
        definition.schema, definition.name, definition.text, list(definition.key), json.dumps(definition.columns),
        json.dumps(definition.groups), definition.by_row, definition.model, definition.calls + calls,
        None if definition.stated is None else json.dumps(definition.stated.numbers()),
    ]  # fmt: skip
    built = cursor.execute(f"SELECT built FROM main.{REGISTRY} WHERE {_SO_CALLED}", values[:2]).fetchall()
    now = datetime.now(UTC).replace(tzinfo=None)
    forget(cursor, definition)
    cursor.execute(
        f"INSERT INTO main.{REGISTRY} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [*values[:8], built[0][0] if built and definition.refreshed_s else now, now, *values[8:]],
    )


def forget(cursor: duckdb.DuckDBPyConnection, definition: Definition) -> None:
    cursor.execute(f"DELETE FROM main.{REGISTRY} WHERE {_SO_CALLED}", [definition.schema, definition.name])


def kind_of(cursor: duckdb.DuckDBPyConnection, schema: str, name: str) -> str | None:
    """What a name is now: semantic, table or view; None: nothing.

    Args:
        schema, name: in any case.
    """
    matches = cursor.execute(
        "SELECT 'table', comment FROM system.main.duckdb_tables() WHERE database_name = system.main.current_database() "
        "AND system.main.lower(schema_name) = system.main.lower(?1) AND system.main.lower(table_name) = system.main.lower(?2) UNION ALL "
        "SELECT 'view', comment FROM system.main.duckdb_views() WHERE database_name = system.main.current_database() "
        "AND system.main.lower(schema_name) = system.main.lower(?1) AND system.main.lower(view_name) = system.main.lower(?2)",
        [schema, name],
    ).fetchall()
    if not matches:
        return None
    kind, comment = matches[0]
    return "semantic" if str(comment or "").startswith((MADE, MADE_ESTIMATED)) else str(kind)


def drop(cursor: duckdb.DuckDBPyConnection, definition: Definition) -> None:
    """Drops the table, where it is still the one that the definition made, and all that is kept of it."""
    if kind_of(cursor, definition.schema, definition.name) == "semantic":
        cursor.execute(f"DROP TABLE {definition.sql}")
    cursor.execute(f"DROP TABLE IF EXISTS {definition.rows_sql}")
    forget(cursor, definition)


# ---------------------------------------------------------------------------------------------------------------- rows
def check_key(duck: Duck, table: str, key: Sequence[str], names: Sequence[str], of: str, *, null: bool = False) -> None:
    """Raises: DataError (UQL521) where a key is NULL, or stands in two rows.

    Args:
        key: the columns in `table`.  names: what the user calls them.  of: what has the rows.
        null: may one be NULL, as the group of rows without a value?
    """
    columns = ", ".join(map(quote, key))
    listed = ", ".join(names)
    counts = duck.arrow(
        f"SELECT {', '.join(f'system.main.count(*) - system.main.count({quote(name)})' for name in key)} FROM {table}"
    )
    missing = [name for name, column in zip(names, counts.columns, strict=True) if column[0].as_py()]
    if missing and not null:
        empty = duck.scalar(
            f"SELECT system.main.count(*) FROM {table} WHERE {' OR '.join(f'{quote(k)} IS NULL' for k in key)}"
        )
        raise DataError(
            f"the key ({listed}) is NULL in {empty:,} row{'s' * (empty > 1)} of {of}",
            code="UQL521",
            help=f"leave them out: WHERE {' AND '.join(f'{name} IS NOT NULL' for name in missing)}",
        )
    twice = duck.arrow(
        f"SELECT {columns}, system.main.count(*) FROM {table} GROUP BY {columns} HAVING system.main.count(*) > 1 LIMIT 1"
    )
    if twice.num_rows:
        *values, times = (column[0].as_py() for column in twice.columns)
        example = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values, strict=True))
        raise DataError(
            f"the key ({listed}) is not unique in {of}: {example} stands in {times:,} rows",
            code="UQL521",
            help="KEY (…) takes the columns that tell every row from the others, as KEY (id, day)",
        )


def typed(duck: Duck, table: pa.Table, types: Sequence[str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The rows as a temporary table in DuckDB's types: its name, and its columns with their types.

    Args:
        types: DuckDB's, of the first columns; "": as Arrow has it.
    """
    from uql.kernels.finish import cast

    all_types = [*types, *[""] * (table.num_columns - len(types))]
    parts = [
        f"{collated(cast(quote(field.name), kind), field)} AS {quote(field.name)}"
        for field, kind in zip(table.schema, all_types, strict=True)
    ]
    temporary, _ = duck.create(f"SELECT {', '.join(parts)} FROM __rows", {"__rows": table})
    described = duck.arrow(f"DESCRIBE {quote(temporary)}")
    columns = zip(described.column(0).to_pylist(), described.column(1).to_pylist(), strict=True)
    return temporary, tuple((str(name), str(kind)) for name, kind in columns)


def build(duck: Duck, definition: Definition, rows: str) -> Changes:
    """Makes the table from the rows of a temporary one.

    Args:
        rows: name of the temporary table.
    Returns: all rows are new.
    """
    duck.connection.execute(f"CREATE TABLE {definition.sql} AS SELECT * FROM {quote(rows)}")
    n = int(duck.scalar(f"SELECT system.main.count(*) FROM {definition.sql}"))
    return Changes(n, 0, 0, n)


def merge(duck: Duck, definition: Definition, rows: str, scope: str | None = None) -> Changes:
    """Brings the new rows into the table: those of their keys that differ are replaced, those that are missing go.

    Args:
        rows: a temporary table of the new rows.
        scope: a temporary table of the keys that were looked at; None: all.
    """
    target, key = definition.sql, definition.key
    looked = f"{target} AS t" + (
        f" SEMI JOIN {quote(scope)} AS s ON {_same('t', 's', key)}" if scope is not None else ""
    )
    listed = (", ".join(f"{side}.{quote(name)}" for name, _ in definition.columns) for side in "tr")
    left, right = (f"system.main.row({columns})" for columns in listed)
    both, keys = _same("t", "r", key), ", ".join(f"t.{quote(k)}" for k in key)
    gone, n_gone = duck.create(
        f"SELECT {keys} FROM (SELECT t.* FROM {looked}) AS t ANTI JOIN {quote(rows)} AS r ON {both}"
    )
    differ = f"{left} IS DISTINCT FROM {right} OR {left}::VARCHAR IS DISTINCT FROM {right}::VARCHAR"
    # a change of case is one, whatever the collation
    changed, n_changed = duck.create(
        f"SELECT {keys} FROM {target} AS t JOIN {quote(rows)} AS r ON {both} WHERE {differ}"
    )
    added, n_added = duck.create(f"SELECT r.* FROM {quote(rows)} AS r ANTI JOIN {target} AS t ON {both}")
    run = duck.connection.execute
    replaced, _ = duck.create(f"SELECT r.* FROM {quote(rows)} AS r SEMI JOIN {quote(changed)} AS t ON {both}")
    for outdated in (gone, changed):
        run(f"DELETE FROM {target} AS t WHERE EXISTS (SELECT 1 FROM {quote(outdated)} AS r WHERE {both})")
    for new in (replaced, added):
        run(f"INSERT INTO {target} BY NAME SELECT * FROM {quote(new)}")
    return Changes(n_added, n_changed, n_gone, int(duck.scalar(f"SELECT system.main.count(*) FROM {target}")))


def _same(one: str, two: str, key: Sequence[str]) -> str:
    """SQL: the rows of two aliases have the same key."""
    return " AND ".join(f"{one}.{quote(k)} IS NOT DISTINCT FROM {two}.{quote(k)}" for k in key)


def check_columns(duck: Duck, definition: Definition) -> None:
    """Raises: DataError (UQL522) where the table has lost a column."""
    now = {name.lower() for name in duck.arrow(f"SELECT * FROM {definition.sql} LIMIT 0").column_names}
    lost = [name for name, _ in definition.columns if name.lower() not in now]
    if lost:
        raise DataError(
            f"{definition.name} has no column {', '.join(lost)} any more; its definition is still kept",
            code="UQL522",
            help=f"give it back its name (ALTER TABLE), or CREATE OR REPLACE SEMANTIC TABLE {definition.name} AS … creates it again",
        )


def say(duck: Duck, definition: Definition, exact: bool) -> None:
    """The table's comment, by which it is known, and by which statements that read an estimate say so.

    What it says of estimates that other statements put there stays.

    Args:
        exact: none of its values is an estimate.
    """
    before = duck.scalar(
        "SELECT comment FROM system.main.duckdb_tables() WHERE database_name = system.main.current_database()"
        f" AND schema_name = {literal(definition.schema)}"
        f" AND table_name = {literal(definition.name)}"
    )
    more = [line for line in str(before or "").splitlines()[1:] if line.startswith(ESTIMATED)]
    headline = (MADE if exact else MADE_ESTIMATED) + " ".join(definition.text.split())[:200]
    duck.connection.execute(f"COMMENT ON TABLE {definition.sql} IS {literal(chr(10).join([headline, *more]))}")


# ---------------------------------------------------------------------------------------------------- the source's rows
def digest(columns: Sequence[str]) -> str:
    """SQL of a digest over columns."""
    parts = [f"coalesce(system.main.md5({c}::VARCHAR), '-')" for c in columns]
    return f"system.main.md5(system.main.concat({', '.join(parts)}))" if parts else "''"


def know(
    duck: Duck, definition: Definition, candidates: str, scope: str | None, flagged: Mapping[str, pa.Table]
) -> None:
    """Notes the candidates of a source, and which of them are rows of the table.

    Args:
        candidates: a temporary table of key and `__digest` of every candidate.
        scope: of the keys that were looked at, gone ones among them; None: all are new.
        flagged: by OPEN the keys of the rows without an answer, which are looked at again, and by BY_SMALL of those that a small model
            answered.
    """
    run, key = duck.connection.execute, definition.key
    there = f"EXISTS (FROM {definition.sql} AS t WHERE {_same('r', 't', key)}) AS __there"
    rows = f"SELECT *, {there} FROM {quote(candidates)} AS r"
    if scope is None:
        run(f"CREATE OR REPLACE TABLE {definition.rows_sql} AS {rows}")
    for flag in ("__by_small", "__there"):  # of an earlier version, too
        run(f"ALTER TABLE {definition.rows_sql} ADD COLUMN IF NOT EXISTS {flag} BOOLEAN")
    if scope is not None:
        looked = f"(SELECT 1 FROM {quote(scope)} AS s WHERE {_same('r', 's', key)})"
        run(f"DELETE FROM {definition.rows_sql} AS r WHERE EXISTS {looked}")
        run(f"INSERT INTO {definition.rows_sql} BY NAME {rows} WHERE EXISTS {looked}")
    for flag, change in ((OPEN, "__digest = NULL"), (BY_SMALL, "__by_small = TRUE")):
        if flag in flagged:
            same = f"EXISTS (SELECT 1 FROM __flagged AS s WHERE {_same('r', 's', key)})"
            duck.execute(f"UPDATE {definition.rows_sql} AS r SET {change} WHERE {same}", {"__flagged": flagged[flag]})


def scope_of(duck: Duck, definition: Definition, candidates: str, answered: pa.Table | None) -> tuple[str, int, int]:
    """The keys to be looked at: a temporary table, how many of them are candidates, and how many are gone. Rows of the table that
    somebody else deleted are looked at again.

    Args:
        candidates: name of the temporary table of keys and digests as they are now.
        answered: keys of rows that people answered about since the last refresh.
    """
    same = _same("s", "r", definition.key)
    keys, old = (", ".join(f"{side}.{quote(k)}" for k in definition.key) for side in "sr")
    tables = {} if answered is None else {"__answered": answered}
    also = "" if answered is None else f" OR EXISTS (FROM __answered AS r WHERE {same})"
    known = f"(FROM {definition.rows_sql} UNION ALL BY NAME SELECT FALSE AS __there WHERE FALSE)"  # an earlier version has no flag
    kept = f"(r.__there IS NOT TRUE OR EXISTS (FROM {definition.sql} AS t WHERE {_same('t', 'r', definition.key)}))"
    scope, n = duck.create(
        f"SELECT {keys}, FALSE AS __gone FROM {quote(candidates)} AS s "
        f"WHERE NOT EXISTS (FROM {known} AS r WHERE {same} AND r.__digest = s.__digest AND {kept}){also} UNION ALL "
        f"SELECT {old}, TRUE FROM {definition.rows_sql} AS r ANTI JOIN {quote(candidates)} AS s ON {same}",
        tables,
    )
    gone = int(duck.scalar(f"SELECT system.main.count(*) FROM {quote(scope)} WHERE __gone"))
    return scope, n - gone, gone


def _listed(definition: Definition, here: str) -> str:
    """The name of a table, with its schema where that is not the one in which names are found."""
    return definition.name if definition.schema == here else f"{definition.schema}.{definition.name}"


def listing(cursor: duckdb.DuckDBPyConnection) -> pa.Table:
    """What `FROM uql_tables()` shows: a row for each semantic table."""
    import pyarrow as pa

    here = str(Duck(cursor).scalar("SELECT system.main.current_schema()"))
    rows = []
    for d in definitions(cursor):
        there = kind_of(cursor, d.schema, d.name) == "semantic"
        n = int(Duck(cursor).scalar(f"SELECT system.main.count(*) FROM {d.sql}")) if there else None
        rows.append((_listed(d, here), ", ".join(d.key), n, int(d.refreshed_s * 1e6), d.model, d.calls, d.text))
    names = ("name", "key", "rows", "refreshed", "model", "calls", "definition")
    types = {"rows": pa.int64(), "refreshed": pa.timestamp("us", tz="UTC"), "calls": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.string())) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


def with_columns(definition: Definition, columns: tuple[tuple[str, str], ...]) -> Definition:
    """The definition with the columns that its first build had. Raises: DataError (UQL522) where they are others now."""
    if not definition.columns:
        return replace(definition, columns=columns)
    if definition.columns != columns:
        was, now = dict(definition.columns), dict(columns)
        parts = [f"{n} is no longer there" for n in was if n not in now]
        parts += [f"{n} is new" for n in now if n not in was]
        parts += [f"{n} is {now[n]} now and was {was[n]}" for n in was if n in now and was[n] != now[n]]
        raise DataError(
            f"the columns of {definition.name} would change: {'; '.join(parts) or 'they stand in another order'}",
            code="UQL522",
            help=f"CREATE OR REPLACE SEMANTIC TABLE {definition.name} AS … creates it again",
        )
    return definition
