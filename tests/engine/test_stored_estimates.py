"""Estimates that a table holds, a column x with x_low and x_high, in queries over that table."""

from __future__ import annotations

from math import inf

import pytest
from labels import both

from uql.base.errors import UQLError


@pytest.fixture(scope="module")
def con(many_labels):
    con = many_labels.uql(budget=64)
    made = con.uql(
        both("SELECT film, count(*) AS n, sum(stars) AS s FROM reviews WHERE <pos> GROUP BY film TO kept")[0]
    )
    assert not made.exact
    return con


def test_a_number_that_is_read_keeps_its_interval(con):
    ends = con.sql("SELECT n, n_low, n_high FROM kept ORDER BY film").fetchall()
    found = con.uql("SELECT film, n, 2 * n AS twice, -n AS less FROM kept ORDER BY film")
    assert [(e.value, e.low, e.high) for e in found.estimates["n"]] == ends
    assert [(e.low, e.high) for e in found.estimates["twice"]] == [(2 * low, 2 * high) for _, low, high in ends]
    assert [(e.low, e.high) for e in found.estimates["less"]] == [(-high, -low) for _, low, high in ends]
    assert "±" in str(found)
    assert not found.exact
    assert found.based_on


def test_a_number_read_beside_its_ends_has_no_others(con):
    assert con.uql("FROM kept").estimates == {}


def test_an_aggregate_over_them_is_open_and_says_where_the_interval_stands(con):
    found = con.uql("SELECT sum(n) AS total FROM kept")
    estimate = found.estimates["total"]
    assert (estimate.low, estimate.high, estimate.exact) == (-inf, inf, False)
    assert any("n_low and n_high" in note for note in found.notes)


def test_rows_chosen_by_an_estimate_have_no_interval(con):
    assert con.uql("SELECT n FROM kept WHERE s > 100").estimates == {}
    assert con.uql("SELECT count(*) AS c FROM kept WHERE n > 50").estimates["c"].high == inf


def test_beside_a_text_a_sum_of_them_is_open_and_a_count_is_not(con):
    found = con.uql(
        both("SELECT count(*) AS c, sum(k.n) AS t FROM kept k JOIN reviews r USING (film) WHERE <pos r.text>")[0]
    )
    assert found.estimates["t"].high == inf
    assert found.estimates["c"].high < inf
    assert not found.exact


def test_a_variable_holds_no_estimate(many_labels):
    con = many_labels.uql(budget=64)
    with pytest.raises(UQLError, match="the variable would hold an estimate") as error:
        con.uql(both("SET VARIABLE n = (SELECT count(*) FROM reviews WHERE <pos>)")[0]).fetchall()
    assert error.value.code == "UQL401"
    con.uql(both("SELECT count(*) AS n FROM reviews WHERE <pos> TO counts")[0]).fetchall()
    with pytest.raises(UQLError, match="the variable would hold an estimate"):
        con.uql("SET VARIABLE n = (SELECT n FROM counts)").fetchall()
    con.uql(both("SET VARIABLE n = (SELECT count(*) FROM reviews WHERE <pos> AND id < 9)")[0]).fetchall()
    assert con.uql("SELECT getvariable('n')").fetchall()[0][0] >= 0


def test_a_database_that_is_exported_loses_no_word_on_its_estimates(many_labels, tmp_path):
    con = many_labels.uql(budget=64)
    con.uql("CREATE TABLE notes AS SELECT 1 AS n").fetchall()
    con.uql(f"EXPORT DATABASE '{tmp_path}/exact'").fetchall()
    con.uql(both("SELECT count(*) AS n FROM reviews WHERE <pos> TO counts")[0]).fetchall()
    with pytest.raises(UQLError, match=r"would not say what is an estimate.*counts.*nothing was written") as error:
        con.uql(f"EXPORT DATABASE '{tmp_path}/all'").fetchall()
    assert error.value.code == "UQL401"
    assert not (tmp_path / "all").exists()
    con.uql("ATTACH ':memory:' AS copied").fetchall()
    con.uql("COPY FROM DATABASE memory TO copied").fetchall()
    assert not con.uql("FROM copied.counts").exact
    assert not con.uql(f"EXPORT DATABASE '{tmp_path}/all' WITH (partial = true)").exact
    assert (tmp_path / "all" / "schema.sql").exists()


@pytest.fixture(scope="module")
def names(con):
    """A connection on which a table with estimates can be read under several names."""
    for made in (
        "CREATE MACRO most() AS (SELECT max(n) FROM kept)",
        "CREATE MACRO above(least) AS TABLE SELECT film, n FROM kept WHERE n > least",
        "CREATE MACRO twice(x) AS x + main.most()",
        "CREATE VIEW seen AS SELECT n FROM above(1)",
        "CREATE MACRO plain() AS (SELECT max(letters) FROM films)",
        "PREPARE again AS SELECT n FROM kept",
        "PREPARE adds AS INSERT INTO films SELECT film, n FROM kept",
        "PREPARE writes AS COPY kept TO 'kept.csv'",
        "PREPARE fills AS INSERT INTO kept BY NAME SELECT film, letters AS n FROM films",
    ):
        con.uql(made).fetchall()
    return con


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT most() AS a",
        "SELECT letters + twice(1) AS a FROM films",
        "FROM above(3)",
        "SELECT n FROM seen",
        "SELECT film FROM films WHERE letters < main.most()",
        "FROM query('SELECT n FROM kept')",
        "SELECT n FROM query_table('kept')",
        "SELECT n FROM query_table(['kept', 'main.kept'])",
        "EXECUTE again",
        "SELECT count(*) FROM reviews WHERE <pos> AND id < 9 AND id < most()",
        "SELECT film FROM films UNION SELECT film FROM above(3)",
        "SUMMARIZE FROM above(3)",
    ],
)
def test_what_reads_them_by_a_macro_a_string_or_a_prepared_statement_is_not_exact(names, statement):
    found = names.uql(both(statement)[0])
    assert not found.exact
    assert "kept" in found.based_on[0] or "SELECT film, count(*) AS n" in found.based_on[0]


def test_a_prepared_statement_may_keep_them_as_estimates(many_labels):
    con = many_labels.uql(budget=64)
    con.uql(both("SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film TO kept")[0]).fetchall()
    con.uql("PREPARE adds AS INSERT INTO films SELECT film, n FROM kept WHERE film <> $1").fetchall()
    with pytest.raises(UQLError, match="nothing was changed"):
        con.uql("EXECUTE adds('Alien')").fetchall()
    assert con.uql("SELECT * FROM films").exact
    assert con.uql("EXECUTE adds('Alien') WITH (partial = true)").fetchall() == [(2,)]
    found = con.uql("SELECT * FROM films")
    assert not found.exact
    assert "INSERT INTO films" in found.based_on[0]


def test_a_prepared_statement_that_reads_facts_is_exact(names):
    assert names.uql("EXECUTE fills").exact


@pytest.mark.parametrize("statement", ["SELECT plain() AS a", "SELECT abs(-1) AS a", "FROM query('FROM films')"])
def test_what_calls_other_functions_is_exact(names, statement):
    assert names.uql(statement).exact


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO films SELECT film, n FROM above(3)",
        "UPDATE films SET letters = most()",
        "DELETE FROM films WHERE letters > most()",
        "COPY (SELECT most() AS a) TO 'most.csv'",
        "EXECUTE adds",
        "EXECUTE writes",
        "EXPLAIN ANALYZE INSERT INTO films SELECT film, n FROM kept",
        "EXPLAIN (ANALYZE, FORMAT JSON) UPDATE films SET letters = (SELECT max(n) FROM kept)",
        "EXPLAIN ANALYZE EXECUTE adds",
    ],
)
def test_no_macro_or_prepared_statement_puts_them_into_a_table_as_facts(names, statement):
    with pytest.raises(UQLError, match="holds estimates, or a part of the rows") as error:
        names.uql(statement).fetchall()
    assert error.value.code == "UQL401"


def test_few_calls_over_groups_of_which_most_rows_are_known_give_a_number(labels):
    con = labels.uql(budget=10)
    for tail in ("", " AND stars > 0"):
        con.uql(both(f"SELECT count(*) FROM reviews WHERE <pos>{tail}")[0]).fetchall()
    found = con.uql(both("SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film")[0])
    truth = dict(labels.truth.execute("SELECT film, count(*) FROM reviews WHERE pos(text) GROUP BY film").fetchall())
    assert {film for film, _ in found.fetchall()} == set(truth)
    for (film, n), estimate in zip(found.fetchall(), found.estimates["n"], strict=True):
        assert n is not None
        assert estimate.low <= truth[film] <= estimate.high
