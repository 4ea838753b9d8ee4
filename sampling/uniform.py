"""A uniform sample without replacement, with the expansion estimator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from uql.sampling import intervals
from uql.sampling.base import Bounds, Flags, Floats, Indices
from uql.sampling.sample_state import Draws, Three, Weights, is_binary, is_share_of

FEW = 20  # below this many rows that add to a sum, a t interval is too short


class UniformSampler(Draws):
    """Every free row has the same chance. Unbiased; counts within a group of known size are post-stratified.

    Source: Cochran, *Sampling Techniques*, 3rd ed. (1977), chapters 2 and 5A.
    >>> sampler = UniformSampler(1000, 100, rng=np.random.default_rng(0))
    >>> rows = sampler.propose(100)
    >>> sampler.tell(rows, (rows < 300).astype(float))
    >>> found = sampler.estimate()
    >>> found.low <= 300 <= found.high
    True
    """

    method = "uniform"

    def __init__(self, n_rows: int, budget: int, **kept: Any) -> None:
        super().__init__(n_rows, budget, **kept)
        self._order = self.rng.permutation(np.flatnonzero(~self._certain))

    def _draw(self, k: int) -> Indices:
        rows, self._order = self._order[:k], self._order[k:]
        return rows

    def _parts(self, domain: int | None) -> tuple[Flags, Flags, int]:
        """Which told rows are certain and which are random draws, and the number of rows these stand for."""
        inside, population = self._told_in(domain)
        certain = self._certain[self.labelled] & inside
        return certain, inside & ~certain, population - int(certain.sum())

    def _total(self, y: Floats, weights: Floats | None, domain: int | None, bounds: Bounds) -> Three:
        certain, random, size = self._parts(domain)
        base, sample, weights = float(y[certain].sum()), y[random], self._free(weights, domain)
        n = len(sample)
        if bounds is None and weights is not None:
            bounds = float(weights.min(initial=0.0)), float(weights.max(initial=0.0))
        if n == 0:
            least, most = (
                bounds
                if bounds is not None
                else ((0.0, 1.0) if weights is None and len(y) and is_binary(y) else (-math.inf, math.inf))
            )
            return math.nan, base + size * least, base + size * most
        value = base + size * float(sample.mean())
        if is_binary(sample) and bounds in (None, (0.0, 1.0)) and (weights is None) and is_binary(y[random | certain]):
            low, high = intervals.count(int(sample.sum()), n, size, self.level)
        else:
            low, high = expansion_interval(sample, size, self.level, bounds, weights)
        return value, base + low, base + high

    def _ratio(self, y: Floats, x: Floats, row_weights: Weights, domain: int | None) -> Three:
        certain, random, size = self._parts(domain)
        base = float(y[certain].sum()), float(x[certain].sum())
        stored, counts = (self._free(part, domain) for part in row_weights)
        if stored is not None and counts is not None:  # the others, as rows without a value, add to neither sum
            stored = stored[counts != 0]
        share = is_share_of(y[certain | random], x[certain | random], stored)
        return ratio_of_samples(y[random], x[random], size, base, self.level, stored, share)

    def _free(self, stored: Floats | None, domain: int | None) -> Floats | None:
        """Of a stored value of each row, those of the rows that the random draws stand for."""
        return None if stored is None else stored[self._rows_in(domain) & ~self._certain]


def expansion_interval(
    sample: Floats, size: int, confidence: float, bounds: Bounds = None, weights: Floats | None = None
) -> tuple[float, float]:
    """The interval for the sum over `size` rows of which `sample` (n ≥ 1) is a random sample.

    Student's t; where few rows add to the sum, Fay and Feuer's gamma interval for what is positive and for what is negative, with the
    spread reduced for the finite population. Where all are 0 and no bounds are known, nothing is known of one row's size, and the interval
    is open. With `weights` the spread is at least that of a truth independent of the weight: heavy tails that the sample missed.

    Args:
        sample: (n,) the values of the random rows, n ≥ 1.
        size: rows that they stand for, themselves included.
        confidence: of the interval, in (0, 1).
        bounds: the least and the greatest value of a row, where known.
        weights: (N,) the value of each row if it counts, where stored.
    """
    n = len(sample)
    if n >= size:
        return float(sample.sum()), float(sample.sum())
    many = int((sample != 0).sum())
    if bounds is None and many == 0:
        return -math.inf, math.inf
    few = _few_add(sample, size, confidence, bounds) if many < FEW or n < 2 else (math.inf, -math.inf)
    if many < 2:
        return few
    variance = float(sample.var(ddof=1))
    if weights is not None:
        share = many / n
        variance = max(variance, share * float((weights**2).mean()) - (share * float(weights.mean())) ** 2)
    unit = size * math.sqrt(variance / n * (1 - n / size))
    least, most = _skew(sample, None if weights is not None else sample, sample != 0, n / size).quantiles(
        confidence, n - 1
    )
    middle = size * float(sample.mean())
    low, high = min(few[0], middle - most * unit), max(few[1], middle - least * unit)
    return (max(low, float(sample.sum())) if _never_negative(sample, bounds) else low), high


def _skew(parts: Floats, values: Floats | None, counted: Flags, fraction: float) -> intervals.Skew:
    """Of n draws that stand for equally many rows; the tails of shares and of stored values (None) are known."""
    tail = None if values is None or is_binary(values) else np.where(counted, values, np.nan)
    return intervals.Skew.of(parts, fraction, tail)


def _never_negative(sample: Floats, bounds: Bounds) -> bool:
    return bool(sample.min() >= 0) and (bounds is None or bounds[0] >= 0)


def _few_add(sample: Floats, size: int, confidence: float, bounds: Bounds) -> tuple[float, float]:
    """Fay and Feuer's interval for a sum to which few of the rows drawn add."""
    n, many = len(sample), int((sample != 0).sum())
    up, down = np.maximum(sample, 0.0), np.maximum(-sample, 0.0)
    least, most = bounds if bounds is not None else (float(sample.min()), float(sample.max()))
    both = least < 0 < most
    level = (1 + confidence) / 2 if both else confidence
    shrink = (1 - n / size) * (1 - many / n if many < n else 1.0)
    ends = []
    for part, largest in ((up, max(most, 0.0)), (down, max(-least, 0.0))):
        scaled = part * size / n
        if largest == 0:
            ends.append((0.0, 0.0))
            continue
        low, high = intervals.gamma_sum(
            float(scaled.sum()), float((scaled**2).sum()) * shrink, largest * size / n * shrink, level
        )
        ends.append((max(low, float(part.sum())), min(high, float(part.sum()) + largest * (size - n))))
    return ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]


def ratio_of_samples(
    y: Floats,
    x: Floats,
    size: int,
    base: tuple[float, float],
    confidence: float,
    stored: Floats | None = None,
    share: bool | None = None,
) -> Three:
    """(base_y + size·mean(y)) / (base_x + size·mean(x)) with its interval, for n random rows that stand for `size` rows.

    Shares (0/1 values, y within x) have the exact binomial interval given the number of rows with x = 1; others
    Fieller's, with as many degrees of freedom as rows that count, less one. The spread of stored values is at least that of
    rows that count whatever their value is: heavy tails that the sample missed.

    Args:
        y, x: (n,) the values of the random rows.
        size: rows that they stand for, themselves included.
        base: the sums of y and x over the rows known for certain.
        confidence: of the interval, in (0, 1).
        stored: (N,) the value of every row, where only whether it counts is not known.
        share: is it a share, by the rows known for certain too? None: they are not looked at.
    """
    n = len(y)
    total_y = base[0] + (size * float(y.mean()) if n else 0.0)
    total_x = base[1] + (size * float(x.mean()) if n else 0.0)
    if total_x == 0 or (n == 0 and size > 0):
        return (total_y / total_x if total_x else math.nan), -math.inf, math.inf
    ratio = total_y / total_x
    counts = (x != 0) | (y != 0)
    k = int(counts.sum())
    random_x = total_x - base[1]
    if is_share_of(y, x, stored) if share is None else share:
        if k == 0:  # those known before count, of the others none was drawn
            more = intervals.nothing_found(n, size, confidence)
            return ratio, base[0] / (base[1] + more), (base[0] + more) / (base[1] + more)
        low, high = intervals.clopper_pearson(int(y.sum()), k, confidence)
        return ratio, (base[0] + low * random_x) / total_x, (base[0] + high * random_x) / total_x
    if k < 2:
        return ratio, -math.inf, math.inf
    cov = np.cov(y, x)
    if stored is not None and is_binary(x):
        spread = cov[0, 0] - 2 * ratio * cov[0, 1] + ratio**2 * cov[1, 1]
        cov[0, 0] += max(float(x.mean() * ((stored - ratio) ** 2).mean()) - spread, 0.0)
    cov *= size * size / n * max(0.0, 1 - n / size)
    skew = _skew((y - ratio * x)[counts], None if stored is not None else y[counts], x[counts] != 0, n / size)
    low, high = intervals.fieller(total_y, total_x, cov[0, 0], cov[1, 1], cov[0, 1], confidence, k - 1, skew)
    return ratio, low, high
