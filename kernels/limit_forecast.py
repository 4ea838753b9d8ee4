"""How many rows a search under LIMIT will ask, told from its first rows: EXPLAIN SAMPLE asks those that the query would ask first.

What is left is told by running the search itself: a surrogate fitted on the rows asked gives each other row a chance to pass, and in
worlds drawn from these chances it goes on until LIMIT is reached. Where nothing guides a search, chance decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uql.compiler.cost import Range
from uql.compiler.formula import OPEN, TRUE, Masks
from uql.compiler.physical import Block
from uql.compiler.syntax import Column
from uql.kernels import sem_filter
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.kernels.sampling_inputs import Guide
from uql.kernels.select import batch_size, limit_search, retrieval
from uql.sampling import surrogate
from uql.sampling.base import Flags, Floats
from uql.sampling.intervals import clopper_pearson

WORLDS, LEAST_WORLDS = 16, 4  # in which the search is run
MOST_ASKED = 1500  # rows that the searches of all worlds are expected to ask
LEAST_SEEN = 2  # rows that pass, and that do not; below, there is nothing to learn from
MOST_ROWS = 200_000  # candidates; beyond, chance alone is priced
ENDS = (0.05, 0.95)  # of the worlds: low and high


@dataclass(frozen=True, slots=True)
class Begun:
    """The first rows of a search for the k rows of LIMIT, every question of each answered.

    Attributes:
        rids: (m,) in the order in which they were asked.
        answers: (leaves, m) of every term.
        until: rows asked by the whole search.
        copies: of the rows asked that show the same, by what a stage shows: these are one call.
    """

    rids: Rids
    answers: Masks
    until: Range
    copies: dict[tuple[Column, ...], float]


async def begun(k: int, n: int, block: Block, relation: Relation, ctx: Context) -> Begun:
    """Asks the first n rows of the search that the query would make, or fewer where k of them pass before.

    Args:
        k: rows that LIMIT and OFFSET want to pass.
        n: rows asked at most.
        block: without aggregates, with a WHERE that asks a model.
    """
    assert block.filter.formula is not None
    search = None if block.order.keys else await limit_search(k, block, relation, ctx)
    sampler = None
    rids: Rids = np.zeros(0, dtype=np.int64)
    passes: Floats = np.zeros(0)
    if search is not None:
        sampler = search.sampler
        if search.known_rows is not None:
            rids, passes = search.known_rows[0], search.known_rows[1].answers
    answers: Masks = np.zeros((len(block.filter.formula.leaves), 0), dtype=np.uint8)
    n_asked, ended = 0, False
    while n_asked < n:
        n_passing = int((passes == 1.0).sum())
        if n_passing >= k:
            ended = True
            break
        if sampler is not None:
            more = sampler.propose(min(n - n_asked, batch_size(k, n_passing, n_asked)))
        else:
            rate = (n_passing + 1) / (n_asked + 1) if n_asked else 1.0
            size = min(int(np.ceil((k - n_passing) / rate)), max(k - n_passing, n_asked), n - n_asked)
            more = np.arange(n_asked, min(relation.n, n_asked + size), dtype=np.int64)
        if not len(more):
            ended = True
            break
        masks = await sem_filter.answers(block.filter, more, relation, ctx)
        result = block.filter.formula.evaluate(masks)
        truth = np.where(result == TRUE, 1.0, np.where(result & TRUE == 0, 0.0, np.nan))
        if sampler is not None:
            sampler.tell(more, truth)
        rids, passes = np.concatenate([rids, more]), np.concatenate([passes, truth])
        answers = np.concatenate([answers, masks], axis=1)
        n_asked += len(more)
        if (masks == OPEN).any():  # the budget ended here
            break
    n_passing = int((passes == 1.0).sum())
    rest = Range.exactly(0)
    if not ended and n_passing < k:
        guided = None if search is None else search.guide
        forecast = _simulate(k, rids, passes, guided, relation, ctx) if guided is not None else None
        rest = forecast or _by_chance(k, passes, relation, ctx)
    return Begun(rids, answers, Range.exactly(n_asked) + rest, _copies(block, rids, relation))


def _copies(block: Block, rids: Rids, relation: Relation) -> dict[tuple[Column, ...], float]:
    fresh = Relation(relation.duck, relation.name, relation.n, relation.fields)  # of which nothing is asked yet
    return (
        {s.input_columns: len(rids) / max(1, fresh.calls((s,), rids)) for s in block.filter.stages} if len(rids) else {}
    )


def _by_chance(k: int, passes: Floats, relation: Relation, ctx: Context) -> Range:
    """More rows asked until k pass, if the others pass as often as those asked."""
    answers = passes[~np.isnan(passes)]
    n_passing = int((answers == 1.0).sum())
    low, high = clopper_pearson(n_passing, len(answers), ctx.settings.confidence) if len(answers) else (0.0, 1.0)
    left, shortfall = relation.n - len(passes), k - n_passing

    def rows_to_ask(share: float) -> float:
        return min(left, shortfall / share) if share > 0 else left

    return Range(rows_to_ask(high), rows_to_ask((n_passing + 1) / (len(answers) + 2)), rows_to_ask(low))


def _simulate(k: int, rids: Rids, passes: Floats, guided: Guide, relation: Relation, ctx: Context) -> Range | None:
    """More rows that a search asks until k of all pass; None where it has nothing to learn from.

    In each world rows pass by the chances of a surrogate, shifted together by as much as the rows asked leave open.

    Args:
        rids: (m,) the rows asked.
        passes: (m,) 1 where they pass, 0 where not, NaN where unknown.
    """
    has_answer = ~np.isnan(passes)
    training_rids, y = rids[has_answer], passes[has_answer]
    if relation.n > MOST_ROWS or min(y.sum(), len(y) - y.sum()) < LEAST_SEEN:
        return None
    odds = surrogate.probability(guided.features[training_rids], y).score(guided.features)
    share = (y.sum() + 1) / (len(y) + 2)
    spread = 1 / np.sqrt((len(y) + 2) * share * (1 - share))
    rng = np.random.default_rng([ctx.settings.seed, relation.n, k])
    counts = []
    worlds = min(WORLDS, max(LEAST_WORLDS, int(MOST_ASKED * share / k)))
    for _ in range(worlds):
        world = rng.random(relation.n) < surrogate.sigmoid(odds + spread * rng.standard_normal())
        counts.append(_searched(k, world, training_rids, y, guided, ctx, rng))
    low, high = np.quantile(counts, ENDS)
    return Range(float(low), float(np.mean(counts)), float(high))


def _searched(
    k: int,
    world: Flags,
    training_rids: Rids,
    y: Floats,
    guided: Guide,
    ctx: Context,
    rng: np.random.Generator,
) -> int:
    """Rows asked in a world beyond those known, until k pass or none is left."""
    truth = sem_filter.Truth(y == 1.0, y == 0.0, np.zeros(len(y), dtype=bool))
    sampler = retrieval(len(world), len(world), guided, ctx, limit=k, known=(training_rids, truth), rng=rng)
    n_asked, n_passing = 0, int(truth.yes.sum())
    while n_passing < k:
        rids = sampler.propose(batch_size(k, n_passing, n_asked + len(training_rids)))
        if not len(rids):
            break
        sampler.tell(rids, world[rids].astype(np.float64))
        n_asked += len(rids)
        n_passing += int(world[rids].sum())
    return n_asked
