"""Retrieval with a recall that holds: search until little more is found, then prove on random rows how little is left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling.base import Floats, Indices
from uql.sampling.errors_left import ErrorsLeft
from uql.sampling.retrieval import LearnedSearch

PROVING = 8  # random rows between two looks at what they prove
LEFT = 0.15  # of the rows that may be missed, those thought to be left when the proof begins
LEAST, MOST = 0.1, 0.9  # of the rate of hits that is to be refuted, between which the rate thought of lies
QUIET = 8  # rows at least in which a search finds too little to go on


class RecallSearch(LearnedSearch):
    """Searches to a recall of at least `recall`, wrong with probability at most 1 − confidence.

    A search whose hits save fewer rows of the proof than they cost gives way to random rows of those not asked; a match among these sends
    it searching again. The matches among the rows not asked are errors of leaving these out, and `ErrorsLeft` bounds them, however often
    one looks and whatever made the search stop: once fewer are left than would make it too low, the recall holds. Every random row counts,
    whenever it was drawn. Unknown answers count as matches that were missed.

    Args:
        recall: share of the matching rows to find.
        confidence: 1 − δ.
        Others as in `LearnedSearch`.
    Source: Waudby-Smith & Ramdas (2020), confidence sequences for sampling without replacement; as of `ErrorsLeft`.
    """

    method = "recall"

    def __init__(self, n_rows: int, budget: int, *, recall: float = 0.9, confidence: float = 0.95, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        self.recall, self.confidence = recall, confidence
        self._left = ErrorsLeft(n_rows - self.n_known, 1 - confidence)  # matches among the rows not asked
        self._hits: list[bool] = []  # of the rows that the search chose, since a random row last matched
        self._outstanding: Indices = np.zeros(0, np.int64)  # random rows whose answers are outstanding
        self._proving = False
        self._bet = 0.0  # laid before the rows were drawn

    @property
    def guaranteed(self) -> float:
        """The recall that holds at `confidence` as things stand; 0 before anything was proved."""
        most = self._matches() + self._left.remaining
        return len(self.matches()) / most if most else 1.0

    @property
    def met(self) -> bool:
        """Whether the target holds."""
        return not len(self._outstanding) and self.guaranteed >= self.recall

    def tell(self, indices: Indices, answers: Floats) -> None:
        super().tell(indices, answers)
        matched = _may_match(answers)
        if not len(self._outstanding):
            self._hits += (matched == 1.0).tolist()
            self._left.ask(matched)
            return
        self._outstanding = np.setdiff1d(self._outstanding, indices)
        free = self._left.free - np.arange(len(matched), dtype=np.float64)  # each of these was as likely to be the next
        self._left.draw(matched, free, free, self._bet)
        if matched.any():
            self._proving, self._hits = False, []

    def learn(self, indices: Indices, answers: Floats) -> None:
        super().learn(indices, answers)
        self._left.ask(_may_match(answers))

    def _matches(self) -> int:
        """Rows known to match, and those that may."""
        return int((self.answers != 0.0).sum())

    def _missing(self) -> int:
        """The fewest rows not found, under which the recall would be too low: to be refuted."""
        return math.floor(len(self.matches()) / self.recall + 1e-9) + 1 - self._matches()

    def _choose(self, k: int) -> Indices:
        if len(self._outstanding) or self.met:
            return np.zeros(0, np.int64)
        free, missing = self._left.free, self._missing()
        self._proving = missing > 0 and (self._proving or self._quiet(free))
        if self._proving and free and not self._open.any():
            refuted = min(missing / free, 1 - 1e-9)
            thought = (self._left.n_hits + LEFT) / (self._left.n_draws + 1 / refuted)
            rate = min(max(thought, LEAST * refuted), MOST * refuted)
            # as the likelihood ratio of that rate to the one refuted has it
            self._bet = (refuted - rate) / (refuted * (1 - refuted) * free)
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
        saved = 2 * self._left.evidence * free / missing**2
        proof = free * (1 - math.exp(-self._left.evidence / missing))
        window = max(QUIET, int(min(saved, proof / 2) / 2))
        return len(self._hits) >= window and sum(self._hits[-window:]) < max(window / saved, 0.5)


def _may_match(answers: Floats) -> Floats:
    """(n,) 1 where a row matches, or may: it is unknown."""
    out: Floats = (np.asarray(answers, np.float64) != 0.0).astype(np.float64)
    return out
