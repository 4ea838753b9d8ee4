"""Confidence intervals for counts, sums and ratios: plain numbers in, (low, high) out; levels are probabilities, not percentages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from uql.sampling.base import Floats

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


@dataclass(frozen=True, slots=True)
class Skew:
    """How far an estimate leans to one side, in units of its standard error: all 0 where it is symmetric.

    Attributes:
        value: the third cumulant of the estimate.
        both: the covariance of the estimate and of the variance that is estimated with it. A sample without the few
            large values has a small sum and a small variance, so its interval is short just where it lies too low.
        unseen: what one more draw would add, as far out as the farthest on the leaning side, less the farthest on the other.
        tail: what both cumulants lack of those of gamma distributed values, where no value is negative; below 0 where
            none is positive. It counts only towards the long tail.
    """

    value: float = 0.0
    both: float = 0.0
    unseen: float = 0.0
    tail: float = 0.0

    @classmethod
    def of(
        cls, parts: Floats, fractions: Floats | float = 0.0, values: Floats | None = None, stands: Floats | float = 1.0
    ) -> Skew:
        """From what each draw adds to the estimate.

        Args:
            parts: (n,) what each draw stands for times how far its value is from what was expected of it.
            fractions: (n,), or one number: the share of the rows that a draw stands for that is drawn, in [0, 1].
            values: (n,) the values of the draws that count, NaN of the others; None: shares, whose tails end at 1.
            stands: (n,), or one number: what each draw stands for.
        """
        z = parts - parts.mean() if len(parts) else parts
        left = np.broadcast_to(1.0 - np.asarray(fractions, np.float64), z.shape)
        spread, n = float((left * z**2).sum()), len(z)
        if n < 3 or spread <= 0:
            return cls()
        unit = spread**1.5 * (n - 2) / n
        value = float((left * (2 * left - 1) * z**3).sum()) / unit
        both = float((left**2 * z**3).sum()) / unit
        ends = left * z
        beyond = float(ends.max() + ends.min()) / math.sqrt(spread)
        tail = 0.0 if values is None else _lacking(parts, left, values, np.broadcast_to(stands, z.shape)) / unit
        return cls(value, both, max(beyond, 0.0) if both > 0 else min(beyond, 0.0), tail)

    def quantiles(self, confidence: float, freedom: float) -> Interval:
        """Between which values (estimate − truth) / standard error lies; −t and t of Student where nothing leans.

        The cubic transformation of a studentized mean, with Student's quantile in place of the normal one. A sample
        says too little of a long tail, so towards it the interval is made with one more draw, `unseen`, and with no
        shorter `tail` than that of a gamma distribution.
        Source: Hall (1992), Journal of the Royal Statistical Society B 54; for draws without replacement the first terms of Sugden, Smith &
        Jones (2000), where the two skews differ; gamma, and the draw more, as in Fay & Feuer (1997).
        >>> [round(t, 2) for t in Skew(0.3, 0.3).quantiles(0.95, 30)]
        [-2.81, 1.69]
        """
        t = t_quantile(confidence, freedom)
        if math.isinf(t):
            return -t, t
        low = _far(t, self.value, self.both, max(self.unseen, 0.0), max(self.tail, 0.0))
        return low, -_far(t, -self.value, -self.both, max(-self.unseen, 0.0), max(-self.tail, 0.0))


def _far(t: float, value: float, both: float, unseen: float, tail: float) -> float:
    """The lower quantile, that of the end on the side to which `unseen` and `tail` (at least 0) point."""
    skews = value + tail, both + tail
    grown = math.sqrt(1 + unseen**2)
    more = [max(skew, (skew + unseen**3) / grown**3) for skew in skews]
    return min(_studentized(-t, *skews), _studentized(-t, *more) * grown - unseen)


def _lacking(parts: Floats, weights: Floats, values: Floats, stands: Floats) -> float:
    """By how much the third moments of the draws that count fall short of those of gamma distributions; 0 for both signs.

    Of the gamma distribution that begins at 0, and of the one that begins anywhere (Pearson's type III), whose skewness
    the sample's underestimates: both are lower bounds, the second also for values that begin far from 0.
    Source: Bobée & Robitaille (1975), Water Resources Research 11, for the correction.
    """
    counted = ~np.isnan(values)
    v, w, n = values[counted], stands[counted], int(counted.sum())
    if n < 3 or (v.min() < 0 < v.max()) or not v.any():
        return 0.0
    off = parts[counted] / w
    off = off - off.mean()
    mean, second, third = float(v.mean()), float((off**2).mean()), float((off**3).mean())
    if second <= 0:
        return 0.0
    correction = 1 + 6.51 / n + 20.20 / n**2 + (1.48 / n + 6.77 / n**2) * third**2 / second**3
    bounds = 2 * second**2 / mean - third, third * correction - third
    lacking = max(*bounds, 0.0) if mean > 0 else min(*bounds, 0.0)
    return lacking * float((weights[counted] ** 2 * w**3).sum())


def _studentized(t: float, value: float, both: float) -> float:
    """The quantile of a studentized estimate whose transformation has the quantile t. A sample leans by 1 at most."""
    value, both = min(max(value, -1.0), 1.0), min(max(both, -1.0), 1.0)
    slope = (3 * both - value) / 6
    t -= value / 6
    return t if abs(slope * t) < 1e-6 or math.isinf(t) else float(np.cbrt(1 + 3 * slope * t) - 1) / slope


SYMMETRIC = Skew()


def wilson(share: float, n: float, confidence: float) -> Interval:
    """Wilson's interval for a share in [0, 1] seen in n (possibly effective, fractional) draws.

    Args:
        share: in [0, 1].
        n: draws, at least 0; an effective number of them may be fractional.
        confidence: of the interval, in (0, 1).
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
    Source: after Fay & Feuer (1997) and Tiwari, Clegg & Zou (2006), with beta for gamma distributions: the whole is known.
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

    Args:
        hits: marked draws.
        n: draws.
        confidence: of the interval, or of each end where it is one-sided.
        two_sided: whether both ends hold together.
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
    """P(X ≤ hits) for the number X of marked rows among n drawn without replacement from `size` rows, `marked` of them marked.

    Args:
        hits: marked rows drawn, at most.
        n: rows drawn.
        marked: marked rows in all.
        size: rows in all.
    """
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
    """The largest number of marked rows under which `hits` or fewer among n drawn have a probability above `tail`.

    Args:
        hits: marked rows drawn.
        n: rows drawn.
        size: rows in all.
        tail: probability in (0, 1) of one side.
    """
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

    Both ends invert the hypergeometric test, so coverage is at least nominal at every share (Wilson's interval falls to .88 at one expected
    hit in eight samples). Where nothing was found the upper end is at least size(1 − (δ/2)^(1/n))(1 − n/size).

    Args:
        hits: marked rows drawn.
        n: rows drawn.
        size: rows in all.
        confidence: of the interval, in (0, 1).
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
    """An upper bound for the number of marked rows when none of n random ones is marked.

    Args:
        n: rows drawn, at least 1.
        size: rows in all.
        confidence: of the two-sided interval of which this is the upper end.
    """
    bound = size * (1 - ((1 - confidence) / 2) ** (1 / n)) * (1 - n / size)
    return float(bound) * (1 + 1e-13)  # never below the exact bound by rounding


def unseen_share(draws: NDArray[np.float64], hits: int, groups: int, confidence: float) -> float:
    """The share of the rows from which on a group is found: with this confidence no larger one is missing.

    A group of m rows is drawn `hits` times or less with at most the chance of a Poisson variable whose mean is the sum
    of the expected draws of its rows; at worst these are the m rows that are drawn least. Any group may be the one:
    those found and one more, and no more than have room in the table (Bonferroni).

    Args:
        draws: (N,) how often each row is expected to be among the random draws; inf where it was asked for sure.
        hits: random draws that no group has, each of which may be of one that is missing.
        groups: how many were found.
        confidence: of the statement about all groups.
    Returns: a share in (0, 1]; 1 where any group may be missing.
    >>> round(unseen_share(np.full(1000, 0.1), 0, 4, 0.95), 3)  # 100 draws, no choice among groups: 0.03
    0.047
    """
    from scipy.special import gammaincc

    n = len(draws)
    mean = np.cumsum(np.sort(draws))
    rivals = np.minimum(groups + 1, n / np.arange(1, n + 1))
    sure = rivals * gammaincc(hits + 1, mean) <= 1 - confidence
    return float(np.argmax(sure) + 1) / n if sure.any() else 1.0


def gamma_sum(total: float, squares: float, largest: float, confidence: float) -> Interval:
    """An interval for the mean of a weighted Poisson sum Σ w_i X_i, w ≥ 0, made for few events.

    Args:
        total: Σ w_i over the events seen, at least 0.
        squares: Σ w_i² over the events seen.
        largest: the largest weight an unseen event could have.
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
    y: float,
    x: float,
    var_y: float,
    var_x: float,
    cov: float,
    confidence: float,
    freedom: float = math.inf,
    skew: Skew = SYMMETRIC,
) -> Interval:
    """The interval of y/x from estimates with (co)variances; (−inf, inf) where the interval of x touches 0.

    The place of the interval uses the normal quantile, its half-width Student's for `freedom`: the ratio's spread is
    known from fewer rows than the denominator's.

    Args:
        y, x: estimates of the numerator and the denominator.
        var_y, var_x, cov: their variances and covariance.
        confidence: of the interval, in (0, 1).
        freedom: degrees of freedom of the spread of the ratio.
        skew: of the ratio.
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
    low, high = skew.quantiles(confidence, freedom)
    unit = math.sqrt(max(inner, 0.0)) / x / (1 - g)
    ends = sorted((centre - high * unit, centre - low * unit))
    if math.isnan(ends[0]):  # no freedom and no spread seen
        return -math.inf, math.inf
    return ends[0], ends[1]
