"""What every table of the benchmark needs: features, priors, truth, and the strata of the baseline."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uql.benchmarks.datasets.labelled import Predicate, texts
from uql.features.similarity import with_similarity
from uql.features.table import TableFeatures, table_features
from uql.sampling.base import AggregateSampler, Floats, Indices
from uql.sampling.clusters import clusters
from uql.sampling.methods import AGGREGATE
from uql.sampling.stratified import StratifiedSampler

CLUSTERINGS = 8  # of the baseline, used in turn


@lru_cache(maxsize=1)
def features(data: str, cache: Path | None = None) -> TableFeatures:
    """The features of a data set; kept in `cache`, or in the system's temporary folder."""
    folder = cache if cache is not None else Path(tempfile.gettempdir()) / "uql-benchmark-features"
    return table_features(texts(data), key=data, cache_dir=folder)


@lru_cache(maxsize=1)
def strata(data: str) -> list[Indices]:
    """The clusterings of the baseline: k-means on the static embedding alone, as its authors cluster plain
    embeddings."""
    block = features(data).blocks[0]
    vectors = block.vectors[block.index].astype(np.float32)
    return [clusters(vectors, 10, seed) for seed in range(CLUSTERINGS)]


@dataclass(frozen=True)
class World:
    """One predicate over its table."""

    predicate: Predicate
    matrix: NDArray[np.float32]
    prior: Floats
    truth: Floats
    lengths: Floats  # characters of each text: the stored column of SUM and AVG
    rows: Indices  # of the data set

    @property
    def n(self) -> int:
        return len(self.truth)


def world(predicate: Predicate, examples: bool, most: int | None = None) -> World:
    """Features, prior and truth of a predicate.

    Args:
        examples: with its example rows, or without.
        most: rows; random ones of a larger table.
    """
    yes, no = (predicate.yes, predicate.no) if examples else ((), ())
    matrix, prior = with_similarity(features(predicate.data), predicate.condition, yes, no)
    lengths = np.array([len(text) for text in texts(predicate.data)], np.float64)
    some = np.sort(np.random.default_rng(0).permutation(len(lengths))[:most])
    return World(
        predicate, np.ascontiguousarray(matrix[some]), prior[some], predicate.truth()[some], lengths[some], some
    )


def strata_of(w: World, seed: int) -> Indices:
    """(N,) one of the clusterings of the baseline, of the rows of a world."""
    return strata(w.predicate.data)[seed % CLUSTERINGS][w.rows]


def told(sampler: AggregateSampler, truth: Floats) -> AggregateSampler:
    """The sampler once it was told everything it asked."""
    while len(rows := sampler.propose(1000)):
        sampler.tell(rows, truth[rows])
    return sampler


def samplers(
    w: World, budget: int, seeds: Iterable[int], methods: tuple[str, ...], size: bool = False
) -> Iterator[tuple[str, AggregateSampler]]:
    """For every seed, each method's sampler at the end of its sample."""
    for seed in seeds:
        for name in methods:
            rng = np.random.default_rng(seed)
            made: AggregateSampler
            if name == "uqe":
                made = StratifiedSampler(w.n, budget, rng=rng, strata=strata_of(w, seed))
            else:
                made = AGGREGATE[name](
                    w.n, budget, rng=rng, features=w.matrix, prior=w.prior, size=w.lengths if size else None
                )
            yield name, told(made, w.truth)
