"""Stated recall and stated precision: how often a run misses its target, and what the promise costs.

`python -m uql.benchmarks.guarantees.promises`
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from uql.benchmarks.datasets.labelled import predicates
from uql.benchmarks.guarantees.bounds import Row, keeps
from uql.benchmarks.guarantees.proxies import KINDS, SHARES, Proxied, proxied
from uql.benchmarks.sampling.worlds import world
from uql.sampling.recall import RecallSearch
from uql.sampling.retrieval import Search
from uql.sampling.unverified import UnverifiedSearch

ROWS = 2_000
BUDGET = 256  # of the precision trials
TARGETS = (0.8, 0.9, 0.95)
DELTAS = (0.05, 0.2)
REAL = ("air_cancel", "air_book", "abcd_acct", "abcd_manage", "bk_cheque")
BATCH = 64
COST_ROWS, COST_SHARE, COST_TARGET = 20_000, 0.024, 0.6  # of the rows asked, for recall .9 at δ = .05


def asked_all(search: Search, table: Proxied, batch: int = BATCH) -> None:
    """Tell the search the truth of all it proposes."""
    while len(rows := search.propose(batch)):
        search.tell(rows, table.truth[rows])


def recall_trial(table: Proxied, target: float, delta: float, rng: np.random.Generator) -> tuple[bool, float, float]:
    """Whether the target holds, the share of the rows asked, and the recall reached."""
    n = len(table.truth)
    search = RecallSearch(
        n,
        n,
        rng=rng,
        features=table.features,
        prior=table.prior,
        has_examples=True,
        recall=target,
        confidence=1 - delta,
    )
    asked_all(search, table)
    reached = len(search.found()) / float(table.truth.sum())
    return reached >= target - 1e-12, search.calls / n, reached


def precision_trial(
    table: Proxied, target: float, delta: float, rng: np.random.Generator, budget: int = BUDGET
) -> tuple[bool, float, float]:
    """Whether the accepted rows hold the target, the share of the rows asked, and F1 against all true rows."""
    n = len(table.truth)
    search = UnverifiedSearch(
        n, budget, rng=rng, features=table.features, prior=table.prior, precision=target, confidence=1 - delta
    )
    asked_all(search, table, 16)
    accepted, more, found = search.accepted, search.unverified(), search.found()
    held = len(accepted) == 0 or float(table.truth[accepted].mean()) >= target - 1e-12
    hits, returned = len(found) + float(table.truth[more].sum()), len(found) + len(more)
    precision, recall = hits / max(returned, 1), hits / float(table.truth.sum())
    return held, search.calls / n, 2 * precision * recall / max(precision + recall, 1e-12)


def made_up(seeds: int, share: float, kind: str, n: int) -> Iterable[tuple[Proxied, np.random.Generator]]:
    """A new table for every seed."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n])
        yield proxied(n, share, kind, rng), rng


def real(seeds: int, name: str) -> Iterable[tuple[Proxied, np.random.Generator]]:
    """The same labelled table for every seed."""
    w = world(next(p for p in predicates() if p.name == name), True)
    table = Proxied(w.matrix, w.prior, w.truth)
    for seed in range(seeds):
        yield table, np.random.default_rng(seed)


def trial_row(
    what: str, cell: str, target: float, delta: float, tables: Iterable[tuple[Proxied, np.random.Generator]]
) -> Row:
    """All trials of one cell."""
    trial = recall_trial if what == "recall" else precision_trial
    outcomes = [trial(table, target, delta, rng) for table, rng in tables]
    held = sum(o[0] for o in outcomes)
    n = len(outcomes)
    passed = keeps(n - held, n, delta)
    cost, value = float(np.mean([o[1] for o in outcomes])), float(np.mean([o[2] for o in outcomes]))
    return Row(what, cell, f"{what} {target:g}", n, 1 - delta, held, passed, cost, value)


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
                        yield trial_row(what, cell, target, delta, made_up(seeds, share, kind, n))
                for name in REAL if data else ():
                    yield trial_row(what, name, target, delta, real(seeds, name))


def cost_row(seeds: int) -> Row:
    """Recall .9 at δ = .05 over 20,000 rows, 2.4 % positive, calibrated: the share of the rows asked."""
    tables = made_up(seeds, COST_SHARE, "calibrated", COST_ROWS)
    return trial_row("recall", f"calibrated {COST_SHARE:.1%} of {COST_ROWS:,}", 0.9, 0.05, tables)


def show(found: Iterable[Row]) -> list[Row]:
    """Print the table, misses beside δ, each row as it comes; the rows."""
    shown = []
    print(f"{'data':<28}{'promise':<16}{'delta':>6}{'seeds':>7}{'missed':>8}{'asked':>8}{'reached':>9}")
    for row in found:
        shown.append(row)
        flag = "" if row.passed else "  FAILS"
        print(
            f"{row.cell:<28}{row.statistic:<16}{1 - row.nominal:>6.2f}{row.seeds:>7}{row.seeds - row.held:>8}"
            f"{row.cost:>8.2f}{row.value:>9.3f}{flag}",
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
    given = parser.parse_args(arguments)
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
