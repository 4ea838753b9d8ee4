"""Retrieval with a recall that holds: search until little more is found, then prove on random rows how little is
left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals, surrogate
from uql.sampling.base import Floats, Indices
from uql.sampling.retrieval import LearnedSearch
from uql.sampling.surrogate import SEARCH_DIRECTIONS

LOOKS = 3
ALLOWED = (0, 1, 2, 3, 5, 8, 12)  # hits that a check sample may hold and still pass
PASS = 0.8  # chance of passing that a check sample is made for
AHEAD = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)  # of the rows not asked: when a check is imagined


class RecallSearch(LearnedSearch):
    """Searches to a recall of at least `recall`, wrong with probability at most 1 − confidence.

    When the last four batches hit less than 15 % of the overall rate, a random sample of the rows not asked is
    checked. From its hits
    an exact hypergeometric bound says how many matching rows were left at that look, at most, at level δ/2^look; every
    match found
    since takes one away. The search ends as soon as found/(found + left) ≥ recall, or with every row asked. There are
    at most three
    looks. Unknown answers count as matches that were missed.

    Args:
        recall: share of the matching rows to find.
        confidence: 1 − δ.
        Others as in `LearnedSearch`.
    Source: Callaghan & Müller-Hansen (2020).
    """

    method = "recall"

    def __init__(self, n_rows: int, budget: int, *, recall: float = 0.9, confidence: float = 0.95, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        self.recall, self.confidence = recall, confidence
        self.looks = 0
        self._left = math.inf  # matching rows not found, at most, at the looks made
        self._check: set[int] = set()
        self._check_size, self._check_hits, self._check_from = 0, 0, 0
        self._queue = np.zeros(0, np.int64)
        self._next_look = 0

    @property
    def guaranteed(self) -> float:
        """The recall that holds at `confidence` as things stand; 0 before the first look."""
        found, unknown = len(self.found()), int(np.isnan(self.answers).sum())
        rest = self.n_rows - len(self.told)
        left = min(self._left, rest) + unknown
        return 1.0 if found + left == 0 else (found / (found + left) if math.isfinite(left) else 0.0)

    @property
    def met(self) -> bool:
        """Whether the target holds."""
        return (self.looks > 0 or len(self.told) == self.n_rows) and not self._check and self.guaranteed >= self.recall

    def tell(self, indices: Indices, answers: Floats, probabilities: Floats | None = None) -> None:
        """As in `Search.tell`."""
        super().tell(indices, answers, probabilities)
        hits = int(np.nansum(np.asarray(answers, np.float64) == 1.0))
        if not self._check:
            self._left -= hits
            return
        for row, answer in zip(np.asarray(indices).tolist(), np.asarray(answers, np.float64).tolist(), strict=True):
            if row in self._check:
                self._check.discard(row)
                self._check_hits += answer != 0.0  # an unknown may be one
            elif answer == 1.0:
                self._left -= 1
        if not self._check:
            self._finish_look()

    def _finish_look(self) -> None:
        level = (1 - self.confidence) / 2**self.looks
        most = intervals.most_marked(self._check_hits, self._check_size, self._check_from, level)
        # earlier bounds hold at their own levels, and the levels add up to less than δ: the least of them holds
        self._left = min(self._left - self._check_hits, most - self._check_hits)
        self._next_look = len(self.told) + max(64, self._check_size // 4)

    def _choose(self, k: int) -> Indices:
        if len(self._queue):
            rows, self._queue = self._queue[:k], self._queue[k:]
            return rows
        if self._check or self.met:
            return np.zeros(0, np.int64)
        if self.looks < LOOKS and len(self.told) >= self._next_look and not self._open.any():
            size = self._check_rows()
            if size:
                self._begin_check(size)
                return self._choose(k)
        self.batch = max(8, len(self.told) // 32)
        return super()._choose(k)

    def _begin_check(self, size: int) -> None:
        """Draw that many of the rows not asked."""
        free = np.flatnonzero(~self._asked)
        self._queue = self.rng.choice(free, size, replace=False)
        self._check = set(self._queue.tolist())
        self._check_size, self._check_from, self._check_hits = size, len(free), 0
        self.looks += 1

    def _check_rows(self) -> int:
        """Rows of a check to be made now; 0 if the search should go on, with the time of the next thought put off."""
        self._next_look = len(self.told) + max(32, len(self.told) // 16)
        rows, y = self._labels()
        found, free = int(y.sum()), int((~self._asked).sum())
        if free == 0 or found == 0 or found == len(y):
            return 0
        p = surrogate.probability(self.features[rows], y, None, SEARCH_DIRECTIONS).predict(self.features)[~self._asked]
        gains = np.concatenate([[0.0], np.cumsum(np.sort(p)[::-1])])
        level = (1 - self.confidence) / 2 ** (self.looks + 1)
        now = self._size_for(found, float(gains[-1]), free, level)
        if not now:
            return 0
        for part in AHEAD:
            more = int(part * free)
            if more >= now:  # later checks cost more than one made now
                return now
            size = self._size_for(found + float(gains[more]), float(gains[-1] - gains[more]), free - more, level)
            if size is not None and more + size < now:
                return 0
        return now

    def _size_for(self, found: float, left: float, free: int, level: float) -> int | None:
        """Rows of a check that likely passes if `left` of `free` rows match and `found` were found; None if none
        does."""
        may_miss = math.floor(found * (1 - self.recall) / self.recall + 1e-9)
        if free <= 0:
            return 0
        if left > may_miss:
            return None
        for allowed in ALLOWED:
            n = check_size(allowed, may_miss + allowed, free, level)
            if n is None:
                return None
            if expected_pass(allowed, n * left / free) >= PASS:
                return n
        return None


def check_size(allowed: int, most: int, free: int, level: float) -> int | None:
    """The fewest of `free` rows of which at most `allowed` hits prove, at `level`, that at most `most` were matches;
    None if none do."""
    if intervals.hypergeometric_cdf(allowed, free, most + 1, free) > level:
        return None
    low, high = 1, free
    while low < high:
        middle = (low + high) // 2
        if intervals.hypergeometric_cdf(allowed, middle, min(most + 1, free), free) <= level:
            high = middle
        else:
            low = middle + 1
    return low


def expected_pass(allowed: int, mean: float) -> float:
    """P(X ≤ allowed) for a Poisson number X with that mean."""
    return float(sum(math.exp(-mean) * mean**i / math.factorial(i) for i in range(allowed + 1)))
