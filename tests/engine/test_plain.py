"""A statement with nothing semantic in it gives DuckDB's rows in DuckDB's order, or an error where DuckDB gives one."""

from __future__ import annotations

import duckdb
import pytest
from labels import both, plain
from plain_statements import TABLES, Statements

import uql
from uql.base.errors import UQLError


@pytest.fixture(scope="module")
def con():
    with uql.connect(ledger=":memory:") as connection:
        connection.execute("SET threads = 1")
        for table in TABLES:
            connection.execute(table)
        yield connection


def rows_or_error(run, error):
    try:
        return [plain(row) for row in run().fetchall()]
    except error:
        return "an error"


def differences(con, seeds):
    """The random statements of these seeds whose rows, order or errors are not DuckDB's."""
    found = []
    for seed in seeds:
        text, values = Statements(seed).statement()
        want = rows_or_error(lambda t=text, v=values: con.execute(t, v or None), duckdb.Error)
        got = rows_or_error(lambda t=text, v=values: con.uql(t, v), UQLError)
        if got != want:
            found.append((seed, text, values, want, got))
    return found


CONSTANTS = [
    ("SELECT 2 AS k, id FROM t ORDER BY k, id DESC LIMIT 3", {}),
    ("SELECT $k AS k, id FROM t ORDER BY k, id DESC LIMIT 3", {"k": 2}),
    ("SELECT 2024 AS year, count(*) FROM t GROUP BY year", {}),
    ("SELECT $year AS year, count(*) FROM t GROUP BY year", {"year": 2024}),
    ("SELECT 'happy' AS kind, count(*) FROM t GROUP BY kind ORDER BY kind", {}),
    ("SELECT 2 AS k, id FROM t UNION ALL SELECT 3, 4 ORDER BY k, id DESC LIMIT 5", {}),
    ("SELECT 2 AS k, id FROM t ORDER BY ALL DESC LIMIT 3", {}),
    ("SELECT 2 AS k, count(*) FROM t GROUP BY ALL ORDER BY ALL", {}),
    ("SELECT 2 AS k, a, count(*) AS n FROM t GROUP BY k, 2 ORDER BY k NULLS FIRST, 2 DESC", {}),
    ("SELECT DISTINCT ON (k) 2 AS k, id FROM t ORDER BY id DESC", {}),
    ("SELECT DISTINCT ON (a) id, a FROM t ORDER BY 2, 1 DESC", {}),
    ("SELECT 'b' AS k, s FROM t ORDER BY k COLLATE NOCASE, s NULLS FIRST, id LIMIT 4", {}),
    ("SELECT id, row_number() OVER (ORDER BY 2, id DESC) AS r FROM t ORDER BY 2", {}),
    ("SELECT k, count(*) FROM (SELECT 2 AS k, a FROM t) GROUP BY k, a ORDER BY k, 2", {}),
    (
        "SELECT id FROM t WHERE id IN (SELECT id FROM (SELECT 2 AS k, id FROM t ORDER BY k, id DESC LIMIT 3)) ORDER BY 1",
        {},
    ),
    ("SELECT -id AS id FROM t ORDER BY id LIMIT 3", {}),
    ("SELECT -id AS id, count(*) FROM t GROUP BY id ORDER BY id LIMIT 3", {}),
    ("SELECT a AS b, b AS a FROM t ORDER BY a, b, id", {}),
    ("SELECT id AS k, -id AS k FROM t ORDER BY k LIMIT 3", {}),
    ("SELECT id AS k, -a AS k FROM t UNION ALL SELECT 7, 8 ORDER BY 2, 1", {}),
    ("SELECT true AS k, NULL AS n, DATE '2024-01-02' AS d, id FROM t ORDER BY k, n, d, id DESC LIMIT 3", {}),
    ("SELECT count(*) FROM t GROUP BY 'x', 1.5, NULL", {}),
    ('SELECT s FROM t WHERE s = "a0" ORDER BY "id"', {}),
]


@pytest.mark.parametrize(("text", "values"), CONSTANTS)
def test_a_constant_that_is_named_is_a_value_and_no_place(con, text, values):
    same = text.replace('"a0"', "'a0'")
    want = [plain(row) for row in con.execute(same, values or None).fetchall()]
    assert [plain(row) for row in con.uql(text, values).fetchall()] == want


@pytest.mark.parametrize(("text", "values"), CONSTANTS)
def test_it_is_one_where_sql_is_written_from_the_bound_query_too(con, text, values):
    want = [plain(row) for row in con.execute(text.replace('"a0"', "'a0'"), values or None).fetchall()]
    result = con.uql(f"{text} WITH (confidence = 0.95)", values)
    found = [plain(row) for row in result.fetchall()]
    assert found == want if "ORDER BY" in text else sorted(found) == sorted(want)


@pytest.mark.parametrize(
    ("text", "code", "help"),
    [
        ("SELECT id FROM t ORDER BY 'x'", "UQL208", 'double quotes: "x"'),
        ("SELECT id FROM t ORDER BY NULL", "UQL208", "the place of an item"),
        ("SELECT id, a FROM t ORDER BY -1", "UQL208", "1 to 2"),
        ("SELECT id FROM t ORDER BY 2", "UQL208", "write 1"),
        ("SELECT count(*) FROM t GROUP BY 5", "UQL208", "write 1"),
        ("SELECT count(*) FROM t GROUP BY -1", "UQL208", "write 1"),
        ("SELECT id FROM t ORDER BY $k", "UQL210", "write the column"),
        ("SELECT count(*) FROM t GROUP BY ROLLUP (a, $k)", "UQL210", "write the column"),
        ("SELECT $word AS s, count(*) FROM t GROUP BY CUBE ($word, a)", "UQL210", "write the column"),
        ("SELECT id AS k, a AS k FROM t UNION BY NAME SELECT 1 AS k", "UQL211", "a name of its own"),
    ],
)
def test_a_constant_that_would_order_nothing_is_an_error(con, text, code, help):
    with pytest.raises(UQLError) as error:
        con.uql(text, {"k": 1} if "$k" in text else {"word": "x"} if "$word" in text else {}).fetchall()
    assert error.value.code == code
    assert help in (error.value.help or "")
    assert error.value.start >= 0


def test_random_plain_statements_are_duckdbs(con):
    assert not differences(con, range(200))


@pytest.mark.slow
def test_two_thousand_random_plain_statements_are_duckdbs(con):
    assert not differences(con, range(1_000, 3_000))


def test_a_volatile_value_is_ordered_by_as_it_is_shown(con):
    values = [r for _, r in con.uql("SELECT id, random() AS r FROM t ORDER BY r").fetchall()]
    assert values == sorted(values)


SEMANTIC = [
    "SELECT 2 AS k, id FROM reviews WHERE <pos> ORDER BY k, id DESC LIMIT 3",
    "SELECT 'happy' AS kind, count(*) AS n FROM reviews WHERE <pos> GROUP BY kind ORDER BY kind",
    "SELECT 2 AS k, film, count(*) AS n FROM reviews WHERE <pos> GROUP BY k, film ORDER BY k, film DESC",
    "SELECT 2 AS k, film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film, k) ORDER BY film, k, n",
    "SELECT 2 AS k, id, <rating>::DOUBLE AS r FROM reviews WHERE stars > 2 ORDER BY k, r DESC, id LIMIT 5",
    "SELECT 2 AS k, id FROM reviews WHERE <pos> UNION ALL SELECT 3 AS k, id FROM reviews WHERE <joke> ORDER BY k DESC, id",
    "SELECT id AS k, -id AS k FROM reviews WHERE <pos> UNION ALL SELECT 1, 2 ORDER BY 2, 1 LIMIT 5",
    "SELECT DISTINCT ON (k, film) 2 AS k, film, id FROM reviews WHERE <pos> ORDER BY film, id DESC",
    "SELECT DISTINCT 2 AS k, film FROM reviews WHERE <pos> ORDER BY k, film DESC",
    "SELECT -id AS id FROM reviews WHERE <pos> ORDER BY id LIMIT 4",
    "SELECT true AS k, id FROM reviews WHERE <pos> ORDER BY k, id DESC LIMIT 3",
    "SELECT 2 AS k, id, row_number() OVER (ORDER BY 2, id DESC) AS r FROM reviews WHERE <pos> ORDER BY k, r",
    "SELECT 2 AS k, id FROM reviews ORDER BY k, <rating> DESC, id LIMIT 3",
]


@pytest.mark.parametrize("statement", SEMANTIC)
def test_beside_a_text_a_constant_is_no_place_either(labels, statement):
    asked, over_labels, _ = both(statement)
    want = [plain(row) for row in labels.truth.execute(over_labels).fetchall()]
    assert [plain(row) for row in labels.uql(budget="all").uql(asked).fetchall()] == want


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, count_if(s > 'b'), count_if(s > 'b') FILTER (id > 4), typeof(count_if(ok)) FROM t GROUP BY a ORDER BY a",
        "SELECT count_if(s IS NULL), countif(NULL::BOOLEAN), count_if(DISTINCT ok) FROM t",
        "SELECT id, (SELECT count_if(u.a > 9) FROM u WHERE u.id = t.id + 3) AS n FROM t ORDER BY id",
        "SELECT max(COLUMNS(* EXCLUDE (d))) FROM t",
        "SELECT COLUMNS('id|a') + 1, upper(COLUMNS('s')), COLUMNS(['a', 'b']) AS x FROM t ORDER BY id",
    ],
)
def test_rows_and_the_names_of_columns_are_those_of_duckdb(con, text):
    names = [name for name, *_ in con.execute(text).description]
    for asked in (text, f"{text} WITH (confidence = 0.95)"):
        result = con.uql(asked)
        assert result.columns == names or "COLUMNS" not in text
        assert result.fetchall() == con.execute(text).fetchall() and result.exact
