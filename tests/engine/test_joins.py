"""Joins on a condition that a model decides: their answers are those of SQL over the labels, and their calls are few."""

from __future__ import annotations

import pytest
from row_model import RowModel

import uql
from uql.base.errors import BudgetError
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Problem
from uql.llm.questions import Choice, Write

ON = {  # the condition, in UQL and over the labels
    "the review {a.text} and the review {b.text} agree": "x.sentiment = y.sentiment",
    "they agree": "x.sentiment = y.sentiment",
    "both are about the same thing": "x.about = y.about",
}
PAIRS = "FROM r AS x JOIN r AS y ON x.film = y.film AND x.id < y.id AND x.text IS NOT NULL AND y.text IS NOT NULL"
JOIN = "ON a.film = b.film AND a.id < b.id AND a.text IS NOT NULL AND b.text IS NOT NULL"


@pytest.mark.parametrize(("text", "sql"), ON.items())
def test_an_inner_join_with_equality_first_gives_the_pairs_of_the_labels(con, world, text, sql):
    found = con.uql(f'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b {JOIN} AND "{text}" ORDER BY 1, 2')
    assert found.fetchall() == world.truth(f"SELECT x.id, y.id {PAIRS} AND {sql} ORDER BY 1, 2")
    assert found.exact


def test_pairs_of_equal_texts_are_asked_once(con, world):
    query = (
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id = b.id AND "they agree" WHERE a.text IS NOT NULL'
    )
    twice = con.uql(f"{query} UNION ALL {query}")
    once = world.truth("SELECT COUNT(*) FROM r WHERE text IS NOT NULL")[0][0]
    assert len(twice.fetchall()) == 2 * once
    assert twice.cost.calls == once


AGREE = '"the review {a.text} and the review {b.text} agree"'
AGREED = "x.text IS NOT NULL AND y.text IS NOT NULL AND x.sentiment = y.sentiment"


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_joins_on_a_text_are_those_of_sql(con, world, kind):
    found = con.uql(
        f"SELECT a.id, b.id FROM reviews AS a {kind} JOIN (SELECT * FROM reviews WHERE stars >= 4) AS b "
        f"ON a.film = b.film AND a.stars < b.stars AND {AGREE} WHERE a.id IS NULL OR a.id < 40 ORDER BY 1, 2"
    )
    truth = world.truth(
        f"SELECT x.id, y.id FROM r AS x {kind} JOIN (SELECT * FROM r WHERE stars >= 4) AS y "
        f"ON x.film = y.film AND x.stars < y.stars AND {AGREED} WHERE x.id IS NULL OR x.id < 40 "
        "ORDER BY 1 NULLS LAST, 2 NULLS LAST"
    )
    assert found.fetchall() == truth
    assert found.exact


INSIDE = [  # a join on a text that stands inside another join
    (
        'films AS f LEFT JOIN reviews AS b ON f.film = b.film AND b.stars = 5 AND "the review is a joke" LEFT JOIN labels AS l ON l.id = b.id',
        "films AS f LEFT JOIN r AS b ON f.film = b.film AND b.stars = 5 AND b.joke AND b.text IS NOT NULL LEFT JOIN r AS l ON l.id = b.id",
        "f.film, b.id, l.about",
    ),
    (
        'films AS f LEFT JOIN (reviews AS b JOIN reviews AS c ON b.id + 1 = c.id AND "the review {b.text} and the review {c.text} agree") ON f.film = b.film AND b.stars = 5',
        "films AS f LEFT JOIN (r AS b JOIN r AS c ON b.id + 1 = c.id AND b.text IS NOT NULL AND c.text IS NOT NULL AND b.sentiment = c.sentiment) ON f.film = b.film AND b.stars = 5",
        "f.film, b.id, c.id",
    ),
    (
        'films AS f ANTI JOIN reviews AS b ON f.film = b.film AND b.stars = 2 AND "the review is a joke" RIGHT JOIN reviews AS c ON f.film = c.film AND "the review is positive" USING (c.text)',
        "films AS f ANTI JOIN r AS b ON f.film = b.film AND b.stars = 2 AND b.joke AND b.text IS NOT NULL RIGHT JOIN r AS c ON f.film = c.film AND c.sentiment = 'pos' AND c.text IS NOT NULL",
        "f.film, c.id",
    ),
]


@pytest.mark.parametrize(("source", "sql", "shown"), INSIDE)
def test_a_join_on_a_text_stands_anywhere_in_a_join(con, world, source, sql, shown):
    found = con.uql(f"SELECT {shown} FROM {source} ORDER BY ALL")
    assert found.fetchall() == world.truth(f"SELECT {shown} FROM {sql} ORDER BY ALL NULLS LAST")


SUB = f"FROM reviews AS b WHERE b.film = a.film AND b.stars = 5 AND {AGREE}"
SUB_SQL = f"FROM r AS y WHERE y.film = x.film AND y.stars = 5 AND {AGREED}"
CORRELATED = [
    (
        f"SELECT a.id FROM reviews AS a WHERE EXISTS (SELECT 1 {SUB}) ORDER BY 1",
        f"SELECT x.id FROM r AS x WHERE EXISTS (SELECT 1 {SUB_SQL}) ORDER BY 1",
    ),
    (
        f"SELECT a.id FROM reviews AS a WHERE a.stars > 2 AND NOT EXISTS (SELECT * {SUB}) ORDER BY 1",
        f"SELECT x.id FROM r AS x WHERE x.stars > 2 AND NOT EXISTS (SELECT * {SUB_SQL}) ORDER BY 1",
    ),
    (
        f'SELECT a.id, EXISTS (SELECT * {SUB}) AS e FROM reviews AS a WHERE "the review is positive" OR a.stars = 1 ORDER BY e, 1',
        f"SELECT x.id, EXISTS (SELECT * {SUB_SQL}) AS e FROM r AS x WHERE (x.sentiment = 'pos' AND x.text IS NOT NULL) OR x.stars = 1 ORDER BY e, 1",
    ),
    (
        f"SELECT a.id, (SELECT COUNT(*) {SUB}) AS n FROM reviews AS a ORDER BY 1",
        f"SELECT x.id, (SELECT COUNT(*) {SUB_SQL}) AS n FROM r AS x ORDER BY 1",
    ),
    (
        'SELECT f.film, (SELECT MAX("the number of stars") FROM reviews AS b WHERE b.film = f.film AND "the review is a joke") AS n FROM films AS f ORDER BY 1',
        "SELECT f.film, (SELECT MAX(y.rating) FROM r AS y WHERE y.film = f.film AND y.joke AND y.text IS NOT NULL) AS n FROM films AS f ORDER BY 1",
    ),
    (
        'SELECT a.film, COUNT(*) FROM reviews AS a WHERE a.id NOT IN (SELECT b.id + 1 FROM reviews AS b WHERE b.film = a.film AND "the review is positive") GROUP BY a.film ORDER BY 1',
        "SELECT x.film, COUNT(*) FROM r AS x WHERE x.id NOT IN (SELECT y.id + 1 FROM r AS y WHERE y.film = x.film AND y.sentiment = 'pos' AND y.text IS NOT NULL) GROUP BY x.film ORDER BY 1",
    ),
    (
        'SELECT a.film, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM reviews AS b WHERE b.id = a.id + 1 AND "the review is positive")) AS n FROM reviews AS a GROUP BY a.film ORDER BY 1',
        "SELECT x.film, COUNT(*) FILTER (WHERE EXISTS (SELECT 1 FROM r AS y WHERE y.id = x.id + 1 AND y.sentiment = 'pos' AND y.text IS NOT NULL)) AS n FROM r AS x GROUP BY x.film ORDER BY 1",
    ),
    (
        'SELECT a.id FROM reviews AS a WHERE EXISTS (SELECT 1 FROM reviews AS b WHERE b.id = a.id + 1 AND "the main topic" IN (SELECT about FROM labels) AND b.stars = 3) ORDER BY 1',
        "SELECT x.id FROM r AS x WHERE EXISTS (SELECT 1 FROM r AS y WHERE y.id = x.id + 1 AND y.text IS NOT NULL AND y.stars = 3) ORDER BY 1",
    ),
]


@pytest.mark.parametrize(("query", "sql"), CORRELATED)
def test_a_sub_query_with_a_text_may_read_columns_of_the_query_around_it(con, world, query, sql):
    found = con.uql(query)
    assert found.fetchall() == world.truth(sql)
    assert found.exact


def test_rows_with_an_unanswered_pair_are_returned_neither_by_exists_nor_by_not_exists():
    con = uql.connect(model=Silent(), ledger=":memory:", budget="all")
    con.sql("SELECT unnest(['one thing', 'no answer', 'another thing']) AS text").create("t")
    con.sql("SELECT 'x' AS text").create("u")
    query = 'SELECT t.text FROM t WHERE {} (SELECT 1 FROM u WHERE PROMPT "{{t.text}} and {{u.text}} go together" USING (t.text, u.text))'
    there, not_there = con.uql(query.format("EXISTS")), con.uql(query.format("NOT EXISTS"))
    assert there.fetchall() == [("one thing",)]
    assert not_there.fetchall() == [("another thing",)]
    assert not there.exact
    assert any("1 of 3 pairs gave no answer" in note for note in there.notes)


def test_a_sub_query_that_is_more_than_pairs_is_run_for_each_value_around_it(con, world):
    query = (
        "SELECT f.film FROM films AS f WHERE EXISTS (SELECT b.stars FROM reviews AS b WHERE b.film = f.film AND b.text IS NOT NULL "
        'GROUP BY b.stars HAVING COUNT(*) FILTER (WHERE "the review is positive") > 3) ORDER BY 1'
    )
    assert con.uql(query).fetchall() == world.truth(
        "SELECT f.film FROM films AS f WHERE EXISTS (SELECT b.stars FROM r AS b WHERE b.film = f.film AND b.text IS NOT NULL "
        "GROUP BY b.stars HAVING COUNT(*) FILTER (WHERE b.sentiment = 'pos') > 3) ORDER BY 1"
    )


def test_sub_queries_that_are_run_for_each_value_stand_in_and_beside_each_other(con, world):
    most = (
        "(SELECT max(n) FROM (SELECT {b}.stars, count(*) FILTER (WHERE {text}) AS n FROM {r} AS {b} "
        "WHERE {b}.film = f.film AND {b}.text IS NOT NULL AND EXISTS (SELECT 1 FROM {r} AS {c} WHERE {c}.film = {b}.film "
        "AND {c}.stars = {b}.stars AND {c}.text IS NOT NULL GROUP BY {c}.stars HAVING count(*) FILTER (WHERE {inner}) > 1) "
        "GROUP BY {b}.stars))"
    )
    texts = {"positive": '"the review is positive"', "joke": '"the review is a joke"'}
    labels = {"positive": "{}.sentiment = 'pos'", "joke": "{}.joke"}
    first, second = (
        most.format(b="b", c="c", r="reviews", text=texts[one], inner=texts[other])
        for one, other in (("positive", "joke"), ("joke", "positive"))
    )
    want, want_second = (
        most.format(b="b", c="c", r="r", text=labels[one].format("b"), inner=labels[other].format("c"))
        for one, other in (("positive", "joke"), ("joke", "positive"))
    )
    found = con.uql(f"SELECT f.film, {first} AS a, {second} AS b FROM films AS f ORDER BY 1 WITH (budget = 'all')")
    assert found.fetchall() == world.truth(f"SELECT f.film, {want} AS a, {want_second} AS b FROM films AS f ORDER BY 1")
    assert found.exact


def test_a_sub_query_is_not_run_for_more_values_than_the_limit(con, monkeypatch):
    monkeypatch.setattr("uql.kernels.correlated.MOST_RUNS", 2)
    query = (
        'SELECT f.film FROM films AS f WHERE EXISTS (SELECT 1 FROM reviews AS b WHERE b.film = f.film AND "the review is a joke" '
        "UNION SELECT 1 FROM reviews AS c WHERE c.film = f.film AND c.stars = 9)"
    )
    with pytest.raises(BudgetError) as error:
        con.uql(query).fetchall()
    assert error.value.code == "UQL401"
    assert error.value.help


@pytest.mark.parametrize("kind", ["LEFT", "SEMI", "ANTI"])
def test_left_semi_and_anti_joins_are_those_of_sql(con, world, kind):
    shown, sql_shown = ("f.film, b.id", "f.film, y.id") if kind == "LEFT" else ("f.film", "f.film")
    found = con.uql(
        f"SELECT {shown} FROM films AS f {kind} JOIN reviews AS b ON f.film = b.film AND b.stars = 5 "
        f'AND "the review is a joke" ORDER BY 1{", 2" if kind == "LEFT" else ""}'
    )
    truth = world.truth(
        f"SELECT {sql_shown} FROM films AS f {kind} JOIN r AS y ON f.film = y.film AND y.stars = 5 "
        f"AND y.joke AND y.text IS NOT NULL ORDER BY 1{', 2' if kind == 'LEFT' else ''} NULLS LAST"
    )
    assert found.fetchall() == truth


def test_exists_and_in_with_a_text_inside_are_semi_joins(con, world):
    found = con.uql(
        'SELECT film FROM films WHERE film IN (SELECT film FROM reviews WHERE "the review is a joke") ORDER BY film'
    )
    assert found.fetchall() == world.truth(
        "SELECT film FROM films WHERE film IN (SELECT film FROM r WHERE joke AND text IS NOT NULL) ORDER BY film"
    )


def test_a_join_too_large_for_its_pairs_is_answered_from_one_attribute_a_side(world):
    asked = world.truth("SELECT COUNT(*) FROM r WHERE text IS NOT NULL")[0][0]
    result = world.connect(budget=160).uql(
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "the two reviews disagree" '
        "WHERE a.text IS NOT NULL AND b.text IS NOT NULL ORDER BY 1, 2"
    )
    truth = world.truth(
        "SELECT x.id, y.id FROM r AS x JOIN r AS y ON x.id < y.id AND x.sentiment <> y.sentiment "
        "AND x.text IS NOT NULL AND y.text IS NOT NULL ORDER BY 1, 2"
    )
    assert result.fetchall() == truth
    assert result.cost.calls <= asked + 1 + 64
    assert not result.exact
    assert any("random pairs asked outright agree" in note for note in result.notes)


def test_an_attribute_that_does_not_decide_the_condition_is_not_relied_on(world):
    result = world.connect(budget=160).uql(
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "both are about the same thing" '
        "WHERE a.text IS NOT NULL AND b.text IS NOT NULL"
    )
    found = set(result.fetchall())
    truth = set(
        world.truth(
            "SELECT x.id, y.id FROM r AS x JOIN r AS y ON x.id < y.id AND x.about = y.about "
            "AND x.text IS NOT NULL AND y.text IS NOT NULL"
        )
    )
    assert found <= truth  # only pairs that were asked
    assert any("does not decide" in note for note in result.notes)
    assert result.cost.calls <= 160


def test_method_attribute_asks_for_it_where_the_pairs_would_fit(world):
    query = (
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "the two reviews disagree" '
        "WHERE a.text IS NOT NULL AND b.text IS NOT NULL ORDER BY 1, 2 WITH (exact{})"
    )
    con = world.connect()
    by_attribute = con.uql(query.format(", method = 'attribute'"))
    by_pairs = con.uql(query.format(""))
    assert by_attribute.fetchall() == by_pairs.fetchall()
    assert by_attribute.cost.calls < 120 < by_pairs.cost.calls
    assert by_pairs.exact
    assert not by_attribute.exact


def test_a_count_by_the_attribute_has_the_interval_of_the_pairs_that_its_check_leaves_open(world):
    query = (
        'SELECT COUNT(*) AS n FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "the two reviews disagree" '
        "WHERE a.text IS NOT NULL AND b.text IS NOT NULL WITH (exact{})"
    )
    con = world.connect()
    by_attribute, by_pairs = con.uql(query.format(", method = 'attribute'")), con.uql(query.format(""))
    assert by_attribute.fetchall() == by_pairs.fetchall()
    told, counted = by_attribute.estimates["n"], by_pairs.estimates["n"]
    assert by_pairs.exact and counted.low == counted.high
    assert not by_attribute.exact and told.low < counted.value < told.high
    assert by_attribute.cost.calls < 120 < by_pairs.cost.calls


def test_limit_by_the_attribute_gives_pairs_that_hold(world):
    result = world.connect().uql(
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "the two reviews disagree" '
        "WHERE a.text IS NOT NULL AND b.text IS NOT NULL LIMIT 3 WITH (method = 'attribute')"
    )
    truth = world.truth("SELECT x.id, y.id FROM r AS x JOIN r AS y ON x.id < y.id AND x.sentiment <> y.sentiment")
    rows = result.fetchall()
    assert len(rows) == 3 and set(rows) <= set(truth) and not result.exact


def test_a_semi_join_uses_the_attribute_too(world):
    query = (
        "SELECT a.id FROM reviews AS a {} JOIN reviews AS b ON a.film <> b.film AND b.stars = 1 "
        'AND b.text IS NOT NULL AND a.text IS NOT NULL AND "the two reviews disagree" ORDER BY 1'
    )
    for kind in ("SEMI", "ANTI"):
        result = world.connect(budget=150).uql(query.format(kind))
        assert result.fetchall() == world.truth(
            f"SELECT x.id FROM r AS x {kind} JOIN r AS y ON x.film <> y.film AND y.stars = 1 AND y.text IS NOT NULL "
            "AND x.text IS NOT NULL AND x.sentiment <> y.sentiment ORDER BY 1"
        )
        assert result.cost.calls <= 150


def test_a_join_that_does_not_fit_sends_nothing(world):
    result = world.connect(budget=20).uql(
        'SELECT a.id FROM reviews AS a SEMI JOIN reviews AS b ON a.id < b.id AND "they agree"'
    )
    with pytest.raises(BudgetError):
        result.fetchall()


@pytest.mark.thorough
def test_a_count_over_a_join_is_estimated_from_sampled_pairs_with_an_interval(world):
    truth = world.truth(
        "SELECT COUNT(*) FROM r AS x JOIN r AS y ON x.id < y.id AND x.sentiment = y.sentiment "
        "AND x.text IS NOT NULL AND y.text IS NOT NULL"
    )[0][0]
    hits = 0
    for seed in range(10):
        result = world.connect(seed=seed, budget=80).uql(
            'SELECT COUNT(*) AS n FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "they agree" '
            "WHERE a.text IS NOT NULL AND b.text IS NOT NULL"
        )
        found = result.estimates["n"]
        hits += found.low <= truth <= found.high
        assert result.cost.calls <= 80
        assert not found.exact
    assert hits >= 8


class Silent(RowModel):
    """Gives no answer about some rows."""

    name, is_local = "silent", True

    def _one(self, question, row):
        if any("no answer" in cell.value for cell in row.cells):
            return Answer(problem=Problem("refusal", "not this one"))
        yes = any("one thing" in cell.value for cell in row.cells)
        return Answer(yes, float(yes))


class Matcher(RowModel):
    """Says of two offers whether they are of one thing: the number in both texts is the same."""

    name, is_local = "matcher", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def _one(self, question, row):
        if isinstance(question, Write):
            return Answer({"attribute": "", "values": [], "rule": "same", "pairs": []})
        one, two = (set(WORDS) & set(cell.value.split()) for cell in row.cells)
        return Answer(one == two, float(one == two))


WORDS = [
    "camera",
    "kettle",
    "bicycle",
    "piano",
    "ladder",
    "umbrella",
    "telescope",
    "guitar",
    "toaster",
    "printer",
    "sofa",
    "violin",
    "helmet",
    "compass",
    "lantern",
    "hammer",
    "mirror",
    "blanket",
    "scooter",
    "candle",
    "wardrobe",
    "trumpet",
    "backpack",
    "thermometer",
    "keyboard",
    "tent",
    "carpet",
    "wheelbarrow",
    "saucepan",
    "armchair",
]


def test_a_join_with_no_such_attribute_searches_near_pairs_first_and_says_how_many_there_may_be():
    recalls = []
    for seed in range(3):
        con = uql.connect(model=Matcher(), ledger=":memory:", seed=seed, budget=180)
        named = f"FROM (SELECT unnest({WORDS}) AS w, generate_subscripts({WORDS}, 1) AS i)"
        con.sql(f"SELECT i AS id, 'for sale, hardly used: a fine old ' || w AS text {named}").create("offers")
        con.sql(f"SELECT i AS id, 'wanted by a collector, any ' || w || ' in good order' AS text {named}").create(
            "wishes"
        )
        result = con.uql('SELECT o.id, w.id FROM offers AS o JOIN wishes AS w ON "{o.text} is what {w.text} asks for"')
        found = result.fetchall()
        assert all(a == b for a, b in found)
        assert result.cost.calls <= 180
        assert any(note.startswith("found") and "of about" in note for note in result.notes)
        recalls.append(len(found) / len(WORDS))
    assert sum(recalls) / len(recalls) >= 0.8  # 180 of 900 pairs at random would find a fifth


class Sorter(RowModel):
    """Says which of some words a text holds, and remembers the texts that it was asked for it."""

    name, is_local = "sorter", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def __init__(self, values):
        self.values, self.sorted_texts = values, []

    def _one(self, question, row):
        if isinstance(question, Write):
            return Answer({"attribute": "the thing for sale", "values": self.values, "rule": "same", "pairs": []})
        texts = [cell.value for cell in row.cells] + [value for _, value in row.holes]
        words = [{word for word in self.values if word in text.lower()} for text in texts]
        if isinstance(question, Choice):
            self.sorted_texts += texts
            return Answer(words[0].pop())
        return Answer(words[0] == words[-1], float(words[0] == words[-1]))


def test_a_row_whose_text_is_a_value_of_the_attribute_has_that_value_and_is_not_asked():
    things = WORDS[:6]
    model = Sorter(things)
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.sql(
        f"SELECT id, 'offer ' || id || ': a fine old ' || ({things})[1 + id % 6] AS text FROM range(30) t(id)"
    ).create("offers")
    con.sql(f"SELECT upper(unnest({things})) AS text").create("things")
    result = con.uql(
        'SELECT o.id, t.text FROM offers AS o JOIN things AS t ON "{o.text} sells a {t.text}" ORDER BY 1 '
        "WITH (method = 'attribute')"
    )
    assert result.fetchall() == [(i, things[i % 6].upper()) for i in range(30)]
    assert len(model.sorted_texts) == 30 and not {text.lower() for text in model.sorted_texts} & set(things)
    assert any("was decided from" in note for note in result.notes)


def test_a_model_that_errs_is_still_joined_by_the_attribute_and_its_agreement_is_told(world):
    query = (
        'SELECT a.id, b.id FROM reviews AS a JOIN reviews AS b ON a.id < b.id AND "the two reviews disagree" '
        "WITH (budget = 170)"
    )
    truth = set(
        world.truth(
            "SELECT x.id, y.id FROM r AS x JOIN r AS y ON x.id < y.id AND x.sentiment <> y.sentiment "
            "AND x.text IS NOT NULL AND y.text IS NOT NULL"
        )
    )
    result = world.connect(error=0.05).uql(query)
    found = set(result.fetchall())
    assert result.cost.calls <= 170
    right = len(found & truth)
    assert 2 * right / (len(found) + len(truth)) >= 0.8
    assert any("random pairs asked outright agree" in note for note in result.notes)
