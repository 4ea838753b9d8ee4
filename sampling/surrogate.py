"""Cheap models of an answer, fitted to a few hundred labelled rows: logistic and ridge regression with leave-one-out choices.

Fits run in the span of the labelled rows and on one BLAS thread: on a busy machine two spinning threads turn 10 ms into 1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from uql.sampling.base import Flags, Floats, Indices, Matrix

PENALTIES = (1.0, 0.3, 0.1, 0.03)
RIDGE_PENALTIES = (30.0, 10.0, 3.0, 1.0, 0.3)
DIRECTIONS = 64  # kept for estimates
SEARCH_DIRECTIONS = 96  # kept for retrieval
NEWTON_STEPS = 6


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    context: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return context


def moved(p: Floats, rows: Indices, y: Floats, inside: Flags) -> Floats:
    """(N,) the predictions p, of the rows of a group moved on the log-odds by one number that its answers ask for.

    The number is a random effect, normal with mean 0 and variance 1 over groups: few answers move little.

    Args:
        rows: (m,) of the group, with their answers y (m,) in [0, 1].
        inside: (N,) the rows of the group.
    """
    if not len(rows):
        return p
    at, shift = logit(p[rows]), 0.0
    for _ in range(NEWTON_STEPS):
        now = sigmoid(at + shift)
        shift += (float((y - now).sum()) - shift) / (float((now * (1 - now)).sum()) + 1.0)
    out = p.copy()
    out[inside] = sigmoid(logit(p[inside]) + shift)
    return out


def stretched(score: Floats, at: Floats, y: Floats) -> Floats:
    """(N,) chances of log-odds, stretched and moved as far as answers ask for.

    Factor and shift are normal before the answers, around no change. `calibrate` holds few answers to be less sure than this
    does, so that chances near 0 and 1 are too far from there.

    Args:
        score: (N,) log-odds.
        at: (m,) log-odds of labelled rows, leave-one-out, with their answers y (m,) in [0, 1].
    """
    weights, prior = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    x = np.stack([at, np.ones(len(at))], axis=1)
    for _ in range(2 * NEWTON_STEPS):
        now = sigmoid(x @ weights)
        hessian = (x * (now * (1 - now))[:, None]).T @ x + np.eye(2)
        step = np.linalg.solve(hessian, x.T @ (y - now) - (weights - prior))
        weights = weights + step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-12))
    return sigmoid(max(float(weights[0]), 0.0) * score + weights[1])


def log_loss(p: Floats, y: Floats) -> float:
    """The mean log loss of chances p (n,) of answers y (n,) in [0, 1]."""
    p = np.clip(p, 1e-9, 1 - 1e-9)
    return float(-(y * np.log(p) + (1 - y) * np.log1p(-p)).mean())


def logit(p: Floats) -> Floats:
    """The log-odds of chances, those of 0 and 1 finite."""
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


def sigmoid(x: Floats) -> Floats:
    """1/(1 + e^−x), without overflow."""
    out: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return out


@dataclass(frozen=True, slots=True)
class Span:
    """Labelled rows in the coordinates of their own span.

    Attributes:
        inside: (n, r) float64, their coordinates along the r leading directions.
        axes: (d, r) float32, those directions: `axes @ b` is the weight vector of coefficients b.
    """

    inside: Floats
    axes: Matrix

    @classmethod
    def of(cls, rows: Matrix, directions: int) -> Span:
        """Eigen-decompose the smaller of the rows' two product matrices, and keep at most `directions`."""
        n, d = rows.shape
        product = (rows @ rows.T if n <= d else rows.T @ rows).astype(np.float64)
        values, vectors = np.linalg.eigh(product)
        order = np.argsort(values)[::-1][:directions]
        order = order[values[order] > 1e-7 * max(float(values[-1]), 1e-12)]
        roots = np.sqrt(values[order])
        if n > d:
            axes = np.ascontiguousarray(vectors[:, order], np.float32)
            return cls((rows @ axes).astype(np.float64), axes)
        return cls(vectors[:, order] * roots, rows.T @ (vectors[:, order] / roots).astype(np.float32))

    def weights(self, coefficients: Floats) -> Matrix:
        """(d,) or (d, k) float32: what a row is multiplied with."""
        out: Matrix = self.axes @ coefficients.astype(np.float32)
        return out


@dataclass(frozen=True, slots=True)
class Linear:
    """A fitted score: `features @ weights + constant`; `link` says whether it is a log-odds.

    `loo` is the (n,) leave-one-out score of each labelled row, `noise` the mean squared error of those of a number.
    """

    weights: Matrix | None  # None: the same score for every row
    constant: float
    logistic: bool
    loo: Floats
    noise: float = 0.0

    def score(self, features: Matrix) -> Floats:
        """(N,) the score of each row."""
        if self.weights is None:
            return np.full(len(features), self.constant)
        return (features @ self.weights).astype(np.float64) + self.constant

    def predict(self, features: Matrix) -> Floats:
        """(N,) the expected answer of each row: a probability where the fit is logistic."""
        return sigmoid(self.score(features)) if self.logistic else self.score(features)

    def sure(self, score: Floats, y: Floats) -> Floats:
        """(N,) the chances of log-odds of this fit, stretched as far as the answers y (n,) that it learned from ask for."""
        return sigmoid(score) if self.weights is None else stretched(score, self.loo, y)


def predictions(fits: Sequence[Linear], features: Matrix) -> list[Floats]:
    """The (N,) predictions of several fits, from one pass over the features: it is memory that such products wait for."""
    weights = [fit.weights for fit in fits if fit.weights is not None]
    if not weights:
        return [fit.predict(features) for fit in fits]
    products = iter((features @ np.stack(weights, axis=1)).T)
    out = []
    for fit in fits:
        score = np.full(len(features), fit.constant)
        if fit.weights is not None:
            score += next(products)
        out.append(sigmoid(score) if fit.logistic else score)
    return out


def fit_logistic(span: Span, y: Floats) -> Linear:
    """Penalised logistic regression; the penalty is chosen by approximate leave-one-out log loss.

    Args:
        span: of the n labelled rows, a row's squared norm about 1.
        y: (n,) 0 or 1, both present, or chances between them, not all alike.
    Returns: an uncalibrated score (log-odds), with approximate leave-one-out log-odds of the labelled rows.
    Source: Rad & Maleki (2020) for the leave-one-out approximation.
    """
    x = np.concatenate([np.ones((len(y), 1)), span.inside], axis=1)
    share = min(max(float(y.mean()), 1e-6), 1 - 1e-6)
    b = np.zeros(x.shape[1])
    b[0] = np.log(share / (1 - share))
    ridge = np.full(x.shape[1], 1.0)
    ridge[0] = 1e-6
    best: tuple[float, Floats, Floats] | None = None
    for penalty in PENALTIES:
        diagonal = penalty * ridge
        for _ in range(NEWTON_STEPS):
            p = sigmoid(x @ b)
            w = np.maximum(p * (1 - p), 1e-9)
            hessian = (x * w[:, None]).T @ x
            hessian.flat[:: len(b) + 1] += diagonal
            step = np.linalg.solve(hessian, x.T @ (y - p) - diagonal * b)
            largest = float(np.abs(step).max())
            b = b + step * min(1.0, 8.0 / max(largest, 1e-12))
            if largest < 1e-4:
                break
        logit = x @ b
        p = sigmoid(logit)
        w = np.maximum(p * (1 - p), 1e-9)
        hessian = (x * w[:, None]).T @ x
        hessian.flat[:: len(b) + 1] += diagonal
        h = np.einsum("ij,ij->i", x, np.linalg.solve(hessian, x.T).T)
        loo = logit + (p - y) * h / np.maximum(1 - w * h, 0.05)
        loss = float((np.logaddexp(0.0, loo) - y * loo).mean())
        if best is None or loss < best[0]:
            best = loss, b.copy(), loo
    assert best is not None
    return Linear(span.weights(best[1][1:]), float(best[1][0]), True, best[2])


def calibrate(fit: Linear, y: Floats, design: Floats | None = None) -> Linear:
    """Platt's scaling of the leave-one-out log-odds, with pseudo-count targets and design weights of at most 8 times their mean.

    Args:
        fit: logistic, with leave-one-out log-odds of the labelled rows.
        y: (n,) 0 or 1, or chances between them.
        design: (n,) inverse chances of being drawn, up to a factor.
    Source: Platt (1999).
    """
    ones = float(y.sum())
    zeros = len(y) - ones
    target = y * (ones + 1) / (ones + 2) + (1 - y) / (zeros + 2)
    weight = np.ones(len(y)) if design is None else np.minimum(design / design.mean(), 8.0)
    a, c = 1.0, 0.0
    for _ in range(30):
        p = sigmoid(a * fit.loo + c)
        slope_weight = weight * np.maximum(p * (1 - p), 1e-9)
        g = np.array([float((weight * (target - p) * fit.loo).sum()), float((weight * (target - p)).sum())])
        haa, hac, hcc = (
            float((slope_weight * fit.loo**2).sum()) + 1e-6,
            float((slope_weight * fit.loo).sum()),
            float(slope_weight.sum()) + 1e-6,
        )
        determinant = haa * hcc - hac * hac
        if determinant <= 1e-12:
            break
        da, dc = (hcc * g[0] - hac * g[1]) / determinant, (haa * g[1] - hac * g[0]) / determinant
        scale = min(1.0, 4.0 / max(abs(da), abs(dc), 1e-12))
        a, c = a + scale * da, c + scale * dc
        if max(abs(da), abs(dc)) < 1e-6:
            break
    if a <= 0:
        share = float((weight * y).sum() / weight.sum())
        share = min(max(share, 0.5 / (len(y) + 1)), 1 - 0.5 / (len(y) + 1))
        return constant(float(np.log(share / (1 - share))), len(y), logistic=True)
    weights = None if fit.weights is None else fit.weights * np.float32(a)
    return Linear(weights, a * fit.constant + c, True, a * fit.loo + c)


def constant(score: float, n: int, *, logistic: bool) -> Linear:
    """The same score for every row.

    Args:
        score: of every row: log-odds where `logistic`, else the expected answer.
        n: labelled rows.
        logistic: whether the score is a log-odds.
    """
    return Linear(None, score, logistic, np.full(n, score))


def probability(features: Matrix, y: Floats, design: Floats | None = None, directions: int = DIRECTIONS) -> Linear:
    """The calibrated surrogate of a 0/1 answer, or of a chance; where all labels agree, their share.

    Args:
        features: (n, d) float32, the labelled rows.
        y: (n,) 0 or 1, or between them.
        design: (n,) inverse chances of being drawn, up to a factor.
        directions: of the rows' span that are kept.
    """
    n = len(y)
    if n == 0:
        return constant(0.0, 0, logistic=True)
    if float(y.min()) == float(y.max()) or features.shape[1] == 0:
        weight = np.ones(n) if design is None else design
        share = min(max(float((weight * y).sum() / weight.sum()), 1e-9), 1 - 1e-9)
        return constant(float(np.log(share / (1 - share))), n, logistic=True)
    with one_thread():
        return calibrate(fit_logistic(Span.of(features, directions), y), y, design)


def fit_ridge(
    span: Span, y: Floats, penalties: tuple[float, ...] = RIDGE_PENALTIES, weights: Floats | None = None
) -> Linear:
    """Ridge regression; the penalty is chosen by exact leave-one-out squared error.

    Args:
        span: of the n labelled rows.
        y: (n,) any numbers.
        penalties: to choose from.
        weights: (n,) of the rows, their mean 1; None: all alike.
    Source: Golub, Heath & Wahba (1979).
    """
    weight = np.ones(len(y)) if weights is None else weights
    middle = float((weight * y).sum() / weight.sum())
    offset = (weight[:, None] * span.inside).sum(axis=0) / weight.sum()
    root = np.sqrt(weight)
    x, target = (span.inside - offset) * root[:, None], root * (y - middle)
    values, vectors = np.linalg.eigh(x.T @ x)
    values = np.maximum(values, 0.0)
    turned = x @ vectors
    right = turned.T @ target
    best: tuple[float, Floats, Floats] | None = None
    for penalty in penalties:
        inverse = 1 / (values + penalty)
        fitted = turned @ (inverse * right)
        leverage = (turned * turned) @ inverse + weight / len(y)
        residual = (target - fitted) / np.maximum(1 - leverage, 0.05)
        error = float((residual**2).mean())
        if best is None or error < best[0]:
            best = error, vectors @ (inverse * right), y - residual / root
    assert best is not None
    return Linear(span.weights(best[1]), middle - float(offset @ best[1]), False, best[2])


def number(features: Matrix, y: Floats) -> Linear:
    """A surrogate of a number: ridge regression shrunk by λ = cov(loo, y)/var(loo) in [0, 1].

    Source: Angelopoulos, Duchi & Zrnic (2023), PPI++, for λ.
    """
    n = len(y)
    middle = float(y.mean()) if n else 0.0
    spread = float(y.var(ddof=1)) if n > 1 else 0.0
    flat = Linear(None, middle, False, np.full(n, middle), spread)
    if n < 3 or features.shape[1] == 0 or spread == 0.0:
        return flat
    with one_thread():
        fit = fit_ridge(Span.of(features, DIRECTIONS), y)
    scatter = float(fit.loo.var())
    slope = min(max(float(np.cov(fit.loo, y, ddof=0)[0, 1]) / scatter, 0.0), 1.0) if scatter > 0 else 0.0
    if slope == 0.0 or fit.weights is None:
        return flat
    shift = middle - slope * float(fit.loo.mean())
    loo = slope * fit.loo + shift
    noise = float(((y - loo) ** 2).mean())
    return Linear(fit.weights * np.float32(slope), slope * fit.constant + shift, False, loo, noise)
