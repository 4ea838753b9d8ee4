"""An interval of width zero says that a number is known: only where it is."""

import math

import numpy as np
import pytest
from sampler_contract import ask_all

from uql.sampling.distinct_rows import Units, UnitSample
from uql.sampling.groupby import GroupBySampler
from uql.sampling.methods import AGGREGATE

VALUES = {
    "all alike": lambda rng, n: np.full(n, 7.3),
    "all 0": lambda rng, n: np.zeros(n),
    "0 and 1": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "two values": lambda rng, n: rng.choice([2.0, 5.0], n),
    "one large": lambda rng, n: np.where(np.arange(n) == rng.integers(n), 1e6, 1.0),
    "skewed": lambda rng, n: np.exp(1.2 * rng.normal(size=n)),
    "both signs": lambda rng, n: rng.normal(size=n),
    "negative": lambda rng, n: -rng.gamma(2.0, 1.0, n),
}


def sure(found, certain=None):
    """Is the estimate exact, open, or wider than a point? `certain`: what it is bound to be, where that is known."""
    if found.exact or found.low is None or found.low == -math.inf or found.high == math.inf:
        return True
    if certain is not None and (found.low, found.high) == pytest.approx((certain, certain)):
        return True
    return found.high - found.low > 1e-9 * max(abs(found.high), 1e-9)


def drawn(seed, method):
    """A sampler over a small random table that was told some rows, with the table."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60)) + (50 if method == "groups" else 0)
    features = rng.normal(size=(n, 3)).astype(np.float32)
    truth = (rng.random(n) < rng.choice([0.05, 0.3, 0.9, 1.0])).astype(float)
    value = VALUES[rng.choice(list(VALUES))](rng, n)
    groups = rng.integers(0, 3, n)
    known_rows = rng.permutation(n)[: int(rng.choice([0, 0, 3]))]
    known = (known_rows, truth[known_rows]) if len(known_rows) else None
    budget = int(rng.integers(1, n + 1))
    kept = {"rng": rng, "features": features, "groups": groups}
    if method == "units":
        of = rng.integers(0, max(n // 2, 1), n)
        of = np.unique(of, return_inverse=True)[1]
        truth, value = truth[np.unique(of, return_index=True)[1]][of], value
        groups = groups[np.unique(of, return_index=True)[1]][of]

        def make(m, **keywords):
            return AGGREGATE["asd"](m, min(budget, m), rng=rng, features=features[:m], **keywords)

        sampler = UnitSample(Units(of), make, groups=groups)
    elif method == "groups":
        sampler = GroupBySampler(n, max(24, budget), **kept)
    else:
        size = np.abs(value) if rng.random() < 0.5 else None
        sampler = AGGREGATE[method](n, budget, size=size, known=known, **kept)
    lost = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.0, 0.2])) if method != "units" else None
    ask_all(sampler, truth, int(rng.choice([1, 4, 64])), lost)
    return rng, truth, value, groups, sampler


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize("method", [*AGGREGATE, "groups", "units"])
@pytest.mark.parametrize("first", range(0, 160, 40))
def test_what_is_not_exact_has_a_width_or_is_open(method, first):
    for seed in range(first, first + 40):
        rng, truth, value, groups, sampler = drawn(seed, method)
        rows, y = sampler.labelled, sampler.answers
        y = np.where(y < 0, 0.0, np.minimum(y, 1.0))
        other = (rng.random(len(truth)) < 0.5).astype(float)[rows]
        for domain in (None, 0):
            inside = np.ones(len(truth), bool) if domain is None else groups == domain
            held = inside[rows] & (y == 1.0)
            stored = value[inside]
            alike = float(stored[0]) if len(stored) and np.ptp(stored) == 0 else None
            rest = inside.copy()
            rest[rows[~np.isnan(y)]] = False
            nothing = None if value[rest].any() else float(np.nansum((value[rows] * y)[inside[rows]]))
            numbers = {
                "count": (sampler.total(y, (0.0, 1.0), domain=domain), None if inside.any() else 0.0),
                "sum of stored": (sampler.total(value[rows] * y, weights=value, domain=domain), nothing),
                "mean of stored": (sampler.ratio(value[rows] * y, y, weights=value, domain=domain), alike),
                "ratio of counts": (sampler.ratio(y, other, domain=domain), None),
                "share": (sampler.ratio(y * other, y, domain=domain), None),
            }
            if not np.isin(value[rows[held]], (0.0, 1.0)).all():  # the engine moves such numbers away from 0 and 1
                numbers["sum"] = sampler.total(value[rows] * y, domain=domain), None
                numbers["mean"] = sampler.ratio(value[rows] * y, y, domain=domain), None
            for name, (found, certain) in numbers.items():
                assert sure(found, certain), f"{name} {domain} of seed {seed}: {found}"
                if found.value is not None and not math.isinf(found.low) and not found.unknown:
                    small = 1e-9 * abs(found.value)
                    assert found.low - small <= found.value <= found.high + small, (
                        f"{name} {domain} of seed {seed}: {found}"
                    )


@pytest.mark.parametrize("method", AGGREGATE)
def test_one_row_seen_says_nothing_of_numbers(method):
    features = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    sampler = AGGREGATE[method](32, 1, rng=np.random.default_rng(0), features=features)
    ask_all(sampler, np.ones(32))
    y = np.full(1, 287.35)
    for found in (sampler.total(y), sampler.ratio(y, np.ones(1))):
        assert found.low == -math.inf and found.high == math.inf and not found.exact
