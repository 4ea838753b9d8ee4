"""Intervals hold what they promise: exact ones at every share, the others against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from uql.sampling import intervals
from uql.sampling.uniform import UniformSampler, expansion_interval, ratio_of_samples


def probability(hits, n, marked, size):
    return math.comb(marked, hits) * math.comb(size - marked, n - hits) / math.comb(size, n)


@pytest.mark.parametrize(("size", "n"), [(300, 64), (300, 256), (2000, 128), (13000, 64)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_count_interval_covers_at_least_nominally_at_every_share(size, n, confidence):
    for share in (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        marked = max(1, round(share * size))
        covered = 0.0
        for hits in range(max(0, n - (size - marked)), min(n, marked) + 1):
            chance = probability(hits, n, marked, size)
            if chance > 1e-12:
                low, high = intervals.count(hits, n, size, confidence)
                covered += chance * (low <= marked <= high)
        assert covered >= confidence - 1e-9, (share, covered)


@given(size=st.integers(1, 60), data=st.data())
@settings(max_examples=200, deadline=None)
def test_the_hypergeometric_cdf_is_the_sum_of_its_terms(size, data):
    n, marked = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
    hits = data.draw(st.integers(0, n))
    exact = sum(probability(i, n, marked, size) for i in range(hits + 1) if i <= marked and n - i <= size - marked)
    assert intervals.hypergeometric_cdf(hits, n, marked, size) == pytest.approx(exact, abs=1e-9)


@given(size=st.integers(1, 3000), data=st.data(), confidence=st.sampled_from([0.8, 0.95, 0.99]))
@settings(max_examples=200, deadline=None)
def test_a_count_interval_lies_between_what_was_seen_and_what_may_be(size, data, confidence):
    n = data.draw(st.integers(1, size))
    hits = data.draw(st.integers(0, n))
    low, high = intervals.count(hits, n, size, confidence)
    assert hits <= low <= hits / n * size + 1e-9 <= high + 2e-9 <= size - (n - hits) + 3e-9
    if hits == 0:
        least = size * (1 - ((1 - confidence) / 2) ** (1 / n)) * (1 - n / size)
        assert high >= min(least, size - n) - 1e-9


def test_wilson_and_clopper_pearson_are_those_of_the_books():
    assert intervals.wilson(0.1, 100, 0.95) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert intervals.clopper_pearson(10, 100, 0.95) == pytest.approx((0.0490, 0.1762), abs=1e-4)
    assert intervals.clopper_pearson(0, 29, 0.95, two_sided=False)[1] == pytest.approx(1 - 0.05 ** (1 / 29))


def test_the_gamma_interval_of_unit_weights_is_the_exact_one_of_a_poisson_count():
    low, high = intervals.gamma_sum(5.0, 5.0, 1.0, 0.95)
    assert (low, high) == pytest.approx((1.6235, 11.6683), abs=1e-3)
    assert intervals.gamma_sum(0.0, 0.0, 1.0, 0.95) == pytest.approx((0.0, 3.6889), abs=1e-3)


def test_fieller_opens_where_the_denominator_may_be_zero():
    assert intervals.fieller(10, 2, 1, 4, 0, 0.95) == (-math.inf, math.inf)
    low, high = intervals.fieller(10, 5, 0.01, 0.0001, 0, 0.95)
    assert low < 2 < high and high - low == pytest.approx(2 * 1.96 * 0.02, rel=0.05)
    assert intervals.fieller(10, 5, 1, 0.25, 0.5, 0.95)[0] == pytest.approx(2.0, abs=1e-6)  # y = 2x, surely


@pytest.mark.parametrize("share", [0.005, 0.03, 0.3])
@pytest.mark.parametrize("tail", ["even", "heavy"])
def test_the_interval_of_a_sum_covers_rare_rows_and_heavy_tails(share, tail):
    rng = np.random.default_rng(1)
    value = rng.uniform(1, 10, 2000) if tail == "even" else np.exp(rng.normal(0, 1, 2000))
    y = value * (rng.random(2000) < share)
    held = 0
    for _ in range(400):
        drawn = rng.choice(y, 128, replace=False)
        low, high = expansion_interval(drawn, 2000, 0.95, (0.0, float(value.max())), value)
        held += low <= y.sum() <= high
    assert held / 400 >= 0.93 - 3 * math.sqrt(0.0475 / 400)


def test_a_sum_of_nothing_seen_is_open_where_no_bound_is_known():
    assert expansion_interval(np.zeros(50), 1000, 0.95) == (-math.inf, math.inf)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_the_interval_of_an_average_covers(share):
    rng = np.random.default_rng(2)
    x = (rng.random(3000) < share).astype(float)
    y = rng.gamma(2.0, 3.0, 3000) * x
    truth, held = y.sum() / x.sum(), 0
    for _ in range(400):
        rows = rng.choice(3000, 128, replace=False)
        _, low, high = ratio_of_samples(y[rows], x[rows], 3000, (0.0, 0.0), 0.95)
        held += low <= truth <= high
    assert held / 400 >= 0.93 - 3 * math.sqrt(0.0475 / 400)


def test_a_share_given_few_rows_has_the_exact_interval():
    y, x = np.array([1.0, 0, 0, 0]), np.array([1.0, 1, 1, 0])
    value, low, high = ratio_of_samples(y, x, 100, (0.0, 0.0), 0.95)
    assert (value, low, high) == pytest.approx((1 / 3, *intervals.clopper_pearson(1, 3, 0.95)))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("share", [1.0, 0.9, 0.2])
@pytest.mark.parametrize("budget", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("values", ["stars", "lognormal"])
def test_the_average_of_a_stored_column_over_few_rows_lies_in_its_interval(values, budget, share):
    rng = np.random.default_rng(3)
    stored = np.arange(50) % 7.0 if values == "stars" else rng.lognormal(0, 1.2, 50)  # rows drawn may be all 0 or 1
    passing = rng.random(50) < share
    truth, held = stored[passing].mean(), 0
    for seed in range(200):
        sampler = UniformSampler(50, budget, rng=np.random.default_rng(seed))
        rows = sampler.propose(budget)
        sampler.tell(rows, passing[rows].astype(float))
        x = passing[rows].astype(float)
        found = sampler.ratio(stored[rows] * x, x, weights=stored, counts=np.ones(50))
        held += found.low <= truth <= found.high
    assert held / 200 >= 0.93


def test_numbers_of_which_only_known_rows_tell_have_an_open_mean():
    """Of the random rows none counts: what these are is not known, and they are no shares."""
    sampler = UniformSampler(40, 3, rng=np.random.default_rng(0), known=(np.arange(12), np.ones(12)))
    rows = sampler.propose(3)
    sampler.tell(rows, np.zeros(3))
    counts = np.r_[np.ones(12), np.zeros(3)]
    found = sampler.ratio(np.r_[np.full(12, 4.5), np.zeros(3)], counts)
    assert found.value == 4.5 and found.low == -np.inf and found.high == np.inf
    share = sampler.ratio(np.r_[np.ones(6), np.zeros(9)], counts)
    assert share.value == 0.5 and 0 <= share.low < 0.5 < share.high <= 1
