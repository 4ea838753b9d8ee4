"""Samples of units: rows that show a model the same are one unit, asked once, and known together.

A sampler draws units; what stands here speaks of rows, so that the rest of the engine need not know. A total over rows is a total over
units, in which each unit weighs what its rows add up to: known before any of them is asked where the rows' values are stored, as they are
for counts. Source: single-stage cluster sampling with known sizes, Särndal, Swensson & Wretman (1992), chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from uql.sampling.base import AggregateSampler, Bounds, Estimate, Flags, Floats, Indices, RetrievalSampler, Stored
from uql.sampling.labelled_rows import Known, LabelledRows
from uql.sampling.sample_state import counts_rows, is_binary


class Units:
    """Which rows are one unit.

    Args:
        of: (N,) the number of each row's unit, 0 … M − 1, each at least once.
    """

    def __init__(self, of: Indices) -> None:
        self.of = of
        self._rows = np.argsort(of, kind="stable")
        self.sizes: Indices = np.bincount(of)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def first(self) -> Indices:
        """(M,) the first row of each unit."""
        out: Indices = self._rows[self._starts]
        return out

    def rows(self, units: Indices) -> Indices:
        """The rows of some units, unit after unit."""
        parts = [self._rows[self._starts[u] : self._starts[u] + self.sizes[u]] for u in units]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def count(self, rows: Indices) -> int:
        """The number of units that some rows belong to."""
        return len(np.unique(self.of[rows]))

    def sums(self, values: Floats) -> Floats:
        """(M,) the sums of (N,) values."""
        return np.bincount(self.of, values, minlength=len(self)).astype(np.float64)

    def whole(self, rows: Indices) -> Flags:
        """Which of some rows belong to a unit all of whose rows are among them."""
        counts = np.bincount(self.of[rows], minlength=len(self))
        out: Flags = (counts == self.sizes)[self.of[rows]]
        return out

    def unit_answers(self, rows: Indices, answers: Floats) -> tuple[Indices, Floats]:
        """The units of some rows, in their order, and the answer of each: that of its first row."""
        units, at = np.unique(self.of[rows], return_index=True)
        order = np.argsort(at, kind="stable")
        return units[order], answers[at[order]]


class UnitSample(LabelledRows):
    """An aggregate sampler over rows that draws units.

    Args:
        make: makes the sampler of the units, from their number and the keywords `units`, `known` and `groups`.
        known: rows answered before and their answers, of whole units.
        groups: (N,) the group of each row.
    """

    def __init__(
        self,
        units: Units,
        make: Callable[..., AggregateSampler],
        *,
        known: Known | None = None,
        groups: Indices | None = None,
        **keywords: Any,
    ) -> None:
        self.units, self.groups, self.n_rows = units, groups, len(units.of)
        within = groups is not None and bool((groups[units.first][units.of] == groups).all())
        if within and groups is not None:
            keywords["groups"] = groups[units.first]
        super().__init__(known)
        keywords["units"] = units.sizes.astype(np.float64)
        if self.n_known:
            keywords["known"] = units.unit_answers(self.labelled, self.answers)
        self.inner = make(len(units), **keywords)

    def propose(self, k: int) -> Indices:
        """All rows of at most k units."""
        return self.units.rows(self.inner.propose(k))

    def tell(self, indices: Indices, answers: Floats) -> None:
        """The truth of the rows proposed, those of a unit together."""
        indices, answers = np.asarray(indices, np.int64), np.asarray(answers, np.float64)
        self._keep(indices, answers)
        self.inner.tell(*self.units.unit_answers(indices, answers))

    def more(self, budget: int, look: int = 0) -> None:
        self.inner.more(budget, look)

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`: the rows of a unit are drawn together."""
        draws: Floats = self.inner.expected_draws()[self.units.of]
        return draws

    def estimate(self) -> Estimate:
        return self.total(self.answers, (0.0, 1.0))

    def total(self, y: Floats, bounds: Bounds = None, *, weights: Stored = None, domain: int | None = None) -> Estimate:
        """As in `AggregateSampler`; y and weights are of rows."""
        y, inside = np.asarray(y, np.float64), self._inside(domain)
        share = weights is None and counts_rows(y, bounds)
        whole = np.ones(self.n_rows) if share else weights
        sums = self._sums(y, inside)
        unknown = int(np.isnan(y[inside[self.labelled]]).sum())
        unit_weights = None if whole is None else self.units.sums(np.where(inside, whole, 0.0))
        estimate = self.inner.total(sums, None if unit_weights is not None else bounds, weights=unit_weights)
        estimate = replace(estimate, unknown=unknown)
        if self._all_told(inside) and not unknown:
            value = float(np.nansum(sums))
            return replace(estimate, value=value, low=value, high=value, exact=True, method="exact")
        return estimate

    def ratio(
        self, y: Floats, x: Floats, *, weights: Stored = None, counts: Stored = None, domain: int | None = None
    ) -> Estimate:
        """As in `AggregateSampler`; all arrays are of rows."""
        y, x, inside = np.asarray(y, np.float64), np.asarray(x, np.float64), self._inside(domain)
        rows = self.labelled
        fine = ~(np.isnan(y) | np.isnan(x))
        within = fine & inside[rows]
        share = weights is None and is_binary(y[fine])
        counted = counts is None and is_binary(x[fine])
        top = np.ones(self.n_rows) if share else weights
        bottom = np.ones(self.n_rows) if counted else counts
        sum_y, sum_x = self._sums(y, inside), self._sums(x, inside)
        estimate = self.inner.ratio(
            sum_y,
            sum_x,
            weights=None if top is None else self.units.sums(np.where(inside, top, 0.0)),
            counts=None if bottom is None else self.units.sums(np.where(inside, bottom, 0.0)),
        )
        unknown = int((~fine & inside[rows]).sum())
        estimate = replace(estimate, unknown=unknown)
        if self._all_told(inside) and not unknown and np.nansum(sum_x) != 0:
            value = float(np.nansum(sum_y) / np.nansum(sum_x))
            return replace(estimate, value=value, low=value, high=value, exact=True, method="exact")
        least, most = -math.inf, math.inf
        if share and counted and bool((y[within] <= x[within]).all()):
            least, most = 0.0, 1.0
        elif weights is not None and is_binary(x[fine]) and np.isclose(y[within], (weights[rows] * x)[within]).all():
            among = weights[inside if counts is None else inside & (counts > 0)]
            least, most = float(among.min(initial=math.inf)), float(among.max(initial=-math.inf))
        if estimate.value is None or estimate.low is None or estimate.high is None or least > most:
            return estimate
        value = min(max(estimate.value, least), most)
        low, high = min(max(estimate.low, least), value), max(min(estimate.high, most), value)
        if low == high:  # the ends agree at one of the bounds
            low, high = least, most
        return replace(estimate, value=value, low=low, high=high)

    def _inside(self, domain: int | None) -> Flags:
        if domain is None:
            return np.ones(self.n_rows, bool)
        if self.groups is None:
            raise ValueError("a total within a group needs the groups of all rows")
        out: Flags = self.groups == domain
        return out

    def _sums(self, y: Floats, inside: Flags) -> Floats:
        """(m,) the sums over the rows told of each unit told, in the order of the sampler of units; NaN where one of them is unknown."""
        rows, order = self.labelled, self.inner.labelled
        place = np.empty(len(self.units), np.int64)
        place[order] = np.arange(len(order))
        sums = np.bincount(place[self.units.of[rows]], np.where(inside[rows], y, 0.0), minlength=len(order))
        return sums.astype(np.float64)

    def _all_told(self, inside: Flags) -> bool:
        return int(inside[self.labelled].sum()) == int(inside.sum())


class UnitSearch:
    """A search over rows that asks units: one row that passes is as many as there are like it."""

    def __init__(
        self,
        units: Units,
        make: Callable[..., RetrievalSampler],
        *,
        known: Known | None = None,
        **keywords: Any,
    ) -> None:
        self.units = units
        keywords["known"] = None if known is None else units.unit_answers(*known)
        self.inner = make(len(units), **keywords)

    def propose(self, k: int) -> Indices:
        """All rows of at most k units."""
        return self.units.rows(self.inner.propose(k))

    def tell(self, indices: Indices, answers: Floats) -> None:
        self.inner.tell(*self.units.unit_answers(np.asarray(indices, np.int64), np.asarray(answers, np.float64)))

    def learn(self, indices: Indices, answers: Floats) -> None:
        self.inner.learn(*self.units.unit_answers(np.asarray(indices, np.int64), np.asarray(answers, np.float64)))

    def more(self, budget: int) -> None:
        self.inner.more(budget)

    def matches(self) -> Indices:
        return self.units.rows(self.inner.matches())
