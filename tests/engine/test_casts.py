"""A value that does not fit the type asked for is NULL, and says so."""

from __future__ import annotations

from collections import Counter

import pytest
from labels import both
from row_model import RowModel

import uql
from uql.base.errors import ModelReplyError, UQLError
from uql.llm.providers.base import Answer

WORDS = '"the reviewer\'s name"'


def test_a_cast_that_fails_is_null_with_an_error_row(con):
    result = con.uql('SELECT id, "the reviewer\'s name"::INTEGER AS who FROM reviews WHERE text IS NOT NULL AND id < 5')
    assert all(who is None for _, who in result.fetchall())
    assert len(result.errors) == 5
    assert {error.kind for error in result.errors} == {"wrong_type"}
    assert "INTEGER" in result.errors[0].message


def test_a_cast_that_fits_gives_the_type(con, world):
    rows = con.uql('SELECT "the number of stars"::DECIMAL(10,2) AS n FROM reviews WHERE id = 0')
    assert rows.types == ["DECIMAL(10,2)"]
    assert not rows.errors
    assert float(rows.fetchall()[0][0]) == world.rows[0]["rating"]


@pytest.mark.parametrize("item", ["AVG({0})", "min({0})", "sum({0})", "count(*) FILTER (WHERE {0} > 3)"])
def test_an_aggregate_of_words_ends_after_the_first_rows_and_says_what_to_write(con, item):
    calls = []
    con.on_event(lambda event: calls.append(event) if event.kind == "call" else None)
    with pytest.raises(ModelReplyError, match=r"none of the first 1\d answers") as error:
        con.uql(f"SELECT {item.format(WORDS)} FROM reviews WITH (budget = 100)").fetchall()
    assert 15 <= len(calls) <= 20
    assert con.uql("SELECT status FROM uql_runs()").fetchall() == [("failed",)]
    assert "GROUP BY" in error.value.help


def test_an_aggregate_of_numbers_asks_the_rows_that_its_budget_allows(con):
    result = con.uql('SELECT AVG("the number of stars") AS n FROM reviews WITH (budget = 30)')
    assert result.estimates["n"].calls == 30 and not any("number" in warning for warning in result.warnings)


def test_a_model_that_cannot_be_had_is_said_before_any_work(world):
    con = world.connect()
    result = con.uql(
        "SELECT COUNT(*) FROM reviews WHERE \"the review is positive\" WITH (model = 'local:/nowhere/x.gguf')"
    )
    with pytest.raises(UQLError) as error:
        result.show()
    assert "x.gguf" in str(error.value)


def test_what_a_group_s_summary_cannot_be_cast_to_is_null_and_listed(labels):
    con = labels.uql(budget="all")
    result = con.uql('SELECT film, "the number of stars"::INTEGER AS n, count(*) FROM good GROUP BY film')
    assert {row[1] for row in result.fetchall()} == {None}
    assert [(error.kind, error.clause) for error in result.errors] == [("wrong_type", "the number of stars")] * 3
    assert not result.exact


def test_a_group_is_put_to_the_labels_that_the_statement_gives(labels, sql):
    """A summary in words is never one of them: HAVING had no rows, and a cast to ENUM was NULL, and both were exact."""
    con = labels.uql(budget="all")
    most = "SELECT film, mode(topic(text)) AS t FROM good GROUP BY film ORDER BY film"
    want = sql.execute(
        most.replace("mode(topic(text))", "coalesce(topic(text), '-')").replace("GROUP BY film", "")
    ).fetchall()
    counts = {film: Counter(topic for of, topic in want if of == film and topic != "-") for film, _ in want}
    result = con.uql(
        """SELECT film, "the main topic"::ENUM('plot', 'music', 'acting') AS t FROM good GROUP BY film ORDER BY film"""
    )
    found = result.fetchall()
    assert len(found) == 3 and result.exact
    assert all(counts[film][topic] == max(counts[film].values()) for film, topic in found)
    mainly = [(film,) for film, n in sorted(counts.items()) if 2 * n["music"] > n.total()]
    for given in ("= 'music'", "IN (SELECT 'music')"):
        having = con.uql(f'SELECT film FROM good GROUP BY film HAVING "the main topic" {given} ORDER BY film')
        assert having.exact and having.fetchall() == mainly


def test_a_reply_about_a_group_that_is_none_of_the_labels_is_null_and_listed(labels):
    class Wordy(RowModel):
        def _one(self, question, row):
            return Answer("Most of them praise the music [3].")

    con = uql.attach(labels.sql(), model=Wordy(), ledger=":memory:", budget="all")
    result = con.uql("SELECT film FROM good GROUP BY film HAVING \"the main topic\" = 'music'")
    assert result.fetchall() == [] and not result.exact
    assert [error.kind for error in result.errors] == ["wrong_type"] * 3


@pytest.mark.parametrize("item", ["(count(*) * 1000)::TINYINT", "(count(*) || 'x')::INTEGER", "1 // (count(*) * 0)"])
def test_an_expression_without_a_value_at_an_estimate_is_null(labels, item):
    """What was paid is not lost by it."""
    con = labels.uql(budget=20)
    result = con.uql(both(f"SELECT {item} AS n, count(*) AS m FROM reviews WHERE <pos> ORDER BY n")[0])
    ((n, m),) = result.fetchall()
    assert n is None and m > 0 and not result.exact
    assert any(w.startswith("NULL where an expression has no value at the estimate: ") for w in result.warnings)


@pytest.mark.parametrize(
    ("rest", "rows"),
    [
        ("HAVING (count(*) * 1000)::TINYINT > 3", 0),
        ("HAVING (count(*) * 1000)::TINYINT IS NULL", 0),
        ("HAVING (count(*) * 1000)::TINYINT > (SELECT 3)", 0),
        ("ORDER BY (count(*) * 1000)::TINYINT, film", 3),
        ("QUALIFY row_number() OVER (ORDER BY (count(*) * 1000)::TINYINT, film) < 3", 2),
    ],
)
def test_a_group_without_a_value_at_an_estimate_has_null_there(labels, rest, rows):
    result = labels.uql(budget=20).uql(
        both(f"SELECT film, count(*) AS m FROM reviews WHERE <pos> GROUP BY film {rest}")[0]
    )
    assert len(result.fetchall()) == rows and not result.exact
    assert any(w.startswith("NULL where an expression has no value at the estimate: ") for w in result.warnings)


def test_an_error_of_duckdbs_names_no_column_that_the_user_did_not_write(labels):
    with pytest.raises(UQLError) as error:
        labels.uql(budget="all").uql(
            both("SELECT film FROM reviews WHERE <pos> GROUP BY film HAVING sum(stars * 99)::TINYINT > 3")[0]
        ).fetchall()
    assert "__" not in error.value.message
    assert "TRY_CAST" in error.value.help


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id, <pos>::INTEGER AS g FROM reviews",
        "SELECT id, TRY_CAST(<pos> AS DECIMAL(4, 1)) AS g, <pos> AS p FROM reviews",
        "SELECT sum(<pos>::INTEGER) AS n, avg(<pos>::DOUBLE) AS a FROM reviews",
        "SELECT id FROM reviews WHERE <pos>::INTEGER = 1",
        "SELECT id FROM reviews ORDER BY <pos>::INTEGER DESC NULLS LAST, id LIMIT 5",
        "SELECT g::INTEGER + 1 AS h FROM (SELECT <pos>::TINYINT AS g FROM reviews) x ORDER BY 1",
    ],
)
def test_a_statement_that_is_cast_to_a_number_is_1_where_it_holds_and_0_where_not(labels, statement):
    asked, over, ordered = both(statement)
    result = labels.uql(budget="all").uql(asked)
    rows, want = result.fetchall(), labels.sql().execute(over).fetchall()
    assert rows == want if ordered else sorted(map(repr, rows)) == sorted(map(repr, want))
    assert result.exact and not result.warnings
