"""Means and sums of known groups: how rows are allotted, and whether the intervals hold."""

import numpy as np
import pytest
from sampler_contract import ask_all

from uql.sampling.by_group import ByGroupSampler, Ranking

SIZES = (4, 4, 5, 5, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50, 60, 120, 260)


def table(kind, seed):
    """(N,) groups, features and values, of 40 groups of 4 to 260 rows; groups differ, and so do rows within them."""
    rng = np.random.default_rng(seed)
    sizes = np.array(SIZES * 2)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    n = len(groups)
    features = (rng.normal(size=(n, 8)) / np.sqrt(8)).astype(np.float32)
    effect, score = rng.normal(size=len(sizes))[groups], features[:, 0] * np.sqrt(8)
    values = {
        "even": 3 + 0.5 * effect + 0.4 * score + 0.7 * rng.normal(size=n),
        "alike": 3 + 0.4 * score + 0.7 * rng.normal(size=n),
        "skewed": np.exp(0.4 * effect + 0.3 * score + 0.8 * rng.normal(size=n)),
        "condition": (rng.random(n) < 1 / (1 + np.exp(-0.8 * effect - 0.8 * score))).astype(float),
        "rare condition": (rng.random(n) < 1 / (1 + np.exp(3 - 0.8 * effect - 0.8 * score))).astype(float),
    }[kind]
    return groups, features, values


def asked(groups, features, values, budget, seed, ranking=None):
    rng = np.random.default_rng(1000 + seed)
    sampler = ByGroupSampler(len(groups), budget, rng=rng, groups=groups, features=features, ranking=ranking)
    ask_all(sampler, values)
    return sampler


def means(sampler, values):
    y = values[sampler.labelled]
    return [sampler.ratio(y, np.ones(len(y)), domain=int(g)) for g in np.unique(sampler.groups)]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["even", "alike", "skewed", "condition", "rare condition"])
@pytest.mark.parametrize("budget", [100, 300])
def test_means_and_sums_of_groups_hold(kind, budget):
    held = []
    for seed in range(12):
        groups, features, values = table(kind, seed)
        sampler = asked(groups, features, values, budget, seed)
        truth = np.bincount(groups, values) / np.bincount(groups)
        y = values[sampler.labelled]
        for g, (found, true) in enumerate(zip(means(sampler, values), truth, strict=True)):
            total = sampler.total(y, domain=g)
            if found.value is not None and not found.exact:
                held.append(found.low - 1e-9 <= true <= found.high + 1e-9)
                held.append(total.low - 1e-6 <= true * (groups == g).sum() <= total.high + 1e-6)
    assert np.mean(held) >= 0.94


def test_every_group_has_as_many_rows_as_another_where_all_are_returned():
    groups, features, values = table("even", 0)
    sampler = asked(groups, features, values, 200, 0)
    n, sizes = np.bincount(groups[sampler.labelled]), np.bincount(groups)
    assert n.sum() == 200
    assert (n >= np.minimum(sizes, 3)).all()


def test_the_ranking_of_groups_is_nearer_the_truth_than_that_of_a_uniform_sample():
    ours, uniform = [], []
    for seed in range(10):
        groups, features, values = table("even", seed)
        truth = np.bincount(groups, values) / np.bincount(groups)
        found = np.array([e.value for e in means(asked(groups, features, values, 200, seed), values)])
        rows = np.random.default_rng(seed).choice(len(groups), 200, replace=False)
        n = np.bincount(groups[rows], minlength=len(truth))
        plain = np.bincount(groups[rows], values[rows], minlength=len(truth)) / np.maximum(n, 1)
        plain[n == 0] = values[rows].mean()
        rank = np.argsort(np.argsort(truth))
        ours.append(np.corrcoef(np.argsort(np.argsort(found)), rank)[0, 1])
        uniform.append(np.corrcoef(np.argsort(np.argsort(plain)), rank)[0, 1])
    assert np.mean(ours) > np.mean(uniform) + 0.1


def test_where_the_first_groups_are_wanted_rows_go_to_those_that_may_be_among_them():
    right = {True: [], False: []}
    for seed in range(16):
        groups, features, values = table("even", seed)
        truth = np.bincount(groups, values) / np.bincount(groups)
        best = set(np.argsort(-truth)[:5])
        for by_need in right:
            ranking = Ranking(5, descending=True) if by_need else None
            found = [e.value for e in means(asked(groups, features, values, 400, seed, ranking), values)]
            right[by_need].append(len(best & set(np.argsort(found)[-5:])) / 5)
    assert np.mean(right[True]) > np.mean(right[False])


def test_of_a_group_without_a_row_nothing_is_said():
    groups, features, values = table("even", 0)
    sampler = asked(groups, features, values, 20, 0)
    n = np.bincount(groups[sampler.labelled], minlength=40)
    assert (n == 0).any() and n.max() >= 2  # some have a second row: else nothing is known of the spread
    for g, found in enumerate(means(sampler, values)):
        if n[g] == 0:
            assert found.value is None and (found.low, found.high) == (-np.inf, np.inf)
        else:
            assert np.isfinite([found.value, found.low, found.high]).all()


def test_values_that_do_not_differ_leave_the_interval_open():
    groups, features, _ = table("even", 0)
    values = np.full(len(groups), 4.0)
    sampler = asked(groups, features, values, 100, 0)
    assert np.ptp(np.bincount(groups[sampler.labelled])) <= 1  # no group needs a row more than another
    for found in means(sampler, values):
        assert found.value == pytest.approx(4.0)
        assert found.exact or (found.low, found.high) == (-np.inf, np.inf)


def test_rows_that_are_alike_within_each_group_seen_leave_no_interval_without_width():
    groups, features, _ = table("even", 0)
    values = (groups % 5).astype(float)
    sampler = asked(groups, features, values, 100, 0)
    assert all(e.exact or e.high - e.low > 0.2 for e in means(sampler, values))


def test_a_group_of_which_every_row_was_asked_is_exact():
    groups, features, values = table("even", 0)
    sampler = asked(groups, features, values, 300, 0)
    truth = np.bincount(groups, values) / np.bincount(groups)
    exact = [(g, e) for g, e in enumerate(means(sampler, values)) if e.exact]
    assert exact
    assert all(e.low == e.high == pytest.approx(truth[g]) for g, e in exact)


@pytest.mark.parametrize("budget", [0, 1, 2, 5])
def test_hardly_any_budget_is_borne(budget):
    groups, features, values = table("even", 0)
    sampler = asked(groups, features, values, budget, 0)
    assert len(sampler.labelled) == budget
    assert len(means(sampler, values)) == 40
