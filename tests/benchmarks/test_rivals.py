"""The rivals of COUNT, re-implemented: on rows that are easily told apart they are right, and each keeps to its calls. What is said of
their errors is not clipped, and a run without an answer is a failure and no error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uql.benchmarks import headline
from uql.benchmarks.datasets.labelled import Predicate
from uql.benchmarks.promise import __main__ as promise
from uql.benchmarks.promise.__main__ import Cell, cells
from uql.benchmarks.rival_tables import best_count, best_sets, count_summaries, count_tables, set_summaries, set_tables
from uql.benchmarks.sampling import rivals
from uql.benchmarks.sampling.rival_methods import RIVALS, csv_votes, proxy_of
from uql.benchmarks.sampling.rivals import OURS, RivalRow, Run, errors_of, run_once
from uql.benchmarks.sampling.worlds import World
from uql.sampling.base import Floats, Indices, Matrix

pytestmark = pytest.mark.skipif(
    not (find_spec("sklearn") and find_spec("faiss")), reason="the extra uqe is not installed"
)
N = 3_000


class Labels:
    """Answers rows, and counts each question."""

    def __init__(self, truth: Floats) -> None:
        self.truth, self.calls = truth, 0

    def __call__(self, rows: Indices) -> Floats:
        self.calls += len(rows)
        return self.truth[rows]


def apart(share: float, distance: float) -> tuple[Matrix, Floats]:
    """Rows of two kinds, that many units apart in the first column."""
    rng = np.random.default_rng(1)
    truth = (rng.random(N) < share).astype(np.float64)
    matrix = rng.normal(size=(N, 8)).astype(np.float32)
    matrix[:, 0] += distance * truth
    return matrix, truth


def test_clusters_that_agree_vote_as_wholes_within_the_calls() -> None:
    matrix, truth = apart(0.3, 30.0)
    ask = Labels(truth)
    rows, shares = csv_votes(matrix, ask, 256, np.random.default_rng(0), 0)
    assert sorted(np.concatenate(rows).tolist()) == list(range(N))
    assert set(shares) == {0.0, 1.0}
    assert sum(len(r) * s for r, s in zip(rows, shares, strict=True)) == truth.sum()
    assert ask.calls <= 256


@pytest.mark.parametrize("budget", [64, 200, 1000])
def test_clusters_that_never_agree_cost_no_more_than_the_calls(budget: int) -> None:
    matrix, truth = apart(0.5, 0.0)
    ask = Labels(truth)
    rows, shares = csv_votes(matrix, ask, budget, np.random.default_rng(0), 0)
    assert ask.calls <= budget
    assert sum(map(len, rows)) == N
    assert all(0.0 <= s <= 1.0 for s in shares)


def test_a_proxy_is_used_where_its_check_passes_and_refused_where_it_fails() -> None:
    matrix, truth = apart(0.3, 30.0)
    chances = proxy_of(matrix, Labels(truth), 200, np.random.default_rng(0))
    assert chances is not None and ((chances > 0.5) == truth).all()
    matrix, truth = apart(0.3, 0.2)
    assert proxy_of(matrix, Labels(truth), 200, np.random.default_rng(0)) is None
    assert proxy_of(matrix, Labels(np.zeros(N)), 200, np.random.default_rng(0)) is None


def row(
    method: str, errors: tuple[float | None, ...], failed: tuple[float, ...] = (), predicate: str = "p"
) -> RivalRow:
    budgets = (100, 400, 1600)[: len(errors)]
    return RivalRow(predicate, 50_000, method, 20, 40.0, budgets, errors, errors, failed or (0.0,) * len(errors))


def test_calls_for_an_error_follow_the_line_through_the_errors_wherever_it_leads() -> None:
    falling = row("m", (0.2, 0.1, 0.05))
    assert falling.calls_for(0.05) == pytest.approx(1600)
    assert falling.calls_for(0.4) == pytest.approx(25)
    assert falling.calls_for(0.8) == pytest.approx(6.25)
    assert falling.calls_for(0.001) == pytest.approx(4_000_000)
    assert [falling.bounded(falling.calls_for(error)) for error in (0.8, 0.1, 0.001)] == pytest.approx(
        [16, 400, 50_000]
    )


def test_a_method_whose_runs_fail_or_whose_error_does_not_fall_has_no_calls_to_give() -> None:
    rising = row("m", (0.2, 0.2, 0.3))
    failing = row("m", (0.01, 0.01, 0.01), (0.9, 0.9, 0.9))
    assert rising.calls_for(0.1) is None and failing.calls_for(0.1) is None
    assert rising.calls_for(0.25) == 100
    assert rising.bounded(None) == 50_000


def test_a_run_without_an_answer_is_in_no_error_and_is_counted() -> None:
    runs = [Run(130.0, 3, 200), Run(None, 3, 200), Run(-50.0, 10, 200)]
    plain, clipped, failures = errors_of(runs, 100.0)
    assert plain == pytest.approx(((0.3**2 + 1.5**2) / 2) ** 0.5)
    assert clipped == pytest.approx(((0.3**2 + 0.9**2) / 2) ** 0.5)
    assert failures == pytest.approx(1 / 3)
    assert errors_of([Run(None, 0, 1)], 100.0) == (None, None, 1.0)


def test_the_estimate_of_the_engine_is_given_as_it_is_before_it_is_clipped() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(400, 4)).astype(np.float32) / 2
    truth = (rng.random(400) < 0.02).astype(np.float64)
    w = World(
        Predicate("p", "d", "c", "l", "it is so", (), ()),
        matrix,
        matrix[:, 0].astype(np.float64),
        truth,
        truth,
        np.arange(400),
    )
    runs = [run_once(w, OURS, 40, seed) for seed in range(40)]
    assert any(run.value < run.least for run in runs if run.value is not None)


def test_the_table_of_counting_says_who_has_no_calls_to_give_and_whether_the_goal_is_reached() -> None:
    rows = [row(OURS, (0.1,)), row("good", (0.2, 0.1, 0.05)), row("bad", (None, None, None), (1.0, 1.0, 1.0))]
    summaries = {each.method: each for each in count_summaries(rows)}
    assert (
        summaries["bad"].without,
        summaries["bad"].calls,
        summaries["bad"].bounded_calls,
        summaries["bad"].failures,
    ) == (
        1,
        (),
        pytest.approx(50_000),
        1.0,
    )
    assert summaries["good"].calls == pytest.approx((400,))
    assert best_count(list(summaries.values())) == ("good", pytest.approx(400 / 128))
    summary, by_predicate, by_budget = count_tables(rows)
    assert "takes 3.12 times the calls of uql: the goal of 1.5 is reached" in summary.notes[-1]
    assert by_predicate.rows == (("p", "50,000", "0.100", "400", "none"),)
    assert by_budget.rows[-1] == ("bad", "–", "–", "–", "–")


def test_the_best_rival_of_stated_sets_is_one_whose_statement_holds() -> None:
    rows = [
        Cell("p", "noisy", "uql", 10_000, 1000.0, 0, 20, 40.0),
        Cell("p", "noisy", "lotus", 10_000, 500.0, 19, 20, 40.0),
        Cell("p", "noisy", "bargain", 10_000, 1400.0, 0, 20, 40.0),
    ]
    summaries = set_summaries(rows)
    assert [each.failing for each in summaries] == [0, 1, 0]
    assert best_sets(summaries) == ("bargain", pytest.approx(1.4))
    summary, by_predicate = set_tables(rows)
    assert summary.title == "Sets with a stated precision and recall, 20 seeds of 1 predicates"
    assert "takes 1.40 times the calls of uql: the goal of 1.5 is not reached" in summary.notes[-1]
    assert by_predicate.rows == (("p", "1,000", "500 fails", "1,400"),)


def test_cells_that_a_results_file_has_are_not_measured_again() -> None:
    done = [Cell("p", "noisy", "uql", 1, 1.0, 0, 2, 1.0)]
    assert list(cells(["p"], ["noisy"], 2, ["uql"], done)) == []


def test_the_commands_of_the_page_measure_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: dict[str, set[Any]] = {"count": set(), "sets": set()}

    def counts(predicate: Any, seeds: int, without: Collection[str]) -> Iterator[RivalRow]:
        for method in {OURS, "uqe", *RIVALS} - set(without):
            asked["count"].add((predicate.name, method, seeds))
            yield row(method, (0.2, 0.1), predicate=predicate.name)

    def sets(names: Sequence[str], kinds: Sequence[str], seeds: int, methods: Sequence[str], done: Any) -> list[Cell]:
        assert not done
        asked["sets"] |= {(name, kind, method, seeds) for name in names for kind in kinds for method in methods}
        return []

    monkeypatch.setattr(rivals, "rival_rows", counts)
    monkeypatch.setattr(rivals, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(promise, "cells", sets)
    kept = rivals.RESULTS.read_bytes()
    assert rivals.main(headline.RIVALS_AGAIN.split()[3:]) == promise.main(headline.SETS_AGAIN.split()[3:]) == 0
    assert asked["count"] == {(held.predicate, held.method, held.seeds) for held in rivals.read()}
    assert asked["sets"] >= {(held.predicate, held.cheap, held.method, held.seeds) for held in promise.read()}
    assert len(capsys.readouterr().out.splitlines()) >= len(asked["count"])
    assert rivals.RESULTS.read_bytes() == kept
