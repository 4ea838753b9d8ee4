"""UQE's algorithm 1: ten clusters of the embeddings, asked in proportion to their size, means weighted by it.

Equation 3 is read without its factor |S| (DECISIONS.md §7); settings as in the paper's appendix C.2. Written apart from
uql.sampling.uqe, which is the engine's form of it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from uql.base.extras import need
from uql.benchmarks.uqe.data import Condition, Grouping, World
from uql.benchmarks.uqe.model import Model
from uql.benchmarks.uqe.systems.uniform import TAXONOMY_ROWS, named

CLUSTERS = 10
CLUSTERINGS = 8  # k-means from so many seeds, used in turn
Rows = list[NDArray[np.int64]]


@lru_cache(maxsize=64)
def clusters(world: World, turn: int) -> Rows:
    """The rows of each of ten clusters."""
    need("clusters of embeddings", "uqe", "faiss")
    import faiss

    embeddings = world.embeddings
    means = faiss.Kmeans(
        embeddings.shape[1], CLUSTERS, niter=20, seed=turn, min_points_per_centroid=1, max_points_per_centroid=2000
    )
    means.train(embeddings)
    nearest = means.index.search(embeddings, 1)[1][:, 0]
    return [np.flatnonzero(nearest == c) for c in np.unique(nearest)]


def sample(strata: Rows, budget: int, rng: np.random.Generator) -> Rows:
    """At least one row of each stratum, else in proportion to its size, without replacement."""
    n = sum(map(len, strata))
    wanted = [max(1, round(budget * len(rows) / n)) for rows in strata]
    while sum(wanted) > budget:  # rounding up may ask for too many: the largest stratum gives
        wanted[int(np.argmax(wanted))] -= 1
    return [rng.choice(rows, min(k, len(rows)), replace=False) for rows, k in zip(strata, wanted, strict=True)]


def count(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> float:
    """The sum over clusters of size times the share of yes in its sample."""
    strata = clusters(model.world, int(rng.integers(CLUSTERINGS)))
    total = 0.0
    for rows, drawn in zip(strata, sample(strata, budget, rng), strict=True):
        said = [answer for answer in model.is_so(condition.text, drawn.tolist()) if answer is not None]
        total += len(rows) * (sum(said) / len(said) if said else 0.0)
    return total


def group(model: Model, grouping: Grouping, budget: int, rng: np.random.Generator) -> dict[str, float]:
    """Groups named from 16 rows drawn over the clusters; a stratified sample of B rows put into them."""
    strata = clusters(model.world, int(rng.integers(CLUSTERINGS)))
    labels = named(model, grouping, [int(i) for rows in sample(strata, TAXONOMY_ROWS, rng) for i in rows])
    totals = dict.fromkeys(labels, 0.0)
    for rows, drawn in zip(strata, sample(strata, budget, rng), strict=True):
        said = model.which(grouping.text, labels, drawn.tolist())
        for label in labels:
            totals[label] += len(rows) * said.count(label) / len(said)
    return totals
