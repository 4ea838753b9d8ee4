"""What DuckDB refuses while a statement runs is said at its place in the statement."""

from __future__ import annotations

import pytest
from labels import both

from uql.base.errors import DataError


@pytest.fixture(scope="module")
def con(labels):
    return labels.uql(budget="all")


@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("SELECT id, film::INTEGER AS k FROM reviews WHERE <pos>", "film::INTEGER"),
        ("SELECT film::INTEGER AS k FROM reviews", "film::INTEGER"),
        ("SELECT id FROM reviews WHERE <pos> AND film::DATE > DATE '2024-01-01'", "film::DATE"),
        ("SELECT count(*) FROM reviews WHERE <pos> GROUP BY CAST(film AS BIGINT)", "CAST(film AS BIGINT)"),
        ("SELECT id + 9223372036854775807 FROM reviews WHERE <pos>", "id + 9223372036854775807"),
        ("SELECT id FROM reviews WHERE <pos> AND id = (SELECT id FROM reviews)", "(SELECT id FROM reviews)"),
        ("SELECT x.k FROM (SELECT film::DOUBLE AS k FROM reviews WHERE <pos>) x", "film::DOUBLE"),
        ("SELECT strptime(film, '%Y') FROM reviews WHERE <pos>", "strptime(film, '%Y')"),
    ],
)
def test_the_expression_that_failed_is_under_the_caret(con, statement, at):
    text = both(statement)[0]
    with pytest.raises(DataError) as error:
        con.uql(text).fetchall()
    assert error.value.code == "UQL509"
    assert text[error.value.start : error.value.end] == at
    assert "^" in str(error.value)


def test_of_several_expressions_that_may_have_failed_the_first_is_named(con):
    text = both("SELECT film::INTEGER AS a, text::INTEGER AS b FROM reviews WHERE <pos>")[0]
    with pytest.raises(DataError) as error:
        con.uql(text).fetchall()
    assert text[error.value.start : error.value.end] == "film::INTEGER"
    assert "TRY_CAST" in error.value.help
