"""Tables with a proxy score of each row, as the papers on guarantees make them: calibrated, and wrong in several ways."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uql.sampling.base import Floats, Matrix

KINDS = ("calibrated", "overconfident", "noisy", "useless", "inverted")
SHARES = (0.001, 0.01, 0.024, 0.1, 0.5)
CONCENTRATION = 1.0  # a + b of Beta(a, b): below 2 most scores are near 0 or 1
NOISE = 4  # columns that say nothing


@dataclass(frozen=True)
class Proxied:
    """Features and prior of every row are its proxy score (as log-odds, standardised) and some noise.

    Attributes:
        features: (N, 2 + NOISE) float32, mean squared row norm about 1.
        prior: (N,) the proxy's log-odds.
        truth: (N,) 1 or 0.
    """

    features: Matrix
    prior: Floats
    truth: Floats


def proxied(n: int, share: float, kind: str, rng: np.random.Generator) -> Proxied:
    """A table of n rows, about that share of them true, at least one.

    A chance p of each row comes from Beta(c·share, c·(1 − share)), its truth from p. The proxy is p where calibrated;
    p to the power 1/3 where overconfident; p with noise of two units of log-odds; unrelated to p; or 1 − p.
    Source: Beta families as in Kang et al. (2020), SUPG, section 6.
    """
    p = np.clip(rng.beta(CONCENTRATION * share, CONCENTRATION * (1 - share), n), 1e-9, 1 - 1e-9)
    truth = (rng.random(n) < p).astype(np.float64)
    if not truth.any():
        truth[int(p.argmax())] = 1.0
    proxy = {
        "calibrated": p,
        "overconfident": p ** (1 / 3),
        "noisy": p,
        "useless": rng.permutation(p),
        "inverted": 1 - p,
    }[kind]
    odds = np.clip(np.log(proxy / (1 - proxy)), -20, 20)
    if kind == "noisy":
        odds = odds + 2.0 * rng.normal(size=n)
    score = (odds - odds.mean()) / (odds.std() or 1.0)
    columns = np.stack([score, np.clip(score, -0.5, 3.0) ** 2 - 1, *rng.normal(size=(NOISE, n))], axis=1)
    features = (columns / np.sqrt((columns**2).sum(axis=1).mean())).astype(np.float32)
    return Proxied(np.ascontiguousarray(features), odds, truth)
