"""Aggregates over rows that a sub-query with a text chooses by a key are estimated as the join that they are."""

from __future__ import annotations

import pytest
from labels import both


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS n FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>)",
        "SELECT count(*) AS n FROM reviews r WHERE r.id IN (SELECT b.id FROM reviews b WHERE <pos b.text> AND b.stars > 2) AND r.stars < 5",
        "SELECT sum(stars) AS n FROM reviews r WHERE EXISTS (SELECT 1 FROM reviews b WHERE b.id = r.id AND <pos b.text>)",
    ],
)
def test_a_sub_query_that_does_not_fit_in_the_budget_is_sampled(many, statement):
    asked, over_labels, _ = both(statement)
    (want,) = many.truth.execute(over_labels).fetchone()
    for seed in range(3):
        found = many.uql(budget=96, seed=seed).uql(asked)
        estimate = found.estimates["n"]
        assert not found.exact
        assert abs(estimate.value - want) < 0.1 * want
        assert estimate.low <= want <= estimate.high < 1.5 * want


def test_where_a_key_is_there_twice_nothing_is_counted_twice(many):
    asked, over_labels, _ = both("SELECT count(*) AS n FROM films WHERE film IN (SELECT film FROM reviews WHERE <pos>)")
    found = many.uql(budget="all").uql(asked)
    assert found.fetchall() == many.truth.execute(over_labels).fetchall()
    assert found.exact
