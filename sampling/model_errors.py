"""Counts under a model that errs: what share is true, given audited rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from uql.sampling import intervals
from uql.sampling.base import Estimate, Floats, Indices

METHOD = "rogan-gladen"
FEWEST_VALUES = 10  # of rows judged true, whose own mean is then the estimate
NOT_RANDOM = 0.99  # how surely judged rows are not random in a value, where its mean over them is not used
NO_ROWS: Indices = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Audit:
    """Rows that a person judged after the model: of `yes` true ones the model said yes to `hits`, of `no` others to `false_alarms`.

    `matches` are those of yes and those of no that are in the table, each by its number beside the rows of the table equal to it.
    """

    yes: int
    hits: int
    no: int
    false_alarms: int
    matches: tuple[tuple[Indices, Indices], ...] = field(default=((NO_ROWS, NO_ROWS),) * 2, compare=False)

    def values(self, value: Floats) -> tuple[Floats, Floats]:
        """Of the judged rows of yes and of no, the mean of `value` over the rows of the table equal to each; NaN left out.

        Args:
            value: (N,) of each row of the table.
        """
        yes, no = (_means(judged, value[rows]) for judged, rows in self.matches)
        return yes, no


def corrected(
    estimate: Estimate,
    whole: float,
    audit: Audit,
    bounds: tuple[float, float] | None = None,
    squares: float | None = None,
) -> Estimate:
    """What the rows for which the truth is yes add up to, from what those add up to to which the model says yes.

    An estimate counts the rows that the model says yes to: independent wrong answers cannot be sampled away, and with 8
    % of random flips a share of 1.7 % reads as 9 %. Rogan and Gladen's correction of a share is (share − fpr)/(tpr −
    fpr); its interval joins those of the share, of both rates, and how many errors there happen to be among the rows
    themselves. The audited rows must be random within each class; for a sum, the errors must not depend on the value.

    Args:
        estimate: a count or a sum, with its interval.
        whole: what it would be if the truth were yes for every row: of a count, N.
        audit: judged rows.
        bounds: what it can be; [0, whole] if None.
        squares: sum of the squares of what each row would add; `whole`, as of a count, if None.
    Returns: value, low and high, never exact; all that is possible where the audit does not show that tpr > fpr.
    Source: Rogan & Gladen (1978); Zou & Donner (2008), MOVER, for the interval.
    >>> estimate = Estimate(900.0, 800.0, 1000.0)
    >>> result = corrected(estimate, 10_000, Audit(yes=100, hits=95, no=400, false_alarms=32))
    >>> round(result.value), result.low < 115 < result.high
    (124, True)
    """
    least, most = (0.0, float(whole)) if bounds is None else bounds
    open_ = replace(estimate, low=least, high=most, exact=False, method=METHOD)
    if (
        estimate.value is None
        or estimate.low is None
        or estimate.high is None
        or not audit.yes
        or not audit.no
        or least == most
    ):
        return open_
    tpr, fpr, tprs, fprs = _rates(audit, estimate.confidence)
    if tprs[0] <= fprs[1]:
        return replace(open_, value=None)

    def truth(answer: float, hit: float, alarm: float) -> float:
        return (answer - alarm * whole) / (hit - alarm)

    middle = truth(estimate.value, tpr, fpr)
    others = [[truth(end, tpr, fpr) for end in (estimate.low, estimate.high)]]
    others += [[truth(estimate.value, hit, fpr) for hit in tprs], [truth(estimate.value, tpr, alarm) for alarm in fprs]]
    share = min(max(middle / whole, 0.0), 1.0) if whole else 0.0
    errors = (tpr * (1 - tpr) * share + fpr * (1 - fpr) * (1 - share)) * (abs(whole) if squares is None else squares)
    others.append(_around(middle, math.sqrt(errors) / (tpr - fpr), estimate.confidence))
    return _possible(open_, middle, others, (least, most), estimate, 1 / (tpr - fpr))


def corrected_mean(
    estimate: Estimate,
    count: Estimate,
    mean: float,
    n_rows: int,
    audit: Audit,
    bounds: tuple[float, float],
    variance: float,
) -> Estimate:
    """The mean of a stored value over the rows for which the truth is yes, from that over the rows the model says yes to.

    With c the share of yes among all rows, a the mean over them and m the mean over all rows, it is (a c − fpr m)/(c −
    fpr): the rows missed are like those found, the false alarms like all rows.

    Args:
        estimate: the mean over the rows that the model says yes to; count: their number.
        mean: over all rows; n_rows: their number.
        audit: judged rows.
        bounds: the least and the greatest value of a row.
        variance: of the rows' values.
    Source: after Rogan & Gladen (1978); Zou & Donner (2008) for the interval.
    >>> audit = Audit(yes=99, hits=99, no=990, false_alarms=50)
    >>> result = corrected_mean(Estimate(5.0, 4.8, 5.2), Estimate(200.0, 180.0, 220.0), 2.0, 1000, audit, (0, 9), 4.0)
    >>> round(result.value, 1), result.low < 6.0 < result.high
    (5.9, True)
    """
    open_ = replace(estimate, low=bounds[0], high=bounds[1], exact=False, method=METHOD)
    numbers = (estimate.value, estimate.low, estimate.high, count.value, count.low, count.high)
    if any(v is None or not math.isfinite(v) for v in numbers) or not audit.yes or not audit.no or not n_rows:
        return open_
    a, a_low, a_high, c, c_low, c_high = (float(v) for v in numbers if v is not None)
    c, c_low, c_high = c / n_rows, c_low / n_rows, c_high / n_rows
    tpr, fpr, tprs, fprs = _rates(audit, estimate.confidence)
    if tprs[0] <= fprs[1] or c <= fpr:
        return replace(open_, value=None)

    def truth(a: float, c: float, alarm: float) -> float:
        return (a * c - alarm * mean) / (c - alarm) if c > alarm else math.nan

    middle = truth(a, c, fpr)
    others = [[truth(x, c, fpr) for x in (a_low, a_high)], [truth(a, x, fpr) for x in (c_low, c_high)]]
    others.append([truth(a, c, alarm) for alarm in fprs])
    if any(math.isnan(x) for pair in others for x in pair):  # hardly more yes than false alarms: the middle is anything
        return replace(open_, value=_within(a, *bounds))
    share = min((c - fpr) / (tpr - fpr), 1.0)
    spread = (tpr * (1 - tpr) * share + fpr * (1 - fpr) * (1 - share)) * (variance + (mean - middle) ** 2) / n_rows
    others.append(_around(middle, math.sqrt(spread) / (c - fpr), estimate.confidence))
    return _possible(open_, middle, others, bounds, estimate, c / (c - fpr))


def mean_of_judged(estimate: Estimate, count: Estimate, top: Floats, bottom: Floats, audit: Audit) -> Estimate:
    """The mean of a stored value over the rows for which the truth is yes, from the values of those judged so.

    They are random among all such rows, whatever the model answers and however its errors depend on the value: the
    interval is theirs alone. The value lies between their mean and the estimate by all rows and answers, by both
    variances and by how much farther the two are apart than these let expect. That the judged rows are random is held
    against the mean over all rows, which is known: where they differ from it the estimate stays as it is.

    Args:
        estimate: by the answers of the model, corrected by `corrected_mean`.
        count: of the rows for which the truth is yes.
        top: (N,) the value of each row of the table, NaN where it has none.
        bottom: (N,) what each counts for: 1 of a mean, the divisor of a quotient of sums.
        audit: judged rows.
    Source: Angelopoulos et al. (2023), PPI++, whose weight of the model's answers is chosen from the data too; Green &
    Strawderman (1991); the interval by `intervals.Skew`.
    """
    (y, others_y), (x, others_x) = audit.values(top), audit.values(bottom)
    n = len(y)
    if min(n, len(others_y)) < FEWEST_VALUES or not x.sum():
        return estimate
    there = ~np.isnan(top)
    whole = float(top[there].sum()) / float(bottom[there].sum())
    if _differ(y - whole * x, others_y - whole * others_x, count, int(there.sum())):
        return estimate
    mean = float(y.sum() / x.sum())
    parts = (y - mean * x) / x.sum()
    variance = float((parts**2).sum()) * n / (n - 1)
    skew = intervals.Skew.of(parts, values=y / x) if x.all() else intervals.Skew.of(parts)
    least, most = skew.quantiles(estimate.confidence, n - 1)
    low, high = mean - most * math.sqrt(variance), mean - least * math.sqrt(variance)
    value = mean
    if estimate.value is not None:
        of_answers = _variance(estimate.low, estimate.high, estimate.confidence)
        apart = max((estimate.value - mean) ** 2 - variance - of_answers, 0.0)
        total = variance + of_answers + apart
        value += (variance / total if total > 0 else 0.0) * (estimate.value - mean)
    return replace(estimate, value=_within(value, low, high), low=low, high=high, exact=False, method=METHOD)


def _means(group: Indices, values: Floats) -> Floats:
    """The mean of the values in each group that has one."""
    there = ~np.isnan(values)
    times = np.bincount(group[there])
    return np.bincount(group[there], values[there])[times > 0] / times[times > 0]


def _differ(yes: Floats, no: Floats, count: Estimate, n_rows: int) -> bool:
    """Do judged rows show that they are not random in a value whose mean over all rows is 0?

    Args:
        yes, no: its values of the rows judged so, at least two of each.
        count: of the rows for which the truth is yes, among `n_rows`.
    """
    share = 0.5 if count.value is None else count.value / n_rows
    means = float(yes.mean()), float(no.mean())
    spread = _variance(count.low, count.high, count.confidence) / n_rows**2 * (means[0] - means[1]) ** 2
    spread += share**2 * float(yes.var(ddof=1)) / len(yes) + (1 - share) ** 2 * float(no.var(ddof=1)) / len(no)
    off = share * means[0] + (1 - share) * means[1]
    return abs(off) > intervals.normal_quantile(NOT_RANDOM) * math.sqrt(spread)


def _rates(audit: Audit, confidence: float) -> tuple[float, float, tuple[float, float], tuple[float, float]]:
    """Of true and of false positives, with their intervals."""
    tpr, fpr = audit.hits / audit.yes, audit.false_alarms / audit.no
    return tpr, fpr, intervals.wilson(tpr, audit.yes, confidence), intervals.wilson(fpr, audit.no, confidence)


def _around(middle: float, deviation: float, confidence: float) -> list[float]:
    half = intervals.normal_quantile(confidence) * deviation
    return [middle - half, middle + half]


def _joined(middle: float, others: list[list[float]]) -> tuple[float, float]:
    """The interval from what each part alone, at the ends of its own, would make of the middle."""
    down = sum(min(min(pair) - middle, 0.0) ** 2 for pair in others)
    up = sum(max(max(pair) - middle, 0.0) ** 2 for pair in others)
    return middle - math.sqrt(down), middle + math.sqrt(up)


def _possible(
    open_: Estimate,
    middle: float,
    others: list[list[float]],
    bounds: tuple[float, float],
    estimate: Estimate,
    slope: float,
) -> Estimate:
    """Value, low and high. A middle that cannot be is moved to the nearest that can, and its interval reaches as far from there.

    The value lies between the middle, which has no bias, and the estimate, which varies less: nearer to the middle
    the farther apart they are for their spread. The interval is that of the middle.

    Args:
        slope: by how much the middle moves with the estimate.
    Source: Green & Strawderman (1991), Journal of the American Statistical Association 86.
    """
    centre = _within(middle, *bounds)
    low, high = _joined(middle, others)
    low, high = min(low, centre - (middle - low)), max(high, centre + (high - middle))
    low, high = _within(low, *bounds), _within(high, *bounds)
    apparent = estimate.value or 0.0
    spread = _variance(low, high, estimate.confidence)
    of_apparent = _variance(estimate.low, estimate.high, estimate.confidence)
    together = slope * of_apparent
    apart = spread + of_apparent - 2 * together + (apparent - centre) ** 2
    part = min(max((spread - together) / apart, 0.0), 1.0) if apart > 0 else 0.0
    return replace(open_, value=_within(centre + part * (apparent - centre), low, high), low=low, high=high)


def _variance(low: float | None, high: float | None, confidence: float) -> float:
    """That an interval speaks of."""
    assert low is not None and high is not None
    return ((high - low) / 2 / intervals.normal_quantile(confidence)) ** 2


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
