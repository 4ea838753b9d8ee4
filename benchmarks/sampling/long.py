"""The long form of the tables on sampling and guarantees: many trials, in several processes, kept as they end.

`python -m uql.benchmarks.sampling.long --out trials.jsonl --seeds 200 --jobs 2` goes on where an earlier run stopped;
`--page` prints what the file holds as tables. A unit of work is ten seeds of one cell.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from uql.benchmarks.datasets.labelled import data_folder, predicates
from uql.benchmarks.guarantees import coverage, promises
from uql.benchmarks.guarantees.bounds import allowed, at_most, covers, keeps
from uql.benchmarks.guarantees.proxies import KINDS, SHARES
from uql.benchmarks.runner import lines
from uql.benchmarks.sampling.aggregates import (
    HARD,
    SUMS,
    TARGETS,
    CountTrial,
    count_row,
    count_trials,
    geometric,
    rms,
    sum_trials,
)
from uql.benchmarks.sampling.worlds import World, told, world
from uql.sampling.methods import AGGREGATE

BLOCK = 10  # seeds of a unit
GROUPS, OF_GROUPS = "groups of ", "COUNT of a group that a model names"  # coverage: every group is a cell
TABLES = ("count", "sum", "coverage", "recall", "precision")
BUDGETS = (128, 256, 512)


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """Seeds `first` … of one cell of a table."""

    first: int
    table: str
    name: str  # of the predicate or the made-up case
    budget: int = 0  # of COUNT, SUM and coverage
    target: float = 0.0  # of recall and precision
    delta: float = 0.0

    @property
    def seeds(self) -> range:
        return range(self.first, self.first + BLOCK)


def units(tables: Sequence[str], seeds: int, budgets: Sequence[int]) -> list[Unit]:
    """All of it, the first seeds of every cell before the next."""
    names = [p.name for p in predicates()]
    cases = [f"{share:g} {kind}" for share in coverage.SHARES for kind in coverage.VALUES]
    cases += [f"{name} {kind}" for name in names if name in coverage.REAL for kind in ("lengths", "signed")]
    proxies = [f"{kind} {share:g}" for kind in KINDS for share in SHARES] + list(promises.REAL)
    grouped = [f"{GROUPS}{data}" for data, _ in coverage.GROUPED]
    found = []
    for first in range(0, seeds, BLOCK):
        for table in tables:
            if table == "count":
                found += [Unit(first, table, name, b) for b in budgets for name in names]
            elif table == "sum":
                found += [Unit(first, table, name, b) for b in budgets if b <= 256 for name in SUMS]
            elif table == "coverage":
                found += [Unit(first, table, case, b) for b in budgets if b <= 256 for case in (*cases, *grouped)]
            else:
                promised = [(t, d) for t in promises.TARGETS for d in promises.DELTAS]
                found += [Unit(first, table, name, 0, t, d) for t, d in promised for name in proxies]
    return found


@lru_cache(maxsize=2)
def _world(name: str) -> World:
    return world(next(p for p in predicates() if p.name == name), True)


@lru_cache(maxsize=2)
def _case(name: str) -> coverage.Case:
    head, kind = name.rsplit(" ", 1)
    if kind in coverage.VALUES and head.replace(".", "").isdigit():
        return coverage.made_up(float(head), kind)
    return coverage.real(next(p for p in predicates() if p.name == head), kind)


def work(unit: Unit) -> list[dict[str, Any]]:
    """The trials of a unit."""
    if unit.table == "count":
        return [asdict(trial) for trial in count_trials(_world(unit.name), unit.budget, unit.seeds)]
    if unit.table == "sum":
        return [asdict(trial) for trial in sum_trials(_world(unit.name), unit.budget, unit.seeds)]
    if unit.table == "coverage":
        return list(_coverage(unit))
    first = range(unit.first // BLOCK, unit.first // BLOCK + 1)  # a table, and as many runs on it as a unit has seeds
    if unit.name in promises.REAL:
        tables = promises.real(first, unit.name, promises.REAL_ROWS[unit.table])
    else:
        kind, share = unit.name.split()
        tables = promises.made_up(first, float(share), kind)
    outcomes = promises.outcomes(unit.table, unit.target, unit.delta, tables, BLOCK)
    return [{"held": bool(held), "cost": cost, "value": value} for held, cost, value in outcomes]


def _coverage(unit: Unit) -> Iterator[dict[str, Any]]:
    if unit.name.startswith(GROUPS):
        data = unit.name.removeprefix(GROUPS)
        outcomes = coverage.group_outcomes(data, dict(coverage.GROUPED)[data], unit.seeds, unit.budget)
        for name, each in outcomes.items():
            for held, width, error in each:
                yield {"statistic": f"{OF_GROUPS}: {name}", "held": held, "width": width, "error": error}
        return
    case = _case(unit.name)
    for seed in unit.seeds:
        sampler = AGGREGATE["asd"](
            len(case.truth),
            unit.budget,
            rng=np.random.default_rng(seed),
            features=case.features,
            prior=case.prior,
            size=np.abs(case.value),
            groups=case.groups,
        )
        for name, found, truth in coverage.statistics(case, told(sampler, case.truth)):
            held, width, error = coverage.judged(found, truth)
            yield {"statistic": name, "held": held, "width": width, "error": error}


# ------------------------------------------------------------------------------------------------------------- keeping
def read(path: Path) -> dict[Unit, list[dict[str, Any]]]:
    """The trials kept, by unit; a line cut short by a kill is left out."""
    return {Unit(**held["unit"]): held["trials"] for _, held in lines.read(path)}


def run(path: Path, wanted: Sequence[Unit], jobs: int) -> None:
    """Do what is not done, and append it."""
    done = read(path)
    left = iter([unit for unit in wanted if unit not in done])
    with ProcessPoolExecutor(jobs) as pool:
        waiting = {pool.submit(work, unit): unit for unit in islice(left, jobs + 1)}
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                unit = waiting.pop(future)
                lines.append(path, {"unit": asdict(unit), "trials": future.result()}, allow_nan=True)
                following = next(left, None)
                if following is not None:
                    waiting[pool.submit(work, following)] = following


# ------------------------------------------------------------------------------------------------------------- showing
def page(found: dict[Unit, list[dict[str, Any]]]) -> str:
    """What the trials come to, as Markdown tables with the targets beside them."""
    parts = [*_count_parts(found), *_sum_parts(found), *_coverage_parts(found), *_promise_parts(found)]
    return "\n\n".join(parts) + "\n"


def _of(
    found: dict[Unit, list[dict[str, Any]]], table: str
) -> dict[tuple[str, int, float, float], list[dict[str, Any]]]:
    """The trials of a table by cell, those of the lower seeds first."""
    cells: dict[tuple[str, int, float, float], list[dict[str, Any]]] = {}
    for unit in sorted(found):
        if unit.table == table:
            cells.setdefault((unit.name, unit.budget, unit.target, unit.delta), []).extend(found[unit])
    return cells


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def _count_parts(found: dict[Unit, list[dict[str, Any]]]) -> Iterator[str]:
    cells = _of(found, "count")
    order = [p.name for p in predicates()] if cells else []
    for budget in sorted({cell[1] for cell in cells}):
        rows = [
            count_row([CountTrial(**trial) for trial in cells[name, budget, 0.0, 0.0]])
            for name in order
            if (name, budget, 0.0, 0.0) in cells
        ]
        hard = [row for row in rows if row.predicate in order[:HARD]]
        yield f"### COUNT, {budget} calls, {min(r.seeds for r in rows)} to {max(r.seeds for r in rows)} seeds"
        yield _table(
            ("predicate", "share", "error of UQE", "uniform / UQE", "ASD / UQE", "bias", "held", "width"),
            (
                (
                    row.predicate, f"{row.share:.2%}", f"{row.uqe_rmse:.3f}", f"{row.uniform:.2f}", f"{row.asd:.2f}",
                    f"{row.bias:+.3f}", f"{row.coverage:.3f}", f"{row.width:.2f}",
                )
                for row in rows
            ),
        )  # fmt: skip
        wanted = f" (at most {TARGETS[budget]})" if budget in TARGETS else ""
        held = [row.coverage for row in rows]
        yield (
            f"Geometric mean of ASD / UQE over the first {len(hard)}: {geometric([r.asd for r in hard]):.2f}{wanted}; worst "
            f"{max(r.asd for r in rows):.2f} (at most 1.12), against uniform {max(r.asd / r.uniform for r in rows):.2f} (at most "
            f"1.10). Intervals held in {np.mean(held):.3f} on average (0.94 to 0.98), least {min(held):.3f} (at least 0.92)."
        )


def _sum_parts(found: dict[Unit, list[dict[str, Any]]]) -> Iterator[str]:
    cells = _of(found, "sum")
    for budget in sorted({cell[1] for cell in cells}):
        rows, ratios = [], []
        for (name, of, *_), trials in cells.items():
            if of != budget:
                continue
            both = [rms([t[f"asd_{x}"] for t in trials]) / rms([t[f"uqe_{x}"] for t in trials]) for x in ("sum", "avg")]
            held = [float(np.mean([t[f"held_{x}"] for t in trials])) for x in ("sum", "avg")]
            ratios.append(both)
            rows.append((name, str(len(trials)), *(f"{v:.2f}" for v in both), *(f"{v:.3f}" for v in held)))
        yield f"### SUM and AVG of a stored column, {budget} calls"
        yield _table(("predicate", "seeds", "SUM / UQE", "AVG / UQE", "held SUM", "held AVG"), rows)
        sums, means = geometric([r[0] for r in ratios]), geometric([r[1] for r in ratios])
        yield f"Geometric mean: SUM {sums:.2f} (at most 0.65), AVG {means:.2f} (at most 0.55)."


def _coverage_parts(found: dict[Unit, list[dict[str, Any]]]) -> Iterator[str]:
    cells = _of(found, "coverage")
    for budget in sorted({cell[1] for cell in cells}):
        by: dict[str, list[tuple[float, bool, float, float, float]]] = {}
        seeds = set()
        for (_, b, *_), trials in cells.items():
            if b != budget:
                continue
            for name in dict.fromkeys(t["statistic"] for t in trials):
                own = [t for t in trials if t["statistic"] == name]
                held = sum(t["held"] for t in own)
                nominal = 1.0 if name.startswith(coverage.ONE_SIDED) else 0.95
                error = float(np.sqrt(np.nanmean([t["error"] ** 2 for t in own])))
                wide = float(np.median([t["width"] for t in own]))
                by.setdefault(name.partition(":")[0], []).append(
                    (held / len(own), covers(held, len(own), nominal), wide, error, at_most(held, len(own)))
                )
                seeds.add(len(own))
        yield f"### Coverage at 0.95, {budget} calls, {min(seeds)} to {max(seeds)} seeds a cell"
        yield _table(
            ("number", "cells", "failed", "least held", "its bound", "mean held", "median of width / (3.9 × error)"),
            (
                (
                    name, str(len(each)), str(sum(not e[1] for e in each)), f"{min(e[0] for e in each):.3f}",
                    f"{min(e[4] for e in each):.3f}",
                    f"{np.mean([e[0] for e in each]):.3f}",
                    "–" if name.startswith(coverage.ONE_SIDED) else f"{np.median([e[2] / max(3.92 * e[3], 1e-12) for e in each]):.2f}",
                )
                for name, each in by.items()
            ),
        )  # fmt: skip
        yield (
            "Its bound: the 99.9 % binomial upper bound of the least coverage; a cell fails where it is below nominal less .02 (.93; "
            ".98 for bounds of one side). A sample without a row that matches has no greatest and no least value: MAX and MIN have the "
            "fewer seeds."
        )


def _promise_parts(found: dict[Unit, list[dict[str, Any]]]) -> Iterator[str]:
    for table in ("recall", "precision"):
        cells = _of(found, table)
        if not cells:
            continue
        rows = []
        for target, delta in sorted({(t, d) for _, _, t, d in cells}):
            own = {name: trials for (name, _, t, d), trials in cells.items() if (t, d) == (target, delta)}
            missed = {name: sum(not t["held"] for t in trials) for name, trials in own.items()}
            failed = [name for name, trials in own.items() if not keeps(missed[name], len(trials), delta)]
            worst = max(missed[name] / len(trials) for name, trials in own.items())
            seeds = sorted({len(trials) for trials in own.values()})
            mean = float(np.mean([np.mean([t["cost"] for t in trials]) for trials in own.values()]))
            rows.append(
                (
                    f"{target:g}",
                    f"{delta:g}",
                    str(len(own)),
                    f"{seeds[0]} to {seeds[-1]}",
                    str(len(failed)),
                    f"{worst:.3f}",
                    f"{allowed(seeds[0], delta) / seeds[0]:.3f}",
                    f"{mean:.2f}",
                )
            )
        yield f"### Stated {table}: runs that miss it"
        yield _table(
            ("target", "δ", "cells", "seeds a cell", "failed", "most missed", "may miss", "mean share of rows asked"),
            rows,
        )


def main(arguments: list[str] | None = None) -> int:
    """Run, or show."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.sampling.long", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the file of trials")
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--budget", type=int, action="append")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="print what the file holds; run nothing")
    given = parser.parse_args(arguments)
    try:
        data_folder()
    except FileNotFoundError as error:
        parser.error(str(error))
    if not given.page:
        run(given.out, units(given.table or TABLES, given.seeds, given.budget or BUDGETS), given.jobs)
    print(page(read(given.out)), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
