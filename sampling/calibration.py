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


def soft_total(
    sampler: AggregateSampler,
    probabilities: Floats,
    answers: Floats,
    audit: Calibration,
    *,
    weights: Floats | None = None,
    domain: int | None = None,
) -> Estimate | None:
    """The number of rows for which the truth is yes, or the sum of what they weigh, from the probabilities of the rows
    told; None where they are not calibrated, and yes and no must serve.

    The interval joins the sample's with that of the bias that the audit leaves open, and with how far the truth may be
    from the sum of its chances. The value is the sum of chances, unless the plain count of yes and no is thought to err
    less: by the variance of each, and by how far apart they are.

    Args:
        probabilities: (n,) of the rows told, in their order; NaN where there is none.
        answers: (n,) their 1 and 0.
        audit: of an audited sample.
        weights: (N,) what each row adds if the truth is yes; 1 where None.
        domain: a group of the sampler's; it is taken to have the bias of all rows, as every weight is.
    """
    if not audit.holds:
        return None
    p = np.asarray(probabilities, np.float64)
    each = np.ones(len(p)) if weights is None else weights[sampler.labelled]
    bounds = (0.0, 1.0) if weights is None else None
    soft = sampler.total(each * p, bounds, weights=weights, domain=domain)
    hard = sampler.total(each * answers, bounds, weights=weights, domain=domain)
    if soft.value is None or soft.low is None or soft.high is None:
        return None
    part = _weights_of(sampler, weights, domain)
    chance = math.sqrt(_doubt(p) * float((part**2).sum()))
    bias = abs(float(part.sum())) * (audit.high - audit.low) / 2
    open_ = math.hypot(bias, intervals.normal_quantile(audit.confidence) * chance)
    low = soft.value - math.hypot(soft.value - soft.low, open_)
    high = soft.value + math.hypot(soft.high - soft.value, open_)
    low, high = max(low, float(np.minimum(part, 0).sum())), min(high, float(np.maximum(part, 0).sum()))
    value, how = soft.value, "soft"
    if hard.value is not None and _error(hard) + max((hard.value - value) ** 2 - _error(soft), 0.0) < _error(soft):
        value, how = min(max(hard.value, low), high), "yes and no"
    return replace(soft, value=value, low=low, high=high, exact=False, method=f"{soft.method}, {how}")


def soft_mean(
    sampler: AggregateSampler,
    probabilities: Floats,
    audit: Calibration,
    weights: Floats,
    counted: Floats,
    *,
    domain: int | None = None,
) -> Estimate | None:
    """The mean of `weights` over the rows for which the truth is yes: total(weights · p)/total(counted · p), with an
    interval as in `soft_total`; None where the probabilities are not calibrated.

    Args:
        weights: (N,) the value of each row, 0 where it has none.
        counted: (N,) 1 where a row has a value, else 0.
        Others as in `soft_total`.
    """
    if not audit.holds:
        return None
    p = np.asarray(probabilities, np.float64)
    indices = sampler.labelled
    soft = sampler.ratio(weights[indices] * p, counted[indices] * p, weights=weights, domain=domain)
    rows = sampler.total(counted[indices] * p, (0.0, 1.0), domain=domain).value
    if soft.value is None or soft.low is None or soft.high is None or not rows:
        return soft
    value, present = soft.value, _weights_of(sampler, counted, domain)
    part = _weights_of(sampler, weights, domain)[present > 0]
    least, most = float(part.min()), float(part.max())
    chance = math.sqrt(_doubt(p) * float(((part - value) ** 2).sum())) / rows
    bias = 0.0
    for b in (audit.low, audit.high):
        left = rows - b * len(part)
        bias = max(bias, abs((value * rows - b * float(part.sum())) / left - value) if left > 0 else most - least)
    open_ = math.hypot(bias, intervals.normal_quantile(audit.confidence) * chance)
    low = value - math.hypot(value - soft.low, open_)
    high = value + math.hypot(soft.high - value, open_)
    low, high = min(max(low, least), value), max(min(high, most), value)
    return replace(soft, low=low, high=high, exact=False, method=f"{soft.method}, soft")


def _weights_of(sampler: AggregateSampler, weights: Floats | None, domain: int | None) -> Floats:
    """What each row of the group, or of all, weighs."""
    whole = np.ones(sampler.n_rows) if weights is None else weights
    return whole if domain is None or sampler.groups is None else whole[sampler.groups == domain]


def _doubt(p: Floats) -> float:
    """The mean variance of a row's truth given its chance."""
    chances = p[~np.isnan(p)]
    return float((chances * (1 - chances)).mean()) if len(chances) else 0.0


def _error(estimate: Estimate) -> float:
    """The variance that an interval speaks of."""
    if estimate.low is None or estimate.high is None:
        return math.inf
    return ((estimate.high - estimate.low) / 2 / intervals.normal_quantile(estimate.confidence)) ** 2
