"""A statement over rows that DuckDB gives in another order each time takes up its own draws; rows that changed are seen to have changed."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.kernels.duck import Duck, content_of
from uql.kernels.row_order import settled

MANY = 200_000  # rows that DuckDB reads on several threads
SOURCES = {
    "groups": "SELECT k, max(text) AS text FROM t GROUP BY k",
    "distinct rows": "SELECT DISTINCT k, text FROM t",
    "a union": "SELECT k, text FROM t UNION SELECT k, text FROM t",
    "a join": "SELECT a.k, b.text FROM t AS a JOIN t AS b ON a.k % 1000 = b.k % 100000",
    "a window": "SELECT k, text, count(*) OVER (PARTITION BY k % 9) AS n FROM t",
}


@pytest.fixture
def con() -> uql.Connection:
    con = uql.connect(model=HashModel({"it is so": 0.3}), ledger=":memory:", budget=40, method="uniform")
    con.execute("SET threads = 8")
    con.execute(f"CREATE TABLE t AS SELECT i AS k, 'note ' || i AS text FROM range({MANY}) r(i)")
    return con


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("what", ["count(*) AS n", "k"])
def test_the_same_statement_again_makes_no_calls(con: uql.Connection, source: str, what: str) -> None:
    statement = f'SELECT {what} FROM ({SOURCES[source]}) AS s WHERE "it is so" USING (text)'
    first = con.uql(statement)
    rows = first.fetchall()
    assert first.cost.calls
    again = con.uql(statement)
    assert (again.fetchall(), again.cost.calls) == (rows, 0)


@pytest.mark.parametrize("keeps", ["true", "false"])
def test_small_files_are_read_on_several_threads_and_paid_once(con: uql.Connection, tmp_path: Path, keeps: str) -> None:
    for i in range(8):
        rows = f"SELECT i AS id, i % 50 AS k, 'note ' || i AS text FROM range({500 * i}, {500 * i + 500}) r(i)"
        con.execute(f"COPY ({rows}) TO '{tmp_path / f'{i}.parquet'}'")
    con.execute("CREATE TABLE names AS SELECT range AS k, 'name ' || range AS name FROM range(50)")
    con.execute(f"SET preserve_insertion_order = {keeps}")
    statement = (
        f"""SELECT count(*) AS n FROM '{tmp_path}/*.parquet' AS f JOIN names USING (k) WHERE "it is so" USING (text)"""
    )
    first = con.uql(statement)
    rows = first.fetchall()
    assert first.cost.calls
    for _ in range(4):
        again = con.uql(statement)
        assert (again.fetchall(), again.cost.calls) == (rows, 0)


def test_first_rows_of_an_order_with_ties_are_the_same_again(con: uql.Connection) -> None:
    statement = 'SELECT k FROM t WHERE "it is so" USING (text) ORDER BY k % 3 LIMIT 5'
    first = con.uql(statement)
    rows = first.fetchall()
    assert first.cost.calls
    again = con.uql(statement)
    assert (again.fetchall(), again.cost.calls) == (rows, 0)


def test_rows_in_an_order_of_their_own_keep_it() -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i AS k FROM range({MANY}) r(i)")
        duck = Duck(connection)
        for sql in (
            "FROM t",
            "SELECT k FROM t WHERE k > 3",
            "SELECT k % 5 AS g, max(k) AS m FROM t GROUP BY g ORDER BY m",
        ):
            assert settled(sql, duck) == sql
        few = "SELECT DISTINCT k FROM range(9) r(k)"
        assert settled(few, duck) == few


@pytest.mark.parametrize(
    ("one", "other"),
    [("(1), (1), (2)", "(3), (3), (2)"), ("(1), (2)", "(2), (1)"), ("(1), (1)", "(1), (1), (2), (2)")],
    ids=["equal rows", "the order", "how many"],
)
def test_other_rows_have_another_content(one: str, other: str) -> None:
    with duckdb.connect() as connection:
        contents = {Duck(connection).scalar(content_of(f"SELECT x FROM (VALUES {v}) AS t(x)")) for v in (one, other)}
    assert len(contents) == 2


def test_a_table_whose_rows_all_stand_twice_is_seen_to_have_changed() -> None:
    con = uql.connect(model=HashModel({"it is so": 0.3}), ledger=":memory:", budget=40)
    con.execute("CREATE TABLE t AS SELECT 'note ' || i // 2 AS text FROM range(2000) r(i)")
    statement = 'SELECT count(*) AS n FROM t WHERE "it is so"'
    con.uql(statement).fetchall()
    con.execute("UPDATE t SET text = 'another ' || text")
    again = con.uql(statement)
    assert "0 new calls" not in again.explain()
    assert again.cost.calls and not any("answered from" in note for note in again.notes)
