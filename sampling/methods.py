"""The methods by name. Every aggregate sampler is made with one signature, and so is every retrieval sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uql.sampling.asd import AsdSampler
from uql.sampling.base import AggregateSampler, Floats, Indices
from uql.sampling.uniform import UniformSampler

Matrix = NDArray[np.float32]


class MakeAggregate(Protocol):
    """How a sampler for aggregates is made: `Draws` documents the arguments; features, prior, size and groups are per
    row or None."""

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
        known: tuple[Indices, Floats] | None = None,
    ) -> AggregateSampler: ...


def _uniform(
    n_rows: int, budget: int, *, features: Matrix | None = None, prior: Floats | None = None, **kept: Any
) -> AggregateSampler:
    return UniformSampler(n_rows, budget, **kept)


def _asd(
    n_rows: int,
    budget: int,
    *,
    features: Matrix | None = None,
    prior: Floats | None = None,
    known: tuple[Indices, Floats] | None = None,
    **kept: Any,
) -> AggregateSampler:
    free = n_rows - (len(known[0]) if known is not None else 0)
    if features is None or features.shape[1] == 0 or free <= budget or budget < 4:
        return UniformSampler(n_rows, budget, known=known, **kept)  # nothing to learn from, or everything is asked
    return AsdSampler(n_rows, budget, features=features, prior=prior, known=known, **kept)


AGGREGATE: dict[str, Callable[..., AggregateSampler]] = {"asd": _asd, "uniform": _uniform}
