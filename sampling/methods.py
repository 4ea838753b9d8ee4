"""The methods by name. Every aggregate sampler is made with one signature, and so is every retrieval sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
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


AGGREGATE: dict[str, Callable[..., AggregateSampler]] = {"uniform": _uniform}
