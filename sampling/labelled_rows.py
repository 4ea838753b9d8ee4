"""The rows that have an answer, as every sampler keeps them: those known before the query first, then those told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.sampling.base import Flags, Floats, Indices

Known = tuple[Indices, Floats]


class LabelledRows:
    """Which rows have an answer.

    Args:
        known: (indices, answers) of rows answered before the query; they cost nothing.
    """

    def __init__(self, known: Known | None) -> None:
        indices, answers = known if known is not None else (np.zeros(0, np.int64), np.zeros(0))
        self._indices: list[Indices] = []
        self._answers: list[Floats] = []
        self._keep(indices, answers)
        self.n_known = len(indices)

    @property
    def labelled(self) -> Indices:
        """(n,) the rows with an answer: the known ones, then those told, in order."""
        return _joined(self._indices)

    @property
    def answers(self) -> Floats:
        """(n,) the answers in the order of `labelled`: 1, 0 or NaN."""
        return _joined(self._answers)

    @property
    def calls(self) -> int:
        """Rows told, the known ones left out."""
        return sum(map(len, self._indices)) - self.n_known

    def _keep(self, indices: Indices, answers: Floats) -> None:
        self._indices.append(np.asarray(indices, np.int64))
        self._answers.append(np.asarray(answers, np.float64))


class ProposedRows(LabelledRows):
    """Rows that a sampler proposes and is told the answers of.

    Args:
        n_rows: N.
        budget: rows that may be proposed; known ones cost nothing.
        rng: the only source of randomness.
        known: as of `LabelledRows`.
    """

    def __init__(self, n_rows: int, budget: int, rng: np.random.Generator, known: Known | None) -> None:
        self.n_rows, self.budget, self.rng = n_rows, max(0, budget), rng
        super().__init__(known)
        self._is_asked = np.zeros(n_rows, bool)  # proposed or known
        self._is_asked[self.labelled] = True
        self._open = np.zeros(n_rows, bool)  # proposed, not told
        self.n_proposed = 0

    @property
    def _is_told(self) -> Flags:
        """(N,) told or known."""
        told: Flags = self._is_asked & ~self._open
        return told

    def _proposed(self, rows: Indices) -> Indices:
        """Marks these rows as proposed."""
        self._is_asked[rows] = self._open[rows] = True
        self.n_proposed += len(rows)
        return rows

    def tell(self, indices: Indices, answers: Floats) -> None:
        """The answers of proposed rows: 1, 0 or NaN. Raises: ValueError for a row not proposed, or told before."""
        indices, answers = np.asarray(indices, np.int64), np.asarray(answers, np.float64)
        if len(indices) != len(answers):
            raise ValueError(f"{len(indices)} rows and {len(answers)} answers")
        if len(np.unique(indices)) != len(indices) or not self._open[indices].all():
            raise ValueError("told a row that was not proposed, or was told before")
        self._open[indices] = False
        self._keep(indices, answers)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The parts as one array, which takes their place: samplers read it far more often than they add to it."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]
