"""The context of one run: its gate, its memory, its model, and what it closes when it ends."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from uql.session.events import PlanEvent
from uql.session.read_only import is_read_only
from uql.session.resume import Said

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.llm.ledger import Ledger
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
    said: Said | None = None,
    drawing: Drawing | None = None,
) -> tuple[T, Gate]:
    """Does some work with a context of its own and a gate, `shared` or of its own too, and closes what it made.

    `drawing`: what the run is known by, where the same statement takes up its draws.
    """
    with ExitStack() as stack:
        ledger = None if shared is not None else stack.enter_context(session.ledgers.open(settings.ledger))
        return await _in_context(
            session, text, settings, calls, work, semantic, shared, ledger, said or Said(), drawing
        )


async def _in_context(
    session: Session,
    text: str,
    settings: Settings,
    calls: int | None,
    work: Callable[[Context, Gate], Awaitable[T]],
    semantic: bool,
    shared: Gate | None,
    ledger: Ledger | None,
    said: Said,
    drawing: Drawing | None,
) -> tuple[T, Gate]:
    import numpy as np

    from uql.kernels.base import Context
    from uql.kernels.duck import Duck
    from uql.llm.budget import Budget
    from uql.llm.gate import Gate
    from uql.pricing.learned import Statistics
    from uql.pricing.model_prices import cascade_of
    from uql.session import replay as replays

    session.emit(PlanEvent(calls, settings.max_cost))
    duck = Duck(session.catalog.cursor, session.media(settings))
    memory = Statistics.of(said.before.rates) if said.before else session.foresight.remembered(settings)
    id, replay = uuid.uuid4().hex[:12], None
    if drawing is not None and ledger is not None and said.before is None:
        rates = memory.about(text)
        replay = replays.take(drawing, id, calls, rates, ledger, duck, fresh=settings.fresh)
        if replay.root != id:
            memory = Statistics.of(replay.rates)
    run = said.run(
        text,
        settings,
        memory.about(text),
        session.database() if semantic else None,
        is_read_only(session.catalog.cursor),
        id,
        replay,
    )
    budget = said.budget(settings, calls)
    if replay is not None:
        budget = Budget(
            calls=replay.calls,
            tokens=settings.max_tokens,
            usd=settings.max_cost,
            seconds=settings.max_seconds,
            steps=replay.steps,
            new=replay.new,
        )
    model = session.model or session.large(settings)
    gate = shared or Gate.open(settings, run=run, model=model, ledger=ledger, calls=calls, budget=budget)
    drew = False
    try:
        if shared is None:
            gate.subscribe(session.emit)
            gate.on_announce(session.announce)
        session.gates.append(gate)
        if semantic and gate.draws.kept:
            session.last_run = gate.run.id
        plans = None
        if semantic:  # a model that is not available is an error before any other work
            provider = await gate.provider()
            plans = session.foresight.knowledge(
                settings, calls if shared is None else gate.calls_left, memory, provider
            )
            gate.subscribe(memory.observe)
        rng = np.random.default_rng(settings.seed)
        ctx = Context(
            gate,
            settings,
            rng,
            duck,
            memory=memory,
            plans=plans,
            on_estimate=session.estimated,
            on_budget=session.forecast,
            features=session.vectors.of(settings, session.database()) if semantic else None,
            draws=gate.draws,
            cascade=cascade_of(settings, session.models) if semantic else None,
        )
        if plans is not None:
            alone, rows = plans.rows_at_once == 1, settings.rows_per_request
            if alone and isinstance(rows, int) and rows > 1:
                ctx.notes.append(f"rows_per_request = {rows}: {provider.name} is asked row by row")
            elif plans.rows_left_aside is not None:
                ctx.notes.append(plans.rows_left_aside)
        done = await work(ctx, gate)
        drew = True
        gate.unfinished = gate.unfinished or ctx.partial
        if ctx.cascade is not None:
            ctx.notes += ctx.cascade.notes()
        if said.before is None and (replay is None or replay.root == id):
            memory.save(gate.ledger)
        if drawing is not None and drawing.grows and ledger is not None and gate.budget.calls is not None:
            replays.grew(id, gate.budget.calls, ledger)
        return done, gate
    finally:
        if gate in session.gates:
            session.gates.remove(gate)
        duck.close()
        if replay is not None and ledger is not None and not (drew or gate.cost.calls or gate.cost.cached):
            replays.forget(id, ledger)  # refused before anything was sent
        if shared is None:
            await gate.aclose()
