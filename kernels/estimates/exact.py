"""Values of DuckDB as numbers, and exact numbers as estimates: a value that is its own interval."""

from __future__ import annotations

from decimal import Decimal

from uql.sampling.base import Estimate


def number(value: object) -> float | None:
    """A value of DuckDB as a float; None where it is not a number."""
    return float(value) if isinstance(value, int | float | Decimal) else None


def exactly(value: object, confidence: float, calls: int) -> Estimate:
    """An exact number; a value of another type has no bounds.

    Args:
        confidence: of the estimates beside it.
        calls: rows that it rests on.
    >>> exactly(3, 0.95, 10).low, exactly("three", 0.95, 10).low
    (3.0, None)
    """
    exact = number(value)
    return Estimate(exact, exact, exact, confidence, True, calls, 0, "exact")
