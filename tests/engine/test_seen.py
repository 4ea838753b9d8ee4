"""Aggregates that are no sums, and what DuckDB knows of all rows beside the texts."""

from __future__ import annotations

import datetime
import statistics

import pytest
from labels import both

from uql.base.errors import BudgetError, ModelReplyError

FAILING = "<name>::INTEGER"  # a text whose answers are none of its type: every row is unknown


def run(con, statement):
    return con.uql(both(statement)[0])


def truth(labels, statement):
    return labels.truth.execute(both(statement)[1]).fetchall()


@pytest.mark.parametrize(
    "aggregate",
    [
        "median(<rating>)",
        "sum(DISTINCT <rating>)",
        "string_agg(DISTINCT <topic>, '-' ORDER BY <topic>)",
        "bool_or(<joke>)",
        "max(film)",
        "arg_max(id, <rating> * 1000 + id)",
        "count(DISTINCT <topic>)",
    ],
)
def test_rows_without_an_answer_to_one_text_leave_what_is_said_of_others_as_it_is(labels, aggregate):
    found = run(labels.uql(budget="all"), f"SELECT {aggregate} AS a, count({FAILING}) AS failed FROM reviews")
    assert found.fetchall() == [(*truth(labels, f"SELECT {aggregate} FROM reviews")[0], 0)]
    assert found.estimates["a"].exact
    assert not found.estimates["failed"].exact


def test_a_median_of_which_rows_gave_no_answer_is_that_of_the_others_and_has_open_ends(labels):
    found = run(
        labels.uql(budget="all"), f"SELECT median(CASE WHEN id < 20 THEN id ELSE {FAILING} END) AS m FROM reviews"
    )
    estimate = found.estimates["m"]
    assert found.fetchall() == [(9.5,)]
    assert (estimate.low, estimate.high, estimate.exact) == (float("-inf"), float("inf"), False)
    assert estimate.unknown > 0


def test_the_largest_date_and_the_first_name_are_those_of_the_rows_seen(many):
    found = run(
        many.uql(budget=64), "SELECT max(day) AS d, min(film) AS f, max(<written>::DATE) AS w FROM reviews WHERE <pos>"
    )
    day, film, written = found.fetchone()
    best = truth(many, "SELECT max(day), max(<written>) FROM reviews WHERE <pos>")[0]
    assert film == "Alien"
    assert datetime.date(2024, 6, 1) < day <= best[0]
    assert datetime.date(2023, 6, 1) < written <= datetime.date.fromisoformat(best[1])
    assert [found.estimates[c].method for c in "dfw"] == ["at least", "at most", "at least"]
    assert not found.exact
    assert f"≥ {day}" in str(found)


def test_whole_numbers_too_long_for_a_float_keep_their_digits(many):
    many_con = many.uql(budget=64)
    found = run(many_con, "SELECT max(9007199254740993 + id * 0) AS m FROM reviews WHERE <pos>")
    assert found.fetchall() == [(9007199254740993,)]


def test_the_mean_of_dates_is_refused_before_anything_is_sent(many):
    with pytest.raises(BudgetError) as error:
        run(many.uql(budget=64), "SELECT avg(day) FROM reviews WHERE <pos>").fetchall()
    assert error.value.code == "UQL401"
    assert "nothing was sent" in str(error.value)


def test_a_query_around_an_estimated_date_is_not_exact(many):
    found = run(many.uql(budget=64), "SELECT year(d) AS y FROM (SELECT max(day) AS d FROM reviews WHERE <pos>) x")
    assert found.fetchall() == [(2024,)]
    assert not found.exact
    assert not found.estimates["y"].exact


def test_what_no_text_chooses_is_known_of_all_rows(many):
    statement = "SELECT film, count(*) AS n, avg(stars) AS s, median(id) AS m, avg(<rating>) AS r FROM reviews GROUP BY film ORDER BY film"
    found = run(many.uql(budget=64), statement)
    want = truth(many, statement)
    assert [row[:4] for row in found.fetchall()] == [row[:4] for row in want]
    assert all(e.exact for name in "nsm" for e in found.estimates[name])
    assert all(e.low <= row[4] <= e.high and not e.exact for e, row in zip(found.estimates["r"], want, strict=True))


def test_groups_of_stored_values_are_all_there_whether_a_row_of_theirs_was_asked_or_not(many):
    statement = "SELECT id % 150 AS k, count(*) AS n, avg(<rating>) AS r FROM reviews GROUP BY k ORDER BY k"
    found = run(many.uql(budget=64), statement)
    assert [row[:2] for row in found.fetchall()] == [row[:2] for row in truth(many, statement)]


@pytest.mark.thorough
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT avg(stars) AS a FROM reviews WHERE <pos>",
        "SELECT count(stars) AS a FROM reviews WHERE <pos>",
        "SELECT sum(stars) / count(stars) AS a FROM reviews WHERE <pos>",
        "SELECT count(*) FILTER (WHERE stars > 3 AND <pos>) AS a FROM reviews",
        "SELECT count_if(<pos>) FILTER (stars > 3) AS a FROM reviews",
        "SELECT sum(if(<pos> AND stars > 2, stars, 0)) AS a FROM reviews",
        "SELECT avg(CASE WHEN <pos> AND stars > 2 THEN 1 ELSE 0 END) AS a FROM reviews",
    ],
)
def test_stored_values_that_are_null_and_terms_beside_a_text_are_known_of_all_rows(many, statement):
    (want,) = truth(many, statement)[0]
    errors, held = [], 0
    for seed in range(4):
        estimate = run(many.uql(budget=96, seed=seed), statement).estimates["a"]
        errors.append(abs(estimate.value - want) / want)
        held += estimate.low <= want <= estimate.high
    assert statistics.mean(errors) < 0.04  # the condition is learned from the words; without what is known: about .1
    assert held >= 3


def test_several_values_of_a_distinct_aggregate_stay_apart(labels):
    statement = "SELECT string_agg(DISTINCT <name>, '-' ORDER BY <name>) FROM reviews"
    assert run(labels.uql(budget="all"), statement).fetchall() == truth(labels, statement)


def test_counting_rows_by_a_condition_is_an_estimate_in_each_spelling(many):
    con = many.uql(budget=64)
    found = run(con, "SELECT count_if(<pos>) AS a, countif(<pos>) AS b, count(*) FILTER (<pos>) AS c FROM reviews")
    assert found.estimates["a"] == found.estimates["b"] == found.estimates["c"]
    assert not found.exact


def test_a_median_over_a_join_fits_where_the_texts_that_are_unlike_do(many):
    statement = "SELECT median(f.k) FROM facts f JOIN reviews r ON f.rid = r.id WHERE <joke r.text>"
    facts = "CREATE TABLE facts AS SELECT range AS k, range % 40 AS rid FROM range(3000)"
    con, sql = many.uql(budget=40), many.sql()
    con.execute(facts)
    sql.execute(facts)
    found = run(con, statement)
    assert found.fetchall() == sql.execute(both(statement)[1]).fetchall()
    assert found.exact
    with pytest.raises(BudgetError) as error:
        anew = many.uql()
        anew.execute(facts)
        run(anew, statement + " WITH (budget = 5)").fetchall()
    assert "3,000" not in str(error.value)


def test_a_value_of_another_type_raises_where_errors_do(labels):
    with pytest.raises(ModelReplyError) as error:
        run(labels.uql(), f"SELECT id, {FAILING} AS n FROM reviews LIMIT 3 WITH (on_error = 'raise')").fetchall()
    assert error.value.code == "UQL407"
    assert "INTEGER" in str(error.value)
