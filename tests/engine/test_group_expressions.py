"""A group key may be an expression over texts: the same expression in SELECT, HAVING and ORDER BY is the key, and nothing is asked of groups."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel

import uql

CASE = "CASE WHEN \"it is good\" THEN 'good' ELSE 'other' END"


@pytest.fixture(scope="module")
def counted() -> list[tuple[str, int]]:
    """The groups by the rows' own answers."""
    with connect() as con:
        good = con.uql('SELECT id FROM t WHERE "it is good"').fetchall()
    return [("good", len(good)), ("other", 60 - len(good))]


def connect() -> uql.Connection:
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t AS SELECT range AS id, 'a long review number ' || range AS text FROM range(60)")
    return uql.attach(duck, model=HashModel({"it is good": 0.3}), ledger=":memory:")


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {CASE} AS s, COUNT(*) AS n FROM t GROUP BY 1 ORDER BY 1",
        f"SELECT {CASE} AS s, COUNT(*) AS n FROM t GROUP BY s ORDER BY s",
        f"SELECT {CASE} AS s, COUNT(*) AS n FROM t GROUP BY ALL ORDER BY ALL",
        f"SELECT {CASE} AS s, COUNT(*) AS n FROM t GROUP BY {CASE} ORDER BY {CASE}",
        f"SELECT lower(upper({CASE})) AS s, COUNT(*) AS n FROM t GROUP BY upper({CASE}) HAVING upper({CASE}) <> 'BAD' ORDER BY 1",
    ],
)
def test_the_expression_is_the_key_wherever_it_stands(query: str, counted: list[tuple[str, int]]) -> None:
    with connect() as con:
        result = con.uql(query)
        assert result.fetchall() == counted
        assert result.exact and result.cost.calls == 60


def test_another_text_beside_it_is_said_of_the_groups() -> None:
    with connect() as con:
        result = con.uql(f'SELECT {CASE} AS s, COUNT(*) AS n, "what is said" AS u FROM t GROUP BY 1')
        assert all(u for _, _, u in result.fetchall()) and result.cost.calls > 60
