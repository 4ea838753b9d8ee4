"""Stratified sampling: the free rows in strata, each asked in proportion to its size, small ones wholly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals
from uql.sampling.asd import share_interval
from uql.sampling.base import Bounds, Flags, Floats, Indices, Matrix
from uql.sampling.clusters import clusters
from uql.sampling.sample_state import Draws, Three, Weights, is_binary, is_share_of
from uql.sampling.uniform import expansion_interval

LEAST = 2  # draws of a stratum: one gives no variance


class StratifiedSampler(Draws):
    """Proportional allocation over the strata given. Unbiased while every stratum has a draw.

    Args:
        strata: (N,) int, the stratum of each row.
    Source: Cochran, *Sampling Techniques*, 3rd ed. (1977), chapter 5.
    """

    method = "stratified"

    def __init__(self, n_rows: int, budget: int, *, strata: Indices, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        free = np.flatnonzero(~self._certain)
        names, self._stratum = np.unique(strata, return_inverse=True)
        self._orders = [self.rng.permutation(free[self._stratum[free] == h]) for h in range(len(names))]
        self._n_drawn = np.zeros(len(names), np.int64)
        self._queue = np.zeros(0, np.int64)
        self._allocate(self.budget - len(self._first))

    def _allocate(self, draws: int) -> None:
        """Take rows of each stratum up to its share of `draws` in all, and queue them in random order."""
        sizes = np.array([len(order) for order in self._orders])
        quotas = np.maximum(allocate(sizes, draws), self._n_drawn)
        new = [o[a:b] for o, a, b in zip(self._orders, self._n_drawn, quotas, strict=True)]
        self._n_drawn = quotas
        self._queue = np.concatenate([self._queue, self.rng.permutation(np.concatenate(new))]) if new else self._queue

    def more(self, budget: int, look: int = 0) -> None:
        super().more(budget, look)
        self._allocate(self.budget - int(self._certain.sum()) + self.n_known)

    def _draw(self, k: int) -> Indices:
        rows, self._queue = self._queue[:k], self._queue[k:]
        return rows

    def _parts(self, domain: int | None) -> tuple[Flags, Flags, Indices, Flags]:
        """Told rows that are certain, and random ones, inside the domain; rows each stratum stands for; the domain."""
        inside = np.ones(self.n_rows, bool)
        if domain is not None and self.groups is not None:
            inside = self.groups == domain
        rows = self.labelled
        certain = self._certain[rows]
        frame = np.ones(self.n_rows, bool)
        frame[rows[certain]] = False
        sizes = np.bincount(self._stratum[frame], minlength=len(self._orders))
        return certain & inside[rows], ~certain, sizes, inside

    def _cells(self, values: Floats, random: Flags, sizes: Indices) -> tuple[Floats, Floats]:
        """(m,) totals and (m, m) covariance over the strata of (m, n) values; a stratum without draws gets the mean of all."""
        rows = np.flatnonzero(random)
        stratum = self._stratum[self.labelled[rows]]
        sample = values[:, rows]
        n = np.bincount(stratum, minlength=len(sizes)).astype(float)
        sums = np.stack([np.bincount(stratum, v, minlength=len(sizes)) for v in sample])
        overall = sample.mean(axis=1, keepdims=True) if len(rows) else np.zeros((len(values), 1))
        means = np.where(n > 0, sums / np.maximum(n, 1), overall)
        # spread of a stratum: its own draws and one more with the mean and spread of all
        deviation = sample - means[:, stratum]
        m = len(values)
        whole = (sample - overall) @ (sample - overall).T / max(len(rows) - 1, 1)
        covariance = np.zeros((m, m))
        for h in range(len(sizes)):
            if sizes[h] == 0 or n[h] >= sizes[h]:
                continue
            d = deviation[:, stratum == h]
            shift = (means[:, h : h + 1] - overall) / (n[h] + 1)
            spread = (d @ d.T + whole + n[h] * shift @ shift.T) / max(n[h], 1)
            covariance += sizes[h] ** 2 * (1 - n[h] / sizes[h]) / max(n[h], 1) * spread
        return (means * sizes).sum(axis=1), covariance

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        certain, random, sizes, inside = self._parts(domain)
        rows = self.labelled
        base, size = float(y[certain].sum()), int(inside.sum())
        within = inside[rows]
        if not (random & within).any():
            return self._nothing_drawn(y, inside, weights, bounds)
        totals, covariance = self._cells((y * within)[None, :], random, sizes)
        value, variance = base + float(totals[0]), float(covariance[0, 0])
        values = y[within]
        if weights is None and is_binary(y) and bounds in (None, (0.0, 1.0)):
            each = np.ones(len(values))
            return share_interval(value, variance, values, each, float(size), size, self.level, certain=certain[within])
        if weights is not None and float(weights[inside].min(initial=0.0)) >= 0:
            each = weights[rows][within]
            whole = float(weights[inside].sum())
            freedom = float(len(values) - 1)
            return share_interval(
                value,
                variance,
                values,
                each,
                whole,
                size,
                self.level,
                weights[inside],
                freedom,
                certain=certain[within],
            )
        sample = y[random & within]
        if int((sample != 0).sum()) < 2:
            low, high = expansion_interval(sample, size - int(certain.sum()), self.level, bounds)
            return value, base + low, base + high
        half = intervals.t_quantile(self.level, len(sample) - 1) * math.sqrt(variance)
        return value, value - half, value + half

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        certain, random, sizes, inside = self._parts(domain)
        within = inside[self.labelled]
        if not (random & within).any():
            return math.nan, -math.inf, math.inf
        totals, c = self._cells(np.stack([y * within, x * within]), random, sizes)
        top, bottom = float(y[certain].sum() + totals[0]), float(x[certain].sum() + totals[1])
        if bottom <= 0:
            return math.nan, -math.inf, math.inf
        ratio = top / bottom
        counted = within & ((x != 0) | (y != 0))
        if is_share_of(y, x, row_weights[0]):
            variance = max(float(c[0, 0] - 2 * ratio * c[0, 1] + ratio**2 * c[1, 1]), 0.0)
            values, size = y[counted], self.n_rows
            each = np.ones(len(values))
            return share_interval(
                top, variance, values, each, bottom, size, self.level, certain=certain[counted], ratio=True
            )
        freedom = max(int(counted.sum()) - 1, 1)
        low, high = intervals.fieller(top, bottom, c[0, 0], c[1, 1], c[0, 1], self.level, freedom)
        return ratio, low, high


def allocate(sizes: Indices, draws: int) -> Indices:
    """(H,) draws of each stratum: in proportion by largest remainders, at least two (or the whole stratum) while they last."""
    draws = int(min(draws, sizes.sum()))
    if draws <= 0 or len(sizes) == 0:
        return np.zeros(len(sizes), np.int64)
    exact = sizes * (draws / sizes.sum())
    least = np.minimum(sizes, LEAST)
    quotas = np.maximum(np.floor(exact).astype(np.int64), least)
    quotas = np.minimum(quotas, sizes)
    while quotas.sum() > draws:  # the largest excess gives way, of the strata with draws to spare first
        spare = quotas > least if (quotas > least).any() else quotas > 0
        quotas[int(np.where(spare, quotas - exact, -math.inf).argmax())] -= 1
    while quotas.sum() < draws:
        quotas[int(np.where(quotas < sizes, exact - quotas, -math.inf).argmax())] += 1
    out: Indices = quotas.astype(np.int64)
    return out


def strata_of(
    n_rows: int, features: Matrix | None, prior: Floats | None, groups: Indices | None, strata: int
) -> Indices:
    """(N,) the concrete groups if given; else equal runs by the prior; else clusters of the features; else one stratum.

    Args:
        n_rows: N.
        features: (N, d) float32, or None.
        prior: (N,) a score, or None.
        groups: (N,) the concrete group of each row, or None.
        strata: how many strata to make where there are no groups.
    """
    if groups is not None:
        return groups
    if prior is not None:
        rank = np.empty(n_rows, np.int64)
        rank[np.argsort(-prior, kind="stable")] = np.arange(n_rows)
        return rank * strata // max(n_rows, 1)
    if features is not None and features.shape[1]:
        return clusters(features, strata)
    return np.zeros(n_rows, np.int64)
