"""Stated recall and stated precision: how often a run misses its target, and what the promise costs.

`python -m uql.benchmarks.guarantees.promises`
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from uql.benchmarks.datasets.labelled import predicates
from uql.benchmarks.guarantees.bounds import Row, allowed, keeps
from uql.benchmarks.guarantees.proxies import KINDS, SHARES, Proxied, proxied
from uql.benchmarks.sampling.worlds import world
from uql.sampling.base import Indices
from uql.sampling.recall import RecallSearch
from uql.sampling.retrieval import Search
from uql.sampling.unverified import UnverifiedSearch

ROWS = 2_000
BUDGET = 256  # of the precision trials
TARGETS = (0.8, 0.9, 0.95)
DELTAS = (0.05, 0.2)
REAL = ("air_cancel", "air_book", "abcd_acct", "abcd_manage", "bk_cheque")
BATCH = 64
REAL_ROWS = {"recall": 1_000, "precision": 2_000}  # random rows of a labelled table: no promise depends on their number
FORKS = 10  # trials that share a table and the part of a run on which the promise does not depend
Outcome = tuple[bool, float, float]  # held, share of the rows asked, what it bought
Tables = Iterable[tuple[Proxied, tuple[int, ...]]]  # with the seed of the runs on each
SMALL = 1_150  # rows of a small table
COST_ROWS, COST_SHARE, COST_TARGET = 20_000, 0.024, 0.6  # of the rows asked, for recall .9 at δ = .05


def asked_all(search: Search, table: Proxied, batch: int = BATCH) -> None:
    """Tell the search the truth of all it proposes."""
    while len(rows := search.propose(batch)):
        search.tell(rows, table.truth[rows])


class _ForkedRecall(RecallSearch):
    """Copies itself just before the first rows of its proof are drawn, once for each of `branches`."""

    branches: Sequence[np.random.Generator] = ()
    copies: tuple[RecallSearch, ...] = ()

    def _rows_of_proof(self, k: int) -> Indices:
        if not self._left.n_draws and not self.copies:
            self.copies = tuple(_copied(self, rng, self.features, self._prior, self._fixed) for rng in self.branches)
        return super()._rows_of_proof(k)


class _ForkedUnverified(UnverifiedSearch):
    """Copies itself when it has learned, before the order of its tests is drawn, once for each of `branches`."""

    branches: Sequence[np.random.Generator] = ()
    copies: tuple[UnverifiedSearch, ...] = ()

    def _learn(self) -> None:
        super()._learn()
        self.copies = tuple(_copied(self, rng, self.features, self._learner) for rng in self.branches)
        for each in self.copies:
            each._sequence = each.rng.permutation(len(each._sequence))


S = TypeVar("S", bound=Search)


def _copied(search: S, rng: np.random.Generator, *shared: object) -> S:
    """A copy that draws from `rng`; what is `shared` is not written to."""
    keep: dict[int, Any] = {id(part): part for part in shared}
    keep[id(search.rng)] = rng
    return copy.deepcopy(search, {**keep, id(search.branches): (), id(search.copies): ()})  # type: ignore[attr-defined]


def _branches(seed: tuple[int, ...], forks: int) -> list[np.random.Generator]:
    return [np.random.default_rng([*seed, fork]) for fork in range(1, forks)]


def recall_trials(table: Proxied, target: float, delta: float, seed: tuple[int, ...], forks: int = 1) -> list[Outcome]:
    """Whether the target holds, the share of the rows asked, and the recall reached, of `forks` runs.

    They share the search up to the first check and draw their checks apart. A recall is promised whatever was searched
    before, by the draw of the check: given the table and that search, the runs are independent and each may miss with δ.
    """
    n = len(table.truth)
    search = _ForkedRecall(
        n,
        n,
        rng=np.random.default_rng(seed),
        features=table.features,
        prior=table.prior,
        has_examples=True,
        recall=target,
        confidence=1 - delta,
    )
    search.branches = _branches(seed, forks)
    asked_all(search, table)
    out = []
    runs = (search, *search.copies)
    for run in runs:
        asked_all(run, table)
        reached = len(run.matches()) / float(table.truth.sum())
        out.append((reached >= target - 1e-12, run.calls / n, reached))
    return out * (forks // len(runs))  # without a check every row was asked, and all runs are alike


def precision_trials(
    table: Proxied, target: float, delta: float, seed: tuple[int, ...], forks: int = 1, budget: int = BUDGET
) -> list[Outcome]:
    """Whether the accepted rows hold the target, the share of the rows asked, and F1 against all true rows, of `forks` runs.

    They share the half of the calls that learns and draw their tests apart: the precision is promised whatever was learned.
    """
    n = len(table.truth)
    search = _ForkedUnverified(
        n,
        budget,
        rng=np.random.default_rng(seed),
        features=table.features,
        prior=table.prior,
        precision=target,
        confidence=1 - delta,
    )
    search.branches = _branches(seed, forks)
    asked_all(search, table, 16)
    out = []
    runs = (search, *search.copies)
    for run in runs:
        asked_all(run, table, 16)
        accepted, more, found = run.accepted, run.unverified(), run.matches()
        held = len(accepted) == 0 or float(table.truth[accepted].mean()) >= target - 1e-12
        hits, returned = len(found) + float(table.truth[more].sum()), len(found) + len(more)
        precision, recall = hits / max(returned, 1), hits / float(table.truth.sum())
        out.append((held, run.calls / n, 2 * precision * recall / max(precision + recall, 1e-12)))
    return out * (forks // len(runs))


def made_up(firsts: Iterable[int], share: float, kind: str, n: int = ROWS) -> Tables:
    """A new table for each number."""
    for first in firsts:
        yield proxied(n, share, kind, np.random.default_rng([first, n])), (first, n)


def real(firsts: Iterable[int], name: str, n: int = ROWS) -> Tables:
    """For each number n random rows of a labelled table, in which at least one matches."""
    w = world(next(p for p in predicates() if p.name == name), True)
    for first in firsts:
        rng = np.random.default_rng([first, n])
        rows = rng.permutation(w.n)[:n]
        if not w.truth[rows].any():
            rows[0] = rng.choice(np.flatnonzero(w.truth))
        yield Proxied(np.ascontiguousarray(w.matrix[rows]), w.prior[rows], w.truth[rows]), (first, n)


def outcomes(what: str, target: float, delta: float, tables: Tables, forks: int) -> list[Outcome]:
    """Of `forks` runs on each table."""
    trials = recall_trials if what == "recall" else precision_trials
    return [one for table, seed in tables for one in trials(table, target, delta, seed, forks)]


def trial_row(what: str, cell: str, target: float, delta: float, tables: Tables, forks: int = FORKS) -> Row:
    """All trials of one cell."""
    each = outcomes(what, target, delta, tables, forks)
    held, n = sum(o[0] for o in each), len(each)
    passed = keeps(n - held, n, delta)
    cost, value = float(np.mean([o[1] for o in each])), float(np.mean([o[2] for o in each]))
    return Row(what, cell, f"{what} {target:g}", n, 1 - delta, held, passed, cost, value)


def searched(seeds: int) -> range:
    """The tables of that many trials, rounded up."""
    return range(-(-seeds // FORKS))


def rows(
    seeds: int,
    *,
    targets: Sequence[float] = TARGETS,
    deltas: Sequence[float] = DELTAS,
    shares: Sequence[float] = SHARES,
    kinds: Sequence[str] = KINDS,
    promises: Sequence[str] = ("recall", "precision"),
    n: int = ROWS,
    data: bool = True,
) -> list[Row]:
    """Every cell over that many seeds; `data`: also on the embeddings of the labelled data sets."""
    return list(each_row(seeds, targets, deltas, shares, kinds, promises, n, data))


def each_row(
    seeds: int,
    targets: Sequence[float],
    deltas: Sequence[float],
    shares: Sequence[float],
    kinds: Sequence[str],
    promises: Sequence[str],
    n: int,
    data: bool,
) -> Iterator[Row]:
    """As `rows`, each as soon as it is known."""
    for what in promises:
        for target in targets:
            for delta in deltas:
                for kind in kinds:
                    for share in shares:
                        cell = f"{kind} {share:.1%}"
                        yield trial_row(what, cell, target, delta, made_up(searched(seeds), share, kind, n))
                for name in REAL if data else ():
                    yield trial_row(what, name, target, delta, real(searched(seeds), name, min(n, REAL_ROWS[what])))


def cost_row(seeds: int) -> Row:
    """Recall .9 at δ = .05 over 20,000 rows, 2.4 % positive, calibrated: the share of the rows asked."""
    tables = made_up(searched(seeds), COST_SHARE, "calibrated", COST_ROWS)
    return trial_row("recall", f"calibrated {COST_SHARE:.1%} of {COST_ROWS:,}", 0.9, 0.05, tables)


def least_asked(matches: int, n: int, target: float, delta: float) -> float:
    """The share of n rows that a recall takes where each match is found at first sight: these, and random ones of the others, which
    must show that no more than the target allows are among them.

    >>> round(least_asked(115, 1150, 0.9, 0.05), 2), round(least_asked(18, 1150, 0.9, 0.05), 2)
    (0.29, 0.64)
    """
    hidden = int(matches * (1 - target) / target + 1e-9) + 1  # the fewest that would make the recall too low
    return float((matches + (n - matches) * (1 - delta ** (1 / hidden))) / n)


def small_tables(seeds: int, n: int = SMALL) -> Iterator[tuple[Row, float]]:
    """Recall .9 at δ = .05 over n random rows of each labelled data set, and the least that any search could ask of them."""
    for predicate in predicates():
        tables = list(real(range(seeds), predicate.name, n))
        least = np.mean([least_asked(int(table.truth.sum()), len(table.truth), 0.9, 0.05) for table, _ in tables])
        yield trial_row("recall", predicate.name, 0.9, 0.05, tables, 1), float(least)


def show_small(found: Iterable[tuple[Row, float]]) -> list[Row]:
    """Print the shares that were asked beside the least, each as it comes; the rows."""
    shown, least = [], []
    print(f"{'data':<16}{'seeds':>7}{'missed':>8}{'asked':>8}{'least':>8}{'reached':>9}")
    for row, price in found:
        shown.append(row)
        least.append(price)
        print(
            f"{row.cell:<16}{row.seeds:>7}{row.seeds - row.held:>8}{row.cost:>8.2f}{price:>8.2f}{row.value:>9.3f}",
            flush=True,
        )
    missed, runs = sum(row.seeds - row.held for row in shown), sum(row.seeds for row in shown)
    print(
        f"{missed} of {runs} runs missed; asked {np.mean([r.cost for r in shown]):.2f}, at least {np.mean(least):.2f}"
    )
    return shown


def show(found: Iterable[Row]) -> list[Row]:
    """Print the table, misses beside what δ allows, each row as it comes; the rows."""
    shown = []
    print(f"{'data':<28}{'promise':<16}{'delta':>6}{'seeds':>7}{'missed':>8}{'allowed':>9}{'asked':>8}{'reached':>9}")
    for row in found:
        shown.append(row)
        flag = "" if row.passed else "  FAILS"
        print(
            f"{row.cell:<28}{row.statistic:<16}{1 - row.nominal:>6.2f}{row.seeds:>7}{row.seeds - row.held:>8}"
            f"{allowed(row.seeds, 1 - row.nominal):>9.1f}{row.cost:>8.2f}{row.value:>9.3f}{flag}",
            flush=True,
        )
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 where a cell fails."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.guarantees.promises", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="trials of a cell; 1,000 for a verdict")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the made-up tables")
    parser.add_argument("--promise", choices=("recall", "precision"), action="append")
    parser.add_argument("--target", type=float, action="append")
    parser.add_argument("--delta", type=float, action="append")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--share", type=float, action="append")
    parser.add_argument("--no-data", action="store_true", help="made-up tables only")
    parser.add_argument("--cost", action="store_true", help="only the cost of recall .9 over 20,000 rows")
    parser.add_argument("--small", action="store_true", help="only recall .9 over 1,150 rows, beside the least price")
    given = parser.parse_args(arguments)
    if given.small:
        return 0 if all(row.passed for row in show_small(small_tables(given.seeds))) else 1
    if given.cost:
        found = [cost_row(given.seeds)]
        show(found)
        print(f"asked {found[0].cost:.2f} of the rows (at most {COST_TARGET})")
        return 0 if found[0].passed and found[0].cost <= COST_TARGET else 1
    found = show(
        each_row(
            given.seeds,
            given.target or TARGETS,
            given.delta or DELTAS,
            given.share or SHARES,
            given.kind or KINDS,
            given.promise or ("recall", "precision"),
            given.rows,
            not given.no_data,
        )
    )
    return 0 if all(row.passed for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
