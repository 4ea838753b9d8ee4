"""Whether a model's log-odds rank pairs as an attribute does, where its yes and no alone do not tell.

A small model leans to yes or to no for some texts, whatever stands beside them: of 24 pairs of tweets, half of the same sentiment, the
local one called none the same, and its log-odds ranked them little better than chance (AUC 0.59). With the means of each text over its
partners taken out they do (0.88). This reads no threshold off the pairs: it only says whether an attribute may be relied on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SIDE = 6  # texts of each side in the block that is asked
LEAST_PAIRS = 16
LEAST_OF_EACH = 4  # pairs that the attribute says match, and that it says do not
ROUNDS = 20  # of taking out the means of both sides in turns; of a whole block the first is enough
EDGE = 1e-3  # a probability nearer to 0 or 1 is a verdict and no score

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def block(first: Ints, second: Ints, rng: np.random.Generator) -> Ints:
    """Pairs among a few texts of each side, so that each text stands beside several.

    Args:
        first, second: (n,) which text of its side each pair holds.
    Returns: (m,) positions of pairs, m ≤ SIDE²; random texts of the first side, and those of the second that meet most of them.
    """
    names = np.unique(first)
    chosen = rng.choice(names, min(SIDE, len(names)), replace=False)
    among = np.flatnonzero(np.isin(first, chosen))
    partners, met = np.unique(second[among], return_counts=True)
    order = rng.permutation(len(partners))
    most = partners[order][np.argsort(-met[order], kind="stable")][:SIDE]
    kept = among[np.isin(second[among], most)]
    _, once = np.unique(np.stack([first[kept], second[kept]]), axis=1, return_index=True)
    return np.sort(kept[once]).astype(np.int64)


def centred(odds: Floats, first: Ints, second: Ints) -> Floats:
    """(n,) log-odds without what either text contributes by itself: the residuals of a two-way table.

    Args:
        odds: (n,) log-odds of yes, one a pair.
        first, second: (n,) int, the text on each side of the pair.

    >>> centred(np.array([3.0, 2.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    rest: Floats = odds - odds.mean()
    for _ in range(ROUNDS):
        for side in (first, second):
            _, code = np.unique(side, return_inverse=True)
            rest = rest - (np.bincount(code, rest) / np.bincount(code))[code]
    return rest


def rank_agreement(probabilities: Floats, first: Ints, second: Ints, answers: NDArray[np.bool_]) -> float | None:
    """The chance that a pair said to match has higher centred log-odds than one said not to (Mann and Whitney, 1947).

    Args:
        probabilities: (n,) of yes, as the model gave them.
        answers: (n,) what the attribute says of each pair.
    Returns: None where the pairs are too few, or the model gives verdicts and no scores.
    """
    soft = (probabilities > EDGE) & (probabilities < 1 - EDGE)
    if len(answers) < LEAST_PAIRS or min(answers.sum(), (~answers).sum()) < LEAST_OF_EACH or soft.mean() < 0.5:
        return None
    p = np.clip(probabilities, EDGE, 1 - EDGE)
    rest = centred(np.log(p) - np.log1p(-p), first, second)
    yes, no = rest[answers][:, None], rest[~answers][None, :]
    return float(((yes > no) + 0.5 * (yes == no)).mean())
