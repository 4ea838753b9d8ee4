"""Retrieval that learns: ask the rows likeliest to match, fit two linear models to the answers, ask again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import surrogate
from uql.sampling.base import Floats, Indices, Matrix
from uql.sampling.labelled_rows import Known, ProposedRows
from uql.sampling.surrogate import SEARCH_DIRECTIONS, Linear, Span

BATCH = 8  # rows between two fits: 16 loses .003 in mean F1, 64 up to .14
ENOUGH = 4  # matching rows known before the models are trusted
ENOUGH_ALONE = 2  # the same without example rows: what the condition's words find is then no better a guide
# rows, without example rows: words may mislead, and what they find is not a fair sample to learn from
RANDOM_AT_FIRST = 16
REFIT_ABOVE = 300  # labels; from there on a fit serves several batches
SPREAD_ROWS = 5_000  # rows from which the spread of a score is read


class Search(ProposedRows):
    """Bookkeeping of a retrieval sampler: what was asked, what was found, the budget, a LIMIT.

    Args:
        n_rows: N.
        budget: rows that may be proposed.
        rng: the only source of randomness.
        limit: stop when so many matching rows are known (rows known before the query count).
        known: (indices, answers) of rows answered before the query; they cost nothing and are learned from.
    """

    method = "uniform"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        rng: np.random.Generator,
        limit: int | None = None,
        known: Known | None = None,
    ) -> None:
        super().__init__(n_rows, budget, rng, known)
        self.limit = limit

    def propose(self, k: int) -> Indices:
        """At most k rows, likeliest first; empty when the budget is spent, all was asked, or the limit is reached."""
        k = min(k, self.budget - self.n_proposed)
        if k <= 0 or (self.limit is not None and len(self.matches()) >= self.limit):
            return np.zeros(0, np.int64)
        return self._proposed(self._choose(k))

    def learn(self, indices: Indices, answers: Floats) -> None:
        """The answers of rows that others chose and this search has not proposed: 1, 0 or NaN."""
        self._is_asked[indices] = True
        self._keep(np.asarray(indices, np.int64), np.asarray(answers, np.float64))

    def more(self, budget: int) -> None:
        """As in `RetrievalSampler`."""
        self.budget = budget

    def matches(self) -> Indices:
        """The rows known to match, in the order they were found."""
        out: Indices = self.labelled[self.answers == 1.0]
        return out

    def _choose(self, k: int) -> Indices:
        return self._random(k)

    def _labels(self) -> tuple[Indices, Floats]:
        rows, y = self.labelled, self.answers
        has_answer = ~np.isnan(y)
        return rows[has_answer], y[has_answer]

    def _top(self, scores: Floats | Matrix, k: int) -> Indices:
        """The k free rows with the highest scores, highest first. Those of rows asked are lost."""
        if k <= 0:
            return np.zeros(0, np.int64)
        scores[self._is_asked] = -math.inf
        k = min(k, len(scores))
        rows = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        return rows[scores[rows] > -math.inf].astype(np.int64)

    def _random(self, k: int) -> Indices:
        """k random rows not asked so far: by trial while most rows are free, else by listing them."""
        free = self.n_rows - int(self._is_asked.sum())
        k = min(k, free)
        if free > 0.5 * self.n_rows and k < 0.1 * self.n_rows:
            rows: list[int] = []
            while len(rows) < k:
                row = int(self.rng.integers(self.n_rows))
                if not self._is_asked[row] and row not in rows:
                    rows.append(row)
            return np.array(rows, np.int64)
        return self.rng.choice(np.flatnonzero(~self._is_asked), k, replace=False)


class LearnedSearch(Search):
    """The default: a logistic and a balanced ridge model, their standardised scores added, with a prior that fades.

    Args:
        features: (N, d) float32, mean squared row norm about 1.
        prior: (N,) a score, higher where a match is likelier, or None.
        has_examples: whether the prior comes from example rows; else it is only one way to start, chosen against random
            rows, after a few of these (none with a limit).
        batch: rows proposed at most between two fits.
    """

    method = "learned"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        features: Matrix,
        prior: Floats | None = None,
        has_examples: bool = False,
        batch: int = BATCH,
        **kept: Any,
    ) -> None:
        super().__init__(n_rows, budget, **kept)
        self.features, self.has_examples, self.batch = features, has_examples and prior is not None, batch
        self._prior: Matrix | None = None
        if prior is not None:
            spread = float(np.std(prior)) or 1.0
            self._prior = ((prior - float(np.mean(prior))) / spread).astype(np.float32)
        self._fixed = features[np.sort(self.rng.choice(n_rows, min(SPREAD_ROWS, n_rows), replace=False))]
        self._buffer = np.zeros(n_rows, np.float32)
        self._fitted_at = 0
        self._ready = False
        # few rows that are wanted soon are not looked for at random
        starts_random = not self.has_examples and self.limit is None
        self._random_first = min(RANDOM_AT_FIRST, budget // 32) if starts_random else 0
        # Beta(1 + hits, 4 + misses) of the prior's top rows, and of random rows
        self._arms = np.array([[1.0, 4.0], [1.0, 4.0]])
        self._arm_of: dict[int, int] = {}

    def tell(self, indices: Indices, answers: Floats) -> None:
        super().tell(indices, answers)
        for row, answer in zip(np.asarray(indices).tolist(), np.asarray(answers, np.float64).tolist(), strict=True):
            arm = self._arm_of.pop(row, None)
            if arm is not None and not math.isnan(answer):
                self._arms[arm, 0 if answer == 1.0 else 1] += 1

    def _choose(self, k: int) -> Indices:
        k = min(k, self.batch)
        rows, y = self._labels()
        if len(y) < self._random_first:
            return self._random(min(k, self._random_first - len(y)))
        yes = int(y.sum())
        if self.features.shape[1] == 0 or yes < (ENOUGH if self.has_examples else 1) or yes == len(y):
            return self._start(k)
        if not self.has_examples and (yes < ENOUGH_ALONE or len(y) - yes < ENOUGH_ALONE):
            return self._start(k)
        step = 1 if len(y) < REFIT_ABOVE else max(24, len(y) // 16)
        if not self._ready or len(y) - self._fitted_at >= step:
            self._refit(rows, y)
        return self._top(self._buffer, k)

    def _refit(self, rows: Indices, y: Floats) -> None:
        """Fold both models and the prior into one weight vector, and score every row into the buffer."""
        with surrogate.one_thread():
            span = Span.of(self.features[rows], SEARCH_DIRECTIONS)
            models = [surrogate.fit_logistic(span, y), balanced_ridge(span, y)]
        weights = np.zeros(self.features.shape[1], np.float32)
        for model in models:
            if model.weights is not None:
                spread = float((self._fixed @ model.weights).std())
                weights += model.weights / np.float32(spread or 1.0)
        np.matmul(self.features, weights, out=self._buffer)
        if self.has_examples and self._prior is not None:
            self._buffer += np.float32(2 * 16 / (16 + len(y))) * self._prior
        self._fitted_at, self._ready = len(y), True

    def _start(self, k: int) -> Indices:
        """Before the models can be trusted: rows that the prior puts first, and random rows."""
        if self._prior is None:
            return self._random(k)
        if self.has_examples:
            top = k - k // 4
        else:
            draws = self.rng.beta(self._arms[:, 0], self._arms[:, 1], size=(k, 2))
            top = int((draws[:, 0] >= draws[:, 1]).sum())
        first = self._top(self._prior.copy(), top)
        self._is_asked[first] = True  # not to be drawn again below
        second = self._random(k - len(first))
        self._arm_of.update(dict.fromkeys(first.tolist(), 0) | dict.fromkeys(second.tolist(), 1))
        return np.concatenate([first, second])


def balanced_ridge(span: Span, y: Floats) -> Linear:
    """Ridge regression on ±1 with both classes of equal weight.

    Args:
        span: of the n labelled rows.
        y: (n,) 0 or 1, both present.
    """
    share = float(y.mean())
    return surrogate.fit_ridge(span, 2 * y - 1, weights=np.where(y > 0.5, 0.5 / share, 0.5 / (1 - share)))
