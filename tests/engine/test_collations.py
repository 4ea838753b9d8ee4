"""Rows that come out of a query with a text compare by the collations of their columns, as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel

import uql

ROWS = [(i, f"row {i} is written here, at some length", "xXyYzé"[i % 6] + " " * (i % 4 // 3)) for i in range(24)]
HELD = '"it holds {body}"'
STATEMENTS = [
    f"SELECT n, count(*) FROM (SELECT k AS n FROM t WHERE {HELD} LIMIT 99) GROUP BY n ORDER BY n",
    f"SELECT id FROM t WHERE k IN (SELECT DISTINCT k FROM t WHERE {HELD} AND id < 4) ORDER BY id",
    f"SELECT n FROM (SELECT k AS n, count(*) AS c FROM t WHERE {HELD} GROUP BY k) WHERE n = 'X'",
    f"SELECT count(*) FROM (SELECT k FROM t WHERE {HELD} UNION SELECT k FROM t)",
    f"SELECT count(*) FROM (SELECT k FROM t WHERE {HELD} INTERSECT SELECT s FROM t)",
    f"SELECT count(*) FROM (SELECT s FROM t WHERE {HELD} EXCEPT SELECT k FROM t WHERE id < 3)",
    f"SELECT id FROM (SELECT s COLLATE NOCASE AS n, id FROM t WHERE {HELD} LIMIT 99) WHERE n = 'X' ORDER BY id",
    f"SELECT l, s, count(*) FROM (SELECT [k] AS l, {{'a b': k, 'n': 1}} AS s FROM t WHERE {HELD} LIMIT 99) GROUP BY l, s ORDER BY l",
    f"SELECT count(*) FROM (SELECT [[k]] AS l, [{{'a': k}}] AS s FROM t WHERE {HELD} UNION SELECT [[k]], [{{'a': k}}] FROM t)",
    f"PIVOT (SELECT k FROM t WHERE {HELD}) ON k USING count(*)",
    f"SELECT x.id, q.n FROM t x, LATERAL (SELECT x.k AS n FROM t y WHERE y.id = 1 AND {HELD.replace('body', 'y.body')} OR y.id = 2 LIMIT 1) q"
    " ORDER BY x.id",
]


@pytest.fixture
def con():
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t(id INTEGER, body VARCHAR, k VARCHAR COLLATE NOCASE, s VARCHAR, held BOOLEAN)")
    duck.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [(*row, row[2], row[0] % 5 > 1) for row in ROWS])
    held = {body: i % 5 > 1 for i, body, _ in ROWS}
    model = HashModel(answers=lambda question, row: held[row.cells[0].value])
    return uql.attach(duck, model=model, ledger=":memory:", budget="all")


@pytest.mark.thorough
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_collation_comes_out_of_a_sub_query(con, statement):
    result = con.uql(statement)
    plain = statement.replace('"it holds {y.body}"', "y.held").replace(HELD, "held")
    assert result.fetchall() == con.sql(plain).fetchall()
    assert result.exact


def test_a_table_of_a_query_keeps_collations(con):
    con.uql(f"CREATE TABLE kept AS SELECT id, k FROM t WHERE {HELD}").fetchall()
    con.uql(f"SELECT id, k FROM t WHERE {HELD} TO other").fetchall()
    (want,) = con.sql("SELECT count(*) FROM t WHERE held AND k = 'x'").fetchall()
    assert con.sql("SELECT count(*) FROM kept WHERE k = 'X'").fetchall() == [want]
    assert con.uql("SELECT count(*) FROM other WHERE k = 'X'").fetchall() == [want]
    assert len(con.uql(f"SELECT id, k FROM t WHERE {HELD}").filter("k = 'X'").fetchall()) == want[0]


@pytest.mark.parametrize("made", ["CREATE TABLE kept AS {}", "{} TO kept", "CREATE SEMANTIC TABLE kept AS {} KEY (id)"])
def test_a_table_of_a_query_keeps_the_collations_in_lists_and_structs(con, made):
    columns = (
        "id, [k, 'b'] AS l, {'a': k, 'n': id} AS s, CASE WHEN id > 9 THEN [{'a': [k]}] END AS deep, MAP {k: 1} AS m"
    )
    con.uql(made.format(f"SELECT {columns} FROM t WHERE {HELD}")).fetchall()
    for query in (
        "SELECT count(DISTINCT l), count(DISTINCT s.a), count(DISTINCT deep), count(deep) FROM {}",
        "SELECT id FROM {} WHERE l = ['X', 'B'] OR s.a = 'Z' OR deep = [{{'a': ['Y']}}] ORDER BY id",
        "SELECT l[1], s.a, deep, m::VARCHAR FROM {} ORDER BY id",
    ):
        want = con.sql(query.format(f"(SELECT {columns} FROM t WHERE held)")).fetchall()
        assert con.sql(query.format("kept")).fetchall() == want, query


def test_a_semantic_table_keeps_collations_and_follows_a_change_of_case(con):
    con.uql(f"CREATE SEMANTIC TABLE kept AS SELECT id, body, k, upper(s) AS u FROM t WHERE {HELD} KEY (id)").fetchall()
    for query in ("SELECT k, count(*) FROM {} GROUP BY k ORDER BY k", "SELECT id FROM {} WHERE k = 'X' ORDER BY id"):
        want = con.sql(query.format("(SELECT * FROM t WHERE held)")).fetchall()
        assert con.uql(query.format("kept")).fetchall() == want
    assert con.sql("SELECT k FROM kept WHERE id = 2").fetchall() == [("y",)]
    con.execute("UPDATE t SET k = 'Y' WHERE id = 2")
    con.uql("REFRESH kept").fetchall()
    assert con.sql("SELECT k FROM kept WHERE id = 2").fetchall() == [("Y",)]


def test_so_does_a_table_of_aggregates(con):
    con.uql(
        f"CREATE TABLE kept AS SELECT k, max(s COLLATE NOCASE) AS m, count(*) AS n FROM t WHERE {HELD} GROUP BY k"
    ).fetchall()
    assert con.sql("SELECT count(*) FROM kept WHERE k = 'X' AND m = 'X'").fetchall() == [(1,)]
    con.uql(f"CREATE TABLE few AS SELECT k, count(*) AS n FROM t WHERE {HELD} GROUP BY k WITH (budget = 9)").fetchall()
    assert con.sql("SELECT count(*) = count(*) FILTER (upper(k) = lower(k)) FROM few").fetchall() == [(True,)]
