"""Retrieval with a recall that holds: search until little more is found, then prove on random rows how little is
left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals
from uql.sampling.base import Floats, Indices
from uql.sampling.retrieval import LearnedSearch

LOOKS = 3
ALLOWED = (0, 1, 2, 3, 5, 8)  # hits that a check sample may hold and still pass
RECENT = 4  # batches of the search that are looked back on
DRY = 0.15  # of the overall hit rate: below, the search is dry


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
        self._rates: list[tuple[int, int]] = []  # (hits, rows) of each told batch of the search
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
            self._rates.append((hits, len(indices)))
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
        self._rates.clear()
        self._next_look = len(self.told) + max(64, self._check_size // 4)

    def _choose(self, k: int) -> Indices:
        if len(self._queue):
            rows, self._queue = self._queue[:k], self._queue[k:]
            return rows
        if self._check or self.met:
            return np.zeros(0, np.int64)
        if self._dry() and not self._open.any():
            size = self._check_rows()
            if size:
                free = np.flatnonzero(~self._asked)
                self._queue = self.rng.choice(free, size, replace=False)
                self._check = set(self._queue.tolist())
                self._check_size, self._check_from, self._check_hits = size, len(free), 0
                self.looks += 1
                return self._choose(k)
        self.batch = max(8, len(self.told) // 32)
        return super()._choose(k)

    def _dry(self) -> bool:
        """Whether the search finds little now, and a look is left."""
        if self.looks >= LOOKS or len(self.told) < self._next_look:
            return False
        hits, rows = (sum(part) for part in zip(*self._rates[-RECENT:], strict=True)) if self._rates else (0, 0)
        if len(self._rates) < RECENT or rows == 0:
            return False
        overall = len(self.found()) / max(len(self.told), 1)
        return hits / rows < DRY * overall or (hits == 0 and len(self.told) >= 64)

    def _check_rows(self) -> int:
        """Rows of a check that passes if a quarter of the matches that may be left are left; 0 if no sample could
        pass."""
        found = len(self.found())
        free = int((~self._asked).sum())
        may_miss = math.floor(found * (1 - self.recall) / self.recall + 1e-9)
        if free == 0:
            return 0
        level = (1 - self.confidence) / 2 ** (self.looks + 1)
        for allowed in ALLOWED:
            n = check_size(allowed, may_miss + allowed, free, level)
            if n is None:
                return free if allowed == 0 and may_miss == 0 and free <= 64 else 0
            if expected_pass(allowed, n * (may_miss / 4) / free) >= 0.8:
                return n
        return n or 0


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
