"""A person's answer in the place of a model's: kept, used, seen, taken back."""

import numpy as np
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import DataError
from uql.llm.corrections import People
from uql.llm.ledger import Ledger
from uql.llm.providers.base import Answer
from uql.llm.questions import Cell, Choice, Extract, Predicate, Row

POSITIVE = '"the review is positive"'
QUERY = f'SELECT id, "the mood" AS mood FROM reviews WHERE {POSITIVE} ORDER BY id'


@pytest.fixture
def con(own_world):
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger="ledger.sqlite") as con:
        yield con


def test_a_correction_is_used_by_later_queries_without_a_call_in_any_session_and_of_any_model(con, own_world):
    r = con.uql(QUERY)
    assert r.fetchall() == [(1, "pos"), (3, "pos"), (5, "pos")]
    r.correct(0, False, "the review is positive")
    assert r.fetchall()[0] == (1, "pos") and "corrected" in r.notes[-1]  # these rows stay; the next query has others
    again = con.uql(QUERY)
    assert again.fetchall() == [(3, "pos"), (5, "pos")] and again.cost.calls == 0
    with uql.connect("shop.duckdb", model="oracle:forgetful.toml", ledger="ledger.sqlite") as other:
        assert 1 not in [row[0] for row in other.uql(f"SELECT id FROM reviews WHERE {POSITIVE}").fetchall()]
        assert other.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} AND id = 1").fetchall() == [(0,)]


def test_a_row_that_the_ledger_alone_answered_is_explained_and_corrected():
    with uql.connect(model=HashModel(), ledger=":memory:", progress=False) as con:
        con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS text FROM range(300) t(i)")
        con.uql('SELECT COUNT(*) AS n FROM notes WHERE "it is good" WITH (budget = 60, seed = 3)').fetchall()
        r = con.uql('SELECT id FROM notes WHERE "it is good" LIMIT 3')
        assert r.cost.calls == 0 and len(r) == 3
        (shown,) = r.why(0).evidence
        assert shown.value is True and shown.clause == "it is good" and shown.ledger_id
        r.correct(0, False)
        again = con.uql('SELECT id FROM notes WHERE "it is good" LIMIT 3')
        assert r[0] not in again.fetchall() and again.cost.calls == 0


def test_a_correction_changes_the_next_distinct_outputs():
    with uql.connect(model=HashModel(rates={"it is good": 0.05}), ledger=":memory:", progress=False) as con:
        con.execute("CREATE TABLE notes AS SELECT i AS id, i % 20 AS k, 'note ' || i AS text FROM range(200) t(i)")
        query = "SELECT DISTINCT k FROM notes WHERE \"it is good\" ORDER BY k WITH (budget = 'all')"
        first = con.uql(query).fetchall()
        rows = con.uql("SELECT k, id FROM notes WHERE \"it is good\" ORDER BY k, id WITH (budget = 'all')")
        (k,) = first[0]
        for i, (other, _) in enumerate(rows.fetchall()):
            if other == k:
                rows.correct(i, False)
        again = con.uql(query)
        assert again.fetchall() == first[1:] and again.cost.calls == 0


def test_a_row_that_a_query_left_out_is_corrected_through_its_value(con):
    r = con.uql(f"SELECT id, {POSITIVE}::BOOLEAN AS good FROM reviews ORDER BY id")
    r.correct(1, True, "good")
    assert con.uql(f"SELECT id FROM reviews WHERE {POSITIVE} ORDER BY id").fetchall() == [(1,), (2,), (3,), (5,)]


def test_a_value_a_label_and_null_are_corrected(con):
    r = con.uql(
        "SELECT id, \"the mood\" AS mood, \"the mood\"::ENUM('pos', 'neg', 'mixed') AS label FROM reviews ORDER BY id"
    )
    r.correct(0, "mixed", "label") if "label" in r.columns else None
    r = con.uql("SELECT id, \"the mood\"::ENUM('pos', 'neg', 'mixed') AS label FROM reviews ORDER BY id")
    r.correct(0, "mixed")
    r.correct(1, None)
    assert con.uql(
        "SELECT \"the mood\"::ENUM('pos', 'neg', 'mixed') AS label FROM reviews WHERE id < 3 ORDER BY id"
    ).fetchall() == [
        ("mixed",),
        (None,),
    ]
    with pytest.raises(DataError, match="one of the labels") as raised:
        r.correct(2, "sad")
    assert raised.value.code == "UQL524"


def test_a_correction_counts_as_a_known_row_of_an_estimate_and_as_an_answer_of_the_ledger(con):
    r = con.uql(f"SELECT id, {POSITIVE}::BOOLEAN AS good FROM reviews WHERE id = 2")
    r.correct(0, True)
    with con.settings(offline=False):
        result = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (budget = 'all')")
    assert result.fetchall() == [(4,)] and result.exact and result.cost.calls == 5 and result.cost.cached == 1
    counted = con.uql(f"SELECT count(*) AS n FROM uql_calls() WHERE run = '{result.run_id}'").fetchall()[0][0]
    assert counted == result.cost.calls + result.cost.cached


def test_why_and_the_table_of_corrections_show_it_beside_what_the_model_had_said(con):
    con.uql(QUERY).correct(0, "delighted", "mood")
    part = con.uql(QUERY).why(0).evidence[-1]
    assert part.by_person and part.value == "delighted" and part.raw == '{"v":"pos","p":1.0}'
    assert "answered by a person" in str(con.uql(QUERY).why(0))
    rows = con.uql("SELECT id, kind, text, answer, before, model, run, undone FROM uql_corrections()").fetchall()
    assert len(rows) == 1 and rows[0][1:5] == ("extract", "the mood", '{"v":"delighted"}', '{"v":"pos","p":1.0}')
    assert rows[0][5].startswith("oracle:") and rows[0][6] and rows[0][7] is None


def test_taking_back_restores_what_was_in_force_before_and_stays_listed(con):
    first = con.uql(QUERY).correct(0, "glad", "mood")
    second = con.uql(QUERY).correct(0, "delighted", "mood")
    assert (first.before, second.before) == ("pos", "glad")
    second.undo()
    assert con.uql(QUERY).fetchall()[0] == (1, "glad")
    con.undo(first.id)
    assert con.uql(QUERY).fetchall()[0] == (1, "pos")
    with pytest.raises(DataError, match="no correction"):
        con.undo(first.id)
    assert con.uql("SELECT count(undone) AS n FROM uql_corrections()").fetchall() == [(2,)]


def test_forgetting_a_table_forgets_its_corrections_and_nothing_of_a_row_is_in_the_file(con, own_world):
    con.uql(QUERY).correct(0, "glad", "mood")
    assert b"first minute" not in (own_world / "ledger.sqlite").read_bytes()
    with Ledger("ledger.sqlite") as ledger:
        ledger.prune(source="reviews")
    assert con.uql("SELECT count(*) AS n FROM uql_corrections()").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("query", "arguments", "error", "said"),
    [
        (QUERY, (0, True), DataError, "rests on 2 quoted texts"),
        (QUERY, (0, 7, "the review is positive"), DataError, "true or false was wanted"),
        (QUERY, (0, True, "colour"), DataError, "no quoted text is called colour"),
        (QUERY, (9, True), IndexError, "no row 9"),
        (QUERY, (-9, True), IndexError, "no row -9"),
        ("SELECT id FROM reviews", (0, True), DataError, "no answer of a model"),
        (f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}", (0, True), DataError, "stands for several rows"),
    ],
)
def test_what_cannot_be_corrected_is_said(con, query, arguments, error, said):
    with pytest.raises(error, match=said):
        con.uql(query).correct(*arguments)
    assert con.uql("SELECT count(*) AS n FROM uql_corrections()").fetchall() == [(0,)]


def test_a_ledger_in_memory_keeps_corrections_as_long_as_its_connection_lives(own_world):
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger=":memory:") as con:
        correction = con.uql(QUERY).correct(0, False, "the review is positive")
        assert [row[0] for row in con.uql(QUERY).fetchall()] == [3, 5]
        correction.undo()
        assert [row[0] for row in con.uql(QUERY).fetchall()] == [1, 3, 5]


def test_an_answer_belongs_to_the_question_and_the_row_with_the_values_in_its_own_holes():
    people = People(b"secret" * 4)
    row = Row((Cell("text", "warm"),), (("city", "Rome"), ("t.city", "Rome"), ("year", "1990")))
    asked = Predicate("it is about {city}")
    people.teach(asked, [row], [Answer(True)])
    other_holes = Row(row.cells, (("city", "Rome"), ("t.city", "Rome")))
    elsewhere = Row(row.cells, (("city", "Bonn"), ("t.city", "Bonn")))
    found = people.answers(asked, [row, other_holes, elsewhere])
    assert {i: answer.value for i, answer in found.items()} == {0: True, 1: True}
    assert people.answers(Extract("it is about {city}", "BOOLEAN"), [row])[0].value is True
    assert not people.knows(Extract("it is about {city}")) and not people.knows(Predicate("it is about {town}"))
    kinds = Choice("the kind", ("a", "b"))
    people.teach(kinds, [row], [Answer("b")])
    assert people.answers(Choice("the kind", ("b", "c")), [row]) and not people.answers(
        Choice("the kind", ("c",)), [row]
    )


def test_numbers_of_numpy_and_dates_are_read_as_the_type_wants(con):
    r = con.uql('SELECT id, "how good it is"::INTEGER AS good FROM reviews ORDER BY id')
    r.correct(0, np.int64(3))
    assert con.uql('SELECT "how good it is"::INTEGER AS good FROM reviews WHERE id = 1').fetchall() == [(3,)]
    with pytest.raises(DataError, match="UQL524"):
        r.correct(1, "very")
