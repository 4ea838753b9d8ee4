"""Importance sampling: rows drawn with unequal, known chances; each answer counts by the inverse of its chance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals
from uql.sampling.asd import share_interval
from uql.sampling.base import Bounds, Flags, Floats
from uql.sampling.sample_state import Draws, Three, Weights, is_binary
from uql.sampling.uniform import UniformSampler


class ImportanceSampler(UniformSampler):
    """Chances half uniform, half proportional to a guess of each row's answer; no row twice; exactly unbiased (Horvitz–Thompson).

    Args:
        guess: (N,) at least 0, a guess of each row's |answer|; the nearer to the truth, the smaller the variance, and
            none where it is proportional to the answer (Proposition 1 of the source).
        uniform: the part of the chances that is uniform; 0 is biased unless the guess is positive wherever the answer is not 0.
    Source: Dai et al. (2024), equation 2 and Proposition 1; systematic draws of Madow (1949) on a random order.
    """

    method = "importance"

    def __init__(self, n_rows: int, budget: int, *, guess: Floats, uniform: float = 0.5, **kept: Any) -> None:
        Draws.__init__(self, n_rows, budget, **kept)
        free = self.rng.permutation(np.flatnonzero(~self._certain))
        weight = np.maximum(np.nan_to_num(guess[free].astype(np.float64)), 0.0)
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(free), 1 / max(len(free), 1))
        draws = max(0, min(self.budget - len(self._first), len(free)))
        chance = inclusion((1 - uniform) * weight + uniform / max(len(free), 1), draws)
        self._stands = np.ones(self.n_rows)
        self._stands[free] = 1 / np.maximum(chance, 1e-300)
        ticks = np.floor(np.cumsum(chance) - self.rng.random() + 1e-12)
        picked = free[np.diff(ticks, prepend=-1.0) > 0][:draws] if draws < len(free) else free
        self._order = self.rng.permutation(picked)
        self._planned = len(picked)

    def more(self, budget: int, look: int = 0) -> None:
        """Importance samples are drawn at once: a larger budget is not used, and only the level of the intervals changes."""
        self._look = look

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`, by each row's chance."""
        part = int((~self._certain[self.labelled]).sum()) / max(self._planned, 1)
        return np.where(self._certain, np.inf, part / self._stands)

    def _values(self, y: Floats, inside: Flags) -> tuple[Flags, Floats]:
        """Which told rows are random draws, and what each stands for (n,), scaled up where not every draw was told yet."""
        rows = self.labelled
        random = ~self._certain[rows]
        n = int(random.sum())
        scale = self._planned / n if n else 0.0
        return random, np.where(random, self._stands[rows] * scale, 1.0) * y * inside[rows]

    def _spread(self, a: Floats, b: Floats) -> float:
        """The covariance of two totals from what their n draws stand for."""
        n = len(a)
        if n < 2:
            return math.inf
        return float(n / (n - 1) * ((a - a.mean()) * (b - b.mean())).sum())

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        inside = self._rows_in(domain)
        random, values = self._values(y, inside)
        if not random.any():
            return super()._total(y, weights, domain, bounds)
        rows, size = self.labelled, int(inside.sum())
        value, variance = float(values.sum()), self._spread(values[random], values[random])
        group_values = y[inside[rows]]
        if weights is None and is_binary(y) and bounds in (None, (0.0, 1.0)):
            stands = self._stands[rows][random]
            kish = float(stands.sum()) ** 2 / float((stands**2).sum())
            variance = (
                max(variance, 0.0)
                if len(group_values) and 0 < group_values.sum() < len(group_values)
                else (size**2) / max(kish, 1.0)
            )
            certain, each = self._certain[rows][inside[rows]], np.ones(len(group_values))
            return share_interval(value, variance, group_values, each, float(size), size, self.level, certain=certain)
        half = intervals.t_quantile(self.level, int(random.sum()) - 1) * math.sqrt(variance)
        return value, value - half, value + half

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        inside = self._rows_in(domain)
        random, top = self._values(y, inside)
        _, bottom = self._values(x, inside)
        if bottom.sum() <= 0:
            return math.nan, -math.inf, math.inf
        a, b = top[random], bottom[random]
        freedom = max(int((b != 0).sum()) - 1, 1)
        low, high = intervals.fieller(
            float(top.sum()),
            float(bottom.sum()),
            self._spread(a, a),
            self._spread(b, b),
            self._spread(a, b),
            self.level,
            freedom,
        )
        return float(top.sum() / bottom.sum()), low, high


def inclusion(weight: Floats, draws: int) -> Floats:
    """(M,) chances in (0, 1] in proportion to `weight`, cut at 1, that sum to `draws`."""
    chance = np.zeros(len(weight))
    sure = np.zeros(len(weight), bool)
    while True:
        rest = draws - int(sure.sum())
        total = float(weight[~sure].sum())
        chance[~sure] = weight[~sure] * (rest / total) if total > 0 else 0.0
        chance[sure] = 1.0
        over = (chance >= 1.0) & ~sure
        if not over.any():
            return chance
        sure |= over


def guess_from(prior: Floats) -> Floats:
    """(N,) a guess of a yes from a prior score: falls as one over the rank, as ASD's first wave."""
    rank = np.empty(len(prior))
    rank[np.argsort(-prior, kind="stable")] = np.arange(len(prior))
    return 1 / (rank + 0.002 * len(prior) + 5)
