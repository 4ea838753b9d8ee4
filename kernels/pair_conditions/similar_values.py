"""Which rows are alike in an attribute whose values cannot be listed, from a small model's answers and from nearness in meaning.

The model names groups twice, from different rows, and puts each row to one of them all. By either list, two rows are alike by the chance
that they are in one group; both lists together are their geometric mean, so that names of either list that mean the same do no harm.

A small model puts many rows to a wrong group. Rows near in meaning are mostly in the same one, if the groups are of a kind that texts
differ by (topics), and not where they are of another (moods). How far neighbours are listened to is found from the model's own
answers: each row's group is foretold from the others', and the width with which that succeeds best is taken; none where none helps.
Where it helps, nearness counts beside the groups, each in its standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.sampling.base import Floats, Indices

# of the weight exp(s·cosine) of a neighbour; 0: all rows count alike, and nothing is learned
SHARPNESS = (0.0, 2.0, 4.0, 8.0, 16.0)
ROUNDS = 4  # of telling each row's group from its own answer and its neighbours' groups
FEWEST_ROWS = 8  # below, there is nothing to learn from
LEAST_GAIN = 0.05  # of the mean log chance a row, for neighbours to be listened to
SHUFFLES = 49  # of the rows' places, none of which may tell as much
FLOOR = 1e-3  # of a share: no group is impossible
MOST_LOOKED = 600  # rows that others are compared with, and between which all pairs are looked at
ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Likeness:
    """What is known of n rows: their groups by each list, and where they lie."""

    parts: tuple[Floats, ...]  # (n, k) the chance of each group, of each list
    unit: Floats | None  # (n, d) features of length 1; None: nearness tells nothing of the groups
    center: tuple[float, float] = (0.0, 0.0)  # mean over pairs of the log-odds and of the cosine
    spread: tuple[float, float] = (1.0, 1.0)  # standard deviation of both
    cut: float = 0.0  # the score from which pairs are called alike

    def chances(self, left: Indices, right: Indices) -> Floats:
        """(pairs,) the chance that two rows are in one group, by the groups alone."""
        logs = [np.log(np.clip((part[left] * part[right]).sum(axis=1), FLOOR, 1 - FLOOR)) for part in self.parts]
        result: Floats = np.exp(np.mean(logs, axis=0))
        return result

    def scores(self, left: Indices, right: Indices) -> Floats:
        """(pairs,) higher where two rows are more alike; from 0 on they are called so."""
        chances = self.chances(left, right)
        odds = np.log(chances) - np.log1p(-chances)
        result: Floats = (odds - self.center[0]) / self.spread[0] - self.cut
        if self.unit is not None:
            cosine = np.einsum("pd,pd->p", self.unit[left], self.unit[right])
            result += (cosine - self.center[1]) / self.spread[1]
        return result

    def draw_groups(self, rng: np.random.Generator) -> list[Indices]:
        """A group of each row drawn by its chances, (n,) for each list."""
        return [(part.cumsum(axis=1) > rng.random((len(part), 1))).argmax(axis=1) for part in self.parts]


def likeness(parts: Sequence[Floats], vectors: NDArray[np.float32] | None, rng: np.random.Generator) -> Likeness:
    """What the model's answers tell of all pairs of rows.

    Args:
        parts: (n, k) of the k groups of each list in the model's answer about each row.
        vectors: (n, d) the rows' features; None: there are none.
        rng: chooses the rows whose pairs are looked at, where they are many.
    """
    n = len(parts[0])
    unit = None if vectors is None or n < FEWEST_ROWS or vectors.shape[1] == 0 else _unit(vectors)
    some = np.arange(n) if n <= MOST_LOOKED else np.sort(rng.choice(n, MOST_LOOKED, replace=False))
    posteriors = [steadied(part, unit, some, rng) for part in parts]
    if not any(helped for _, helped in posteriors):
        unit = None
    base = Likeness(tuple(shares for shares, _ in posteriors), unit)
    left, right = (some[side].astype(np.int64) for side in np.triu_indices(len(some), 1))
    if not len(left):
        return base
    chances = base.chances(left, right)
    odds = np.log(chances) - np.log1p(-chances)
    cosine = odds if unit is None else np.einsum("pd,pd->p", unit[left], unit[right])
    center = (float(odds.mean()), float(cosine.mean()))
    spread = (max(float(odds.std()), 1e-9), max(float(cosine.std()), 1e-9))
    scored = Likeness(base.parts, unit, center, spread)
    groups = [part.argmax(axis=1) for part in base.parts]
    rates = [max(float((group[left] == group[right]).mean()), 1 / len(left)) for group in groups]
    share = min(float(np.exp(np.mean(np.log(rates)))), float(chances.mean()))  # as many are alike as are in one group
    cut = float(np.quantile(scored.scores(left, right), 1 - share, method="higher"))
    return Likeness(base.parts, unit, center, spread, cut)


def steadied(shares: Floats, unit: Floats | None, some: Indices, rng: np.random.Generator) -> tuple[Floats, bool]:
    """(n, k) the chance of each group for each row, and whether neighbours were listened to.

    Args:
        shares: (n, k) as the model answered; a row of zeros says nothing of the row.
        unit: (n, d) features of length 1.
        some: (m,) the rows that may tell of others.
        rng: shuffles, to see what chance would tell.
    """
    own = (shares + FLOOR) / (shares + FLOOR).sum(axis=1, keepdims=True)
    if unit is None or own.shape[1] < 2:
        return own, False
    weights = [_weights(unit, some, some, sharpness) for sharpness in SHARPNESS]
    best, gain = _best(own[some], weights)
    shuffled = (rng.permutation(some) for _ in range(SHUFFLES))
    if gain < LEAST_GAIN or any(_best(own[rows], weights)[1] >= gain for rows in shuffled):
        return own, False
    prior = own.mean(axis=0)
    posterior = own
    for _ in range(ROUNDS):
        posterior = own * _foretold(posterior, unit, some, best) / prior
        posterior = posterior / posterior.sum(axis=1, keepdims=True)
    return posterior, True


def _best(shares: Floats, weights: Sequence[Floats]) -> tuple[float, float]:
    """The sharpness at which rows are foretold best, and what that gains: of the mean log chance of a row's own answer.

    Args:
        shares: (m, k) of the rows that may tell of others.
        weights: (m, m) of each row for each other one, by sharpness.
    """
    chances = [float(np.log((shares * _normal(by_one @ shares)).sum(axis=1)).mean()) for by_one in weights]
    best = int(np.argmax(chances))
    return SHARPNESS[best], chances[best] - chances[0]


def _unit(vectors: NDArray[np.float32]) -> Floats:
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    unit: Floats = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    return unit


def _foretold(shares: Floats, unit: Floats, some: Indices, sharpness: float) -> Floats:
    """(n, k) the groups of each row as some other rows tell them, nearer ones more."""
    prediction = np.empty_like(shares)
    for start in range(0, len(shares), ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(shares)))
        prediction[rows] = _weights(unit, rows, some, sharpness) @ shares[some]
    return _normal(prediction)


def _weights(unit: Floats, rows: Indices, some: Indices, sharpness: float) -> Floats:
    """(rows, some) how much each of some rows tells of each row: of itself nothing."""
    weights: Floats = np.exp(sharpness * (unit[rows] @ unit[some].T))
    weights[rows[:, None] == some[None, :]] = 0.0
    return weights


def _normal(prediction: Floats) -> Floats:
    prediction = prediction + FLOOR * prediction.sum(axis=1, keepdims=True)
    done: Floats = prediction / prediction.sum(axis=1, keepdims=True)
    return done
