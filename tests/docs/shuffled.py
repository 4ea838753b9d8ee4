"""A uniform sample, drawn piece by piece: the sampler of docs/extending.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from uql.sampling.base import AggregateSampler, Indices
from uql.sampling.methods import Sample
from uql.sampling.uniform import UniformSampler


class ShuffledSampler(UniformSampler):
    """Draws from the free rows at each step. The draws are uniform, so the estimators of `UniformSampler` hold.

    Source: Cochran, *Sampling Techniques*, 3rd ed. (1977), chapter 2.
    """

    method = "shuffled"

    def __init__(self, n_rows: int, budget: int, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        self._left = np.flatnonzero(~self._certain)  # rows that may still be drawn

    def _draw(self, k: int) -> Indices:
        """(≤ k,) rows not drawn before."""
        rows = self.rng.choice(self._left, size=min(k, len(self._left)), replace=False)
        self._left = np.setdiff1d(self._left, rows)
        return rows


def shuffled(sample: Sample) -> AggregateSampler:
    """How the sampler is made; `sample` has all that a method may use, such as features and a prior."""
    return ShuffledSampler(sample.n_rows, sample.budget, size=sample.size, **sample.common)
