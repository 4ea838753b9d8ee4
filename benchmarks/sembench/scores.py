"""SemBench's measures of an answer: each 1 for a perfect one, 0 for one that says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb, isfinite
from typing import Any

Rows = Sequence[tuple[Any, ...]]


def f1(found: Rows, truth: Rows, limit: int | None = None) -> float:
    """F1 of a set of rows; with a limit, any `limit` of the true rows are all that is wanted, and rows beyond it are wrong.

    >>> f1([(1,), (2,)], [(1,), (2,), (3,), (4,)])
    0.6666666666666666
    >>> f1([(1,), (2,)], [(1,), (2,), (3,), (4,)], limit=2)
    1.0
    """
    wanted = len(set(truth)) if limit is None else min(limit, len(set(truth)))
    if not found and not wanted:
        return 1.0
    right = min(len(set(found) & set(truth)), wanted)
    return 2 * right / (len(set(found)) + wanted)


def closeness(found: float | None, truth: float) -> float:
    """1 / (1 + relative error).

    >>> closeness(15, 10)
    0.6666666666666666
    """
    if found is None or not isfinite(found):
        return 0.0
    error = abs(found - truth)
    return 1 / (1 + (error / abs(truth) if truth else error))


def spearman(found: Rows, truth: Rows) -> float:
    """Rank correlation of (key, score) rows, ties at their mean rank, keys that are missing counted as 0 share; 1 where all are tied.

    >>> spearman([("a", 1), ("b", 2), ("c", 3)], [("a", 10), ("b", 20), ("c", 30)])
    1.0
    """
    import numpy as np
    from scipy.stats import rankdata

    held = {key: value for key, value in found if value is not None}
    pairs = [(float(held[key]), float(value)) for key, value in truth if key in held and value is not None]
    known = len([value for _, value in truth if value is not None])
    if len(pairs) < 2:
        return 0.0
    x, y = rankdata([p[0] for p in pairs]), rankdata([p[1] for p in pairs])
    if x.std() == 0 or y.std() == 0:
        rho = float(x.std() == y.std())
    else:
        rho = float(np.corrcoef(x, y)[0, 1])
    return round(rho, 12) * len(pairs) / known


def adjusted_rand(found: Sequence[Any], truth: Sequence[Any]) -> float:
    """The adjusted Rand index of two partitions of the same rows.

    >>> adjusted_rand(["x", "x", "y"], [1, 1, 2])
    1.0
    """
    n = len(truth)
    both = sum(comb(k, 2) for k in Counter(zip(found, truth, strict=True)).values())
    left, right = (sum(comb(k, 2) for k in Counter(side).values()) for side in (found, truth))
    expected = left * right / comb(n, 2) if n > 1 else 0.0
    most = (left + right) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)
