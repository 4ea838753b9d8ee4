"""What a statement would produce, known before anything runs: names and types, bound against the columns of its inputs.

Statements are bound by the engine's own binder over empty tables of a DuckDB in memory, so that what binds here binds there. What a
model wrote is bound before it is run, so it is guarded here too: one harmless query, in a DuckDB without files and network.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb

from uql.catalog import Catalog
from uql.compiler.binder import bind
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Column, Select, Union
from uql.errors import BindError, GuardError, UnknownTableError
from uql.nl.guard import MEMORY, check_sql, check_uql, lock
from uql.schema import Field, Modality, Table
from uql.settings import Settings

if TYPE_CHECKING:
    from uql.nl.context import Source


class Shapes:
    """Tables as names, columns and types alone; a catalog for the binder."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._duck = duckdb.connect(":memory:")
        lock(self._duck, MEMORY)
        self._catalog = Catalog(self._duck)
        self._tables: dict[str, Table] = {}
        for name, source in sources.items():
            self.add(name, source.fields, rows=source.row_count)

    def __enter__(self) -> Shapes:
        return self

    def __exit__(self, *_: object) -> None:
        self._catalog.cursor.close()
        self._duck.close()

    def add(self, name: str, fields: Sequence[Field], *, rows: int = 1_000) -> None:
        """A table that a statement may name from now on; another of that name is replaced."""
        quoted = _quote(name)
        own = apart_names([f.name for f in fields])
        fields = [replace(f, name=given) for f, given in zip(fields, own, strict=True)]
        columns = ", ".join(f"{_quote(f.name)} {f.type or 'VARCHAR'}" for f in fields) or "nothing INTEGER"
        self._duck.execute(f"CREATE OR REPLACE TABLE {quoted} ({columns})")
        self._tables[name.lower()] = Table(name, quoted, tuple(fields), rows)

    @property
    def names(self) -> list[str]:
        return [table.name for table in self._tables.values()]

    def fields(self, name: str) -> tuple[Field, ...]:
        """The columns of a table. Raises UnknownTableError."""
        return self.table((name,)).fields

    # ----------------------------------------------------------------------------------------- what the binder asks for
    @property
    def aggregates(self) -> frozenset[str]:
        return self._catalog.aggregates

    def table(self, parts: tuple[str, ...], *, frames: Mapping[str, object] | None = None, file: bool = False) -> Table:
        found = None if file or len(parts) != 1 else self._tables.get(parts[0].lower())
        if found is None:
            raise UnknownTableError(f"no table {'.'.join(parts)}", help=f"tables: {', '.join(self.names)}")
        return found

    def function_table(self, name: str, sql: str) -> Table:
        raise UnknownTableError(f"{name} is no table", help=f"tables: {', '.join(self.names)}")

    def describe(self, sql: str) -> list[tuple[str, str]]:
        return self._catalog.describe(sql)

    def value(self, sql: str) -> object:
        return self._catalog.value(sql)

    # ----------------------------------------------------------------------------------------------------- the statements
    def of_uql(self, text: str, settings: Settings, *, to: Collection[str] = ()) -> tuple[Field, ...]:
        """The columns of a UQL query, or of DuckDB's SQL in its place; `to` are names that its TO may have.

        Raises: UQLSyntaxError, BindError, GuardError.
        """
        text = check_uql(text, self.names, to=to)
        query = parse_script(text)[0][0]
        if isinstance(query, str):
            return self.of_sql(text)
        if not isinstance(query, Select | Union):
            raise BindError("this statement is not a query", code="UQL212").at(text)
        bound = bind(query, self, text=text, settings=settings)
        shown = {f.name: f for table in bound.tables for f in table.fields if f.is_unstructured}
        fields = []
        for item in bound.query.items:
            of = shown.get(item.expr.name) if isinstance(item.expr, Column) else None
            same = of is not None and of.type == item.type
            fields.append(Field(item.name, item.type, of.modality if of and same else Modality.STRUCTURED))
        return tuple(fields)

    def of_sql(self, sql: str) -> tuple[Field, ...]:
        """The columns of a concrete SELECT, as DuckDB describes it. Raises GuardError, also with DuckDB's complaint."""
        checked = check_sql(sql, self.names)
        try:
            described = self._duck.execute(f"DESCRIBE {checked}").fetchall()
        except duckdb.Error as error:
            raise GuardError(f"DuckDB: {str(error).strip().splitlines()[0]}") from error
        return tuple(Field(str(row[0]), str(row[1])) for row in described)


def apart_names(names: Sequence[str]) -> list[str]:
    """The names of columns, each of its own: a result may have two of one name, a table may not.

    >>> apart_names(["id", "name", "ID"])
    ['id', 'name', 'ID_2']
    """
    made: list[str] = []
    for name in names:
        own, n = name, len(made)
        while own.lower() in map(str.lower, made):
            own, n = f"{name}_{n}", n + 1
        made.append(own)
    return made


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
