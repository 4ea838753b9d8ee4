"""A connection: a DuckDB database, the settings of the session, and the way from a text to a result."""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid
from collections import ChainMap
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from uql.errors import BindError, ConfigError, DataError, UQLError, UQLSyntaxError
from uql.settings import Settings
from uql.statements import duckdb_own, store, text_outcome, text_table, write

if TYPE_CHECKING:
    from uql.catalog import Catalog
    from uql.compiler.bound import BoundStatement
    from uql.compiler.cost import Quote
    from uql.compiler.explain import Explained
    from uql.compiler.physical import PhysicalPlan
    from uql.compiler.syntax import Explain, Query, Statement
    from uql.evidence import Trace
    from uql.features.store import FeatureStore
    from uql.fluent import Fluent
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.kernels.guide import RowFeatures
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider
    from uql.result import Outcome, Result
    from uql.sampling.base import Estimate

T = TypeVar("T")
CALLS_AGGREGATE, CALLS_ROWS = 128, 256
FEATURES = ".uql-features"  # ends the name of the folder of vectors beside a database file


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """A query begins: what it may spend."""

    budget: int | None
    max_cost: float | None = None
    kind: str = "plan"


@dataclass(frozen=True, slots=True)
class EstimateEvent:
    """The estimate so far."""

    column: str
    estimate: Estimate
    kind: str = "estimate"


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """A query has ended."""

    kind: str = "done"


class Connection:
    """Made by `uql.connect` or `uql.attach`. One query at a time; use one connection a thread."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        *,
        owned: bool,
        model: Provider | None = None,
        read_only: bool = False,
    ) -> None:
        from uql.catalog import Catalog

        self._duck = connection
        self._owned = owned
        self._settings = settings
        self._model = model
        self._catalog: Catalog = Catalog(connection)
        self._listeners: list[Callable[[Any], None]] = []
        self._gates: list[Gate] = []  # of the queries that run now
        self._rates: dict[
            str, tuple[int, int]
        ] = {}  # of terms that were asked, by name: answers, and how many are true
        self._lock = threading.RLock()
        self._stores: dict[str, FeatureStore] = {}  # of features, by embedder

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
        """Closes what `uql.connect` opened; a connection given to `uql.attach` stays open."""
        self._catalog.cursor.close()
        if self._owned:
            self._duck.close()

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

    @contextmanager
    def settings(self, **values: Any) -> Iterator[Connection]:
        """Other settings within a `with` block."""
        before = self._settings
        self._settings = before.with_values(**values)
        try:
            yield self
        finally:
            self._settings = before

    def sql(self, text: str) -> duckdb.DuckDBPyRelation:
        """Plain DuckDB SQL, as DuckDB reads it."""
        return self._duck.sql(text)

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
        return self._script(text, {**(parameters or {}), **named}, _frames(sys._getframe(1)))

    def auql(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Coroutine[Any, Any, Result]:
        """As `uql`, for `await`: the statement runs in a thread of its own while the event loop goes on, and its rows are there
        when it comes back. Cancelling it ends the run; what was answered is kept in the ledger.

        >>> import asyncio, uql
        >>> asyncio.run(uql.connect().auql("SELECT 42 AS answer")).fetchall()
        [(42,)]
        """
        frames = _frames(sys._getframe(1))  # those of the caller, before anything is awaited

        def work() -> Result:
            result = self._script(text, {**(parameters or {}), **named}, frames)
            result.run()
            return result

        async def wait() -> Result:
            try:
                return await asyncio.to_thread(work)
            except asyncio.CancelledError:
                self.interrupt()
                raise

        return wait()

    def table(self, name: str) -> Fluent:
        """A query over a table, view or file, made by calls instead of text: the plan is the same.

        >>> import uql
        >>> con = uql.connect()
        >>> con.table("logs").where(uql.sem("asked to cancel")).select("agent", why=uql.sem("reason to cancel", str)).limit(100)
        SELECT agent, PROMPT "reason to cancel"::VARCHAR AS why FROM logs WHERE PROMPT "asked to cancel" LIMIT 100
        """
        from uql.fluent import Fluent, table

        frames = _frames(sys._getframe(1))
        return Fluent(table(name), lambda text: self._script(text, {}, frames))

    def _script(self, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        from uql.compiler.parser import parse, parse_script

        if not isinstance(text, str):
            raise UQLSyntaxError(f"a statement is a text, not {type(text).__name__}")
        pieces = parse_script(text)
        if not pieces:
            raise UQLSyntaxError("there is no statement in the text", text=text, start=0, end=1)
        result: Result | None = None
        with self._lock:
            for i, (piece, _) in enumerate(pieces):
                if isinstance(piece, str):  # not UQL: it may be DuckDB's
                    try:
                        parse(piece)
                    except UQLSyntaxError as error:
                        result = duckdb_own(self._catalog.cursor, error, piece, parameters)
                else:
                    result = self._statement(piece, text, parameters, frames)
                if i < len(pieces) - 1 and result is not None:
                    result.run()
        assert result is not None
        return result

    def _statement(
        self, piece: Statement, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> Result:
        from uql.compiler.syntax import CopyQuery, CreateTable, Explain, Insert, SetOption

        if isinstance(piece, SetOption):
            return self._set(piece.name, piece.value, source)
        if isinstance(piece, Explain):
            return self._explain(piece, source, parameters, frames)
        if isinstance(piece, CreateTable | Insert | CopyQuery):
            result = self._result(self._bind(piece.query, source, parameters, frames), source)
            write(self._catalog.cursor, piece, result.arrow())
            return result
        bound = self._bind(piece, source, parameters, frames)
        result = self._result(bound, source)
        if bound.to is not None:
            result.run()
        return result

    def _bind(
        self, query: Query, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> BoundStatement:
        from uql.compiler.binder import bind

        try:
            return bind(
                query, self._catalog, text=source, parameters=parameters, frames=frames, settings=self._settings
            )
        except UQLError as error:
            raise error.at(source) from None

    def _result(self, bound: BoundStatement, source: str) -> Result:
        from uql.compiler.explain import text
        from uql.compiler.planner import plan
        from uql.result import Result

        settings = self._settings.with_values(**dict(bound.options))
        try:
            physical = plan(bound.query, settings.disabled_rules, self._rates)
        except UQLError as error:
            raise error.at(source) from None
        return Result(
            lambda: self._run(bound, physical, settings),
            lambda: text(self._explained(bound, physical, settings)),
            lambda: self._quoted(physical, settings),
            source,
            self._store(source),
        )

    # ---------------------------------------------------------------------------------------------------------- runs
    def _run(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Outcome:
        with self._lock:
            try:
                return _await(self._execute(bound, plan, settings))
            except UQLError as error:
                raise error.at(bound.text) from None
            except duckdb.Error as error:
                raise DataError(f"DuckDB: {str(error).strip().splitlines()[0]}", code="UQL509") from error
            finally:
                self._emit(DoneEvent())

    async def _execute(
        self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings, shared: Gate | None = None
    ) -> Outcome:
        from uql.engine import execute, has_estimates
        from uql.evidence import trace
        from uql.result import Outcome

        async def work(ctx: Context, gate: Gate) -> tuple[Output, Context, Trace | None]:
            ctx.warnings += bound.warnings
            ctx.based_on += dict.fromkeys(has_estimates(bound.query))
            output = await execute(plan, ctx)
            return output, ctx, await trace(output, ctx, gate) if bound.semantic else None

        (output, ctx, found), gate = await self._in_context(
            bound.text, settings, _limit(plan, settings), work, bound.semantic, shared
        )
        exhausted = gate.budget.exhausted in ("tokens", "usd", "seconds")
        outcome = Outcome(
            output.table,
            [item.type for item in bound.query.items],
            dict(output.estimates or {}),
            ctx.errors,
            gate.cost,
            [*ctx.warnings, *gate.warnings],
            ctx.notes,
            ctx.based_on,
            ctx.exact and not exhausted and not ctx.based_on,
            ctx.partial or exhausted,
            _positions(output, ctx),
            found,
        )
        if bound.to is not None:
            store(self._catalog.cursor, bound.to, outcome, bound.text)
        return outcome

    async def outcome(self, text: str, gate: Gate | None = None) -> Outcome:
        """Runs one query in the event loop of the caller, through a gate of the caller's where one is given.

        Its calls are then limited by that gate's budget alone. Raises as `uql`, at once.
        """
        from uql.compiler.parser import parse
        from uql.compiler.planner import plan
        from uql.compiler.syntax import Select, Union

        piece = parse(text)
        if not isinstance(piece, Select | Union):
            raise BindError("this statement is not a query", code="UQL212").at(text)
        bound = self._bind(piece, text, {}, {})
        settings = self._settings.with_values(**dict(bound.options))
        try:
            return await self._execute(bound, plan(bound.query, settings.disabled_rules, self._rates), settings, gate)
        except UQLError as error:
            raise error.at(text) from None
        except duckdb.Error as error:
            raise DataError(f"DuckDB: {str(error).strip().splitlines()[0]}", code="UQL509") from error

    def _store(self, source: str) -> Callable[[str, Outcome], None]:
        return lambda name, outcome: store(self._catalog.cursor, name, outcome, source)

    def _features(self) -> RowFeatures:
        """Vectors of rows: beside a database file they are kept between runs."""
        from uql.features.store import FeatureStore
        from uql.kernels.duck import Duck
        from uql.kernels.guide import RowFeatures
        from uql.llm.embed import open_embedder

        named = self._settings.embedder or "static"
        if named not in self._stores:
            path = Duck(self._catalog.cursor).scalar(
                "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
            )
            embedder = None if named == "static" else open_embedder(named, timeout_s=self._settings.timeout_s)
            self._stores[named] = FeatureStore(Path(f"{path}{FEATURES}") if path else None, embedder)
        return RowFeatures(self._stores[named])

    def _estimated(self, name: str, estimate: Estimate) -> None:
        self._emit(EstimateEvent(name, estimate))

    def _emit(self, event: Any) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    # ------------------------------------------------------------------------------------------------- explain, quote
    def _explained(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Explained:
        from uql.explaining import Knowledge, explanation

        return explanation(
            bound, plan, Knowledge(self._catalog.cursor, self._rates), _limit(plan, settings), self._model
        )

    def _quoted(self, plan: PhysicalPlan, settings: Settings) -> Quote:
        from uql.explaining import Knowledge, price

        return price(plan, Knowledge(self._catalog.cursor, self._rates), _limit(plan, settings), self._model)

    def _explain(self, piece: Explain, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        """EXPLAIN: the plan as rows of text. ANALYZE runs the query and adds what happened; SAMPLE n pays for n rows."""
        from uql.compiler.formats import Measured, written
        from uql.compiler.planner import plan
        from uql.result import Result

        bound = self._bind(piece.statement, source, parameters, frames)
        settings = self._settings.with_values(**dict(bound.options))
        inner = self._result(bound, source)
        physical = plan(bound.query, settings.disabled_rules, self._rates)

        def shown() -> list[str]:
            return written(self._explained(bound, physical, settings), piece.format).splitlines()

        def run() -> Outcome:
            if piece.mode == "SAMPLE":
                return self._sampled(bound, physical, settings, piece)
            if piece.mode == "ANALYZE":
                predicted = self._explained(bound, physical, settings)  # before the run, which teaches
                outcome = inner.run()
                cost = outcome.cost
                measured = Measured(
                    cost.calls,
                    cost.cached,
                    cost.input_tokens,
                    cost.output_tokens,
                    cost.usd,
                    cost.seconds,
                    outcome.table.num_rows,
                    tuple(outcome.notes),
                )
                return text_outcome(written(predicted, piece.format, measured).splitlines(), outcome)
            return text_outcome(shown(), None)

        return Result(run, lambda: "\n".join(shown()), inner.quote, source, self._store(source))

    def _sampled(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings, piece: Explain) -> Outcome:
        """EXPLAIN SAMPLE n: the plan priced with the answers for n random rows, which are paid for and kept."""
        from uql.compiler.formats import Sampled, written
        from uql.compiler.physical import Block
        from uql.compiler.planner import ordered
        from uql.engine import Pilot, pilot
        from uql.explaining import Knowledge, explanation

        calls = _limit(plan, settings)
        knowledge = Knowledge(self._catalog.cursor, self._rates)
        sampled: Sampled | None = None
        outcome = text_outcome([], None)
        if isinstance(plan, Block) and plan.formula is not None:
            block, n = plan, piece.sample or 0

            async def ask(ctx: Context, _: Gate) -> Pilot:
                return await pilot(block, ctx, n)

            with self._lock:
                found, gate = _await(self._in_context(bound.text, settings, calls, ask))
            if "order_by_rates" not in settings.disabled_rules:
                plan = ordered(block, answers=found.answers)
            knowledge.pilots[id(plan)] = found
            outcome.cost = gate.cost
            sampled = Sampled(
                found.rows, found.passed, *found.share, settings.confidence, gate.cost.calls, gate.cost.cached
            )
        shown = written(explanation(bound, plan, knowledge, calls, self._model), piece.format, None, sampled)
        outcome.table, outcome.types = text_table(shown.splitlines()), ["VARCHAR"]
        return outcome

    async def _in_context(
        self,
        text: str,
        settings: Settings,
        calls: int | None,
        work: Callable[[Context, Gate], Awaitable[T]],
        semantic: bool = True,
        shared: Gate | None = None,
    ) -> tuple[T, Gate]:
        """Does some work with a context of its own and a gate, `shared` or of its own too, and closes what it made."""
        import numpy as np

        from uql.kernels.base import Context
        from uql.kernels.duck import Duck
        from uql.llm.gate import Gate, Run

        self._emit(PlanEvent(calls, settings.max_cost))
        duck = Duck(self._catalog.cursor)
        run = Run(uuid.uuid4().hex[:12], settings.seed, text)
        gate = shared or Gate.open(settings, run=run, model=self._model, calls=calls)
        try:
            if shared is None:
                gate.subscribe(self._emit)
            self._gates.append(gate)
            if semantic:  # a model that cannot be had is said before any other work
                await gate.provider()
            rng = np.random.default_rng(settings.seed)
            ctx = Context(
                gate,
                settings,
                rng,
                duck,
                rates=self._rates,
                on_estimate=self._estimated,
                features=self._features() if semantic else None,
            )
            return await work(ctx, gate), gate
        finally:
            if gate in self._gates:
                self._gates.remove(gate)
            duck.close()
            if shared is None:
                await gate.aclose()

    # -------------------------------------------------------------------------------------------- other statements
    def _set(self, name: str, value: Any, source: str) -> Result:
        from uql.compiler.cost import FREE
        from uql.compiler.rules import known_names
        from uql.result import Result

        try:
            if value is None:
                self._settings = self._settings.with_values(**{name: getattr(Settings(), name, None)})
            else:
                changed = self._settings.with_values(**{name: value})
                known_names(changed.disabled_rules)
                self._settings = changed
        except ConfigError as error:
            place = source.lower().find(name.lower())
            error.start, error.end = place, place + len(name)
            raise error.at(source) from None
        empty = text_outcome([], None)
        return Result(lambda: empty, lambda: "SET", lambda: FREE, source, self._store(source))


# ------------------------------------------------------------------------------------------------------------- helpers
def _positions(output: Output, ctx: Context) -> list[int]:
    """Where the rows that were returned unasked stand in the output."""
    if ctx.unverified is None or output.rids is None:
        return []
    unasked = set(ctx.unverified.tolist())
    return [i for i, rid in enumerate(output.rids.tolist()) if rid in unasked]


def _limit(plan: PhysicalPlan, settings: Settings) -> int | None:
    """The calls that a query may make: the setting, else 128 where it has aggregates only and 256 where not."""
    from uql.compiler.physical import Block

    if settings.exact or settings.budget == "all":
        return None
    if settings.budget is not None:
        return int(settings.budget)
    aggregates = isinstance(plan, Block) and plan.aggregated and not plan.derived
    return CALLS_AGGREGATE if aggregates else CALLS_ROWS


def _frames(frame: FrameType | None) -> Mapping[str, Any]:
    """The names that the caller can see, for data frames in FROM."""
    if frame is None:
        return {}
    return ChainMap(dict(frame.f_locals), frame.f_globals)


def _await(task: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, in a thread of its own where this one has a running loop already (a notebook)."""
    if asyncio._get_running_loop() is None:
        return asyncio.run(task)
    with ThreadPoolExecutor(1, thread_name_prefix="uql-run") as thread:
        return thread.submit(asyncio.run, task).result()


def connect(
    path: str | Path | None = None,
    *,
    model: str | Provider | None = None,
    ledger: str | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Connection:
    """A connection to a DuckDB database.

    Args:
        path: the database file; None or ":memory:": one in memory.
        model: "local", "openai:NAME", "anthropic:NAME", "http://host/v1#NAME", "oracle:FILE.toml", or a provider.
        ledger: path of the ledger of answers paid for; ":memory:" keeps nothing; None: the user's own.
        concurrency: requests in flight at most.
        seed: of everything random.
        settings: every other setting by name.
    Raises: ConfigError (UQL105) on a setting; DataError (UQL503) where the database cannot be opened.
    """
    configured, given = _configured(model, ledger, concurrency, seed, settings)
    try:
        connection = duckdb.connect(str(path) if path is not None else ":memory:")
    except (duckdb.Error, OSError) as error:
        raise DataError(
            f"the database {path} cannot be opened: {str(error).strip().splitlines()[0]}", code="UQL503"
        ) from error
    return Connection(connection, configured, owned=True, model=given)


def attach(
    connection: duckdb.DuckDBPyConnection,
    *,
    model: str | Provider | None = None,
    ledger: str | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Connection:
    """A connection over the user's own DuckDB connection, which is not touched: UQL works on a cursor of it.

    Args: as `connect`. Temporary tables and views of the connection may be named too.
    """
    configured, given = _configured(model, ledger, concurrency, seed, settings)
    return Connection(connection, configured, owned=False, model=given)


def _configured(
    model: str | Provider | None,
    ledger: str | None,
    concurrency: int | None,
    seed: int | None,
    settings: dict[str, Any],
) -> tuple[Settings, Provider | None]:
    from uql import config

    name = model if isinstance(model, str) or model is None else None
    named = {"model": name, "ledger": ledger, "concurrency": concurrency, "seed": seed}
    merged, _ = config.load(**{k: v for k, v in named.items() if v is not None}, **settings)
    return merged, None if isinstance(model, str) or model is None else model
