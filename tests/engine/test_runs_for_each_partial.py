"""A sub-query that is run for each value around it, and whose search the budget ended, has no false value."""

from __future__ import annotations

import pytest
from hash_model import HashModel

import uql

WAYS = {
    "exists": "EXISTS ({})",
    "in": "39 IN ({})",
    "any": "39 = ANY ({})",
    "not exists": "NOT EXISTS ({})",
    "not in": "39 NOT IN ({})",
    "all": "39 <> ALL ({})",
}


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "inner",
    [
        'SELECT DISTINCT t.id % 40 AS x FROM t WHERE t.k = o.k AND "it is so" UNION ALL SELECT 50 WHERE o.k < 0',
        'SELECT s.x FROM (SELECT t.id % 40 AS x FROM t WHERE t.k - o.k = 0 AND "it is so" LIMIT 3) AS s',
    ],
    ids=["union", "derived"],
)
def test_what_was_not_found_is_not_false(way, inner):
    with uql.connect(model=HashModel({"it is so": 0.02}), ledger=":memory:") as con:
        con.execute(
            "CREATE TABLE t AS SELECT i AS id, i % 4 AS k, 'some words about thing ' || i AS body FROM range(400) r(i)"
        )
        query = f"SELECT o.k, {WAYS[way].format(inner)} AS v FROM (VALUES (0), (1), (2), (3)) AS o(k) ORDER BY 1"
        part = con.uql(f"{query} WITH (budget = 24)").fetchall()
        whole = con.uql(f"{query} WITH (budget = 'all')")
        assert whole.exact
        wrong = [(a, b) for (_, a), (_, b) in zip(part, whole.fetchall(), strict=True) if a is not None and a != b]
        assert not wrong
        assert any(v is None for _, v in part)
