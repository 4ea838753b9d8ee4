"""Probabilities instead of yes and no: used only where audited rows show that they are calibrated.

A model's probability is a score until a stronger judge has looked. Where it is calibrated, the sum of probabilities
estimates the number of rows for which the truth is yes, which no count of the model's own yes and no does; and rows
that the model doubts add half instead of 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from uql.sampling import intervals
from uql.sampling.base import AggregateSampler, Estimate, Floats

LEAST_AUDITED = 30
MARGIN = 0.1  # of the mean of probabilities against the share of yes, at most, at the ends of its interval


@dataclass(frozen=True, slots=True)
class Calibration:
    """What audited rows say of a model's probabilities.

    Attributes:
        rows: audited.
        bias: mean of probability less truth, `error` its standard error, `low` and `high` its interval.
        z: Spiegelhalter's statistic, about normal where the probabilities are calibrated.
        confidence: of the interval and the test.
    """

    rows: int
    bias: float
    error: float
    z: float
    confidence: float = 0.95

    @property
    def low(self) -> float:
        return self._end(-1.0)

    @property
    def high(self) -> float:
        return self._end(1.0)

    def _end(self, sign: float) -> float:
        if self.rows < 2:
            return sign
        return self.bias + sign * intervals.t_quantile(self.confidence, self.rows - 1) * self.error

    @property
    def holds(self) -> bool:
        """Whether the probabilities may stand for answers: enough rows, a small bias for sure, and a spread around the
        truth as it should be."""
        near = self.low >= -MARGIN and self.high <= MARGIN
        return self.rows >= LEAST_AUDITED and near and abs(self.z) <= intervals.normal_quantile(self.confidence)


def calibration(probabilities: Floats, truth: Floats, confidence: float = 0.95) -> Calibration:
    """Holds probabilities of a model against the truth of audited rows.

    Args:
        probabilities: (m,) of yes.
        truth: (m,) 1 or 0, as a stronger judge says; the rows a random sample of those whose answers are used.
    Source: Spiegelhalter (1986).
    >>> p = np.full(100, 0.2)
    >>> calibration(p, (np.arange(100) < 20).astype(float)).holds, calibration(p, np.ones(100)).holds
    (True, False)
    """
    p, y = np.asarray(probabilities, np.float64), np.asarray(truth, np.float64)
    m = len(p)
    if m < 2:
        return Calibration(m, math.nan, math.inf, math.inf, confidence)
    gap = p - y
    spread = float(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    above = float(((y - p) * (1 - 2 * p)).sum())
    z = above / math.sqrt(spread) if spread > 0 else (0.0 if above == 0 else math.inf)
    return Calibration(m, float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(m), z, confidence)


def soft_count(
    sampler: AggregateSampler, probabilities: Floats, n_rows: int, found: Calibration, domain: int | None = None
) -> Estimate | None:
    """The number of rows for which the truth is yes, from the probabilities of the rows told; None where they are not
    calibrated, and yes and no must serve.

    The interval joins the sample's with that of the bias that the audit leaves open, and with how far the number of rows
    may be from the sum of their chances.

    Args:
        probabilities: (n,) of the rows told, in their order; NaN where there is none.
        n_rows: N, or the rows of the group `domain`.
        found: of an audited sample.
        domain: a group of the sampler's; it is taken to have the bias of all rows.
    """
    if not found.holds:
        return None
    p = np.asarray(probabilities, np.float64)
    soft = sampler.total(p, (0.0, 1.0), domain=domain)
    if soft.value is None or soft.low is None or soft.high is None:
        return None
    known = p[~np.isnan(p)]
    chance = math.sqrt(n_rows * float((known * (1 - known)).mean())) if len(known) else 0.0
    open_ = math.hypot(n_rows * (found.high - found.low) / 2, intervals.normal_quantile(found.confidence) * chance)
    low = soft.value - math.hypot(soft.value - soft.low, open_)
    high = soft.value + math.hypot(soft.high - soft.value, open_)
    return replace(soft, low=max(low, 0.0), high=min(high, float(n_rows)), exact=False, method=f"{soft.method}, soft")
