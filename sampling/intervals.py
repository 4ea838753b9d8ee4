"""Confidence intervals for counts, sums and ratios: plain numbers in, (low, high) out; levels are probabilities, not
percentages."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

Interval = tuple[float, float]


def normal_quantile(confidence: float) -> float:
    """The two-sided standard normal quantile: 1.96 at 0.95."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def t_quantile(confidence: float, freedom: float) -> float:
    """Student's two-sided quantile for `freedom` > 0 degrees of freedom; inf where there are none."""
    if freedom <= 0:
        return math.inf
    if freedom > 1e5:
        return normal_quantile(confidence)
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + confidence / 2))


def wilson(share: float, n: float, confidence: float) -> Interval:
    """Wilson's interval for a share in [0, 1] seen in n (possibly effective, fractional) draws.

    Source: Wilson (1927); with an effective n, Korn & Graubard (1998).
    >>> low, high = wilson(0.0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.037)
    """
    if n <= 0:
        return 0.0, 1.0
    z2 = normal_quantile(confidence) ** 2
    share = min(max(share, 0.0), 1.0)
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = 0.0 if share == 0.0 else max(0.0, centre - half)
    high = 1.0 if share == 1.0 else min(1.0, centre + half)
    return low, high


def beta_of_moments(mean: float, variance: float, event: float, confidence: float) -> Interval:
    """An interval for a share with an estimate of known mean and variance: skewed where few rows count.

    The low end is a quantile of the beta distribution with these moments; the high end of the one to which half an
    event is added that was not seen, as Jeffreys' interval adds half a row. So a share near 0 has a high end of a few
    events, however large the variance that was estimated from as few.

    Args:
        mean: the estimate, in [0, 1/2]; shares above are those of the complement.
        variance: of the estimate.
        event: what one more row that counts, drawn where such a row is likeliest, would add to the estimate.
        confidence: of the interval.
    Source: after Fay & Feuer (1997) and Tiwari, Clegg & Zou (2006), with beta for gamma distributions: the whole is
    known.
    """
    tail = (1 - confidence) / 2
    low = _beta_quantile(mean, variance, tail)
    high = _beta_quantile(mean + event / 2, variance + event * event / 2, 1 - tail)
    return min(low, mean), max(high, mean)


def _beta_quantile(mean: float, variance: float, tail: float) -> float:
    """The quantile of the beta distribution with that mean and variance; the mean itself where it does not vary."""
    if mean <= 0.0 or mean >= 1.0 or variance <= 0.0:
        return min(max(mean, 0.0), 1.0)
    from scipy.special import betaincinv

    size = max(mean * (1 - mean) / variance - 1, 1e-3)
    return float(betaincinv(mean * size, (1 - mean) * size, tail))


def clopper_pearson(hits: int, n: int, confidence: float, *, two_sided: bool = True) -> Interval:
    """The exact binomial interval for a share; one-sided, each end alone holds with `confidence`.

    Source: Clopper & Pearson (1934).
    """
    if n <= 0:
        return 0.0, 1.0
    from scipy.special import betaincinv

    tail = (1 - confidence) / (2 if two_sided else 1)
    low = 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits >= n else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def hypergeometric_cdf(hits: int, n: int, marked: int, size: int) -> float:
    """P(X ≤ hits) for the number X of marked rows among n drawn without replacement from `size` rows, `marked` of them
    marked."""
    least, most = max(0, n - (size - marked)), min(n, marked)
    if hits < least:
        return 0.0
    if hits >= most:
        return 1.0
    lg = math.lgamma
    first = (
        lg(marked + 1) - lg(least + 1) - lg(marked - least + 1)
        + lg(size - marked + 1) - lg(n - least + 1) - lg(size - marked - n + least + 1)
        - lg(size + 1) + lg(n + 1) + lg(size - n + 1)
    )  # fmt: skip
    i = np.arange(least, hits, dtype=np.float64)
    steps = np.log(marked - i) + np.log(n - i) - np.log(i + 1) - np.log(size - marked - n + i + 1)
    logs = first + np.concatenate([[0.0], np.cumsum(steps)])
    top = float(logs.max())
    return min(1.0, math.exp(top) * float(np.exp(logs - top).sum()))


def most_marked(hits: int, n: int, size: int, tail: float) -> int:
    """The largest number of marked rows under which `hits` or fewer among n drawn have a probability above `tail`."""
    low, high = hits, size - (n - hits)  # low always fits: with `hits` marked rows X ≤ hits is sure
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeometric_cdf(hits, n, middle, size) > tail:
            low = middle
        else:
            high = middle - 1
    return low


def count(hits: int, n: int, size: int, confidence: float) -> Interval:
    """The exact interval for the number of marked rows among `size`, `hits` of them in a random n without replacement.

    Both ends invert the hypergeometric test, so coverage is at least nominal at every share (Wilson's interval falls
    to .88 at one
    expected hit in eight samples). Where nothing was found the upper end is at least size(1 − (δ/2)^(1/n))(1 − n/size).
    """
    if n <= 0:
        return 0.0, float(size)
    tail = (1 - confidence) / 2
    high = float(most_marked(hits, n, size, tail))
    low = float(size - most_marked(n - hits, n, size, tail))
    if hits == 0:
        high = max(high, min(nothing_found(n, size, confidence), float(size - n)))
    if hits == n:
        low = min(low, max(size - nothing_found(n, size, confidence), float(n)))
    expected = hits * size / n  # a short test may leave the estimate itself out
    return min(low, expected), max(high, expected)


def nothing_found(n: int, size: int, confidence: float) -> float:
    """An upper bound for the number of marked rows when none of n random ones is marked."""
    bound = size * (1 - ((1 - confidence) / 2) ** (1 / n)) * (1 - n / size)
    return float(bound) * (1 + 1e-13)  # never below the exact bound by rounding


def gamma_sum(total: float, squares: float, largest: float, confidence: float) -> Interval:
    """An interval for the mean of a weighted Poisson sum Σ w_i X_i, w ≥ 0, made for few events.

    Args:
        total: Σ w_i over the events seen, at least 0.
        squares: Σ w_i² over the events seen.
        largest: the largest weight an unseen event could have.
        confidence: of the interval.
    Source: Fay & Feuer (1997), Statistics in Medicine 16.
    """
    from scipy.special import gammaincinv

    tail = (1 - confidence) / 2
    low, high = 0.0, 0.0
    if total > 0 and squares > 0:
        low = squares / total * float(gammaincinv(total * total / squares, tail))
    total, squares = total + largest, squares + largest * largest
    if total > 0:
        high = squares / total * float(gammaincinv(total * total / squares, 1 - tail))
    return low, high


def fieller(
    y: float, x: float, var_y: float, var_x: float, cov: float, confidence: float, freedom: float = math.inf
) -> Interval:
    """The interval of y/x from estimates with (co)variances; (−inf, inf) where the interval of x touches 0.

    The place of the interval uses the normal quantile, its half-width Student's for `freedom`: the ratio's spread is
    known from
    fewer rows than the denominator's.
    Source: Fieller (1954).
    """
    z = normal_quantile(confidence)
    if x == 0 or z * z * var_x >= x * x:
        return -math.inf, math.inf
    g = z * z * var_x / (x * x)
    ratio = y / x
    centre = (ratio - g * cov / var_x) / (1 - g) if var_x > 0 else ratio
    inner = var_y - 2 * ratio * cov + ratio * ratio * var_x
    if var_x > 0:
        inner -= g * (var_y - cov * cov / var_x)
    half = t_quantile(confidence, freedom) / abs(x) / (1 - g) * math.sqrt(max(inner, 0.0))
    if math.isnan(half):  # no freedom and no spread seen
        return -math.inf, math.inf
    return centre - half, centre + half
