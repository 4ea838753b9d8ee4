"""Values of rows, told by a small model, made steadier by the values of rows near in meaning, where nearness tells them.

A small model puts many rows to a wrong one of the values; rows near in meaning mostly have the same one, if the values are of a kind
that texts differ by (a topic), and not where they are of another (a mood). How far neighbours are listened to is found from the model's
own answers: each row's value is foretold from the others', and the width with which that succeeds best is taken; none where none helps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARPNESS = (0.0, 2.0, 4.0, 8.0, 16.0)  # of the weight exp(s·cosine) of a neighbour; 0: all rows count alike, and nothing is learned
ROUNDS = 4  # of telling each row's value from its own answer and its neighbours' values
FEWEST_ROWS = 8  # below, there is nothing to learn from
LEAST_GAIN = 0.02  # of the mean log chance a row, for neighbours to be listened to
FLOOR = 1e-3  # of a share: no value is impossible


def steadied(shares: Floats, vectors: NDArray[np.float32] | None) -> Floats:
    """(n, k) the chance of each value for each row.

    Args:
        shares: (n, k) of the k values in the model's answer; rows sum to 1.
        vectors: (n, d) the rows' features; None: there are none, and the shares stay.
    """
    n, k = shares.shape
    own = (shares + FLOOR) / (shares + FLOOR).sum(axis=1, keepdims=True)
    if vectors is None or n < FEWEST_ROWS or k < 2 or vectors.shape[1] == 0:
        return own
    centred = vectors - vectors.mean(axis=0)
    unit = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-9)
    cosine = (unit @ unit.T).astype(np.float64)
    prior = own.mean(axis=0)
    gains = [float(np.log((own * _foretold(own, cosine, s)).sum(axis=1)).mean()) for s in SHARPNESS]
    best = int(np.argmax(gains))
    if gains[best] - gains[0] < LEAST_GAIN:
        return own
    told = own
    for _ in range(ROUNDS):
        told = own * _foretold(told, cosine, SHARPNESS[best]) / prior
        told = told / told.sum(axis=1, keepdims=True)
    return told


def _foretold(shares: Floats, cosine: Floats, sharpness: float) -> Floats:
    """(n, k) the values of each row as the other rows tell them, nearer ones more."""
    weights = np.exp(sharpness * cosine)
    np.fill_diagonal(weights, 0.0)
    found: Floats = weights @ shares
    found = found + FLOOR * found.sum(axis=1, keepdims=True)
    return found / found.sum(axis=1, keepdims=True)
