"""One contract for all methods: each check takes the function that makes a sampler and raises AssertionError with what
broke.

The tests run every check over every method of the tables; a method of one's own can be held against them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uql.sampling.base import AggregateSampler, Estimate, Floats, Indices, Matrix, RetrievalSampler
from uql.sampling.methods import MakeAggregate, MakeRetrieval


@dataclass(frozen=True)
class World:
    """A table whose answers are known.

    Attributes:
        features: (N, d) float32, mean squared row norm 1.
        prior: (N,) a score that is right more often than not.
        truth: (N,) 1 or 0.
        value: (N,) a positive number of each row.
        groups: (N,) 0 or 1.
    """

    features: Matrix
    prior: Floats
    truth: Floats
    value: Floats
    groups: Indices

    @classmethod
    def of(cls, n_rows: int, share: float, seed: int = 0, d: int = 8) -> World:
        """Truth is a noisy linear function of the features, with about that share of ones.

        Args:
            n_rows: N.
            share: of ones, in [0, 1].
            seed: of the generator.
            d: features a row.
        """
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(n_rows, d)).astype(np.float32) / np.float32(np.sqrt(d))
        score = features[:, 0] * np.sqrt(d) + 0.5 * rng.normal(size=n_rows)
        ones = round(share * n_rows)
        truth = np.zeros(n_rows)
        truth[np.argsort(-score)[:ones]] = 1.0
        prior = features[:, 0] + 0.3 * rng.normal(size=n_rows)
        return cls(features, prior, truth, rng.gamma(4.0, 1.0, n_rows), (rng.random(n_rows) < 0.3).astype(np.int64))

    def permuted(self, order: Indices) -> World:
        """The same table with its rows in another order."""
        features = np.ascontiguousarray(self.features[order])
        return World(features, self.prior[order], self.truth[order], self.value[order], self.groups[order])


def ask_all(
    sampler: AggregateSampler | RetrievalSampler, truth: Floats, batch: int = 16, unknown: Indices | None = None
) -> Indices:
    """Tell a sampler the truth of what it proposes until it proposes nothing; rows of `unknown` have no answer. The
    rows asked.

    Args:
        sampler: of N rows.
        truth: (N,) the answer of each row.
        batch: rows of each proposal, at most.
        unknown: rows that have no answer.
    """
    asked = [np.zeros(0, np.int64)]
    while len(rows := sampler.propose(batch)):
        answers = truth[rows].astype(np.float64)
        if unknown is not None:
            answers[np.isin(rows, unknown)] = np.nan
        sampler.tell(rows, answers)
        asked.append(rows)
    return np.concatenate(asked)


def run(
    make: MakeAggregate, world: World, budget: int, seed: int, batch: int = 1000, **kept: Any
) -> tuple[AggregateSampler, Indices]:
    """A sampler that was told everything it asked, and the rows it asked.

    Args:
        make: makes the sampler.
        world: its table.
        budget: rows that may be asked.
        seed: of the sampler.
        batch: rows of each proposal, at most.
        kept: further arguments of `make`.
    """
    sampler = make(
        len(world.truth),
        budget,
        rng=np.random.default_rng(seed),
        **{"features": world.features, "prior": world.prior, **kept},
    )
    return sampler, ask_all(sampler, world.truth, batch)


def check_same_seed_same_rows(make: MakeAggregate) -> None:
    """The generator that comes in is the only source of randomness."""
    world = World.of(400, 0.2)
    first, second = run(make, world, 64, seed=3), run(make, world, 64, seed=3)
    assert (first[1] == second[1]).all(), "the same seed asked other rows"
    assert first[0].estimate() == second[0].estimate(), "the same rows gave another estimate"


def check_budget_and_no_row_twice(make: MakeAggregate) -> None:
    """The budget is kept, and no row is asked twice, whatever the size of the batches; known rows are not asked."""
    world = World.of(400, 0.2)
    known = np.arange(10), world.truth[:10]
    for budget, batch in ((1, 1), (3, 2), (31, 7), (64, 1000), (0, 5)):
        sampler, asked = run(make, world, budget, 1, batch, known=known)
        assert len(asked) <= budget, f"{len(asked)} rows for a budget of {budget}"
        assert len(np.unique(asked)) == len(asked), "a row was asked twice"
        assert not np.isin(asked, known[0]).any(), "a known row was asked"
        assert len(sampler.labelled) == len(asked) + 10, "labelled is not the known rows and those asked"
        assert (sampler.labelled[:10] == known[0]).all(), "known rows do not come first"


def check_exact_when_all_is_asked(make: MakeAggregate) -> None:
    """N ≤ budget: every row is asked and the estimate is the truth, exact; so is it of one row, all true and all false."""
    for n, share in ((1, 1.0), (1, 0.0), (40, 0.3), (40, 0.0), (40, 1.0)):
        world = World.of(n, share)
        sampler, asked = run(make, world, 50, 0)
        found = sampler.estimate()
        total = float(world.truth.sum())
        assert len(asked) == n, f"{len(asked)} of {n} rows were asked"
        assert found.exact and found.value == found.low == found.high == total, f"not exact: {found}"


def check_intervals_hold_what_was_seen(make: MakeAggregate) -> None:
    """low is at least what was seen and high at most what may be, with no, all and few ones; N < 4B too."""
    for n, share, budget in ((300, 0.0, 128), (300, 1.0, 128), (300, 0.01, 64), (1000, 0.5, 32), (1000, 0.0, 40)):
        world = World.of(n, share)
        sampler, asked = run(make, world, budget, 5)
        found = sampler.estimate()
        yes = float(world.truth[asked].sum())
        assert found.value is not None and found.low is not None and found.high is not None
        assert yes <= found.low <= found.value <= found.high <= n - (len(asked) - yes), f"{found} after {yes} ones"
        assert not found.exact
        if yes == 0:
            least = n * (1 - 0.025 ** (1 / len(asked))) * (1 - len(asked) / n)
            assert found.high >= least - 1e-9, f"nothing found, but high is {found.high} < {least}"


def check_unknown_answers_widen(make: MakeAggregate) -> None:
    """u unknown rows: never exact, counted, and the interval holds all-no to all-yes of them."""
    world = World.of(60, 0.3)
    sampler = make(60, 60, rng=np.random.default_rng(0), features=world.features, prior=world.prior)
    ask_all(sampler, world.truth, 16, unknown=np.arange(5))
    found, sure = sampler.estimate(), float(world.truth[5:].sum())
    assert not found.exact and found.unknown == 5, f"5 rows are unknown: {found}"
    assert found.low == sure and found.high == sure + 5, f"not from all-no to all-yes: {found}"
    world = World.of(1000, 0.3)
    plain, _ = run(make, world, 64, 2)
    sampler = make(1000, 64, rng=np.random.default_rng(2), features=world.features, prior=world.prior)
    asked = ask_all(sampler, world.truth, 1000, unknown=np.arange(0, 1000, 10))
    u = int(np.isin(asked, np.arange(0, 1000, 10)).sum())
    wide = sampler.estimate()
    assert wide.unknown == u, f"{u} rows are unknown: {wide}"
    assert u == 0 or width(wide) > width(plain.estimate()), "unknown answers did not widen the interval"


def check_stopped_early(make: MakeAggregate) -> None:
    """A run that ends within its budget still gives an interval that can be read."""
    world = World.of(1000, 0.3)
    for told in (0, 1, 5, 20, 40):
        sampler = make(1000, 64, rng=np.random.default_rng(4), features=world.features, prior=world.prior)
        left = told
        while left and len(rows := sampler.propose(min(left, 8))):
            sampler.tell(rows, world.truth[rows])
            left -= len(rows)
        found = sampler.estimate()
        assert found.low is not None and found.high is not None
        assert 0 <= found.low <= found.high <= 1000, f"after {told} rows: {found}"
        assert found.calls == told


def check_telling_nonsense_is_refused(make: MakeAggregate) -> None:
    """A row that was not proposed, one told twice, and answers of another length are errors."""
    world = World.of(100, 0.3)
    sampler = make(100, 20, rng=np.random.default_rng(0), features=world.features, prior=world.prior)
    rows = sampler.propose(4)
    other = np.setdiff1d(np.arange(100), rows)[:1]
    for bad_rows, answers in ((other, np.zeros(1)), (rows, np.zeros(3)), (rows[[0, 0]], np.zeros(2))):
        try:
            sampler.tell(bad_rows, answers)
        except ValueError:
            continue
        raise AssertionError(f"told {bad_rows} with {len(answers)} answers, and nothing was said")
    sampler.tell(rows, world.truth[rows])


def errors(make: MakeAggregate, world: World, budget: int, seeds: int, **kept: Any) -> tuple[Floats, float]:
    """(seeds,) relative errors of the count, and the share of intervals that hold the truth.

    Args:
        make: makes the sampler.
        world: its table.
        budget: rows that may be asked.
        seeds: runs.
        kept: further arguments of `make`.
    """
    total = float(world.truth.sum())
    found = [run(make, world, budget, seed, **kept)[0].estimate() for seed in range(seeds)]
    return np.array([e.value or 0.0 for e in found]) / total - 1, float(np.mean([holds(e, total) for e in found]))


def check_unbiased_and_covering(make: MakeAggregate, seeds: int = 120) -> None:
    """The mean error is within 3.5 standard errors of 0, and intervals hold the truth in at least nominal − .02 − 3
    errors of runs."""
    world = World.of(1500, 0.15)
    error, coverage = errors(make, world, 64, seeds)
    noise = float(error.std(ddof=1)) / np.sqrt(seeds)
    assert abs(float(error.mean())) <= 3.5 * noise + 0.005, f"bias {error.mean():+.3f} ± {noise:.3f}"
    least = 0.93 - 3 * np.sqrt(0.95 * 0.05 / seeds)
    assert coverage >= least, f"coverage {coverage:.3f} of .95"


def check_order_of_rows_changes_nothing_in_law(make: MakeAggregate, seeds: int = 40) -> None:
    """The estimate has the same mean and spread when the rows stand in another order."""
    world = World.of(800, 0.2)
    other = world.permuted(np.random.default_rng(9).permutation(800))
    a, b = errors(make, world, 64, seeds)[0], errors(make, other, 64, seeds)[0]
    noise = np.sqrt(a.var(ddof=1) / seeds + b.var(ddof=1) / seeds)
    assert abs(a.mean() - b.mean()) <= 4 * noise + 0.005, "the order of the rows moved the estimate"
    assert 0.5 <= a.std() / b.std() <= 2.0, "the order of the rows changed the spread"


def check_totals_share_the_draws(make: MakeAggregate) -> None:
    """SUM, AVG, group totals and ratios come from the same rows, and agree where they must."""
    world = World.of(1500, 0.3)
    sampler, _ = run(make, world, 96, 7, size=world.value, groups=world.groups)
    rows, y = sampler.labelled, sampler.answers
    count = sampler.estimate()
    everything = sampler.total(np.ones(len(rows)), (0.0, 1.0))
    assert everything.value is not None and abs(everything.value - 1500) < 1500 * 0.35
    weighted = world.value[rows] * y
    total, mean = sampler.total(weighted, weights=world.value), sampler.ratio(weighted, y, weights=world.value)
    assert total.value is not None and mean.value is not None and count.value
    assert mean.low is not None and mean.high is not None
    assert world.value.min() <= mean.value <= world.value.max()
    assert mean.low <= mean.value <= mean.high
    parts = [sampler.total(y, domain=g).value or 0.0 for g in (0, 1)]
    assert abs(sum(parts) - count.value) <= 0.35 * count.value, f"groups {parts} beside {count.value}"
    share = sampler.ratio(y * (world.groups[rows] == 1), y)
    assert share.value is not None and share.low is not None and share.high is not None
    assert 0 <= share.low <= share.value <= share.high <= 1


def check_a_mean_is_as_sure_wherever_its_numbers_begin(make: MakeAggregate) -> None:
    """The mean of numbers such as years, read or stored, errs as that of the same numbers counted from 0, or 2000, does."""
    world = World.of(2000, 0.4)
    moved = world.value + 2000.0
    for groups, is_stored in ((None, False), (world.groups, False), (None, True), (world.groups, True)):
        sampler, _ = run(make, world, 100, seed=5, groups=groups)
        domain, passes = None if groups is None else 1, sampler.answers
        found = []
        for value in (world.value, moved):
            weights = value if is_stored else None
            found.append(sampler.ratio(passes * value[sampler.labelled], passes, weights=weights, domain=domain))
        near, far = found
        assert near.value is not None and far.value is not None
        assert abs(far.value - 2000.0 - near.value) < 1e-6, "numbers that begin elsewhere have another mean"
        assert width(far) < 1.2 * width(near) + 1e-6, "the interval is longer where numbers begin elsewhere"


AGGREGATE_CHECKS = (
    check_same_seed_same_rows,
    check_budget_and_no_row_twice,
    check_exact_when_all_is_asked,
    check_intervals_hold_what_was_seen,
    check_unknown_answers_widen,
    check_stopped_early,
    check_telling_nonsense_is_refused,
    check_unbiased_and_covering,
    check_order_of_rows_changes_nothing_in_law,
    check_totals_share_the_draws,
    check_a_mean_is_as_sure_wherever_its_numbers_begin,
)


def _search(make: MakeRetrieval, world: World, budget: int, seed: int = 0, **kept: Any) -> RetrievalSampler:
    return make(
        len(world.truth),
        budget,
        rng=np.random.default_rng(seed),
        **{"features": world.features, "prior": world.prior, "has_examples": True, **kept},
    )


def check_search_keeps_its_budget(make: MakeRetrieval) -> None:
    """The budget is kept, no row is asked twice, known rows are not asked, found rows match, the same seed asks the
    same rows."""
    world = World.of(400, 0.1)
    known = np.arange(10), world.truth[:10]
    for budget, batch in ((0, 3), (1, 1), (31, 7), (64, 1000), (500, 64)):
        sampler = _search(make, world, budget, known=known)
        asked = ask_all(sampler, world.truth, batch)
        assert len(asked) == min(budget, 390), f"{len(asked)} rows for a budget of {budget}"
        assert len(np.unique(asked)) == len(asked) and not np.isin(asked, known[0]).any()
        found = sampler.matches()
        assert world.truth[found].all() and len(np.unique(found)) == len(found)
        again = _search(make, world, budget, known=known)
        assert (ask_all(again, world.truth, batch) == asked).all(), "the same seed asked other rows"
    assert set(found.tolist()) == set(np.flatnonzero(world.truth).tolist()), "all was asked, not all was found"


def check_search_stops_at_its_limit(make: MakeRetrieval) -> None:
    """With a limit, nothing more is proposed once so many matching rows are known."""
    world = World.of(400, 0.3)
    sampler = _search(make, world, 400, limit=5)
    ask_all(sampler, world.truth, 1)
    assert len(sampler.matches()) == 5


def check_search_bears_odd_tables(make: MakeRetrieval) -> None:
    """One row, all true, all false, no features, no prior, unknown answers."""
    for n, share in ((1, 1.0), (50, 0.0), (50, 1.0)):
        world = World.of(n, share)
        sampler = _search(make, world, 30)
        assert len(ask_all(sampler, world.truth)) == min(n, 30)
    world = World.of(300, 0.2)
    for kept in ({"features": None}, {"prior": None}, {"features": None, "prior": None}, {"has_examples": False}):
        sampler = _search(make, world, 60, **kept)
        assert len(ask_all(sampler, world.truth, unknown=np.arange(0, 300, 3))) == 60
        assert not np.isin(sampler.matches(), np.arange(0, 300, 3)).any(), "an unknown row is among those found"


RETRIEVAL_CHECKS = (check_search_keeps_its_budget, check_search_stops_at_its_limit, check_search_bears_odd_tables)


def width(found: Estimate) -> float:
    """High less low."""
    assert found.low is not None and found.high is not None
    return found.high - found.low


def holds(found: Estimate, truth: float) -> bool:
    """Whether the interval holds the truth."""
    assert found.low is not None and found.high is not None
    return found.low <= truth + 1e-9 and truth <= found.high + 1e-9
