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


TWO = '(SELECT id, body FROM t WHERE "it is so" LIMIT 20) UNION (SELECT id, body FROM t WHERE "it is good" LIMIT 20)'
WHERE_BUDGETS_END = {
    "two limits": TWO,
    "a join of limits": f'SELECT x.id FROM ({TWO}) x JOIN (SELECT id FROM t WHERE "it is good" LIMIT 9) y USING (id)',
    "values of a limit": 'SELECT id, "the name" FROM t WHERE "it is so" LIMIT 12',
    "a search in a search": 'WITH c AS (SELECT id, body FROM t WHERE "it is so") SELECT id FROM c WHERE "it is good" '
    "UNION ALL SELECT id FROM c WHERE id > 9",
    "rows chosen by an estimate": 'SELECT id FROM t WHERE stars > (SELECT avg(stars) FROM t WHERE "it is good") AND "it is so"',
    "an order": 'SELECT id FROM t WHERE "it is so" ORDER BY stars LIMIT 20',
}


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", WHERE_BUDGETS_END)
@pytest.mark.parametrize("seed", range(4))
def test_a_larger_budget_goes_on_where_a_smaller_one_ended_between_two_looks(name, seed):
    for budgets in [(5, 16), (8, 24), (8, 16, 32)]:
        model = HashModel({"it is so": 0.3, "it is good": 0.1})
        with uql.connect(model=model, ledger=":memory:", seed=seed) as con:
            con.execute(
                "CREATE TABLE t AS SELECT i AS id, i % 5 AS stars, 'some words about thing ' || i AS body FROM range(120) r(i)"
            )
            for budget in budgets:
                con.uql(f"{WHERE_BUDGETS_END[name]} WITH (budget = {budget})").fetchall()
        assert model.calls <= budgets[-1], (seed, budgets)
