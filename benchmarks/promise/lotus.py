"""LOTUS's filter cascade, plainly: a sample weighted by the score, thresholds by normal bounds, the dear model between them.

Source: Patel et al. (2024), LOTUS, section 3 and `lotus/sem_ops/cascade_utils.py`, with its defaults: a tenth of the rows is
drawn, half of the chances follow the square root of the score. The module draws from the first 250 rows alone; the paper, and
this file, from all.
"""

from __future__ import annotations

import numpy as np

from uql.benchmarks.promise.tables import Dear, Table
from uql.sampling.base import Floats, Indices

SAMPLED, EVEN = 0.1, 0.5


def cascade(
    table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float
) -> Indices:
    """The rows returned.

    Args:
        precision, recall, delta: the targets, and the chance of failure.
    """
    score, n = table.score, len(table.score)
    weight = np.sqrt(score)
    weight = (1 - EVEN) * weight / weight.sum() + EVEN / n
    drawn = rng.choice(n, max(1, int(SAMPLED * n)), p=weight)
    order = np.argsort(-score[drawn], kind="stable")
    drawn = drawn[order]
    s, y, factor = score[drawn], dear(drawn), (1 / n) / weight[drawn]
    low = _recalled(s, y * factor, recall)
    above = s >= low
    upper = _bound(y[above] * factor[above], len(s), delta / 2, 1)
    lower = _bound(y[~above] * factor[~above], len(s), delta / 2, -1)
    total = upper + lower
    low = _recalled(s, y * factor, min(1.0, upper / total) if total else 1.0)
    counts = np.searchsorted(-s, -s, side="right")  # of the sample, at or above each score
    mean = np.cumsum(y)[counts - 1] / counts
    sure = mean - np.sqrt(mean * (1 - mean) / counts * 2 * np.log(len(s) / delta)) > precision
    high = max(low, min(1.0, float(s[sure].min())) if sure.any() else 1.0)
    between = np.flatnonzero((score < high) & (score > low))
    answers = dear(between)
    known = np.unique(drawn[y == 1.0])
    return np.unique(np.concatenate([np.flatnonzero(score >= high), between[answers == 1.0], known]))


def _recalled(s: Floats, weighted: Floats, target: float) -> float:
    """The highest threshold whose recall in the sample, sorted by falling score, reaches the target."""
    total = weighted.sum()
    if total <= 0:
        return 0.0
    enough = np.cumsum(weighted) / total >= target - 1e-12
    return float(s[int(np.argmax(enough))]) if enough.any() else 0.0


def _bound(values: Floats, n: int, delta: float, sign: int) -> float:
    if not len(values):
        return 0.0
    return float(values.mean() + sign * values.std() / n**0.5 * (2 * np.log(1 / delta)) ** 0.5)
