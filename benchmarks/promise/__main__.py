"""Precision and recall of .9 at 95 %, by a cheap model and the dear one: `python -m uql.benchmarks.promise`.

For each predicate and cheap model: the mean of the rows that the dear model was asked, and in how many seeds the set returned had a
precision or a recall below the target. The labels are the dear model. No engine runs: methods see arrays.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import predicates
from uql.benchmarks.guarantees.bounds import allowed
from uql.benchmarks.promise import bargain, lotus, supg, unstated
from uql.benchmarks.promise.tables import CHEAP, HELD_OUT, TUNED, Dear, Method, Table, table
from uql.benchmarks.sampling.worlds import world
from uql.sampling.base import Indices
from uql.sampling.promise import PromiseSearch
from uql.sampling.surrogate import Matrix

TARGET, DELTA = 0.9, 0.05
ROWS = 10_000  # random ones of a larger table
SEEDS = 200


def ours(table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float) -> Indices:
    """The rows that the engine's search returns: by the score and the embeddings, as the engine has them."""
    return _searched(table.features, table, dear, rng, precision, recall, delta)


def by_score(
    table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float
) -> Indices:
    """The same by the score alone, which is all that the other methods see."""
    return _searched(table.alone, table, dear, rng, precision, recall, delta)


def _searched(
    features: Matrix,
    table: Table,
    dear: Dear,
    rng: np.random.Generator,
    precision: float,
    recall: float,
    delta: float,
) -> Indices:
    n = len(table.truth)
    search = PromiseSearch(
        n, n, rng=rng, features=features, prior=table.prior, precision=precision, recall=recall, confidence=1 - delta
    )
    while len(rows := search.propose(n)):
        search.tell(rows, dear(rows))
    return search.returned()


METHODS: dict[str, Method] = {
    "uql": ours,
    "uql, score alone": by_score,
    "lotus": lotus.cascade,
    "supg": supg.both,
    "bargain": bargain.both,
    "csv": unstated.csv,
    "bigquery": unstated.bigquery,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One predicate, cheap model and method: mean calls of the dear model, and the seeds whose set missed a target."""

    predicate: str
    cheap: str
    method: str
    rows: int
    calls: float
    missed: int
    seeds: int


def cells(
    names: Sequence[str], kinds: Sequence[str], seeds: int, methods: Sequence[str] = tuple(METHODS)
) -> Iterator[Cell]:
    """Each cell as soon as it is known.

    Args:
        names: predicates of EXAMPLES.toml.
        kinds: of `CHEAP`.
        seeds: runs of a cell; each has a cheap model of its own.
        methods: of `METHODS`.
    """
    for name in names:
        w = world(next(p for p in predicates() if p.name == name), True)
        some = np.sort(np.random.default_rng(0).permutation(w.n)[:ROWS])
        truth, matrix, prior = w.truth[some], np.ascontiguousarray(w.matrix[some]), w.prior[some]
        for kind in kinds:
            for method in methods:
                calls, missed = [], 0
                for seed in range(seeds):
                    made = table(kind, truth, matrix, prior, np.random.default_rng([seed, 1]))
                    dear = Dear(truth)
                    rows = METHODS[method](made, dear, np.random.default_rng([seed, 2]), TARGET, TARGET, DELTA)
                    calls.append(len(dear.asked))
                    missed += not holds(truth, rows)
                yield Cell(name, kind, method, len(truth), float(np.mean(calls)), missed, seeds)


def holds(truth: np.ndarray, rows: Indices) -> bool:
    """Do the rows have both targets?"""
    hits, matches = float(truth[rows].sum()), float(truth.sum())
    precise = not len(rows) or hits / len(rows) >= TARGET - 1e-12
    return precise and (not matches or hits / matches >= TARGET - 1e-12)


def show(found: Iterator[Cell]) -> list[Cell]:
    """Print a line for each cell, then by cheap model the geometric means of the calls and the cells that fail."""
    shown = []
    print(f"{'predicate':<14}{'cheap model':<15}{'method':<18}{'rows':>8}{'dear calls':>12}{'missed':>8}{'allowed':>9}")
    for cell in found:
        shown.append(cell)
        print(
            f"{cell.predicate:<14}{cell.cheap:<15}{cell.method:<18}{cell.rows:>8,}{cell.calls:>12,.0f}{cell.missed:>8}"
            f"{allowed(cell.seeds, DELTA):>9.1f}{'' if cell.missed <= allowed(cell.seeds, DELTA) else '  FAILS'}",
            flush=True,
        )
    print(
        f"\n{'cheap model':<15}{'method':<18}{'dear calls, geometric mean':>28}{'over uql':>10}{'cells that fail':>17}"
    )
    for kind in dict.fromkeys(c.cheap for c in shown):
        base = _mean([c for c in shown if c.cheap == kind and c.method == "uql"])
        for method in dict.fromkeys(c.method for c in shown):
            own = [c for c in shown if c.cheap == kind and c.method == method]
            failing = sum(c.missed > allowed(c.seeds, DELTA) for c in own)
            print(f"{kind:<15}{method:<18}{_mean(own):>28,.0f}{_mean(own) / base:>10.2f}{failing:>11} of {len(own)}")
    return shown


def _mean(found: list[Cell]) -> float:
    return float(np.exp(np.mean([np.log(c.calls) for c in found]))) if found else float("nan")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 where a cell of our own fails."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.promise", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--held-out", action="store_true", help="the predicates that nothing was tuned on")
    parser.add_argument("--predicate", action="append", help="in place of the eight")
    parser.add_argument("--cheap", choices=CHEAP, action="append")
    parser.add_argument("--method", choices=tuple(METHODS), action="append")
    given = parser.parse_args(arguments)
    names = given.predicate or (HELD_OUT if given.held_out else TUNED)
    found = show(cells(names, given.cheap or CHEAP, given.seeds, given.method or tuple(METHODS)))
    return int(any(c.method == "uql" and c.missed > allowed(c.seeds, DELTA) for c in found))


if __name__ == "__main__":
    raise SystemExit(main())
