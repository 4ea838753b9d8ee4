"""Cascades: a small model answers the conditions that it is sure of, the large one the others, as often right as was asked for."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import pytest
from row_model import RowModel

import uql
from uql.kernels.cascade import least_confidence
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import Extract, Predicate

ROWS = 1200
QUERY = 'SELECT id FROM notes WHERE "it is good" ORDER BY id'


def drawn(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / 2**64


class Large(RowModel):
    name, is_local = "large", True
    limits, price, capabilities = Limits(concurrency=64), Price(10, 40), Capabilities(probabilities=True)

    def __init__(self):
        self.calls = 0

    def truth(self, row):
        return drawn(row.cells[0].value) < 0.4

    def _one(self, question, row):
        self.calls += 1
        if isinstance(question, Extract):
            return Answer("a value")
        assert isinstance(question, Predicate)
        yes = self.truth(row)
        return Answer(yes, float(yes))


class Small(Large):
    """Sure of four rows in five, and then right; a guess on the others."""

    name, price = "small", Price(1, 4)
    unsure, sure = 0.2, 0.97

    def _one(self, question, row):
        self.calls += 1
        text = row.cells[0].value
        if drawn("unsure " + text) < self.unsure:
            yes = drawn("guess " + text) < 0.5
            return Answer(yes, 0.6 if yes else 0.4)
        yes = self.truth(row)
        return Answer(yes, self.sure if yes else 1 - self.sure)


class Wrong(Small):
    """Sure and wrong on every fifth row."""

    def truth(self, row):
        return super().truth(row) != (drawn("wrong " + row.cells[0].value) < 0.2)


def connected(small, large, **settings):
    con = uql.connect(models=[small, large], ledger=":memory:", budget="all", **settings)
    con.sql(
        f"SELECT i AS id, 'Note ' || i || ', about something or other, at length' AS text FROM range({ROWS}) r(i)"
    ).create("notes")
    return con


def test_the_large_model_is_asked_of_the_unsure_rows_only() -> None:
    small, large = Small(), Large()
    with connected(small, large) as con:
        result = con.uql(QUERY)
        found = {row[0] for row in result.fetchall()}
        truth = {i for i in range(ROWS) if drawn(f"Note {i}, about something or other, at length") < 0.4}
        assert found == truth
        assert small.calls == ROWS
        assert 128 < large.calls < 128 + 0.3 * ROWS
        assert result.cost.calls == small.calls + large.calls
        (note,) = [n for n in result.notes if "small answered" in n]
        assert "large" in note
        assert "0 of 128 rows asked of both differed" in note


class Mistaken(Small):
    """Wrong about one row in a hundred, and as sure of it as of the others."""

    def truth(self, row):
        return super().truth(row) != (drawn("mistaken " + row.cells[0].value) < 0.01)


def test_what_a_small_model_answered_is_not_exact_and_a_count_has_the_interval_that_accuracy_leaves() -> None:
    with connected(Mistaken(), Large()) as con:
        rows = con.uql(QUERY)
        truth = sum(drawn(f"Note {i}, about something or other, at length") < 0.4 for i in range(ROWS))
        assert len(rows.fetchall()) != truth and not rows.exact
        counted = con.uql('SELECT COUNT(*) AS every, COUNT(*) FILTER ("it is good") AS n FROM notes')
        assert counted.estimates["every"].exact and not counted.estimates["n"].exact
        counted = con.uql('SELECT COUNT(*) AS n, SUM(id) AS s FROM notes WHERE "it is good"')
        n, total = counted.estimates["n"], counted.estimates["s"]
        assert n.value != truth and n.low <= truth <= n.high < n.value + 0.06 * ROWS
        assert not total.exact and total.high == np.inf
        assert con.uql('SELECT COUNT(*) AS n FROM notes WHERE "it is good" WITH (accuracy = 0.999)').exact


def test_a_semantic_table_that_a_small_model_answered_says_so_until_the_large_one_has_answered_its_rows() -> None:
    with connected(Mistaken(), Large()) as con:
        made = con.uql('CREATE SEMANTIC TABLE good AS SELECT id FROM notes WHERE "it is good" KEY (id)')
        assert not made.exact
        for statement in ("SELECT count(*) AS n FROM good", "SELECT id FROM good", "CREATE TABLE copied AS FROM good"):
            assert not con.uql(statement).exact, statement
        assert con.uql("REFRESH good").cost.calls == 0
        read = con.uql("SELECT count(*) AS n FROM good")
        assert not read.exact and not read.estimates["n"].exact and read.based_on
        con.session.duck.execute("DELETE FROM notes WHERE id >= 100")
        con.session.duck.execute("UPDATE notes SET text = 'A new note ' || id || ', about something or other'")
        assert con.uql("REFRESH good").cost.calls == 100
        assert con.uql("SELECT count(*) AS n FROM good").exact


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        'SELECT id FROM notes n WHERE EXISTS (FROM notes m WHERE m.id = n.id AND "it is good {m.text}")',
        'SELECT id FROM notes n WHERE id IN (SELECT m.id FROM notes m WHERE m.id = n.id AND "it is good {m.text}")',
        'SELECT n.id FROM notes n LEFT JOIN notes m ON m.id = n.id AND "it is good {m.text}"',
        'SELECT n.id FROM notes n ANTI JOIN notes m ON m.id = n.id AND "it is good {m.text}"',
        'SELECT count(*) AS n FROM notes n SEMI JOIN notes m ON m.id = n.id AND "it is good {m.text}"',
    ],
)
def test_pairs_that_a_small_model_answered_are_not_exact(statement: str) -> None:
    with connected(Mistaken(), Large()) as con:
        result = con.uql(statement)
        result.fetchall()
        assert not result.exact and not any(e.exact for e in result.estimates.values())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        'SELECT id FROM notes WHERE "it is good" UNION ALL SELECT id FROM notes WHERE "it is long"',
        'SELECT id FROM notes WHERE id IN (SELECT id FROM notes WHERE "it is good")',
        'SELECT id, CASE WHEN "it is good" THEN 1 END AS c FROM notes',
        'SELECT count(*) AS n FROM (SELECT id FROM notes WHERE "it is good")',
        'SELECT id FROM notes n WHERE EXISTS (FROM notes m WHERE m.id = n.id AND "it is good {m.text}")',
        'SELECT id FROM notes WHERE "it is good" AND "it is long"',
    ],
)
def test_both_models_are_priced_wherever_a_condition_stands(statement: str) -> None:
    small, large = Small(), Large()
    with connected(small, large) as con:
        result = con.uql(statement)
        calls = result.quote().calls
        assert calls.low <= result.cost.calls <= calls.high <= 3 * calls.low
        assert small.calls > large.calls > 128


def test_rows_without_a_text_are_answered_by_neither_model() -> None:
    with connected(Small(), Large()) as con:
        con.sql("UPDATE notes SET text = NULL WHERE id % 2 = 0")
        (note,) = [n for n in con.uql(QUERY).notes if "small answered" in n]
        said = [int(word.replace(",", "")) for word in note.split() if word.replace(",", "").isdigit()]
        assert said[0] + said[1] == ROWS / 2


def test_a_small_model_that_is_sure_and_wrong_is_not_believed() -> None:
    small, large = Wrong(), Large()
    with connected(small, large) as con:
        result = con.uql(QUERY)
        found = {row[0] for row in result.fetchall()}
        assert found == {i for i in range(ROWS) if drawn(f"Note {i}, about something or other, at length") < 0.4}
        assert small.calls == 128, "it is asked of the labelled rows only"
        assert any("large answered all" in note for note in result.notes)


def test_a_lower_accuracy_is_reached_with_fewer_calls() -> None:
    class Often(Small):
        unsure = 0.0

        def truth(self, row):
            return super().truth(row) != (drawn("wrong " + row.cells[0].value) < 0.03)

    calls = []
    for accuracy in (0.99, 0.85):
        large = Large()
        with connected(Often(), large, accuracy=accuracy) as con:
            found = {row[0] for row in con.uql(QUERY).fetchall()}
            truth = {i for i in range(ROWS) if drawn(f"Note {i}, about something or other, at length") < 0.4}
            assert len(found ^ truth) <= (1 - accuracy) * ROWS
            calls.append(large.calls)
    assert calls[0] == ROWS
    assert calls[1] == 128


def test_few_rows_and_other_questions_go_to_the_large_model() -> None:
    small, large = Small(), Large()
    with connected(small, large) as con:
        con.uql('SELECT "the name" AS n FROM notes WHERE id < 20 AND "it is good"').fetchall()
        assert small.calls == 0
        assert large.calls > 20


def test_explain_prices_the_cascade_beside_the_large_model_alone() -> None:
    with connected(Small(), Large()) as con:
        shown = con.uql(QUERY).explain()
        assert "small first, large where it is not sure" in shown
        assert "large alone" in shown
        off = con.uql(f"{QUERY} WITH (disabled_rules = 'cascade')").explain()
        assert "where it is not sure" not in off


@pytest.mark.parametrize("share_wrong", [0.0, 0.03, 0.06, 0.2])
def test_the_accuracy_asked_for_holds_in_all_but_a_twentieth_of_runs(share_wrong: float) -> None:
    rng = np.random.default_rng(5)
    runs, missed = 1000, 0
    for _ in range(runs):
        sure = rng.uniform(0.5, 1.0, 128)
        wrong_at = share_wrong * 2 * (1 - sure) + share_wrong
        least, _ = least_confidence(sure, rng.random(128) < wrong_at, 0.95, 0.95)
        if least <= 1:
            shares = np.linspace(least, 1, 200)
            answered_wrong = np.mean(share_wrong * 2 * (1 - shares) + share_wrong) * (1 - least) / 0.5
            missed += answered_wrong > 0.05
    assert missed <= runs * 0.05 + 2.33 * np.sqrt(runs * 0.05 * 0.95)


def test_why_says_which_model_answered_a_row() -> None:
    with connected(Small(), Large()) as con:
        result = con.uql(QUERY)
        ids = [row[0] for row in result.fetchall()]
        by = [result.why(i).evidence[0] for i in range(len(ids))]
        sure = [drawn(f"unsure Note {i}, about something or other, at length") >= Small.unsure for i in ids]
        assert {e.model for e in by} == {"small", "large"} and all(e.ledger_id for e in by)
        assert all(e.model == "large" for e, s in zip(by, sure, strict=True) if not s)
        assert sum(e.model == "small" for e in by) > 0.6 * len(by), (
            "but for the rows that both were asked to learn from"
        )
        models = dict(con.uql("SELECT model, COUNT(*) FROM uql_calls() WHERE kind = 'call' GROUP BY model").fetchall())
        assert set(models) <= {"small", "large"}


def test_a_higher_target_is_shown_by_more_labelled_rows() -> None:
    small, large = Small(), Large()
    with connected(small, large, accuracy=0.985) as con:
        con.sql(
            "CREATE OR REPLACE TABLE notes AS SELECT i AS id, "
            "'Note ' || i || ', about something or other, at length' AS text FROM range(3000) r(i)"
        ).fetchall()
        result = con.uql(QUERY)
        result.fetchall()
        assert large.calls < 0.5 * 3000, "128 rows could not have shown 98.5 %"
        assert any("small answered" in note for note in result.notes)


def test_where_limit_stops_early_the_large_model_is_asked_alone() -> None:
    small, large = Small(), Large()
    with connected(small, large) as con:
        found = con.uql(f"{QUERY} LIMIT 5")
        assert len(found.fetchall()) == 5
        assert small.calls == 0 and large.calls < 64
        assert "where it is not sure" not in found.explain()


def test_where_limit_stops_late_the_small_model_helps() -> None:
    small, large = Small(), Large()
    with connected(small, large) as con:
        assert len(con.uql(f"{QUERY} LIMIT 450").fetchall()) == 450
        assert small.calls > large.calls
