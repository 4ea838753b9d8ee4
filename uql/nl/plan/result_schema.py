"""What a statement would produce, known before anything runs: names and types, bound against the columns of its inputs.

Statements are bound by the engine's own binder over empty tables of a DuckDB in memory, so that what binds here binds there. What a
model wrote is bound before it is run, so it is guarded here too: one harmless query, in a DuckDB of a child process, without files
and network, with limits of time and memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb

from uql.base.duckdb_connections import private_cursor
from uql.base.errors import BindError, GuardError
from uql.base.names import free_names
from uql.base.schema import Field, Modality, Table
from uql.base.settings import Settings
from uql.compiler.binder import bind
from uql.compiler.parser import parse_script
from uql.compiler.sql import quote
from uql.compiler.syntax import Column, Select, Union
from uql.nl.guard.duckdb_process import as_connection, child_duckdb
from uql.nl.guard.guard import MEMORY, check_sql, check_uql
from uql.sources.catalog import Catalog

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.nl.schema.scope import Source

_NUMBERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT DOUBLE FLOAT DECIMAL"
NUMBERS = tuple(_NUMBERS.split())  # how the types of numbers begin
BOUND_S = 10.0  # that DuckDB may take to bind one statement
KEPT = 256  # statements whose columns are known again


class Shapes:
    """Tables as names, columns and types alone."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._tables: dict[str, Table] = {}
        for name, source in sources.items():
            self.add(name, source.fields, rows=source.row_count)

    def add(self, name: str, fields: Sequence[Field], *, rows: int = 1_000) -> None:
        """A table that a statement may name from now on; another of that name is replaced.

        Args:
            fields: its columns; equal names are set apart.
            rows: about, for the plan.
        """
        quoted = quote(name)
        own = free_names(f.name for f in fields)
        fields = [replace(f, name=own_name) for f, own_name in zip(fields, own, strict=True)]
        self._tables[name.lower()] = Table(name, quoted, tuple(fields), rows)

    @property
    def names(self) -> list[str]:
        return [table.name for table in self._tables.values()]

    def describe(self, sql: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns of a statement. Raises duckdb.Error."""
        return _described(sql, tuple(self._tables.values()))

    # ----------------------------------------------------------------------------------------------------- the statements
    def of_uql(self, text: str, settings: Settings, *, to: Collection[str] = ()) -> tuple[Field, ...]:
        """The columns of a UQL query, or of DuckDB's SQL in its place.

        Args:
            settings: under which it is bound.
            to: names that its TO may have.
        Raises: UQLSyntaxError, BindError, GuardError.
        """
        text = check_uql(text, self.names, to=to)
        query = parse_script(text)[0][0]
        return self.of_sql(text) if isinstance(query, str) else _of_query(text, tuple(self._tables.values()), settings)

    def of_sql(self, sql: str) -> tuple[Field, ...]:
        """The columns of a concrete SELECT, as DuckDB describes it. Raises GuardError, also with DuckDB's complaint."""
        checked = check_sql(sql, self.names)
        try:
            described = self.describe(checked)
        except duckdb.Error as error:
            raise GuardError(f"DuckDB: {str(error).strip().splitlines()[0]}") from error
        return tuple(Field(name, type) for name, type in described)


@contextmanager
def _bound(tables: Sequence[Table]) -> Iterator[Catalog]:
    """The tables in a DuckDB of a child, for one statement."""
    with child_duckdb(MEMORY, BOUND_S) as child:
        columns = [", ".join(f"{quote(f.name)} {f.type or 'VARCHAR'}" for f in table.fields) for table in tables]
        created = [f"CREATE TABLE {t.sql} ({c or 'nothing INTEGER'});" for t, c in zip(tables, columns, strict=True)]
        if created:
            child.execute("".join(created))
        catalog = Catalog(as_connection(child), own=True)
        catalog.planned = {table.name.lower(): table for table in tables}
        yield catalog


# A node of a plan is bound where it is read, where it is checked, and where it runs: each time over the same columns.
@lru_cache(maxsize=KEPT)
def _described(sql: str, tables: tuple[Table, ...]) -> tuple[tuple[str, str], ...]:
    with _bound(tables) as catalog:
        return tuple(catalog.describe(sql))


@lru_cache(maxsize=KEPT)
def _of_query(text: str, tables: tuple[Table, ...], settings: Settings) -> tuple[Field, ...]:
    """The columns of a checked UQL query."""
    query = parse_script(text)[0][0]
    if not isinstance(query, Select | Union):
        raise BindError("this statement is not a query", code="UQL212").at(text)
    with _bound(tables) as catalog:
        bound = bind(query, catalog, text=text, settings=settings)
    unstructured = {f.name: f for table in bound.tables for f in table.fields if f.is_unstructured}
    fields = []
    for item in bound.query.items:
        of = unstructured.get(item.expr.name) if isinstance(item.expr, Column) else None
        same = of is not None and of.type == item.type
        fields.append(Field(item.name, item.type, of.modality if of and same else Modality.STRUCTURED))
    return tuple(fields)


def fields_of(table: pa.Table, like: Mapping[str, Field]) -> tuple[Field, ...]:
    """The columns of rows with DuckDB's types; those of a name and type in `like` hold what they hold there."""
    with private_cursor() as cursor:
        cursor.register("given", table.slice(0, 0))
        described = cursor.execute("DESCRIBE SELECT * FROM given").fetchall()
    columns = []
    for row in described:
        name, kind = str(row[0]), str(row[1])
        same = like.get(name)
        columns.append(same if same is not None and same.type == kind else Field(name, kind))
    return tuple(columns)
