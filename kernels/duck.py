"""DuckDB as kernels use it: SQL in, Arrow out, temporary tables with names of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.arrow_values import arrow_of
from uql.base.duckdb_functions import AggregateFunctions
from uql.base.sql_text import quote as quote
from uql.compiler.bound import Bound
from uql.compiler.sql import expression, flat_column, flat_virtual, sub_query_sql
from uql.compiler.syntax import Column, Expr, Query
from uql.compiler.walk import with_children

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.cluster.cluster import Cluster
    from uql.sources.media import Media

_names = count()  # of temporary tables, over all connections of the process


_LOST = re.compile(r"\b(TUPLE|ENUM|U?HUGEINT|UUID|BIT|JSON|TIMETZ|TIME WITH TIME ZONE)\b")


_COLLATION = b"uql.collation"  # of a column, in the schema of an Arrow table


def typed_columns(table: pa.Table, types: Sequence[str]) -> str:
    """What selects Arrow's columns in DuckDB's types: those that Arrow has no name for (ENUM, UUID, TUPLE …) are cast, or collated."""
    all_types = [*types, *[""] * (table.num_columns - len(types))]
    parts = [
        f"CAST({quote(field.name)} AS {type}) AS {quote(field.name)}"
        if _LOST.search(type)
        else as_named(collated(quote(field.name), field), field.name)
        for field, type in zip(table.schema, all_types, strict=True)
    ]
    return ", ".join(parts)


def as_named(value: str, name: str) -> str:
    return value if value == quote(name) else f"{value} AS {quote(name)}"


def collated(value: str, field: pa.Field) -> str:
    """SQL of a value with the collations that a column of `Duck.output` has, also those in its lists, structs and maps."""
    kept = (field.metadata or {}).get(_COLLATION)
    if not kept:
        return value
    like = _value_of(json.loads(kept))
    # CASE has the type of both of its values, with its collations
    return f"{value}{like[2:]}" if like.startswith("'' ") else f"CASE WHEN TRUE THEN {value} ELSE {like} END"


def _value_of(type: Mapping[str, Any]) -> str:
    """SQL of a value that has the collations of a type, as DuckDB's plans write it; "NULL" where it has none."""
    of = type["type_info"] or {}
    if name := of.get("collation"):
        return f"'' COLLATE {'.'.join(map(quote, name.split('.')))}"
    parts = {part["first"]: _value_of(part["second"]) for part in of.get("child_types", ())}
    if type["id"] == "STRUCT" and all(parts) and {*parts.values()} != {"NULL"}:
        return f"system.main.struct_pack({', '.join(f'{quote(name)} := {part}' for name, part in parts.items())})"
    inside = _value_of(of["child_type"]) if type["id"] in ("LIST", "MAP") else "NULL"
    if inside == "NULL":
        return inside
    return f"[{inside}]" if type["id"] == "LIST" else f"system.main.map_from_entries([{inside}])"


def content_sql(rows: str) -> str:
    """SQL of a hash, in [0, 2⁶³), of rows and their places: NULL of none.

    A sum, since in bit_xor equal rows cancel each other, and the places the order.

    Args:
        rows: a query with the columns r, a row, and n, its place.
    """
    return f"SELECT CAST(system.main.sum(system.main.hash(r, n)) % {2**63} AS BIGINT) FROM ({rows})"


def content_of(sql: str) -> str:
    """The same of the rows of any query."""
    return content_sql(f"SELECT r, system.main.row_number() OVER () - 1 AS n FROM ({sql}) AS r")


_ROWID = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|((?:\b\w+\.)?\browid\b)""")  # strings and names are passed over


class Duck:
    """A connection of DuckDB's, the temporary tables that one run makes on it, and what reads the files that its rows name.

    Args:
        connection: of the run.
        media: reads files; None: none are named.
        aggregates: gives the names of its aggregate functions, where they are known already.
        cluster: of shards that hold tables of the session; None: there is none.
        check: refuses SQL that the session may not run; None: it may run all.
        users_orders: while it is open, ORDER BY without a direction means what it means to the user, as in their views.
        collated: has a column that it may read a collation?
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        media: Media | None = None,
        aggregates: Callable[[], Container[str]] | None = None,
        cluster: Cluster | None = None,
        check: Callable[[str], None] | None = None,
        users_orders: Callable[[], AbstractContextManager[None]] = nullcontext,
        collated: bool = False,
    ) -> None:
        self.connection, self.media, self._aggregates = connection, media, aggregates
        self.cluster, self._check, self.users_orders = cluster, check, users_orders
        self.collated = collated
        self.temporary: list[str] = []
        self.views: set[str] = set()
        self._first: int | None = None  # the rowid of a table's first row: not 0 inside a transaction

    def arrow(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The rows of a query; `tables` are Arrow tables that it may name."""
        sql = self._sql(sql)
        with self._registered(tables or {}):
            return arrow_of(self._relation(sql))

    def _relation(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A query as DuckDB's relation: of a statement that is parsed already it takes two thirds of the time, of a text it is a script."""
        statements = self.connection.extract_statements(sql)
        return self.connection.sql(statements[0] if len(statements) == 1 else sql)

    def output(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """As `arrow`; the schema says the collations of the columns, for `typed_columns`: queries around this one compare by them."""
        table = self.arrow(sql, tables)
        if not self.collated and "COLLATE" not in sql:
            return table
        shape, _ = self.create(f"SELECT * FROM ({sql}) LIMIT 0", tables)
        described = json.loads(self.scalar(f"SELECT system.main.json_serialize_plan('FROM temp.{shape}')"))
        types = described["plans"][0]["children"][0]["returned_types"]
        for place, type in enumerate(types[: table.num_columns]):
            if _value_of(type) != "NULL":
                field = table.schema.field(place).with_metadata({_COLLATION: json.dumps(type)})
                table = table.set_column(place, field, table.column(place))
        return table

    def execute(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> list[tuple[Any, ...]]:
        """Runs a statement, and gives the rows that it returns: of one that writes rows their count."""
        sql = self._sql(sql)
        with self._registered(tables or {}):
            return self.connection.execute(sql).fetchall()

    @contextmanager
    def _registered(self, tables: Mapping[str, pa.Table]) -> Iterator[None]:
        """Arrow tables under their names, as long as a statement reads them."""
        for name, table in tables.items():
            self.connection.register(name, table)
        try:
            yield
        finally:
            with suppress(duckdb.Error):  # in a transaction that an error has ended they go with it
                for name in tables:
                    self.connection.unregister(name)

    def scalar(self, sql: str) -> Any:
        # to the end: an unread row would hold the connection
        rows = self.connection.execute(self._sql(sql)).fetchall()
        return rows[0][0] if rows else None

    def types(self, sql: str) -> list[str]:
        """The types of the columns of a query, as DuckDB writes them."""
        return [str(type) for type in self.connection.sql(self._sql(sql)).types]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""
        return list(self.connection.table(table).columns)

    def create(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> tuple[str, int]:
        """A temporary table of the rows of a query: its name and how many they are."""
        name = f"__uql_{next(_names)}"
        self.collated = self.collated or "COLLATE" in sql
        rows = int(self.execute(f"CREATE TEMP TABLE {quote(name)} AS {sql}", tables)[0][0])
        self.temporary.append(name)
        if rows and self._first is None:
            self._first = int(self.scalar(f"SELECT rowid FROM {quote(name)} LIMIT 1"))
        return name, rows

    def view(self, name: str, sql: str) -> None:
        """A temporary view of the rows of a query, in place of one so called."""
        self.execute(f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS {sql}")
        self.views.add(name)

    def _sql(self, sql: str) -> str:
        """The text, once the session may run it, with every rowid counted from 0: rows that a transaction has not committed
        are numbered from 2^55 on."""
        if self._check is not None:
            self._check(sql)
        if not self._first:
            return sql
        return _ROWID.sub(lambda found: f"({found[0]} - {self._first})" if found[1] else found[0], sql)

    def close(self) -> None:
        """Drops what was made."""
        for name in self.temporary:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{quote(name)}")
        for name in self.views:
            self.connection.execute(f"DROP VIEW IF EXISTS temp.{quote(name)}")
        self.temporary.clear()
        self.views.clear()

    # ------------------------------------------------------------------------------------------------- expressions
    def expression(self, expr: Expr, replaced: Mapping[Expr, str] | None = None) -> str:
        """SQL of a bound expression over a materialised relation: columns are "alias.name", answers are __vN.

        `replaced` gives SQL names for whole sub-expressions, such as aggregates that were estimated.
        """
        if isinstance(expr, Column) and not replaced:
            return quote(expr.label)
        swapped = _swap(expr, replaced) if replaced else expr
        return expression(swapped, flat_column, flat_virtual, sub_query)

    @cached_property
    def orders_differ(self) -> bool:
        """Does ORDER BY without a direction mean something else to the user?"""
        orders = (
            "SELECT (system.main.current_setting('default_order'), system.main.current_setting('default_null_order'))"
        )
        with self.users_orders():
            users = self.scalar(orders)
        return bool(users != self.scalar(orders))

    @cached_property
    def aggregates(self) -> Container[str]:
        """The names of DuckDB's aggregate functions, and of grouping, which has a value for each group too."""
        return AggregateFunctions(self.connection) if self._aggregates is None else self._aggregates()


def sub_query(query: Query) -> str:
    """A concrete sub-query in an expression over a materialised relation: outer columns are flat, its own are not."""
    assert isinstance(query, Bound)
    return sub_query_sql(query.query, flat_column)


def _swap(expr: Expr, replaced: Mapping[Expr, str]) -> Expr:
    """The expression with sub-expressions replaced by columns of an inner relation, outermost first."""
    if expr in replaced:
        return Column("", replaced[expr])
    swapped: Expr = with_children(expr, lambda below: below if isinstance(below, Query) else _swap(below, replaced))
    return swapped
