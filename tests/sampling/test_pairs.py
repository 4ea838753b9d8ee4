"""A pool of pairs: what its sample says holds of all pairs that it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from uql.sampling.pairs import PairSampler

NEAR, FAR = 4_000, 3_000  # pairs of the pool
SEEDS = 300


def _pool(
    shares: tuple[float, ...], others: float, total: int, seed: int
) -> tuple[PairSampler, np.ndarray, float, np.random.Generator]:
    """A sampler of 128 draws, the truth of its pool, and the number of pairs that match of all."""
    rng = np.random.default_rng(seed)
    strata = np.concatenate([np.repeat(np.arange(len(shares)), NEAR // len(shares)), np.full(FAR, len(shares))])
    sizes = np.array([NEAR // len(shares)] * len(shares) + [total - NEAR])
    matching = int(rng.binomial(total - NEAR, others))
    truth = np.concatenate([(rng.random(NEAR) < np.repeat(shares, NEAR // len(shares))), np.zeros(FAR)]).astype(float)
    truth[NEAR : NEAR + rng.hypergeometric(matching, total - NEAR - matching, FAR)] = 1.0
    truth[NEAR:] = rng.permutation(truth[NEAR:])
    sampler = PairSampler(NEAR + FAR, 128, rng=rng, strata=strata, sizes=sizes)
    return sampler, truth, float(truth[:NEAR].sum()) + matching, rng


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shares", "others", "total"),
    [
        ((0.5, 0.1, 0.02, 0.01), 1e-6, 10**8),
        ((0.9, 0.5, 0.3, 0.1), 0.001, 10**8),
        ((0.9, 0.6, 0.5, 0.4), 0.3, 10**6),
        ((0.9, 0.6, 0.5, 0.4), 0.05, 20_000),
    ],
)
def test_the_interval_of_a_count_holds_as_often_as_it_says(
    shares: tuple[float, ...], others: float, total: int
) -> None:
    held, values, truths = 0, [], []
    for seed in range(SEEDS):
        sampler, truth, matching, _ = _pool(shares, others, total, seed)
        rows = sampler.propose(128)
        sampler.tell(rows, truth[rows])
        found = sampler.estimate()
        assert found.value is not None and found.low is not None and found.high is not None and not found.exact
        held += found.low <= matching <= found.high
        values.append(found.value)
        truths.append(matching)
    assert held >= 0.94 * SEEDS
    spread = 4 * np.std(np.array(values) - truths) / np.sqrt(SEEDS)
    assert abs(np.mean(values) - np.mean(truths)) <= spread


def test_a_sum_and_a_mean_hold_as_often_as_they_say() -> None:
    sums = means = 0
    for seed in range(SEEDS):
        sampler, truth, _, rng = _pool((0.9, 0.6, 0.5, 0.4), 0.3, 10**6, seed)
        weight = rng.uniform(1, 3, len(truth))
        rows = sampler.propose(128)
        sampler.tell(rows, truth[rows])
        y = truth * weight
        scale = np.array([1.0] * 4 + [(10**6 - NEAR) / FAR])[sampler._stratum]  # close to the truth: FAR is large
        total, mean = (
            sampler.total(y[rows], None, weights=weight),
            sampler.ratio(y[rows], truth[rows], weights=weight),
        )
        assert total.low is not None and total.high is not None and mean.low is not None and mean.high is not None
        sums += total.low <= (y * scale).sum() <= total.high
        means += mean.low <= (y * scale).sum() / (truth * scale).sum() <= mean.high
    assert sums >= 0.94 * SEEDS and means >= 0.94 * SEEDS


def test_a_pool_is_never_asked_whole_and_nothing_is_exact() -> None:
    sampler = PairSampler(10, 10, rng=np.random.default_rng(0), strata=np.repeat([0, 1], 5), sizes=np.array([5, 1000]))
    rows = sampler.propose(10)
    sampler.tell(rows, np.zeros(len(rows)))
    found = sampler.estimate()
    assert len(rows) == 9 and not found.exact and found.high is not None and found.high > 100


def test_groups_are_domains_whose_size_is_not_known() -> None:
    groups = np.arange(7_000) % 2
    sampler = PairSampler(
        7_000,
        128,
        rng=np.random.default_rng(0),
        strata=np.repeat([0, 1], [4_000, 3_000]),
        sizes=np.array([4_000, 10**6]),
        groups=groups,
    )
    rows = sampler.propose(128)
    sampler.tell(rows, np.ones(len(rows)))
    found = sampler.total(np.ones(len(rows)), (0.0, 1.0), domain=1)
    assert found.low is not None and found.high is not None and found.low <= 502_000 <= found.high
