"""Rows that show the model the same are asked once, and a sample or a search reckons with it."""

import pytest

import uql

POSITIVE = '"the review is positive"'
SALES = (
    "CREATE TABLE sales AS SELECT i AS sale, (i * i * 7 + i) % 97 * ((i * 13) % 5) % 60 AS id, "
    "round(abs(sin(i)) * 100, 2) AS amount, ['DE', 'FR', 'IT'][1 + i % 3] AS land FROM range(3000) AS r(i)"
)
JOINED = "sales JOIN reviews USING (id)"


@pytest.fixture
def shop(world):
    def connect(**settings) -> uql.Connection:
        con = world.connect(**settings)
        con.execute(SALES)
        return con

    return connect


def truth(con, world, select, rest=""):
    labels = f"(SELECT s.*, l.sentiment FROM sales s JOIN '{world.folder}/labels.parquet' l USING (id) JOIN reviews r USING (id) WHERE r.text IS NOT NULL)"
    return con.sql(f"SELECT {select} FROM {labels} WHERE sentiment = 'pos' {rest}").fetchall()


@pytest.mark.parametrize(
    "select, labelled, rest",
    [
        ("COUNT(*) AS n", "COUNT(*)", ""),
        ("SUM(amount) AS n", "SUM(amount)", ""),
        ("AVG(amount) AS n", "AVG(amount)", ""),
        ("land, COUNT(*) AS n", "land, COUNT(*)", "GROUP BY land ORDER BY land"),
    ],
)
def test_a_budget_for_each_text_of_a_dimension_is_exact_over_its_facts(shop, world, select, labelled, rest):
    con = shop(budget=60)
    result = con.uql(f"SELECT {select} FROM {JOINED} WHERE {POSITIVE} {rest}")
    found = result.fetchall()
    assert result.exact and result.cost.calls <= 60
    assert [row[-1] for row in found] == [pytest.approx(row[-1]) for row in truth(con, world, labelled, rest)]


@pytest.mark.thorough
def test_below_it_units_are_sampled_and_the_intervals_hold(shop, world):
    held, widths = 0, []
    for seed in range(10):
        con = shop(budget=40, examples=False, seed=seed)
        result = con.uql(f"SELECT COUNT(*) AS n, AVG(amount) AS a FROM {JOINED} WHERE {POSITIVE}")
        assert not result.exact and 30 <= result.cost.calls <= 40
        (count, mean) = truth(con, world, "COUNT(*), AVG(amount)")[0]
        n, a = result.estimates["n"], result.estimates["a"]
        held += (n.low <= count <= n.high) + (a.low <= mean <= a.high)
        widths.append((a.high - a.low) / mean)
    assert held >= 17 and max(widths) < 0.4


def test_a_search_spends_its_calls_on_texts_and_returns_all_their_rows(shop, world):
    con = shop(budget=48)
    result = con.uql(f"SELECT sale FROM {JOINED} WHERE {POSITIVE}")
    rows = {sale for (sale,) in result.fetchall()}
    every = {sale for (sale,) in truth(con, world, "sale")}
    assert rows <= every and len(rows) > 0.8 * len(every)
    assert 40 <= result.cost.calls <= 48


def test_what_duckdb_knows_of_a_row_parts_rows_of_one_text(shop, world):
    con = shop(budget=60)
    where = f"({POSITIVE} OR amount > 95) AND amount > 10"
    (found,) = con.uql(f"SELECT COUNT(*) FROM {JOINED} WHERE {where}").fetchall()[0]
    labels = f"(SELECT s.*, l.sentiment, r.text FROM sales s JOIN '{world.folder}/labels.parquet' l USING (id) JOIN reviews r USING (id))"
    plain = "((sentiment = 'pos' AND text IS NOT NULL) OR amount > 95) AND amount > 10"
    assert [(found,)] == con.sql(f"SELECT COUNT(*) FROM {labels} WHERE {plain}").fetchall()
