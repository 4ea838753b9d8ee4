"""A budget is never exceeded; what it leaves open is said: intervals, notes, errors that cost nothing."""

from __future__ import annotations

import pytest

import uql
from uql.base.errors import BudgetError, ConfigError, UQLError
from uql.sampling.base import Estimate


@pytest.mark.thorough
def test_a_count_over_more_rows_than_the_budget_is_an_estimate_with_an_interval(large):
    truth = large.truth("SELECT COUNT(*) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")[0][0]
    hits = 0
    for seed in range(12):
        result = large.connect(seed=seed).uql(
            'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive" WITH (budget = 100)'
        )
        found = result.estimates["n"]
        assert isinstance(found, Estimate)
        assert result.cost.calls <= 100
        assert not found.exact
        assert not result.exact
        hits += found.low <= truth <= found.high
        assert result.fetchall()[0][0] == round(found.value)
    assert hits >= 11  # an interval that holds in 70 % of runs passes in 9 % of all tests, as 17 of 20 would


def test_a_count_that_fits_in_the_budget_is_exact(world):
    result = world.connect().uql('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"')
    assert result.exact
    assert result.estimates["n"].exact
    assert result.cost.calls <= 60


def test_nothing_found_is_not_zero_plus_minus_zero(large):
    con = large.connect(method="uniform")
    result = con.uql("SELECT COUNT(*) AS n FROM reviews WHERE \"the topic\" = 'sport' WITH (budget = 64)")
    n, b = 1500, 64
    found = result.estimates["n"]
    assert found.value == 0
    assert found.high >= n * (1 - 0.025 ** (1 / b)) * (1 - b / n) * 0.8  # some rows are NULL and cost no call
    assert found.low == 0


def test_budget_zero_is_the_ledger_alone(large, tmp_path):
    ledger = str(tmp_path / "ledger.sqlite")
    query = "SELECT COUNT(*) AS n FROM reviews WHERE \"the review is positive\" AND film = 'Alien'"
    first = uql_connect(large, ledger=ledger, budget=40)
    assert first.uql(query).cost.calls <= 40
    second = uql_connect(large, ledger=ledger, budget=0)
    result = second.uql(query)
    assert result.cost.calls == 0
    assert result.cost.cached > 0
    assert not result.exact
    truth = large.truth("SELECT COUNT(*) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL AND film = 'Alien'")[0][0]
    assert result.estimates["n"].low <= truth <= result.estimates["n"].high


def test_the_same_query_again_is_paid_for_once(world, tmp_path):
    ledger = str(tmp_path / "ledger.sqlite")
    query = 'SELECT id FROM reviews WHERE "the review is positive" ORDER BY id'
    first = uql_connect(world, ledger=ledger).uql(query)
    again = uql_connect(world, ledger=ledger).uql(query)
    assert first.fetchall() == again.fetchall()
    assert first.cost.calls > 0
    assert again.cost.calls == 0


def test_a_negative_budget_is_refused(world):
    with pytest.raises(ConfigError):
        world.connect(budget=-1)
    with pytest.raises(ConfigError):
        world.connect().uql('SELECT COUNT(*) FROM reviews WHERE "the review is positive" WITH (budget = -3)').show()


def test_a_value_for_each_row_that_does_not_fit_sends_nothing(large):
    con = large.connect()
    result = con.uql('SELECT id, "the reviewer\'s name" AS who FROM reviews WITH (budget = 50)')
    with pytest.raises(BudgetError) as error:
        result.fetchall()
    assert error.value.code == "UQL401"
    assert "budget" in str(error.value.help)
    with pytest.raises(BudgetError):
        con.uql('SELECT MEDIAN("the number of stars") FROM reviews WITH (budget = 50)').fetchall()


def test_a_map_under_limit_runs_on_the_rows_returned_only(world):
    result = world.connect().uql('SELECT id, "the reviewer\'s name" AS who FROM reviews WHERE text IS NOT NULL LIMIT 5')
    assert len(result.fetchall()) == 5
    assert result.cost.calls == 5


def test_limit_stops_the_filter_as_soon_as_k_rows_are_certain(world):
    result = world.connect(method="uniform").uql('SELECT id FROM reviews WHERE "the review is positive" LIMIT 5')
    assert len(result.fetchall()) == 5
    assert result.cost.calls <= 20
    ordered = world.connect().uql('SELECT id FROM reviews WHERE "the review is positive" ORDER BY id DESC LIMIT 3')
    truth = world.truth("SELECT id FROM r WHERE sentiment = 'pos' AND text IS NOT NULL ORDER BY id DESC LIMIT 3")
    assert ordered.fetchall() == truth
    assert ordered.exact


def test_where_and_select_in_one_budget_stay_exact_by_sharing_requests(world):
    asked = len(world.truth("SELECT 1 FROM r WHERE text IS NOT NULL"))
    con = world.connect(budget=60)
    result = con.uql('SELECT id, "the reviewer\'s name" AS who FROM reviews WHERE "the review is positive" ORDER BY id')
    truth = world.truth("SELECT id, reviewer FROM r WHERE sentiment = 'pos' AND text IS NOT NULL ORDER BY id")
    assert result.fetchall() == truth
    assert result.cost.calls == asked


def test_a_search_says_how_many_there_may_be(large):
    result = large.connect().uql('SELECT id FROM reviews WHERE "the review is positive" WITH (budget = 100)')
    ids = {row[0] for row in result.fetchall()}
    truth = {row[0] for row in large.truth("SELECT id FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")}
    assert ids <= truth
    assert ids
    assert not result.exact
    assert any(note.startswith("found") for note in result.notes)
    assert result.cost.calls <= 100


def test_group_counts_over_a_sample_have_intervals_a_group(large):
    truth = large.truth(
        "SELECT film, COUNT(*), AVG(stars) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL GROUP BY film ORDER BY film"
    )
    inside = []
    for seed in range(6):
        result = large.connect(seed=seed).uql(
            'SELECT film, COUNT(*) AS n, AVG(stars) AS s FROM reviews WHERE "the review is positive" GROUP BY film '
            "ORDER BY film WITH (budget = 200)"
        )
        assert [r[0] for r in result.fetchall()] == [t[0] for t in truth]
        assert result.cost.calls <= 200
        for i, (_, n, s) in enumerate(truth):
            inside.append(result.estimates["n"][i].low <= n <= result.estimates["n"][i].high)
            inside.append(result.estimates["s"][i].low <= s <= result.estimates["s"][i].high)
    assert sum(inside) >= 0.85 * len(inside)


@pytest.mark.thorough
def test_a_taxonomy_over_a_sample_stays_in_the_budget(large):
    truth = large.truth("SELECT about, COUNT(*) FROM r WHERE text IS NOT NULL GROUP BY about ORDER BY about")
    held = []
    for seed in range(8):
        result = large.connect(seed=seed).uql(
            'SELECT topic, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" AS topic '
            "ORDER BY topic WITH (budget = 150)"
        )
        assert result.cost.calls <= 150
        assert [r[0] for r in result.fetchall()] == [t[0] for t in truth]
        held += [e.low <= n <= e.high for e, (_, n) in zip(result.estimates["n"], truth, strict=True)]
    assert sum(held) >= 0.88 * len(held)


def test_maximum_minimum_and_distinct_of_a_sample_are_one_sided(large):
    result = large.connect().uql(
        'SELECT MAX("the number of stars") AS most, MIN("the number of stars") AS least, COUNT(DISTINCT "the topic") AS kinds FROM reviews WITH (budget = 60)'
    )
    estimates = result.estimates
    assert estimates["most"].high == float("inf")
    assert estimates["least"].low == float("-inf")
    assert estimates["kinds"].low == 3
    assert estimates["kinds"].high == float("inf")


@pytest.mark.parametrize("order", ["", " ORDER BY id LIMIT 60"])
def test_values_that_do_not_fit_are_refused_at_their_text(large, order):
    query = f'SELECT id, "the film" AS f FROM reviews{order}'
    with pytest.raises(BudgetError) as error:
        large.connect(budget=20).uql(query).fetchall()
    assert error.value.text[error.value.start : error.value.end] == '"the film"'


@pytest.mark.parametrize("value", ["if(id % 2 = 0, 'nan'::DOUBLE, 1)", "stars * 'inf'::DOUBLE", "stars * 1e300"])
@pytest.mark.parametrize("call", ["avg({})", "sum({}) / count(*)"])
def test_sums_of_what_has_no_square_are_not_estimated(large, call, value):
    con = large.connect(budget=32)
    with pytest.raises(UQLError, match="NaN, infinity") as error:
        con.uql(f'SELECT {call.format(value)} FROM reviews WHERE "the review is positive"').fetchall()
    assert error.value.code == "UQL401"
    assert "isfinite" in error.value.help


@pytest.mark.filterwarnings("error")
def test_a_sum_of_read_numbers_without_end_has_no_interval(large):
    result = large.connect(budget=32).uql("SELECT sum(\"the number of stars\" + 'inf'::DOUBLE) AS s FROM reviews")
    assert result.fetchall() == [(None,)]
    assert (result.estimates["s"].low, result.estimates["s"].high) == (float("-inf"), float("inf"))


def test_to_stores_the_rows_with_their_intervals_and_says_what_rests_on_them(large):
    con = large.connect()
    con.uql(
        'SELECT film, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY film TO counts WITH (budget = 100)'
    )
    stored = con.sql("SELECT * FROM counts ORDER BY film").fetchall()
    assert [len(row) for row in stored] == [4, 4, 4]
    again = con.uql("SELECT SUM(n) AS total FROM counts")
    assert not again.exact
    assert again.based_on
    con.uql("SELECT 1 AS one TO counts")  # what TO made it may replace
    with pytest.raises(uql.UQLError) as error:
        con.uql("SELECT 1 AS one TO reviews")
    assert error.value.code == "UQL203"


def test_wrong_answers_and_failures_are_told_apart(world):
    con = world.connect(error=0.2, budget="all")
    wrong = con.uql('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"')
    assert wrong.exact
    assert wrong.estimates["n"].unknown == 0


def uql_connect(world, **settings):
    con = uql.connect(model=world.oracle(), **settings)
    con.sql(f"SELECT * FROM '{world.folder}/data.parquet'").create("reviews")
    return con
