"""The tables of the sampling benchmark: `python -m uql.benchmarks.sampling`.

The labels are the model: every call answers with the truth, so the tables show what the sampler loses, not the model.
Each number
stands beside its target.
"""

from __future__ import annotations

import argparse
import sys

from uql.benchmarks.datasets.labelled import predicates
from uql.benchmarks.sampling.aggregates import HARD, count_table, group_table, sum_table
from uql.benchmarks.sampling.expected import expected_table
from uql.benchmarks.sampling.noise import noise_table
from uql.benchmarks.sampling.searches import guarantee_table, retrieval_table, speed_table
from uql.benchmarks.sampling.soft import soft_table

TABLES = ("expected", "count", "sum", "group", "retrieval", "guarantees", "noise", "soft", "speed")


def main(arguments: list[str] | None = None) -> int:
    """Print the tables asked for; 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.sampling", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=200, help="repetitions of aggregates; a tenth of them of retrieval"
    )
    parser.add_argument("--quick", action="store_true", help="20 seeds, one budget, four predicates")
    parser.add_argument("--budget", type=int, action="append", help="of COUNT; may be given several times")
    parser.add_argument("--examples", choices=("on", "off"), default="on", help="the example rows of EXAMPLES.toml")
    parser.add_argument("--only", choices=TABLES, action="append", help="one table; may be given several times")
    parser.add_argument("--predicate", action="append", help="one predicate by name; may be given several times")
    given = parser.parse_args(arguments)
    try:
        known = predicates()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    seeds = 20 if given.quick else given.seeds
    if given.quick and not given.predicate:
        given.predicate = ["air_book", "air_cancel", "abcd_acct", "bk_cheque"]
    chosen = [p for p in known if not given.predicate or p.name in given.predicate]
    tables, examples = given.only or TABLES, given.examples == "on"
    budgets = given.budget or ([128] if given.quick else [128, 256, 512])
    if "expected" in tables:
        for budget in budgets:
            expected_table(chosen, budget, max(2, seeds // 40), examples)
    if "count" in tables:
        for budget in budgets:
            count_table(chosen, budget, seeds, examples)
    if "sum" in tables:
        sum_table(chosen, 128, seeds, examples)
    if "group" in tables:
        group_table(256, seeds)
    if "retrieval" in tables:
        retrieval_table([p for p in chosen if p in known[:HARD]], 256, max(3, seeds // 10), examples)
    if "guarantees" in tables:
        guarantee_table(chosen, seeds, 0.95)
    if "noise" in tables:
        noise_table(max(20, seeds // 4))
    if "soft" in tables:
        soft_table(max(20, seeds // 4))
    if "speed" in tables:
        speed_table()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
