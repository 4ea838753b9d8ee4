"""The pilot: random rows that are asked every question of a WHERE before the way to run it is settled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uql.compiler.orders import imagined
from uql.compiler.physical import Block, stages
from uql.kernels import sem_filter
from uql.kernels.base import Context
from uql.kernels.relation import Relation

SEEDED = 32  # rows that rates known from other conditions stand for


async def after_pilot(block: Block, original: Block, relation: Relation, ctx: Context) -> Block:
    """The block as it is run: the one chosen before the run, but where the choice depends on unknown selectivities.

    Then random rows are asked every question of the WHERE first, and the choice is made again with their answers, which are
    kept and used.

    Args:
        block: with its inner queries answered.
        original: before they were, as the plans know it.
        relation: its candidate rows.
        ctx: of the run.
    """
    _recall(block, relation, ctx)
    rows = ctx.plans.pilot(original, relation.n) if ctx.plans is not None else 0
    if ctx.plans is None or not rows or not ctx.purse.fits(relation.n):
        return block
    assert block.filter.formula is not None
    pilot_stages = stages(block.filter.columns)
    sample = np.random.default_rng([ctx.settings.seed, relation.n]).choice(relation.n, rows, replace=False)
    await sem_filter.answers(
        replace(block.filter, stages=pilot_stages), np.sort(sample).astype(np.int64), relation, ctx
    )
    state = relation.filters.of(block.filter.formula)
    state.order = (0, ())
    return ctx.plans.settled(block, original, relation.n, state.profile)


def _recall(block: Block, relation: Relation, ctx: Context) -> None:
    """Takes what earlier queries learned of the terms of WHERE into the relation."""
    formula = block.filter.formula
    if formula is None or ctx.memory is None:
        return
    rates = block.filter.rates(ctx.memory.rates)
    before = ctx.memory.answers(block.filter.name)
    if before is None and rates is not None:
        profile = imagined(rates)
        before = profile[:, :: max(1, profile.shape[1] // SEEDED)]
    if before is not None and before.shape[0] == len(formula.leaves):
        relation.filters.of(formula).profile = before
