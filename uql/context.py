"""The context of one run: its gate, its memory, its model, and what it closes when it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from uql.running import PlanEvent
from uql.runs import Said
from uql.statements import is_read_only

if TYPE_CHECKING:
    from uql.connection import Connection
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.settings import Settings

T = TypeVar("T")


async def in_context(
    con: Connection,
    text: str,
    settings: Settings,
    calls: int | None,
    work: Callable[[Context, Gate], Awaitable[T]],
    semantic: bool = True,
    shared: Gate | None = None,
    said: Said | None = None,
) -> tuple[T, Gate]:
    """Does some work with a context of its own and a gate, `shared` or of its own too, and closes what it made."""
    import numpy as np

    from uql.compiler.cost import Unit
    from uql.kernels.base import Context
    from uql.kernels.duck import Duck
    from uql.llm.gate import Gate
    from uql.pricing import cascade_of, prompt_of, rows_of, unit_of
    from uql.statistics import Statistics

    con._emit(PlanEvent(calls, settings.max_cost))
    duck = Duck(con._catalog.cursor, con._media(settings))
    said = said or Said()
    memory = Statistics.of(said.before.rates) if said.before else con._foresight.remembered(settings)
    run = said.run(
        text,
        settings,
        memory.about(text),
        con._database() if semantic else None,
        is_read_only(con._catalog.cursor),
    )
    budget = said.budget(settings, calls)
    gate = shared or Gate.open(settings, run=run, model=con._model or con._large(settings), calls=calls, budget=budget)
    try:
        if shared is None:
            gate.subscribe(con._emit)
            gate.on_announce(con._announced)
        con._gates.append(gate)
        if semantic and gate.draws.kept:
            con.last_run = gate.run.id
        unit, rows_at_once = Unit(), 1
        if semantic:  # a model that cannot be had is said before any other work
            provider = await gate.provider()
            unit, rows_at_once = unit_of(provider.price), rows_of(provider, settings)
            gate.subscribe(memory.observe)
        rng = np.random.default_rng(settings.seed)
        ctx = Context(
            gate,
            settings,
            rng,
            duck,
            memory=memory,
            unit=unit,
            rows_at_once=rows_at_once,
            prompt=prompt_of(con._model, settings),
            on_estimate=con._estimated,
            features=con._vectors.of(settings, con._database()) if semantic else None,
            draws=gate.draws,
            cascade=cascade_of(settings, con._models) if semantic else None,
        )
        if (
            rows_at_once == 1
            and isinstance(settings.rows_per_request, int)
            and settings.rows_per_request > 1
            and semantic
        ):
            ctx.notes.append(f"rows_per_request = {settings.rows_per_request}: {provider.name} is asked row by row")
        done = await work(ctx, gate)
        gate.unfinished = gate.unfinished or ctx.partial
        if ctx.cascade is not None:
            ctx.notes += ctx.cascade.notes()
        if said.before is None:
            memory.save(gate.ledger)
        return done, gate
    finally:
        if gate in con._gates:
            con._gates.remove(gate)
        duck.close()
        if shared is None:
            await gate.aclose()
