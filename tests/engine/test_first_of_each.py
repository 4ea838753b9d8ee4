"""SELECT DISTINCT … WHERE "…": what is in the result already is not asked for again, and what was not found is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hash_model import HashModel
from row_model import RowModel

import uql
from uql.kernels.first_of_each import turns
from uql.llm.providers.base import Answer, CallError

ASK = 'SELECT DISTINCT place FROM notes WHERE "it is hot" USING (text)'


class Reader(RowModel):
    """Says whether a note has the question's last word, and keeps what it was shown; "?" is refused."""

    def __init__(self):
        self.seen = []

    def _one(self, question, row):
        text = row.cells[0].value
        self.seen.append(text)
        if "?" in text:
            raise CallError("refusal", "no")
        return Answer(question.text.split()[-1] in text, 1.0)


def connect(notes, **settings):
    """A table of notes, {place: its texts}; the model of the connection."""
    model = Reader()
    con = uql.connect(model=model, **({"budget": "all", "ledger": ":memory:"} | settings))
    con.sql("CREATE TABLE notes (place VARCHAR, n INTEGER, text VARCHAR)")
    for place, texts in notes.items():
        con.session.duck.executemany(
            "INSERT INTO notes VALUES (?, ?, ?)", [[place, n, f"{place} {n} {text}"] for n, text in enumerate(texts)]
        )
    return con, model


def hours(hot, of=40):
    return ["hot" if n in hot else "cold" for n in range(of)]


def test_a_place_is_asked_until_it_is_in_the_result():
    con, model = connect({"a": hours(range(40)), "b": hours([]), "c": hours(range(20, 30))})
    found = con.uql(f"{ASK} ORDER BY place")
    assert found.fetchall() == [("a",), ("c",)] and found.exact
    asked = {place: sum(text.startswith(place) for text in model.seen) for place in "abc"}
    assert asked["a"] == 1 and asked["b"] == 40 and asked["c"] <= 8


def test_a_budget_that_reaches_no_more_than_a_part_is_spent_by_the_search():
    con, model = connect({"a": hours([]), "b": hours([]), "c": hours([7])}, budget=24)
    found = con.uql(ASK)
    assert len(model.seen) <= 24 and not found.exact


def test_limit_stops_at_as_many_results():
    con, model = connect({p: hours(range(40)) for p in "abcdefgh"})
    found = con.uql(f"{ASK} LIMIT 3").fetchall()
    assert len(set(found)) == 3 and len(model.seen) <= 4
    assert con.uql(f"{ASK} ORDER BY place DESC LIMIT 2").fetchall() == [("h",), ("g",)]


def test_rows_without_an_answer_are_counted_where_they_matter():
    con, _ = connect({"a": ["?"] * 4 + ["hot"] * 4, "b": ["?"] * 4 + ["cold"] * 4})
    found = con.uql(ASK)
    assert found.fetchall() == [("a",)] and not found.exact
    assert any("4 of 16 rows gave no answer" in note for note in found.notes)


def test_answers_of_the_ledger_are_used_first(tmp_path):
    notes = {p: hours([3]) for p in "abc"}
    con, model = connect(notes, ledger=str(tmp_path / "ledger.sqlite"))
    con.uql('SELECT n FROM notes WHERE "it is hot" USING (text)').fetchall()
    model.seen.clear()
    assert len(con.uql(ASK).fetchall()) == 3 and not model.seen


def test_equal_rows_cost_one_call():
    con, model = connect({}, budget=2)
    con.sql("INSERT INTO notes SELECT place, n, 'cold' FROM range(50) r(n), (VALUES ('a'), ('b')) p(place)")
    found = con.uql(ASK)
    assert found.fetchall() == [] and found.exact and len(model.seen) == 1


@pytest.mark.parametrize(
    "query",
    [
        'SELECT DISTINCT place, n FROM notes WHERE "it is hot" USING (text)',
        'SELECT DISTINCT place, n % 2 AS odd FROM notes WHERE "it is hot" USING (text)',
        'SELECT DISTINCT place, COUNT(*) OVER () AS n FROM notes WHERE "it is hot" USING (text)',
        'SELECT DISTINCT place, "it is cold" USING (text)::BOOLEAN AS cold FROM notes WHERE "it is hot" USING (text)',
        'SELECT DISTINCT unnest([place, n::VARCHAR]) AS p FROM notes WHERE "it is hot" USING (text)',
    ],
)
def test_other_statements_have_the_rows_of_plain_sql(query):
    con, _ = connect({p: hours(range(i, 40, 4 + i)) for i, p in enumerate("abc")})
    plain = query.replace('"it is hot" USING (text)', "text LIKE '%hot'").replace(
        '"it is cold" USING (text)::BOOLEAN', "(text LIKE '%cold')"
    )
    assert sorted(con.uql(query).fetchall()) == sorted(con.sql(plain).fetchall())


def test_explain_says_it():
    con, _ = connect({"a": hours([])})
    assert "stops at the first row of each result" in str(con.uql(f"EXPLAIN {ASK}").fetchall())
    assert "first row of each" not in str(
        con.uql('EXPLAIN SELECT place FROM notes WHERE "it is hot" USING (text)').fetchall()
    )


def test_the_price_is_of_different_rows_where_a_budget_reaches_them_all():
    con, _ = connect({"a": hours(range(40)), "b": hours(range(40))})
    con.sql("INSERT INTO notes SELECT notes.* FROM notes, range(2)")  # 240 rows, 80 texts
    statement = f"{ASK} WITH (budget = 100)"
    price = con.uql(statement).quote().calls
    calls = con.uql(statement).cost.calls
    assert price.low <= calls <= price.high and price.expected < 80


def test_the_order_halves_what_lies_between():
    of = np.random.default_rng(1).integers(0, 3, 100)
    turn = turns(of)
    for group in range(3):
        mine = of == group
        assert sorted(turn[mine]) == list(range(mine.sum()))
        for asked in (1, 3, 7, 15):
            places = np.flatnonzero(turn[mine] < asked)
            assert np.diff(places, prepend=-1, append=mine.sum()).max() <= mine.sum() / (asked + 1) * 2 + 1


KINDS = 'SELECT DISTINCT "the kind" USING (text) AS kind FROM kinds'


def kinds(of, **settings):
    """A table whose i-th row is of kind i modulo `of`; the model that reads it."""
    model = HashModel(answers=lambda question, row: f"kind {int(row.cells[0].value) % of}")
    con = uql.connect(model=model, ledger=":memory:", **settings)
    con.execute("CREATE TABLE kinds AS SELECT i AS id, i::VARCHAR AS text FROM range(1000) r(i)")
    return con, model


@pytest.mark.parametrize(("of", "limit", "calls"), [(7, 5, 5), (7, 7, 7), (40, 7, 7), (3, 3, 3)])
def test_different_values_of_a_text_are_asked_until_limit_has_them(of, limit, calls):
    con, model = kinds(of)
    asked = con.uql(f"{KINDS} LIMIT {limit}")
    quote = asked.quote().calls
    assert len(set(asked.fetchall())) == limit and asked.exact and not asked.partial
    assert quote.low <= model.calls == calls <= quote.high
    assert con.uql(f"{KINDS} LIMIT {limit} OFFSET {of - limit}").fetchall() and model.calls <= 2 * of


def test_where_a_budget_ends_before_limit_has_its_different_values_it_is_said():
    con, model = kinds(3)
    calls = []
    for budget in (6, 11, 32):
        asked = con.uql(f"{KINDS} LIMIT 5 WITH (budget = {budget})")
        again = con.uql(f"{KINDS} LIMIT 5 WITH (budget = {budget})")
        assert sorted(asked.fetchall()) == [("kind 0",), ("kind 1",), ("kind 2",)]
        assert asked.partial and not asked.exact and "first 3 of 5: the budget ended" in asked.notes
        assert again.fetchall() == asked.fetchall() and again.cost.calls == 0
        calls.append(model.calls)
    assert calls == [6, 11, 32]
