"""Estimates of sub-queries keep their intervals in the query around them; parts of one statement share its budget."""

from __future__ import annotations

from math import inf

import pytest
from labels import Labels, both
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer, Problem

POS, JOKE = '"the review is positive"', '"the review is a joke"'


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return Labels(tmp_path_factory.mktemp("labels"), n=150)


def run(labels, statement, **settings):
    return labels.uql(**{"budget": 40, **settings}).uql(both(statement)[0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "statement",
    [
        "WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT count(*) AS n, avg(stars) AS a FROM p",
        "SELECT count(*) AS n, avg(s) AS a FROM (SELECT stars AS s, film FROM reviews WHERE <pos>) x",
        "WITH p AS (SELECT * FROM reviews WHERE <pos>), q AS (SELECT id, stars FROM p) SELECT count(*) AS n, avg(q.stars) AS a FROM q",
        "SELECT count(*) AS n, avg(stars) AS a FROM (SELECT * FROM reviews) x WHERE <pos>",
        "SELECT count(*) AS n, avg(x.stars) AS a FROM (SELECT * FROM reviews WHERE <pos>) x JOIN films f USING (film)",
    ],
)
def test_aggregates_over_a_sub_query_that_chooses_rows_are_those_of_one_query(labels, statement):
    direct = run(labels, "SELECT count(*) AS n, avg(stars) AS a FROM reviews WHERE <pos>").estimates
    found = run(labels, statement).estimates
    for name in ("n", "a"):
        assert not found[name].exact
        assert found[name].low == pytest.approx(direct[name].low)
        assert found[name].high == pytest.approx(direct[name].high)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT sum(stars) AS n, avg(<rating>) AS n FROM reviews",
        "SELECT * FROM (SELECT sum(stars) AS n, avg(<rating>) AS n FROM reviews) x",
        "SELECT sum(stars) AS n, avg(<rating>) AS n FROM reviews UNION ALL SELECT 1, 2",
    ],
)
def test_columns_of_one_name_are_numbered_and_each_has_its_own_interval(labels, statement, capsys):
    result = run(labels, statement)
    stars = labels.truth.execute("SELECT sum(stars) FROM reviews").fetchone()[0]
    assert result.columns == ["n", "n_1"] and result[0][0] == stars
    result.show()
    assert f"│ {stars:>{len('hugeint')}}" in capsys.readouterr().out
    assert list(result.df().columns) == ["n", "n_1", "n_1_low", "n_1_high"]


def test_a_sub_query_with_a_limit_is_not_merged(labels):
    statement = "SELECT count(*) AS n FROM (SELECT * FROM reviews WHERE <pos> LIMIT 5) x"
    assert run(labels, statement).fetchall() == [(5,)]


def test_merging_can_be_switched_off_and_then_nothing_is_said_to_be_exact(labels):
    statement = "SELECT count(*) AS n FROM (SELECT * FROM reviews WHERE <pos>) x"
    found = run(labels, statement, disabled_rules=("merged",)).estimates["n"]
    assert (found.exact, found.low, found.high) == (False, 0.0, inf)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT (SELECT count(*) FROM reviews WHERE <pos>) AS p, (SELECT count(*) FROM reviews WHERE <joke>) AS j",
        "SELECT p, j FROM (SELECT count(*) AS p FROM reviews WHERE <pos>) a, (SELECT count(*) AS j FROM reviews WHERE <joke>) b",
    ],
)
def test_parts_share_the_budget_and_each_number_has_its_interval(labels, statement):
    result = run(labels, statement)
    for name in ("p", "j"):
        found = result.estimates[name]
        assert not found.exact
        assert 0 <= found.low <= found.value <= found.high < 154
        assert found.high - found.low < 120
    assert result.cost.calls <= 40


def test_both_sides_of_a_union_have_their_share_and_their_intervals(labels):
    statement = (
        "SELECT 'p' AS k, count(*) AS n FROM reviews WHERE <pos> UNION ALL "
        "SELECT 'j', count(*) FROM reviews WHERE <joke> UNION ALL SELECT 'all', count(*) FROM reviews ORDER BY k"
    )
    result = run(labels, statement)
    every, joke, pos = result.estimates["n"]
    assert (every.exact, every.value) == (True, 154)
    assert [row[0] for row in result.fetchall()] == ["all", "j", "p"]
    for found, row in ((joke, 1), (pos, 2)):
        assert not found.exact
        assert found.high - found.low < 120
        assert found.value == pytest.approx(result[row][1], abs=0.5)


def test_aggregates_of_estimates_reach_from_all_lows_to_all_highs(labels):
    groups = "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film"
    parts = run(labels, groups).estimates["n"]
    statement = f"SELECT sum(n) AS s, max(n) AS m, count(*) AS c, stddev(n) AS d FROM ({groups}) x"
    found = run(labels, statement).estimates
    assert found["s"].low == pytest.approx(sum(e.low for e in parts))
    assert found["s"].high == pytest.approx(sum(e.high for e in parts))
    assert (found["m"].low, found["m"].high) == (max(e.low for e in parts), max(e.high for e in parts))
    assert found["c"].exact
    assert (found["d"].exact, found["d"].low, found["d"].high) == (False, -inf, inf)


def test_expressions_over_estimated_columns_have_the_range_of_the_ends(labels):
    groups = "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film"
    parts = run(labels, f"{groups} ORDER BY film").estimates["n"]
    found = run(labels, f"SELECT film, 100 - n / 2 AS h, n % 7 AS odd FROM ({groups}) x ORDER BY film").estimates
    assert [e.low for e in found["h"]] == pytest.approx([100 - e.high / 2 for e in parts])
    assert [e.high for e in found["h"]] == pytest.approx([100 - e.low / 2 for e in parts])
    assert all((e.exact, e.low, e.high) == (False, -inf, inf) for e in found["odd"])


COUNTED = "SELECT count(*) AS n FROM reviews WHERE <pos>"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT {value} AS x FROM (SELECT * FROM reviews WHERE <pos>) c",
        f"SELECT {{value}} AS x FROM ({COUNTED} LIMIT 1) c",
        "SELECT {value} AS x FROM counts",
    ],
)
@pytest.mark.parametrize("value", ["1.0 / ({n} - {middle})", "{n}::VARCHAR < '{middle}'"])
def test_what_jumps_between_the_ends_of_an_interval_is_open(many_labels, statement, value):
    con = many_labels.uql(budget=40)
    counted = con.uql(both(f"{COUNTED} TO counts")[0]).estimates["n"]
    column = "n" if "AS n" in statement or "counts" in statement else "count(*)"
    statement = statement.format(value=value.format(n=column, middle=int(counted.value) - 2))
    result = con.uql(both(statement)[0])
    assert not result.exact
    found = result.estimates.get("x", [])  # none is shown of a column of a table whose range is not computed
    for estimate in found if isinstance(found, list) else [found]:
        assert (estimate.exact, estimate.low, estimate.high) == (False, -inf, inf)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS n FROM films WHERE film IN (SELECT film FROM reviews WHERE <joke> AND stars = 1)",
        "SELECT count(*) AS n FROM reviews WHERE id NOT IN (SELECT id FROM reviews WHERE <joke>)",
        "SELECT count(*) AS n FROM (SELECT id FROM reviews WHERE <joke> UNION SELECT id FROM reviews WHERE <pos>) x",
        "SELECT count(*) AS n FROM (SELECT film, count(*) AS m FROM reviews WHERE <pos> GROUP BY film) x WHERE m > 20",
    ],
)
def test_a_number_over_rows_that_may_be_missing_is_never_exact(labels, statement):
    found = run(labels, statement, budget=14).estimates["n"]
    assert (found.exact, found.low, found.high) == (False, 0.0, inf)
    every = run(labels, statement, budget="all")
    assert every.exact
    assert every.estimates["n"].exact


def test_an_expression_that_turns_round_has_no_interval_and_counts_are_whole_numbers_in_it(labels):
    result = run(
        labels, "SELECT count(*) % 10 AS d, count(*)::VARCHAR AS t, 1000 - count(*) AS r FROM reviews WHERE <pos>"
    )
    ((digit, text, rest),) = result.fetchall()
    assert int(text) % 10 == digit
    assert rest == 1000 - int(text)
    found = result.estimates
    assert (found["d"].low, found["d"].high) == (-inf, inf)
    assert -inf < found["r"].low <= found["r"].value <= found["r"].high < inf


def test_a_ratio_stands_in_the_row_as_it_is_estimated(labels):
    result = run(labels, "SELECT sum(stars) / count(stars) AS mean FROM reviews WHERE <pos>")
    assert result.fetchall()[0][0] == pytest.approx(result.estimates["mean"].value)


@pytest.mark.parametrize("film", ["", ", film"])
def test_the_share_of_a_sub_query_is_exact_where_every_row_is_asked(labels, film):
    group = " GROUP BY film ORDER BY film" if film else ""
    count = f"SELECT count(*){film} FROM reviews WHERE <pos>{group}"
    share = count.replace("count(*)", "count(*) / (SELECT count(*) FROM reviews) AS share", 1)
    result = run(labels, share, budget="all")
    counts = run(labels, count, budget="all").fetchall()
    ((every,),) = run(labels, "SELECT count(*) FROM reviews").fetchall()
    assert [row[0] for row in result.fetchall()] == [n / every for n, *_ in counts]
    found = result.estimates["share"]
    assert result.exact and all(e.exact for e in (found if film else [found]))


def test_a_remainder_by_a_sub_query_has_no_interval(labels):
    result = run(labels, "SELECT count(*) % (SELECT 7) AS n FROM reviews WHERE <pos>")
    found = result.estimates["n"]
    assert (found.value, found.low, found.high) == (result.fetchall()[0][0], -inf, inf)


def test_what_is_computed_from_a_stored_table_of_estimates_is_not_exact(labels):
    con = labels.uql(budget=40)
    con.uql(both("SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film TO counted")[0])
    result = con.uql("SELECT sum(n) AS s FROM counted")
    assert (result.exact, result.estimates["s"].exact) == (False, False)
    assert result.estimates["s"].high == inf


def test_a_sum_of_which_no_value_is_known_is_null_and_open_ended(labels):
    found = run(labels, "SELECT sum(<topic>) AS s FROM reviews WHERE id < 3", budget="all").estimates["s"]
    assert (found.value, found.low, found.high, found.unknown, found.exact) == (None, -inf, inf, 3, False)


def test_carried_estimates_say_how_many_rows_were_asked(labels):
    found = run(labels, "SELECT n + 1 AS m FROM (SELECT count(*) AS n FROM reviews WHERE <pos>) x").estimates["m"]
    assert 30 <= found.calls <= 40


def test_a_recall_that_is_not_reached_is_said(labels):
    result = labels.uql(budget=12).uql(both("SELECT id FROM reviews WHERE id < 30 AND <pos> WITH (recall = 0.9)")[0])
    assert not result.exact
    assert any("recall" in note for note in result.notes)


class Forgetful(RowModel):
    """Says yes where a review is a delight, and nothing where its number ends in 4."""

    def _one(self, question, row):
        text = " ".join(str(cell.value) for cell in row.cells)
        return Answer(None, problem=Problem("unreadable", "?")) if "4:" in text else Answer("delight" in text, 1.0)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) AS n FROM films f SEMI JOIN reviews r ON f.film = r.film AND {}",
        "SELECT count(r.id) AS n FROM films f LEFT JOIN reviews r ON f.film = r.film AND {}",
        "SELECT count(*) AS n FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND {})",
        "SELECT sum(m) AS n FROM (SELECT (SELECT count(*) FROM reviews r WHERE r.film = f.film AND {}) AS m FROM films f) x",
        "SELECT count(*) AS n FROM (SELECT {}::BOOLEAN AS p FROM reviews r LIMIT 20) x WHERE p",
    ],
)
def test_numbers_over_pairs_and_values_without_an_answer_are_not_exact(labels, statement):
    con = uql.attach(labels._tables(), model=Forgetful(), ledger=":memory:", budget="all")
    result = con.uql(statement.format('"it is positive {r.text}"'))
    assert result.errors
    assert not result.estimates["n"].exact
    assert result.estimates["n"].high == inf


PER_FILM = "(SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film)"


def test_a_value_that_is_looked_up_among_estimates_has_its_interval(labels):
    listed = run(labels, f"SELECT film, n FROM {PER_FILM} g ORDER BY film")
    ends = {film: (e.low, e.high) for (film, _), e in zip(listed.fetchall(), listed.estimates["n"], strict=True)}
    looked_up = f"SELECT f.film, (SELECT n + 1 FROM {PER_FILM} g WHERE g.film = f.film) AS m FROM films f ORDER BY 1"
    found = run(labels, looked_up)
    for (film, value), e in zip(found.fetchall(), found.estimates["m"], strict=True):
        if film in ends:
            assert (e.low, e.high) == pytest.approx((ends[film][0] + 1, ends[film][1] + 1)) and e.low <= value <= e.high


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT film, x FROM {PER_FILM} g, LATERAL (SELECT g.n + 1 AS x) l ORDER BY film",
        f"SELECT film, (SELECT count(*) FROM films f WHERE f.letters < g.n) AS x FROM {PER_FILM} g ORDER BY film",
        f"SELECT f.film, EXISTS (SELECT 1 FROM {PER_FILM} g WHERE g.film = f.film AND g.n > 15) AS x FROM films f ORDER BY film",
    ],
)
def test_what_a_sub_query_makes_of_an_estimate_around_it_is_no_bare_number(labels, statement):
    found = run(labels, statement)
    assert not found.exact and any(e.low == -inf and e.high == inf for e in found.estimates["x"])


@pytest.mark.parametrize(
    "statement",
    [
        f"PIVOT {PER_FILM} ON film USING sum(n)",
        f"SELECT film, n FROM {PER_FILM} g TABLESAMPLE 100%",
    ],
)
def test_duckdbs_statement_around_estimates_says_which_stand_without_their_interval(labels, statement):
    found = run(labels, statement)
    assert found.fetchall() and not found.exact
    assert any(note.startswith("n of the sub-query is an estimate: n_low and n_high") for note in found.notes)
    beside = run(labels, f"SELECT film, n, n_low, n_high FROM {PER_FILM} g TABLESAMPLE 100%")
    assert all(low <= n <= high for _, n, low, high in beside.fetchall())
    assert not any("is an estimate" in note for note in beside.notes)


@pytest.mark.parametrize(
    "statement",
    [
        f"WITH p AS {PER_FILM} SELECT a.film, a.n - b.n AS d FROM p a JOIN p b ON a.film < b.film",
        f"WITH p AS {PER_FILM} SELECT film, n * 1.0 / (SELECT sum(n) FROM p) AS share FROM p",
        f"WITH p AS {PER_FILM} SELECT 'all' AS k, sum(n) AS s FROM p UNION ALL SELECT 'most', max(n) FROM p",
        f"WITH p AS {PER_FILM}, m AS (SELECT max(n) AS x FROM p) SELECT film FROM p, m WHERE n = x",
        f"SELECT f.film, (SELECT n FROM {PER_FILM} g WHERE g.film = f.film) AS n FROM films f",
    ],
)
def test_what_stands_in_several_places_and_what_asks_nothing_take_no_share_of_the_budget(labels, statement):
    found = run(labels, statement)
    quoted = found.quote().calls
    assert found.fetchall() and 38 <= found.cost.calls <= 40
    assert quoted.low <= found.cost.calls <= quoted.high


@pytest.mark.parametrize(
    ("statement", "there"),
    [
        (
            f"SELECT film, st.n AS x, st.film AS k FROM (SELECT film, {{'n': n, 'film': film}} AS st FROM {PER_FILM} g) y",
            1,
        ),
        (f"SELECT unnest(list(n ORDER BY film)) AS x FROM {PER_FILM} g", 0),
        (f"SELECT film, x FROM {PER_FILM} g, unnest([g.n]) AS u(x)", 1),
    ],
)
def test_an_estimate_that_is_put_into_a_list_or_struct_and_taken_out_keeps_its_interval(labels, statement, there):
    listed = run(labels, f"SELECT film, n FROM {PER_FILM} g ORDER BY film").estimates["n"]
    found = run(labels, f"{statement} ORDER BY ALL" if there else statement)
    assert set(found.estimates) == {"x"}
    assert [(e.value, e.low, e.high) for e in found.estimates["x"]] == [(e.value, e.low, e.high) for e in listed]


@pytest.mark.parametrize("made", ["list(DISTINCT n)", "list(n) FILTER (WHERE n > 5)", "[n * 2, n % 3]"])
def test_lists_whose_items_do_not_correspond_to_the_ends_of_estimates_have_open_intervals(labels, made):
    by = " GROUP BY ALL" if made.startswith("[") else ""
    found = run(labels, f"SELECT unnest(l) AS x FROM (SELECT {made} AS l FROM {PER_FILM} g{by}) y").estimates["x"]
    assert all(e.low == -inf and e.high == inf for e in (found if isinstance(found, list) else [found]))
