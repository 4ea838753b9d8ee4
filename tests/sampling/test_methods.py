"""What single methods promise beyond the contract."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from sampler_contract import World, ask_all, errors, holds

from uql.sampling import surrogate
from uql.sampling.asd import AsdSampler
from uql.sampling.cells import balanced_tree, runs_of_equal_mass
from uql.sampling.clusters import best_clusters, separation
from uql.sampling.distinct_rows import Units, UnitSample
from uql.sampling.importance import ImportanceSampler, inclusion
from uql.sampling.methods import AGGREGATE
from uql.sampling.retrieval import LearnedSearch, Search
from uql.sampling.stratified import allocate
from uql.sampling.surrogate import Span, fit_logistic, fit_ridge, moved, number, probability
from uql.sampling.uqe import UqeSearch


def told(sampler, truth):
    ask_all(sampler, truth, 1000)
    return sampler


def test_asd_errs_less_than_a_uniform_sample_where_features_tell():
    world = World.of(3000, 0.3)
    asd, uniform = (errors(AGGREGATE[name], world, 128, 60)[0] for name in ("asd", "uniform"))
    assert np.sqrt(np.mean(asd**2)) < 0.8 * np.sqrt(np.mean(uniform**2))


@pytest.mark.thorough
def test_asd_from_the_past_alone_is_unbiased_before_clipping():
    world = World.of(1200, 0.2)
    found = []
    for seed in range(250):
        rng = np.random.default_rng(seed)
        sampler = AsdSampler(1200, 48, rng=rng, features=world.features, prior=world.prior, past_only=True)
        told(sampler, world.truth)
        moments = sampler._moments([(sampler.answers, None)], np.ones(1200, bool), sampler._complete())
        found.append(moments.totals[0])
    error = np.array(found) - world.truth.sum()
    assert abs(error.mean()) <= 3.5 * error.std(ddof=1) / np.sqrt(len(error))


def test_asd_is_worth_having_without_a_prior():
    world = World.of(2000, 0.2)
    errors_of, coverage = errors(AGGREGATE["asd"], world, 96, 60, prior=None)
    assert np.sqrt(np.mean(errors_of**2)) < 0.3
    assert coverage >= 0.85


def test_asd_goes_on_when_the_budget_grows():
    world = World.of(2000, 0.2)
    sampler = AGGREGATE["asd"](2000, 64, rng=np.random.default_rng(0), features=world.features, prior=world.prior)
    sampler.more(64, look=1)
    ask_all(sampler, world.truth)
    first = sampler.estimate()
    sampler.more(256, look=2)
    ask_all(sampler, world.truth)
    second = sampler.estimate()
    assert (first.calls, second.calls) == (64, 256)
    assert second.high - second.low < first.high - first.low
    assert holds(second, world.truth.sum())


@pytest.mark.thorough
def test_a_sample_that_goes_on_far_beyond_a_few_rows_tells_as_much_as_one_drawn_at_once():
    world, widths = World.of(5000, 0.03, d=32), []
    for seed in range(8):
        for first in (100, 600):
            sampler = AsdSampler(5000, first, rng=np.random.default_rng(seed), features=world.features)
            told(sampler, world.truth)
            sampler.more(600)
            found = told(sampler, world.truth).estimate()
            widths.append((found.high - found.low) / found.value)
    assert np.median(np.divide(widths[::2], widths[1::2])) < 1.1


def test_looks_make_wider_intervals_of_the_same_rows():
    world = World.of(2000, 0.2)
    sampler = AGGREGATE["uniform"](2000, 100, rng=np.random.default_rng(0))
    ask_all(sampler, world.truth)
    once = sampler.estimate()
    sampler.more(100, look=2)
    twice = sampler.estimate()
    assert twice.low < once.low and twice.high > once.high and twice.confidence == 0.95


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["asd", "uniform", "stratified"])
def test_sums_averages_and_groups_cover(name):
    world = World.of(1500, 0.25)
    held = np.zeros(4)
    seeds = 60
    inside = world.groups == 1
    truths = [
        (world.value * world.truth).sum(),
        (world.value * world.truth).sum() / world.truth.sum(),
        world.truth[inside].sum(),
        (world.value * world.truth)[inside].sum() / world.truth[inside].sum(),
    ]
    for seed in range(seeds):
        sampler = AGGREGATE[name](
            1500, 128, rng=np.random.default_rng(seed), features=world.features, prior=world.prior, size=world.value,
            groups=world.groups,
        )  # fmt: skip
        told(sampler, world.truth)
        rows, y = sampler.labelled, sampler.answers
        v = world.value[rows] * y
        found = [
            sampler.total(v, weights=world.value),
            sampler.ratio(v, y, weights=world.value),
            sampler.total(y, domain=1),
            sampler.ratio(v, y, weights=world.value, domain=1),
        ]
        held += [holds(e, t) for e, t in zip(found, truths, strict=True)]
    assert (held / seeds >= 0.93 - 3 * np.sqrt(0.0475 / seeds)).all(), held / seeds


def test_numbers_that_a_model_reads_are_summed_with_a_ridge_surrogate():
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(2000, 6)) / np.sqrt(6)).astype(np.float32)
    y = 5 + 4 * features[:, 0].astype(float) * np.sqrt(6) + 0.5 * rng.normal(size=2000)
    error = {"asd": [], "uniform": []}
    for seed in range(30):
        for name, found in error.items():
            sampler = AGGREGATE[name](2000, 96, rng=np.random.default_rng(seed), features=features)
            told(sampler, np.ones(2000))
            found.append(sampler.total(y[sampler.labelled]).value - y.sum())
    assert np.std(error["asd"]) < 0.6 * np.std(error["uniform"])


def test_a_few_rows_that_hold_most_of_a_sum_are_asked_first():
    size = np.ones(1000)
    size[[17, 503]] = 5000.0
    sampler = AGGREGATE["uniform"](1000, 40, rng=np.random.default_rng(0), size=size)
    assert {17, 503} == set(sampler.propose(2).tolist())


def test_what_is_learned_of_all_groups_serves_the_estimate_of_each():
    world = World.of(3000, 0.3)
    groups = np.random.default_rng(1).choice(2, 3000, p=(0.8, 0.2)).astype(np.int64)
    inside = groups == 1
    count, mean = (
        world.truth[inside].sum(),
        float(world.value[inside] @ world.truth[inside] / world.truth[inside].sum()),
    )
    error, held, seeds = {"asd": [], "uniform": []}, 0, 60
    for seed in range(seeds):
        for name, found in error.items():
            sampler = AGGREGATE[name](
                3000, 128, rng=np.random.default_rng(seed), features=world.features, prior=world.prior, groups=groups
            )
            told(sampler, world.truth)
            y = sampler.answers
            average = sampler.ratio(world.value[sampler.labelled] * y, y, weights=world.value, domain=1)
            found.append([sampler.total(y, domain=1).value / count - 1, average.value / mean - 1])
            held += name == "asd" and holds(average, mean)
    asd, uniform = (np.sqrt(np.mean(np.square(found), axis=0)) for found in error.values())
    assert (asd < 0.75 * uniform).all(), (asd, uniform)
    assert held / seeds >= 0.93 - 3 * np.sqrt(0.0475 / seeds)


def test_a_group_unlike_the_others_moves_its_own_predictions():
    p, rows = np.full(500, 0.5), np.arange(40)
    inside = np.arange(500) < 100
    few, many = (moved(p, rows[:n], np.zeros(n), inside) for n in (2, 40))
    assert (few[~inside] == 0.5).all() and (many[~inside] == 0.5).all()
    assert 0.25 < few[0] < 0.5 and many[0] < 0.1
    assert (moved(p, rows[:0], np.zeros(0), inside) == p).all()


@pytest.mark.parametrize("name", sorted(AGGREGATE))
def test_answers_of_other_groups_add_nothing_to_the_total_of_a_group(name):
    world = World.of(1500, 0.4)
    sampler = AGGREGATE[name](
        1500, 96, rng=np.random.default_rng(0), features=world.features, prior=world.prior, groups=world.groups
    )
    told(sampler, world.truth)
    y, other = sampler.answers, world.groups[sampler.labelled] != 1
    unknown = np.where(other, np.nan, y)
    found, without = sampler.total(unknown, (0.0, 1.0), domain=1), sampler.total(np.where(other, 0.0, y), domain=1)
    assert found.unknown == 0 and found.high <= (world.groups == 1).sum()
    if name not in ("asd", "uqe"):
        assert found == without == sampler.total(y, domain=1)


@pytest.mark.parametrize("name", sorted(AGGREGATE))
def test_small_groups_are_asked_wholly_and_are_exact(name):
    world = World.of(1200, 0.3)
    groups = np.zeros(1200, np.int64)
    groups[::100] = 1  # 12 rows: less than 64/(2·2)
    sampler = AGGREGATE[name](
        1200, 64, rng=np.random.default_rng(0), features=world.features, prior=world.prior, groups=groups
    )
    asked = ask_all(sampler, world.truth, 7)
    assert len(asked) <= 64 and np.isin(np.flatnonzero(groups), asked).all()
    found = sampler.total(sampler.answers, (0.0, 1.0), domain=1)
    assert found.exact and found.value == world.truth[groups == 1].sum()
    assert holds(sampler.total(sampler.answers, (0.0, 1.0), domain=0), world.truth[groups == 0].sum())


def test_asd_draws_rows_of_small_groups_oftener():
    world = World.of(4000, 0.3)
    groups = np.random.default_rng(1).choice(3, 4000, p=(0.7, 0.25, 0.05)).astype(np.int64)
    drawn = np.zeros(3)
    for seed in range(10):
        sampler = AGGREGATE["asd"](
            4000, 128, rng=np.random.default_rng(seed), features=world.features, prior=world.prior, groups=groups
        )
        drawn += np.bincount(groups[ask_all(sampler, world.truth)], minlength=3)
    share = drawn / drawn.sum()
    assert share[2] > 0.09 and share[0] < 0.65


def test_known_rows_are_certain_and_weigh_one():
    world = World.of(1000, 0.3)
    known = np.flatnonzero(world.truth)[:200]
    for name, make in AGGREGATE.items():
        found = [
            told(
                make(1000, 64, rng=np.random.default_rng(s), features=world.features, prior=world.prior,
                     known=(known, np.ones(200))),
                world.truth,
            ).estimate()
            for s in range(30)
        ]  # fmt: skip
        assert all(e.low >= 200 for e in found), name
        assert abs(np.mean([e.value for e in found]) - 300) < 15, name


@pytest.mark.thorough
@pytest.mark.parametrize("method", AGGREGATE)
@pytest.mark.parametrize("answer", [0.0, 1.0])
def test_known_rows_are_no_draws_that_found_nothing(method, answer):
    """Of 600 rows all answers are known and alike; one in ten of the other 400 differs, and 16 draws often see none."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(1000, 8)).astype(np.float32) / np.float32(np.sqrt(8))
    features[400:] = 0.0  # texts that are NULL
    truth = np.full(1000, answer)
    truth[rng.choice(400, 40, replace=False)] = 1 - answer
    known = np.arange(400, 1000), truth[400:]
    held = {"count": 0, "share": 0, "sum": 0}
    for seed in range(60):
        sampler = AGGREGATE[method](
            1000, 16, rng=np.random.default_rng(seed), features=features, prior=rng.random(1000), known=known
        )
        told(sampler, truth)
        y, ones = sampler.answers, np.ones(len(sampler.labelled))
        for name, found, true in (
            ("count", sampler.estimate(), truth.sum()),
            ("share", sampler.ratio(y, ones), truth.mean()),
            ("sum", sampler.total(2 * y, weights=np.full(1000, 2.0)), 2 * truth.sum()),
        ):
            held[name] += found.low - 1e-9 <= true <= found.high + 1e-9
    assert min(held.values()) >= 54, held


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_ratio_covers_each_way_in_which_unknown_rows_may_be(seed, units):
    rng = np.random.default_rng(seed)
    value, read = np.exp(2 * rng.normal(size=12)) * rng.choice([1, -1, 1], 12), rng.integers(1, 9, 12).astype(float)
    of = np.repeat(np.arange(12), rng.integers(1, 9, 12)) if units else np.arange(12)
    truth, lost = np.where(rng.random(12) < 0.5, 1.0, 0.0), rng.permutation(12)[:4]
    seen = np.setdiff1d(np.arange(12), lost)
    truth[seen[:2]] = 1.0
    seen = read[seen[truth[seen] == 1.0]]
    value, read = value[of] * (1 + np.arange(len(of)) % 3), np.clip(read, seen.min(), seen.max())[of]
    told = truth.copy()
    told[lost] = np.nan
    sampler = UnitSample(Units(of), lambda m, **more: AGGREGATE["uniform"](m, m, rng=rng, **more))
    ask_all(sampler, told[of])
    rows, y = sampler.labelled, sampler.answers
    found = [
        sampler.ratio(value[rows] * y, y, weights=value),
        sampler.ratio(value[rows] * y, np.ones(len(y)), weights=value),
        sampler.ratio(read[rows] * y, y),
    ]
    for answers in product([0.0, 1.0], repeat=4):
        truth[lost] = answers
        yes = truth[of]
        possible = value @ yes / yes.sum(), value @ yes / len(yes), read @ yes / yes.sum()
        for ratio, true in zip(found, possible, strict=True):
            assert ratio.low - 1e-9 <= true <= ratio.high + 1e-9


def test_proposition_1_a_proposal_proportional_to_the_answer_has_no_variance():
    rng = np.random.default_rng(0)
    value = rng.uniform(1, 5, 500)
    for seed in range(5):
        sampler = ImportanceSampler(500, 50, rng=np.random.default_rng(seed), guess=value, uniform=0.0)
        told(sampler, np.ones(500))
        assert sampler.total(value[sampler.labelled]).value == pytest.approx(value.sum(), rel=1e-9)


def test_inclusion_chances_sum_to_the_draws_and_stay_chances():
    chance = inclusion(np.array([100.0, 50.0, 1.0, 1.0, 1.0]), 3)
    assert chance.sum() == pytest.approx(3) and chance.max() <= 1.0 and chance.min() > 0


def test_allocation_is_proportional_and_keeps_the_sum():
    assert allocate(np.array([50, 30, 20]), 10).tolist() == [5, 3, 2]
    assert allocate(np.array([1000, 3, 1]), 12).tolist() == [9, 2, 1]
    assert allocate(np.array([5, 5]), 100).tolist() == [5, 5]
    assert allocate(np.array([10] * 20), 10).sum() == 10


def test_cells_part_the_rows_and_pairs_come_from_their_cells():
    rng = np.random.default_rng(0)
    rows = np.arange(100, 200)
    score = rng.normal(size=100)
    made = runs_of_equal_mass(rows, score, np.where(score > 1.5, 100.0, 1.0), 16)
    assert sorted(made.order.tolist()) == rows.tolist()
    assert made.sizes.min() >= 2 and made.sizes.sum() == 100
    ends = np.append(made.starts[1:], 100)
    for (a, b), start, end in zip(made.draw_pairs(rng).tolist(), made.starts, ends, strict=True):
        assert a != b and {a, b} <= set(made.order[start:end].tolist())
    tree = balanced_tree(rows, rng.normal(size=(200, 5)).astype(np.float32), 16)
    assert sorted(tree.order.tolist()) == rows.tolist() and tree.sizes.min() >= 2


@pytest.mark.parametrize("n", range(4, 60))
def test_no_cell_has_fewer_than_two_rows_however_many_cells_there_are(n):
    features = np.random.default_rng(n).normal(size=(n, 5)).astype(np.float32)
    for cells in range(1, n // 2 + 1):
        tree = balanced_tree(np.arange(n), features, cells)
        assert len(tree.sizes) == cells and tree.sizes.min() >= 2


def test_approximate_leave_one_out_is_near_the_exact_one():
    world = World.of(60, 0.5, seed=3)
    x = world.features
    fit = fit_logistic(Span.of(x, 64), world.truth)
    refits = []
    for i in range(0, 60, 6):
        keep = np.arange(60) != i
        refits.append(fit_logistic(Span.of(x[keep], 64), world.truth[keep]).score(x[i : i + 1])[0])
    assert np.corrcoef(refits, fit.loo[::6])[0, 1] > 0.97


def test_a_surrogate_is_calibrated():
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(5000, 10)) / np.sqrt(10)).astype(np.float32)
    chance = 1 / (1 + np.exp(-2 * features[:, 0].astype(float) * np.sqrt(10)))
    y = (rng.random(5000) < chance).astype(float)
    p = probability(features[:300], y[:300]).predict(features)
    assert abs(p.mean() - y.mean()) < 0.06
    assert abs(y[p > 0.8].mean() - p[p > 0.8].mean()) < 0.1


def test_a_rare_condition_that_features_separate_is_counted_nearly_without_error():
    """Chances that few matches hold back would leave an error of 2.8 %: each of the 3,880 others adds a little, and cells follow them."""
    errors, n_held = [], 0
    for seed in range(10):
        rng = np.random.default_rng(1000 + seed)
        truth = (np.arange(4000) < 120).astype(np.float64)
        features = rng.normal(size=(4000, 30)).astype(np.float32)
        features[:, 0] += 12 * truth.astype(np.float32)
        features = (features - features.mean(axis=0)) / np.float32(np.sqrt(30))
        found = told(
            AsdSampler(4000, 128, rng=rng, features=features, prior=features[:, 0].astype(np.float64)), truth
        ).estimate()
        errors.append(found.value / 120 - 1)
        n_held += found.low <= 120 <= found.high
    assert np.sqrt(np.mean(np.square(errors))) < 0.015
    assert n_held == 10


def test_where_all_labels_agree_the_surrogate_is_their_share():
    features = np.eye(5, dtype=np.float32)
    assert probability(features, np.zeros(5)).predict(features) == pytest.approx(np.zeros(5), abs=1e-6)
    assert number(features, np.full(5, 3.0)).predict(features) == pytest.approx(np.full(5, 3.0))


def test_ridge_leave_one_out_is_exact_up_to_the_mean():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 4)).astype(np.float32)
    y = x[:, 0].astype(float) + 0.1 * rng.normal(size=30)
    fit = fit_ridge(Span.of(x, 64), y, (1.0,))
    keep = np.arange(30) != 7
    again = fit_ridge(Span.of(x[keep], 64), y[keep], (1.0,)).score(x[7:8])[0]
    assert fit.loo[7] == pytest.approx(again, abs=0.02)


def test_learned_search_finds_more_than_random_rows():
    world = World.of(3000, 0.05)
    found = {}
    for name, search in (
        ("learned", LearnedSearch(3000, 120, rng=np.random.default_rng(0), features=world.features, prior=world.prior,
                                  has_examples=True)),
        ("blind", LearnedSearch(3000, 120, rng=np.random.default_rng(0), features=world.features)),
        ("random", Search(3000, 120, rng=np.random.default_rng(0))),
    ):  # fmt: skip
        ask_all(search, world.truth)
        found[name] = len(search.matches())
    assert found["learned"] > 60 and found["blind"] > 40 and found["random"] < 20


@pytest.mark.parametrize("name", ["uqe", "stratified"])
@pytest.mark.parametrize("strata", [2, 5, "auto"])
def test_strata_by_number_or_as_many_as_stand_apart(name, strata):
    world = World.of(600, 0.2)
    sampler = AGGREGATE[name](
        600, 60, rng=np.random.default_rng(0), features=world.features, prior=world.prior, strata=strata
    )
    assert holds(told(sampler, world.truth).estimate(), world.truth.sum())


def test_clusters_that_stand_apart_are_counted():
    rng = np.random.default_rng(0)
    place = rng.integers(6, size=900)
    features = (10 * np.eye(6)[place] + 0.1 * rng.normal(size=(900, 6))).astype(np.float32)
    found = best_clusters(features, 128)
    assert len(np.unique(found)) == 6 and len(set(zip(found.tolist(), place.tolist(), strict=True))) == 6
    assert len(np.unique(best_clusters(features, 8))) == 2  # eight draws allow no more
    assert separation(features, place) > separation(features, np.zeros(900, np.int64)) == 0.0


def test_what_waves_count_for_adds_up_to_one_and_follows_the_chance_of_being_drawn():
    world = World.of(3000, 0.04)
    rng = np.random.default_rng(3)
    sampler = AsdSampler(3000, 128, rng=rng, features=world.features, prior=world.prior)
    ask_all(sampler, world.truth)
    complete = sampler._complete()
    shares = np.array(sampler._shares(complete))
    assert len(complete) == 4 and shares.sum(axis=0) == pytest.approx(np.ones(3000))
    chances = np.array([sampler._waves[t].chances for t in complete])
    assert ((chances > 0) & (chances <= 1)).all()
    assert (shares.argmax(axis=0) == chances.argmax(axis=0)).all()
    for t in complete:  # a row drawn was drawn with the chance of its cell
        wave = sampler._waves[t]
        assert chances[t][wave.pairs] == pytest.approx(np.repeat(2 / wave.cells.sizes, 2).reshape(-1, 2))


def test_the_unbiased_variant_weighs_waves_by_their_draws_alone():
    world = World.of(3000, 0.04)
    sampler = AsdSampler(
        3000, 128, rng=np.random.default_rng(3), features=world.features, prior=world.prior, past_only=True
    )
    ask_all(sampler, world.truth)
    assert np.array(sampler._shares(sampler._complete())) == pytest.approx(np.full((4, 3000), 0.25))


def test_the_share_of_random_rows_decays_with_the_batches():
    world = World.of(3000, 0.3)
    drawn: list[int] = []

    class Counted(UqeSearch):
        def _random(self, k):
            drawn.append(k)
            return super()._random(k)

    search = Counted(3000, 480, rng=np.random.default_rng(0), features=world.features, epsilon=0.8, batch=40)
    told(search, world.truth)
    first, *later = drawn
    assert first == 40 and len(later) == 11  # the first batch is random
    assert later[0] > 24 and sum(later[1:4]) / 3 < 20 and sum(later[-4:]) / 4 < 8


@pytest.mark.parametrize(("n", "budget", "waves"), [(200, 24, 2), (3000, 128, 4)])
def test_what_chose_the_cells_of_a_wave_is_not_fitted_again_for_its_estimate(n, budget, waves, monkeypatch):
    fitted = []

    def counted(features, y, *rest):
        fitted.append(len(y))
        return probability(features, y, *rest)

    monkeypatch.setattr(surrogate, "probability", counted)
    world = World.of(n, 0.3)
    sampler = told(AsdSampler(n, budget, rng=np.random.default_rng(0), features=world.features), world.truth)
    sampler.near_copies = True  # a wave's rows are also predicted from earlier waves alone
    sampler.estimate()
    assert len(sampler._complete()) == waves
    # from the waves before each: once; of the others: once, but for the last wave, whose others are those before it
    assert len(fitted) == waves - 1 + waves - 1 + 1  # and of no rows, for the first wave


def test_the_memory_of_an_estimate_is_that_of_its_waves():
    """Of each row what four waves predict and count for is held, 8 bytes each, and of one wave at a time what is stretched, but no copies
    of what is held: 22 bytes more with them."""
    n_rows, rng = 100_000, np.random.default_rng(0)
    features = rng.standard_normal((n_rows, 8), dtype=np.float32)
    truth = (features[:, 0] > 1).astype(np.float64)
    tracemalloc.start()
    try:
        sampler = AGGREGATE["asd"](n_rows, 128, rng=rng, features=features, prior=features[:, 0].astype(np.float64))
        while len(rows := sampler.propose(1000)):
            sampler.tell(rows, truth[rows])
        sampler.estimate()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 235 * n_rows


def test_a_sample_that_grew_in_waves_of_unequal_length_varies_as_a_uniform_one_where_features_tell_nothing():
    rng, n, found = np.random.default_rng(3), 3000, []
    for seed in range(4):
        features, truth = rng.normal(size=(n, 16)).astype(np.float32), rng.random(n) < 0.5
        sampler = AsdSampler(n, 98, rng=np.random.default_rng(seed), features=features)
        told(sampler, truth)
        for budget in (196, 392):
            sampler.more(budget)
            told(sampler, truth)
        moments = sampler._moments([(sampler.answers, None)], np.ones(n, bool), sampler._complete())
        found.append(moments.covariance[0, 0] / (n**2 * truth.var() / 392 * (1 - 392 / n)))
    assert np.mean(found) < 1.035
