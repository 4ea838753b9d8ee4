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

if TYPE_CHECKING:
    from uql.catalog import Catalog
    from uql.compiler.bound import BoundStatement
    from uql.compiler.cost import Quote
    from uql.compiler.physical import Block, PhysicalPlan
    from uql.compiler.syntax import Query, Statement
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Provider
    from uql.result import Outcome, Result
    from uql.sampling.base import Estimate

T = TypeVar("T")
MADE_BY_TO = "uql: made by TO"  # starts the comment of tables that TO made: those it may replace
CALLS_AGGREGATE, CALLS_ROWS = 128, 256


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
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------------------ session
    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what `uql.connect` opened; a connection given to `uql.attach` stays open."""
        self._duck.close()

    def on_event(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Calls `listener` with every event of this connection's queries; the function returned ends it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

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
    def uql(self, text: str, **parameters: Any) -> Result:
        """A UQL statement, or several with `;` between them; the last one's result.

        A query runs when its result is first looked at; a statement that changes something (TO, CREATE, INSERT, COPY, SET) runs
        at once, and so do all but the last of several.

        Args:
            text: the statement. Data frames of the caller may be named in FROM.
            parameters: values of `$name`; `uql.sem("…")` for a quoted text.
        Raises: UQLSyntaxError, BindError, ConfigError, DataError at once; ModelError when it runs.
        """
        return self._script(text, parameters, sys._getframe(1))

    def _script(self, text: str, parameters: Mapping[str, Any], frame: FrameType | None) -> Result:
        from uql.compiler.parser import parse_script

        if not isinstance(text, str):
            raise UQLSyntaxError(f"a statement is a text, not {type(text).__name__}")
        frames = _frames(frame)
        pieces = parse_script(text)
        if not pieces:
            raise UQLSyntaxError("there is no statement in the text", text=text, start=0, end=1)
        result: Result | None = None
        for i, (piece, source) in enumerate(pieces):
            result = self._statement(piece, source, parameters, frames)
            if i < len(pieces) - 1:
                result.run()
        assert result is not None
        return result

    def _statement(
        self, piece: Statement | UQLSyntaxError, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]
    ) -> Result:
        from uql.compiler.syntax import CopyQuery, CreateTable, Explain, Insert, SetOption

        if isinstance(piece, UQLSyntaxError):
            return self._duckdb_own(piece, source)
        if isinstance(piece, SetOption):
            return self._set(piece.name, piece.value, source)
        if isinstance(piece, Explain):
            return self._explain(piece, source, parameters, frames)
        if isinstance(piece, CreateTable | Insert | CopyQuery):
            return self._write(piece, source, parameters, frames)
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
        from uql.compiler.planner import plan
        from uql.result import Result

        settings = self._settings.with_values(**dict(bound.options))
        try:
            physical = plan(bound.query, settings.disabled_rules)
        except UQLError as error:
            raise error.at(source) from None
        return Result(
            lambda: self._run(bound, physical, settings),
            lambda: self._explained(bound, physical, settings),
            lambda: self._quoted(physical, settings),
            source,
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

    async def _execute(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Outcome:
        from uql.engine import execute, has_estimates
        from uql.result import Outcome

        async def work(ctx: Context) -> tuple[Output, Context]:
            ctx.warnings += bound.warnings
            ctx.based_on += dict.fromkeys(has_estimates(bound.query))
            return await execute(plan, ctx), ctx

        (output, ctx), gate = await self._in_context(bound.text, settings, _limit(plan, settings), work)
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
        )
        if bound.to is not None:
            self._store(bound.to, outcome, bound)
        return outcome

    def _estimated(self, name: str, estimate: Estimate) -> None:
        self._emit(EstimateEvent(name, estimate))

    def _emit(self, event: Any) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    # ------------------------------------------------------------------------------------------------- explain, quote
    def _price(
        self, settings: Settings, calls: int | None, share: tuple[float, float, float] | None = None
    ) -> Callable[[Block], Quote]:
        from uql.compiler.bound import BoundItem, BoundSelect
        from uql.compiler.cost import SELECTIVITY, block_quote
        from uql.compiler.physical import Stage
        from uql.compiler.sql import query_sql, render
        from uql.compiler.syntax import Call, Star
        from uql.engine import fields_of

        def price(block: Block) -> Quote:
            candidates = 0.0
            if not block.derived and not block.nested and block.outer_join is None:
                count = BoundSelect(
                    (BoundItem(Call("count", (Star(),)), "n", "BIGINT"),), block.source, block.pushed, aggregated=True
                )
                row = self._duck.execute(render(query_sql(count))).fetchone()
                candidates = float(row[0]) if row else 0.0
            fields = fields_of(block)
            stages = (*block.filter_stages, *block.row_stages, *block.late_stages)
            stages += tuple(Stage((c,)) for c in block.groups)
            chars = {s: sum(fields[c].mean_chars for c in s.reads if c in fields) for s in stages}
            return block_quote(block, int(candidates), calls, chars, share or SELECTIVITY)

        return price

    def _quoted(self, plan: PhysicalPlan, settings: Settings) -> Quote:
        from uql.compiler.explain import total

        return total(plan, self._price(settings, _limit(plan, settings)))

    def _explained(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> str:
        from uql.compiler.explain import explain

        calls = _calls(bound, settings)
        return explain(bound, plan, self._price(settings, calls), calls)

    def _explain(self, piece: Any, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        """EXPLAIN: the plan as rows of text. ANALYZE runs the query and adds what happened; SAMPLE n pays for n rows."""
        from uql.result import Result

        bound = self._bind(piece.statement, source, parameters, frames)
        inner = self._result(bound, source)

        def run() -> Outcome:
            if piece.mode == "SAMPLE":
                return self._sampled(bound, piece.sample)
            lines = inner.explain().splitlines()
            outcome = None
            if piece.mode == "ANALYZE":
                outcome = inner.run()
                cost, quote = outcome.cost, inner.quote()
                ratio = f"{cost.calls / quote.calls.expected:.2f}" if quote.calls.expected else "–"
                lines += [
                    "",
                    f"Measured: {cost.calls:,} calls ({ratio} × expected), {cost.cached:,} from the ledger, "
                    f"{cost.input_tokens:,} input and {cost.output_tokens:,} output tokens, {cost.seconds:.1f} s; "
                    f"{outcome.table.num_rows:,} rows",
                ]
                lines += [f"Note: {note}" for note in outcome.notes]
            return _text_outcome(lines, outcome)

        return Result(run, inner.explain, inner.quote, source)

    def _sampled(self, bound: BoundStatement, n: int) -> Outcome:
        """EXPLAIN SAMPLE n: the plan priced with the share of rows that pass among n random ones, which are paid for."""
        from uql.compiler.explain import explain
        from uql.compiler.physical import Block
        from uql.compiler.planner import plan
        from uql.engine import pilot
        from uql.sampling.intervals import clopper_pearson

        settings = self._settings.with_values(**dict(bound.options))
        physical = plan(bound.query, settings.disabled_rules)
        calls = _limit(physical, settings)
        if not isinstance(physical, Block):
            return _text_outcome(explain(bound, physical, self._price(settings, calls), calls).splitlines(), None)

        async def ask(ctx: Context) -> tuple[int, int]:
            return await pilot(physical, ctx, n)

        with self._lock:
            (asked, passed), gate = _await(self._in_context(bound.text, settings, calls, ask))
        low, high = clopper_pearson(passed, asked, settings.confidence) if asked else (0.0, 1.0)
        share = (low, passed / asked if asked else 1 / 3, high)
        lines = explain(bound, physical, self._price(settings, calls, share), calls).splitlines()
        lines += [
            "",
            f"Sample: {asked:,} rows asked, {passed:,} pass ({settings.confidence:.0%}: {low:.1%}–{high:.1%}); "
            f"{gate.cost.calls:,} calls, {gate.cost.cached:,} from the ledger",
        ]
        outcome = _text_outcome(lines, None)
        outcome.cost = gate.cost
        return outcome

    async def _in_context(
        self, text: str, settings: Settings, calls: int | None, work: Callable[[Context], Awaitable[T]]
    ) -> tuple[T, Gate]:
        """Does some work with a gate and a context of its own, and closes them."""
        import numpy as np

        from uql.kernels.base import Context
        from uql.kernels.duck import Duck
        from uql.llm.gate import Gate, Run

        self._emit(PlanEvent(calls, settings.max_cost))
        duck = Duck(self._duck)
        run = Run(uuid.uuid4().hex[:12], settings.seed, text)
        gate = Gate.open(settings, run=run, model=self._model, calls=calls)
        try:
            gate.subscribe(self._emit)
            rng = np.random.default_rng(settings.seed)
            return await work(Context(gate, settings, rng, duck, on_estimate=self._estimated)), gate
        finally:
            duck.close()
            await gate.aclose()

    # -------------------------------------------------------------------------------------------- other statements
    def _set(self, name: str, value: Any, source: str) -> Result:
        from uql.result import Result

        try:
            if value is None:
                self._settings = self._settings.with_values(**{name: getattr(Settings(), name, None)})
            else:
                self._settings = self._settings.with_values(**{name: value})
        except ConfigError as error:
            place = source.lower().find(name.lower())
            error.start, error.end = place, place + len(name)
            raise error.at(source) from None
        empty = _text_outcome([], None)
        return Result(lambda: empty, lambda: "SET", _free, source)

    def _write(self, piece: Any, source: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        """CREATE TABLE … AS, INSERT INTO … and COPY (…) TO: the query runs, DuckDB writes its rows."""
        from uql.compiler.syntax import CreateTable, Insert
        from uql.kernels.duck import Duck, quote

        bound = self._bind(piece.query, source, parameters, frames)
        result = self._result(bound, source)
        outcome = result.run()
        duck = Duck(self._duck)
        rows = {"__rows": outcome.table}
        try:
            if isinstance(piece, CreateTable):
                how = "OR REPLACE " if piece.replace else ""
                how += "TEMP " if piece.temporary else ""
                exists = "IF NOT EXISTS " if piece.if_not_exists else ""
                name = ".".join(quote(p) for p in piece.name)
                duck.execute(f"CREATE {how}TABLE {exists}{name} AS SELECT * FROM __rows", rows)
            elif isinstance(piece, Insert):
                name = ".".join(quote(p) for p in piece.name)
                columns = f" ({', '.join(quote(c) for c in piece.columns)})" if piece.columns else ""
                duck.execute(f"INSERT INTO {name}{columns} SELECT * FROM __rows", rows)
            else:
                path = piece.path.replace("'", "''")
                options = f" {piece.options}" if piece.options else ""
                duck.execute(f"COPY (SELECT * FROM __rows) TO '{path}'{options}", rows)
        except duckdb.Error as error:
            raise DataError(f"DuckDB: {str(error).strip().splitlines()[0]}", code="UQL509") from error
        return result

    def _duckdb_own(self, error: UQLSyntaxError, source: str) -> Result:
        """What UQL's grammar does not have, DuckDB may: unchanged, where no quoted text in it is free text."""
        from uql.compiler.cost import FREE
        from uql.result import Result

        if _has_free_text(source):
            raise error.at(source)
        try:
            relation = self._duck.sql(source)
            table = None
            if relation is not None:
                table = (
                    relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
                )
        except duckdb.Error as other:
            said = str(other).strip().splitlines()[0]
            message = f"{error.message}; and DuckDB says: {said}"
            raise UQLSyntaxError(
                message, code=error.code, text=source, start=error.start, end=error.end, help=error.help
            ) from None
        outcome = _text_outcome([], None)
        if table is not None and relation is not None:
            outcome.table, outcome.types = table, [str(t) for t in relation.types]
        return Result(lambda: outcome, lambda: "DuckDB", lambda: FREE, source)

    def _store(self, name: str, outcome: Outcome, bound: BoundStatement) -> None:
        """TO name: the rows as a table; an estimated column x is stored with x_low and x_high."""
        import pyarrow as pa

        from uql.compiler.sql import literal
        from uql.kernels.duck import Duck, quote

        found = self._duck.execute(
            "SELECT comment, temporary FROM duckdb_tables() WHERE lower(table_name) = lower(?)", [name]
        ).fetchone()
        if found is not None and not str(found[0] or "").startswith(MADE_BY_TO):
            raise BindError(
                f"there is a table {name} already, and TO did not make it", code="UQL203", help="choose another name"
            ).at(bound.text)
        table = outcome.table
        for column, estimates in outcome.estimates.items():
            values = estimates if isinstance(estimates, list) else [estimates]
            if all(e.exact for e in values):
                continue
            at = table.column_names.index(column) + 1
            low = pa.array([e.low for e in values], type=pa.float64())
            high = pa.array([e.high for e in values], type=pa.float64())
            table = table.add_column(at, f"{column}_low", low).add_column(at + 1, f"{column}_high", high)
        temp = "TEMP " if self._is_read_only() else ""
        duck = Duck(self._duck)
        duck.execute(f"CREATE OR REPLACE {temp}TABLE {quote(name)} AS SELECT * FROM __rows", {"__rows": table})
        how = "exact" if outcome.exact else "estimate"
        duck.execute(f"COMMENT ON TABLE {quote(name)} IS {literal(f'{MADE_BY_TO}, {how}')}")

    def _is_read_only(self) -> bool:
        row = self._duck.execute(
            "SELECT readonly FROM duckdb_databases() WHERE database_name = current_database()"
        ).fetchone()
        return bool(row and row[0])


# ------------------------------------------------------------------------------------------------------------- helpers
def _calls(bound: BoundStatement, settings: Settings) -> int | None:
    from uql.compiler.planner import plan

    return _limit(plan(bound.query, settings.disabled_rules), settings)


def _limit(plan: PhysicalPlan, settings: Settings) -> int | None:
    """The calls that a query may make: the setting, else 128 where it has aggregates only and 256 where not."""
    from uql.compiler.physical import Block

    if settings.exact or settings.budget == "all":
        return None
    if settings.budget is not None:
        return int(settings.budget)
    aggregates = isinstance(plan, Block) and plan.aggregated and not plan.derived
    return CALLS_AGGREGATE if aggregates else CALLS_ROWS


def _free() -> Quote:
    from uql.compiler.cost import FREE

    return FREE


def _text_outcome(lines: list[str], of: Outcome | None) -> Outcome:
    import pyarrow as pa

    from uql.llm.gate import Cost
    from uql.result import Outcome

    table = pa.table({"plan": pa.array(lines, type=pa.string())}) if lines else pa.table({})
    outcome = Outcome(table, ["VARCHAR"] * table.num_columns, {}, [], Cost())
    if of is not None:
        outcome.cost, outcome.errors, outcome.warnings = of.cost, of.errors, of.warnings
    return outcome


def _has_free_text(source: str) -> bool:
    """Does a double-quoted text of the statement hold white space? Then DuckDB would take it for a name."""
    from uql.compiler.lexer import quoted_texts

    return any(" " in text.strip() or "\n" in text for text in quoted_texts(source))


def _frames(frame: FrameType | None) -> Mapping[str, Any]:
    """The names that the caller can see, for data frames in FROM."""
    if frame is None:
        return {}
    return ChainMap(dict(frame.f_locals), frame.f_globals)


def _await(task: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, in a thread of its own where this one has a running loop already (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
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

    Args: as `connect`. Tables and views are those of the database; temporary ones of the connection are its own.
    """
    configured, given = _configured(model, ledger, concurrency, seed, settings)
    return Connection(connection.cursor(), configured, owned=False, model=given)


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
