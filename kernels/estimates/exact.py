"""Exact numbers as estimates: a value that is its own interval."""

from __future__ import annotations

from decimal import Decimal

from uql.sampling.base import Estimate


def exactly(value: object, confidence: float, calls: int) -> Estimate:
    """An exact number; a value of another type has no bounds.

    Args:
        confidence: of the estimates beside it.
        calls: rows that it rests on.
    >>> exactly(3, 0.95, 10).low, exactly("three", 0.95, 10).low
    (3.0, None)
    """
    number = float(value) if isinstance(value, int | float | Decimal) else None
    return Estimate(number, number, number, confidence, True, calls, 0, "exact")
