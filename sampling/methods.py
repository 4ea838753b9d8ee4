"""The methods by name. Every aggregate sampler is made with one signature, and so is every retrieval sampler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from uql.sampling.asd import AsdSampler
from uql.sampling.base import AggregateSampler, Floats, Indices, Matrix, RetrievalSampler
from uql.sampling.clusters import best_clusters
from uql.sampling.importance import ImportanceSampler, guess_from
from uql.sampling.labelled_rows import Known
from uql.sampling.retrieval import LearnedSearch, Search
from uql.sampling.stratified import StratifiedSampler, strata_of
from uql.sampling.uniform import UniformSampler
from uql.sampling.uqe import UqeSampler, UqeSearch

Strata = int | Literal["auto"]

STRATA = 10


# Made by keyword: `AGGREGATE["asd"](n_rows, budget, rng=rng, …)`; the arguments are the fields of `Sample` and `Hunt`.
MakeAggregate = Callable[..., AggregateSampler]
MakeRetrieval = Callable[..., RetrievalSampler]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a sampler for aggregates over N rows is made from.

    Attributes:
        n_rows: N.
        budget: rows that may be asked.
        rng: the only source of randomness.
        confidence: of every interval.
        features: (N, d) float32 with a mean squared row norm of about 1, or None.
        prior: (N,) a score, higher where a yes is likelier, or None.
        size: (N,) |V| where a SUM or AVG of a stored column V is wanted, or None.
        units: (N,) how many rows of a table each stands for, which are drawn in proportion to their size, or None: one.
        groups: (N,) int, the concrete group of each row, or None.
        known: (indices, answers) of rows answered before: certain rows, never part of the random sample.
        strata: of 'uqe' and 'stratified': how many, or "auto" for as many clusters as differ most; None: 10.
    """

    n_rows: int
    budget: int
    rng: np.random.Generator
    confidence: float = 0.95
    features: Matrix | None = None
    prior: Floats | None = None
    size: Floats | None = None
    units: Floats | None = None
    groups: Indices | None = None
    known: Known | None = None
    strata: Strata | None = None

    @property
    def matrix(self) -> Matrix | None:
        """The features where there is something to learn from."""
        return None if self.features is None or self.features.shape[1] == 0 or self.n_rows == 0 else self.features

    @property
    def common(self) -> dict[str, Any]:
        """What every sampler takes."""
        return {
            "rng": self.rng,
            "confidence": self.confidence,
            "groups": self.groups,
            "known": self.known,
            "units": self.units,
        }


@dataclass(frozen=True, slots=True)
class Hunt:
    """What a sampler for retrieval is made from; fields as of `Sample`, and these.

    Attributes:
        limit: stop when so many matching rows are known.
        has_examples: whether the prior comes from example rows.
        explore: of 'uqe': the chance that a row of the first batch after a fit is a random one; it decays.
    """

    n_rows: int
    budget: int
    rng: np.random.Generator
    features: Matrix | None = None
    prior: Floats | None = None
    limit: int | None = None
    known: Known | None = None
    has_examples: bool = False
    explore: float = 0.0

    @property
    def matrix(self) -> Matrix:
        return np.zeros((self.n_rows, 0), np.float32) if self.features is None else self.features

    @property
    def common(self) -> dict[str, Any]:
        return {"rng": self.rng, "limit": self.limit, "known": self.known}


def _uniform(s: Sample) -> AggregateSampler:
    return UniformSampler(s.n_rows, s.budget, size=s.size, **s.common)


def _asd(s: Sample) -> AggregateSampler:
    free = s.n_rows - (len(s.known[0]) if s.known is not None else 0)
    if s.matrix is None or free <= s.budget or s.budget < 4:
        return _uniform(s)
    return AsdSampler(s.n_rows, s.budget, features=s.matrix, prior=s.prior, size=s.size, **s.common)


def _uqe(s: Sample) -> AggregateSampler:
    if s.matrix is None:
        return _uniform(s)
    return UqeSampler(s.n_rows, s.budget, features=s.matrix, clustered=s.strata or STRATA, **s.common)


def _stratified(s: Sample) -> AggregateSampler:
    if s.strata == "auto" and s.matrix is not None:
        strata = best_clusters(s.matrix, s.budget)
    else:
        n_strata = STRATA if s.strata is None or s.strata == "auto" else s.strata
        strata = strata_of(s.n_rows, s.features, s.prior, s.groups, n_strata)
    return StratifiedSampler(s.n_rows, s.budget, strata=strata, size=s.size, **s.common)


def _importance(s: Sample) -> AggregateSampler:
    guess = guess_from(s.prior) if s.prior is not None else np.ones(s.n_rows)
    if s.size is not None:
        guess = guess * np.abs(np.nan_to_num(s.size))
    return ImportanceSampler(s.n_rows, s.budget, guess=guess, **s.common)


def _learned(h: Hunt) -> RetrievalSampler:
    return LearnedSearch(h.n_rows, h.budget, features=h.matrix, prior=h.prior, has_examples=h.has_examples, **h.common)


def _uqe_search(h: Hunt) -> RetrievalSampler:
    return UqeSearch(h.n_rows, h.budget, features=h.matrix, epsilon=h.explore, **h.common)


def _random_search(h: Hunt) -> RetrievalSampler:
    return Search(h.n_rows, h.budget, **h.common)


def aggregate(make: Callable[[Sample], AggregateSampler]) -> MakeAggregate:
    """Makes a sampler from the fields of `Sample`, by keyword."""
    return lambda *sizes, **kept: make(Sample(*sizes, **kept))


def retrieval(make: Callable[[Hunt], RetrievalSampler]) -> MakeRetrieval:
    """Makes a sampler from the fields of `Hunt`, by keyword."""
    return lambda *sizes, **kept: make(Hunt(*sizes, **kept))


AGGREGATE: dict[str, MakeAggregate] = {
    "asd": aggregate(_asd),
    "uqe": aggregate(_uqe),
    "uniform": aggregate(_uniform),
    "importance": aggregate(_importance),
    "stratified": aggregate(_stratified),
}

# every name of a method for aggregates is one for retrieval too; those without a search of their own ask random rows
RETRIEVAL: dict[str, MakeRetrieval] = {
    "asd": retrieval(_learned),
    "learned": retrieval(_learned),
    "uqe": retrieval(_uqe_search),
    "uniform": retrieval(_random_search),
    "importance": retrieval(_random_search),
    "stratified": retrieval(_random_search),
}
