"""Counts under a model that errs: what share is true, given audited rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from uql.sampling import intervals
from uql.sampling.base import Estimate


@dataclass(frozen=True, slots=True)
class Audit:
    """Rows that a person judged after the model: of `yes` true ones the model said yes to `hits`, of `no` others to
    `false_alarms`."""

    yes: int
    hits: int
    no: int
    false_alarms: int


def corrected(found: Estimate, n_rows: int, audit: Audit) -> Estimate:
    """The number of rows for which the truth is yes, from the number to which the model says yes.

    An estimate counts the rows that the model says yes to: independent wrong answers cannot be sampled away, and with
    8 % of random
    flips a share of 1.7 % reads as 9 %. Rogan and Gladen's correction is (share − fpr)/(tpr − fpr); its interval joins
    those of the
    share and of both rates. The audited rows must be random within each class.

    Args:
        found: a count, with its interval.
        n_rows: N.
        audit: judged rows.
    Returns: value, low and high in rows, never exact; the whole range [0, N] where the audit does not show that tpr >
    fpr.
    Source: Rogan & Gladen (1978); Zou & Donner (2008), MOVER, for the interval.
    >>> found = Estimate(900.0, 800.0, 1000.0)
    >>> result = corrected(found, 10_000, Audit(yes=100, hits=95, no=400, false_alarms=32))
    >>> round(result.value), result.low < 115 < result.high
    (115, True)
    """
    whole = replace(found, low=0.0, high=float(n_rows), exact=False, method="rogan-gladen")
    if found.value is None or found.low is None or found.high is None or not audit.yes or not audit.no or not n_rows:
        return whole
    tpr, fpr = audit.hits / audit.yes, audit.false_alarms / audit.no
    tpr_low, tpr_high = intervals.wilson(tpr, audit.yes, found.confidence)
    fpr_low, fpr_high = intervals.wilson(fpr, audit.no, found.confidence)
    if tpr_low <= fpr_high:
        return replace(whole, value=None)

    def true_share(share: float, hit: float, alarm: float) -> float:
        return (share - alarm) / (hit - alarm)

    share, low, high = found.value / n_rows, found.low / n_rows, found.high / n_rows
    middle = true_share(share, tpr, fpr)
    down = (true_share(low, tpr, fpr), true_share(share, tpr_high, fpr), true_share(share, tpr, fpr_high))
    up = (true_share(high, tpr, fpr), true_share(share, tpr_low, fpr), true_share(share, tpr, fpr_low))
    least = middle - math.sqrt(sum(min(part - middle, 0.0) ** 2 for part in down))
    most = middle + math.sqrt(sum(max(part - middle, 0.0) ** 2 for part in up))

    def rows(part: float) -> float:
        return n_rows * min(max(part, 0.0), 1.0)

    return replace(whole, value=rows(middle), low=rows(least), high=rows(most))
