"""The model as a user-defined function of an SQL engine: no sampling, no search, the first B rows that the scan gives.

DuckDB calls the function for each row of the scan. Tables have no order of their own, so each seed scans in another one.
"""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from uql.benchmarks.uqe.data import Condition, Grouping
from uql.benchmarks.uqe.model import Model
from uql.benchmarks.uqe.systems.uniform import TAXONOMY_ROWS, named

SCAN = "(SELECT i FROM numbered ORDER BY place LIMIT {budget})"


def _connected(model: Model, condition: Condition, rng: np.random.Generator) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    numbered = pa.table({"i": np.arange(model.world.n), "place": rng.permutation(model.world.n)})
    con.register("numbered", numbered)

    def asked(rows: Any) -> Any:  # Arrow arrays
        return pa.array(model.is_so(condition.text, rows.to_pylist()), pa.bool_())

    create: Any = con.create_function  # its names of types moved between versions; the strings did not
    create("ask", asked, ["BIGINT"], "BOOLEAN", type="arrow", null_handling="special", side_effects=True)
    return con


def count(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> float:
    """COUNT(*) of the rows that pass among the first B, scaled to the table."""
    with _connected(model, condition, rng) as con:
        ((yes, all_),) = con.execute(
            f"SELECT COUNT(*) FILTER (said), COUNT(said) FROM (SELECT ask(i) AS said FROM {SCAN.format(budget=budget)})"
        ).fetchall()
    return model.world.n * yes / all_ if all_ else float("nan")


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The rows that pass among the first B."""
    with _connected(model, condition, rng) as con:
        return [row[0] for row in con.execute(f"SELECT i FROM {SCAN.format(budget=budget)} WHERE ask(i)").fetchall()]


def group(model: Model, grouping: Grouping, budget: int, rng: np.random.Generator) -> dict[str, float]:
    """Groups named from the first 16 rows, the first B rows put into them, scaled to the table."""
    n = model.world.n
    order = rng.permutation(n).tolist()
    labels = named(model, grouping, order[:TAXONOMY_ROWS])
    said = model.which(grouping.text, labels, order[:budget])
    return {label: n * said.count(label) / len(said) for label in labels}
