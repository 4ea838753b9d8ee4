"""Counts by class, rows for the taxonomy, rare classes."""

import numpy as np
import pytest
from sampler_contract import ask_all, holds

from uql.sampling.groupby import ClassModel, GroupBySampler, farthest_first
from uql.sampling.intervals import unseen_share


def table(seed=0, n=2000, shares=(0.5, 0.3, 0.18, 0.02), d=8):
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(len(shares)), [round(s * n) for s in shares])
    centres = 2 * rng.normal(size=(len(shares), d))
    features = centres[classes] + rng.normal(size=(len(classes), d))
    features -= features.mean(axis=0)
    features /= np.sqrt((features**2).sum(axis=1).mean())
    order = rng.permutation(len(classes))
    return features.astype(np.float32)[order], classes[order]


def test_farthest_first_rows_see_a_rare_class_that_random_rows_miss():
    features, classes = table()
    rng = np.random.default_rng(0)
    far = np.mean([3 in classes[farthest_first(features, 16, rng)] for _ in range(30)])
    blind = np.mean([3 in classes[rng.choice(2000, 16, replace=False)] for _ in range(30)])
    assert far >= 0.8 and far > blind


def test_farthest_first_gives_different_rows_of_any_table():
    rng = np.random.default_rng(0)
    for n, k in ((0, 4), (1, 4), (3, 4), (50, 50)):
        rows = farthest_first(np.zeros((n, 3), np.float32), k, rng)
        assert len(rows) == min(n, k) and len(set(rows.tolist())) == len(rows)


@pytest.mark.thorough
def test_counts_of_classes_sum_up_and_cover():
    features, classes = table()
    truth = np.bincount(classes)
    held, far, uniform = [], [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        sampler = GroupBySampler(2000, 120, rng=rng, features=features)
        ask_all(sampler, classes.astype(float))
        counts = sampler.counts(4)
        held.append([holds(e, t) for e, t in zip(counts, truth, strict=True)])
        found = np.array([count.value for count in counts])
        far.append(abs(found / found.sum() - truth / 2000).sum() / 2)
        uniform.append(
            abs(np.bincount(classes[rng.choice(2000, 120, replace=False)], minlength=4) / 120 - truth / 2000).sum() / 2
        )
    assert np.mean(held) > 0.9
    assert np.mean(far) < 0.6 * np.mean(uniform)


def test_rows_that_do_not_pass_are_of_no_class():
    features, classes = table()
    passing = np.where(classes == 0, -1.0, classes)
    sampler = GroupBySampler(2000, 120, rng=np.random.default_rng(0), features=features)
    ask_all(sampler, passing)
    assert holds(sampler.estimate(), float((passing >= 0).sum()))
    assert sampler.counts(4)[0].value == 0


def test_many_classes_are_told_apart_by_one_ridge_model():
    features, classes = table(shares=(1 / 15,) * 15, n=1500)
    p = ClassModel.of(features[:300], classes[:300], 15, np.ones(300)).chances(features)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-4)
    assert (p.argmax(axis=1) == classes).mean() > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize("shares", [(1 / 24,) * 24, (0.5, 0.3, 0.14, 0.06), (0.7, *(0.05,) * 6)])
def test_a_group_above_the_limit_is_hardly_ever_missing(shares):
    features, classes = table(n=2400, shares=shares)
    missing, limits = [], []
    for seed in range(60):
        sampler = GroupBySampler(2400, 120, rng=np.random.default_rng(seed), features=features)
        ask_all(sampler, classes.astype(float))
        seen = np.unique(classes[sampler.labelled])
        limits.append(unseen_share(sampler.expected_draws(), 0, len(seen), 0.95))
        gone = np.setdiff1d(np.arange(len(shares)), seen)
        missing.append(any(shares[g] >= limits[-1] for g in gone))
    assert np.mean(missing) <= 0.05
    assert max(limits) < 0.08


@pytest.mark.parametrize("hits", [0, 2])
def test_the_limit_holds_for_all_groups_of_a_uniform_sample_at_once(hits):
    """Groups just above the limit: at least one of them has no more than `hits` rows in at most 5 % of samples."""
    n, size = 100, 2000
    limit = unseen_share(np.full(size, n / size), hits, 20, 0.95)
    groups = int(1 / limit)
    marked = np.arange(size) // int(np.ceil(limit * size))
    rng = np.random.default_rng(0)
    fewest = [
        np.bincount(marked[rng.choice(size, n, replace=False)], minlength=groups)[:groups].min() for _ in range(2000)
    ]
    assert np.mean(np.array(fewest) <= hits) <= 0.05


def test_waves_are_fitted_to_the_calls_that_are_left():
    features, classes = table()
    sampler = GroupBySampler(2000, 120, rng=np.random.default_rng(0), features=features)
    first = sampler.propose(1000)
    sampler.replan(10)  # a wave that has begun stays as it is
    sampler.tell(first, classes[first].astype(float))
    sampler.replan(20)
    asked = ask_all(sampler, classes.astype(float))
    assert len(asked) == 20
    assert sum(count.value for count in sampler.counts(4)) == pytest.approx(2000, rel=0.2)
