"""Means and sums of every group of a table, where the groups are known: rows are allotted to groups, and what a group's
few rows say is drawn towards what rows like the others of it had."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from uql.sampling import intervals, surrogate
from uql.sampling.base import Bounds, Floats, Indices, Matrix
from uql.sampling.sample_state import Draws, Three, Weights, is_binary, is_share_of

PRIOR_ROWS = 6.0  # that the spread of all groups counts for in that of one
SPREADS = 41  # of the groups' means that are tried
WIDEST = 3.0  # such a spread, in standard deviations of the means seen
DOUBLES = 8  # groups that have a second row, however many have none: without one nothing is known of the spread
LEAST_WAVE = 8  # rows


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the query does with the statistic of its groups.

    Attributes:
        first: how many groups it returns; None: all of them.
        descending: whether these are the ones with the largest values.
        totals: whether the groups are ranked by sums, not by means.
    """

    first: int | None = None
    descending: bool = False
    totals: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """What is known of the mean of each of G groups from some of its rows, all (G,).

    Attributes:
        mean: the expected value of the mean of the rows that a group's rows are drawn from.
        variance: of that mean, given what was seen.
        spread: the variance of rows within the group.
        freedom: degrees of freedom of that spread.
        skewness: of rows within their groups, one number.
    """

    mean: Floats
    variance: Floats
    spread: Floats
    freedom: Floats
    skewness: float

    @classmethod
    def of(cls, values: Floats, place: Indices, n_groups: int, unseen: float = 0.0) -> Effects:
        """A hierarchical model: groups differ normally about one mean, rows normally about their group's.

        The spread between groups is averaged over, from 0 to WIDEST, with even chances before anything was seen: an estimate of it may be
        0, and would then say of each group what is true of all together. The spread within a group is drawn towards that within all.

        Args:
            values: (n,) of the rows seen.
            place: (n,) the group of each.
            unseen: what rows unlike all those seen add to the variance within a group.
        Source: Morris (1983), parametric empirical Bayes; Gelman (2006) for the even chances; Smyth (2004) for the spread within groups.
        """
        n = np.bincount(place, minlength=n_groups).astype(np.float64)
        has_rows = n > 0
        mean = np.bincount(place, values, minlength=n_groups) / np.maximum(n, 1)
        squares = np.bincount(place, (values - mean[place]) ** 2, minlength=n_groups)
        inside = float(n.sum() - has_rows.sum())
        whole = float(values.var(ddof=1)) if len(values) > 1 else 0.0
        common = float(squares.sum()) / inside if inside > 0 else whole
        common += max(unseen, whole / (inside + 2))  # groups may have rows unlike the few seen, alike as these may be
        own = np.maximum(n - 1, 0.0)
        spread = (PRIOR_ROWS * common + squares) / (PRIOR_ROWS + own)
        freedom = np.minimum(PRIOR_ROWS + own, max(inside, 1.0))
        if whole <= 0:  # no two values differ: nothing is known of the spread
            middle = float(values.mean()) if len(values) else 0.0
            return cls(np.full(n_groups, middle), np.full(n_groups, math.inf), spread, freedom, 0.0)
        error = common / n[has_rows]  # by a group's own spread, those that happen to be alike would weigh more
        widest = WIDEST * max(math.sqrt(float(mean[has_rows].var())), math.sqrt(float(error.mean())))
        between = np.linspace(0.0, widest, SPREADS)[:, None] ** 2
        total = between + error
        weight = 1 / total
        centre = (weight * mean[has_rows]).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        logs = -0.5 * (np.log(total).sum(axis=1) + np.log(weight.sum(axis=1)))
        logs -= 0.5 * (weight * (mean[has_rows] - centre) ** 2).sum(axis=1)
        chance = np.exp(logs - logs.max())
        chance = (chance / chance.sum())[:, None]
        shrinkage = np.zeros((SPREADS, n_groups))
        shrinkage[:, has_rows] = between / total
        mid = centre + shrinkage * (mean - centre)
        var = between * (1 - shrinkage) + (1 - shrinkage) ** 2 / weight.sum(axis=1, keepdims=True)
        expected = (chance * mid).sum(axis=0)
        variance = (chance * (var + (mid - expected) ** 2)).sum(axis=0) * np.maximum(spread / common, 1.0)
        skewness = float(((values - expected[place]) ** 3).mean()) / common**1.5
        return cls(expected, variance, spread, freedom, skewness)


@dataclass(frozen=True, slots=True)
class Part:
    """The sums of one group.

    Attributes:
        seen_y, seen_x: of the rows told.
        sum_y: with what is expected of the `open` other rows that count.
        variance, freedom: of that sum.
        event: what one more row, with a value of one more, would add to it.
        skew: the third moment of a row over its second, times what a row adds: how lopsided the sum's error is.
    """

    seen_y: float
    seen_x: float
    sum_y: float
    open: float
    variance: float = 0.0
    freedom: float = 1.0
    event: float = 0.0
    skew: float = 0.0


class ByGroupSampler(Draws):
    """Rows at random within each group, as many of each as the ranking of the groups needs.

    A first wave goes through all groups alike. Later ones go where another row narrows most: the mean of any group where all are returned,
    else the groups of which it is open whether they are among the first. A mean is that of the rows seen and of the predictions of the
    others, moved by what the rows of the group differ from theirs. Of a group without a row nothing is said.

    Args:
        features: (N, d) float32, or None.
        ranking: what the statistic of the groups is for.
    Source: Battese, Harter & Fuller (1988) for the estimate; Chen & Lee (2011) for the allotment where some are returned (OCBA-m).
    """

    method = "by group"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        groups: Indices,
        features: Matrix | None = None,
        ranking: Ranking | None = None,
        **kept: Any,
    ) -> None:
        super().__init__(n_rows, budget, **kept)
        self.groups = np.asarray(groups, np.int64)
        self.features, self.ranking = features, ranking or Ranking()
        self._codes, self._place = np.unique(self.groups, return_inverse=True)
        self._size = np.bincount(self._place)
        free = self.rng.permutation(np.flatnonzero(~self._is_asked))
        free = free[np.argsort(self._place[free], kind="stable")]
        self._queues = [q.tolist() for q in np.split(free, np.cumsum(np.bincount(self._place[free]))[:-1])]
        self._waiting: list[int] = []
        self._begun = False
        self._effects_cache: dict[bytes, tuple[Effects, Floats]] = {}

    # the sample

    def tell(self, indices: Indices, answers: Floats) -> None:
        """The value of each proposed row, NaN where it has none."""
        super().tell(indices, answers)
        self._effects_cache.clear()

    def _draw(self, k: int) -> Indices:
        """Rows of the current wave; none while answers of an earlier one are outstanding."""
        if not self._waiting:
            if bool(self._open.any()):
                return np.zeros(0, np.int64)
            self._next_wave(self.budget - self.n_proposed)
        rows, self._waiting = self._waiting[:k], self._waiting[k:]
        return np.array(rows, np.int64)

    def _next_wave(self, remaining: int) -> None:
        remaining = min(remaining, sum(map(len, self._queues)))
        draws = np.bincount(self._place[self._is_asked], minlength=len(self._codes)).astype(np.float64)
        if not self._begun:
            size = remaining // 3 if self.ranking.first is not None else remaining // 2
            allotted = self._evenly(min(remaining, max(size, len(self._codes), LEAST_WAVE)))
        else:
            whole = self.ranking.first is None or remaining < 2 * LEAST_WAVE
            allotted = self._by_need(remaining if whole else max(remaining // 3, LEAST_WAVE), draws)
        self._begun = True
        rows = [self._queues[g].pop() for g, n in enumerate(allotted) for _ in range(n)]
        self._waiting = self.rng.permutation(np.array(rows, np.int64)).tolist()

    def _evenly(self, rows: int) -> Indices:
        """(G,) rows of each group, the same of all that have so many; larger groups first where not all can have one."""
        order = np.lexsort((self.rng.random(len(self._size)), -self._size))
        allotted = np.zeros(len(self._size), np.int64)
        room = np.array([len(q) for q in self._queues])
        while rows > 0 and (allotted < room).any():
            next_ = order[(allotted < room)[order]]
            if not allotted.any() and rows < len(next_) + DOUBLES:
                next_ = next_[: max(1, rows - min(DOUBLES, rows // 4))]
            elif allotted.max() == 1 and rows < len(next_):  # second rows go to groups that have one
                next_ = np.concatenate([next_[allotted[next_] > 0], next_[allotted[next_] == 0]])
            allotted[next_[:rows]] += 1
            rows -= min(rows, len(next_))
        return allotted

    def _by_need(self, rows: int, draws: Floats) -> Indices:
        """(G,) rows of each group, one after another to the group that needs it most."""
        fine = ~np.isnan(self.answers)
        scale = self._size.astype(np.float64) if self.ranking.totals else np.ones(len(self._size))
        if not fine.any():
            return self._evenly(rows)
        effects = Effects.of(self.answers[fine], self._place[self.labelled[fine]], len(self._size))
        spread = effects.spread * scale**2
        if self.ranking.first is not None:
            spread = spread / self._distances(effects, scale)
        if not spread.any():  # no two values differ
            spread = np.ones(len(self._size))
        room = np.array([len(q) for q in self._queues])
        allotted = np.zeros(len(self._size), np.int64)
        n = draws.copy()
        for _ in range(rows):
            gain = np.where(allotted < room, spread / np.maximum(n * (n + 1), 1e-9), -1.0)
            at = int(gain.argmax())
            allotted[at] += 1
            n[at] += 1
        return allotted

    def _distances(self, effects: Effects, scale: Floats) -> Floats:
        """(G,) the squared distance of each group from the line between those returned and the others, and its variance."""
        assert self.ranking.first is not None
        value = effects.mean * scale * (-1.0 if self.ranking.descending else 1.0)
        order = np.sort(value)
        k = min(max(self.ranking.first, 1), len(order) - 1)
        line = (order[k - 1] + order[k]) / 2 if k >= 1 else order[0]
        distance = (value - line) ** 2 + effects.variance * scale**2
        apart: Floats = np.maximum(distance, 1e-9 * float(distance.max()) + 1e-300)
        return apart

    # the estimate

    def _rest(self, y: Floats, counted: Floats) -> tuple[Effects, Floats]:
        """Effects of the groups on what rows differ from their predictions, and the predictions (N,).

        Args:
            y: (n,) values of the rows told, of which those with `counted` (n,) not 0 have one.
        """
        key = y.tobytes() + counted.tobytes()
        if key not in self._effects_cache:
            rows, values = self.labelled[counted != 0], y[counted != 0]
            if self.features is None or len(rows) == 0:
                predicted, expected = np.zeros(self.n_rows), np.zeros(len(rows))
            else:
                fit = surrogate.number(self.features[rows], values)
                predicted, expected = fit.predict(self.features), fit.loo
            unseen = 1 / (len(values) + 2) if is_binary(values) else 0.0
            effects = Effects.of(values - expected, self._place[rows], len(self._codes), unseen)
            self._effects_cache = {key: (effects, predicted)}
        return self._effects_cache[key]

    def _within(self, y: Floats, x: Floats, counts: Floats | None, g: int) -> Part:
        """The sums of y and of x over the rows of a group.

        Args:
            y, x: (n,) of the rows told; x is 1 where a row counts, else 0, and y 0.
            counts: (N,) which rows count, where that is known.
        """
        effects, predicted = self._rest(y, x)
        inside = self._place == g
        within = inside[self.labelled]
        rest = inside.copy()
        rest[self.labelled] = False
        if counts is not None:
            rest &= counts != 0
        seen_y, seen_x, n = float(y[within].sum()), float(x[within].sum()), int(within.sum())
        open_ = float(rest.sum())
        if counts is None and n:
            open_ *= seen_x / n
        if open_ <= 0 or seen_x == 0:
            return Part(seen_y, seen_x, seen_y, open_)
        mean = float(predicted[rest].mean()) + float(effects.mean[g])
        of_mean, spread = float(effects.variance[g]), float(effects.spread[g])
        variance = open_**2 * (of_mean + spread / max(open_, 1.0))
        event = open_ * of_mean / spread if math.isfinite(of_mean) else math.inf
        skew = event * effects.skewness * math.sqrt(spread) if effects.skewness else 0.0
        return Part(seen_y, seen_x, seen_y + open_ * mean, open_, variance, float(effects.freedom[g]), event, skew)

    def _parts(self, y: Floats, x: Floats, counts: Floats | None, domain: int | None) -> list[Part]:
        groups = range(len(self._codes)) if domain is None else np.flatnonzero(self._codes == domain)
        return [self._within(y, x, counts, int(g)) for g in groups]

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        parts = self._parts(y, np.ones(len(y)), None, domain)
        if any(part.seen_x == 0 for part in parts):
            return math.nan, -math.inf, math.inf
        least, most = (0.0, 1.0) if bounds is None and is_binary(y) else bounds or (-math.inf, math.inf)
        low = sum(part.seen_y + part.open * least if part.open else part.seen_y for part in parts)
        high = sum(part.seen_y + part.open * most if part.open else part.seen_y for part in parts)
        return self._interval(parts, 1.0, (low, high))

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        if not is_binary(x):
            return self._quotient_of_sums(y, x, domain)
        parts = self._parts(y, x, row_weights[1], domain)
        counted = sum(part.seen_x + part.open for part in parts)
        if any(part.seen_x == 0 for part in parts) or counted <= 0:
            return math.nan, -math.inf, math.inf
        ends = (-math.inf, math.inf)
        if is_share_of(y, x, row_weights[0]):
            total = sum(part.seen_y for part in parts)
            ends = total / counted, (total + sum(part.open for part in parts)) / counted
        return self._interval(parts, counted, ends)

    def _of_numbers(self, estimate: Three, values: Floats, population: int, unknown: int) -> tuple[float, float]:
        """As it was found: the rows of other groups say how far the rows of a group with one row, or with like ones, may differ."""
        return estimate[1], estimate[2]

    def _of_means(
        self, estimate: Three, y: Floats, x: Floats, ends: tuple[float, float], unknown: int
    ) -> tuple[float, float]:
        """As `_of_numbers`."""
        return estimate[1], estimate[2]

    def _interval(self, parts: list[Part], divisor: float, ends: tuple[float, float]) -> Three:
        """The interval of a sum over a divisor, which lies between the ends; a beta interval where these are of shares.

        The end on the side of the long tail is moved out by a term for the skewness of the rows (Johnson 1978).
        """
        variance = sum(part.variance for part in parts) / divisor**2
        quantile = intervals.t_quantile(self.level, min(part.freedom for part in parts))
        least, most = ends
        value = min(max(sum(part.sum_y for part in parts) / divisor, least), most)
        if not math.isfinite(variance):
            return value, least, most
        if math.isfinite(least) and math.isfinite(most):
            return self._of_share(
                value, variance * (quantile / intervals.normal_quantile(self.level)) ** 2, parts, divisor, ends
            )
        half = quantile * math.sqrt(variance)
        skew = sum(part.skew for part in parts) / divisor * (1 + 2 * quantile**2) / 6
        return value, max(value - half + min(skew, 0.0), least), min(value + half + max(skew, 0.0), most)

    def _of_share(
        self, value: float, variance: float, parts: list[Part], divisor: float, ends: tuple[float, float]
    ) -> Three:
        """The interval of a value that as many rows as are not told can move from one end to the other."""
        least, most = ends
        room = most - least
        if room <= 0:
            return value, least, most
        share = (value - least) / room
        event = max(part.event for part in parts) / divisor / room
        near = min(share, 1 - share)
        low, high = intervals.beta_of_moments(near, variance / room**2, event, self.level)
        if share > 0.5:
            low, high = 1 - high, 1 - low
        whole = np.floor((least + room * low) * divisor), np.ceil((least + room * high) * divisor)  # of rows
        return (
            value,
            min(max(float(whole[0]) / divisor, least), value),
            max(min(float(whole[1]) / divisor, most), value),
        )

    def _quotient_of_sums(self, y: Floats, x: Floats, domain: int | None) -> Three:
        """Two sums of numbers, as if they erred apart."""
        ones = np.ones(len(y))
        top, bottom = (self._parts(v, ones, None, domain) for v in (y, x))
        sums = [sum(part.sum_y for part in parts) for parts in (top, bottom)]
        if any(part.seen_x == 0 for part in top) or sums[1] == 0:
            return math.nan, -math.inf, math.inf
        spreads = [sum(part.variance for part in parts) for parts in (top, bottom)]
        if not all(map(math.isfinite, spreads)):
            return sums[0] / sums[1], -math.inf, math.inf
        freedom = min(part.freedom for part in top)
        low, high = intervals.fieller(sums[0], sums[1], spreads[0], spreads[1], 0.0, self.level, freedom)
        return sums[0] / sums[1], low, high
