"""`python -m uql.benchmarks.sembench`: per query its quality, calls, tokens and seconds.

The model is an oracle that answers from the labels; `--error` makes a share of its answers wrong, `--model` asks another model.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from uql.benchmarks.sembench.run import Outcome, run
from uql.benchmarks.sembench.scenarios import SCENARIOS


def main(arguments: list[str] | None = None) -> int:
    """Prints the table. Exit code 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="uql.benchmarks.sembench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", default=[], help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    parser.add_argument("--model", help="in place of the oracle")
    parser.add_argument("--error", type=float, default=0.0, help="share of the oracle's answers made wrong")
    parser.add_argument("--budget", help="calls a query, or 'all'; by default the engine's")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    names = given.scenarios or list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]}; there are {', '.join(SCENARIOS)}")
    if not (given.data / "movie_reviews").is_dir() or not (given.data / "sembench_mmqa").is_dir():
        print(f"no data in {given.data}: set UQL_DATA or --data", file=sys.stderr)
        return 2
    settings = {"seed": given.seed} | ({} if given.budget is None else {"budget": given.budget})
    for name in names:
        with tempfile.TemporaryDirectory() as work:
            scenario = SCENARIOS[name](given.data.resolve(), Path(work), given.error)
            print(
                f"{name}, {given.model or f'oracle with {given.error:.0%} errors'}, budget {given.budget or 'default'}"
            )
            print(
                f"{'query':<6} {'measure':<10} {'quality':>7} {'exact':>6} {'calls':>7} {'in':>9} {'out':>7} {'s':>6}"
            )
            outcomes = []
            for query in scenario.queries:
                outcomes.append(run(scenario, query, given.model, **settings))
                print(_line(outcomes[-1]), flush=True)
            mean = sum(o.quality for o in outcomes) / len(outcomes)
            print(f"{'mean':<17} {mean:>7.3f} {'':>6} {sum(o.calls for o in outcomes):>7,}\n")
    return 0


def _line(o: Outcome) -> str:
    numbers = f"{o.calls:>7,} {o.input_tokens:>9,} {o.output_tokens:>7,} {o.seconds:>6.1f}"
    line = f"{o.query:<6} {o.measure:<10} {o.quality:>7.3f} {'yes' if o.exact else 'no':>6} {numbers}"
    return f"{line}  {o.problem.splitlines()[0]}" if o.problem else line


if __name__ == "__main__":
    sys.exit(main())
