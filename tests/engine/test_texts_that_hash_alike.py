"""Two texts of which DuckDB's hash is the same are two texts: in DISTINCT, and where equal texts are asked once."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel

import uql

ALIKE = ["text 200 of some length that is about 10", "text 207 of some length that is about 11"]


@pytest.fixture
def con():
    duck = duckdb.connect()
    assert duck.execute("SELECT hash($1) = hash($2)", ALIKE).fetchone() == (True,), "of this version of DuckDB"
    duck.execute(
        "CREATE TABLE t AS SELECT i AS id, 'a review ' || i || ' of a few words' AS body, $2[i % 2 + 1] AS product,"
        " 'text ' || i || ' of some length that is about ' || i * 7919 % 13 AS words FROM range($1) r(i)",
        [2000, ALIKE],
    )
    return uql.attach(duck, model=HashModel({"it is good": 1.0}), ledger=":memory:")


def test_distinct_has_both(con):
    result = con.uql('SELECT DISTINCT product FROM t WHERE "it is good" USING (body) ORDER BY product WITH (exact)')
    assert result.fetchall() == [(text,) for text in ALIKE]
    assert result.exact


def test_both_are_asked(con):
    for column, texts in (("product", 2), ("words", 2000)):
        statement = f'SELECT count(*) FROM t WHERE "it is good" USING ({column}) WITH (exact)'
        assert f"Calls: {texts:,}\n" in con.uql(statement).explain()
        result = con.uql(statement)
        assert result.fetchall() == [(2000,)] and result.cost.calls == texts
