"""`error = x`: how many rows it takes, before and after a pilot, how wide an interval is, and what is said where it is too wide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from uql.kernels.base import Context
from uql.sampling.base import Estimate

WIDE = 0.25  # half an interval over its value, above which a note says what would narrow it
OFFERED = 0.1  # the error that the note names
PILOT_ROWS = (64, 128)  # least and most: 1/x² of them, between these
SPARE = 1.5  # times the rows that the pilot foretells are allowed, where no budget is given


def pilot_rows(error: float | None) -> int | None:
    """Rows of the pilot; None where no error is asked for."""
    least, most = PILOT_ROWS
    return None if error is None else int(min(max(1 / error**2, least), most))


def rows_needed(spread: float, error: float, n: float, confidence: float) -> float:
    """The rows of a uniform sample by which a sum over n rows is known to a relative half-width.

    Args:
        spread: variance of what one row adds over the square of its mean: (1 − p) / p of a count to which a share p adds 1.
        error: the relative half-width.
        n: rows in all, of which the sample is drawn without replacement.
    Source: Cochran, *Sampling Techniques*, 3rd ed. (1977), section 4.4.
    >>> round(rows_needed(1.0, 0.1, 1500, 0.95)), round(rows_needed(1.0, 0.1, 10**9, 0.95))
    (306, 384)
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    of_many = spread * (z / error) ** 2
    return of_many * n / (of_many + n) if of_many else 0.0


def rows_foretold(times: float, sample_size: int, n: int) -> int:
    """The rows of n that make an interval as narrow as asked for, where `sample_size` of them make it so many times as wide.

    Its square goes with 1/rows − 1/n, as that of a mean of a sample without replacement. Without an interval: twice as many.

    Args:
        times: how many times as wide as asked for the interval is; inf: there is none.
        sample_size: rows so far.
        n: rows in all.
    """
    if not math.isfinite(times):
        return min(2 * sample_size, n)
    return math.ceil(1 / ((1 / sample_size - 1 / n) / times**2 + 1 / n)) if sample_size < n else n


def half_width(estimate: Estimate) -> float:
    """Half the interval over the value; inf where one of them is not known."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return math.inf
    return 0.0 if high == low else (high - low) / (2 * abs(value)) if value else math.inf


def note_wide(estimates: Sequence[Estimate], sample_size: int, n: int, ctx: Context) -> None:
    """Says of a wide interval about how many rows would narrow it, where a user asked for no error and more rows would.

    Args:
        estimates: the estimates of a statement without groups.
        sample_size: rows of the sample.
        n: rows in all.
    """
    widest = max((half_width(e) for e in estimates), default=0.0)
    if ctx.settings.error is not None or not WIDE < widest < math.inf or any(e.unknown for e in estimates):
        return
    needed = rows_foretold(widest / OFFERED, max(sample_size, 1), n)
    ctx.notes.append(
        f"the interval is wide: about {needed:,} of {n:,} rows would give ±{OFFERED:.0%}: WITH (error = {OFFERED:g})"
    )


def note_error(estimates: Sequence[Estimate], sample_size: int, n: int, ctx: Context) -> None:
    """Says of `error = x` that it was not reached, and how many rows about would reach it.

    Args:
        estimates: the estimates that it is about.
        sample_size: rows of the sample.
        n: rows in all.
    """
    error = ctx.settings.error
    widest = max((half_width(e) for e in estimates), default=0.0)
    if error is None or widest <= error * (1 + 1e-9):
        return
    ctx.partial = True
    got = f"±{widest:.0%}" if math.isfinite(widest) else "an open interval"
    needed = rows_foretold(widest / error, max(sample_size, 1), n)
    ctx.notes.append(
        f"the error of ±{error:.0%} asked for was not reached: {got} after {sample_size:,} rows; about {needed:,} of {n:,} "
        "rows would reach it: give a larger budget"
    )
