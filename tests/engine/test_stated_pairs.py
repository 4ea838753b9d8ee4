"""Conditions that compare one attribute of two texts, asked of a model that cannot weigh two texts against each other."""

from __future__ import annotations

from typing import Any

import pytest
from row_model import RowModel

import uql
from uql.compiler.pair_attribute import attribute_comparison
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import NONE, Choice, Extract, Write

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
        if isinstance(question, Extract):
            self.rows += 1
            return Answer(self.value(row.cells[0].value))
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


def test_an_attribute_of_many_values_that_stand_in_the_rows_is_asked_of_each_row_in_its_own_words() -> None:
    model = Small("owner")
    with connected(model) as con:
        con.sql(
            "CREATE TABLE twins AS SELECT * FROM pairs UNION ALL SELECT 0, 99, one, 'A later one of person0' FROM pairs WHERE a = 0 AND b = 1"
        )
        result = con.uql('SELECT a, b FROM twins AS p WHERE "the notes {p.one} and {p.two} have the same owner"')
        assert result.fetchall() == [(0, 99)] and model.pairs == 0 and model.rows == 25
        assert not result.exact and any("in its own words" in note for note in result.notes)
        apart = con.uql('SELECT a, b FROM twins AS p WHERE "{p.one} and {p.two} have a different owner"')
        assert len(apart.fetchall()) == 45


class Topics(Small):
    """Names topics that no text holds, others for other rows, and is wrong about every fifth row."""

    WORDS = ("the match was won by the home team after a late goal", "shares fell as the bank cut its profit forecast")
    taxonomies = 0
    NAMES = (("Football", "Markets"), ("Sports results", "Company news"))

    def _one(self, question: Any, row: Any) -> Answer:
        if isinstance(question, Write) and question.task == "attribute":  # one for each text, as small models do
            self.proposals += 1
            listed = [f"{self.proposals}{n} things" for n in range(len(question.shown))]
            return Answer({"attribute": "topic", "values": listed, "rule": "same", "pairs": []})
        if isinstance(question, Write) and question.task == "taxonomy":
            self.taxonomies += 1
            return Answer(list(self.NAMES[self.taxonomies % 2]))
        if isinstance(question, Write):
            return Answer([False] * len(question.parameters))
        if isinstance(question, Choice):
            self.rows += 1
            text = row.cells[0].value
            kind = int("shares" in text) ^ (int(text.split()[1].rstrip(":")) % 5 == 0)
            fits = [n for n, label in enumerate(question.labels) if self._kind(label) == kind]
            sure = [0.7 if n == fits[0] else 0.2 if n in fits else 0.05 for n in range(len(question.labels))]
            shares = [s / sum(sure) for s in sure] + [0.0]
            return Answer(question.labels[shares.index(max(shares))], max(shares), tuple(shares))
        return super()._one(question, row)

    def value(self, text: str) -> str:
        return text.split()[1]

    def _kind(self, label: str) -> int:
        return int(label in ("Markets", "Company news"))


def test_values_named_in_other_words_each_time_are_those_of_both_and_near_rows_make_the_answers_steadier() -> None:
    model = Topics()
    with connected(model) as con:
        con.sql(
            "CREATE TABLE news AS SELECT i AS id, 'Item ' || i || ': ' || [$a, $b][1 + i % 2] AS text FROM range(24) r(i)",
            params={"a": Topics.WORDS[0], "b": Topics.WORDS[1]},
        )
        con.sql(
            "CREATE TABLE two_each AS SELECT a.id AS a, b.id AS b, a.text AS one, b.text AS two FROM news a JOIN news b ON a.id < b.id"
        )
        result = con.uql('SELECT a, b FROM two_each AS p WHERE "the items {p.one} and {p.two} have the same topic"')
        found = {tuple(row) for row in result.fetchall()}
        right = sum(((a, b) in found) == ((a + b) % 2 == 0) for a in range(24) for b in range(a + 1, 24))
        assert right >= 270, "one row in five is read wrongly, of 276 pairs 95 by that; its neighbours set it right"
        assert model.pairs == 0 and model.rows == 24 and any("near in meaning" in note for note in result.notes)


def test_other_conditions_are_asked_of_the_pairs() -> None:
    model = Small()
    with connected(model) as con:
        con.uql('SELECT a, b FROM pairs AS p WHERE "{p.one} and {p.two} were written by one person"').fetchall()
        assert model.pairs == 45 and model.rows == 0


MOOD = '"the notes {p.one} and {p.two} have the same mood"'


def test_an_exact_query_asks_all_rows_and_does_not_call_its_answer_exact() -> None:
    model = Small()
    with connected(model) as con:
        result = con.uql(f"SELECT a, b FROM pairs AS p WHERE {MOOD} WITH (exact)")
        assert len(result.fetchall()) == 22 and model.pairs == 0 and model.rows == 24 and not result.exact


@pytest.mark.parametrize("budget", ["all", 128])
def test_a_count_of_pairs_is_told_from_the_rows_with_an_interval(budget: Any) -> None:
    model = Small()
    with connected(model, budget=budget) as con:
        con.sql(
            "CREATE TABLE every AS SELECT a.id AS a, b.id AS b, a.text AS one, b.text AS two FROM notes a JOIN notes b ON a.id < b.id"
        )
        result = con.uql(f"SELECT COUNT(*) AS n FROM every AS p WHERE {MOOD}")
        assert result.fetchall() == [(132,)] and model.pairs == 0 and model.rows == 24
        estimate = result.estimates["n"]
        assert not result.exact and not estimate.exact and estimate.method == "attribute"
        assert 0 < estimate.low < 132 <= estimate.high < 276 and estimate.calls == 24


def test_a_count_by_group_and_a_mean_of_pairs_say_what_is_not_known() -> None:
    model = Small()
    with connected(model) as con:
        result = con.uql(
            f"SELECT a % 2 AS odd, COUNT(*) AS n, AVG(b) AS m FROM pairs AS p WHERE {MOOD} GROUP BY a % 2 ORDER BY odd"
        )
        assert [row[:2] for row in result.fetchall()] == [(0, 11), (1, 11)] and model.pairs == 0
        assert all(not e.exact and 0 <= e.low < e.value for e in result.estimates["n"])
        assert all(e.low == float("-inf") and e.high == float("inf") for e in result.estimates["m"])


def test_a_count_over_more_rows_than_the_budget_samples_pairs_and_asks_their_rows() -> None:
    model = Small()
    with connected(model, rows=200, budget=60) as con:
        result = con.uql(f"SELECT COUNT(*) AS n FROM pairs AS p WHERE {MOOD}")
        estimate = result.estimates["n"]
        result.fetchall()
        assert (
            model.pairs == 0 and result.cost.calls <= 60 and 0 <= estimate.low < estimate.value < estimate.high <= 397
        )
        assert estimate.low <= 198 <= estimate.high


def test_limit_asks_only_the_rows_of_the_pairs_that_it_comes_to() -> None:
    model = Small()
    with connected(model, rows=200) as con:
        result = con.uql(f"SELECT a, b FROM pairs AS p WHERE {MOOD} LIMIT 3")
        rows = result.fetchall()
        assert len(rows) == 3 and all(b == a + 2 for a, b in rows)
        assert model.pairs == 0 and model.rows < 60 and not result.exact


def test_limit_over_a_join_and_an_order_is_an_exact_prefix_of_what_the_rows_say() -> None:
    model = Small()
    with connected(model, rows=40) as con:
        result = con.uql(f"SELECT a, b FROM pairs AS p WHERE {MOOD} ORDER BY a LIMIT 4")
        assert result.fetchall() == [(i, i + 2) for i in range(4)] and model.pairs == 0 and model.rows < 40


@pytest.mark.parametrize(("clause", "expected"), [("", 2), ("NOT ", 0)])
def test_semi_and_anti_joins_ask_the_rows_too(clause: str, expected: int) -> None:
    model = Small()
    with connected(model, rows=12) as con:
        con.sql("CREATE TABLE own AS SELECT * FROM notes WHERE id < 2")
        result = con.uql(
            f'SELECT o.id FROM own o WHERE {clause}EXISTS (SELECT 1 FROM notes n WHERE n.id > 5 AND "{{o.text}} and {{n.text}} have the same mood")'
        )
        assert len(result.fetchall()) == expected and model.pairs == 0 and model.rows == 8 and not result.exact


def test_a_condition_beside_the_comparison_keeps_its_own_answers() -> None:
    model = Small()
    with connected(model) as con:
        result = con.uql(
            f'SELECT a, b FROM pairs AS p WHERE {MOOD} AND NOT "{{p.one}} and {{p.two}} were written by one person"'
        )
        assert len(result.fetchall()) == 22 and model.rows == 24 and 22 <= model.pairs <= 45


def test_a_null_text_makes_no_pair() -> None:
    model = Small()
    with connected(model) as con:
        con.sql("INSERT INTO pairs VALUES (90, 91, NULL, 'Note of a happy day of person90')")
        result = con.uql(f"SELECT a, b FROM pairs AS p WHERE {MOOD} OR a = 90")
        assert (90, 91) in result.fetchall()
        assert (90, 91) not in con.uql(f"SELECT a, b FROM pairs AS p WHERE NOT {MOOD}").fetchall()


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
    found = attribute_comparison(condition)
    assert found is not None and (found.attribute, found.rule) == (attribute, rule)


@pytest.mark.parametrize("condition", [
    "the two reviews disagree", "they are the same", "they have the same tone and length", "one is angry, and both have the same topic",
    "the writers are in the same country and the same mood", "{a.text} and {b.text} do not express opposite views",
    "{a.text} is the answer to {b.text}", "the mood of the one differs",
])  # fmt: skip
def test_comparisons_that_say_something_else_or_more(condition: str) -> None:
    assert attribute_comparison(condition) is None


def test_limit_by_groups_looks_at_some_rows_before_it_compares_any() -> None:
    model = Topics()
    with connected(model) as con:
        con.sql(
            "CREATE TABLE news AS SELECT i AS id, 'Item ' || i || ': ' || [$a, $b][1 + i % 2] AS text FROM range(120) r(i)",
            params={"a": Topics.WORDS[0], "b": Topics.WORDS[1]},
        )
        result = con.uql(
            'SELECT a.id, b.id FROM news a JOIN news b ON b.id > a.id AND "{a.text} and {b.text} have the same topic" LIMIT 5'
        )
        rows = result.fetchall()
        assert len(rows) == 5 and sum((a + b) % 2 == 0 for a, b in rows) >= 4
        assert model.pairs == 0 and 32 <= model.rows < 60 and not result.exact


class Large(Small):
    """Weighs two texts, and takes every pair for one of a kind."""

    name, capabilities = "large", Capabilities(probabilities=True)

    def _one(self, question: Any, row: Any) -> Answer:
        self.pairs += 1
        return Answer(True, 0.9)


def test_what_a_person_said_of_a_pair_goes_before_what_its_rows_tell(tmp_path):
    query = 'SELECT a, b FROM pairs WHERE "{one} and {two} have the same mood" ORDER BY a, b'
    ledger = str(tmp_path / "ledger.sqlite")
    with connected(Large(), 8) as con, con.settings(ledger=ledger):
        pairs = con.uql(query)
        unlike = pairs.fetchall().index((0, 1))
        pairs.correct(unlike, True)
        pairs.correct(pairs.fetchall().index((0, 2)), False)
    with connected(Small(), 8) as con:
        told = con.uql(query).fetchall()
        assert (0, 2) in told
        with con.settings(ledger=ledger):
            assert con.uql(query).fetchall() == sorted([(0, 1), *(pair for pair in told if pair != (0, 2))])
