"""The correction for a model that errs."""

import numpy as np
import pytest

from uql.sampling import intervals
from uql.sampling.base import Estimate
from uql.sampling.model_errors import Audit, corrected, corrected_mean, mean_of_judged
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


def audited_means(shape, budget, runs, rng):
    """(runs, 2) errors of the mean before and after the audit, and how often its interval holds, with 10 % wrong answers."""
    errors, held, n = [], 0, 2500
    for _ in range(runs):
        truth = rng.random(n) < (0.04 if shape == "rare" else 0.15)
        value = rng.lognormal(3.0, 1.3, n) if shape == "skewed" else rng.gamma(4.0, 25.0, n)
        wrong = np.where(value > np.median(value), 0.18, 0.02) if shape == "dependent" else np.full(n, 0.1)
        said = truth ^ (rng.random(n) < wrong)
        order = np.argsort(value) if shape == "first" else rng.permutation(n)
        judged = [order[part[order]][:100] for part in (truth, ~truth)]
        hits = [int(said[rows].sum()) for rows in judged]
        matches = tuple((np.arange(len(rows)), rows) for rows in judged)
        audit = Audit(len(judged[0]), hits[0], len(judged[1]), hits[1], matches)
        seen = said[rng.permutation(n)[:budget]].sum()
        of = rng.choice(value[said], max(int(seen), 3), replace=False)
        half = 1.96 * of.std(ddof=1) / np.sqrt(len(of))
        count = Estimate(float(seen) * n / budget, *intervals.count(int(seen), budget, n, 0.95))
        plain = Estimate(of.mean(), of.mean() - half, of.mean() + half)
        bounds = (float(value.min()), float(value.max()))
        found = corrected_mean(plain, count, float(value.mean()), n, audit, bounds, float(value.var()))
        found = mean_of_judged(found, corrected(count, n, audit), value, np.ones(n), audit)
        wanted = value[truth].mean()
        errors.append((plain.value / wanted - 1, (found.value or plain.value) / wanted - 1))
        held += found.low <= wanted <= found.high
    return np.array(errors), held / runs


@pytest.mark.thorough
@pytest.mark.parametrize("shape", ["independent", "dependent", "skewed", "rare"])
@pytest.mark.parametrize("budget", [64, 256])
def test_an_audited_mean_errs_less_and_holds_however_the_errors_depend_on_the_value(shape, budget):
    errors, held = audited_means(shape, budget, 200, np.random.default_rng(3))
    before, after = np.sqrt((errors**2).mean(axis=0))
    assert after < before and held >= 0.93


def test_judged_rows_that_are_not_random_in_the_value_do_not_make_its_mean():
    assert audited_means("first", 256, 200, np.random.default_rng(3))[1] >= 0.93


def test_judged_rows_stand_for_the_mean_of_the_rows_equal_to_them():
    audit = Audit(2, 2, 1, 0, ((np.array([0, 0, 3]), np.array([1, 2, 4])), (np.array([1]), np.array([0]))))
    yes, no = audit.values(np.array([9.0, 2.0, 4.0, 7.0, 5.0]))
    assert yes.tolist() == [3.0, 5.0] and no.tolist() == [9.0]
    assert audit.values(np.array([np.nan, np.nan, 4.0, 7.0, 5.0]))[0].tolist() == [4.0, 5.0]
