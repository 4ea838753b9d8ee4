"""Values of DuckDB as numbers, and exact numbers as estimates: a value that is its own interval."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from uql.sampling.base import Estimate


def number(value: object) -> float | None:
    """A value of DuckDB as a float; None where it is not a number."""
    return float(value) if isinstance(value, int | float | Decimal) else None


def numbers(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column of numbers, None for NULL; "" for each other, since Python cannot hold every date and interval.

    >>> numbers(pa.chunked_array([pa.array([2**31 - 1, None], pa.date32())])), numbers(pa.chunked_array([[1, None]]))
    (['', None], [1, None])
    """
    plain = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    is_number = any(of(column.type) for of in plain)
    return list(column.to_pylist()) if is_number else [None if null else "" for null in column.is_null().to_pylist()]


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
