"""Retrieval with a recall that holds: search until little more is found, then prove on random rows how little is left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling.base import Floats, Indices
from uql.sampling.retrieval import LearnedSearch

PROVING = 8  # random rows between two looks at what they prove
LEFT = 0.15  # of the rows that may be missed, those thought to be left when the proof begins
LEAST, MOST = 0.1, 0.9  # of the rate of hits that is to be refuted, between which the rate thought of lies
QUIET = 8  # rows at least in which a search finds too little to go on


class RecallSearch(LearnedSearch):
    """Searches to a recall of at least `recall`, wrong with probability at most 1 − confidence.

    A search whose hits save fewer rows of the proof than they cost gives way to random rows of those not asked; a match
    among these sends it searching again. If M rows match, the chance that the next random row does is (M − matches
    known)/(rows not asked). The likelihood of the random rows' answers under a rate thought of before each draw, over
    that under M, is a martingale for the true M: it ever exceeds 1/δ with probability at most δ, however often one
    looks and whatever made the search stop. So once it does for each M > found/recall, the recall holds. Every random
    row counts, whenever it was drawn. Unknown answers count as matches that were missed.

    Args:
        recall: share of the matching rows to find.
        confidence: 1 − δ.
        Others as in `LearnedSearch`.
    Source: Ville (1939); Waudby-Smith & Ramdas (2020), confidence sequences for sampling without replacement.
    """

    method = "recall"

    def __init__(self, n_rows: int, budget: int, *, recall: float = 0.9, confidence: float = 0.95, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        self.recall, self.confidence = recall, confidence
        self._evidence = math.log(1 / (1 - confidence))  # that a proof takes
        self._most = n_rows  # rows that match at most, by the proof so far
        self._hits: list[bool] = []  # of the rows that the search chose, since a random row last matched
        self._outstanding: Indices = np.zeros(0, np.int64)  # random rows whose answers are outstanding
        self._proving = False
        self._rate = 0.0  # of hits, thought of before the rows were drawn
        # (4, rows) of random rows: rows not asked before it, matches known before it, the rate thought of, whether it matched
        self._draws: list[Floats] = []

    @property
    def guaranteed(self) -> float:
        """The recall that holds at `confidence` as things stand; 0 before anything was proved."""
        found, known = len(self.matches()), self._matches()
        most = min(self._most, known + self.n_rows - len(self.labelled))
        return 1.0 if most == 0 else found / max(most, known)

    @property
    def met(self) -> bool:
        """Whether the target holds."""
        return not len(self._outstanding) and self.guaranteed >= self.recall

    def tell(self, indices: Indices, answers: Floats) -> None:
        """As in `Search.tell`."""
        before = self._matches()
        super().tell(indices, answers)
        matched = (np.asarray(answers, np.float64) != 0.0).tolist()  # an unknown row may be a match
        if not len(self._outstanding):
            self._hits += matched
            return
        self._outstanding = np.setdiff1d(self._outstanding, indices)
        free = self.n_rows - len(self.labelled) + len(matched)
        hits = np.array(matched, np.float64)
        known = before + np.concatenate([[0.0], np.cumsum(hits)[:-1]])
        self._draws.append(np.stack([free - np.arange(len(hits)), known, np.full(len(hits), self._rate), hits]))
        if any(matched):
            self._proving, self._hits = False, []
        self._most = min(self._most, self._refuted_from() - 1)

    def _matches(self) -> int:
        """Rows known to match, and those that may."""
        return int((self.answers != 0.0).sum())

    def _missing(self) -> int:
        """The fewest rows not found, under which the recall would be too low: to be refuted."""
        return math.floor(len(self.matches()) / self.recall + 1e-9) + 1 - self._matches()

    def _refuted_from(self) -> int:
        """The fewest matching rows such that so many, and each larger number, are refuted; one more than possible where
        none is.

        The logarithm of the martingale is convex in their number, and small at the rates thought of: beyond the first
        number that it refutes on the way up it refutes all.
        """
        low, high = self._matches(), self._matches() + self.n_rows - len(self.labelled) + 1
        draws = np.concatenate([np.zeros((4, 0)), *self._draws], axis=1)
        while low < high:
            middle = (low + high) // 2
            now = _log_martingale(middle, draws)
            if now >= self._evidence and _log_martingale(middle + 1, draws) >= now:
                high = middle
            else:
                low = middle + 1
        return low

    def _choose(self, k: int) -> Indices:
        if len(self._outstanding) or self.met:
            return np.zeros(0, np.int64)
        free, missing = self.n_rows - len(self.labelled), self._missing()
        self._proving = missing > 0 and (self._proving or self._quiet(free))
        if self._proving and free and not self._open.any():
            refuted = min(missing / free, 1 - 1e-9)
            draws = np.concatenate([np.zeros((4, 0)), *self._draws], axis=1)
            thought = (float(draws[3].sum()) + LEFT) / (draws.shape[1] + 1 / refuted)
            self._rate = min(max(thought, LEAST * refuted), MOST * refuted)
            self._outstanding = self._rows_of_proof(min(k, PROVING))
            return self._outstanding
        self.batch = max(8, len(self.labelled) // 32)
        return super()._choose(k)

    def _rows_of_proof(self, k: int) -> Indices:
        """At most k random rows of those not asked."""
        return self._random(k)

    def _quiet(self, free: int) -> bool:
        """Does the search find less than one row in as many as that one would save the proof?

        With D rows to be refuted among `free`, about log(1/δ)·free/D random rows without a match prove it; a row found
        takes away about 2·log(1/δ)·free/D² of them, since it is one fewer that they may meet.
        """
        missing = self._missing()
        if not free or not self.matches().size or missing <= 0:
            return False
        saved = 2 * self._evidence * free / missing**2
        proof = free * (1 - math.exp(-self._evidence / missing))
        window = max(QUIET, int(min(saved, proof / 2) / 2))
        return len(self._hits) >= window and sum(self._hits[-window:]) < max(window / saved, 0.5)


def _log_martingale(matches: int, draws: Floats) -> float:
    """Log of the likelihood ratio of the random rows, the rates thought of against that number of matching rows."""
    free, known, rate, hit = draws
    refuted = np.clip((matches - known) / free, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        steps = np.where(hit > 0, np.log(rate) - np.log(refuted), np.log1p(-rate) - np.log1p(-refuted))
    return float(steps.sum())
