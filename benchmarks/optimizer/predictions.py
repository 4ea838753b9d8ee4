"""Predicted calls beside those made: the movie and MMQA queries of SemBench, and queries over labelled texts.

    python -m uql.benchmarks.optimizer.predictions [--data ../shared/data] [--budget all] [--on movie,mmqa,labelled]

Nothing was chosen by what the labelled texts gave; their model answers by the labels. Each query has a ledger of its own, empty
before. EXPLAIN predicts without asking, EXPLAIN SAMPLE 32 pays for 32 rows first; the run that follows pays for the others, so its
calls and the rows that the ledger answered together are what was predicted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uql
from uql.base.errors import UQLError
from uql.benchmarks.optimizer import label_model
from uql.benchmarks.sembench.scenarios import SCENARIOS, Query, Scenario

SAMPLED = 32  # rows
ROWS = 1200  # texts of each labelled data set
LABELLED = (
    ("imdb", "SELECT id FROM t WHERE {0} LIMIT 20"),
    ("imdb", "SELECT id FROM t WHERE {1} AND part < 3"),
    ("imdb", "SELECT COUNT(*) FROM t WHERE {0} AND {1} WITH (budget = 'all')"),
    ("imdb", "SELECT id FROM t WHERE part = 2 AND ({1} OR part = 3) ORDER BY id LIMIT 8"),
    ("airdialogue", "SELECT id FROM t WHERE {0} OR {1} WITH (budget = 'all')"),
    ("airdialogue", "SELECT id FROM t WHERE {1} LIMIT 10"),
    ("airdialogue", "SELECT id FROM t WHERE id IN (SELECT id FROM t WHERE {0} LIMIT 12) AND {1}"),
    ("airdialogue", "SELECT part, COUNT(*) FROM t WHERE {2} GROUP BY part"),
    ("abcd", "SELECT id FROM t WHERE {1} AND NOT {0} AND part = 1"),
    ("abcd", "SELECT d.id FROM (SELECT * FROM t WHERE {1} AND part = 4) d WHERE d.id % 2 = 0"),
    ("abcd", "SELECT id FROM t WHERE {0} ORDER BY id LIMIT 5"),
    ("airline_tweets", "SELECT id FROM t WHERE part = 1 OR {0} WITH (budget = 'all')"),
    ("airline_tweets", "SELECT id FROM t WHERE {0} AND {1} LIMIT 5"),
    ("airline_tweets", "SELECT AVG(part) FROM t WHERE {0} AND part > 2 WITH (budget = 'all')"),
    (
        "airline_tweets",
        "WITH p AS (SELECT id, part FROM t WHERE {0} AND part < 2) SELECT a.id FROM p a JOIN p b ON a.id + 7 = b.id",
    ),
)


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
            yield predicted(query.name, query.text, partial(_connection, scenario, query, budget))
        except UQLError as error:
            yield f"{query.name}: {str(error).splitlines()[0]}"


def predicted(name: str, text: str, connected: Callable[[], uql.Connection]) -> Prediction:
    """EXPLAIN, EXPLAIN SAMPLE and a run, each with an empty ledger of its own."""
    plain = _calls(_asked(connected, f"EXPLAIN (FORMAT json) {text}"))
    sampled = _calls(_asked(connected, f"EXPLAIN SAMPLE {SAMPLED} (FORMAT json) {text}"))
    with connected() as con:
        result = con.uql(text)
        result.fetchall()
        made = result.cost.calls
    return Prediction(name, plain["low"], plain["expected"], plain["high"], sampled["expected"], made)


# -------------------------------------------------------------------------------------------------------- labelled texts
def labelled(budget: str | None) -> Iterator[Prediction]:
    """The predictions of LABELLED over ROWS texts of each data set; "{0}", "{1}" stand for its conditions."""
    sets = {data.name: data for data in label_model.loaded(ROWS)}
    for i, (name, text) in enumerate(LABELLED, 1):
        data = sets[name]
        conditions = [f'"{condition}"' for condition in data.truths]
        yield predicted(f"{i}", text.format(*conditions), partial(_over_labels, data, budget))


def _over_labels(data: label_model.Data, budget: str | None) -> uql.Connection:
    import pyarrow as pa

    truths = {c: dict(zip(data.texts, t.tolist(), strict=True)) for c, t in data.truths.items()}
    settings: dict[str, Any] = {} if budget is None else {"budget": budget}
    con = uql.connect(model=label_model.Labels("labels", truths), ledger=":memory:", **settings)
    con.register("t", pa.table({"id": list(range(len(data.texts))), "part": [i % 7 for i in range(len(data.texts))],
                                "text": data.texts}))  # fmt: skip
    return con


def _connection(scenario: Scenario, query: Query, budget: str | None) -> uql.Connection:
    settings: dict[str, Any] = {} if budget is None else {"budget": budget}
    con = uql.connect(model=f"oracle:{query.oracle}", ledger=":memory:", **settings)
    scenario.fill(con)
    return con


def _asked(connected: Callable[[], uql.Connection], text: str) -> str:
    with connected() as con:
        return "\n".join(row[0] for row in con.uql(text).fetchall())


def _calls(text: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(text)["price"]["calls"]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    parser.add_argument("--budget", help="calls a query, or 'all'; by default the engine's")
    parser.add_argument("--on", default="movie,mmqa,labelled", help="names of suites")
    given = parser.parse_args(arguments)
    if not (given.data / "movie_reviews").is_dir() or not (given.data / "sembench_mmqa").is_dir():
        print(f"no data in {given.data}: set UQL_DATA or --data", file=sys.stderr)
        return 2
    print("query       low  expected     high  sample 32     made  within a quarter  low–high holds  high ÷ low")
    for name in given.on.split(","):
        of_suite: list[Prediction] = []
        if name == "labelled":
            of_suite = [_shown(name, found) for found in labelled(given.budget)]
            _summed(name, of_suite)
            continue
        with tempfile.TemporaryDirectory() as work:
            for found in predictions(SCENARIOS[name](given.data.resolve(), Path(work), 0.0), given.budget):
                if isinstance(found, str):
                    print(f"{name} {found}")
                    continue
                of_suite.append(_shown(name, found))
        _summed(name, of_suite)
    return 0


def _shown(suite: str, found: Prediction) -> Prediction:
    """The same, printed."""
    print(
        f"{suite} {found.query:4} {found.low:7,.0f} {found.expected:9,.0f} {found.high:8,.0f} {found.sampled:10,.0f} "
        f"{found.made:8,}  {_yes(found.is_near):>16}  {_yes(found.holds):>14}  {found.high / max(found.low, 1.0):10.1f}",
        flush=True,
    )
    return found


def _summed(suite: str, done: list[Prediction]) -> None:
    near, held = sum(p.is_near for p in done), sum(p.holds for p in done)
    wide = sum(p.high > 20 * max(p.low, 1.0) for p in done)
    print(
        f"{suite}: within a quarter {near} of {len(done)}; low–high holds {held} of {len(done)}; wider than 20: {wide}"
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


if __name__ == "__main__":
    sys.exit(main())
