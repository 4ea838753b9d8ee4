"""A session: one DuckDB connection, its settings and caches, and the way from a text to prepared statements and outcomes."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.duckdb_connections import CurrentDatabase
from uql.base.errors import ConfigError, DataError, UnknownTableError, UQLError, memory_errors
from uql.base.process_wide import rare_collections
from uql.base.settings import IN_PROJECTS, InProjects, Settings
from uql.base.sql_text import first_line, quote
from uql.compiler.syntax import Select, Union
from uql.compiler.unparse import unparse
from uql.engine.row_vectors import Vectors
from uql.kernels.duck import Duck
from uql.llm.open_ledgers import Ledgers
from uql.pricing.quotes import Foresight
from uql.session.events import AnnounceEvent, DoneEvent, EmbeddedEvent, LoadingEvent
from uql.session.resume import StatementInput
from uql.session.statements import FAILURES, refused, store
from uql.session.store_estimates import mark
from uql.show.progress import watching
from uql.sources.catalog import Catalog

if TYPE_CHECKING:
    from uql.cluster.cluster import Cluster
    from uql.compiler.bound import BoundStatement, BoundTable
    from uql.compiler.cost import Quote
    from uql.compiler.explain import Explained
    from uql.compiler.physical import PhysicalPlan
    from uql.compiler.syntax import Query
    from uql.engine.outcome import Outcome
    from uql.llm.budget import Budget
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider
    from uql.session.replay import Drawing
    from uql.sources.media import Media

log = logging.getLogger("uql")

NONE_PAID = (0, 0)  # calls of an earlier run, and those of them that are not about a row
_BEHIND = (
    "a transaction is open on the connection that was attached, and what it has changed is not seen here: "
    'begin and end it by con.uql("BEGIN") and con.uql("COMMIT")'
)


# set where nobody waits for the statements of this thread, or task, any more
CANCELLED: ContextVar[threading.Event | None] = ContextVar("uql_cancelled", default=None)


class Session:
    """One query at a time. `Connection` is its façade; questions in words run their statements through it.

    Args:
        connection: on which users run plain SQL; queries run on a cursor of it.
        settings: in force until `use` changes them.
        model: opened already, in place of the settings' name.
        models: those of a cascade that are opened already, by name.
        ledgers: shared with other sessions, so that a ledger in memory is one; None: of this session alone.
        owned: the connection was opened for this session, so that statements run on it and not on a cursor.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        model: Provider | None = None,
        models: Mapping[str, Provider] | None = None,
        *,
        owned: bool = False,
        ledgers: Ledgers | None = None,
    ) -> None:
        self.duck = connection
        self.settings = settings
        self.model, self._named = model, settings.model
        self.models = dict(models or {})
        self.catalog: Catalog = Catalog(connection, own=owned)
        self.catalog.parts.files = lambda: self.media(self.settings.with_values(max_seconds=None), self.database())
        self.catalog.hide_internal()
        self.listeners: list[Callable[[Any], None]] = []
        self.gates: list[Gate] = []  # of the queries that run now
        self.lock = threading.RLock()
        self._running = 0  # statements, each within the one before
        self._stop = False  # the running one was interrupted: gates that it opens from now on send nothing
        self._cancelled: threading.Event | None = None  # of the running one
        self.vectors = Vectors(self.announce, lambda done, rows: self.emit(EmbeddedEvent(done, rows)))
        self.announced: set[tuple[str, tuple[str, ...]]] = set()  # models and columns that were announced
        self.ledgers = ledgers or Ledgers()
        self.catalog.parts.ledger = lambda: self.ledgers.open(self.settings.ledger)
        self.foresight = Foresight(self.catalog, self.given, self.models, self.ledgers)
        self.statement = StatementInput()  # the statement that is being read
        self.caps: tuple[Budget, ...] = ()  # of statements that somebody else writes: no run goes beyond them
        self.files: frozenset[str] | None = None  # and no file or address beside these; None: any that a value names
        self.cluster: Cluster | None = None  # whose shards hold the tables of a lake
        self.closed = False
        self.failure = ""  # of DuckDB, which has ended its database
        self.last_run = ""  # id of the latest run, with which `resume` continues it

    def close(self) -> None:
        """Closes the cursor of queries; the connection stays open. A second call does nothing."""
        if not self.closed:
            self.ledgers.close()
            self.catalog.parts.close()
        self.closed = True
        with suppress(duckdb.Error):  # it is busy in another thread, for which a second Ctrl-C does not wait
            self.catalog.cursor.close()

    def check_open(self) -> None:
        if self.closed:
            raise DataError("the connection is closed", code="UQL506", help="open it again: uql.connect(path)")
        if self.failure:
            message = f"an error in DuckDB has ended the connection: {self.failure}"
            raise DataError(message, code="UQL506", help="open it again: uql.connect(path)")

    def note_failure(self, error: duckdb.Error) -> None:
        """Keeps an error in DuckDB after which its database takes no more statements."""
        if isinstance(error, FAILURES):
            try:
                self.catalog.cursor.execute("SELECT 1").fetchall()
            except duckdb.FatalException:
                self.failure = first_line(error)

    def on_event(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Calls `listener` with every event of this connection's queries; the function returned ends it."""
        self.listeners.append(listener)

        def stop() -> None:
            if listener in self.listeners:
                self.listeners.remove(listener)

        return stop

    def use(self, **values: Any) -> None:
        """Other settings from now on, as SET."""
        self.settings = self.settings.with_values(**values)

    def interrupt(self, cancelled: threading.Event | None = None) -> None:
        """Ends the running query early, from any thread: nothing more is sent, what is in flight is waited for and kept.

        Args:
            cancelled: of the statement that is meant, and set from now on: another is not ended, and where it runs later, it sends nothing.
        """
        if cancelled is not None:
            cancelled.set()
            if cancelled is not self._cancelled:
                return
        self._stop = self._running > 0
        for gate in tuple(self.gates):
            gate.interrupt()

    def opened(self, gate: Gate) -> None:
        """Notes the gate of a query that begins to run."""
        self.gates.append(gate)
        if self._stop:
            gate.interrupt()

    # --------------------------------------------------------------------------------------------------- statements
    def bind(
        self,
        query: Query,
        source: str,
        parameters: Mapping[str, Any],
        frames: Mapping[str, Any],
        into: Sequence[str] = (),
    ) -> BoundStatement:
        """The query with every name found, for this database and these settings.

        Args:
            query: as the parser gave it.
            parameters: values of `$name`.
            frames: data frames by the name that FROM gives them.
            into: the types of the columns that the query's are for, as INSERT has them.
        Raises: BindError and UnknownTableError, at the place in the text.
        """
        from uql.compiler.binder import bind
        from uql.compiler.unnest_subqueries import unnested

        try:
            settings = self.settings
            with self.catalog.listed_once():
                bound = bind(
                    query, self.catalog, text=source, parameters=parameters, frames=frames, settings=settings, into=into
                )
            if bound.semantic:
                assert isinstance(query, Select | Union)
                normal = f"{unparse(replace(query, options=(), to=None))} {sorted(parameters.items())!r}" + " ".join(
                    into
                )
                bound = replace(bound, query=unnested(bound.query, self.is_key), normal=normal)
            if self.caps:
                self._check_options(bound)
            if bound.tables and self.catalog.is_behind():
                bound = replace(bound, warnings=(*bound.warnings, _BEHIND))
            return bound
        except UQLError as error:
            if isinstance(error, UnknownTableError) and self.catalog.is_behind():
                error.help = f"{_BEHIND}; {error.help or ''}".removesuffix("; ")
            raise error.at(source) from None

    def _check_options(self, bound: BoundStatement) -> None:
        """Raises ConfigError (UQL416) for a setting of `WITH (…)` that a project's file may not have without trust."""
        for name, value in bound.options:
            rule = IN_PROJECTS.get(name, InProjects(asks=f"set {name}"))
            if not rule.allows(value, getattr(self.settings, name, None)):
                raise ConfigError(
                    f"{name} cannot be set here: it would {rule.asks}",
                    code="UQL416",
                    help=f"leave it out of WITH (…); allowed: {rule.words()}",
                )

    def is_key(self, source: BoundTable, column: str) -> bool:
        """Is each value of a table's column there once?"""

        name = quote(column)
        try:
            return bool(
                self.catalog.value(
                    f"SELECT system.main.count({name}) = system.main.count(DISTINCT {name}) FROM {source.table.sql} AS t"
                )
            )
        except duckdb.Error:
            return False

    def plan(self, bound: BoundStatement, settings: Settings) -> PhysicalPlan:
        from uql.compiler.planner import plan

        try:
            return plan(bound.query, settings.disabled_rules)
        except UQLError as error:
            raise error.at(bound.text) from None

    def explained(self, bound: BoundStatement, settings: Settings) -> str:
        """The plan, how each text was read, and the price, as text. Makes no call."""
        from uql.compiler.explain import text

        return text(self.explanation(bound, settings))

    def explanation(self, bound: BoundStatement, settings: Settings) -> Explained:
        """What EXPLAIN says: the plan with its price, or the run that answers the statement for no call."""
        from uql.compiler.cost import FREE

        self.catalog.begin()
        plan = self.plan(bound, settings)
        forecast = self.foresight.explained(bound, plan, settings)
        run, paid = self.earlier_run(bound, plan, settings)
        if run:
            return replace(forecast, quote=FREE, answered_from=run)
        return replace(forecast, quote=self._after(paid, forecast.quote, plan, settings))

    def quoted(self, bound: BoundStatement, settings: Settings) -> Quote:
        """The price of a bound query. Makes no call."""
        from uql.compiler.cost import FREE

        self.catalog.begin()
        plan = self.plan(bound, settings)
        run, paid = self.earlier_run(bound, plan, settings)
        return FREE if run else self._after(paid, self.foresight.quoted(plan, settings), plan, settings)

    def _after(self, paid: tuple[int, int], quote: Quote, plan: PhysicalPlan, settings: Settings) -> Quote:
        """What is left of the price of a statement where an earlier run of it paid for so many calls."""
        if paid == NONE_PAID:
            return quote
        from uql.compiler.cost import blocks

        orders = [block.order for block in blocks(plan).values()]
        any_rows = any(order.rows_needed is not None and not order.keys for order in orders)
        return quote.after(*paid, self.foresight.quoted(plan, settings, with_ledger=False), any_rows=any_rows)

    def kernel_duck(self, media: Media | None = None) -> Duck:
        """The session's DuckDB for one run; `media` reads the files that its rows name, None: none are read."""
        check = self.catalog.check_calls if self.catalog.read_only else None
        return Duck(
            self.catalog.cursor,
            media,
            lambda: self.catalog.aggregates,
            self.cluster,
            check,
            self.catalog.users_orders,
            self.catalog.collated,
        )

    def drawing(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Drawing | None:
        """What a run of a statement is known by; None where no run is kept.

        Args:
            bound: the statement.
            plan: of its query.
            settings: of the statement.
        """
        from uql.session.replay import drawing_of

        if not bound.semantic:
            return None
        given = self.given(settings)
        model = given.name if given is not None else settings.model or ""
        calls = self.foresight.limit(plan, settings)
        return drawing_of(plan, bound.normal, model, settings, calls, self.kernel_duck(), bound.tables)

    def earlier_run(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> tuple[str, tuple[int, int]]:
        """The run that answers a statement for no call, in words, "" where there is none; and the calls of the one that it goes on with.

        Args:
            bound: the statement.
            plan: of its query.
            settings: of the statement.
        """
        from uql.session.replay import find, paid, replayed

        drawing = None if settings.fresh else self.drawing(bound, plan, settings)
        if drawing is None or not self.ledgers.exists(settings.ledger):
            return "", NONE_PAID
        with self.ledgers.open(settings.ledger) as ledger:
            replay = find(drawing, self.foresight.limit(plan, settings), ledger, self.kernel_duck())
            if replay is None:
                return "", NONE_PAID
            return replayed(replay.root, replay.since, 0) if replay.done else "", paid(replay.root, ledger)[:2]

    @contextmanager
    def plain_sql(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """DuckDB's connection for a statement of the caller's, who may name data frames of theirs.

        DuckDB's errors about a quoted text get a note that says what answers such texts.
        """
        self.check_open()
        with self.lock:
            self.catalog.python_variables(True)
            try:
                yield self.catalog.cursor
            except duckdb.BinderException as error:
                if re.search(r'column "[^"\n]* [^"\n]*" not found', str(error)):
                    error.add_note("this is DuckDB alone: con.uql(…) asks a model what a text in double quotes says")
                raise

    def register(self, name: str, source: object, type: str | None) -> tuple[str, ...]:
        """Makes files or a data frame tables of this session, as `Connection.register` says.

        Args:
            source: as `Connection.register` says.
            type: None: what the endings say.
        """
        from uql.sources.folders import register

        self.check_open()
        with self.lock:
            self.catalog.begin()
            tables = register(self.catalog.cursor, name, source, type)
            if getattr(source, "exact", True) is False:  # a result of UQL's
                mark(self.catalog, (name,), str(getattr(source, "text", "")))
            return tables

    def unregister(self, name: str) -> None:
        """Takes back what `register` made."""
        from uql.sources.folders import unregister

        self.check_open()
        with self.lock:
            self.catalog.begin()
            unregister(self.catalog.cursor, name)

    @contextmanager
    def running(self, settings: Settings) -> Iterator[None]:
        """No other statement of this session runs meanwhile; its progress is shown where the settings or nobody else shows it."""
        self.check_open()
        with self.lock, rare_collections(), watching(self.on_event, settings.progress, bool(self.listeners)):
            self.catalog.begin()
            try:
                yield
            finally:
                self.emit(DoneEvent())

    def run_locked(
        self, text: str, work: Callable[[], Outcome], settings: Settings, bound: Callable[[], BoundStatement]
    ) -> Outcome:
        """Runs a statement while no other one of this session runs, its errors with their place in the text.

        Args:
            bound: returns the bound statement, for the position of an error.
        Raises: what `work` raises; DuckDB's errors as DataError.
        """
        with self.running(settings):
            latest, self.last_run = self.last_run, ""
            self._running += 1
            self._cancelled = CANCELLED.get()
            self._stop = self._stop or (self._cancelled is not None and self._cancelled.is_set())
            began = time.monotonic()
            try:
                self.catalog.parts.unread()  # those of an EXPLAIN before
                with memory_errors():
                    outcome = work()
                outcome.notes += self.catalog.parts.unread()
                outcome.cost = replace(outcome.cost, seconds=time.monotonic() - began)
                return outcome
            except KeyboardInterrupt as stop:
                if self.last_run:
                    stop.add_note(f'what was answered is kept; con.resume("{self.last_run}") goes on from there')
                raise
            except UQLError as error:
                raise error.at(text) from None
            except duckdb.Error as error:
                self.note_failure(error)
                place = None
                if not self.catalog.aborted():  # nothing can be bound in a transaction that the error has ended
                    with suppress(duckdb.Error):
                        place = bound()
                raise refused(error, place).at(text) from error
            finally:
                self._running -= 1
                self._stop = self._stop and self._running > 0
                self._cancelled = self._cancelled if self._running else None
                self.last_run = self.last_run or latest

    def store(self, source: str) -> Callable[[str, Outcome], None]:
        return lambda name, outcome: store(self.catalog.cursor, name, outcome, source)

    def database(self) -> CurrentDatabase:
        """Where its current database is. Not to be called beside a statement that runs, unless from within it."""
        return self.catalog.database

    def use_cluster(self, cluster: Cluster) -> None:
        """Statements over its tables draw their rows by its shards."""
        self.cluster = cluster

    def home(self, database: CurrentDatabase) -> str | None:
        """The path beside which vectors of rows are kept: of the database file or the lake; None: there is none."""
        return database.path or (str(self.cluster.place) if self.cluster is not None else None)

    def given(self, settings: Settings) -> Provider | None:
        """The provider that the connection was opened with; None where a statement, or SET, names another model since."""
        return self.model if settings.model in (None, self._named) else None

    def large(self, settings: Settings) -> Provider | str | None:
        """The large model of a cascade, which answers what is not a condition too, where no other model is named."""
        if not settings.models or settings.model is not None:
            return None
        return self.models.get(settings.models[1], settings.models[1])

    def media(self, settings: Settings, database: CurrentDatabase) -> Media:
        """What reads the files that rows name: below uql.folder, else beside the database file, else in the working directory."""
        from uql.sources.media import Media

        beside = Path(database.path).parent if database.path else Path.cwd()
        folder = Path(settings.folder).expanduser() if settings.folder else beside
        parts = self.catalog.parts
        parts.media = Media(
            folder,
            urls=settings.urls,
            seconds=settings.max_seconds,
            parts=parts,
            listen=settings.listen,
            given=self.files,
        )
        return parts.media

    def emit(self, event: Any) -> None:
        for listener in tuple(self.listeners):
            listener(event)

    def hear(self, gate: Gate) -> None:
        """Tells the listeners of a gate's calls, of rows that leave this machine, and of a model that is loaded."""
        gate.listeners.append(self.emit)
        gate.on_announce.append(self.announce)
        gate.on_loading.append(lambda model: self.emit(LoadingEvent(model)))

    def announce(self, model: str, columns: tuple[str, ...], rows: int | None) -> None:
        """Rows are about to leave this machine: said by the progress that is shown, else by the log, once for each model and columns.

        Args:
            columns: that it is shown.
            rows: at most; None: not known.
        """
        event = AnnounceEvent(model, columns, rows)
        shows_progress = any(getattr(listener, "announces", False) for listener in self.listeners)
        if not shows_progress and (model, columns) not in self.announced:
            self.announced.add((model, columns))
            log.warning(event.text())
        self.emit(event)
