"""The rivals of COUNT, re-implemented: on rows that are easily told apart they are right, and each keeps to its calls."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("faiss")
from uql.benchmarks.sampling.rivals import RivalRow, csv_votes, proxy_of
from uql.sampling.base import Floats, Indices
from uql.sampling.surrogate import Matrix

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


def test_calls_for_an_error_follow_the_line_through_the_errors_between_few_and_all() -> None:
    budgets = (100, 400, 1600)
    falling = RivalRow("p", 50_000, "m", (0.2, 0.1, 0.05), (0.0, 0.0, 0.0))
    assert falling.calls_for(0.05, budgets) == pytest.approx(1600)
    assert falling.calls_for(0.1, budgets) == pytest.approx(400)
    assert falling.calls_for(0.4, budgets) == pytest.approx(25)
    assert falling.calls_for(0.9, budgets) == pytest.approx(16)
    assert falling.calls_for(0.001, budgets) == pytest.approx(50_000)
    assert RivalRow("p", 50_000, "m", (0.2, 0.2, 0.3), (0.0, 0.0, 0.0)).calls_for(0.1, budgets) == 50_000
    assert RivalRow("p", 50_000, "m", (0.01, 0.01, 0.01), (0.9, 0.9, 0.9)).calls_for(0.1, budgets) == 50_000
