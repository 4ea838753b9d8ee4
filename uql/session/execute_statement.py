"""One bound query from its plan to its outcome, and the prepared statement that does this when its rows are wanted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import duckdb

from uql.base.errors import BindError, UQLError
from uql.base.process_wide import one_thread
from uql.compiler.parser import parse
from uql.compiler.subqueries import estimated_sources
from uql.compiler.syntax import Select, Union
from uql.engine.outcome import Outcome
from uql.engine.stored_estimates import widen_estimates
from uql.session.events import PlanEvent, Watcher, finished
from uql.session.prepared import PreparedStatement
from uql.session.read_only import check_sql_reads, reading
from uql.session.resume import Before, StatementInput, find
from uql.session.statements import refused, store

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.compiler.bound import BoundStatement
    from uql.compiler.physical import PhysicalPlan
    from uql.engine.provenance import Trace
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.llm.gate import Gate
    from uql.session.session import Session


def prepare(session: Session, bound: BoundStatement, source: str) -> PreparedStatement:
    """A query that can be run, explained and priced.

    Args:
        source: its text.
    Raises: PlanError where there is no legal plan.
    """
    from uql.engine import plain_sql as concrete

    current = session.statement
    settings = session.settings.with_values(**{**dict(bound.options), **current.changes})
    checked = bound.semantic or settings.disabled_rules
    plan = session.plan(bound, settings) if checked else None  # what has no legal plan is said at once

    def work(statement: StatementInput) -> Outcome:
        if plan is not None and bound.semantic:
            return finished(execute(session, bound, plan, settings, statement=statement))
        if bound.sql is not None:
            check_sql_reads(session.catalog, bound.sql)
        session.emit(PlanEvent(None))  # DuckDB's own: nothing else of the engine is loaded for it
        with reading(session.catalog.cursor, session.catalog.read_only):
            called = session.catalog.estimates_called(bound.text)
            plain_outcome = concrete.outcome(bound, session.kernel_duck(), settings.confidence, called)
        return stored(bound, plain_outcome, session)

    def before(run: str) -> Before:
        with session.ledgers.open(settings.ledger) as ledger:
            return find(run, ledger, trust=True)  # of it the draws alone are read

    def prepared(statement: StatementInput) -> PreparedStatement:
        return PreparedStatement(
            lambda: session.run_locked(bound.text, lambda: work(statement), settings, lambda: bound),
            lambda: session.explained(bound, settings),
            lambda: session.quoted(bound, settings),
            source,
            session.store(source),
            lambda run: prepared(StatementInput(statement.text, statement.parameters, before(run), retries=True)),
        )

    return prepared(current)


async def execute(
    session: Session,
    bound: BoundStatement,
    plan: PhysicalPlan,
    settings: Settings,
    shared: Gate | None = None,
    statement: StatementInput | None = None,
    watcher: Watcher | None = None,
) -> Outcome:
    """The outcome of a query, run in the event loop of the caller.

    Args:
        shared: a gate of the caller's, whose budget limits the calls; None: one of its own.
        statement: how the run was asked for: new, or a continuation; None: new.
        watcher: hears of groups and rows as they come.
    Raises: BudgetError, ModelError and what DuckDB raises.
    """
    from uql.compiler.media import check_media
    from uql.engine import execute as engine
    from uql.engine.provenance import trace
    from uql.kernels.estimates.sample import method_of
    from uql.llm.budget import LIMITS
    from uql.session.replay import replayed
    from uql.session.run_context import in_context

    async def work(ctx: Context, gate: Gate) -> tuple[Output, Context, Trace | None]:
        ctx.warnings += bound.warnings
        ctx.based_on += dict.fromkeys([*estimated_sources(bound.query), *session.catalog.estimates_called(bound.text)])
        if bound.semantic:
            method_of(ctx)  # one that does not exist is said before anything is asked
            model = await gate.provider()
            check_media(
                bound.query,
                model.name,
                images=model.capabilities.images,
                audio=model.capabilities.audio if settings.listen else None,
            )
        if watcher is not None:
            watcher.begins(ctx)
        with one_thread():
            output = await engine.execute(plan if ctx.plans is None else ctx.plans.chosen(plan)[0], ctx)
        if watcher is not None:
            await watcher.ended(output, ctx)
        if not bound.semantic:
            return output, ctx, None
        return output, ctx, await trace(output, ctx, gate, session.ledgers, bound.query.items)

    calls = session.foresight.limit(plan, settings)
    drawing = session.drawing(bound, plan, settings) if shared is None else None
    context = partial(
        in_context, session, bound.text, settings, calls, work, bound.semantic, shared, statement, drawing
    )
    (output, ctx, provenance), gate = await context()
    last = gate
    if gate.met_others and watcher is None and not gate.interrupted and gate.budget.exhausted not in ("seconds", "cap"):
        # the same statement runs elsewhere: all say what the ledger has of the one that ended first
        (output, ctx, provenance), last = await context()
    if gate.run.root and not gate.run.again and gate.run.started is not None:
        ctx.notes.append(replayed(gate.run.root, gate.run.started, gate.cost.calls, again=gate.run.ended))
    is_partial = ctx.partial or last.interrupted or last.budget.exhausted in LIMITS
    outcome = Outcome(
        output.table,
        [item.type for item in bound.query.items],
        widen_estimates(bound.query, output.estimates or {}) if ctx.based_on else dict(output.estimates or {}),
        ctx.errors,
        gate.cost,
        [*ctx.warnings, *gate.warnings],
        ctx.notes,
        ctx.based_on,
        output.exact and not is_partial and not ctx.based_on and not ctx.errors,
        is_partial,
        _positions(output),
        provenance,
        gate.run.id if gate.draws.persistent and bound.semantic else "",
    )
    return stored(bound, outcome, session)


def stored(bound: BoundStatement, outcome: Outcome, session: Session) -> Outcome:
    """Keeps the rows as the table that TO names. Raises BindError (UQL203) for a table that TO did not make.

    Args:
        bound: names the table.
        outcome: of its query.
    """
    if bound.to is not None:
        store(session.catalog.cursor, bound.to, outcome, bound.text)
    return outcome


async def outcome(session: Session, text: str, gate: Gate | None = None) -> Outcome:
    """Runs one query in the event loop of the caller, through a gate of the caller's where one is given.

    Its calls are then limited by that gate's budget alone. Raises as `uql`, at once.

    Args:
        gate: its budget limits the calls; None: one of its own.
    """
    piece = parse(text)
    if not isinstance(piece, Select | Union):
        raise BindError("this statement is not a query", code="UQL212").at(text)
    bound = session.bind(piece, text, {}, {})
    settings = session.settings.with_values(**dict(bound.options))
    try:
        return await execute(session, bound, session.plan(bound, settings), settings, gate)
    except UQLError as error:
        raise error.at(text) from None
    except duckdb.Error as error:
        raise refused(error) from error


def _positions(output: Output) -> list[int]:
    """Where the rows that were returned unasked stand in the output."""
    if output.unverified is None or output.rids is None:
        return []
    unasked = set(output.unverified.tolist())
    return [i for i, rid in enumerate(output.rids.tolist()) if rid in unasked]
