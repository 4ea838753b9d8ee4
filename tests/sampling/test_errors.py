"""The correction for a model that errs."""

import numpy as np
import pytest

from uql.sampling import intervals
from uql.sampling.base import Estimate
from uql.sampling.model_errors import Audit, corrected, corrected_mean
from uql.sampling.uniform import UniformSampler


@pytest.mark.parametrize(("tpr", "fpr"), [(0.95, 0.05), (0.9, 0.01), (0.9, 0.1)])
def test_the_corrected_count_is_near_the_truth_and_covers(tpr, fpr):
    rng = np.random.default_rng(0)
    n, share, held, values = 5000, 0.2, 0, []
    truth = np.zeros(n)
    truth[: int(share * n)] = 1
    for _ in range(200):
        said = np.where(truth == 1, rng.random(n) < tpr, rng.random(n) < fpr).astype(float)
        sampler = UniformSampler(n, 300, rng=rng)
        rows = sampler.propose(300)
        sampler.tell(rows, said[rows])
        audit = Audit(100, int(rng.binomial(100, tpr)), 200, int(rng.binomial(200, fpr)))
        found = corrected(sampler.estimate(), n, audit)
        values.append(found.value)
        held += found.low <= share * n <= found.high
    assert abs(np.mean(values) - share * n) < 0.05 * share * n
    assert held / 200 >= 0.93 - 3 * np.sqrt(0.0475 / 200)


def test_an_audit_that_shows_nothing_gives_the_whole_range():
    found = corrected(Estimate(10.0, 5.0, 20.0), 100, Audit(10, 5, 10, 5))
    assert (found.value, found.low, found.high) == (None, 0.0, 100.0)
    assert corrected(Estimate(10.0, 5.0, 20.0), 100, Audit(0, 0, 10, 0)).high == 100.0


def test_corrected_sums_and_means_hold_as_often_as_stated_however_the_values_depend_on_the_truth():
    rng = np.random.default_rng(7)
    n, tpr, fpr, runs = 4_000, 0.85, 0.06, 400
    truth = rng.random(n) < 0.12
    value = rng.gamma(2.0, 1.0, n) + 2.0 * truth
    wanted = {"sum": float(value[truth].sum()), "mean": float(value[truth].mean())}
    held = {"sum": 0, "mean": 0}
    for _ in range(runs):
        said = np.where(truth, rng.random(n) < tpr, rng.random(n) < fpr)
        audit = Audit(150, int(rng.binomial(150, tpr)), 300, int(rng.binomial(300, fpr)))
        added, count = float(value[said].sum()), float(said.sum())
        whole, bounds = float(value.sum()), (float(value.min()), float(value.max()))
        found = {
            "sum": corrected(Estimate(added, added, added), whole, audit, squares=float((value**2).sum())),
            "mean": corrected_mean(
                Estimate(added / count, added / count, added / count),
                Estimate(count, count, count),
                float(value.mean()),
                n,
                audit,
                bounds,
                float(value.var()),
            ),
        }
        for name, one in found.items():
            held[name] += one.low <= wanted[name] <= one.high
    assert all(count / runs >= 0.92 for count in held.values()), held


def test_a_mean_without_more_yes_than_false_alarms_is_open():
    audit = Audit(50, 45, 200, 20)
    found = corrected_mean(Estimate(3.0, 2.0, 4.0), Estimate(90.0, 60.0, 120.0), 2.0, 1000, audit, (0.0, 9.0), 1.0)
    assert found.value is None and (found.low, found.high) == (0.0, 9.0)


def test_the_interval_of_an_impossible_middle_keeps_its_width():
    found = corrected(Estimate(50.0, 30.0, 70.0), 1000, Audit(yes=100, hits=90, no=400, false_alarms=80))
    assert found.low == 0 <= found.value < found.high


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2, 0.3])
def test_an_audited_count_errs_less_where_false_alarms_and_misses_do_not_cancel(share):
    rng = np.random.default_rng(0)
    n, said, fixed = 5000, [], []
    for _ in range(200):
        truth = rng.random(n) < share
        answers = np.where(rng.random(n) < 0.1, ~truth, truth)
        seen = answers[rng.permutation(n)[:128]].sum()
        low, high = intervals.count(int(seen), 128, n, 0.95)
        found = Estimate(float(seen) * n / 128, low, high)
        of = [answers[rng.choice(np.flatnonzero(part), 100)] for part in (truth, ~truth)]
        better = corrected(found, n, Audit(100, int(of[0].sum()), 100, int(of[1].sum())))
        said.append(found.value / truth.sum() - 1)
        fixed.append(better.value / truth.sum() - 1)
    assert np.mean(np.square(fixed)) < np.mean(np.square(said))
