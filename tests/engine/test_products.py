"""Sums of a stored number times a value that a model reads: rows whose stored number is great are asked first, and bound what the others add."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hash_model import HashModel

import uql
from uql.llm.questions import Question, Row

READ = '"the share that is said"'


def said(question: Question, row: Row) -> float:
    """A number between 0 and 1 by the row's own number."""
    return int(str(row.cells[0].value).split()[-1]) * 37 % 100 / 100


def connection(seed: int, answers: Callable[[Question, Row], float] = said) -> uql.Connection:
    con = uql.connect(model=HashModel(answers=answers), ledger=":memory:", seed=seed, budget=96, examples=False)
    rng = np.random.default_rng(5)
    n = 3000
    table = {
        "id": range(n),
        "v": np.exp(1.5 * rng.standard_normal(n)),
        "text": [f"this is entry {i}" for i in range(n)],
    }
    con.register("told", pa.table(table))
    con.sql("CREATE TABLE t AS SELECT *, id % 3 AS k FROM told")
    return con


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("aggregate", "true"),
    [
        (f"sum(v * {READ})", "sum(v * (id * 37 % 100) / 100.0)"),
        (f"avg({READ} * v)", "avg(v * (id * 37 % 100) / 100.0)"),
        (
            f"sum(v * {READ} / (1 + k)) FILTER (WHERE k < 2)",
            "sum(v * (id * 37 % 100) / 100.0 / (1 + k)) FILTER (WHERE k < 2)",
        ),
    ],
)
def test_the_interval_of_a_sum_of_products_holds_the_truth_and_is_no_wider_than_it(aggregate, true):
    held, widths, errors = 0, [], []
    for seed in range(12):
        con = connection(seed)
        truth = con.sql(f"SELECT {true} FROM t").fetchall()[0][0]
        result = con.uql(f"SELECT {aggregate} AS s FROM t")
        result.fetchall()
        found = result.estimates["s"]
        held += found.low <= truth <= found.high
        widths.append((found.high - found.low) / truth)
        errors.append(abs(found.value / truth - 1))
    assert held >= 10
    assert np.median(widths) < 1.0
    assert np.mean(errors) < 0.25


def test_rows_with_the_greatest_stored_factor_are_asked():
    asked: set[int] = set()

    def noting(question: Question, row: Row) -> float:
        asked.add(int(str(row.cells[0].value).split()[-1]))
        return said(question, row)

    con = connection(0, noting)
    con.uql(f"SELECT sum(v * {READ}) AS s FROM t").fetchall()
    greatest = {row[0] for row in con.sql("SELECT id FROM t ORDER BY v DESC LIMIT 8").fetchall()}
    assert len(asked) <= 96
    assert greatest <= asked
