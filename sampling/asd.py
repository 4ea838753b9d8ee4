"""The adaptive stratified difference estimator (ASD): a surrogate learns where the answers are, and never biases the estimate much.

Waves of rows; in each, the free rows are sorted by the surrogate's score, cut into cells of equal mass, and two rows are drawn from every
cell. The estimate of a wave is what is known, plus the surrogate's prediction of the rest, plus the cells' mean residuals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uql.sampling import intervals, surrogate
from uql.sampling.base import Bounds, Flags, Floats, Indices, Matrix
from uql.sampling.cells import Cells, balanced_tree, runs_of_equal_mass
from uql.sampling.intervals import Skew
from uql.sampling.sample_state import Draws, Three, Weights, counts_rows, is_binary, is_share
from uql.sampling.surrogate import Linear
from uql.sampling.uniform import FEW

SHORTEST = 40  # rows of a wave, about, between the fewest and the most waves
FEWEST_WAVES, MOST_WAVES = 4, 8
LEARNED = 0.85  # of a later wave's mass that follows the surrogate; the rest is even
MOST_KEPT = 2  # predictions kept between the aggregates of one query
MOST_SURROGATES = 32  # of which each is kept: more than an estimate with the most waves takes
COPIES = 0.05  # of the mean squared distance of two rows: where most rows have another one nearer than this, rows have near copies
COPIES_ASKED, COPIES_AMONG = 64, 8_192  # rows that are looked at, and among how many
MANY_LABELS = 256  # above, a surrogate has as many directions as in a search
SIZE_WEIGHT = 0.15  # of the column of sizes, where rows have a mean squared norm of 1: adds 3 % to the error where it tells nothing
NEXT_TO_NOTHING = 1e-3  # of the mean size: the logarithm of a size of 0 is that of so much


@dataclass(slots=True)
class Wave:
    """One wave: its cells and the (H, 2) rows drawn from them.

    `chances` (N,) is each row's chance of being drawn in it: of a row labelled before, the chance that it would have
    had if it had not been, by its leave-one-out score.
    """

    cells: Cells
    pairs: Indices
    chances: Floats


@dataclass(slots=True)
class Plan:
    """Cells of a wave, and the key (N,) by which rows are sorted into them, higher first; None: rows without order."""

    cells: Cells
    key: Floats | None

    def chances(self, n_rows: int, free: Indices) -> Floats:
        """(N,) the chance of each row; those that are not `free` have that of the cell that their key falls into."""
        order, sizes = self.cells.order, self.cells.sizes
        out = np.full(n_rows, 2.0 * len(sizes) / max(len(free), 1))
        if self.key is not None and len(order):
            others = np.ones(n_rows, bool)
            others[free] = False
            ends = self.key[order[np.append(self.cells.starts[1:], len(order)) - 1]]
            place = np.searchsorted(-ends, -self.key[others], side="left")
            out[others] = 2 / sizes[np.minimum(place, len(sizes) - 1)]
        out[order] = np.repeat(2 / sizes, sizes)
        return out


@dataclass(frozen=True, slots=True)
class Moments:
    """Totals of one or two variables, the variance of each and their covariance, and Satterthwaite's degrees of freedom."""

    totals: Floats  # (m,)
    covariance: Floats  # (m, m)
    # (m, H) between the two draws of each cell, scaled so that their squares add up to the variance
    differences: Floats
    parts: Floats  # (m, draws) what each draw adds to the error of each total, about
    fractions: Floats  # (draws,) the share of its cell that is drawn
    stands: Floats  # (draws,) the rows that each stands for, by the share of its wave
    values: Floats  # (m, draws) what each draw adds to each total for one row that it stands for
    squares: float  # Σ of the model's variance of each row times what its draw would stand for, of the first variable
    expected: float  # the sum of the first variable's predictions

    def freedom(self, ratio: float | None = None) -> float:
        """Satterthwaite's degrees of freedom of the variance of the first total, or of the ratio of the two.

        The sample's part of the variance has one degree of freedom a cell, the model's part is taken as known.
        """
        of = np.array([1.0, 0.0])[: len(self.totals)] if ratio is None else np.array([1.0, -ratio])
        squares = float(((of @ self.differences) ** 4).sum())
        return float(of @ self.covariance @ of) ** 2 / squares if squares > 0 else math.inf

    def skew(self, ratio: float | None = None, *, read: bool) -> Skew:
        """Of the first total, or of the ratio of the two; `read`: is the first of numbers of which only the sample tells?"""
        counted = self.values[0] != 0 if ratio is None else (self.values != 0).any(axis=0)
        parts = self.parts[0] if ratio is None else self.parts[0] - ratio * self.parts[1]
        values = np.where(counted, self.values[0], np.nan) if read else None
        return Skew.of(parts, self.fractions, values, self.stands)

    def of_origin(self, origin: float) -> Moments:
        """Those of two totals, of which the first is of numbers less `origin` times the second's, for the numbers themselves."""
        both = np.array([[1.0, origin], [0.0, 1.0]])
        covariance = both @ self.covariance @ both.T
        parts, differences, values = (both @ of for of in (self.parts, self.differences, self.values))
        return replace(
            self,
            totals=both @ self.totals,
            covariance=covariance,
            differences=differences,
            parts=parts,
            values=values,
        )

    def event(self, whole: float) -> float | None:
        """What one more row that counts (or, where most do, that does not) would add to the first total."""
        rest = min(self.expected, whole - self.expected)
        return self.squares / rest if rest > 0 else None


class AsdSampler(Draws):
    """The default for aggregates. Fits on all other waves: a small bias (not seen in 400 repetitions of 20 predicates), less error.

    Args:
        features: (N, d) float32 with mean squared row norm about 1.
        prior: (N,) a score, higher where a yes is likelier, for the first wave; without it that wave spreads over the features.
        kept: as of `Draws`; `units` are drawn in proportion to their size, and numbers are predicted of one row of each.
        past_only: predict each wave from earlier waves only: exactly unbiased before clipping, at a larger error. Where rows have near
            copies, as frames of a video, the variance is that of such an estimate: later waves look beside what a wave has found, so that
            predictions made from them are right about the wave's own rows, and the residuals of these are smaller than those of the others.
    Source: Zrnic & Candès (2024), active statistical inference; Cassel, Särndal & Wretman (1976), difference
    estimators; cells of two draws as in Deville & Tillé (2004).
    """

    method = "asd"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        features: Matrix,
        prior: Floats | None = None,
        past_only: bool = False,
        **kept: Any,
    ) -> None:
        super().__init__(n_rows, budget, **kept)
        self.near_copies = have_near_copies(features)
        self.features, self.prior, self.past_only = with_size(features, self.size), prior, past_only
        self._waves: list[Wave] = []
        self._sizes = self._plan(self.budget - len(self._first), n_rows - self.n_known)
        self._waiting = np.zeros(0, np.int64)
        self.design = np.ones(n_rows)
        self._fits: dict[tuple[str, bytes, bool], list[Linear]] = {}
        self._surrogates: dict[tuple[bytes, bytes], Linear] = {}  # by rows and answers
        self._predicted: dict[tuple[str, bytes, bool], list[Floats]] = {}
        self._parts: dict[int, list[Floats]] = {}  # what each wave counts for, by their number
        self._stretch: Floats | None = None
        self._order: tuple[Indices, Floats] | None = self._group_order()
        self._base = np.ones(n_rows)
        if self.size is not None and self.units is not None and float(self.size.sum()) > 0:
            self._base = self._stretch = self.size / float(self.size.mean())
        elif self.size is not None:
            spread = float(np.std(self.size)) or 1.0
            stretch = np.sqrt(1 + ((self.size - float(np.mean(self.size))) / spread) ** 2)
            self._stretch = np.minimum(stretch, np.quantile(stretch, 0.99))

    # the sample

    def _group_order(self) -> tuple[Indices, Floats] | None:
        """(N,) the rank of each row's group by size, and what its mass is multiplied with: rows of small groups are
        drawn oftener, by the root of how much smaller they are.

        Source: Bankier (1988), power allocations.
        """
        if self.groups is None or self.n_rows == 0:
            return None
        _, place, sizes = np.unique(self.groups, return_inverse=True, return_counts=True)
        rank = np.argsort(np.argsort(sizes, kind="stable"), kind="stable")
        return rank[place].astype(np.int64), np.sqrt(sizes.mean() / sizes)[place]

    def _runs(self, free: Indices, score: Floats, mass: Floats, cells: int) -> Plan:
        """Cells by score (N,); within groups, while there are at least four cells a group."""
        if self._order is not None and 4 * len(np.unique(self._order[0][free])) <= cells:
            place, tilt = self._order
            ordered = np.sort(score[free])
            score = np.searchsorted(ordered, score) / len(free) - 2.0 * place
            mass = mass * tilt[free]
        key = score.astype(np.float32).astype(np.float64)
        return Plan(runs_of_equal_mass(free, key[free], mass, cells), key)

    @staticmethod
    def _plan(budget: int, free: int) -> list[int]:
        """Rows of each wave, even numbers."""
        pairs = min(budget, free) // 2
        waves = min(max(budget // SHORTEST, FEWEST_WAVES), MOST_WAVES) if budget >= 32 and free >= 4 * budget else 2
        waves = max(1, min(waves, pairs))
        return [2 * (pairs // waves + (t < pairs % waves)) for t in range(waves)] if pairs else []

    def more(self, budget: int, look: int = 0) -> None:
        """As in `Draws.more`; further rows come in two more waves, or in more where these would be long."""
        planned = len(self._first) + len(self._waiting) + sum(self._sizes[len(self._waves) :])
        added = budget - self.n_proposed - planned
        super().more(budget, look)
        free = int((~self._is_asked).sum()) - planned
        pairs = max(0, min(added, free)) // 2
        waves = min(max(2 * pairs // SHORTEST, 2), MOST_WAVES)
        self._sizes += [2 * n for t in range(waves) if (n := pairs // waves + (t < pairs % waves))]

    def tell(self, indices: Indices, answers: Floats) -> None:
        super().tell(indices, answers)
        self._fits.clear()
        self._predicted.clear()
        self._parts.clear()

    def _draw(self, k: int) -> Indices:
        """Rows of the current wave; none while answers of an earlier wave are outstanding."""
        if len(self._waiting) == 0:
            if len(self._waves) >= len(self._sizes) or (self._waves and bool(self._open.any())):
                return np.zeros(0, np.int64)
            self._next_wave(self._sizes[len(self._waves)])
        rows, self._waiting = self._waiting[:k], self._waiting[k:]
        return rows

    def _next_wave(self, size: int) -> None:
        free = np.flatnonzero(~self._is_asked & ~self._certain)
        cells = min(size, len(free)) // 2
        if not self._waves:
            plan = self._first_cells(free, cells)
        else:
            has_answer = ~np.isnan(self.answers)
            plan = self._later_cells(self.labelled[has_answer], self.answers[has_answer], free, cells)
        pairs = plan.cells.draw_pairs(self.rng)
        self.design[pairs] = plan.cells.sizes[:, None]
        self._waves.append(Wave(plan.cells, pairs, plan.chances(self.n_rows, free)))
        self._waiting = self.rng.permutation(pairs.ravel())

    def _later_cells(self, rows: Indices, y: Floats, free: Indices, cells: int) -> Plan:
        """Cells from the surrogate of the labelled `rows`; where all their answers are equal, as in the first wave."""
        if len(y) == 0 or y.min() == y.max():
            return self._first_cells(free, cells)
        fit = self._learned(rows, y)
        score = fit.score(self.features)
        p = fit.sure(score[free], y)
        u = np.sqrt(np.maximum(p * (1 - p), 1e-12))
        if self._stretch is not None:
            u = u * self._stretch[free]
        base = self._base[free]
        score[rows] = fit.loo  # a row's own label says nothing of the chance that it would have had
        return self._runs(free, score, LEARNED * u / u.sum() + (1 - LEARNED) * base / base.sum(), cells)

    def _learned(self, rows: Indices, y: Floats) -> Linear:
        """The surrogate of these answers (m,) of rows; kept, since what chooses the cells of a wave also predicts its answers."""
        key = rows.tobytes(), y.tobytes()
        if key not in self._surrogates:
            if len(self._surrogates) >= MOST_SURROGATES:
                self._surrogates.clear()
            directions = surrogate.DIRECTIONS if len(rows) <= MANY_LABELS else surrogate.SEARCH_DIRECTIONS
            fit = surrogate.probability(self.features[rows], y, self.design[rows], directions)
            self._surrogates[key] = fit
        return self._surrogates[key]

    def _first_cells(self, free: Indices, cells: int) -> Plan:
        if self.prior is None:
            return Plan(balanced_tree(free, self.features, cells), None)
        score = self.prior[free]
        rank = np.empty(len(free))
        rank[np.argsort(-score.astype(np.float32))] = np.arange(len(free))
        tau = 1 / (rank + 0.002 * len(free) + 5)
        mass = 0.6 / len(free) + 0.4 * tau / tau.sum()
        if self._stretch is not None:
            mass = mass * self._stretch[free]
        return self._runs(free, np.asarray(self.prior, np.float64), mass, cells)

    def expected_draws(self) -> Floats:
        """As in `AggregateSampler`, by the waves' chances."""
        draws = [wave.chances * float(self._is_told[wave.pairs].mean()) for wave in self._waves]
        return np.where(self._certain, np.inf, np.sum([np.zeros(self.n_rows), *draws], axis=0))

    # the estimate

    def _complete(self) -> list[int]:
        return [t for t, wave in enumerate(self._waves) if bool(self._is_told[wave.pairs].all())]

    def _shares(self, complete: list[int]) -> list[Floats]:
        """For each complete wave, (N,) what its estimate counts for in the whole, row by row; they add up to 1.

        By the odds of being drawn in it: the least variance where the waves err independently. So a row that a first
        wave drew where it looked rarely, and later waves look often, does not stand for as many rows as that wave
        thought. An answer moves the later chances of its own row a little, leave-one-out notwithstanding, and with more
        waves more often: with more than four the odds, beside those of a wave of as many even draws, are tempered by a
        power, which halves that bias and costs a hundredth of the error. Where the estimate must be exactly unbiased, by
        the waves' numbers of draws.
        Source: Veach & Guibas (1995), the balance heuristic, with odds since draws are without replacement.
        """
        if self.past_only:
            return self._by_draws(complete)
        if len(complete) not in self._parts:
            odds, whole = [], np.zeros(self.n_rows)
            power = min(1.0, FEWEST_WAVES / len(complete))
            for t in complete:
                cells, most = self._waves[t].cells, 1 - 1e-9
                even = min(2 * len(cells.sizes) / max(len(cells.order), 1), most)
                chance = np.minimum(self._waves[t].chances, most)
                odds.append((chance / (1 - chance)) ** power * (even / (1 - even)) ** (1 - power))
                whole += odds[-1]
            for part in odds:
                part /= whole
            self._parts[len(complete)] = odds
        return self._parts[len(complete)]

    def _by_draws(self, complete: list[int]) -> list[Floats]:
        n_draws = [float(self._waves[t].pairs.size) for t in complete]
        return [np.full(self.n_rows, n / sum(n_draws)) for n in n_draws]

    def _fitted(self, y: Floats, kind: str, complete: list[int], past: bool) -> list[Linear]:
        """For each complete wave, the surrogate of y from the rows told in other waves (earlier ones if `past`)."""
        key = kind, y.tobytes(), past
        if key in self._fits:
            return self._fits[key]
        indices, fits = self.labelled, []
        for use in self._others(complete, past):
            rows = indices[use]
            if kind == "share":
                fits.append(self._learned(rows, y[use]))
            else:
                fits.append(surrogate.number(self.features[rows], y[use]))
        self._fits[key] = fits
        return fits

    def _others(self, complete: list[int], past: bool) -> list[Flags]:
        """For each complete wave, (n,) the rows told that predict it: those of the others, or of earlier ones if `past`."""
        drawn_in = np.full(self.n_rows, -1)
        for t, wave in enumerate(self._waves):
            drawn_in[wave.pairs.ravel()] = t
        wave_of, answered = drawn_in[self.labelled], ~np.isnan(self.answers)
        return [answered & (wave_of < t if past else wave_of != t) for t in complete]

    def _predictions(
        self, y: Floats, weights: Floats | None, complete: list[int], inside: Flags, past: bool
    ) -> Iterator[tuple[Floats, Floats, Floats]]:
        """For each complete wave, (N,) the prediction of y, (N,) the model's variance of it and (N,) what that variance is about, for
        the rows `inside` (N,), from earlier waves alone if `past`. One wave at a time, for memory."""
        parts, truth = self.units if weights is None else weights, y
        if parts is not None:
            each = parts[self.labelled]
            some = each != 0
            truth = np.where(some, y / np.where(some, each, 1.0), np.nan_to_num(self.answers))
        if weights is not None or is_share(truth):
            found = self._shares_of(truth, complete, inside, past)
        else:
            means, fits = self._scored(truth, "number", complete, past), self._fitted(truth, "number", complete, past)
            found = ((mean, np.full(self.n_rows, fit.noise), mean) for mean, fit in zip(means, fits, strict=True))
        if parts is None:
            return found
        return ((parts * mean, parts**2 * spread, parts * about) for mean, spread, about in found)

    def _shares_of(
        self, y: Floats, complete: list[int], inside: Flags, past: bool
    ) -> Iterator[tuple[Floats, Floats, Floats]]:
        """For each complete wave, (N,) the prediction of 0/1 answers or of chances, the model's variance of it, p(1 − p), for chances
        less by how much nearer they are to their predictions than 0 and 1 would be, and p. Predictions are stretched as far as the
        answers ask for; the variance is that of the cautious chances p, so that no interval rests on a model that is sure after few
        answers. Within a group both are moved by what its rows told differ from them."""
        y, rows = np.clip(y, 0.0, 1.0), self.labelled
        uses = self._others(complete, past)
        ps, fits = self._scored(y, "share", complete, past), self._fitted(y, "share", complete, past)
        for p, fit, use in zip(ps, fits, uses, strict=True):
            sure = fit.sure(surrogate.logit(p), y[use])
            if not inside.all():
                of_group = use & inside[rows]
                p, sure = (surrogate.moved(q, rows[of_group], y[of_group], inside) for q in (p, sure))
            at = p[rows]
            part = 1.0 if is_binary(y) else float(((y - at) ** 2).sum()) / max(float((at * (1 - at)).sum()), 1e-12)
            yield sure, min(part, 1.0) * p * (1 - p), p

    def _scored(self, y: Floats, kind: str, complete: list[int], past: bool) -> list[Floats]:
        """For each complete wave, (N,) the prediction of y by `_fitted`; kept until the next answer, since the
        aggregates of one query ask for the same."""
        key = kind, y.tobytes(), past
        if key not in self._predicted:
            if len(self._predicted) >= MOST_KEPT:
                self._predicted.clear()
            self._predicted[key] = surrogate.predictions(self._fitted(y, kind, complete, past), self.features)
        return self._predicted[key]

    def _moments(self, variables: list[tuple[Floats, Floats | None]], inside: Flags, complete: list[int]) -> Moments:
        """Totals over the rows `inside` (N,) of one variable, or of two with x the second; each is (y, weights)."""
        moments = self._moments_from(variables, inside, complete, self.past_only)
        if self.past_only or not self.near_copies:
            return moments
        return replace(self._moments_from(variables, inside, complete, True), totals=moments.totals)

    def _moments_from(
        self, variables: list[tuple[Floats, Floats | None]], inside: Flags, complete: list[int], past: bool
    ) -> Moments:
        """As `_moments`, with predictions from the other waves, or from earlier ones if `past`."""
        m = len(variables)
        rows = self.labelled
        nested = m < 2 or not (variables[1][0][variables[0][0] != 0] == 0).any()
        predicted = [self._predictions(y, weights, complete, inside, past) for y, weights in variables]
        dense = np.zeros((m, self.n_rows))
        for j, (y, _) in enumerate(variables):
            dense[j, rows] = y
        totals, covariance = np.zeros(m), np.zeros((m, m))
        events, expected = 0.0, 0.0
        parts, values, differences = ([np.zeros((m, 0))] for _ in range(3))
        fractions, stands = [np.zeros(0)], [np.zeros(0)]
        for t, share, *now in zip(complete, self._shares(complete), *predicted, strict=True):
            wave = self._waves[t]
            order, sizes = wave.cells.order, wave.cells.sizes
            before = np.ones(self.n_rows, bool)
            before[order] = False
            before = before[rows]
            part_of = np.where(inside, share, 0.0)
            f = np.stack([mean * part_of for mean, *_ in now])  # this wave's part of each prediction
            residual = dense[:, wave.pairs] * part_of[wave.pairs] - f[:, wave.pairs]  # (m, H, 2)
            for j, (y, _) in enumerate(variables):
                base = float((y * part_of[rows])[before].sum())
                totals[j] += base + float(f[j, order].sum()) + float((sizes * residual[j].mean(axis=1)).sum())
            d = residual[:, :, 0] - residual[:, :, 1]
            centre = (residual.mean(axis=2) @ sizes / max(float(sizes.sum()), 1.0))[:, None, None]
            parts.append(((residual - centre) * (sizes[:, None] / 2)).reshape(m, -1))
            fractions.append(np.repeat(2 / sizes, 2))
            pairs = wave.pairs.ravel()
            each = np.ones(len(pairs)) if self.units is None else self.units[pairs]
            stands.append(np.repeat(sizes / 2, 2) * share[pairs] * each)
            values.append(dense[:, pairs] * inside[pairs] / each)
            scale = np.maximum(sizes * (sizes - 2.0), 0.0) / 6
            together = None if nested else _correlation(residual)
            model = self._model_covariance(now, part_of, wave, variables[-1][1], together)
            covariance += np.einsum("h,jh,kh->jk", scale, d, d) + np.einsum("h,jkh->jk", scale, model)
            events += float((sizes**2 * model[0, 0]).sum()) / 2
            expected += float(f[0, order].sum())
            differences.append(np.sqrt(scale) * d)
        return Moments(
            totals,
            covariance,
            np.concatenate(differences, axis=1),
            np.concatenate(parts, axis=1),
            np.concatenate(fractions),
            np.concatenate(stands),
            np.concatenate(values, axis=1),
            events,
            expected,
        )

    def _model_covariance(
        self,
        predicted: list[tuple[Floats, Floats, Floats]],
        part_of: Floats,
        wave: Wave,
        counts: Floats | None,
        together: float | None,
    ) -> Floats:
        """(m, m, H) the mean model (co)variance of what one row of each cell adds, `part_of` (N,) its value; of y and x
        = `counts` (None: 1) where y counts, p_y(counts − p_x), else by `together`, the correlation of their residuals."""
        m = len(predicted)
        out = np.zeros((m, m, len(wave.pairs)))
        for j in range(m):
            out[j, j] = wave.cells.means(part_of**2 * predicted[j][1])
        if m == 2:
            limit = np.sqrt(out[0, 0] * out[1, 1])
            if together is not None:
                out[0, 1] = out[1, 0] = together * limit
                return out
            most = 1.0 if counts is None else counts
            both = wave.cells.means(part_of**2 * predicted[0][2] * (most - predicted[1][2]))
            out[0, 1] = out[1, 0] = np.clip(both, -limit, limit)
        return out

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        complete, inside = self._complete(), self._rows_in(domain)
        within = inside[self.labelled]
        values = y[within]
        if not complete:
            return self._early_total(y, inside, weights, bounds)
        moments = self._moments([(y, weights)], inside, complete)
        value, variance = float(moments.totals[0]), float(moments.covariance[0, 0])
        certain = self._certain[self.labelled][within]
        if weights is None and counts_rows(y, bounds):
            size = int(inside.sum())
            # within a group few cells, and few rows, say something of the spread
            freedom = math.inf if domain is None else min(moments.freedom(), max(int((~certain).sum()) - 1, 1))
            each = np.ones(len(values))
            event = moments.event(float(size - certain.sum()))
            return share_interval(
                value,
                variance,
                values,
                each,
                float(size),
                size,
                self.level,
                None,
                freedom,
                certain=certain,
                event=event,
            )
        if weights is not None and float(weights[inside].min(initial=0.0)) >= 0:
            whole = float(weights[inside].sum())
            each = weights[self.labelled][within]
            part, size = weights[inside & ~self._certain], int(inside.sum())
            event, freedom = moments.event(whole - float(each[certain].sum())), moments.freedom()
            return share_interval(
                value, variance, values, each, whole, size, self.level, part, freedom, certain=certain, event=event
            )
        skew = moments.skew(read=weights is None and not is_binary(y))
        nearest = 0.0
        if weights is not None:
            counted = ((y != 0).astype(np.float64), None)
            nearest = self._least_error(counted, weights[inside & ~self._certain], complete, inside)
        return self._open_total(value, variance, moments.freedom(), y, inside, weights, bounds, skew, nearest)

    def _least_error(
        self, counted: tuple[Floats, Floats | None], values: Floats, complete: list[int], inside: Flags
    ) -> float:
        """How far at least each end of the interval of a sum of stored values lies from the estimate.

        The values are stored, so only which rows count is uncertain: of a truth that is independent of the values, the variance is that of
        the number of rows that count times the mean square of all values. Where nearly all rows drawn agree, the spread and the skewness of
        the few others are those of whichever were drawn: a single one makes one end very far and leaves the other too near. What these few
        say of the others, whose values may be why they do not agree, has as many degrees of freedom as they are, and one more.

        Args:
            counted: what each row told adds to the number of rows that count, and what every row would.
            values: of all rows that may count and are not known for certain; for a mean, less the mean.
        Source: as of `beta_of_moments` for half a row of the rarer kind that was not seen, after Fay & Feuer (1997).
        """
        moments = self._moments([counted], inside, complete)
        certain = inside[self.labelled] & self._certain[self.labelled]
        answers = counted[0][inside[self.labelled] & ~certain]
        size = float(inside.sum()) - float(certain.sum())
        differ = len(answers) > 0 and bool(np.ptp(answers))
        event = moments.event(size) if differ else None  # where all agree, predictions leave no variance
        event = size / max(len(answers), 1) if event is None else event
        mean_square = float((values**2).sum()) / max(len(values), 1)
        variance = (float(moments.covariance[0, 0]) + event**2 / 2) * mean_square
        n_count = int(np.count_nonzero(answers))
        rarer = min(n_count, len(answers) - n_count)
        return intervals.t_quantile(self.level, rarer + 1) * math.sqrt(variance)

    def _open_total(
        self,
        value: float,
        variance: float,
        freedom: float,
        y: Floats,
        inside: Flags,
        weights: Floats | None,
        bounds: Bounds,
        skew: Skew,
        nearest: float = 0.0,
    ) -> Three:
        """The interval of a sum that no known whole bounds; its ends are not nearer to the estimate than `nearest`."""
        within = inside[self.labelled]
        values, certain = y[within], int(self._certain[self.labelled][within].sum())
        n, size = max(len(values) - certain, 1), int(inside.sum()) - certain
        if not values.any() and weights is not None:  # values of both signs, and no row counts so far
            most = intervals.wilson(0.0, n, self.level)[1]
            part = weights[inside & ~self._certain]
            return value, most * float(np.minimum(part, 0).sum()), most * float(np.maximum(part, 0).sum())
        if bounds is None and not values.any():
            return value, -math.inf, math.inf
        least, most = bounds if bounds is not None else (float(values.min()), float(values.max()))
        if weights is not None:
            least = min(least, float(weights[inside].min()))
        if least >= 0:
            value = max(value, float(values.sum()))
        least_t, most_t = skew.quantiles(self.level, moments_freedom(freedom))
        error = math.sqrt(max(variance, 0.0))
        low, high = value - max(most_t * error, nearest), value + max(-least_t * error, nearest)
        if least >= 0 and int((values != 0).sum()) < FEW and value > 0:  # they may tell too little of the spread
            few = intervals.gamma_sum(value, variance, most * size / n, self.level)
            low, high = min(low, few[0]), max(high, min(few[1], float(values.sum()) + most * (size - n)))
        return value, max(low, float(values.sum())) if least >= 0 else low, high

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        weights, counts = row_weights
        complete, inside = self._complete(), self._rows_in(domain)
        if not complete:
            return self._early_ratio(y, x, row_weights, domain)
        # neither a mean nor its error depends on where its numbers begin: of a year it is predicted how far it lies from the mean
        some = x != 0
        differs = weights is None and not is_binary(y) and bool(some.any()) and bool(np.ptp(y[some] / x[some]))
        origin = float(y[some].sum() / x[some].sum()) if differs else 0.0
        moments = self._moments([(y - origin * x, weights), (x, counts)], inside, complete).of_origin(origin)
        top, bottom = float(moments.totals[0]), float(moments.totals[1])
        least, most = self._ends(y, x, row_weights, domain)
        within = inside[self.labelled]
        if bottom <= 0 or not x[within].any():  # without a row that counts, what is left of the sums is rounding
            return math.nan, least, most
        ratio = top / bottom
        c = moments.covariance
        if weights is None and is_binary(y) and is_binary(x) and bool((y <= x).all()):
            variance = max(float(c[0, 0] - 2 * ratio * c[0, 1] + ratio**2 * c[1, 1]), 0.0)
            counted = within & (x != 0)
            certain, values = self._certain[self.labelled][counted], y[counted]
            each, event = np.ones(len(values)), moments.event(bottom - float(certain.sum()))
            size = self.n_rows
            return share_interval(
                top, variance, values, each, bottom, size, self.level, certain=certain, ratio=True, event=event
            )
        counted_rows = int((within & ((x != 0) | (y != 0))).sum())
        # the cells or the rows that count, whichever tell more of the spread; within a group, whichever tell less
        by_cells, by_rows = moments_freedom(moments.freedom(ratio)), float(max(counted_rows - 1, 1))
        freedom = max(by_cells, by_rows) if domain is None else min(by_cells, by_rows)
        skew = moments.skew(ratio, read=weights is None and not is_binary(y))
        low, high = intervals.fieller(top, bottom, c[0, 0], c[1, 1], c[0, 1], self.level, freedom, skew)
        if weights is not None and is_binary(x):
            rows = (inside if counts is None else inside & (counts > 0)) & ~self._certain
            nearest = self._least_error((x, counts), weights[rows] - ratio, complete, inside) / bottom
            low, high = min(low, ratio - nearest), max(high, ratio + nearest)
        value = min(max(ratio, least), most)
        return value, min(max(low, least), value), max(min(high, most), value)

    # before the first wave is complete: the rows told so far with their chances of being drawn

    def _chances(self) -> Floats:
        """(n,) the rows each told row stands for: 1 if certain."""
        rows = self.labelled
        stands = np.where(self._certain[rows], 1.0, self.design[rows])
        random = ~self._certain[rows]
        rest = self.n_rows - int((~random).sum())
        if random.any():
            stands[random] *= rest / stands[random].sum()
        return stands

    def _early_total(self, y: Floats, inside: Flags, weights: Floats | None, bounds: Bounds) -> Three:
        rows, stands = self.labelled, self._chances()
        within = inside[rows]
        values, size = y[within], float(inside.sum())
        if not (~self._certain[rows]).any():
            return self._nothing_drawn(y, inside, weights, bounds)
        value = float((stands * y)[within].sum())
        kish = float(stands[within].sum()) ** 2 / max(float((stands[within] ** 2).sum()), 1e-12)
        if weights is None and is_binary(y) and bounds in (None, (0.0, 1.0)):
            share = min(value / size, 1.0)
            variance = share * (1 - share) / max(kish, 1.0) * size**2
            certain, each = self._certain[rows][within], np.ones(len(values))
            return share_interval(value, variance, values, each, size, int(size), self.level, certain=certain)
        spread = float(((stands * (y - np.where(within, y, 0.0).mean()))[within] ** 2).sum())
        return self._open_total(
            value,
            spread,
            max(len(values) - 1, 1),
            y,
            inside,
            weights,
            bounds,
            Skew.of((stands * y)[within], values=np.where(y != 0, y, np.nan)[within], stands=stands[within]),
        )

    def _early_ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        stands = self._chances() * self._rows_in(domain)[self.labelled]
        bottom = float((stands * x).sum())
        return (float((stands * y).sum()) / bottom if bottom else math.nan), *self._ends(y, x, row_weights, domain)


def with_size(features: Matrix, size: Floats | None) -> Matrix:
    """The features and a column of the logarithm of the size: rows may count for how large their stored values are.

    Args:
        features: (N, d).
        size: (N,) not negative; None, or alike: nothing to learn from.
    """
    if size is None or not len(size) or float(np.ptp(size)) == 0.0:
        return features
    column = np.log(size + NEXT_TO_NOTHING * float(size.mean()))
    column -= column.mean()
    column *= SIZE_WEIGHT / max(float(column.std()), SIZE_WEIGHT)
    return np.concatenate([features, column.astype(np.float32)[:, None]], axis=1)


def have_near_copies(features: Matrix) -> bool:
    """Has most of the rows another one that is nearly the same? By some rows evenly spaced in the table.

    Args:
        features: (N, d).
    """
    n = len(features)
    if n < 3 or not features.shape[1]:
        return False
    among = features[np.unique(np.linspace(0, n - 1, min(n, COPIES_AMONG)).astype(np.int64))]
    places = np.unique(np.linspace(0, len(among) - 1, min(len(among), COPIES_ASKED)).astype(np.int64))
    squares = np.einsum("ij,ij->i", among, among)
    distances = squares[places, None] + squares - 2 * among[places] @ among.T
    spread = float(np.mean(distances))
    distances[np.arange(len(places)), places] = np.inf
    return float(np.median(distances.min(axis=1))) < COPIES * spread


def _correlation(residual: Floats) -> float:
    """Of the residuals (2, H, 2) of two variables, about 0."""
    a, b = residual.reshape(2, -1)
    return float(a @ b) / max(math.sqrt(float(a @ a) * float(b @ b)), 1e-300)


def moments_freedom(freedom: float) -> float:
    """At least one degree of freedom."""
    return max(freedom, 1.0)


def share_interval(
    value: float,
    variance: float,
    values: Floats,
    each: Floats,
    whole: float,
    size: int,
    confidence: float,
    weights: Floats | None = None,
    freedom: float = math.inf,
    *,
    certain: Flags,
    ratio: bool = False,
    event: float | None = None,
) -> Three:
    """The interval for a total as a share of what it would be if every row counted.

    A beta interval from the estimate's moments; Wilson's where all rows drawn agree, never shorter than the exact one.
    Rows that are certain add what they add, and say nothing of the others.

    Args:
        value: the estimate, and `variance` its variance.
        values: (n,) what the told rows add; `each`: (n,) what they would add if they counted.
        whole: what all rows would add if all counted; `size` their number.
        weights: what each row that is not certain would add, where not 1.
        freedom: of the variance; Student's quantile stands for the normal one.
        certain: (n,) the told rows that were not drawn at random.
        ratio: give the share itself, not the total.
        event: what one more row that counts would add to the estimate; without it whole/n.
    """
    base, every = float(values[certain].sum()), whole
    whole, value, size = whole - float(each[certain].sum()), value - base, size - int(certain.sum())
    values, each = values[~certain], each[~certain]
    n = len(values)
    no = float((each - values).sum())
    yes = float(values.sum())
    if whole <= 0:
        return (base, base, base) if not ratio else (0.0, 0.0, 0.0)
    value = min(max(value, yes), whole - no) if not ratio else min(max(value, 0.0), whole)
    share = value / whole
    kish = float(n)
    if weights is not None and n:
        kish *= float(weights.mean()) ** 2 / max(float((weights**2).mean()), 1e-300)
    if n == 0:
        low, high = 0.0, 1.0
    elif yes == 0 or no == 0:
        share = 0.0 if yes == 0 else 1.0
        value = yes if yes == 0 else whole
        low, high = intervals.wilson(share, kish / max(1 - n / size, 1e-9), confidence)
        miss = intervals.nothing_found(n, size, confidence) / size * n / max(kish, 1e-9)
        if yes == 0:
            high = min(1.0, max(high, miss))
        else:
            low = max(0.0, min(low, 1 - miss))
    else:
        spread = intervals.t_quantile(confidence, moments_freedom(freedom)) / intervals.normal_quantile(confidence)
        part = max(variance / whole**2 * spread**2, share * (1 - share) / (100 * n))
        more = (whole / max(kish, 1.0) if event is None else event) / whole
        if share <= 0.5:
            low, high = intervals.beta_of_moments(share, part, more, confidence)
        else:
            low, high = intervals.beta_of_moments(1 - share, part, more, confidence)
            low, high = 1 - high, 1 - low
    if ratio:
        return (base + share * whole) / every, (base + low * whole) / every, (base + high * whole) / every
    return base + value, base + min(max(low * whole, yes), value), base + max(min(high * whole, whole - no), value)
