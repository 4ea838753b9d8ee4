"""Predicted calls beside those made: the movie and MMQA queries of SemBench.

    python -m uql.benchmarks.optimizer.predictions [--data ../shared/data] [--budget all]

Each query has a ledger of its own, empty before. EXPLAIN predicts without asking, EXPLAIN SAMPLE 32 pays for 32 rows first; the run
that follows pays for the others, so its calls and the rows that the ledger answered together are what was predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uql
from uql.benchmarks.sembench.scenarios import SCENARIOS, Query, Scenario
from uql.errors import UQLError

SAMPLED = 32  # rows


@dataclass(frozen=True, slots=True)
class Prediction:
    """Calls of one query: low, expected, high of EXPLAIN, expected of EXPLAIN SAMPLE, and those made by a run with an empty ledger."""

    query: str
    low: float
    expected: float
    high: float
    sampled: float
    made: int

    @property
    def holds(self) -> bool:
        return self.low <= self.made <= self.high

    @property
    def is_near(self) -> bool:
        """Within a quarter, or a call, of what was made."""
        return abs(self.sampled - self.made) <= max(1.0, 0.25 * self.made)


def predictions(scenario: Scenario, budget: str | None) -> Iterator[Prediction | str]:
    """The prediction of each query of a scenario, or the reason why there is none."""
    for query in scenario.queries:
        try:
            yield predicted(scenario, query, budget)
        except UQLError as error:
            yield f"{query.name}: {str(error).splitlines()[0]}"


def predicted(scenario: Scenario, query: Query, budget: str | None) -> Prediction:
    """EXPLAIN, EXPLAIN SAMPLE and a run, each with an empty ledger of its own."""
    plain = _calls(_asked(scenario, query, "EXPLAIN (FORMAT json)", budget))
    sampled = _calls(_asked(scenario, query, f"EXPLAIN SAMPLE {SAMPLED} (FORMAT json)", budget))
    with _connection(scenario, query, budget) as con:
        result = con.uql(query.text)
        result.fetchall()
        made = result.cost.calls
    return Prediction(query.name, plain["low"], plain["expected"], plain["high"], sampled["expected"], made)


def _connection(scenario: Scenario, query: Query, budget: str | None) -> uql.Connection:
    settings: dict[str, Any] = {} if budget is None else {"budget": budget}
    con = uql.connect(model=f"oracle:{query.oracle}", ledger=":memory:", **settings)
    scenario.fill(con)
    return con


def _asked(scenario: Scenario, query: Query, head: str, budget: str | None) -> str:
    with _connection(scenario, query, budget) as con:
        return "\n".join(row[0] for row in con.uql(f"{head} {query.text}").fetchall())


def _calls(text: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(text)["price"]["calls"]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    parser.add_argument("--budget", help="calls a query, or 'all'; by default the engine's")
    given = parser.parse_args(arguments)
    if not (given.data / "movie_reviews").is_dir() or not (given.data / "sembench_mmqa").is_dir():
        print(f"no data in {given.data}: set UQL_DATA or --data", file=sys.stderr)
        return 2
    print("query       low  expected     high  sample 32     made  within a quarter  low–high holds  high ÷ low")
    done: list[Prediction] = []
    for name in ("movie", "mmqa"):
        with tempfile.TemporaryDirectory() as work:
            for found in predictions(SCENARIOS[name](given.data.resolve(), Path(work), 0.0), given.budget):
                if isinstance(found, str):
                    print(f"{name} {found}")
                    continue
                done.append(found)
                ratio = found.high / max(found.low, 1.0)
                print(
                    f"{name} {found.query:4} {found.low:7,.0f} {found.expected:9,.0f} {found.high:8,.0f} {found.sampled:10,.0f} "
                    f"{found.made:8,}  {_yes(found.is_near):>16}  {_yes(found.holds):>14}  {ratio:10.1f}",
                    flush=True,
                )
    near, held = sum(p.is_near for p in done), sum(p.holds for p in done)
    wide = sum(p.high > 20 * max(p.low, 1.0) for p in done)
    print(f"within a quarter: {near} of {len(done)}; low–high holds: {held} of {len(done)}; wider than 20: {wide}")
    return 0


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    sys.exit(main())
