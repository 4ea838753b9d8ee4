"""Rows that are alike are one unit: asked once, known together, and the totals are those of rows."""

import numpy as np
import pytest
from sampler_contract import World, holds

from uql.sampling.distinct_rows import Units, UnitSample, UnitSearch
from uql.sampling.methods import AGGREGATE, RETRIEVAL

WORLD = World.of(400, 0.3)
OF = np.random.default_rng(3).permutation(
    np.repeat(np.arange(400), np.random.default_rng(2).zipf(1.6, 400).clip(1, 60))
)
UNITS = Units(OF)
TRUTH = WORLD.truth[OF]
VALUE = np.random.default_rng(4).gamma(2.0, 3.0, len(OF))
READ = np.random.default_rng(6).integers(1, 11, len(UNITS)).astype(float)[OF]  # the same in all rows of a unit
GROUPS = np.random.default_rng(5).integers(0, 3, len(OF))


def sample(seed, budget=100, name="asd", **keywords):
    def make(m, **more):
        return AGGREGATE[name](
            m, min(budget, m), rng=np.random.default_rng(seed), features=WORLD.features, prior=WORLD.prior,
            size=UNITS.sizes.astype(float), **more,
        )  # fmt: skip

    sampler = UnitSample(UNITS, make, groups=GROUPS, **keywords)
    while len(rows := sampler.propose(7)):
        sampler.tell(rows, TRUTH[rows])
    return sampler


def numbers(sampler):
    """Estimates and truths of what one sample gives."""
    rows, y = sampler.labelled, sampler.answers
    v, inside = VALUE[rows] * y, GROUPS == 1
    yield sampler.estimate(), TRUTH.sum()
    yield sampler.total(v, weights=VALUE), VALUE @ TRUTH
    yield sampler.ratio(v, y, weights=VALUE), VALUE @ TRUTH / TRUTH.sum()
    yield sampler.ratio(y, np.ones(len(y))), TRUTH.mean()
    yield sampler.total(y, (0.0, 1.0), domain=1), TRUTH[inside].sum()
    yield sampler.ratio(v, y, weights=VALUE, domain=1), (VALUE * TRUTH)[inside].sum() / TRUTH[inside].sum()
    yield sampler.total(READ[rows] * y), READ @ TRUTH
    yield sampler.ratio(READ[rows] * y, y), READ @ TRUTH / TRUTH.sum()


def test_rows_of_a_unit_come_together_and_no_unit_twice():
    sampler = sample(0)
    units, sizes = np.unique(OF[sampler.labelled], return_counts=True)
    assert len(units) == 100 and (sizes == UNITS.sizes[units]).all()
    assert sampler.estimate().calls == 100


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["asd", "uniform"])
def test_intervals_of_rows_hold(name):
    seeds, held = 60, np.zeros(8)
    for seed in range(seeds):
        held += [holds(found, truth) for found, truth in numbers(sample(seed, name=name))]
    assert (held / seeds >= 0.93 - 3 * np.sqrt(0.0475 / seeds)).all(), held / seeds


def test_a_mean_of_stored_values_is_known_well_from_few_units():
    errors = [next(e for i, e in enumerate(numbers(sample(seed))) if i == 2) for seed in range(20)]
    assert np.sqrt(np.mean([(found.value / truth - 1) ** 2 for found, truth in errors])) < 0.03


def test_numbers_that_are_read_are_predicted_of_one_row_of_a_unit():
    found = [list(numbers(sample(seed)))[-2:] for seed in range(20)]
    widths = [[(e.high - e.low) / truth for e, truth in both] for both in found]
    assert (np.median(widths, axis=0) < [2.0, 1.6]).all()


@pytest.mark.parametrize("name", ["asd", "uniform"])
@pytest.mark.parametrize("budget", [63, 64])
def test_a_row_that_holds_nearly_all_of_a_sum_is_asked_and_does_not_widen_what_the_others_say(name, budget):
    world = World.of(1000, 0.3)
    value = np.random.default_rng(0).gamma(2.0, 10.0, 1000)
    value[5] = 50_000.0
    for seed in range(5):
        sampler = AGGREGATE[name](
            1000, budget, rng=np.random.default_rng(seed), features=world.features, size=value, prior=world.prior
        )
        while len(rows := sampler.propose(8)):
            sampler.tell(rows, world.truth[rows])
        assert 5 in sampler.labelled
        rows, y = sampler.labelled, sampler.answers
        mean = sampler.ratio(value[rows] * y, y, weights=value)
        assert mean.high - mean.low < 4 * mean.value


def test_all_units_are_exact():
    for found, truth in numbers(sample(0, budget=400)):
        assert found.exact and found.value == pytest.approx(truth) and found.low == found.high


def test_a_group_all_of_whose_rows_are_told_is_exact():
    groups = np.where(np.isin(OF, sample(0).labelled[:1] * 0 + OF[sample(0).labelled[0]]), 7, GROUPS)
    sampler = sample(0)
    sampler.groups = groups
    found = sampler.total(sampler.answers, (0.0, 1.0), domain=7)
    assert found.exact and found.value == TRUTH[groups == 7].sum()


def test_what_was_known_before_is_never_asked():
    known = np.flatnonzero(OF < 50)
    sampler = sample(0, known=(known, TRUTH[known]))
    asked = sampler.labelled[len(known) :]
    assert not np.isin(OF[asked], np.arange(50)).any()
    for found, truth in numbers(sampler):
        assert holds(found, truth)


def test_rows_without_an_answer_widen_the_interval_and_are_counted():
    sampler = sample(0)
    lost = OF[sampler.labelled] == OF[sampler.labelled[-1]]
    y = np.where(lost, np.nan, sampler.answers)
    found, whole = sampler.total(y, (0.0, 1.0)), sampler.estimate()
    assert found.unknown == lost.sum() and found.high - found.low > whole.high - whole.low - 1e-9
    average = sampler.ratio(np.where(lost, np.nan, VALUE[sampler.labelled] * y), y, weights=VALUE)
    assert average.unknown == lost.sum()


def test_a_search_finds_all_rows_of_a_unit_at_once():
    def make(m, **more):
        return RETRIEVAL["learned"](
            m, 80, rng=np.random.default_rng(0), features=WORLD.features, prior=WORLD.prior, **more
        )

    search = UnitSearch(UNITS, make)
    told = []
    while len(rows := search.propose(8)):
        search.tell(rows, TRUTH[rows])
        told.append(rows)
    rows = np.concatenate(told)
    assert len(np.unique(OF[rows])) == 80
    assert sorted(search.matches()) == sorted(rows[TRUTH[rows] == 1.0])
    assert TRUTH[rows].sum() > 0.5 * TRUTH.sum()


@pytest.mark.parametrize("budget", [3, 5, 20])
@pytest.mark.parametrize("name", sorted(AGGREGATE))
def test_no_interval_reaches_beyond_what_the_rows_that_are_left_can_add(name, budget):
    for seed in range(5):
        sampler = sample(seed, budget=budget, name=name)
        rows, y = sampler.labelled, sampler.answers
        for estimate, weights in (
            (sampler.estimate(), np.ones(len(OF))),
            (sampler.total(VALUE[rows] * y, weights=VALUE), VALUE),
        ):
            seen = float((weights[rows] * y).sum())
            left = float(np.delete(weights, rows).sum())
            assert seen - 1e-6 <= estimate.low <= estimate.high <= seen + left + 1e-6
