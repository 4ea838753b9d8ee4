"""Statements that only DuckDB knows, around sub-queries with texts: what they change, and that nothing is changed by a part."""

from __future__ import annotations

import pytest
from labels import both, plain

import uql
from uql.base.errors import BudgetError, UQLError

CHANGES = [
    "UPDATE films SET letters = a.n FROM (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film) a WHERE a.film = films.film",
    "DELETE FROM films WHERE film IN (SELECT film FROM reviews WHERE <joke> AND film <> 'Brazil')",
    "MERGE INTO films USING (SELECT DISTINCT film FROM reviews WHERE <pos>) a ON a.film = films.film WHEN MATCHED THEN UPDATE SET letters = 99",
    "WITH c AS (SELECT film || '!' AS film, 1 AS n FROM reviews WHERE <joke>) INSERT INTO films SELECT * FROM c",
    "DELETE FROM films WHERE film IN (SELECT film FROM reviews WHERE <joke>) OR letters > (SELECT count(*) FROM reviews WHERE <joke>)",
    "INSERT INTO films BY NAME (SELECT 1 AS letters, film || '!' AS film FROM reviews WHERE <joke> AND id < 20)",
]


@pytest.mark.thorough
@pytest.mark.parametrize("statement", CHANGES)
def test_a_table_is_changed_as_by_sql_over_the_labels(labels, statement):
    asked, over_labels, _ = both(statement)
    con, sql = labels.uql(budget="all"), labels.sql()
    con.uql(asked)
    sql.execute(over_labels)
    rows = "FROM films ORDER BY ALL"
    assert con.uql(rows).fetchall() == sql.execute(rows).fetchall()


@pytest.mark.parametrize("statement", CHANGES[:3])
def test_nothing_is_changed_by_a_part_of_the_rows(labels, statement):
    con = labels.uql(budget=5, seed=1)
    before = con.uql("FROM films ORDER BY ALL").fetchall()
    with pytest.raises(BudgetError) as error:
        con.uql(both(statement)[0])
    assert "budget" in (error.value.help or "")
    assert con.uql("FROM films ORDER BY ALL").fetchall() == before


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT count(*) FROM films WHERE "it is a joke" WITH (error = 5%)',
        'CREATE TABLE jokes AS SELECT count(*) AS n FROM films WHERE "it is a joke" WITH (error = 5%)',
        "UPDATE films SET letters = 1 WITH (partial = 5%)",
    ],
)
def test_a_setting_that_cannot_be_read_is_shown_in_its_place(labels, statement):
    with pytest.raises(UQLError) as error:
        labels.uql().uql(statement)
    assert error.value.text == statement and error.value.start == statement.index("%")
    assert error.value.help == "a share is a number from 0 to 1: 0.05"


def test_what_duckdb_refuses_costs_no_call(labels):
    con = labels.uql(budget="all")
    calls: list[object] = []
    con.on_event(calls.append)
    with pytest.raises(UQLError) as error:
        con.uql(both("PIVOT (SELECT film FROM reviews WHERE <pos>) ON film USING no_such_aggregate(*)")[0])
    assert error.value.start >= 0
    assert not [event for event in calls if type(event).__name__ == "CallEvent"]


def test_describe_asks_nobody(labels):
    result = labels.uql(budget="all").uql(both("DESCRIBE SELECT id, <rating>::INTEGER AS r FROM reviews")[0])
    assert [row[:2] for row in result.fetchall()] == [("id", "BIGINT"), ("r", "INTEGER")]
    assert result.cost.calls == 0


def test_an_estimate_in_a_pivot_is_said_to_be_one(labels):
    con = labels.uql(budget=6, seed=1)
    result = con.uql(
        both("PIVOT (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film) ON film USING sum(n)")[0]
    )
    assert not result.exact


def test_the_price_and_the_plan_are_those_of_the_sub_queries(labels):
    result = labels.uql(budget="all").uql(
        both("PIVOT (SELECT film FROM reviews WHERE <pos>) ON film USING count(*)")[0]
    )
    assert result.quote().calls.high == 35
    assert "the review is positive" in result.explain()


def test_parameters_stand_inside_and_outside(labels):
    con = labels.uql(budget="all")
    query = "SELECT * FROM (SELECT film, id FROM reviews WHERE $said AND id < $most) PIVOT (count(id) FOR film IN ('Alien', 'Brazil'))"
    values = {"said": uql.sem("the review is positive"), "most": 20}
    sql = both(
        "SELECT * FROM (SELECT film, id FROM reviews WHERE <pos> AND id < 20) PIVOT (count(id) FOR film IN ('Alien', 'Brazil'))"
    )[1]
    assert con.uql(query, **values).fetchall() == labels.truth.execute(sql).fetchall()


def test_no_table_is_left_behind(labels):
    con = labels.uql(budget="all")
    con.uql(both("PIVOT (SELECT film FROM reviews WHERE <pos>) ON film USING count(*)")[0]).fetchall()
    left = con.uql("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '\\_\\_uql%' ESCAPE '\\'").fetchall()
    assert left == []


VALUES = """SELECT id, INTERVAL '3 days' AS a, [INTERVAL 2 MONTH] AS b, {'x': INTERVAL 1 HOUR} AS c, (id, film) AS d, 1::HUGEINT AS e,
    <topic>::ENUM('plot','acting','music') AS f, MAP {'k': 1} AS g, <rating>::DECIMAL(6,1) AS h, <written>::DATE AS i,
    '4d9a1a2e-0c7c-4c8a-9a57-0a8a3f0c5b11'::UUID AS j, [1, 2]::INTEGER[2] AS k, <written>::TIMESTAMP - TIMESTAMP '2023-01-01' AS l,
    MAP {'k': 1::DECIMAL(38, 0)} AS m FROM reviews WHERE id < 6 ORDER BY id"""


def test_python_values_and_data_frames_are_those_of_duckdb(labels):
    asked, over_labels, _ = both(VALUES)
    result, relation = labels.uql(budget="all").uql(asked), labels.truth.sql(over_labels)
    found, want = result.fetchall(), relation.fetchall()
    assert found == want and repr(found) == repr(want)
    frames = result.df().drop(columns="j"), relation.df().drop(columns="j")  # Arrow has a UUID as a text
    assert [str(t) for t in frames[0].dtypes] == [str(t) for t in frames[1].dtypes]
    assert result.arrow().schema.types == relation.to_arrow_table().schema.types


def test_an_interval_is_a_duration_in_polars(labels):
    result = labels.uql(budget="all").uql(
        both("SELECT INTERVAL 1 DAY * <rating>::INTEGER AS a FROM reviews WHERE id < 3")[0]
    )
    assert str(result.pl().schema["a"]) == "Duration(time_unit='us')"


@pytest.mark.parametrize("store", ["CREATE TABLE kept AS {}", "{} TO kept"])
def test_an_enum_is_stored_as_one(labels, store):
    con = labels.uql(budget="all")
    query = "SELECT id, <topic>::ENUM('plot','acting','music') AS t, 1::HUGEINT AS h FROM reviews"
    con.uql(store.format(both(query)[0])).fetchall()
    kinds = dict(con.uql("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'kept'").fetchall())
    assert kinds["t"].startswith("ENUM") and kinds["h"] == "HUGEINT"
    found = [plain(row) for row in con.uql("SELECT DISTINCT t FROM kept WHERE t IS NOT NULL ORDER BY t").fetchall()]
    assert found == [("plot",), ("acting",), ("music",)]


@pytest.mark.parametrize(
    "statement",
    [
        "SUMMARIZE SELECT <topic> AS t FROM reviews",
        "INSERT INTO films SELECT film, <topic> FROM reviews",
        "CREATE TABLE kept AS SELECT film, <topic> AS t FROM reviews",
    ],
)
def test_explain_takes_a_query_that_stands_without_parentheses(labels, statement):
    con = labels.uql(budget="all")
    con.execute("CREATE OR REPLACE TABLE films (film VARCHAR, about VARCHAR)")
    shown = con.uql("EXPLAIN " + both(statement)[0])
    assert shown.cost.calls == 0 and any("SemMap" in line for (line,) in shown.fetchall())
    assert con.sql("SELECT count(*) FROM films").fetchall() == [(0,)] and "kept" not in con.tables


def test_explain_asks_nobody_and_changes_nothing(labels):
    con = labels.uql(budget="all")
    pivot = both("PIVOT (SELECT film, <topic> AS t FROM reviews) ON t USING count(*)")[0]
    shown = con.uql(f"EXPLAIN {pivot}")
    assert shown.cost.calls == 0
    assert shown.fetchall()[0] == ("DuckDB",)
    assert any("SemMap" in line for (line,) in shown.fetchall())
    before = con.sql("SELECT count(*) FROM films").fetchall()
    con.uql("EXPLAIN " + both(CHANGES[1])[0]).fetchall()
    assert con.sql("SELECT count(*) FROM films").fetchall() == before
    for how in ("ANALYZE", "(ANALYZE, FORMAT JSON)"):
        with pytest.raises(UQLError) as error:
            con.uql(f"EXPLAIN {how} {pivot}")
        assert "EXPLAIN alone" in error.value.help
