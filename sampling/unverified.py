"""Rows returned unasked, with a precision that holds: learn, sort, test nested sets of the likeliest rows on random members."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import surrogate
from uql.sampling.asd import AsdSampler
from uql.sampling.base import Floats, Indices, Matrix
from uql.sampling.retrieval import Search
from uql.sampling.surrogate import SEARCH_DIRECTIONS

PARTS = (0.1, 0.4, 0.65, 0.85)  # mean predicted precision of the sets, largest set first, between the target and 1
BET = 0.75  # a bet is for at least this part of the way from the target to 1: a bet for less grows too slowly
SMALLEST = 40  # rows of a set that is worth a test
HOPELESS = 0.1  # capital at which a set is given up


class BettingTest:
    """Is at least a share `target` of a set's rows marked? A bet on every random member, without replacement.

    The capital is a supermartingale while the share is below the target, so that it reaches 1/δ with probability at
    most δ, however often one looks.

    Args:
        size: rows of the set.
        target: the share to prove.
        expected: the share hoped for, above `target`: the bet is Kelly's for it.
    Source: Waudby-Smith & Ramdas (2024), betting, without replacement; Ville (1939).
    """

    def __init__(self, size: int, target: float, expected: float) -> None:
        self.size, self.expected = size, min(max(expected, target + BET * (1 - target)), 1 - 0.02 * (1 - target))
        self.most = math.ceil(target * size - 1e-9) - 1  # marked rows, at most, if the share is below the target
        self.n_draws, self.hits, self.capital = 0, 0, 1.0

    def see(self, marked: bool) -> None:
        """The next random member."""
        left = self.size - self.n_draws
        mean = (self.most - self.hits) / left if left else 0.0
        if mean <= 0:  # more are marked than a share below the target allows
            self.capital = math.inf if marked or self.hits > self.most else self.capital
        elif mean < 1:
            bet = max((self.expected - mean) / (mean * (1 - mean)), 0.0)
            bet = min(bet, 0.98 / mean)
            self.capital *= 1 + bet * ((1.0 if marked else 0.0) - mean)
        self.n_draws += 1
        self.hits += marked


class UnverifiedSearch(Search):
    """Half the budget learns, by waves of the ASD estimator; the rest tests sets, and what is left asks the likeliest other rows.

    The sets are nested: the likeliest rows, down to four cuts. Rows of the largest are asked in random order, each a
    bet for every set that holds it; a set without hope is given up, and the order goes on within the next. The first
    set whose bet reaches sets/δ is accepted, so that by the union bound the precision of the rows accepted is below
    `precision` with probability at most 1 − confidence. Unknown answers count as misses.

    Args:
        precision: share of the accepted rows that must match.
        confidence: 1 − δ.
    Source: after Kang et al. (2020), SUPG, and Zeighami et al. (2025), BARGAIN; fixed-sequence testing as in
    Angelopoulos et al. (2021), learn then test.
    """

    method = "unverified"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        features: Matrix,
        prior: Floats | None = None,
        precision: float = 0.9,
        confidence: float = 0.95,
        **kept: Any,
    ) -> None:
        super().__init__(n_rows, budget, **kept)
        self.features, self.precision, self.confidence = features, precision, confidence
        self._learner: AsdSampler | None = None
        if n_rows - self.n_known > budget >= 16 and features.shape[1]:
            self._learner = AsdSampler(
                n_rows,
                budget // 2,
                rng=self.rng,
                features=features,
                prior=prior,
                known=(self.labelled, self.answers),
                confidence=confidence,
            )
        self._scores_now = np.zeros(n_rows) if prior is None else np.asarray(prior, np.float64).copy()
        self._learning = self._learner is not None
        self._tests: list[BettingTest] = []  # of the sets that have hope, largest first
        self._sets = 0
        self._sequence = np.zeros(0, np.int64)  # (M,) ranks, by score, of the largest set's rows in random order
        self._order = np.zeros(0, np.int64)  # (M,) the largest set, likeliest first
        self._at = 0
        self.accepted = np.zeros(0, np.int64)  # the set that the precision is promised for, asked since or not
        self._answer = np.full(n_rows, -1, np.int8)  # −1 not told, 0 no or unknown, 1 yes
        self._answer[self.labelled] = self.answers == 1.0

    def unverified(self) -> Indices:
        """The accepted rows that were not asked, likeliest first."""
        out: Indices = self.accepted[self._answer[self.accepted] == -1]
        return out

    def tell(self, indices: Indices, answers: Floats) -> None:
        super().tell(indices, answers)
        self._answer[indices] = np.asarray(answers) == 1.0
        if self._learner is not None and self._learning:
            self._learner.tell(indices, answers)

    def _choose(self, k: int) -> Indices:
        if self._learning and self._learner is not None:
            rows = self._learner.propose(k)
            if len(rows) or self._open.any():
                return rows
            self._learning = False
            self._learn()
        if self._tests:
            if self._open.any():
                return np.zeros(0, np.int64)  # the test waits for answers
            rows = self._next_of_test(k)
            if len(rows):
                return rows
        return self._best(k)

    def _learn(self) -> None:
        """Fit on all answers, sort the rows not asked, and lay out the sets."""
        rows, y = self.labelled, self.answers
        has_answer = ~np.isnan(y)
        design = self._learner.design[rows[has_answer]] if self._learner is not None else None
        fit = surrogate.probability(self.features[rows[has_answer]], y[has_answer], design, SEARCH_DIRECTIONS)
        p = fit.predict(self.features)
        self._scores_now = p
        free = np.flatnonzero(self._answer == -1)
        order = free[np.argsort(-p[free], kind="stable")]
        mean = np.cumsum(p[order]) / np.arange(1, len(order) + 1)
        sizes: list[int] = []
        for part in PARTS:
            size = int((mean >= self.precision + part * (1 - self.precision)).sum())
            if size >= SMALLEST and (not sizes or size < 0.85 * sizes[-1]):
                sizes.append(size)
        self._tests = [BettingTest(size, self.precision, float(mean[size - 1])) for size in sizes]
        self._sets = len(sizes)
        if sizes:
            self._order = order[: sizes[0]]
            self._sequence = self.rng.permutation(sizes[0])

    def _next_of_test(self, k: int) -> Indices:
        """Rows to ask for the tests; none once a set is accepted or all are given up."""
        goal = self._sets / (1 - self.confidence)
        while self._tests:
            size = self._tests[0].size
            while self._at < len(self._sequence):
                rank = int(self._sequence[self._at])
                if rank < size:
                    answer = self._answer[self._order[rank]]
                    if answer == -1:
                        break
                    for test in self._tests:
                        if rank < test.size:
                            test.see(bool(answer == 1))
                self._at += 1
                if self._tests[0].capital >= goal or self._tests[0].capital < HOPELESS:
                    break
            test = self._tests[0]
            if test.capital >= goal:
                self.accepted = self._order[:size]
                self._tests = []
                return np.zeros(0, np.int64)
            # as many as a run of matches needs, so that little is asked beyond the decision
            needed = math.ceil(math.log(goal / test.capital) / math.log(test.expected / self.precision))
            if test.capital < HOPELESS or self._at == len(self._sequence) or needed > self.budget - self.n_proposed:
                self._tests.pop(0)
            else:
                ahead = self._sequence[self._at :]
                fresh = self._order[ahead[ahead < size]]
                fresh = fresh[self._answer[fresh] == -1]
                out: Indices = fresh[: max(1, min(k, needed))]
                return out
        return np.zeros(0, np.int64)

    def _best(self, k: int) -> Indices:
        """The likeliest rows that are neither asked nor accepted."""
        scores = np.where(self._is_asked, -math.inf, self._scores_now)
        scores[self.accepted] = -math.inf
        k = min(k, int((scores > -math.inf).sum()))
        rows = np.argsort(-scores, kind="stable")[:k]
        return rows.astype(np.int64)
