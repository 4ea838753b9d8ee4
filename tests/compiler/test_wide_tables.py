"""Tables of many columns: the work for a statement grows with their number, not with its square."""

from __future__ import annotations

import time

import pytest
from hash_model import HashModel

import uql

STATEMENTS = [
    'SELECT id FROM wide WHERE "the {body} is nice"',
    'SELECT * FROM wide WHERE "the {body} is nice"',
    'SELECT COUNT(*) FROM wide WHERE "the {body} is good"',
    'EXPLAIN SELECT * FROM wide WHERE "the {body} is bad"',
    "SELECT * FROM wide",
]


def cpu_s(columns: int) -> float:
    """Seconds of the processor for all statements over one row of so many columns, the first look at the table included."""
    with uql.connect(model=HashModel(), ledger=":memory:") as con:
        con.execute("CREATE TABLE small AS SELECT 1 AS id, 'a text' AS body")
        for statement in STATEMENTS:  # what is loaded when first used
            con.uql(statement.replace("wide", "small")).fetchall()
        more = (f"{n} AS c{n}" if n % 2 else f"'value {n}' AS c{n}" for n in range(columns - 2))
        con.execute(f"CREATE TABLE wide AS SELECT *, {', '.join(more)} FROM small")
        started = time.process_time()
        for statement in STATEMENTS:
            con.uql(statement).fetchall()
        return time.process_time() - started


def test_the_time_of_a_statement_is_not_quadratic_in_the_columns_of_its_table() -> None:
    small = min(cpu_s(500), cpu_s(500))
    assert cpu_s(2_000) < 6 * small


@pytest.mark.slow
def test_10_000_columns_take_at_most_six_times_as_long_as_2_500() -> None:
    small = cpu_s(2_500)
    assert cpu_s(10_000) < 6 * small


def test_columns_of_a_table_are_not_described_again() -> None:
    with uql.connect(model=HashModel(), ledger=":memory:") as con:
        con.execute("CREATE TABLE notes AS SELECT 1 AS id, 2.5 AS price, 'a text' AS body, NULL AS nothing")
        said: list[str] = []
        describe = con.session.catalog.describe
        con.session.catalog.describe = lambda sql: said.append(sql) or describe(sql)  # type: ignore[method-assign,func-returns-value]
        result = con.uql('SELECT id, price, price + 1 AS more FROM notes WHERE "it is so" ORDER BY price')
        assert result.types == ["INTEGER", "DECIMAL(2,1)", "DECIMAL(12,1)"] and len(said) == 2
        assert con.uql("SELECT id, price FROM notes").types == ["INTEGER", "DECIMAL(2,1)"]
        assert not any("NULL" in sql for sql in said[2:])
