"""Two-stage sampling: a uniform first stage of all rows, and a sampler of any kind within it.

Features are made of the first stage alone, so that what a question of a large table costs depends on its calls and not on its rows. A
search for any k rows begins there too, and ends there where the first stage has them.
Source: double sampling, Cochran, *Sampling Techniques*, 3rd ed. (1977), chapter 12.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from uql.sampling.base import AggregateSampler, Bounds, Estimate, Flags, Floats, Indices, RetrievalSampler, Stored
from uql.sampling.intervals import normal_quantile
from uql.sampling.row_hash import LARGEST, bound_for, lowest, rows_below
from uql.sampling.sample_state import counts_rows, is_share_of

LEAST = 32_768  # rows of a first stage
A_CALL = 64  # rows of a first stage for each call: they add at most 1/64 to the variance of a uniform sample
WORTH = 2  # times the first stage that a table has at least
LOOK = 64  # rows of a search that are looked back on
RICH = 1 / 16  # share of them that match, where a first stage will do


def first_stage(n_rows: int, budget: int) -> int | None:
    """The rows of the first stage for so many calls; None where a table is too small for one to be worth it.

    >>> first_stage(10_000_000, 128), first_stage(10_000_000, 2_000), first_stage(50_000, 128)
    (32768, 128000, None)
    """
    most = most_rows(budget)
    return most // WORTH if most <= n_rows else None


def most_rows(budget: int) -> int:
    """The rows from which on a table has a first stage, for so many calls."""
    return WORTH * max(LEAST, A_CALL * budget)


def first_rows(n_rows: int, first: int) -> Indices:
    """The rows of a first stage, ascending: those whose own numbers have the lowest hashes.

    A larger first stage holds every smaller one, so features of earlier statements serve later ones; parts of a table can tell
    theirs apart.

    Args:
        n_rows: N.
        first: rows of the first stage, at most N.
    """
    bound = bound_for(first, n_rows)
    rows: Indices = rows_below(0, n_rows, bound)
    while len(rows) < first:
        bound = min(LARGEST, 2 * bound)
        rows = rows_below(0, n_rows, bound)
    return rows[lowest(rows, first)]


class TwoStageSample:
    """An aggregate sampler over N rows that draws from a uniform sample of n of them.

    A total is N/n times that over the first stage. Its variance is that of the sampler within, and N²·S²·(1/n − 1/N) of the first
    stage, S² the variance of y in the table, for which the sampler within has an estimate too: both ends of an interval grow by both
    in quadrature. Within a group, N and n are its rows.

    Args:
        n_rows: N.
        rows: (n,) the rows of the first stage, drawn uniformly without replacement.
        inner: a sampler over 0 … n − 1, the places of `rows`, without known rows; its groups are those of `rows`.
        groups: (n,) the group of each of `rows`.
        sizes: (G,) the rows of the table in each group.
    """

    def __init__(
        self,
        n_rows: int,
        rows: Indices,
        inner: AggregateSampler,
        groups: Indices | None = None,
        sizes: Indices | None = None,
    ) -> None:
        self.n_rows, self.rows, self.inner, self.groups, self.sizes = n_rows, rows, inner, groups, sizes
        self._place = dict(zip(rows.tolist(), range(len(rows)), strict=True))

    @property
    def labelled(self) -> Indices:
        """(m,) the rows with an answer, in order."""
        rows: Indices = self.rows[self.inner.labelled]
        return rows

    @property
    def answers(self) -> Floats:
        """(m,) their answers."""
        return self.inner.answers

    def propose(self, k: int) -> Indices:
        """As in `AggregateSampler`."""
        rows: Indices = self.rows[self.inner.propose(k)]
        return rows

    def tell(self, indices: Indices, answers: Floats) -> None:
        """As in `AggregateSampler`."""
        self.inner.tell(np.array([self._place[int(i)] for i in indices], np.int64), answers)

    def more(self, budget: int, look: int = 0) -> None:
        """As in `AggregateSampler`."""
        self.inner.more(budget, look)

    def replan(self, rows: int) -> None:
        """As in `GroupBySampler`, where the sampler within is one."""
        inner: Any = self.inner
        inner.replan(rows)

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`: any row could have been in the first stage."""
        draws = np.minimum(self.inner.expected_draws(), 1.0) * len(self.rows) / self.n_rows
        return np.resize(draws, self.n_rows)

    def estimate(self) -> Estimate:
        """The number of rows whose answer is 1."""
        return self.total((self.answers == 1.0).astype(np.float64) + 0.0 * self.answers, (0.0, 1.0))

    def total(self, y: Floats, bounds: Bounds = None, *, weights: Stored = None, domain: int | None = None) -> Estimate:
        """As in `AggregateSampler`."""
        estimate = self.inner.total(y, bounds, weights=self._of(weights), domain=domain)
        every, n = self._sizes(domain)
        if estimate.value is None or estimate.low is None or estimate.high is None or not n:
            return replace(estimate, exact=False)
        share = weights is None and counts_rows(y, bounds)
        if share:  # at each end, so that where no row counts the spread is that of the rows that may

            def deviation(total: float) -> float:
                p = min(max(total / n, 0.0), 1.0)
                return math.sqrt(p * (1 - p))

            below, above = deviation(estimate.low), deviation(estimate.high)
        else:
            below = above = self._deviation(np.nan_to_num(y), weights, domain)
        ends = self._widened((estimate.value, estimate.low, estimate.high), n * below, n * above, domain)
        value, low, high = (every / n * end for end in ends)
        if share:
            least = float(np.nansum(y if domain is None else y[self._told_in(domain)]))
            low, high = max(low, least), min(high, float(every))
        return replace(estimate, value=value, low=low, high=high, exact=False)

    def ratio(
        self, y: Floats, x: Floats, *, weights: Stored = None, counts: Stored = None, domain: int | None = None
    ) -> Estimate:
        """As in `AggregateSampler`."""
        estimate = self.inner.ratio(y, x, weights=self._of(weights), counts=self._of(counts), domain=domain)
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return replace(estimate, exact=False)
        open_ = np.isnan(y) | np.isnan(x)
        zero_y, zero_x = np.where(open_, 0.0, y), np.where(open_, 0.0, x)
        below = self.inner.total(zero_x, weights=self._of(counts), domain=domain).value
        if not below:
            return replace(estimate, exact=False)
        spread = self._deviation(zero_y - estimate.value * zero_x, None, domain) * self._sizes(domain)[1] / below
        value, low, high = self._widened((estimate.value, estimate.low, estimate.high), spread, spread, domain)
        if is_share_of(zero_y, zero_x, weights):
            low, high = max(low, 0.0), min(high, 1.0)
        return replace(estimate, value=value, low=low, high=high, exact=False)

    def _widened(
        self, estimate: tuple[float, float, float], below: float, above: float, domain: int | None
    ) -> tuple[float, float, float]:
        """Value and interval with the spread of the first stage, `below` and `above` the deviations of one row's part times n."""
        value, low, high = estimate
        every, n = self._sizes(domain)
        level: float = getattr(self.inner, "level", 0.95)
        unit = normal_quantile(level) * math.sqrt(1 / n - 1 / every)
        return value, value - math.hypot(value - low, unit * below), value + math.hypot(high - value, unit * above)

    def _deviation(self, y: Floats, weights: Floats | None, domain: int | None) -> float:
        """The standard deviation of y over the rows of the first stage, by the sampler within."""
        n, own = self._sizes(domain)[1], self._of(weights)
        mean = (self.inner.total(y, weights=own, domain=domain).value or 0.0) / n
        squares = None if own is None else own**2
        square = (self.inner.total(y**2, weights=squares, domain=domain).value or 0.0) / n
        return math.sqrt(max(square - mean**2, 0.0))

    def _sizes(self, domain: int | None) -> tuple[int, int]:
        """The rows of the table and of the first stage, or of a group of them."""
        if domain is None or self.groups is None or self.sizes is None:
            return self.n_rows, len(self.rows)
        return int(self.sizes[domain]), int((self.groups == domain).sum())

    def _told_in(self, domain: int) -> Flags:
        assert self.groups is not None
        inside: Flags = self.groups[self.inner.labelled] == domain
        return inside

    def _of(self, values: Floats | None) -> Floats | None:
        return None if values is None else values[self.rows]


class FirstStageSearch:
    """A search among the rows of a first stage, which proposes no more where these have few matches.

    Args:
        rows: (n,) the rows of the first stage, ascending.
        inner: a search over 0 … n − 1, the places of `rows`.
    """

    def __init__(self, rows: Indices, inner: RetrievalSampler) -> None:
        self.rows, self.inner = rows, inner
        self._outcomes: list[bool] = []

    @property
    def is_poor(self) -> bool:
        """Did few of the last rows match?"""
        return len(self._outcomes) >= LOOK and sum(self._outcomes[-LOOK:]) < RICH * LOOK

    def propose(self, k: int) -> Indices:
        """As in `RetrievalSampler`."""
        rows: Indices = self.rows[self.inner.propose(k)] if not self.is_poor else self.rows[:0]
        return rows

    def tell(self, indices: Indices, answers: Floats) -> None:
        """As in `RetrievalSampler`."""
        self._outcomes += (answers == 1.0).tolist()
        self.inner.tell(np.searchsorted(self.rows, indices), answers)

    def learn(self, indices: Indices, answers: Floats) -> None:
        """As in `RetrievalSampler`."""
        self.inner.learn(np.searchsorted(self.rows, indices), answers)

    def more(self, budget: int) -> None:
        """As in `RetrievalSampler`."""
        self.inner.more(budget)

    def matches(self) -> Indices:
        """As in `RetrievalSampler`."""
        rows: Indices = self.rows[self.inner.matches()]
        return rows
