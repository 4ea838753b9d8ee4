"""Was `error = x` reached? How wide an interval is beside its value, and what is said where it is too wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from uql.kernels.base import Context
from uql.kernels.estimates.sample import Sampled, rows_foretold
from uql.kernels.relation import Relation
from uql.sampling.base import Estimate


def half_width(estimate: Estimate) -> float:
    """Half the interval over the value; inf where one of them is not known."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return math.inf
    return 0.0 if high == low else (high - low) / (2 * abs(value)) if value else math.inf


def note_error(found: Sequence[Estimate], sampled: Sampled, relation: Relation, ctx: Context) -> None:
    """Says of `error = x` that it was not reached, and how many rows about would reach it."""
    wanted, asked = ctx.settings.error, len(sampled.told)
    widest = max((half_width(e) for e in found), default=0.0)
    if wanted is None or widest <= wanted * (1 + 1e-9):
        return
    ctx.partial = True
    got = f"±{widest:.0%}" if math.isfinite(widest) else "an open interval"
    needed = rows_foretold(widest / wanted, max(asked, 1), relation.n)
    ctx.notes.append(
        f"the error of ±{wanted:.0%} asked for was not reached: {got} after {asked:,} rows; about {needed:,} of {relation.n:,} "
        "rows would reach it: give a larger budget"
    )
