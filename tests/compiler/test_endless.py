"""Statements that are short and would take the compiler endless time or memory: each is planned, or refused, within seconds of CPU."""

from __future__ import annotations

import time

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import BindError

POSITIVE = '"the review is positive"'
LONG_NAME = "customer_identification_number_of_the_account"
SECONDS = 5.0  # of CPU, at most
COLUMNS = [f"c{n}" for n in range(22)]
REFUSED = {
    "cube": f"SELECT COUNT(*) FROM wide WHERE {POSITIVE} GROUP BY CUBE ({', '.join(COLUMNS)})",
    "cube in grouping sets": f"SELECT COUNT(*) FROM wide WHERE {POSITIVE} GROUP BY GROUPING SETS (CUBE ({', '.join(COLUMNS)}))",
    "product of cubes": f"SELECT COUNT(*) FROM wide WHERE {POSITIVE} GROUP BY {', '.join(['CUBE (c1, c2, c3)'] * 5000)}",
    "pattern": rf"SELECT COLUMNS('^(\w+)+!$') FROM wide WHERE {POSITIVE}",
    "deep AND": f"SELECT COUNT(*) FROM wide WHERE {POSITIVE} AND {' AND '.join(f'c1 <> {n}' for n in range(10_000))}",
}


@pytest.fixture(scope="module")
def con() -> uql.Connection:
    duck = duckdb.connect()
    duck.execute(
        f"CREATE TABLE wide AS SELECT {', '.join(f'{n} AS {name}' for n, name in enumerate(COLUMNS))}, 1 AS {LONG_NAME}, "
        "'a review that was written' AS body FROM range(20)"
    )
    return uql.attach(duck, model=HashModel({"the review is positive": 0.5}), ledger=":memory:")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", REFUSED)
def test_a_statement_that_would_not_end_is_refused_in_time(kind: str, con: uql.Connection) -> None:
    begun = time.process_time()
    with pytest.raises(BindError, match="UQL21"):
        con.uql(REFUSED[kind]).fetchall()
    assert time.process_time() - begun < SECONDS


def test_a_long_number_in_quotes_is_read_in_linear_time(con: uql.Connection) -> None:
    begun = time.process_time()
    con.uql(f"""EXPLAIN SELECT COUNT(*) FROM wide WHERE "the size of it" > '{"1" * 40_000}x' """).fetchall()
    assert time.process_time() - begun < SECONDS


def test_the_pattern_of_columns_is_duckdbs_own(con: uql.Connection) -> None:
    result = con.uql(rf"SELECT COLUMNS('^c(\pN)$') AS 'number_\1_of_\0' FROM wide WHERE {POSITIVE} LIMIT 1")
    assert result.columns[:2] == ["number_0_of_c0", "number_1_of_c1"] and len(result.columns) == 10
    with pytest.raises(BindError, match="COLUMNS"):
        con.uql(f"SELECT COLUMNS('(') FROM wide WHERE {POSITIVE}").fetchall()
