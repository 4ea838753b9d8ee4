"""All trials of what is promised: `python -m uql.benchmarks.guarantees`. README.md says how each number is made."""

from __future__ import annotations

import argparse
import sys

from uql.benchmarks.datasets.labelled import data_folder
from uql.benchmarks.guarantees import coverage, promises
from uql.benchmarks.guarantees.proxies import KINDS, SHARES

TABLES = ("coverage", "recall", "precision", "cost")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables asked for; 1 where a cell fails."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.guarantees", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="of every cell; 1,000 for a verdict")
    parser.add_argument("--quick", action="store_true", help="20 seeds, made-up tables, one target")
    parser.add_argument("--only", choices=TABLES, action="append")
    given = parser.parse_args(arguments)
    tables, seeds, data = given.only or TABLES, 20 if given.quick else given.seeds, not given.quick
    if data:
        try:
            data_folder()
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            data = False
    failed = False
    if "coverage" in tables:
        found = coverage.rows(seeds, data=data)
        print(f"Coverage at 0.95, B = 128, {seeds} seeds")
        coverage.show(found)
        failed |= not all(row.passed for row in found)
    for what in ("recall", "precision"):
        if what in tables:
            targets = (0.9,) if given.quick else promises.TARGETS
            print(f"\nStated {what}: runs that miss the target, {seeds} seeds")
            trials = promises.show(
                promises.each_row(
                    seeds,
                    targets,
                    promises.DELTAS,
                    SHARES,
                    KINDS,
                    (what,),
                    promises.ROWS,
                    data,
                )
            )
            failed |= not all(row.passed for row in trials)
    if "cost" in tables:
        row = promises.cost_row(max(3, seeds // 20))
        print()
        promises.show([row])
        print(f"asked {row.cost:.2f} of the rows (at most {promises.COST_TARGET})")
        failed |= not row.passed or row.cost > promises.COST_TARGET
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
