"""A connection: a DuckDB database, the settings of the session, and the way from a text to a result."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import duckdb

from uql.errors import BindError, DataError, UnknownTableError, UQLError, UQLSyntaxError
from uql.foresight import Foresight, limit_of
from uql.hints import pointing_to_uql
from uql.progress import watching
from uql.running import AnnounceEvent, DoneEvent, EmbeddedEvent, EstimateEvent, PlanEvent, finished
from uql.runs import Before, Said, by_name, find, offer
from uql.settings import Settings
from uql.sources.frames import visible
from uql.statements import check_target, check_to, duckdb_own, is_there, nothing, refused, set_option, store, write
from uql.vectors import Vectors

if TYPE_CHECKING:
    from uql.catalog import Catalog
    from uql.compiler.bound import BoundStatement, BoundTable
    from uql.compiler.physical import PhysicalPlan
    from uql.compiler.syntax import Query, Statement
    from uql.evidence import Trace
    from uql.fluent import Fluent
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider
    from uql.nl.answer import Answer
    from uql.result import Outcome, Result
    from uql.running import Watcher
    from uql.sampling.base import Estimate
    from uql.sources.media import Media

log = logging.getLogger("uql")

_BEHIND = (
    "a transaction is open on the connection of con.execute and con.sql, and what it has changed is not seen here: "
    'begin and end it by con.uql("BEGIN") and con.uql("COMMIT")'
)


class Connection:
    """Made by `uql.connect` or `uql.attach`. One query at a time; use one connection a thread."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        *,
        owned: bool,
        model: Provider | None = None,
        models: Mapping[str, Provider] | None = None,
        read_only: bool = False,
    ) -> None:
        from uql.catalog import Catalog

        self._duck = connection
        self._owned = owned
        self._settings = settings
        self._model = model
        self._models = dict(models or {})  # of a cascade, those given as providers
        self._catalog: Catalog = Catalog(connection)
        self._listeners: list[Callable[[Any], None]] = []
        self._gates: list[Gate] = []  # of the queries that run now
        self._foresight = Foresight(self._catalog.cursor, model, self._models)
        self._lock = threading.RLock()
        self._vectors = Vectors(self._announced, self._embedded)
        self._told: set[tuple[str, tuple[str, ...]]] = set()  # what was said to leave this machine
        self._said = Said()  # the statement that is read now
        self._closed = False
        self.last_run = ""  # id of the latest run, with which `resume` continues it

    @property
    def catalog(self) -> Catalog:
        """What its queries may name."""
        return self._catalog

    # ------------------------------------------------------------------------------------------------------ session
    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what `uql.connect` opened; a connection given to `uql.attach` stays open. A second call does nothing."""
        self._closed = True
        self._catalog.cursor.close()
        if self._owned:
            self._duck.close()

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("the connection is closed", code="UQL506", help="open it again: uql.connect(path)")

    def __repr__(self) -> str:
        where = "closed" if self._closed else f"to {self._database() or 'a database in memory'}"
        model = self._model.name if self._model is not None else self._settings.model or "no model"
        return f"<uql.Connection {where}, {model}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a uql.Connection cannot be copied or pickled: use con.cursor() in threads, uql.connect in processes"
        )

    def on_event(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Calls `listener` with every event of this connection's queries; the function returned ends it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def cursor(self) -> Connection:
        """Another connection to the same database with the same settings, for another thread, as DuckDB's `cursor()`."""
        return Connection(self._duck.cursor(), self._settings, owned=True, model=self._model)

    def interrupt(self) -> None:
        """Ends the running query early, from any thread: nothing more is sent, what is in flight is waited for and kept."""
        for gate in tuple(self._gates):
            gate.interrupt()

    @property
    def model(self) -> Provider | None:
        """The provider that it was opened with; None: that of the settings' name."""
        return self._model

    @property
    def configured(self) -> Settings:
        """The settings in force: those of the files and `connect`, changed by SET and `settings`."""
        return self._settings

    def use(self, **values: Any) -> None:
        """Other settings from now on, as SET."""
        self._settings = self._settings.with_values(**values)

    @contextmanager
    def settings(self, **values: Any) -> Iterator[Connection]:
        """Other settings within a `with` block."""
        before = self._settings
        self._settings = before.with_values(**values)
        try:
            yield self
        finally:
            self._settings = before

    def sql(self, text: str, *, params: object = None) -> duckdb.DuckDBPyRelation:
        """Plain DuckDB SQL, as DuckDB reads it, with `?` or `$name` from `params`; data frames of the caller may be named."""
        self._check_open()
        with pointing_to_uql():
            return self._duck.sql(text) if params is None else self._duck.sql(text, params=params)

    def execute(self, text: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        """Plain DuckDB SQL at once, as DuckDB's `execute`: `con.execute("INSERT INTO t VALUES (?)", [1])`."""
        self._check_open()
        with pointing_to_uql():
            return self._duck.execute(text) if parameters is None else self._duck.execute(text, parameters)

    # ------------------------------------------------------------------------------------------------------ queries
    def uql(self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """A UQL statement, or several with `;` between them; the last one's result.

        A query runs when its result is first looked at; a statement that changes something (TO, CREATE, INSERT, COPY, SET) runs
        at once, and so do all but the last of several.

        Args:
            text: the statement. Data frames of the caller may be named in FROM.
            parameters: values of `$name`, as a mapping, by name, or both; `uql.sem("…")` for a quoted text.
        Raises: UQLSyntaxError, BindError, ConfigError, DataError at once; ModelError when it runs.

        >>> import uql
        >>> uql.connect().uql("SELECT $a + $b AS total", {"a": 1}, b=2).fetchall()
        [(3,)]
        """
        return self._script(text, by_name(parameters, named), visible(sys._getframe(1)))

    def statement(self, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        """As `uql`, with the data frames that FROM may name given by name."""
        return self._script(text, parameters, frames)

    def auql(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Coroutine[Any, Any, Result]:
        """As `uql`, for `await`: it runs in a thread of its own. Cancelling it ends the run; what was answered is kept.

        >>> import asyncio, uql
        >>> asyncio.run(uql.connect().auql("SELECT 42 AS answer")).fetchall()
        [(42,)]
        """
        from uql.running import awaited

        frames = visible(sys._getframe(1))  # those of the caller, before anything is awaited
        return awaited(lambda: self._script(text, by_name(parameters, named), frames), self.interrupt)

    def table(self, name: str) -> Fluent:
        """A query over a table, view or file, made by calls instead of text: the plan is the same.

        >>> import uql
        >>> con = uql.connect()
        >>> con.table("logs").where(uql.sem("asked to cancel")).select("agent", why=uql.sem("reason to cancel", str)).limit(100)
        SELECT agent, PROMPT "reason to cancel"::VARCHAR AS why FROM logs WHERE PROMPT "asked to cancel" LIMIT 100
        """
        from uql.fluent import Fluent, table

        frames = visible(sys._getframe(1))
        return Fluent(table(name), lambda text: self._script(text, {}, frames))

    def register(self, name: str, source: object, type: str | None = None) -> tuple[str, ...]:
        """Makes a folder, a file, a glob or a data frame a table of this session, as `con.register("shots", "photos/")`.

        Args:
            name: of the table.
            source: a path or glob of images, sounds, documents, texts (one row a file: file, and image, audio, document or text),
                of CSV, JSON and Parquet files, of a SQLite database; or a pandas, polars or Arrow table.
            type: image, audio, document, text, sqlite, table, csv, json, jsonl or parquet; None: what the endings say.
        Returns: the names of the tables: more than one for a SQLite database of several.
        Raises: DataError where there is nothing (UQL501), or nothing that can be read (UQL503 to UQL505).
        """
        from uql.sources.folders import register

        self._check_open()
        with self._lock:
            return register((self._duck, self._catalog.cursor), name, source, type)

    def unregister(self, name: str) -> None:
        """Takes back what `register` made, as DuckDB's `unregister`; a table of the database stays."""
        from uql.sources.folders import unregister

        self._check_open()
        with self._lock:
            unregister((self._duck, self._catalog.cursor), name)

    def refresh(self, name: str) -> Result:
        """REFRESH name: brings a semantic table up to date; one row of what was added, changed and removed."""
        from uql.compiler.syntax import Refresh
        from uql.compiler.unparse import unparse

        return self._script(unparse(Refresh(tuple(name.split(".")))), {}, {})

    def undo(self, correction: int) -> None:
        """Takes back what `Result.correct` kept, by its number in `FROM uql_corrections()`. Raises DataError (UQL524)."""
        from uql.llm.ledger import Ledger
        from uql.llm.people import withdraw

        with closing(Ledger(self._settings.ledger)) as ledger:
            withdraw(ledger, correction)

    def resume(self, token: str | None = None, **settings: Any) -> Result:
        """Continues a run that was killed, interrupted, or stopped at a limit: the same rows are drawn, none is paid for twice.

        Args:
            token: of the run, as an interrupted or partial run tells it; None: the latest of this connection.
            settings: instead of those that the run was given, as max_cost = 5. Tokens and USD that it has paid count, unless
                it had reached that limit.
        Raises: ConfigError (UQL412) where the ledger knows no such run, (UQL414) where another process is at it; DataError (UQL413) where
            its rows are others now.
        """
        before = find(token or self.last_run, self._settings.ledger)
        return self._resumed(before, settings, visible(sys._getframe(1)))

    def _resumed(self, before: Before, changes: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        held, own = before.restored(self._settings)
        session, self._settings = self._settings, held
        try:
            return self._script(before.statement, own, frames, Said(before.statement, own, before, changes))
        finally:
            self._settings = session

    def ask(self, question: str, **options: Any) -> Answer:
        """The answer to a question in words, by UQL that can be read, edited and run again (`answer.uql`).

        Args:
            question: about the tables of the database.
            options: mode, style, rules, planner, budget, max_cost, confirm, confirm_over …: the fields of `uql.nl.session.Options`.
        Raises: ConfigError for an option; errors of the model that concern every call. What cannot be answered has an answer
            that says why (`answer.cannot`).
        """
        from uql.nl.session import Session

        self._check_open()
        with self._lock:
            try:
                return finished(Session(self, self._settings, self._model, self._emit).ask(question, **options))
            finally:
                self._emit(DoneEvent())

    def _script(
        self, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any], said: Said | None = None
    ) -> Result:
        from uql.compiler.parser import parse_script

        if not isinstance(text, str):
            raise UQLSyntaxError(f"a statement is a text, not {type(text).__name__}")
        pieces = parse_script(text)
        if not pieces:
            raise UQLSyntaxError("there is no statement in the text", text=text, start=0, end=1)
        result: Result | None = None
        self._check_open()
        with self._lock:
            offer(text, self._settings.ledger, self._catalog)
            for i, (piece, span) in enumerate(pieces):
                self._said = said or Said(text if len(pieces) == 1 else text[span.start : span.end], parameters)
                try:
                    result = self._piece(piece, text, parameters, frames)
                except duckdb.Error as error:  # such as one before in the same transaction
                    raise refused(error) from error
                if i < len(pieces) - 1 and result is not None:
                    result.run()
        assert result is not None
        return result

    def _piece(
        self, piece: Statement | str, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> Result:
        """One statement of a script; a str is none of UQL: it may be DuckDB's."""
        from uql.compiler.parser import parse

        if not isinstance(piece, str):
            try:
                return self._statement(piece, text, parameters, frames)
            except BindError as error:
                return duckdb_own(self._catalog.cursor, error, self._said.text, parameters)
        try:
            parse(piece)
        except UQLSyntaxError as error:
            found = self._around(piece, parameters, frames)
            return found if found is not None else duckdb_own(self._catalog.cursor, error, piece, parameters)
        raise AssertionError(piece)  # the parser has refused it before

    def _around(self, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result | None:
        """What only DuckDB knows, around sub-queries with texts."""
        if '"' not in text and "$" not in text:
            return None
        from uql.around import around
        from uql.compiler.parser import parse

        return around(
            text,
            parameters,
            lambda part, values: self._bind(cast("Query", parse(part)), part, values, frames),
            lambda part, values: self._script(part, values, frames),
            self._catalog.cursor,
            self._store(text),
        )

    def _statement(
        self, piece: Statement, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> Result:
        from uql.compiler.syntax import CopyQuery, CreateTable, Explain, Insert, SemanticStatement, SetOption

        if isinstance(piece, SemanticStatement):
            from uql.semantic_tables import run

            return run(self, piece, source, parameters, frames)
        if isinstance(piece, SetOption):
            return set_option(self, piece, source)
        if isinstance(piece, Explain):
            from uql.explain_statement import explain

            return explain(self, piece, self._bind(piece.statement, source, parameters, frames), source)
        if isinstance(piece, CreateTable | Insert | CopyQuery):
            bound = self._bind(piece.query, source, parameters, frames)
            result = self._result(bound, source)
            check_target(self._catalog.cursor, piece, bound.query.items, source)
            if isinstance(piece, CreateTable) and piece.if_not_exists and is_there(self._catalog.cursor, piece):
                return nothing(source, self._store(source))
            write(self._catalog.cursor, piece, result.run(), source)
            return result
        bound = self._bind(piece, source, parameters, frames)
        result = self._result(bound, source)
        if bound.to is not None:
            check_to(self._catalog.cursor, bound.to, source)
            result.run()
        return result

    def _bind(
        self, query: Query, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> BoundStatement:
        from uql.compiler.binder import bind
        from uql.compiler.unnested import unnested

        try:
            bound = bind(
                query, self._catalog, text=source, parameters=parameters, frames=frames, settings=self._settings
            )
            if bound.semantic:
                bound = replace(bound, query=unnested(bound.query, self._is_key))
            if bound.tables and self._catalog.is_behind():
                bound = replace(bound, warnings=(*bound.warnings, _BEHIND))
            return bound
        except UQLError as error:
            if isinstance(error, UnknownTableError) and self._catalog.is_behind():
                error.help = f"{_BEHIND}; {error.help or ''}".removesuffix("; ")
            raise error.at(source) from None

    def _is_key(self, source: BoundTable, column: str) -> bool:
        """Is each value of a table's column there once?"""
        from uql.compiler.sql import quote

        name = quote(column)
        try:
            return bool(
                self._catalog.value(f"SELECT count({name}) = count(DISTINCT {name}) FROM {source.table.sql} AS t")
            )
        except duckdb.Error:
            return False

    def _result(self, bound: BoundStatement, source: str) -> Result:
        from uql.concrete import outcome
        from uql.result import Result

        said = self._said
        settings = self._settings.with_values(**{**dict(bound.options), **said.changes})
        if bound.semantic or settings.disabled_rules:
            self._planned(bound, settings)  # what has no legal plan is said at once

        def work(said: Said) -> Outcome:
            if bound.semantic:
                return finished(self._execute(bound, self._planned(bound, settings), settings, said=said))
            self._emit(PlanEvent(None))  # DuckDB's own: nothing else of the engine is loaded for it
            return outcome(bound, self._catalog.cursor, settings.confidence)

        def result(said: Said) -> Result:
            return Result(
                lambda: self._run(bound, lambda: work(said), settings),
                lambda: self._explained_text(bound, settings),
                lambda: self._foresight.quoted(self._planned(bound, settings), settings),
                source,
                self._store(source),
                lambda run: result(Said(said.text, said.parameters, find(run, settings.ledger))),
            )

        return result(said)

    def _planned(self, bound: BoundStatement, settings: Settings) -> PhysicalPlan:
        from uql.compiler.planner import plan

        try:
            return plan(bound.query, settings.disabled_rules)
        except UQLError as error:
            raise error.at(bound.text) from None

    def _explained_text(self, bound: BoundStatement, settings: Settings) -> str:
        from uql.compiler.explain import text

        return text(self._foresight.explained(bound, self._planned(bound, settings), settings))

    # ---------------------------------------------------------------------------------------------------------- runs
    def _run(self, bound: BoundStatement, work: Callable[[], Outcome], settings: Settings) -> Outcome:
        self._check_open()
        with self._lock, watching(self.on_event, settings.progress, bool(self._listeners)):
            try:
                return work()
            except UQLError as error:
                raise error.at(bound.text) from None
            except duckdb.Error as error:
                raise refused(error, bound).at(bound.text) from error
            finally:
                self._emit(DoneEvent())

    async def _execute(
        self,
        bound: BoundStatement,
        plan: PhysicalPlan,
        settings: Settings,
        shared: Gate | None = None,
        said: Said | None = None,
        watcher: Watcher | None = None,
    ) -> Outcome:
        from uql.compiler.media import check_media
        from uql.concrete import estimated_sources
        from uql.context import in_context
        from uql.engine import execute
        from uql.evidence import trace
        from uql.kernels.estimates.sample import method_of
        from uql.result import Outcome
        from uql.stored_estimates import opened

        async def work(ctx: Context, gate: Gate) -> tuple[Output, Context, Trace | None]:
            ctx.warnings += bound.warnings
            ctx.based_on += dict.fromkeys(estimated_sources(bound.query))
            if bound.semantic:
                method_of(ctx)  # one that does not exist is said before anything is asked
                model = await gate.provider()
                check_media(bound.query, model.name, images=model.capabilities.images, audio=model.capabilities.audio)
            if watcher is not None:
                watcher.begins(ctx)
            output = await execute(plan, ctx)
            if watcher is not None:
                await watcher.ended(output, ctx)
            return output, ctx, await trace(output, ctx, gate, bound.query.items) if bound.semantic else None

        (output, ctx, found), gate = await in_context(
            self, bound.text, settings, limit_of(plan, settings), work, bound.semantic, shared, said
        )
        exhausted = gate.interrupted or gate.budget.exhausted in ("tokens", "usd", "seconds")
        outcome = Outcome(
            output.table,
            [item.type for item in bound.query.items],
            opened(bound.query, output.estimates or {}) if ctx.based_on else dict(output.estimates or {}),
            ctx.errors,
            gate.cost,
            [*ctx.warnings, *gate.warnings],
            ctx.notes,
            ctx.based_on,
            ctx.exact and not exhausted and not ctx.based_on and not ctx.errors,
            ctx.partial or exhausted,
            _positions(output, ctx),
            found,
            gate.run.id if gate.draws.kept and bound.semantic else "",
        )
        if bound.to is not None:
            store(self._catalog.cursor, bound.to, outcome, bound.text)
        return outcome

    async def outcome(self, text: str, gate: Gate | None = None) -> Outcome:
        """Runs one query in the event loop of the caller, through a gate of the caller's where one is given.

        Its calls are then limited by that gate's budget alone. Raises as `uql`, at once.
        """
        from uql.compiler.parser import parse
        from uql.compiler.syntax import Select, Union

        piece = parse(text)
        if not isinstance(piece, Select | Union):
            raise BindError("this statement is not a query", code="UQL212").at(text)
        bound = self._bind(piece, text, {}, {})
        settings = self._settings.with_values(**dict(bound.options))
        try:
            return await self._execute(bound, self._planned(bound, settings), settings, gate)
        except UQLError as error:
            raise error.at(text) from None
        except duckdb.Error as error:
            raise refused(error) from error

    def _store(self, source: str) -> Callable[[str, Outcome], None]:
        return lambda name, outcome: store(self._catalog.cursor, name, outcome, source)

    def _database(self) -> str | None:
        """The path of the database file; None: it is in memory."""
        found = self._catalog.value("SELECT path FROM duckdb_databases() WHERE database_name = current_database()")
        return str(found) if found else None

    def _estimated(self, name: str, estimate: Estimate) -> None:
        self._emit(EstimateEvent(name, estimate))

    def _embedded(self, done: int, rows: int) -> None:
        self._emit(EmbeddedEvent(done, rows))

    def _announced(self, model: str, columns: tuple[str, ...], rows: int | None) -> None:
        """Rows are about to leave this machine: said by the progress that is shown, else by the log, once for each model and columns."""
        event = AnnounceEvent(model, columns, rows)
        told = any(getattr(listener, "announces", False) for listener in self._listeners)
        if not told and (model, columns) not in self._told:
            self._told.add((model, columns))
            log.warning(event.text())
        self._emit(event)

    def _emit(self, event: Any) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def _large(self, settings: Settings) -> Provider | str | None:
        """The large model of a cascade, which answers what is no condition too, where no other model is named."""
        if not settings.models or settings.model is not None:
            return None
        return self._models.get(settings.models[1], settings.models[1])

    def _media(self, settings: Settings) -> Media:
        """What reads the files that rows name: below uql.folder, else beside the database file, else in the working directory."""
        from uql.sources.media import Media

        path = self._database()
        beside = Path(path).parent if path else Path.cwd()
        return Media(Path(settings.folder).expanduser() if settings.folder else beside, urls=settings.urls)


# ------------------------------------------------------------------------------------------------------------- helpers
def _positions(output: Output, ctx: Context) -> list[int]:
    """Where the rows that were returned unasked stand in the output."""
    if ctx.unverified is None or output.rids is None:
        return []
    unasked = set(ctx.unverified.tolist())
    return [i for i, rid in enumerate(output.rids.tolist()) if rid in unasked]
