"""A sample of all pairs of two sides, drawn from a pool: near pairs, which it holds whole, and random ones of all others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals
from uql.sampling.base import Bounds, Estimate, Floats, Indices, Stored
from uql.sampling.sample_state import Three, Weights, is_binary, is_share_of
from uql.sampling.stratified import StratifiedSampler
from uql.sampling.uniform import expansion_interval


class PairSampler(StratifiedSampler):
    """Strata of a pool that stand for more rows than they have: a random draw from a random part of a stratum is one from the stratum.

    Half of the draws go to the last stratum, which is by far the largest, the others in equal parts to those before.
    The interval of a total is made of the exact ones of the strata. No row is certain, and nothing is exact.

    Args:
        n_rows: rows of the pool.
        strata: (n_rows,) in [0, H), the stratum of each.
        sizes: (H,) the rows that each stratum stands for, at least as many as it has in the pool.
        groups: (n_rows,) int, the concrete group of each row of the pool: how many rows of all it has is not known.
    Source: Zou & Donner (2008), Construction of confidence limits about effect measures (MOVER); Cochran (1977), chapter 5.
    """

    method = "pairs"

    def __init__(
        self, n_rows: int, budget: int, *, strata: Indices, sizes: Indices, groups: Indices | None = None, **kept: Any
    ) -> None:
        self.sizes = sizes
        super().__init__(n_rows, min(budget, n_rows - 1), strata=strata, **kept)
        self.groups = groups

    def more(self, budget: int, look: int = 0) -> None:
        """As in `Draws.more`; the pool is never asked whole, since it is not all there is."""
        super().more(min(budget, self.n_rows - 1), look)

    def _allocate(self, draws: int) -> None:
        available = np.array([len(order) for order in self._orders])
        share = np.full(len(available), 0.5 / max(1, len(available) - 1))
        share[-1] = 0.5 if len(available) > 1 else 1.0
        quotas = np.maximum(np.minimum(np.floor(share * draws).astype(np.int64), available), self._n_drawn)
        rest = draws - int(quotas.sum())
        if rest > 0:
            quotas[-1] += min(rest, int(available[-1] - quotas[-1]))
        new = [order[a:b] for order, a, b in zip(self._orders, self._n_drawn, quotas, strict=True)]
        self._n_drawn = quotas
        self._queue = np.concatenate([self._queue, self.rng.permutation(np.concatenate(new))])

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`: by the rows that each stratum stands for."""
        draws = np.bincount(self._stratum[self.labelled], minlength=len(self.sizes))
        return (draws / np.maximum(self.sizes, 1))[self._stratum]

    def total(self, y: Floats, bounds: Bounds = None, *, weights: Stored = None, domain: int | None = None) -> Estimate:
        """As in `AggregateSampler`; rows outside the domain add 0."""
        if domain is not None and self.groups is not None:
            y = np.where(self.groups[self.labelled] == domain, y, 0.0)
            weights = None if weights is None else np.where(self.groups == domain, weights, 0.0)
        return super().total(y, bounds, weights=weights)

    def ratio(
        self, y: Floats, x: Floats, *, weights: Stored = None, counts: Stored = None, domain: int | None = None
    ) -> Estimate:
        """As in `AggregateSampler`; rows outside the domain add 0."""
        if domain is not None and self.groups is not None:
            inside = self.groups == domain
            y, x = (np.where(inside[self.labelled], part, 0.0) for part in (y, x))
            weights, counts = (None if part is None else np.where(inside, part, 0.0) for part in (weights, counts))
        return super().ratio(y, x, weights=weights, counts=counts)

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        stratum = self._stratum[self.labelled]
        if weights is not None:
            bounds = min(0.0, float(weights.min())), max(0.0, float(weights.max()))
        counted = weights is None and is_binary(y) and bounds in (None, (0.0, 1.0))
        least, most = bounds or ((0.0, 1.0) if counted else (-math.inf, math.inf))
        value = below = above = 0.0
        for h, size in enumerate(self.sizes.tolist()):
            sample = y[stratum == h]
            if not size:
                continue
            if not len(sample):
                middle = size * float(y.mean()) if len(y) else math.nan
                low, high = size * least, size * most
            else:
                middle = size * float(sample.mean())
                if counted:
                    low, high = intervals.count(int(sample.sum()), len(sample), size, self.level)
                else:
                    own = None if weights is None else weights[self._stratum == h]
                    low, high = expansion_interval(sample, size, self.level, bounds, own)
            value, below, above = value + middle, math.hypot(below, middle - low), math.hypot(above, high - middle)
        return value, value - below, value + above

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        totals, c = self._cells(np.stack([y, x]), np.ones(len(y), bool), self.sizes)
        if totals[1] <= 0:
            return math.nan, -math.inf, math.inf
        ratio = float(totals[0] / totals[1])
        freedom = max(int(((x != 0) | (y != 0)).sum()) - 1, 1)
        low, high = intervals.fieller(totals[0], totals[1], c[0, 0], c[1, 1], c[0, 1], self.level, freedom)
        if is_share_of(y, x, row_weights[0]):
            low, high = max(low, 0.0), min(high, 1.0)
        return ratio, low, high

    def _possible(
        self, estimate: Three, values: Floats, weights: Floats | None, domain: int | None, bounds: Bounds
    ) -> Three:
        """A count is no lower than the rows seen."""
        value, low, high = estimate
        return (value, max(low, float(values.sum())), high) if weights is None and bounds == (0.0, 1.0) else estimate

    def _of_numbers(self, estimate: Three, values: Floats, population: int, unknown: int) -> tuple[float, float]:
        return super()._of_numbers(estimate, values, int(self.sizes.sum()), unknown)
