"""The workspace of one question: a DuckDB of its own, in memory, with the tables that what a model wrote may read.

It holds copies of the tables that the plan names, brought over as Arrow when first named, with their comments, and the results
of nodes. It has no files, no network, no extensions, a locked configuration and a memory limit. A statement that a model wrote runs
over copies of the tables that it names, in a DuckDB of a child process. The user's database is only read, and never by such text.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from uql.base.duckdb_connections import lock
from uql.base.errors import DataError, UnknownTableError
from uql.base.names import free_names
from uql.base.settings import Settings
from uql.compiler.parser import parse_script, tree_of
from uql.compiler.sql import literal, quote
from uql.compiler.syntax import Select, Union
from uql.engine.outcome import Outcome
from uql.llm.run_record import Cost
from uql.nl.guard.duckdb_process import as_connection, child_duckdb
from uql.nl.guard.gate_bridge import apart
from uql.nl.guard.guard import BUDGET, check_uql, sql_runner, tables_of
from uql.nl.plan.result_schema import fields_of
from uql.session.execute_statement import outcome
from uql.session.script import run_script
from uql.session.session import Session
from uql.sources.catalog import Catalog

if TYPE_CHECKING:
    from uql.base.schema import Field
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider
    from uql.nl.schema.scope import Source

MEMORY = 2_048  # MiB
BUSY_S = 20.0  # that DuckDB may work for one statement, waiting for models not counted
MOST_ROWS = 1_000_000  # of a result that is kept
MOST_CHARS = 4_000_000  # of a text in one


class Workspace:
    """Made for one question by `Workspace.open`; closed with it.

    Args:
        read: gives the rows of a source of the user's database, by its origin.
        settings: for the statements that run here.
    """

    def __init__(self, read: Callable[[str], pa.Table], sources: Mapping[str, Source], settings: Settings) -> None:
        self._read, self._settings = read, settings
        self._sources = {name.lower(): source for name, source in sources.items()}
        self._duck = duckdb.connect(":memory:")
        lock(self._duck, f"{MEMORY}MiB")
        self.model: Provider | None = None  # that reads rows: its price is that of statements
        self._loaded: dict[str, str] = {}  # of tables that are here: lower-case name → name
        self._comments: dict[str, list[str]] = {}  # of these: the statements that made their comments
        self._using = threading.RLock()  # of what is loaded, and of the connection that loads

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self._duck.close()

    # ------------------------------------------------------------------------------------------------------ statements
    async def uql(
        self,
        text: str,
        gate: Gate,
        *,
        tables: Collection[str] | None = None,
        to: str | None = None,
        budget: int = BUDGET,
    ) -> Outcome:
        """The outcome of one UQL query, checked by the guard first. Raises as `AskContext.uql`.

        Args:
            gate: that its calls go through.
            tables: that it may name; None: all.
            to: keeps its rows under this name.
            budget: calls at most.
        """
        allowed = self.names if tables is None else list(tables)
        checked = check_uql(text, allowed, budget=budget, to=[to] if to else ())
        if isinstance(parse_script(checked)[0][0], str):  # DuckDB's own SQL, without a text
            table = await self.sql(checked, tables=allowed, to=to)
            return Outcome(table, [f.type for f in fields_of(table, {})], {}, [], Cost())
        table_names = tables_of(checked, allowed)
        outcome = await apart(lambda bridge: self._outcome(checked, table_names, bridge), gate)
        if to is not None:
            await asyncio.to_thread(self.put, to, outcome.bounded())
        return outcome

    async def _outcome(self, checked: str, table_names: Collection[str], gate: Gate) -> Outcome:
        """One checked query over the tables that it names, in the loop of the thread that runs it."""
        with self._confined(table_names) as session:
            return await outcome(session, checked, gate)

    def quote(self, text: str, tables: Collection[str]) -> tuple[float, float, float | None]:
        """The calls of a UQL query over these sources, expected and at most, and the USD expected (None: not known).

        Asks no model. Raises as `uql`.
        """
        checked = check_uql(text, tables)
        with self._confined(tables_of(checked, tables)) as session:
            estimate = run_script(session, checked, {}, {}).quote()
        return estimate.calls.expected, estimate.calls.high, estimate.usd.expected if estimate.usd is not None else None

    async def sql(self, text: str, *, tables: Collection[str] | None = None, to: str | None = None) -> pa.Table:
        """The rows of one concrete SELECT, in a thread; of two columns of one name the second is called otherwise.

        Args:
            tables: that it may name; None: all.
            to: keeps the rows under this name.
        Raises: GuardError for anything but one SELECT of those tables.
        """
        with self.runner(tables) as run:
            rows = await asyncio.to_thread(run, text)
        rows = rows.rename_columns(free_names(rows.column_names))
        if to is not None:
            self.put(to, rows)
        return rows

    def runner(self, tables: Collection[str] | None = None) -> AbstractContextManager[Callable[[str], pa.Table]]:
        """A function that gives the rows of a SELECT of those tables; as `guard.sql_runner`."""
        return sql_runner(self.names if tables is None else list(tables), self.table)

    # ---------------------------------------------------------------------------------------------------------- tables
    @property
    def names(self) -> list[str]:
        """Sources and kept results."""
        return [
            *(s.name for s in self._sources.values()),
            *(n for k, n in self._loaded.items() if k not in self._sources),
        ]

    def has(self, name: str) -> bool:
        return name.lower() in self._loaded or name.lower() in self._sources

    def load(self, names: Collection[str]) -> None:
        """Brings sources over, each once."""
        with self._using:
            for name in names:
                source = self._sources.get(name.lower())
                if source is None or name.lower() in self._loaded:
                    continue
                self._create(source.name, self._read(source.origin))
                comment = [f"COMMENT ON TABLE {quote(source.name)} IS {literal(source.description)}"]
                comment += [
                    f"COMMENT ON COLUMN {quote(source.name)}.{quote(f.name)} IS {literal(f.description)}"
                    for f in source.fields
                    if f.description
                ]
                self._comment(source.name, comment)

    def put(self, name: str, table: pa.Table) -> None:
        """Keeps rows under a name; a kept result of that name is replaced. Raises DataError (UQL505)."""
        if name.lower() in self._sources:
            raise DataError(f"{name} is a table of the database", code="UQL505", help="choose another name")
        if table.num_rows > MOST_ROWS:
            raise DataError(f"{name} has {table.num_rows:,} rows; at most {MOST_ROWS:,} are kept", code="UQL505")
        if longest_text(table) > MOST_CHARS:
            raise DataError(
                f"{name} holds a text longer than {MOST_CHARS:,} characters",
                code="UQL505",
                help="shorten it: left(…, 1000)",
            )
        self._create(name, table)

    def hide(self, name: str, columns: Collection[str]) -> None:
        """Says of columns of a kept result that they are private, so that no model is shown them."""
        with self._using:
            self._comment(name, [f"COMMENT ON COLUMN {quote(name)}.{quote(c)} IS 'private'" for c in columns])

    def drop(self, names: Collection[str]) -> None:
        """Forgets results of nodes."""
        for name in names:
            if name.lower() in self._loaded and name.lower() not in self._sources:
                with self._cursor() as cursor:
                    cursor.execute(f"DROP TABLE IF EXISTS {quote(name)}")
                del self._loaded[name.lower()]

    def table(self, name: str, *, columns: Sequence[str] | None = None, limit: int | None = None) -> pa.Table:
        """The rows of a source or a kept result. Raises UnknownTableError (UQL201).

        Args:
            name: of the source or result.
            columns: None: all.
            limit: rows at most; None: all.
        """
        self.load([name])
        if name.lower() not in self._loaded:
            raise UnknownTableError(f"no table {name}", help=f"tables: {', '.join(self.names)}")
        select_list = ", ".join(map(quote, columns)) if columns is not None else "*"
        most = "" if limit is None else f" LIMIT {int(limit)}"
        with self._cursor() as cursor:
            return cursor.sql(f"SELECT {select_list} FROM {quote(name)}{most}").to_arrow_table()

    def fields(self, name: str) -> tuple[Field, ...]:
        """The columns of a source or a kept result. Raises UnknownTableError."""
        source = self._sources.get(name.lower())
        if source is not None:
            return source.fields
        with self._cursor() as cursor:
            return Catalog(cursor, own=True).table((name,)).fields

    def rows(self, name: str) -> int:
        """How many rows a kept result or a source has."""
        if name.lower() not in self._loaded:
            return self._sources[name.lower()].row_count
        with self._cursor() as cursor:  # all rows: what is left keeps a transaction open
            counts = cursor.execute(f"SELECT system.main.count(*) FROM {quote(name)}").fetchall()
        return int(counts[0][0])

    # -------------------------------------------------------------------------------------------------------- internals
    def _create(self, name: str, table: pa.Table) -> None:
        with self._cursor() as cursor:
            try:
                cursor.register("__given", table.rename_columns(free_names(table.column_names)))
                cursor.execute(f"CREATE OR REPLACE TABLE {quote(name)} AS SELECT * FROM __given")
            except duckdb.Error as error:
                raise DataError(
                    f"{name} cannot be kept: {str(error).strip().splitlines()[0]}", code="UQL505"
                ) from error
        self._loaded[name.lower()] = name
        self._comments[name.lower()] = []

    def _comment(self, name: str, statements: Sequence[str]) -> None:
        for statement in statements:
            self._duck.execute(statement)
        self._comments[name.lower()] += statements

    @contextmanager
    def _confined(self, names: Collection[str]) -> Iterator[Session]:
        """A session of one statement, over copies of these tables in a DuckDB of a child."""
        with child_duckdb(MEMORY, BUSY_S) as child:
            for name in names:
                child.load(name, self.table(name), self._comments[name.lower()])
            session = Session(as_connection(child), self._settings, self.model, owned=True)
            with self._cursor() as cursor:
                session.files = Catalog(cursor, own=True).files_in_rows()
            try:
                yield session
            finally:
                session.close()

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of one use: DuckDB refuses a call on a connection that another thread is using."""
        with self._using:
            cursor = self._duck.cursor()
        try:
            yield cursor
        finally:
            cursor.close()


def longest_text(table: pa.Table) -> int:
    """The bytes of the longest value in the columns of texts."""
    import pyarrow.compute as pc

    texts = [c for c in table.columns if pa.types.is_string(c.type) or pa.types.is_large_string(c.type)]
    return max((pc.max(pc.binary_length(column)).as_py() or 0 for column in texts), default=0)


def budget_of(text: str) -> int | None:
    """The calls that WITH (budget = n) of a UQL query names; None where it names none, or is not a query."""
    tree = tree_of(text)
    if not isinstance(tree, Select | Union):
        return None
    return next((o.value for o in tree.options if o.name.lower() == "budget" and isinstance(o.value, int)), None)
