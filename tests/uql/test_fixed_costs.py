"""What a statement asks beside its own work: of DuckDB, and of the ledger. Nothing that may change is remembered from statement to statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.llm.gate import Gate

SEMANTIC = 'SELECT id FROM t WHERE "it is so"'


class Counting:
    """A cursor that counts the statements which it runs."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor, self.texts = cursor, []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cursor, name)
        if name not in ("execute", "sql"):
            return found

        def run(statement: str | duckdb.Statement, *values: Any, **named: Any) -> Any:
            self.texts.append(statement if isinstance(statement, str) else statement.query)
            return found(statement, *values, **named)

        return run


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute("CREATE TABLE t AS SELECT range AS id, 'text number ' || range AS text FROM range(12)")
        yield made


@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ("SELECT 42", 2),  # described, run
        (
            "SELECT id FROM t WHERE id > 3",
            4,
        ),  # and which tables and which views hold estimates: DuckDB plans a union of the two longer
        (SEMANTIC, 16),
        ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', 18),
    ],
)
def test_a_statement_asks_duckdb_no_more_than_it_needs(
    duck: duckdb.DuckDBPyConnection, statement: str, most: int
) -> None:
    with uql.attach(duck, model=HashModel({}), ledger=":memory:") as con:
        con.uql(statement).fetchall()
        con.catalog.cursor = counting = Counting(con.catalog.cursor)  # type: ignore[assignment]
        con.uql(statement).fetchall()
    assert 0 < len(counting.texts) <= most, "\n".join(counting.texts)
    assert sum("duckdb_databases()" in text for text in counting.texts) == (1 if '"' in statement else 0)


def test_a_plain_statement_has_no_definition_of_a_table_or_view_written_out(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE VIEW v AS SELECT id FROM t")
    with uql.attach(duck, model=HashModel({}), ledger=":memory:") as con:
        con.catalog.cursor = counting = Counting(con.catalog.cursor)  # type: ignore[assignment]
        assert len(con.uql("SELECT id FROM t").fetchall()) == 12
        assert len(counting.texts) == 4 and not any("sql" in text for text in counting.texts), counting.texts
        con.uql("SELECT id FROM V").fetchall()
        assert sum("SELECT sql FROM" in text for text in counting.texts) == 1, "that of a view that is named"


def test_beside_a_table_of_estimates_a_query_that_reads_it_not_reads_no_macros_and_tables_are_listed_once(
    duck: duckdb.DuckDBPyConnection,
) -> None:
    with uql.attach(duck, model=HashModel({}), ledger=":memory:") as con:
        con.execute("CREATE TABLE found AS SELECT 1 AS n; COMMENT ON TABLE found IS 'estimated by UQL: SELECT 1'")
        con.uql("SELECT id FROM t WHERE id > 3").fetchall()
        con.catalog.cursor = counting = Counting(con.catalog.cursor)  # type: ignore[assignment]
        con.uql("SELECT id FROM t WHERE id > 3").fetchall()
        assert not any("duckdb_functions()" in text for text in counting.texts)
        counting.texts.clear()
        assert con.catalog.estimates_read("SELECT * FROM t, t AS u, found") == ["found (SELECT 1)"]
        assert sum("duckdb_tables()" in text for text in counting.texts) == 1


@pytest.mark.parametrize(
    ("change", "statement", "before", "after"),
    [
        ("ALTER TABLE t ADD COLUMN more INTEGER DEFAULT 7", "SELECT * FROM t LIMIT 1", 2, 3),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS id", "SELECT * FROM t LIMIT 1", 2, 1),
        ("INSERT INTO t VALUES (99, 'one more')", f"{SEMANTIC} OR id >= 0", 12, 13),
        ("CREATE OR REPLACE VIEW v AS SELECT id, text FROM t WHERE id < 2", "SELECT id FROM v", 3, 2),
        (
            "CREATE OR REPLACE VIEW v AS SELECT id, text FROM t WHERE id < 2",
            'SELECT id FROM v WHERE "it is so" OR id >= 0',
            3,
            2,
        ),
        ("CREATE OR REPLACE MACRO few() AS TABLE SELECT id FROM t LIMIT 1", "SELECT * FROM few()", 4, 1),
    ],
)
def test_what_another_cursor_changes_is_seen_by_the_next_statement(
    duck: duckdb.DuckDBPyConnection, change: str, statement: str, before: int, after: int
) -> None:
    duck.execute("CREATE VIEW v AS SELECT id, text FROM t WHERE id < 3")
    duck.execute("CREATE MACRO few() AS TABLE SELECT id FROM t LIMIT 4")

    def size(con: uql.Connection) -> int:
        rows = con.uql(statement).fetchall()
        return len(rows[0]) if "*" in statement and "LIMIT 1" in statement else len(rows)

    with uql.attach(duck, model=HashModel({}), ledger=":memory:", budget="all") as con:
        assert size(con) == before
        duck.cursor().execute(change)
        assert size(con) == after


def test_a_macro_a_database_and_a_temporary_table_that_come_between_are_seen(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.attach(duck, model=HashModel({}), ledger=":memory:", budget="all") as con:
        duck.execute("CREATE MACRO total(x) AS x + 1")
        assert con.uql("SELECT total(id) AS a FROM t").fetchall()[0] == (1,)
        duck.execute("CREATE OR REPLACE MACRO total(x) AS sum(x)")
        assert con.uql(f"SELECT total(id) AS a FROM ({SEMANTIC} OR id >= 0)").fetchall() == [(66,)]
        duck.execute("ATTACH ':memory:' AS other; CREATE TABLE other.t AS SELECT 5 AS id, 'five' AS text; USE other")
        assert con.uql(f"{SEMANTIC} OR id >= 0").fetchall() == [(5,)]
        duck.execute("CREATE TEMP TABLE mine AS SELECT 6 AS id, 'six' AS text")
        assert con.uql(f"{SEMANTIC} OR id >= 0".replace("FROM t", "FROM mine")).fetchall() == [(6,)]
        duck.execute("USE memory; DETACH other")
        assert len(con.uql(f"{SEMANTIC} OR id >= 0")) == 12


def test_a_transaction_of_the_users_is_noticed_while_it_is_open(duck: duckdb.DuckDBPyConnection) -> None:
    def is_told(con: uql.Connection) -> bool:
        return any("transaction" in said for said in con.uql(SEMANTIC).warnings)

    with uql.attach(duck, model=HashModel({}), ledger=":memory:") as con:
        for end in ("COMMIT", "ROLLBACK"):
            assert not is_told(con)
            duck.execute("BEGIN; INSERT INTO t VALUES (99, 'one more')")
            assert is_told(con) and is_told(con)
            duck.execute(end)
            assert not is_told(con)
        duck.execute("BEGIN")
        with pytest.raises(duckdb.Error):
            duck.execute("SELECT error('no')").fetchall()
        assert not is_told(con), "nothing can be asked of it"
        duck.execute("ROLLBACK; BEGIN; DELETE FROM t")
        assert is_told(con)


@pytest.mark.parametrize("asked_before", [0, 40])
def test_a_row_is_looked_up_in_the_ledger_once_before_a_sample_is_drawn(
    monkeypatch: pytest.MonkeyPatch, asked_before: int
) -> None:
    looked_up: list[str] = []
    known = Gate.ledger_answers

    async def counted(self: Gate, questions: Any, rows: Any, **more: Any) -> Any:
        looked_up.extend(str(row.cells[0].value) for row in rows)
        return await known(self, questions, rows, **more)

    with uql.connect(model=HashModel({}), ledger=":memory:", seed=1, budget=64) as con:
        con.execute("CREATE TABLE t AS SELECT range AS id, 'text number ' || range AS text FROM range(300)")
        con.uql(f"{SEMANTIC} AND id < 1").fetchall()  # the question is known
        con.uql(f"{SEMANTIC} AND id < {asked_before}").fetchall()
        monkeypatch.setattr(Gate, "ledger_answers", counted)
        assert not con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so"').estimates["n"].exact
    assert len(set(looked_up)) == 300 and len(looked_up) == 300
