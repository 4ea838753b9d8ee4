"""Rows that a person judged: counts corrected by the model's errors on them, and the user's own example rows."""

import pytest

import uql
from uql.errors import BudgetError, DataError

POSITIVE = '"the review is positive"'


def with_judged(world, error, n=200, **settings):
    con = world.connect(error, **settings)
    con.sql(
        "SELECT text, sentiment = 'pos' AS answer FROM reviews JOIN labels USING (id) "
        f"WHERE text IS NOT NULL AND id % 5 = 0 LIMIT {n}"
    ).create("judged")
    return con


def true_count(world):
    return sum(row["sentiment"] == "pos" and row["text"] is not None for row in world.rows)


def test_a_count_is_corrected_by_the_models_errors_on_judged_rows(large):
    con = with_judged(large, 0.2, budget="all")
    plain = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} AND text IS NOT NULL")
    result = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} AND text IS NOT NULL WITH (audit = 'judged')")
    found, truth = result.estimates["n"], true_count(large)
    assert found.method == "rogan-gladen" and not found.exact and not result.exact
    assert found.low <= truth <= found.high and found.high - found.low < 0.5 * truth
    assert plain.estimates["n"].exact
    (row,) = result.fetchall()[0]
    assert row == pytest.approx(found.value, abs=1)
    assert any("judged rows" in note and "of" in note for note in result.run().notes)


def test_judged_rows_count_in_the_budget_and_are_asked_before_the_sample(large):
    con = with_judged(large, 0.0, n=40, budget=120, examples=False)
    result = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (audit = 'judged')")
    assert result.cost.calls <= 120 and result.estimates["n"].calls <= 80
    small = with_judged(large, 0.0, n=40, budget=20, examples=False)
    with pytest.raises(BudgetError, match="judged"):
        small.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (audit = 'judged')").fetchall()


WHERE = f"WHERE {POSITIVE} AND text IS NOT NULL"


def test_sums_and_means_beside_a_count_and_by_a_stored_column_are_corrected(large):
    con = with_judged(large, 0.2, budget="all")
    query = f"SELECT id % 2 AS odd, COUNT(*) AS n, SUM(id) AS s, AVG(id) AS a FROM reviews {WHERE} GROUP BY odd ORDER BY odd"
    found = con.uql(f"{query} WITH (audit = 'judged')").estimates
    raw = con.uql(query).estimates
    truth = large.truth(
        "SELECT id % 2, COUNT(*), SUM(id), AVG(id) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    for g, row in enumerate(truth):
        for name, wanted in zip(("n", "s", "a"), row[1:], strict=True):
            one = found[name][g]
            assert one.method == "rogan-gladen" and not one.exact and one.low <= float(wanted) <= one.high
            assert one.high - one.low < 0.6 * float(wanted) and one.value != raw[name][g].value


@pytest.mark.parametrize(
    "item",
    [
        f"COUNT(*) FILTER (WHERE {POSITIVE}) * 1.0 / COUNT(*)",
        f"AVG(CASE WHEN {POSITIVE} THEN 1 ELSE 0 END)",
        f"1 / (COUNT(*) * 1.0 / COUNT(*) FILTER (WHERE {POSITIVE}))",
    ],
)
def test_a_share_of_a_condition_is_corrected(large, item):
    con = with_judged(large, 0.2, budget="all")
    result = con.uql(f"SELECT {item} AS s FROM reviews WHERE text IS NOT NULL WITH (audit = 'judged')")
    truth = float(large.truth("SELECT AVG((sentiment = 'pos')::INT) FROM r WHERE text IS NOT NULL")[0][0])
    said = float(con.uql(f"SELECT {item} AS s FROM reviews WHERE text IS NOT NULL").fetchall()[0][0])
    found = float(result.fetchall()[0][0])
    assert found != said and abs(found - truth) < 0.1
    if not item.startswith("1 /"):
        estimate = result.estimates["s"]
        assert estimate.method == "rogan-gladen" and estimate.low <= truth <= estimate.high


@pytest.mark.parametrize(
    ("query", "named"),
    [
        (f"SELECT MAX(id) FROM reviews {WHERE}", "MAX"),
        (f'SELECT AVG("the number of stars"::INTEGER) FROM reviews {WHERE}', "reads"),
        (f'SELECT "the film" AS f, COUNT(*) FROM reviews {WHERE} GROUP BY f', "groups"),
        (f"SELECT COUNT(*) FROM reviews WHERE {POSITIVE} OR id < 5", "mixes"),
        (
            f'SELECT COUNT(*) FILTER (WHERE {POSITIVE}), COUNT(*) FILTER (WHERE "it is about the plot") FROM reviews',
            "one",
        ),
    ],
)
def test_what_judged_rows_do_not_correct_is_refused_before_a_call(large, query, named):
    con = with_judged(large, 0.0, n=40, budget=200)
    with pytest.raises(DataError, match=named) as error:
        con.uql(f"{query} WITH (audit = 'judged')").fetchall()
    assert error.value.code == "UQL518" and "leave audit out" in str(error.value.help)


@pytest.mark.parametrize("setting", ["audit", "examples"])
def test_a_table_that_is_not_there_or_lacks_a_column_is_said(large, setting):
    con = large.connect(budget=60)
    con.sql("SELECT 1 AS other, true AS answer").create("odd")
    for name, missing in (("nowhere", "nowhere"), ("odd", "text")):
        with pytest.raises(DataError, match=name) as error:
            con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH ({setting} = '{name}')").fetchall()
        assert missing in str(error.value) + str(error.value.help) and error.value.code == "UQL504"


def test_own_example_rows_stand_for_those_that_the_model_writes(large):
    con = with_judged(large, 0.0, n=40, budget=100)
    asked = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}")
    own = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (examples = 'judged')")
    assert asked.estimates["n"].calls == 98 and own.estimates["n"].calls == 100  # no call for example rows
    assert own.estimates["n"].low <= true_count(large) <= own.estimates["n"].high
    assert isinstance(con, uql.Connection)
