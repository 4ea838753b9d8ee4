"""Probabilities stand for answers only where audited rows show that they are calibrated; then they err less."""

import numpy as np
import pytest
from sampler_contract import ask_all

from uql.sampling.asd import AsdSampler
from uql.sampling.calibration import Calibration, calibration, soft_mean, soft_total


def world(seed=0, n=4000):
    """Features, calibrated probabilities of a model that doubts, and the truth."""
    rng = np.random.default_rng(seed)
    features = (rng.normal(size=(n, 8)) / np.sqrt(8)).astype(np.float32)
    p = 1 / (1 + np.exp(-(2 * np.sqrt(8) * features[:, 0].astype(float) - 1.5 + rng.normal(size=n))))
    return features, p, (rng.random(n) < p).astype(float)


def test_calibrated_probabilities_pass_in_most_audits():
    _, p, y = world()
    passed = 0
    for seed in range(200):
        rows = np.random.default_rng(seed).choice(len(p), 300, replace=False)
        passed += calibration(p[rows], y[rows]).holds
    assert passed >= 180


@pytest.mark.parametrize(
    "wrong", [lambda p: p**3, lambda p: np.round(p), lambda p: 0.5 + 0.3 * (p - 0.5), lambda p: 1 - p]
)
def test_probabilities_that_are_not_calibrated_are_refused(wrong):
    _, p, y = world()
    passed = 0
    for seed in range(100):
        rows = np.random.default_rng(seed).choice(len(p), 200, replace=False)
        passed += calibration(wrong(p)[rows], y[rows]).holds
    assert passed <= 10


def test_soft_counts_are_nearer_the_truth_than_counts_of_yes_and_no_and_cover():
    features, p, y = world()
    total, error, held = y.sum(), {"soft": [], "hard": []}, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sampler = AsdSampler(len(p), 96, rng=rng, features=features, prior=features[:, 0].astype(float))
        ask_all(sampler, (p > 0.5).astype(float))
        audited = rng.choice(len(p), 150, replace=False)
        soft = soft_total(sampler, p[sampler.labelled], sampler.answers, calibration(p[audited], y[audited]))
        if soft is None:
            continue
        held += soft.low <= total <= soft.high
        error["soft"].append(soft.value / total - 1)
        error["hard"].append(sampler.estimate().value / total - 1)
    assert len(error["soft"]) >= 50
    assert np.sqrt(np.mean(np.square(error["soft"]))) < 0.5 * np.sqrt(np.mean(np.square(error["hard"])))
    assert held / len(error["soft"]) >= 0.9


def test_soft_sums_and_means_of_a_stored_column_are_near_the_truth_and_cover():
    features, p, y = world()
    value = np.exp(features[:, 0].astype(float) * 4)
    total, mean = (value * y).sum(), (value * y).sum() / y.sum()
    held, far = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sampler = AsdSampler(len(p), 128, rng=rng, features=features, prior=features[:, 0].astype(float), size=value)
        ask_all(sampler, (p > 0.5).astype(float))
        audited = rng.choice(len(p), 200, replace=False)
        checked = calibration(p[audited], y[audited])
        told = sampler.labelled
        added = soft_total(sampler, p[told], sampler.answers, checked, weights=value)
        if added is None:
            continue
        average = soft_mean(sampler, p[told], checked, value, np.ones(len(p)))
        held.append((added.low <= total <= added.high, average.low <= mean <= average.high))
        far.append((added.value / total - 1, average.value / mean - 1))
    hard = ((p > 0.5) * value).sum() / total - 1, ((p > 0.5) * value).sum() / (p > 0.5).sum() / mean - 1
    assert len(held) >= 30 and np.mean(held, axis=0).min() >= 0.9
    soft = np.sqrt(np.mean(np.square(far), axis=0))
    assert soft[0] < abs(hard[0]) and soft[1] < 0.5 * abs(hard[1])


def test_where_yes_and_no_are_thought_to_err_less_they_give_the_value():
    features, _, _ = world()
    n, noise = len(features), np.random.default_rng(3)
    truth = (features[:, 0] > np.median(features[:, 0])).astype(float)  # a surrogate sees it
    p = noise.uniform(0, 1, n)  # the same on average, with a spread that nothing tells
    checked, plain = Calibration(500, 0.0, 0.001, 0.0), 0
    for seed in range(12):
        sampler = AsdSampler(
            n, 128, rng=np.random.default_rng(seed), features=features, prior=features[:, 0].astype(float)
        )
        ask_all(sampler, truth)
        found = soft_total(sampler, p[sampler.labelled], sampler.answers, checked)
        if found.method == "asd, yes and no":
            plain += 1
            assert found.value == sampler.estimate().value
        doubted = soft_total(sampler, 0.4 * p[sampler.labelled], sampler.answers, checked)  # far from the count of yes
        assert doubted.method == "asd, soft" and doubted.low < 0.2 * n < doubted.high
    assert plain >= 6


def test_without_calibration_there_is_no_soft_count():
    features, p, y = world()
    sampler = AsdSampler(len(p), 64, rng=np.random.default_rng(0), features=features)
    ask_all(sampler, (p > 0.5).astype(float))
    few = calibration(p[:10], y[:10])
    assert not few.holds and soft_total(sampler, p[sampler.labelled], sampler.answers, few) is None
    assert not calibration(p[:1], y[:1]).holds
