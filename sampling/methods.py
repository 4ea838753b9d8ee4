"""The methods by name. Every aggregate sampler is made with one signature, and so is every retrieval sampler.

The tables hold functions that import a method when it is first asked for.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from uql.sampling.base import AggregateSampler, Floats, Indices, RetrievalSampler

Matrix = NDArray[np.float32]
Known = tuple[Indices, Floats]

STRATA = 10


class MakeAggregate(Protocol):
    """How a sampler for aggregates over N rows is made.

    Args:
        n_rows: N.
        budget: rows that may be asked.
        rng: the only source of randomness.
        confidence: of every interval.
        features: (N, d) float32 with a mean squared row norm of about 1, or None.
        prior: (N,) a score, higher where a yes is likelier, or None.
        size: (N,) |V| where a SUM or AVG of a stored column V is wanted, or None.
        groups: (N,) int, the concrete group of each row, or None.
        known: (indices, answers) of rows answered before: certain rows, never part of the random sample.
    """

    def __call__(
        self,
        n_rows: int,
        budget: int,
        *,
        rng: np.random.Generator,
        confidence: float = 0.95,
        features: Matrix | None = None,
        prior: Floats | None = None,
        size: Floats | None = None,
        groups: Indices | None = None,
        known: Known | None = None,
    ) -> AggregateSampler: ...


class MakeRetrieval(Protocol):
    """How a sampler for retrieval is made; arguments as for aggregates.

    Args:
        limit: stop when so many matching rows are known.
        has_examples: whether the prior comes from example rows.
    """

    def __call__(
        self,
        n_rows: int,
        budget: int,
        *,
        rng: np.random.Generator,
        features: Matrix | None = None,
        prior: Floats | None = None,
        limit: int | None = None,
        known: Known | None = None,
        has_examples: bool = False,
    ) -> RetrievalSampler: ...


def _uniform(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    features: Matrix | None = None,
    prior: Floats | None = None,
    size: Floats | None = None,
    groups: Indices | None = None,
    known: Known | None = None,
) -> AggregateSampler:
    from uql.sampling.uniform import UniformSampler

    return UniformSampler(n_rows, budget, rng=rng, confidence=confidence, size=size, groups=groups, known=known)


def _asd(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    features: Matrix | None = None,
    prior: Floats | None = None,
    size: Floats | None = None,
    groups: Indices | None = None,
    known: Known | None = None,
) -> AggregateSampler:
    free = n_rows - (len(known[0]) if known is not None else 0)
    nothing_to_learn = features is None or features.shape[1] == 0 or free <= budget or budget < 4
    if features is None or nothing_to_learn:
        return _uniform(n_rows, budget, rng=rng, confidence=confidence, size=size, groups=groups, known=known)
    from uql.sampling.asd import AsdSampler

    return AsdSampler(
        n_rows,
        budget,
        rng=rng,
        confidence=confidence,
        features=features,
        prior=prior,
        size=size,
        groups=groups,
        known=known,
    )


def _uqe(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    features: Matrix | None = None,
    prior: Floats | None = None,
    size: Floats | None = None,
    groups: Indices | None = None,
    known: Known | None = None,
) -> AggregateSampler:
    if features is None or features.shape[1] == 0 or n_rows == 0:
        return _uniform(n_rows, budget, rng=rng, confidence=confidence, size=size, groups=groups, known=known)
    from uql.sampling.uqe import UqeSampler

    return UqeSampler(n_rows, budget, rng=rng, confidence=confidence, features=features, groups=groups, known=known)


def _stratified(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    features: Matrix | None = None,
    prior: Floats | None = None,
    size: Floats | None = None,
    groups: Indices | None = None,
    known: Known | None = None,
) -> AggregateSampler:
    from uql.sampling.stratified import StratifiedSampler, strata_of

    strata = strata_of(n_rows, features, prior, groups, STRATA)
    return StratifiedSampler(
        n_rows, budget, rng=rng, confidence=confidence, strata=strata, size=size, groups=groups, known=known
    )


def _importance(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    features: Matrix | None = None,
    prior: Floats | None = None,
    size: Floats | None = None,
    groups: Indices | None = None,
    known: Known | None = None,
) -> AggregateSampler:
    from uql.sampling.importance import ImportanceSampler, guess_from

    guess = guess_from(prior) if prior is not None else np.ones(n_rows)
    if size is not None:
        guess = guess * np.abs(np.nan_to_num(size))
    return ImportanceSampler(n_rows, budget, rng=rng, confidence=confidence, guess=guess, groups=groups, known=known)


def _learned(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    features: Matrix | None = None,
    prior: Floats | None = None,
    limit: int | None = None,
    known: Known | None = None,
    has_examples: bool = False,
) -> RetrievalSampler:
    from uql.sampling.retrieval import LearnedSearch

    if features is None:
        features = np.zeros((n_rows, 0), np.float32)
    return LearnedSearch(
        n_rows, budget, rng=rng, features=features, prior=prior, limit=limit, known=known, has_examples=has_examples
    )


def _uqe_search(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    features: Matrix | None = None,
    prior: Floats | None = None,
    limit: int | None = None,
    known: Known | None = None,
    has_examples: bool = False,
) -> RetrievalSampler:
    from uql.sampling.uqe import UqeSearch

    if features is None:
        features = np.zeros((n_rows, 0), np.float32)
    return UqeSearch(n_rows, budget, rng=rng, features=features, limit=limit, known=known)


def _random_search(
    n_rows: int,
    budget: int,
    *,
    rng: np.random.Generator,
    features: Matrix | None = None,
    prior: Floats | None = None,
    limit: int | None = None,
    known: Known | None = None,
    has_examples: bool = False,
) -> RetrievalSampler:
    from uql.sampling.retrieval import Search

    return Search(n_rows, budget, rng=rng, limit=limit, known=known)


AGGREGATE: dict[str, MakeAggregate] = {
    "asd": _asd,
    "uqe": _uqe,
    "uniform": _uniform,
    "importance": _importance,
    "stratified": _stratified,
}

# every name of a method for aggregates is one for retrieval too; those without a search of their own ask random rows
RETRIEVAL: dict[str, MakeRetrieval] = {
    "asd": _learned,
    "learned": _learned,
    "uqe": _uqe_search,
    "uniform": _random_search,
    "importance": _random_search,
    "stratified": _random_search,
}
