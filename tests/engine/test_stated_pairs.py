"""Conditions that compare one attribute of two texts, asked of a model that cannot weigh two texts against each other."""

from __future__ import annotations

from typing import Any

import pytest
from row_model import RowModel

import uql
from uql.compiler.stated import stated
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import NONE, Choice, Write

MOODS = ["happy", "sad"]


class Small(RowModel):
    """Reads the mood of one text well, says no to every pair, and names the values that it sees in the rows shown."""

    name, is_local = "small", True
    limits, price = Limits(concurrency=4), Price(0, 0)
    capabilities = Capabilities(probabilities=True, weighs_pairs=False)

    def __init__(self, attribute: str = "mood") -> None:
        self.attribute = attribute
        self.pairs = self.rows = self.proposals = 0

    def _one(self, question: Any, row: Any) -> Answer:
        if isinstance(question, Write):
            self.proposals += 1
            seen = dict.fromkeys(self.value(cell.value) for shown in question.shown for cell in shown.cells)
            return Answer({"attribute": self.attribute, "values": list(seen), "rule": "same", "pairs": []})
        if isinstance(question, Choice):
            self.rows += 1
            value = self.value(row.cells[0].value)
            options = [*question.labels, NONE]
            said = value if value in question.labels else NONE
            return Answer(said, 0.9, tuple(0.9 if o == said else 0.1 / (len(options) - 1) for o in options))
        self.pairs += 1
        return Answer(False, 0.2)

    def value(self, text: str) -> str:
        return text.rpartition(" ")[2] if self.attribute == "owner" else next(m for m in MOODS if m in text)


def connected(model: Small, rows: int = 24, **settings: Any) -> uql.Connection:
    con = uql.connect(model=model, ledger=":memory:", progress=False, **{"budget": "all", **settings})
    con.sql(
        f"SELECT i AS id, 'Note ' || i || ' of a ' || ['happy', 'sad'][1 + i % 2] || ' day of person' || i AS text FROM range({rows}) r(i)"
    ).create("notes")
    con.sql(
        "CREATE TABLE pairs AS SELECT a.id AS a, b.id AS b, a.text AS one, b.text AS two FROM notes a JOIN notes b ON b.id = a.id + 1 OR b.id = a.id + 2"
    )
    return con


@pytest.mark.parametrize(
    ("condition", "even"),
    [
        ("the notes {p.one} and {p.two} have the same mood", True), ("{p.one} and {p.two} do not have the same mood", False),
        ("the mood of {p.one} and {p.two} is different", False), ("{p.one} and {p.two} express opposite moods", False),
    ],
)  # fmt: skip
def test_two_columns_of_a_table_are_compared_by_the_attribute_that_the_condition_names(
    condition: str, even: bool
) -> None:
    model = Small()
    with connected(model) as con:
        result = con.uql(f'SELECT a, b FROM pairs AS p WHERE "{condition}"')
        assert set(result.fetchall()) == {(i, i + (2 if even else 1)) for i in range(22 if even else 23)}
        assert model.pairs == 0 and model.rows == 24 and model.proposals == 2, (
            "each text is asked once, on whichever side"
        )
        assert not result.exact and any("near chance" in note and "happy" in note for note in result.notes)


def test_the_plan_counts_rows_in_place_of_pairs_and_says_so() -> None:
    with connected(Small()) as con:
        result = con.uql('SELECT a, b FROM pairs AS p WHERE "the notes {p.one} and {p.two} have the same mood"')
        quote = result.quote()
        assert "the attribute that it compares" in result.explain()
        result.fetchall()
        assert quote.calls.low <= result.cost.calls == 26 <= quote.calls.expected <= quote.calls.high


def test_a_join_of_a_table_with_itself_is_answered_so_too() -> None:
    model = Small()
    with connected(model, rows=10) as con:
        result = con.uql(
            'SELECT a.id, b.id FROM notes a JOIN notes b ON a.id < b.id AND "{a.text} and {b.text} have the same mood"'
        )
        assert set(result.fetchall()) == {(i, j) for i in range(10) for j in range(i + 1, 10) if (i + j) % 2 == 0}
        assert model.pairs == 0 and model.rows == 10


def test_an_attribute_of_many_values_is_seen_by_its_values_from_other_rows_and_pairs_are_asked() -> None:
    model = Small("owner")
    with connected(model) as con:
        result = con.uql('SELECT a, b FROM pairs AS p WHERE "the notes {p.one} and {p.two} have the same owner"')
        assert result.fetchall() == [] and model.pairs == 45 and model.rows == 0
        assert any("more values than were seen" in note for note in result.notes)


@pytest.mark.parametrize("query", [
    'SELECT a, b FROM pairs AS p WHERE "{p.one} and {p.two} were written by one person"',
    'SELECT a, b FROM pairs AS p WHERE "the notes {p.one} and {p.two} have the same mood" WITH (exact)',
])  # fmt: skip
def test_other_conditions_and_exact_queries_are_asked_of_the_pairs(query: str) -> None:
    model = Small()
    with connected(model) as con:
        con.uql(query).fetchall()
        assert model.pairs == 45 and model.rows == 0


def test_a_count_of_pairs_says_that_this_model_is_near_chance() -> None:
    with connected(Small()) as con:
        result = con.uql('SELECT COUNT(*) FROM pairs AS p WHERE "the notes {p.one} and {p.two} have the same mood"')
        result.fetchall()
        assert any("near chance" in note for note in result.notes) and "near chance" not in result.explain()


def test_a_model_that_weighs_pairs_is_asked_the_pairs() -> None:
    class Large(Small):
        capabilities = Capabilities(probabilities=True)

    model = Large()
    with connected(model) as con:
        con.uql('SELECT a, b FROM pairs AS p WHERE "the notes {p.one} and {p.two} have the same mood"').fetchall()
        assert model.pairs == 45 and model.rows == 0


@pytest.mark.parametrize(("condition", "attribute", "rule"), [
    ("the tweets {a.text} and {b.text} have the same sentiment", "sentiment", "same"),
    ("{a.text} has the same topic as {b.text}", "topic", "same"), ("the topic of both is the same", "topic", "same"),
    ("they express opposite opinions", "opinions", "opposite"), ("they do not share the same view", "view", "different"),
    ("the first and the second review have a different tone", "tone", "different"),
])  # fmt: skip
def test_comparisons_that_are_stated(condition: str, attribute: str, rule: str) -> None:
    found = stated(condition)
    assert found is not None and (found.attribute, found.rule) == (attribute, rule)


@pytest.mark.parametrize("condition", [
    "the two reviews disagree", "they are the same", "they have the same tone and length", "one is angry, and both have the same topic",
    "the writers are in the same country and the same mood", "{a.text} and {b.text} do not express opposite views",
    "{a.text} is the answer to {b.text}", "the mood of the one differs",
])  # fmt: skip
def test_comparisons_that_say_something_else_or_more(condition: str) -> None:
    assert stated(condition) is None
