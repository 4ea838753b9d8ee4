"""BARGAIN, plainly: thresholds tried in a fixed order, each by a betting test on a uniform sample, the dear model between them.

Source: Zeighami et al. (2025), BARGAIN: the recall target on the matches of a uniform sample (BARGAIN-R, uniform), the precision target on
samples of nested sets from the surest on (BARGAIN-P, adaptive), each at δ/2, and the bound of Waudby-Smith and Ramdas (2024). The
paper has no query with both targets: the dear model answers between the two thresholds, as in its query with an accuracy target.
"""

from __future__ import annotations

import math

import numpy as np

from uql.benchmarks.promise.tables import Dear, Table
from uql.sampling.base import Floats, Indices

CANDIDATES = 20  # thresholds, at even shares of the rows; 20 in the paper
MATCHES = 100  # in the uniform sample
SAMPLE = 0.02  # of a set's rows, at least, before it is given up


def both(table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float) -> Indices:
    """The rows returned.

    Args:
        precision, recall, delta: the targets, and the chance of failure.
    """
    score = table.score
    low = recall_target(score, dear, rng, recall, delta / 2)
    high = precision_target(score, low, dear, rng, precision, delta / 2)
    between = np.flatnonzero((score >= low) & (score < high))
    found = between[dear(between) == 1.0]
    return np.unique(np.concatenate([np.flatnonzero(score >= high), found, dear.matches()]))


def recall_target(score: Floats, dear: Dear, rng: np.random.Generator, recall: float, delta: float) -> float:
    """The highest threshold that the test accepts, from the lowest on, on the matches of a uniform sample."""
    order = rng.permutation(len(score))
    size = len(order)
    seen = np.zeros(0)
    for start in range(0, len(order), 64):  # until there are enough matches
        part = order[start : start + 64]
        seen = np.concatenate([seen, dear(part)])
        if seen.sum() >= MATCHES:
            size = start + len(part)
            break
    matches = score[order[:size][seen == 1.0]]
    low = 0.0
    for share in np.unique(
        np.concatenate([np.linspace(0, 1, CANDIDATES + 1)[1:-1], 1 - np.geomspace(0.5, 0.001, CANDIDATES)])
    ):
        threshold = float(np.quantile(score, share))
        if size < len(order) and _capital((matches >= threshold).astype(float), recall, delta) < 1 / delta:
            break
        if size == len(order) and (matches >= threshold).mean() < recall:
            break
        low = threshold
    return low


def precision_target(
    score: Floats, low: float, dear: Dear, rng: np.random.Generator, precision: float, delta: float
) -> float:
    """The lowest threshold that the test accepts, from the highest on, down to the first that fails; above 1 where none is.

    Args:
        low: the threshold of the recall target: sets do not reach below it.
    """
    best, order = 2.0, np.argsort(-score, kind="stable")
    order = order[score[order] >= low]
    for step in range(1, CANDIDATES + 1):
        members = order[: math.ceil(len(order) * step / CANDIDATES)]
        members = order[score[order] >= score[members[-1]]]
        sample, accepted = rng.permutation(members), False
        seen: Floats = np.zeros(0)
        for start in range(0, len(sample), 16):
            seen = np.concatenate([seen, dear(sample[start : start + 16])])
            if _capital(seen, precision, delta) >= 1 / delta or len(seen) == len(sample):
                accepted = float(seen.mean()) >= precision
                break
            least = max(64, SAMPLE * len(members))
            if len(seen) >= least and float(seen.mean()) - float(seen.std()) / len(seen) ** 0.5 < precision:
                break
        if not accepted:
            break
        best = float(score[members[-1]])
    return best


def _capital(seen: Floats, target: float, delta: float) -> float:
    """The largest capital so far of bets that the mean of the values in [0, 1] is above the target."""
    if not len(seen):
        return 1.0
    n = np.arange(1, len(seen) + 1)
    mean = (0.5 + np.cumsum(seen)) / (n + 1)
    variance = (0.25 + np.cumsum((seen - mean) ** 2)) / (n + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bet = np.minimum(np.sqrt(2 * math.log(1 / delta) / (n * np.log(n + 1) * before)), 0.75 / target)
    return float(np.exp(np.maximum.accumulate(np.cumsum(np.log1p(bet * (seen - target))))[-1]))
