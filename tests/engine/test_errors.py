"""Rows that a model gives no answer for: NULL and listed, dropped, raised, or caught by TRY; never read as yes or no."""

from __future__ import annotations

import pytest
from row_model import RowModel

import uql
from uql.base.errors import ModelReplyError
from uql.kernels.relation import Relation
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Problem
from uql.llm.questions import Extract, Predicate, Write

N = 30


class Refuser(RowModel):
    """Answers all but every tenth row: the number in the text, and whether it is even."""

    name, is_local = "refuser", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def _one(self, question, row):
        if isinstance(question, Write):
            return Answer("a summary")
        number = int(row.cells[0].value.split()[1])
        if number % 10 == 3:
            return Answer(problem=Problem("refusal", "the model would not say", "I cannot"))
        return Answer(number % 2 == 0) if isinstance(question, Predicate) else Answer(number)


@pytest.fixture
def notes():
    con = uql.connect(model=Refuser(), ledger=":memory:", budget="all")
    con.sql(f"SELECT i AS id, 'number ' || i || ' in a text that is long enough' AS text FROM range({N}) t(i)").create(
        "notes"
    )
    con.sql("INSERT INTO notes VALUES (99, NULL)")
    return con


REFUSED = [i for i in range(N) if i % 10 == 3]


def test_a_row_without_an_answer_is_null_and_listed_with_its_reason(notes):
    result = notes.uql('SELECT id, "the number"::INTEGER AS n FROM notes ORDER BY id')
    values = dict(result.fetchall())
    assert [i for i in range(N) if values[i] is None] == REFUSED
    assert values[99] is None  # a NULL text is no error
    assert sorted(e.row for e in result.errors) == REFUSED
    assert {(e.clause, e.kind, e.raw) for e in result.errors} == {("the number", "refusal", "I cannot")}


def test_drop_leaves_out_the_rows_without_an_answer(notes):
    result = notes.uql("SELECT id, \"the number\"::INTEGER AS n FROM notes ORDER BY id WITH (on_error = 'drop')")
    assert [i for i, _ in result.fetchall()] == [i for i in range(N) if i not in REFUSED] + [99]
    assert any("dropped" in note for note in result.notes)


def test_raise_ends_the_query_with_the_first_row_without_an_answer(notes):
    with pytest.raises(ModelReplyError):
        notes.uql("SELECT id, \"the number\"::INTEGER AS n FROM notes WITH (on_error = 'raise')").fetchall()


def test_a_condition_without_an_answer_is_neither_yes_nor_no(notes):
    even = [(i,) for i in range(0, N, 2)]
    result = notes.uql('SELECT id FROM notes WHERE "the number is even" ORDER BY id')
    assert result.fetchall() == even
    assert not result.exact
    negated = notes.uql('SELECT id FROM notes WHERE NOT "the number is even" ORDER BY id')
    assert negated.fetchall() == [(i,) for i in range(1, N, 2) if i not in REFUSED]


def test_an_unknown_row_is_decided_where_the_rest_of_the_condition_decides(notes):
    either = notes.uql('SELECT id FROM notes WHERE "the number is even" OR id < 5 ORDER BY id')
    assert [i for (i,) in either.fetchall()] == sorted({*range(0, N, 2), *range(5)})
    both = notes.uql('SELECT id FROM notes WHERE "the number is even" AND id < 3 ORDER BY id')
    assert both.fetchall() == [(0,), (2,)]
    assert both.exact


def test_unknown_rows_widen_a_count(notes):
    found = notes.uql('SELECT COUNT(*) AS n FROM notes WHERE "the number is even"').estimates["n"]
    assert (found.low, found.high, found.unknown) == (N // 2, N // 2 + len(REFUSED), len(REFUSED))
    assert not found.exact


class Wordy(Refuser):
    """Answers words where the number ends in 5 or 7."""

    def _one(self, question, row):
        number = int(row.cells[0].value.split()[1])
        if number % 10 == 5:
            return Answer(problem=Problem("wrong_type", "'a few' is not a number", "a few"))
        return Answer("many") if number % 10 == 7 else super()._one(question, row)


def test_try_cast_gives_null_for_words_and_lists_only_other_failures():
    con = uql.connect(model=Wordy(), ledger=":memory:", budget="all")
    con.sql(f"SELECT i AS id, 'number ' || i || ' in a text' AS text FROM range({N}) t(i)").create("notes")
    lenient, strict = (
        con.uql(f'SELECT id, {cast}("the number" AS INTEGER) AS n FROM notes ORDER BY id')
        for cast in ("TRY_CAST", "CAST")
    )
    words = [i for i in range(N) if i % 10 in (5, 7)]
    assert lenient.fetchall() == [(i, None if i in words + REFUSED else i) for i in range(N)] == strict.fetchall()
    assert [error.row for error in lenient.errors] == REFUSED
    assert sorted(error.row for error in strict.errors) == sorted(words + REFUSED)
    raising = "SELECT TRY_CAST(\"the number\" AS INTEGER) FROM notes WHERE id % 10 <> 3 WITH (on_error = 'raise')"
    assert len(con.uql(raising).fetchall()) == N - len(REFUSED)


@pytest.mark.parametrize("on_error", ["null", "drop", "raise"])
def test_try_gives_the_value_or_the_error_whatever_on_error_says(notes, on_error):
    result = notes.uql(
        f"SELECT id, TRY \"the number\"::INTEGER AS t FROM notes ORDER BY id WITH (on_error = '{on_error}')"
    )
    for i, found in result.fetchall():
        if i == 99:
            assert found == {"value": None, "error": None}
        elif i in REFUSED:
            assert found == {"value": None, "error": "refusal: the model would not say"}
        else:
            assert found == {"value": i, "error": None}
    assert not result.errors


def test_a_summary_beside_aggregates_is_said_of_each_group(con, world):
    result = con.uql(
        'SELECT film, COUNT(*) AS n, "what the reviews say" AS said FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film'
    )
    truth = world.truth("SELECT film, COUNT(*) FROM r WHERE text IS NOT NULL GROUP BY film ORDER BY film")
    found = result.fetchall()
    assert [row[:2] for row in found] == truth
    assert all(f"{n} rows" in said for _, n, said in found)


class Writer(Refuser):
    """Tells what it was shown."""

    def __init__(self):
        self.stages = []

    def _one(self, question, row):
        if isinstance(question, Write):
            self.stages.append(dict(question.parameters)["stage"])
            cells = [(c.name, c.value) for r in question.shown for c in r.cells]
            return Answer(" | ".join(f"[{v}]" if name == "row" else v.strip() for name, v in cells))
        return super()._one(question, row)


def long_notes(model, n, order="i", **settings):
    con = uql.connect(model=model, ledger=":memory:", **settings)
    con.sql(
        f"SELECT 'number ' || i || repeat(' and on', 200) AS text, i % 2 AS part FROM range({n}) t(i) ORDER BY {order}"
    ).create("notes")
    return con


def test_a_summary_cites_rows_by_their_numbers(con, world):
    said = con.uql('SELECT COUNT(*) AS n, "what the reviews say" AS said FROM reviews WHERE id < 6').fetchall()[0][1]
    first = min((text, i) for i, text in world.truth("SELECT id, text FROM r WHERE id < 6"))
    assert said.endswith(f"[{first[1]}]")


def test_a_long_group_is_summarised_in_parts_that_are_reduced():
    model = Writer()
    said = long_notes(model, 30, budget="all").uql('SELECT COUNT(*) AS n, "the gist" AS s FROM notes').fetchall()[0][1]
    assert model.stages.count("summary") >= 5
    assert model.stages[-1] == "reduce"
    assert all(f"[{i}]" in said for i in range(30))


def test_a_group_too_long_for_the_budget_is_summarised_from_random_rows_with_a_note():
    model = Writer()
    result = long_notes(model, 60, budget=4).uql('SELECT part, COUNT(*) AS n, "the gist" AS s FROM notes GROUP BY part')
    assert [n for _, n, _ in result.fetchall()] == [30, 30]
    assert result.cost.calls <= 4
    assert not result.exact
    assert any("from random rows of their groups" in note for note in result.notes)
    with pytest.raises(uql.UQLError) as error:
        long_notes(Writer(), 60, budget=1).uql(
            'SELECT part, "the gist" AS s, COUNT(*) FROM notes GROUP BY part'
        ).fetchall()
    assert error.value.code == "UQL401"


def test_a_sample_leaves_calls_for_the_summaries_of_its_groups():
    model = Writer()
    result = long_notes(model, 400, budget=40).uql(
        'SELECT part, COUNT(*) AS n, "the gist" AS s FROM notes WHERE "it is even" GROUP BY part'
    )
    assert [row[2] is not None for row in result.fetchall()] == [True]
    assert model.stages and result.cost.calls <= 40


def test_the_rows_of_many_groups_are_read_at_once(monkeypatch):
    reads = []
    read = Relation._read
    monkeypatch.setattr(Relation, "_read", lambda self, rids, *more: reads.append(len(rids)) or read(self, rids, *more))
    con = long_notes(Writer(), 300, budget="all")
    assert len(con.uql('SELECT text, "the gist" AS s, COUNT(*) FROM notes GROUP BY text').fetchall()) == 300
    assert reads[0] == 300


def test_the_order_of_rows_means_nothing_to_a_summary():
    said = []
    for order in ("i", "-i"):
        text = long_notes(Writer(), 9, order, budget="all").uql('SELECT COUNT(*) AS n, "the gist" AS s FROM notes')
        said.append([part for part in text.fetchall()[0][1].split(" | ") if not part.startswith("[")])
    assert said[0] == said[1]


def test_having_asks_about_the_group(world):
    class Judge(Refuser):
        def _one(self, question, row):
            if isinstance(question, Write):
                return Answer(any("number 7 " in c.value for r in question.shown for c in r.cells))
            return super()._one(question, row)

    con = uql.connect(model=Judge(), ledger=":memory:", budget="all")
    con.sql(
        "SELECT i % 4 AS part, 'number ' || i || ' in a text that is long enough' AS text FROM range(20) t(i)"
    ).create("notes")
    found = con.uql('SELECT part, COUNT(*) AS n FROM notes GROUP BY part HAVING "the group holds a seven"')
    assert found.fetchall() == [(3, 5)]


def test_extract_is_asked_with_its_type(notes):
    assert Extract("x").type == "VARCHAR"
    assert notes.uql('SELECT SUM("the number"::INTEGER) AS s FROM notes WHERE id < 3').fetchall() == [(3,)]
