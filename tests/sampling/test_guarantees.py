"""Precision and recall that were promised hold, also where the surrogate misleads."""

import numpy as np
import pytest
from sampler_contract import World, ask_all

from uql.sampling.recall import RecallSearch
from uql.sampling.unverified import BettingTest, UnverifiedSearch


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_a_bet_against_a_share_below_the_target_rarely_wins(delta):
    wins, runs = 0, 2000
    rng = np.random.default_rng(0)
    size, target = 200, 0.9
    marked = np.zeros(size, bool)
    marked[: int(target * size) - 1] = True  # just below the target
    for _ in range(runs):
        test = BettingTest(size, target, 0.98)
        for mark in rng.permutation(marked):
            test.see(bool(mark))
            if test.capital >= 1 / delta:
                wins += 1
                break
    assert wins <= runs * delta + 2.33 * np.sqrt(runs * delta * (1 - delta))


def test_a_bet_on_a_good_set_wins_soon():
    test = BettingTest(5000, 0.9, 0.985)
    for _ in range(33):
        test.see(True)
    assert test.capital >= 20


def unverified(world, seed, precision=0.9, confidence=0.95):
    search = UnverifiedSearch(
        len(world.truth), 160, rng=np.random.default_rng(seed), features=world.features, prior=world.prior,
        precision=precision, confidence=confidence,
    )  # fmt: skip
    asked = ask_all(search, world.truth)
    assert len(asked) <= 160
    return search


def separable(n=3000, share=0.3):
    world = World.of(n, share)
    score = world.features[:, 0]
    truth = np.zeros(n)
    truth[np.argsort(-score)[: round(share * n)]] = 1.0
    return World(world.features, world.prior, truth, world.value, world.groups)


def test_unverified_rows_are_returned_where_the_surrogate_is_good_and_hold_their_precision():
    world = separable()
    returned = []
    for seed in range(10):
        search = unverified(world, seed)
        rows = search.unverified()
        assert not np.isin(rows, search.labelled).any()
        returned.append(len(rows))
        if len(rows):
            assert world.truth[rows].mean() >= 0.85
    assert np.mean(returned) > 200


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_stated_precision_is_missed_no_more_often_than_allowed(confidence):
    misses, runs = 0, 120
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        world = separable(1500, 0.3)
        flip = rng.random(1500) < 0.1  # nine in ten of any set: at the edge of the target
        world = World(
            world.features, world.prior, np.where(flip, 1 - world.truth, world.truth), world.value, world.groups
        )
        accepted = unverified(world, seed, 0.9, confidence).accepted
        misses += len(accepted) > 0 and world.truth[accepted].mean() < 0.9
    delta = 1 - confidence
    assert misses <= runs * delta + 2.33 * np.sqrt(runs * delta * confidence)


def test_nothing_unverified_is_returned_where_the_surrogate_knows_nothing():
    world = World.of(1500, 0.2)
    noise = np.random.default_rng(0).permutation(world.truth)
    search = unverified(World(world.features, world.prior, noise, world.value, world.groups), 0)
    assert len(search.unverified()) == 0
    assert noise[search.matches()].all()


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_stated_recall_is_missed_no_more_often_than_allowed(confidence):
    misses, runs, cost = 0, 25, []
    world = World.of(1500, 0.1)
    for seed in range(runs):
        search = RecallSearch(
            1500, 1500, rng=np.random.default_rng(seed), features=world.features, prior=world.prior, has_examples=True,
            recall=0.9, confidence=confidence,
        )  # fmt: skip
        ask_all(search, world.truth, 64)
        assert search.met
        recall = len(search.matches()) / world.truth.sum()
        misses += recall < 0.9
        assert search.guaranteed >= 0.9
        cost.append(search.calls / 1500)
    delta = 1 - confidence
    assert misses <= runs * delta + 2.33 * np.sqrt(runs * delta * confidence)
    assert np.mean(cost) < 0.75


def test_a_recall_that_cannot_be_proved_says_what_holds_instead():
    world = World.of(2500, 0.08)
    search = RecallSearch(2500, 100, rng=np.random.default_rng(0), features=world.features, prior=world.prior)
    ask_all(search, world.truth, 64)
    assert not search.met and search.guaranteed < 0.9


def test_unknown_answers_count_against_recall():
    world = World.of(300, 0.3)
    search = RecallSearch(300, 300, rng=np.random.default_rng(0), features=world.features, prior=world.prior)
    ask_all(search, world.truth, 64, unknown=np.arange(60))
    found = len(search.matches())
    assert search.guaranteed == pytest.approx(found / (found + 60)) and not search.met


def test_a_recall_costs_a_third_of_a_table_whose_matches_are_easily_found():
    misses, runs, cost = 0, 20, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = (rng.random(1150) < 0.15).astype(float)
        features = 0.3 * rng.normal(size=(1150, 8))
        features[:, 0] = truth + 0.25 * rng.normal(size=1150)
        prior = features[:, 0].copy()
        search = RecallSearch(1150, 1150, rng=rng, features=features.astype(np.float32), prior=prior, has_examples=True)
        ask_all(search, truth, 8)
        assert search.met
        misses += len(search.matches()) < 0.9 * truth.sum()
        cost.append(search.calls / 1150)
    assert misses <= 3
    assert np.mean(cost) <= 0.36


@pytest.mark.thorough
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_a_recall_holds_whatever_the_features_say(confidence):
    runs, misses, delta = 40, 0, 1 - confidence
    rng = np.random.default_rng(0)
    for _ in range(runs):
        truth = (rng.random(400) < 0.3).astype(float)
        misled = np.stack([1 - truth + 0.1 * rng.normal(size=400), rng.normal(size=400)], axis=1).astype(np.float32)
        features = misled if rng.random() < 0.5 else rng.normal(size=(400, 2)).astype(np.float32)
        search = RecallSearch(400, 400, rng=rng, features=features, recall=0.8, confidence=confidence)
        ask_all(search, truth, 8)
        misses += len(search.matches()) < 0.8 * truth.sum()
    assert misses <= runs * delta + 2.33 * np.sqrt(runs * delta * confidence)
