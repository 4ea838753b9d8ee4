"""The context of one run: its gate, its memory, its model, and what it closes when it ends."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from uql.base.errors import DataError
from uql.session.events import EstimateEvent, ForetoldEvent, PlanEvent
from uql.session.resume import StatementInput

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.session.replay import Drawing
    from uql.session.session import Session

T = TypeVar("T")


async def in_context(
    session: Session,
    text: str,
    settings: Settings,
    calls: int | None,
    work: Callable[[Context, Gate], Awaitable[T]],
    semantic: bool = True,
    shared: Gate | None = None,
    statement: StatementInput | None = None,
    drawing: Drawing | None = None,
) -> tuple[T, Gate]:
    """Does some work with a context of its own and a gate, and closes what it made.

    Args:
        calls: its budget; None: without limit.
        semantic: may it ask a model?
        shared: the gate of a run around it; None: a gate of its own.
        statement: of a resumed run, the statement and the run that it continues.
        drawing: what the run is known by, where the same statement takes up its draws.
    """
    import numpy as np

    from uql.features.similarity import near
    from uql.kernels.base import Context
    from uql.llm.budget import Budget, Limits
    from uql.llm.gate import Gate
    from uql.pricing.explanation import scores_usd
    from uql.pricing.learned import Statistics
    from uql.pricing.model_prices import cascade_of
    from uql.session import replay as replays

    statement = statement or StatementInput()
    # a pilot foretells how many calls that takes
    ends_by_error = settings.error is not None and settings.budget is None
    session.emit(PlanEvent(None if ends_by_error else calls, settings.max_cost))
    async with AsyncExitStack() as closing:
        ledger = None if shared is not None else closing.enter_context(session.ledgers.open(settings.ledger))
        if shared is None:
            closing.enter_context(session.catalog.own_orders())
        database = session.database()
        duck = session.kernel_duck(session.media(settings, database))
        memory = (
            Statistics.of(statement.before.rates)
            if statement.before
            else session.foresight.remembered(settings, database)
        )
        id, replay, rates = uuid.uuid4().hex[:12], None, memory.about(text)
        if drawing is not None and ledger is not None and statement.before is None:
            replay = replays.take(drawing, id, calls, rates, ledger, duck, fresh=settings.fresh)
            if replay.root == id and statement.retries and not settings.fresh:  # an earlier run with a larger budget
                replays.forget(id, ledger)
                raise DataError(
                    "the rows are not those that the run began with",
                    code="UQL413",
                    help="run the statement anew: every answer that still fits is in the ledger",
                )
            if replay.root != id:
                own = Limits(calls, settings.max_tokens, settings.max_cost)
                replay = replace(replay, new=own if replay.done else replays.left(replay, own, ledger))
                described = memory.descriptions  # made by the run that drew first: the texts mean the same again
                memory = Statistics.of(replay.rates)
                memory.descriptions = described
                rates = memory.about(text)
        path = database.path if semantic else None
        run = statement.run(text, settings, rates, path, database.read_only, id, replay)
        if statement.before is not None and statement.retries and not statement.changes and ledger is not None:
            until, ended_by = replays.ended(statement.before.sitting, ledger)
            run = replace(run, until=until, ended_by=ended_by)
        budget = statement.budget(settings, calls)
        if replay is not None:
            budget = Budget(
                calls=replay.calls,
                tokens=settings.max_tokens,
                usd=replay.usd,
                seconds=settings.max_seconds,
                steps=replay.steps,
                new=replay.new,
            )
        model = session.given(settings) or session.large(settings)
        gate = shared or Gate.open(settings, run=run, model=model, ledger=ledger, calls=calls, budget=budget)
        if shared is None:
            gate.budget.caps, gate.sender.near = session.caps, near
        drew = False

        def end() -> None:
            if gate in session.gates:
                session.gates.remove(gate)
            duck.close()
            if replay is not None and ledger is not None and not (drew or gate.cost.calls or gate.cost.cached):
                replays.forget(id, ledger)  # refused before anything was sent

        if shared is None:
            await closing.enter_async_context(gate)
            session.hear(gate)
        closing.callback(end)
        session.opened(gate)
        if semantic and gate.draws.persistent:
            session.last_run = gate.run.id
        plans = None
        if semantic:  # a model that is not available is an error before any other work
            provider = await gate.provider()
            limit = calls if shared is None else gate.calls_left
            if replay is not None and replay.steps:  # the plan of the run whose draws go on
                limit = replay.steps[0]
            plans = session.foresight.knowledge(settings, limit, memory, provider)
            gate.listeners.append(memory.observe)
        ctx = Context(
            gate,
            settings,
            np.random.default_rng(settings.seed),
            duck,
            memory=memory,
            plans=plans,
            on_estimate=(lambda name, estimate: session.emit(EstimateEvent(name, estimate)))
            if session.listeners
            else None,
            on_budget=lambda calls: session.emit(ForetoldEvent(calls)),
            features=session.vectors.of(settings, session.home(database)) if semantic else None,
            draws=gate.draws,
            cascade=cascade_of(settings, session.models) if semantic else None,
        )
        if plans is not None:
            ctx.scores_usd = partial(scores_usd, knowledge=plans)
            row_by_row, rows = plans.rows_at_once == 1, settings.rows_per_request
            if row_by_row and isinstance(rows, int) and rows > 1:
                ctx.notes.append(f"rows_per_request = {rows}: {provider.name} is asked row by row")
            elif plans.rows_left_aside is not None:
                ctx.notes.append(plans.rows_left_aside)
        done = await work(ctx, gate)
        drew = True
        if replay is not None and replay.done and gate.budget.exhausted is None:
            # the limit may have refused the last try of a row, which is not made again
            gate.budget.exhausted = run.ended_by or None
        sitting = replay.sitting if replay is not None else statement.before.sitting if statement.before else ""
        if sitting and not gate.interrupted and gate.budget.exhausted not in ("seconds", "cap"):
            reached = gate.budget.exhausted if gate.budget.exhausted != "calls" else None
            was_first = replays.end(sitting, reached or "", gate.ledger, anew=statement.retries)
            gate.met_others |= not was_first and replay is not None and not replay.done
        gate.unfinished = gate.unfinished or ctx.partial
        if ctx.cascade is not None:
            ctx.notes += ctx.cascade.notes()
        if statement.before is None and (replay is None or replay.root == id):
            memory.save(gate.ledger)
        if drawing is not None and drawing.grows and ledger is not None and gate.budget.calls is not None:
            replays.grew(id, gate.budget.calls, ledger)
        return done, gate
