"""Calibration of a model's probabilities by labels of a stronger judge, for one condition.

A provider's probability of yes is a score. With labelled rows, a logistic line over its log-odds turns it into a probability, whose
half is the threshold of yes. It is kept only where it is better on rows that it was not fitted to (leave one out): measured on the
default local model, labels mend a biased threshold and spoil a good one where they are few.
Source: Platt, *Probabilistic Outputs for Support Vector Machines* (1999), with his targets off 0 and 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.base.errors import DataError
from uql.llm.ledger import Ledger
from uql.llm.questions import Answers, Question
from uql.operators.replies import YesNo

Floats = NDArray[np.float64]
LEAST_ROWS = 32  # labelled rows; with fewer, thresholds got worse (LOCAL_MODEL.md §2)
LEAST_OF_EACH = 5  # of yes and of no
EDGE = 1e-6  # probabilities are kept this far from 0 and 1
STEPS = 50  # of Newton's method at most
RIDGE = 1e-3  # on the slope, so that separable rows have a finite one


@dataclass(frozen=True, slots=True)
class Calibration:
    """A line over the log-odds of yes: calibrated log-odds = slope × log-odds + intercept.

    Attributes:
        rows: labelled rows that it was fitted to.
        accuracy, accuracy_before: share of right answers, left-out rows, with it and without.
        loss, loss_before: mean negative log-likelihood of the labels, likewise.
    """

    slope: float
    intercept: float
    rows: int
    accuracy: float
    accuracy_before: float
    loss: float
    loss_before: float

    @property
    def threshold(self) -> float:
        """The model's own probability from which on the answer is yes."""
        return float(1 / (1 + np.exp(self.intercept / self.slope))) if self.slope > 0 else 0.5

    @property
    def better(self) -> bool:
        """Is it better on rows that it has not seen?"""
        return self.slope > 0 and self.loss < self.loss_before and self.accuracy >= self.accuracy_before


def fit(probabilities: Sequence[float], labels: Sequence[bool]) -> Calibration:
    """The calibration of n labelled rows.

    Args:
        probabilities: (n,) of yes, as the model gave them; rows without one are left out.
        labels: (n,) of a stronger judge.
    Raises: DataError (UQL517) with fewer than LEAST_ROWS rows, or LEAST_OF_EACH of yes or no.
    """
    p, y = np.asarray(probabilities, dtype=float), np.asarray(labels, dtype=float)
    has_answer = ~np.isnan(p)
    p, y = p[has_answer], y[has_answer]
    if len(p) < LEAST_ROWS or min(y.sum(), len(y) - y.sum()) < LEAST_OF_EACH:
        raise DataError(
            f"{len(p)} rows with an answer, {int(y.sum())} of them labelled yes, are too few to calibrate",
            code="UQL517",
            help=f"at least {LEAST_ROWS} rows, {LEAST_OF_EACH} of yes and {LEAST_OF_EACH} of no",
        )
    x = log_odds(p)
    left_out = left_out_odds(p, y)
    slope, intercept = _line(x, y)
    return Calibration(
        slope,
        intercept,
        len(x),
        float(np.mean((left_out >= 0) == (y > 0))),
        float(np.mean((x > 0) == (y > 0))),
        _loss(left_out, y),
        _loss(x, y),
    )


def left_out_odds(p: Floats, y: Floats) -> Floats:
    """(n,) the log-odds of each row by the line that is fitted to the others."""
    x = log_odds(p)
    out = np.empty(len(x))
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        slope, intercept = _line(x[rest], y[rest])
        out[i] = slope * x[i] + intercept
    return out


def log_odds(p: Floats) -> Floats:
    """Of probabilities, which are kept EDGE from 0 and 1."""
    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def _loss(odds: Floats, y: Floats) -> float:
    return float(np.mean(np.logaddexp(0, np.where(y > 0, -odds, odds))))


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept by Newton's method, the labels drawn off 0 and 1 by Platt's targets."""
    yes = y.sum()
    target = np.where(y > 0, (yes + 1) / (yes + 2), 1 / (len(y) - yes + 2))
    design = np.column_stack([x, np.ones_like(x)])
    weights = np.zeros(2)
    keep = np.diag([RIDGE, 1e-9])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (p - target) + keep @ weights
        step = np.linalg.solve((design.T * np.maximum(p * (1 - p), 1e-9)) @ design + keep, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return float(weights[0]), float(weights[1])


def apply(calibration: Calibration, answers: Answers) -> Answers:
    """Answers of a condition with calibrated probabilities, and yes from one half on; answers without one stay."""
    p = answers.probabilities
    has_answer = ~np.isnan(p)
    odds = calibration.slope * log_odds(p) + calibration.intercept
    values = [bool(odds[i] >= 0) if has_answer[i] and v is not None else v for i, v in enumerate(answers.values)]
    return replace(answers, values=values, probabilities=np.where(has_answer, 1 / (1 + np.exp(-odds)), np.nan))


# ------------------------------------------------------------------------------------------------------------- keeping
def _scope(model: str) -> str:
    return f"calibration of {model}"


def _audited(model: str) -> str:
    return f"audited probabilities of {model}"


def keep(
    ledger: Ledger, model: str, condition: str, calibration: Calibration | None, audit: Mapping[str, float]
) -> None:
    """Use them for this condition from now on.

    Args:
        model: its name, with the settings that change its answers.
        condition: the text of the question.
        calibration: None: no longer any.
        audit: the calibration of the condition from labelled rows, as queries use it: numbers by name.
    """
    ledger.keep_statistics(_scope(model), {condition: None if calibration is None else asdict(calibration)})
    ledger.keep_statistics(_audited(model), {condition: dict(audit)})


def load_calibrations(ledger: Ledger, model: str) -> dict[str, Calibration]:
    """Of a model, by condition."""
    parameters: Mapping[str, Any] = ledger.statistics(_scope(model))
    return {condition: Calibration(**values) for condition, values in parameters.items() if values}


def applied(calibrations: Mapping[str, Calibration], question: Question, answers: Answers) -> Answers:
    """The answers, calibrated where the question is a condition that has a calibration.

    Args:
        calibrations: by the text of the condition.
        answers: with the model's own probabilities.
    """
    calibration = calibrations.get(question.text) if isinstance(question.reply(), YesNo) else None
    return answers if calibration is None else apply(calibration, answers)


def kept_audits(ledger: Ledger, model: str) -> dict[str, dict[str, float]]:
    """Of a model, by condition: `rows`, `bias`, `error`, `z` of `uql.sampling.calibration.Calibration`."""
    return {condition: dict(values) for condition, values in ledger.statistics(_audited(model)).items() if values}
