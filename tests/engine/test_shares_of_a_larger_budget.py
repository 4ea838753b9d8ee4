"""The parts of a statement share a budget; a larger one goes on with each part's share of the smaller one."""

from __future__ import annotations

import pytest
from hash_model import HashModel

import uql

STATEMENTS = {
    "union": 'SELECT id FROM t WHERE "it is so" UNION SELECT id FROM t WHERE "it is good"',
    "union all": 'SELECT id FROM t WHERE stars > 2 AND "it is so" UNION ALL SELECT id FROM t WHERE "it is good"',
    "sub-query": 'SELECT id FROM t WHERE stars * 50 > (SELECT count(*) FROM t WHERE "it is so") AND "it is good"',
}


@pytest.mark.parametrize(("name", "budgets"), [("union", (16, 64)), ("union all", (8, 24)), ("sub-query", (24, 64))])
def test_two_runs_make_no_more_calls_together_than_the_larger_budget_allows(name, budgets):
    with uql.connect(model=HashModel({"it is so": 0.2, "it is good": 0.4}), ledger=":memory:") as con:
        con.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 5 AS stars, 'some words about thing ' || i AS body FROM range(60) r(i)"
        )
        calls = [con.uql(f"{STATEMENTS[name]} WITH (budget = {budget})").cost.calls for budget in budgets]
    assert calls[0] == budgets[0]
    assert sum(calls) <= budgets[1]
