"""LIMIT k on a small model: rows it is sure of, in place of the first k that it says yes to.

A small model's yes beside rows that nearly meet a condition is right of five in six, and its log-odds tell which: of 60 rows of five
conditions the first three with a yes were right of 0.84, and with up to four times as many more rows looked at, until k have log-odds of
1, 0.93; of five conditions never looked at before 0.87 and 0.96. A higher cut for every row gains nothing: it loses as many that are right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from uql.compiler.formula import Formula
from uql.compiler.physical import Block
from uql.compiler.virtual import Virtual
from uql.kernels import sem_filter
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.sampling.base import Floats

LOOKED_AT = 4  # times k: more rows at most
MOST_LOOKED_AT = 32
BATCH = 8

Propose = Callable[[int], Rids]
Tell = Callable[[Rids, Floats], Any]


async def surer(
    k: int,
    block: Block,
    relation: Relation,
    ctx: Context,
    propose: Propose,
    tell: Tell | None = None,
    reserved: int = 0,
) -> Rids | None:
    """The k rows that the model is surest of, of those asked and a few more; None where its yes is taken as it is.

    Args:
        propose: at most so many rows not asked yet, those first that are likeliest to pass.
        tell: what those answers are, 1, 0 or NaN.
        reserved: calls that what follows needs.
    """
    sure = (await ctx.gate.provider()).capabilities.sure_from
    formula, stages = block.filter.formula, block.filter.stages
    if sure is None or ctx.cascade is not None or formula is None or k == 0 or _certainty(formula, relation) is None:
        return None
    left, before = further(k), _passing(formula, relation)
    while True:
        certainty = _certainty(formula, relation)
        assert certainty is not None
        passing = _passing(formula, relation)
        if int((certainty[passing] >= sure).sum()) >= k:
            break
        room = ctx.room(reserved, len(stages))
        rids = propose(min(BATCH, left, k, left if room is None else room))
        if not len(rids):
            break
        left -= len(rids)
        await ctx.log_draw(f"search of {relation.source}", rids)
        truth = await sem_filter.truth(block.filter, rids, relation, ctx)
        if tell is not None:
            tell(rids, np.where(truth.complete, truth.answers, np.nan))
        if not truth.complete.all():
            break
    if len(passing) > len(before):
        ctx.notes.append(
            f"of {len(passing):,} rows with a yes the {min(k, len(passing)):,} that the model is surest of"
        )
    best = passing[np.argsort(-certainty[passing], kind="stable")][:k]
    return np.sort(best).astype(np.int64)


def further(k: int) -> int:
    """Rows that are looked at beyond those that LIMIT k needs, at most."""
    return min(LOOKED_AT * k, MOST_LOOKED_AT)


def unasked(block: Block, relation: Relation) -> Propose:
    """The rows of which nothing was asked, in their order."""

    def propose(size: int) -> Rids:
        asked_mask = np.logical_or.reduce([relation[column].asked_mask for column in block.filter.columns])
        return np.flatnonzero(~asked_mask)[:size].astype(np.int64)

    return propose


def _certainty(formula: Formula, relation: Relation) -> Floats | None:
    """(N,) the chance that a row passes, by its least likely condition; None where the formula is not a conjunction of conditions."""
    if any(part != "AND" and not isinstance(part, int) for part in formula.program):
        return None
    chance = np.ones(relation.n)
    for leaf in formula.leaves:
        column = leaf.expr.column if isinstance(leaf.expr, Virtual) else None
        if column is None or not column.is_condition:
            return None
        p = relation[column].probabilities.astype(np.float64)
        chance = np.minimum(chance, np.where(np.isnan(p), 1.0, p))
    return chance


def _passing(formula: Formula, relation: Relation) -> Rids:
    """The rows all of whose conditions were asked and are true."""
    yes = np.ones(relation.n, dtype=bool)
    for leaf in formula.leaves:
        for column in leaf.columns:
            values = relation[column].values == True  # noqa: E712 - an array of objects
            yes &= relation[column].asked_mask & np.array(values, dtype=bool)
    return np.flatnonzero(yes).astype(np.int64)
