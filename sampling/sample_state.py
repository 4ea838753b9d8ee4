"""What every aggregate sampler keeps: rows known before, rows told, the budget; and the reading of unknown and exact answers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from uql.sampling.base import Bounds, Estimate, Flags, Floats, Indices, Stored
from uql.sampling.labelled_rows import Known, ProposedRows

Weights = tuple[Stored, Stored]  # of y and x, where known of every row
Three = tuple[float, float, float]  # value (NaN where undefined), low, high
WORTH = 0.8  # times the squared error: rows are asked for their size alone where it becomes no more than this


def is_binary(y: Floats) -> bool:
    """Whether every value is 0 or 1."""
    return bool(((y == 0.0) | (y == 1.0)).all())


def is_share(y: Floats) -> bool:
    """Whether every value lies between 0 and 1, both included."""
    return bool(((y >= 0.0) & (y <= 1.0)).all())


def counts_rows(y: Floats, bounds: tuple[float, float] | None) -> bool:
    """Do values add up to a number of rows: 0 or 1 each, or by their bounds a part of 1? Numbers that are small in a sample do not."""
    y = y[~np.isnan(y)]
    return is_binary(y) if bounds is None else bounds == (0.0, 1.0) and is_share(y)


def is_share_of(y: Floats, x: Floats, weights: Floats | None) -> bool:
    """Whether y is 1 on some of the rows with x = 1, and 0 elsewhere.

    Args:
        y: (n,) of the rows drawn.
        x: (n,) likewise.
        weights: (N,) the stored values of all rows, which must be 0 or 1 too; None: there are none.
    """
    binary_weights = weights is None or is_binary(weights)
    return binary_weights and is_binary(y) and is_binary(x) and bool((y <= x).all())


def unlike(n: int, confidence: float) -> float:
    """The greatest share of rows that may be unlike the others where n random ones are all alike."""
    return float(1 - ((1 - confidence) / 2) ** (1 / n))


class Draws(ProposedRows, ABC):
    """Bookkeeping of an aggregate sampler over N rows.

    Rows of `known` were answered before this query: they enter every total as certain rows, never as a random sample. Every y and x handed
    to `total` and `ratio` is in the order of `labelled`: the known rows first, then the rows in the order they were told.

    Args:
        n_rows: N.
        budget: rows that may be proposed; known rows cost nothing.
        rng: the only source of randomness.
        size: (N,) the |value| a SUM weighs each row with; a few rows that hold most of its spread are asked first.
        groups: (N,) int, the concrete group of each row, for totals within one of them; small groups are asked wholly.
        known: (indices, answers) of rows answered before.
        units: (N,) how many rows of a table each stands for, all of which have its answer; None: each is one row.
    """

    method = "uniform"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        rng: np.random.Generator,
        confidence: float = 0.95,
        size: Floats | None = None,
        groups: Indices | None = None,
        known: Known | None = None,
        units: Floats | None = None,
    ) -> None:
        super().__init__(n_rows, budget, rng, known)
        self.confidence, self.groups, self.size, self.units, self._look = confidence, groups, size, units, 0
        self._first = self._whole_groups(groups) if groups is not None else np.zeros(0, np.int64)
        if size is not None:
            self._first = np.concatenate([self._first, np.setdiff1d(self._largest(size), self._first)])
        self._certain = np.zeros(n_rows, bool)  # rows asked for their size, or known: no random draws
        self._certain[self.labelled] = True
        self._certain[self._first] = True

    @property
    def level(self) -> float:
        """The level an interval is made at: `confidence`, or more where this is one of several looks."""
        return self.confidence if self._look == 0 else 1 - (1 - self.confidence) / 2**self._look

    def more(self, budget: int, look: int = 0) -> None:
        """Set the budget in all to `budget` rows (never fewer than proposed) and go on sampling.

        For a stopping rule call `more(B, look=1)` at the start, then `more(2B, look=2)`, …: intervals of look j are
        made at 1 − α/2^j, so that the one that stops the sampling still holds at `confidence`.
        """
        self.budget = max(budget, self.n_proposed)
        self._look = look

    def propose(self, k: int) -> Indices:
        """At most k rows not proposed before; empty when the budget is spent or every row was asked."""
        k = min(k, self.budget - self.n_proposed)
        if k <= 0:
            return np.zeros(0, np.int64)
        rows, self._first = self._first[:k], self._first[k:]
        if len(rows) < k:
            drawn = self._draw(k - len(rows))
            rows = np.concatenate([rows, drawn]) if len(rows) else drawn
        return self._proposed(rows)

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`: the same for every row, unless a method knows better."""
        random = int((~self._certain[self.labelled]).sum())
        free = int((~self._certain).sum())
        return np.where(self._certain, np.inf, random / max(free, 1))

    # estimates

    def estimate(self) -> Estimate:
        """The number of rows whose answer is 1."""
        return self.total(self.answers, (0.0, 1.0))

    def total(self, y: Floats, bounds: Bounds = None, *, weights: Stored = None, domain: int | None = None) -> Estimate:
        """As in `AggregateSampler`."""
        y = self._checked(y)
        inside, population = self._told_in(domain)
        missing = np.isnan(y) & inside
        unknown, calls = int(missing.sum()), self.calls
        zero, whole = np.nan_to_num(y), int(inside.sum()) == population

        def of(values: Floats) -> Three:
            sum_ = float(values[inside].sum())
            if whole:
                return sum_, sum_, sum_
            estimate = self._total(values, weights, domain, bounds)
            return self._possible(estimate, values[inside], weights, domain, bounds)

        value, low, high = of(zero)
        for filled in self._fills(zero, missing, inside, bounds, weights) if unknown else ():
            _, lower, upper = of(filled)
            low, high = min(low, lower), max(high, upper)
        exact = whole and unknown == 0
        if not exact and weights is None and bounds is None and not is_binary(zero[inside & ~missing]):
            certain = inside & self._certain[self.labelled]
            free = population - int((certain & ~missing).sum())
            low, high = self._of_numbers((value, low, high), zero[inside & ~missing & ~certain], free, unknown)
            if math.isclose(low, high, rel_tol=1e-9):  # no spread among the rows drawn
                low, high = -math.inf, math.inf
        finite_value = None if math.isnan(value) else value
        return Estimate(
            finite_value, low, high, self.confidence, exact, calls, unknown, "exact" if exact else self.method
        )

    def _nothing_drawn(self, y: Floats, inside: Flags, weights: Stored, bounds: Bounds) -> Three:
        """A total of which no random row tells: between the ends that the rows not told allow."""
        rest = inside.copy()
        rest[self.labelled] = False
        base = float(y[inside[self.labelled]].sum())
        if weights is not None:
            part = weights[rest]
            return math.nan, base + float(np.minimum(part, 0).sum()), base + float(np.maximum(part, 0).sum())
        if bounds is None:
            bounds = (0.0, 1.0) if is_binary(y) else (-math.inf, math.inf)
        low, high = (base + end * float(rest.sum()) for end in bounds)
        return math.nan, low, high

    def _possible(
        self, estimate: Three, values: Floats, weights: Floats | None, domain: int | None, bounds: Bounds
    ) -> Three:
        """A total no lower and no higher than the rows seen and the weights of the others allow."""
        if weights is None and bounds != (0.0, 1.0):
            return estimate
        rest = self._rows_in(domain)
        rest[self.labelled] = False
        least = most = float(values.sum())
        if weights is None:
            most += float(rest.sum())
        else:
            least += float(np.minimum(weights[rest], 0.0).sum())
            most += float(np.maximum(weights[rest], 0.0).sum())
        value, low, high = (end if math.isnan(end) else min(max(end, least), most) for end in estimate)
        # all rows seen agree: others may differ, as many as no sample would show
        if least < most and math.isclose(low, high, rel_tol=1e-9):
            drawn = int((self._told_in(domain)[0] & ~self._certain[self.labelled]).sum())
            more = unlike(drawn, self.level) * (most - least) if drawn else most - least
            low, high = max(low - more, least), min(high + more, most)
        return value, low, high

    def ratio(
        self, y: Floats, x: Floats, *, weights: Stored = None, counts: Stored = None, domain: int | None = None
    ) -> Estimate:
        """As in `AggregateSampler`.

        Raises: ValueError for a domain without groups, or for arrays of another length than `labelled`.
        """
        y, x = self._checked(y), self._checked(x)
        inside, population = self._told_in(domain)
        open_ = np.isnan(y) | np.isnan(x)
        missing = open_ & inside
        unknown = int(missing.sum())
        everything = inside if int(inside.sum()) == population else None
        zero_y, zero_x = np.where(open_, 0.0, y), np.where(open_, 0.0, x)
        share = is_share_of(zero_y, zero_x, weights)
        value, low, high = self._quotient(zero_y, zero_x, everything, (weights, counts), domain)
        if unknown:
            usable = (zero_x != 0) & inside & ~missing
            each = zero_y[usable] / zero_x[usable] if usable.any() else np.array([-math.inf, math.inf])
            if share:
                each = np.array([0.0, 1.0])
            for one, up in ((float(each.min()), False), (float(each.max()), True)):
                if not math.isfinite(one):
                    low, high = -math.inf, math.inf
                    break
                filled = self._filled(y, x, inside, one, up, (weights, counts))
                _, lower, upper = self._quotient(*filled, everything, (weights, counts), domain)
                low, high = min(low, lower), max(high, upper)
        exact = everything is not None and unknown == 0
        if share and not exact and math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12):
            of_counts = weights is None or is_binary(weights)
            n = int((inside & (zero_x != 0) & ~self._certain[self.labelled]).sum())
            low, high = (
                self._of_shares(value, n) if of_counts else self._ends(zero_y, zero_x, (weights, counts), domain)
            )
        if not exact and not share:
            counted = inside & ~missing & ((zero_x != 0) | (zero_y != 0))
            ends = self._ends(zero_y, zero_x, (weights, counts), domain)
            low, high = self._of_means((value, low, high), zero_y[counted], zero_x[counted], ends, unknown)
            if math.isclose(low, high, rel_tol=1e-9):  # no spread among the rows drawn
                low, high = ends
        finite_value = None if math.isnan(value) else value
        if exact and finite_value is None:
            return Estimate(None, None, None, self.confidence, True, self.calls, 0, "exact")
        method = "exact" if exact else self.method
        return Estimate(finite_value, float(low), float(high), self.confidence, exact, self.calls, unknown, method)

    # what a method fills in

    @abstractmethod
    def _draw(self, k: int) -> Indices:
        """At most k more rows, at random by the plan of the method."""

    @abstractmethod
    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        """Value and interval for a y without NaN, of the rows of the domain, when not every one of them was asked."""

    @abstractmethod
    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        """The same for total(y)/total(x), `row_weights` the weights of each; NaN for a value that is not defined."""

    # parts

    def _rows_in(self, domain: int | None) -> Flags:
        """(N,) the rows of a group; all of them where it is None."""
        return np.ones(self.n_rows, bool) if domain is None or self.groups is None else self.groups == domain

    def _told_in(self, domain: int | None) -> tuple[Flags, int]:
        """(n,) which of the rows told are of a group, and how many rows it has in all. Raises: ValueError without groups."""
        if domain is None:
            return np.ones(len(self.labelled), bool), self.n_rows
        if self.groups is None:
            raise ValueError("a total or a ratio within a group needs the groups of all rows")
        return self.groups[self.labelled] == domain, int((self.groups == domain).sum())

    def _quotient(
        self, y: Floats, x: Floats, everything: Flags | None, row_weights: Weights, domain: int | None
    ) -> Three:
        """The ratio, exact where `everything` (n,) names the rows told, which are all that there are."""
        if everything is None:
            return self._ratio(y, x, row_weights, domain)
        bottom = float(x[everything].sum())
        value = float(y[everything].sum()) / bottom if bottom else math.nan
        return (value, value, value) if bottom else (math.nan, -math.inf, math.inf)

    def _fills(
        self, y: Floats, missing: Flags, inside: Flags, bounds: Bounds, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        """y with the unknown rows at the least, and at the most that they may be: by what the others `inside` are."""
        if weights is not None:
            each = weights[self.labelled]
            return np.where(missing, np.minimum(each, 0.0), y), np.where(missing, np.maximum(each, 0.0), y)
        each = np.ones(len(y)) if self.units is None else self.units[self.labelled]
        least, most = bounds if bounds is not None else self._range((y / each)[inside & ~missing])
        return np.where(missing, least * each, y), np.where(missing, most * each, y)

    def _filled(
        self, y: Floats, x: Floats, inside: Flags, one: float, up: bool, row_weights: Weights
    ) -> tuple[Floats, Floats]:
        """y and x with the unknown rows `inside` as they move y/x farthest `up` or down: each counts with what is stored of it, else
        with `one`, or does not count. Which of them move it is found by Dinkelbach's iteration (1967), by the rows told."""
        weights, counts = row_weights
        whole = np.ones(len(x)) if counts is None else counts[self.labelled]
        open_ = np.isnan(y) | np.isnan(x)
        part = np.where(np.isnan(x), whole, x)
        top = one * part
        if weights is not None:
            own = weights[self.labelled]
            as_one = np.isnan(x) & np.isclose(y * whole, own * x)[~open_].all()  # what counts in y counts in x
            top = np.where(as_one, own, np.maximum(own, 0.0) if up else np.minimum(own, 0.0))
        top = np.where(np.isnan(y), top, y)
        chosen = open_ & inside
        while True:
            filled = np.where(chosen, top, np.where(open_, 0.0, y)), np.where(chosen, part, np.where(open_, 0.0, x))
            bottom = float(filled[1][inside].sum())
            gain = top - float(filled[0][inside].sum()) / (bottom or 1.0) * part
            better = chosen & (~np.isnan(x) | ((gain > 0) if up else (gain < 0)))
            if bottom == 0 or not better.any() or (better == chosen).all():
                return filled
            chosen = better

    def _range(self, values: Floats) -> tuple[float, float]:
        if is_binary(values):
            return 0.0, 1.0
        return min(0.0, float(values.min())), max(0.0, float(values.max()))

    def _of_numbers(self, estimate: Three, values: Floats, population: int, unknown: int) -> tuple[float, float]:
        """The interval of a sum of numbers of which nothing but `values` tells how large they are.

        Open from one row; where all are alike, other values may hold for as many rows as no sample would show.
        """
        value, low, high = estimate
        if len(values) < 2:
            return -math.inf, math.inf
        if np.ptp(values) > 0:
            return low, high
        others = unknown + unlike(len(values), self.level) * (population - len(values) - unknown)
        more = abs(float(values[0])) * others
        return min(low, value - more), max(high, value + more)

    def _of_shares(self, value: float, n: int) -> tuple[float, float]:
        """The interval of a share where all of n rows agree."""
        share = unlike(n, self.level) if n else 1.0
        return max(0.0, value - share), min(1.0, value + share)

    def _of_means(
        self, estimate: Three, y: Floats, x: Floats, ends: tuple[float, float], unknown: int
    ) -> tuple[float, float]:
        """The same of a ratio of numbers, by the rows that count; `ends`: the least and the greatest that it can be."""
        value, low, high = estimate
        if math.isnan(value):
            return low, high
        if len(y) < 2:
            return ends
        if (x == 0).any() or np.ptp(y / x) > 1e-12 * abs(value):
            return low, high
        share = max(unlike(len(y), self.level), unknown / (len(y) + unknown))
        least = ends[0] if math.isfinite(ends[0]) else value - abs(value)
        most = ends[1] if math.isfinite(ends[1]) else value + abs(value)
        return min(low, value - share * (value - least)), max(high, value + share * (most - value))

    def _ends(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> tuple[float, float]:
        """A mean of stored values lies among them; else the ends are open."""
        weights, counts = row_weights
        if (
            weights is None
            or is_binary(weights)
            or not is_share(x)
            or not np.isclose(y, weights[self.labelled] * x).all()
        ):
            return -math.inf, math.inf
        among = self._rows_in(domain)
        values = weights[among if counts is None else among & (counts > 0)]
        return (float(values.min()), float(values.max())) if len(values) else (-math.inf, math.inf)

    def _checked(self, y: Floats) -> Floats:
        y = np.asarray(y, np.float64)
        n = self.n_known + self.calls
        if y.shape != (n,):
            raise ValueError(f"{n} rows have an answer (known rows first), but y has shape {y.shape}")
        return y

    def _whole_groups(self, groups: Indices) -> Indices:
        """The free rows of groups of at most B/(2G) of them: at most half the budget, and those groups are exact."""
        free = np.flatnonzero(~self._is_asked)
        names, place = np.unique(groups[free], return_inverse=True)
        sizes = np.bincount(place, minlength=len(names))
        small = sizes <= self.budget / (2 * max(len(names), 1))
        return free[small[place]] if len(names) > 1 else np.zeros(0, np.int64)

    def _largest(self, size: Floats) -> Indices:
        """Free rows that are asked for sure: as many of the largest |size| as leave the least error where the others are drawn at random,
        at most a quarter of the budget; none where the squared error is then above WORTH of what it is without.

        Source: Hidiroglou (1986), take-all strata.
        """
        weight = np.abs(np.nan_to_num(np.asarray(size, np.float64)))
        free = np.flatnonzero(~self._is_asked)
        if len(free) == 0 or self.budget < 8:
            return np.zeros(0, np.int64)
        order = free[np.argsort(-weight[free], kind="stable")]
        squares = np.cumsum(weight[order[::-1]] ** 2)[::-1]  # of each row and those after it
        most = min(self.budget // 4, len(order) - 1)
        error = squares[: most + 1] / (self.budget - np.arange(most + 1))
        taken = int(np.argmin(error))
        if error[taken] > WORTH * error[0]:
            taken = 0
        odd = taken > 0 and (self.budget - taken) % 2  # the others are drawn in pairs
        return order[: taken + odd if taken < most else taken - odd]
