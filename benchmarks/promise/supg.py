"""SUPG, plainly: a recall target, then a precision target, each by importance sampling with normal bounds, and both together.

Source: Kang et al. (2020), SUPG, algorithms 4 and 5: weights from the square root of the score, a tenth of them even. For both targets
half of δ goes to each, and the dear model answers between the two thresholds.
"""

from __future__ import annotations

import numpy as np

from uql.benchmarks.promise.tables import Dear, Table
from uql.sampling.base import Floats, Indices

SAMPLED, EVEN, STEP = 0.1, 0.1, 100  # rows of a candidate threshold


def both(table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float) -> Indices:
    """The rows returned.

    Args:
        precision, recall, delta: the targets, and the chance of failure.
    """
    score, n = table.score, len(table.score)
    size = max(1, int(SAMPLED * n / 2))
    low = recall_target(score, dear, rng, recall, delta / 2, size)
    high = precision_target(score, dear, rng, precision, delta / 2, size)
    between = np.flatnonzero((score >= low) & (score < high))
    found = between[dear(between) == 1.0]
    return np.unique(np.concatenate([np.flatnonzero(score >= high), found, dear.matches()]))


def recall_target(score: Floats, dear: Dear, rng: np.random.Generator, recall: float, delta: float, size: int) -> float:
    """The threshold above which the recall is thought to reach the target.

    Args:
        size: rows drawn.
    """
    rows, factor = _drawn(score, rng, size)
    order = np.argsort(-score[rows], kind="stable")
    s, value = score[rows][order], (dear(rows) * factor)[order]
    low = _threshold(s, value, recall)
    above = s >= low
    upper, lower = _upper(value * above, delta / 2), max(_lower(value * ~above, delta / 2), 0.0)
    return _threshold(s, value, upper / (upper + lower)) if upper + lower > 0 else 0.0


def precision_target(
    score: Floats, dear: Dear, rng: np.random.Generator, precision: float, delta: float, size: int
) -> float:
    """The lowest candidate threshold above which the precision is thought to reach the target; above 1 where none does.

    Args:
        size: rows drawn.
    """
    rows, factor = _drawn(score, rng, size)
    order = np.argsort(-score[rows], kind="stable")
    s, y, factor = score[rows][order], dear(rows)[order], factor[order]
    ends = np.arange(STEP, len(s) + 1, STEP)
    best = 2.0
    for end in ends:
        mean = float((y[:end] * factor[:end]).sum() / factor[:end].sum())
        spread = float((factor[:end] * (y[:end] - mean)).std() / factor[:end].mean())
        if mean - spread / end**0.5 * _normal(delta / max(len(ends), 1)) > precision:
            best = float(s[end - 1])
    return best


def _drawn(score: Floats, rng: np.random.Generator, size: int) -> tuple[Indices, Floats]:
    weight = np.sqrt(score)
    weight = (1 - EVEN) * weight / weight.sum() + EVEN / len(score)
    rows = rng.choice(len(score), size, p=weight)
    return rows, 1 / (len(score) * weight[rows])


def _threshold(s: Floats, value: Floats, target: float) -> float:
    if value.sum() <= 0:
        return 0.0
    enough = np.cumsum(value) / value.sum() >= min(target, 1.0) - 1e-12
    return float(s[int(np.argmax(enough))]) if enough.any() else 0.0


def _normal(delta: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(delta))


def _upper(value: Floats, delta: float) -> float:
    return float(value.mean() + value.std() / len(value) ** 0.5 * _normal(delta))


def _lower(value: Floats, delta: float) -> float:
    return float(value.mean() - value.std() / len(value) ** 0.5 * _normal(delta))
