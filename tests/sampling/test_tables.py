"""The tables of the guarantee benchmark: how cells are judged, what the made-up tables are, and that rows come."""

import math

import numpy as np
import pytest

from uql.benchmarks.guarantees import coverage, promises
from uql.benchmarks.guarantees.bounds import covers, keeps
from uql.benchmarks.guarantees.proxies import KINDS, proxied
from uql.benchmarks.sampling import error_targets
from uql.benchmarks.sampling.unseen import Unseen
from uql.kernels.estimates.error_target import PILOT_ROWS
from uql.sampling.intervals import beta_of_moments, clopper_pearson


def test_a_cell_fails_only_where_its_seeds_show_it():
    assert covers(920, 1000, 0.95) and not covers(890, 1000, 0.95)
    assert covers(17, 20, 0.95) and not covers(12, 20, 0.95)
    assert keeps(66, 1000, 0.05) and not keeps(67, 1000, 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_proxies_tell_as_much_as_their_kind_says(kind):
    table = proxied(20_000, 0.1, kind, np.random.default_rng(0))
    assert table.truth.mean() == pytest.approx(0.1, abs=0.02)
    assert (table.features**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-3)
    top = table.truth[np.argsort(-table.prior)[:500]].mean()
    assert {"useless": 0.05 < top < 0.2, "inverted": top < 0.05}.get(kind, top > 0.6)


def test_coverage_has_a_row_for_every_number_of_a_case():
    found = coverage._case(coverage.made_up(0.3, "signed"), 3, 128, 0.95, "asd")
    assert {row.statistic for row in found} >= {"COUNT", "SUM", "AVG", "ratio of counts", "MAX, at least"}
    assert all(row.seeds == 3 and 0 <= row.held <= 3 for row in found)


@pytest.mark.parametrize("promise", ["recall", "precision"])
def test_promises_have_a_row_for_every_cell(promise):
    found = promises.rows(
        20, targets=(0.8,), deltas=(0.2,), shares=(0.1,), kinds=("calibrated",), promises=(promise,), n=600, data=False
    )
    (row,) = found
    assert row.seeds == 20 and row.nominal == pytest.approx(0.8) and 0 < row.cost <= 1


def test_runs_that_share_a_search_draw_their_checks_apart():
    (table, seed) = next(iter(promises.made_up(range(1), 0.1, "useless", 600)))
    runs = promises.recall_trials(table, 0.9, 0.05, seed, 10)
    alone = promises.recall_trials(table, 0.9, 0.05, seed)
    assert len(runs) == 10 and runs[0] == alone[0]
    assert len({reached for _, _, reached in runs}) > 1  # which rows a check holds differs
    tests = promises.precision_trials(table, 0.8, 0.2, seed, 10)
    assert len(tests) == 10 and tests[0] == promises.precision_trials(table, 0.8, 0.2, seed)[0]


def test_the_best_budget_is_found_between_two_that_are_tried():
    tried = []

    def width(budget):
        tried.append(budget)
        return math.sqrt(2 / budget)

    assert error_targets.best_budget(width, 0.1, 320, 5000) == pytest.approx(200, rel=0.1) and len(tried) <= 4
    assert error_targets.best_budget(lambda budget: 0.0 if budget > 90 else 1.0, 0.1, 100, 100) <= 100


def test_an_error_takes_few_more_calls_than_the_best_fixed_budget_and_fewer_than_a_uniform_sample():
    rng = np.random.default_rng(0)
    words = np.array(["goal match keeper striker", "vote party law minister"])
    truth = (rng.random(1200) < 0.3).astype(np.float64)
    texts = [f"{' '.join(rng.permutation(words[int(yes)].split()))} of number {i}" for i, yes in enumerate(truth)]
    row = error_targets.target_row(Unseen("made up", "made up", texts, "it is about politics", truth), 0.15, 6)
    assert row.reached == 1 and row.held >= 0.5 and row.rows == 1200
    assert row.calls <= 1.3 * max(row.fixed, PILOT_ROWS[0]) and row.calls <= row.uniform


@pytest.mark.slow
def test_a_recall_of_nine_in_ten_of_rare_rows_asks_no_more_than_three_in_five():
    row = promises.cost_row(20)  # its cost is .24: twenty trials are far from the three in five
    assert row.passed and row.seeds == 20 and row.cost <= promises.COST_TARGET and row.nominal == pytest.approx(0.95)


def test_an_interval_from_moments_is_near_the_exact_one_of_a_binomial_count():
    for hits, n in ((2, 100), (10, 100), (40, 100)):
        share = hits / n
        low, high = beta_of_moments(share, share * (1 - share) / n, 1 / n, 0.95)
        exact = clopper_pearson(hits, n, 0.95)
        assert low == pytest.approx(exact[0], abs=0.012) and high == pytest.approx(exact[1], abs=0.012)


def test_one_event_seen_far_from_others_leaves_no_wider_interval_than_it_can_prove():
    low, high = beta_of_moments(0.002, 0.0001, 0.015, 0.95)  # a spread five times the share
    assert low < 1e-6 and 0.02 < high < 0.09
    assert beta_of_moments(0.0, 0.0, 0.01, 0.95)[0] == 0.0


def test_bounds_stand_beside_what_was_counted(tmp_path):
    from uql.benchmarks.guarantees.bounds import allowed, at_most
    from uql.benchmarks.sampling.long import Unit, page

    assert at_most(930, 1000) == pytest.approx(clopper_pearson(930, 1000, 0.999, two_sided=False)[1])
    assert 66 < allowed(1000, 0.05) < 67
    numbers = {"width": 0.1, "error": 0.01}
    trials = {
        Unit(0, "coverage", "0.3 even", 128): [{"statistic": "COUNT", "held": i > 0, **numbers} for i in range(10)],
        Unit(0, "coverage", "groups of a", 128): [
            {"statistic": f"COUNT of a group that a model names: {g}", "held": True, **numbers}
            for g in ("x 0.6", "y 0.4")
            for _ in range(10)
        ],
        Unit(0, "recall", "useless 0.1", 0, 0.9, 0.05): [{"held": True, "cost": 0.5, "value": 1.0}] * 10,
    }
    said = page(trials)
    assert f"| COUNT | 1 | 0 | 0.900 | {at_most(9, 10):.3f} | 0.900 |" in said
    assert "| COUNT of a group that a model names | 2 | 0 | 1.000 |" in said
    assert f"| 0.9 | 0.05 | 1 | 10 to 10 | 0 | 0.000 | {allowed(10, 0.05) / 10:.3f} | 0.50 |" in said
