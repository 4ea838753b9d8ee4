"""A hash of a row's number, by which every process draws the same rows of a table, each of its own part."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**64 - 1
AT_ONCE = 1 << 20  # rows hashed at a time
SURE = 6.0  # standard deviations of the rows below a bound


def row_hashes(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """(n,) 64 bits of each row number; no two rows share one.

    Source: Steele, Lea & Flood (2014), SplitMix64.
    """
    with np.errstate(over="ignore"):
        hashes = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            hashes ^= hashes >> np.uint64(shift)
            hashes *= np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def bound_for(count: int, n_rows: int) -> int:
    """A bound that almost surely at least `count` of n rows have a hash below, and few more than these."""
    share = (count + SURE * math.sqrt(count) + SURE**2) / max(1, n_rows)
    return LARGEST if share >= 1 else int(share * LARGEST)


def rows_below(start: int, stop: int, bound: int) -> NDArray[np.int64]:
    """The rows whose hashes are at most a bound, ascending. Memory follows the rows found.

    Args:
        start, stop: of the rows looked at, `stop` not among them.
        bound: in [0, 2⁶⁴).
    """
    parts = [np.zeros(0, np.int64)]
    for first in range(start, stop, AT_ONCE):
        rows = np.arange(first, min(stop, first + AT_ONCE), dtype=np.int64)
        parts.append(rows[row_hashes(rows) <= np.uint64(bound)])
    return np.concatenate(parts)


def lowest(rows: NDArray[np.int64], count: int) -> NDArray[np.bool_]:
    """(n,) which of the rows have the `count` lowest hashes."""
    is_lowest = np.ones(len(rows), dtype=bool)
    if count < len(rows):
        is_lowest[np.argpartition(row_hashes(rows), count)[count:]] = False
    return is_lowest
