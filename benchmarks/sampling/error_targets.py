"""Calls of `error = x`, beside the best fixed budget of the same engine and a uniform sample, over predicates on which nothing was chosen.

`python -m uql.benchmarks.sampling.error_targets` prints a row for each predicate, and their median.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import duckdb
import numpy as np
import pyarrow as pa

import uql
from uql.benchmarks.optimizer.label_model import Labels
from uql.benchmarks.sampling.unseen import Unseen, predicates
from uql.kernels.estimates.error_target import half_width, rows_needed
from uql.sampling.base import Estimate

NAMES = (  # of short texts, which are quickly embedded
    "mmqa_image", "mmqa_compare", "tatqa_computed", "nvbench_pie", "art_portrait",
    "art_religious", "numbers_even", "tw_positive", "nvbench_scatter", "numbers_tenth",
)  # fmt: skip
ROWS = 3_000  # a random part of larger tables
SEEDS_OF_A_BUDGET = 5
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class TargetRow:
    """Calls of one predicate, each the median over seeds; `uniform`: rows of a uniform sample; `reached`, `held`: shares of the seeds."""

    name: str
    rows: int
    share: float
    calls: float
    fixed: float
    uniform: float
    reached: float
    held: float


def target_row(predicate: Unseen, error: float, seeds: int) -> TargetRow:
    """One predicate.

    Args:
        error: the relative half-width that is asked for.
        seeds: of the runs with a target.
    """
    truths = dict(zip(predicate.texts, (bool(yes) for yes in predicate.truth), strict=True))
    texts = list(truths)
    if len(texts) > ROWS:
        texts = [texts[i] for i in np.sort(np.random.default_rng(0).choice(len(texts), ROWS, replace=False))]
    duck = duckdb.connect()
    duck.register("given", pa.table({"id": np.arange(len(texts)), "text": texts}))
    duck.execute("CREATE TABLE t AS FROM given")
    model = Labels(predicate.name, {predicate.condition: truths})

    def counted(options: str) -> tuple[Estimate, int]:
        with uql.attach(duck, model=model, ledger=":memory:", examples=False) as con:
            result = con.uql(f'SELECT COUNT(*) AS n FROM t WHERE "{predicate.condition}" WITH ({options})')
            found = result.estimates["n"]
            assert isinstance(found, Estimate)
            return found, result.cost.calls

    total = sum(truths[text] for text in texts)
    runs = [counted(f"error = {error}, seed = {seed}") for seed in range(seeds)]
    calls = median(n for _, n in runs)

    def width(budget: int) -> float:
        return median(half_width(counted(f"budget = {budget}, seed = {seed}")[0]) for seed in range(SEEDS_OF_A_BUDGET))

    share = total / len(texts)
    return TargetRow(
        predicate.name,
        len(texts),
        share,
        calls,
        best_budget(width, error, calls, len(texts)),
        rows_needed((1 - share) / share, error, len(texts), CONFIDENCE),
        float(np.mean([half_width(e) <= error for e, _ in runs])),
        float(np.mean([e.low is not None and e.high is not None and e.low <= total <= e.high for e, _ in runs])),
    )


def best_budget(width: Callable[[int], float], error: float, first: float, n: int) -> float:
    """The fewest calls at which half an interval is `error`, between two budgets by 1/width², which grows with the calls.

    Args:
        width: half an interval over its value at a budget.
        first: calls to begin at.
        n: rows in all.
    """
    budget = min(int(first), n)
    below, above = (0.0, 0.0), (float(n), float("inf"))  # calls and 1/width²
    wanted = 1 / error**2
    for _ in range(4):
        found = width(budget)
        precise = max(1 / found**2, 1e-9) if found else float("inf")  # an open interval is of no use
        if precise >= wanted:
            above = float(budget), precise
        else:
            below = float(budget), precise
        if abs(precise / wanted - 1) < 0.1:
            break
        budget = (
            int(min(max(budget * wanted / precise, below[0] + 1), above[0] - 1))
            if np.isfinite(precise)
            else budget * 3 // 4
        )
        if not below[0] < budget < above[0]:
            break
    if not np.isfinite(above[1]) or above[0] <= below[0]:
        return above[0]
    return below[0] + (above[0] - below[0]) * (wanted - below[1]) / (above[1] - below[1])


def target_rows(error: float, seeds: int, names: tuple[str, ...] = NAMES) -> Iterator[TargetRow]:
    """A row for each predicate of those names."""
    return (target_row(predicate, error, seeds) for predicate in predicates() if predicate.name in names)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.sampling.error_targets", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--error", type=float, default=0.1)
    parser.add_argument("--predicate", action="append", choices=NAMES)
    given = parser.parse_args()
    print("predicate         rows  share  calls  best fixed  ratio  uniform  reached  held")
    ratios = []
    for row in target_rows(given.error, given.seeds, tuple(given.predicate or NAMES)):
        ratios.append(row.calls / row.fixed)
        print(
            f"{row.name:<16} {row.rows:>5} {row.share:>6.1%} {row.calls:>6.0f} {row.fixed:>11.0f} {ratios[-1]:>6.2f} "
            f"{row.uniform:>8.0f} {row.reached:>8.2f} {row.held:>5.2f}",
            flush=True,
        )
    print(f"median of calls over the best fixed budget: {median(ratios):.2f} (at most 1.3)")


if __name__ == "__main__":
    main()
