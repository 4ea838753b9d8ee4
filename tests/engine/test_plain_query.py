"""A query without texts that is not bound says what it says when it is bound: names, types, exact estimates, rows, errors."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import duckdb
import pytest
from plain_statements import TABLES, Statements

import uql
from uql.kernels.duck import Duck
from uql.session import script

WRITTEN = [
    "SELECT * FROM t", "SELECT *, id FROM t", "SELECT id, * FROM t", "SELECT * EXCLUDE (id) FROM t", "FROM t", "SELECT ID, id FROM T",
    "SELECT count( * ) FROM t", "SELECT count(*) c, c + 1 AS d FROM t", "SELECT a, count(*) FROM t GROUP BY a", "SELECT a, max(id) FROM t GROUP BY ALL",
    "SELECT 3, sum(2) AS k FROM t GROUP BY ALL", "SELECT count(*) OVER () FROM t", "SELECT max(id) - min(id), 3 FROM t", "SELECT id::INT FROM t",
    "SELECT x.id FROM t x JOIN u y ON x.id = y.id", "SELECT * FROM t x JOIN u y USING (id)", "SELECT unnest({'a': 1, 'b': 2})", "SELECT min(COLUMNS(*)) FROM t",
    "VALUES (1, 'a'), (2, 'b')", "SELECT count(*) FROM t UNION SELECT 1", "WITH x AS (SELECT 1 AS q) SELECT q, q + 1 FROM x", "SELECT 1 AS a, a FROM t",
    "SELECT (SELECT max(id) FROM u)", "SELECT a, GROUPING(a), count(*) FROM t GROUP BY ROLLUP (a)", "SELECT highest(id), a FROM t GROUP BY a",
    "SELECT id.max() FROM t", "SELECT count(*) FROM t WHERE false", "SELECT a FROM t GROUP BY a HAVING count(*) > 2", "SELECT id FROM t, u",
    "SELECT nope FROM t", "SELECT id FROM nope", "SELECT CAST(s AS INT) FROM t", "SELECT id FROM t ORDER BY 'x'", "SELECT $x + 1", "SELECT id FROM t ORDER BY $x",
]  # fmt: skip


@pytest.fixture(scope="module")
def con():
    with uql.connect(":memory:", ledger=":memory:") as made:
        for table in (*TABLES, "CREATE MACRO highest(x) AS max(x)"):
            made.uql(table)
        yield made


def said(con, statement, values):
    try:
        found = con.uql(statement, **values).run()
    except uql.UQLError as error:
        return error.code, str(error)
    rows = sorted(repr(row) for row in zip(*(column.to_pylist() for column in found.table.columns), strict=True))
    held = {name: made if isinstance(made, list) else [made] for name, made in found.estimates.items()}
    return found.table.column_names, found.types, {name: len(made) for name, made in held.items()}, found.exact, rows


def cases():
    source = Statements(11)
    return [(one, {"x": 2} if "$x" in one else {}) for one in WRITTEN] + [source.statement() for _ in range(60)]


def test_what_is_not_bound_says_what_it_says_when_bound(con, monkeypatch):
    made = []
    whole = script.plain_query
    for statement, values in cases():
        if " LIMIT " in statement or "QUALIFY" in statement:  # which rows of equal keys are kept is DuckDB's choice
            continue
        monkeypatch.setattr(script, "plain_query", lambda *_: None)
        bound = said(con, statement, dict(values))
        monkeypatch.setattr(script, "plain_query", lambda *given: made.append(whole(*given)) or made[-1])
        assert said(con, statement, dict(values)) == bound, statement
    assert sum(one is not None for one in made) > 30


@pytest.mark.parametrize("change", ["SET default_order = 'desc'", "SET default_null_order = 'nulls_first'"])
@pytest.mark.parametrize("way", ["uql", "execute"])
def test_an_order_that_is_chosen_meanwhile_holds_for_the_next_statement(change, way):
    with uql.connect(":memory:", ledger=":memory:") as con:
        con.uql("CREATE TABLE t AS SELECT unnest([1, NULL, 2]) AS a")
        con.uql("SELECT a FROM t ORDER BY a").fetchall()
        getattr(con, way)(change)
        want = con.execute("SELECT a FROM t ORDER BY a").fetchall()
        assert con.uql("SELECT a FROM t ORDER BY a").fetchall() == want
        assert con.uql("SELECT a FROM (SELECT a FROM t) ORDER BY ALL").fetchall() == want


def test_a_plain_query_asks_duckdb_for_its_description_once(con, monkeypatch):
    """The fixed cost of a statement: each question to DuckDB is about half a millisecond."""
    asked = []
    catalog = con.session.catalog
    rows, describe = type(catalog)._rows, type(catalog).describe
    monkeypatch.setattr(type(catalog), "_rows", lambda self, sql, *more: asked.append(sql) or rows(self, sql, *more))
    monkeypatch.setattr(type(catalog), "describe", lambda self, sql: asked.append(sql) or describe(self, sql))
    con.uql("SELECT 42").fetchall()
    asked.clear()
    assert con.uql("SELECT 42").fetchall() == [(42,)]
    assert asked == ["SELECT 42"]
    asked.clear()
    con.uql("SELECT max(id) FROM t").fetchall()
    assert len(asked) == 2, asked  # and the tables and the views that hold estimates


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i, i % 3 AS k, 'n' || i AS name FROM range(50) r(i) WHERE i > 4 ORDER BY k, i DESC",
        "SELECT NULL AS nothing, [1, 2] AS list, {'a': DATE '2024-01-01'} AS s, 7::HUGEINT AS h, INTERVAL 3 DAYS AS d",
        "SELECT k, count(*) AS n, sum(i) AS total FROM (SELECT i % 3 AS k, i FROM range(9) r(i)) GROUP BY k ORDER BY k",
        "SELECT 'a' AS x UNION ALL SELECT 'b'",
    ],
)
def test_what_a_plain_query_writes_is_written_by_duckdb_without_a_row_in_python(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(*arguments: object) -> NoReturn:
        raise AssertionError("the rows were fetched")

    file = str(tmp_path / "rows.parquet")
    with uql.connect() as con, duckdb.connect() as plain:
        plain.execute(f"CREATE TABLE t AS {query}")
        rows, described = plain.execute("FROM t").fetchall(), plain.execute("DESCRIBE t").fetchall()
        with monkeypatch.context() as patched:
            patched.setattr(Duck, "arrow", fetched)
            counts = [
                con.uql(f"CREATE TABLE t AS {query}").run().table.column("Count").to_pylist(),
                con.uql(f"COPY ({query}) TO '{file}'").run().table.column("Count").to_pylist(),
            ]
        assert counts == [[len(rows)]] * 2
        assert con.execute("FROM t").fetchall() == rows and con.execute("DESCRIBE t").fetchall() == described
        assert con.execute(f"FROM '{file}'").fetchall() == rows


def test_a_plain_write_that_fails_says_where_and_leaves_nothing() -> None:
    with uql.connect() as con:
        with pytest.raises(uql.UQLError, match="Could not convert") as caught:
            con.uql("CREATE TABLE t AS SELECT i, ('x' || i)::INTEGER AS n FROM range(3) r(i)").run()
        assert caught.value.code == "UQL509" and "t" not in [name for (name,) in con.execute("SHOW TABLES").fetchall()]
        assert con.uql("SELECT 1 AS one").fetchall() == [(1,)]
