"""CPU milliseconds of planning a query of 8 semantic nodes: parsing and DuckDB's part apart, rules, fusions and orders together.

python -m uql.benchmarks.optimizer.planning_time [--times 30]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import uql
from uql.compiler.binder import bind
from uql.compiler.choice import Terms, choose
from uql.compiler.cost import BlockStatistics, Range, Unit
from uql.compiler.parser import parse
from uql.compiler.physical import Block
from uql.compiler.planner import plan
from uql.compiler.syntax import Query

COLUMNS = 8
QUERIES = {
    "8 predicates, each over a column of its own": "SELECT id FROM t WHERE {apart}",
    "8 predicates over two columns": "SELECT id FROM t WHERE {two}",
    "8 predicates over one column": "SELECT id FROM t WHERE {one}",
    "4 predicates, 3 values, 1 group": 'SELECT g, AVG("the number of actors" USING (c0)) AS a, AVG("the year" USING (c0)) AS b, '
    'MAX("the rating" USING (c1)) AS c FROM t WHERE {four} GROUP BY "the topic" USING (c0) AS g',
}


def planned_in_ms(con: uql.Connection, text: str, times: int) -> float:
    """The median CPU time from the bound query to the chosen plan."""
    parsed = parse(text)
    assert isinstance(parsed, Query)
    bound = bind(parsed, con.session.catalog, text=text)
    taken = []
    for _ in range(times):
        start = time.process_time()
        block = plan(bound.query)
        assert isinstance(block, Block)
        asked = (*block.filter.stages, *block.values.stages)
        known = BlockStatistics(Range.exactly(10_000), {stage.input_columns: 400.0 for stage in asked})
        choose(block, known, Terms(Unit(), None))
        taken.append(1000 * (time.process_time() - start))
    return float(np.median(taken))


def texts() -> dict[str, str]:
    """The queries."""
    apart = " AND ".join(f'"condition {i}" USING (c{i})' for i in range(COLUMNS))
    two = " AND ".join(f'"condition {i}" USING (c{i % 2})' for i in range(COLUMNS))
    one = " AND ".join(f'"condition {i}" USING (c0)' for i in range(COLUMNS))
    four = " AND ".join(f'"condition {i}" USING (c{i % 2})' for i in range(4))
    return {name: text.format(apart=apart, two=two, one=one, four=four) for name, text in QUERIES.items()}


def connected() -> uql.Connection:
    con = uql.connect(model=None, ledger=":memory:")
    columns = ", ".join(f"'some words about row ' || i AS c{j}" for j in range(COLUMNS))
    con.sql(f"SELECT i AS id, {columns} FROM range(20) r(i)").create("t")
    return con


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=30)
    given = parser.parse_args()
    print("query of 8 semantic nodes                       ms, median")
    with connected() as con:
        for name, text in texts().items():
            print(f"{name:46} {planned_in_ms(con, text, given.times):10.1f}")


if __name__ == "__main__":
    main()
