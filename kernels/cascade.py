"""A cascade: a small model answers conditions, and a large one those of which the small one is not sure enough.

How sure is enough is learned, not guessed: rows drawn at random are asked of both models, and the least confidence is taken at which
the answers agree with the large model's as often as was asked for. The confidences are tried in a fixed sequence, from the strictest
on, each by an exact binomial test, up to the first one that fails: so the whole search keeps to one level (fixed-sequence testing;
Angelopoulos et al., *Learn then Test*, 2021).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uql.llm.questions import Question
from uql.sampling.base import Flags, Floats
from uql.sampling.intervals import clopper_pearson

LABELLED = 128  # rows asked of both models, at least
SLACK = 2.0  # times as many rows as would do if the models never differed
CANDIDATES = 4  # times as many candidates as labelled rows; below, the large model is asked all of them
CONFIDENCES = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5)


@dataclass(slots=True)
class Learned:
    """What the labelled rows say of one question.

    `least` is the confidence from which the small model's answer counts; above 1: never. `large` has the large model's answers.
    """

    least: float
    differ: int
    labelled: int
    large: dict[int, Any] = field(default_factory=dict)
    by_small: int = 0
    by_large: int = 0


@dataclass(slots=True)
class Cascade:
    """Two models. `accuracy` is the share of rows whose answer must be that of the large one, at `confidence`."""

    small: Any  # the name of a model, or a provider
    large: Any
    accuracy: float
    confidence: float
    names: tuple[str, str]
    small_cost: float = 0.0  # of a request, beside the large model's
    learned: dict[Question, Learned] = field(default_factory=dict)

    @property
    def labelled(self) -> int:
        """Rows asked of both models to learn from."""
        return labelled_rows(self.accuracy, self.confidence)

    def notes(self) -> list[str]:
        """Which model answered, for each condition."""
        lines, (small, large) = [], self.names
        for question, learned in self.learned.items():
            if learned.least > 1:
                lines.append(
                    f'"{question.text}": {large} answered all rows; where {small} was sure it agreed too rarely, or its help would '
                    f"have cost more ({learned.labelled} rows were asked of both)"
                )
                continue
            lines.append(
                f'"{question.text}": {small} answered {learned.by_small:,} rows, {large} {learned.by_large:,} '
                f"of which {small} was less sure than {learned.least:g}; at least {self.accuracy:.0%} of the answers are those of "
                f"{large} ({self.confidence:.0%}; {learned.differ} of {learned.labelled} rows asked of both differed)"
            )
        return lines


def labelled_rows(accuracy: float, confidence: float) -> int:
    """Rows to be asked of both models, so that the target can be shown: SLACK times those needed if they never differed.

    >>> labelled_rows(0.95, 0.95), labelled_rows(0.99, 0.95)
    (128, 597)
    """
    return max(LABELLED, int(np.ceil(SLACK * np.log(1 - confidence) / np.log(accuracy))))


def certainty(probabilities: Floats) -> Floats:
    """Of the likelier answer; NaN where the model gives no probability.

    >>> certainty(np.array([0.1, 0.5, 1.0])).tolist()
    [0.9, 0.5, 1.0]
    """
    return np.maximum(probabilities, 1.0 - probabilities)


def least_confidence(sure: Floats, differs: Flags, accuracy: float, confidence: float) -> tuple[float, int]:
    """The least confidence at which the small model may answer, and how many labelled rows are then answered differently.

    Args:
        sure: (m,) certainty of the small model's answers to the labelled rows.
        differs: (m,) where its answer is not the large one's.
        accuracy: share of all rows that must have the large model's answer; those left to the large model have it.
        confidence: of that statement.
    Returns: above 1 where no confidence will do.
    """
    least, wrong = 2.0, 0
    for threshold in CONFIDENCES:
        errors = int((differs & (sure >= threshold)).sum())
        if clopper_pearson(errors, len(sure), confidence, two_sided=False)[1] > 1.0 - accuracy:
            break
        least, wrong = threshold, errors
    return least, wrong
