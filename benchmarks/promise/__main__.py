"""Precision and recall of .9 at 95 %, by a cheap model and the dear one: `python -m uql.benchmarks.promise`.

For each predicate and cheap model: the mean of the rows that the dear model was asked, and in how many seeds the set returned had a
precision or a recall below the target. The labels are the dear model. No engine runs: methods see arrays.

With `--results FILE` a line is added to the file for each cell, and a run that was stopped goes on; `uql.benchmarks.kept` makes the page of
benchmarks/promise/results.jsonl, which `--counted --cheap noisy --seeds 20` made, and of held_out.jsonl, which
`--held-out --cheap noisy --method uql --method lotus --method bargain` made.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from uql.benchmarks.datasets.labelled import predicates
from uql.benchmarks.guarantees.bounds import allowed
from uql.benchmarks.promise import bargain, lotus, supg, unstated
from uql.benchmarks.promise.tables import CHEAP, HELD_OUT, TUNED, Dear, Method, Table, table
from uql.benchmarks.runner import lines
from uql.benchmarks.sampling.aggregates import HARD
from uql.benchmarks.sampling.rivals import ROWS, prompt_tokens
from uql.benchmarks.sampling.worlds import world
from uql.sampling.base import Indices, Matrix
from uql.sampling.promise import PromiseSearch

TARGET, DELTA = 0.9, 0.05
RESULTS = Path(__file__).with_name("results.jsonl")
HELD_OUT_RESULTS = Path(__file__).with_name("held_out.jsonl")
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
    """One predicate, cheap model and method: mean calls of the dear model, and the seeds whose set missed a target.

    Attributes:
        tokens: of the prompt of a call, its mean.
    """

    predicate: str
    cheap: str
    method: str
    rows: int
    calls: float
    missed: int
    seeds: int
    tokens: float

    @property
    def fails(self) -> bool:
        """Is the statement false more often than chance explains?"""
        return self.missed > allowed(self.seeds, DELTA)


def cells(
    names: Sequence[str],
    kinds: Sequence[str],
    seeds: int,
    methods: Sequence[str] = tuple(METHODS),
    done: Iterable[Cell] = (),
) -> Iterator[Cell]:
    """Each cell as soon as it is known.

    Args:
        names: predicates of EXAMPLES.toml.
        kinds: of `CHEAP`.
        seeds: runs of a cell; each has a cheap model of its own.
        methods: of `METHODS`.
        done: cells that are left out.
    """
    without = {(cell.predicate, cell.cheap, cell.method) for cell in done if cell.seeds == seeds}
    for name in names:
        if all((name, kind, method) in without for kind in kinds for method in methods):
            continue
        w = world(next(p for p in predicates() if p.name == name), True, ROWS)
        truth, matrix, prior, tokens = w.truth, w.matrix, w.prior, prompt_tokens(w)
        for kind in kinds:
            for method in methods:
                if (name, kind, method) in without:
                    continue
                calls, missed = [], 0
                for seed in range(seeds):
                    made = table(kind, truth, matrix, prior, np.random.default_rng([seed, 1]))
                    dear = Dear(truth)
                    rows = METHODS[method](made, dear, np.random.default_rng([seed, 2]), TARGET, TARGET, DELTA)
                    calls.append(len(dear.asked))
                    missed += not holds(truth, rows)
                yield Cell(name, kind, method, len(truth), float(np.mean(calls)), missed, seeds, tokens)


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
            f"{allowed(cell.seeds, DELTA):>9.1f}{'  FAILS' if cell.fails else ''}",
            flush=True,
        )
    print(
        f"\n{'cheap model':<15}{'method':<18}{'dear calls, geometric mean':>28}{'over uql':>10}{'cells that fail':>17}"
    )
    for kind in dict.fromkeys(c.cheap for c in shown):
        base = _mean([c for c in shown if c.cheap == kind and c.method == "uql"])
        for method in dict.fromkeys(c.method for c in shown):
            own = [c for c in shown if c.cheap == kind and c.method == method]
            failing = sum(c.fails for c in own)
            print(f"{kind:<15}{method:<18}{_mean(own):>28,.0f}{_mean(own) / base:>10.2f}{failing:>11} of {len(own)}")
    return shown


def _mean(found: list[Cell]) -> float:
    return float(np.exp(np.mean([np.log(c.calls) for c in found]))) if found else float("nan")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 where a cell of our own fails."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.promise", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--held-out", action="store_true", help="the predicates that nothing was tuned on")
    parser.add_argument("--counted", action="store_true", help="the 17 predicates of the benchmark of COUNT")
    parser.add_argument("--predicate", action="append", help="in place of the eight")
    parser.add_argument("--cheap", choices=CHEAP, action="append")
    parser.add_argument("--method", choices=tuple(METHODS), action="append")
    parser.add_argument("--results", type=Path, help="a file that cells are added to")
    given = parser.parse_args(arguments)
    counted = [p.name for p in predicates()[:HARD]] if given.counted else []
    names = given.predicate or counted or (HELD_OUT if given.held_out else TUNED)
    done = read(given.results) if given.results else []
    measured = cells(names, given.cheap or CHEAP, given.seeds, given.method or tuple(METHODS), done)
    found = show(kept(measured, given.results) if given.results else measured)
    return int(any(c.method == "uql" and c.fails for c in [*done, *found]))


def kept(found: Iterable[Cell], path: Path) -> Iterator[Cell]:
    """The cells, each added to a results file."""
    with lines.alone(path):
        for cell in found:
            lines.append(path, asdict(cell))
            yield cell


def read(path: Path = RESULTS) -> list[Cell]:
    """The cells of a results file."""
    return [Cell(**held) for _, held in lines.read(path)]


if __name__ == "__main__":
    raise SystemExit(main())
