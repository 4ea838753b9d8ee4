"""The rows that have an answer, as every sampler keeps them: those known before the query first, then those told."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.sampling.base import Floats, Indices

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


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """The parts as one array, which takes their place: samplers read it far more often than they add to it."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]
