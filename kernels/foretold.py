"""How many rows a search under LIMIT will ask, told from a pilot: the search itself, run on answers that the pilot makes likely."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uql.compiler.cost import Range
from uql.compiler.physical import Block
from uql.kernels.base import Context, Relation, Rids
from uql.kernels.guide import Guide, guide
from uql.kernels.select import batch_size, retrieval
from uql.sampling import surrogate

WORLDS, LEAST_WORLDS = 16, 4  # in which the search is run
MOST_ASKED = 1500  # rows that the searches of all worlds are expected to ask
LEAST_SEEN = 2  # rows of the pilot that pass, and that do not; below, there is nothing to learn from
MOST_ROWS = 200_000  # candidates; beyond, chance alone is priced
ENDS = (0.05, 0.95)  # of the worlds: low and high


async def rows_until(
    k: int, block: Block, rids: Rids, passes: NDArray[np.float64], relation: Relation, ctx: Context
) -> Range | None:
    """Rows that a search asks until k of them pass; None where the search has nothing to learn from.

    A surrogate fitted on the pilot gives each row a chance to pass; in each world rows pass by these chances, shifted together by as
    much as the pilot leaves open, and the search is run. A search that finds its rows sooner than chance is priced as such.

    Args:
        rids: (m,) the rows of the pilot.
        passes: (m,) 1 where they pass, 0 where not, NaN where unknown.
    """
    seen = ~np.isnan(passes)
    if block.order_by or ctx.settings.method == "uniform" or relation.n > MOST_ROWS or not seen.any():
        return None
    guided = await guide(block, relation, ctx)
    if guided is None:
        return None
    known, y = rids[seen], passes[seen]
    if min(y.sum(), len(y) - y.sum()) < LEAST_SEEN:
        return None
    odds = surrogate.probability(guided.features[known], y).score(guided.features)
    share = (y.sum() + 1) / (len(y) + 2)
    spread = 1 / np.sqrt((len(y) + 2) * share * (1 - share))
    rng = np.random.default_rng([ctx.settings.seed, relation.n, k])
    asked = []
    worlds = min(WORLDS, max(LEAST_WORLDS, int(MOST_ASKED * share / k)))
    for _ in range(worlds):
        world = rng.random(relation.n) < surrogate.sigmoid(odds + spread * rng.standard_normal())
        world[known] = y > 0.5
        asked.append(_searched(k, world, guided, ctx, rng))
    low, high = np.quantile(asked, ENDS)
    return Range(float(low), float(np.mean(asked)), float(high))


def _searched(k: int, world: NDArray[np.bool_], guided: Guide, ctx: Context, rng: np.random.Generator) -> int:
    """Rows asked in a world of so many rows, until k pass or none is left."""
    sampler = retrieval(len(world), len(world), guided, ctx, limit=k, rng=rng)
    asked = found = 0
    while found < k:
        rids = sampler.propose(batch_size(k, found, asked))
        if not len(rids):
            break
        sampler.tell(rids, world[rids].astype(np.float64))
        asked += len(rids)
        found += int(world[rids].sum())
    return asked
