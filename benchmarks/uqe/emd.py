"""The earth mover's distance between two tables of groups, with one less the cosine of the names' embeddings as the distance."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from uql.benchmarks.uqe.data import words


@lru_cache(maxsize=4096)
def _vector(name: str) -> tuple[float, ...]:
    found = np.asarray(words().embed([name.replace("_", " ")])[0], np.float64)
    return tuple(found / max(float(np.linalg.norm(found)), 1e-12))


def distances(left: list[str], right: list[str]) -> NDArray[np.float64]:
    """(len(left), len(right)) one less the cosine, never below 0."""
    a, b = np.array([_vector(name) for name in left]), np.array([_vector(name) for name in right])
    found: NDArray[np.float64] = np.maximum(1 - a @ b.T, 0.0)
    equal = np.array([[x == y for y in right] for x in left])
    return np.where(equal, 0.0, found)


def emd(found: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """The least work that turns one distribution into the other; both are normalised. 1 where nothing was found.

    Source: Pele & Werman (2009), as cited by the UQE paper; here the transport problem is solved as a linear programme.
    >>> round(emd({"a": 2, "b": 2}, {"a": 1, "b": 1}), 9)
    0.0
    """
    return transport({k: v for k, v in found.items() if v > 0}, {k: v for k, v in truth.items() if v > 0})


def transport(found: Mapping[str, float], truth: Mapping[str, float]) -> float:
    from scipy.optimize import linprog

    if not found or not truth:
        return 1.0
    left, right = list(found), list(truth)
    supply = np.array([found[name] for name in left]) / sum(found.values())
    demand = np.array([truth[name] for name in right]) / sum(truth.values())
    m, n = len(left), len(right)
    rows = np.zeros((m + n, m * n))
    for i in range(m):
        rows[i, i * n : (i + 1) * n] = 1
    for j in range(n):
        rows[m + j, j::n] = 1
    solved = linprog(distances(left, right).ravel(), A_eq=rows, b_eq=np.concatenate([supply, demand]), method="highs")
    return float(solved.fun)
