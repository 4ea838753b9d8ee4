"""What a provider may give as an answer: a value of another kind is no answer, and shares that are none are not believed."""

from __future__ import annotations

import asyncio

import duckdb
import pytest
from row_model import RowModel

import uql
from uql.llm.chunks import answer_pieces
from uql.llm.providers.base import Answer, CallError, Reply, Request
from uql.llm.questions import Predicate, Row

ODD = ["no", "I cannot help with that.", "", 1, 0.5, [True], {"a": 1}, b"no", float("nan")]


class Odd(RowModel):
    """Gives one answer to everything, and counts its calls."""

    def __init__(self, answer):
        self._answer, self.calls = answer, 0

    def _one(self, question, row):
        self.calls += 1
        return self._answer


def connected(answer):
    duck = duckdb.connect()
    duck.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i || ' has a few words' AS body FROM range(4) t(i)")
    model = Odd(answer)
    return uql.attach(duck, model=model, ledger=":memory:"), model


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_no_other_value_is_a_yes(value):
    con, _ = connected(Answer(value))
    result = con.uql('SELECT id FROM notes WHERE "it is good"')
    assert result.fetchall() == []
    assert not result.exact and len(result.errors) == 4


@pytest.mark.parametrize("value", ["maybe", 3, ["plum"], b"plum"], ids=repr)
def test_a_label_that_was_not_asked_for_is_counted(value):
    con, _ = connected(Answer(value))
    result = con.uql("SELECT id, \"the fruit\"::ENUM('plum', 'pear') AS fruit FROM notes")
    assert [fruit for _, fruit in result.fetchall()] == [None] * 4
    assert not result.exact and len(result.errors) == 4


def test_a_label_that_was_not_asked_for_is_none_of_those_that_were():
    con, model = connected(Answer("plum"))
    result = con.uql("SELECT count(*) FROM notes WHERE \"the fruit\" IN ('pear')")
    assert result.fetchall() == [(0,)]
    assert result.exact and model.calls == 4


@pytest.mark.parametrize("value", ["much", [3], -1, 10.5, float("nan")], ids=repr)
def test_a_level_is_a_number_on_the_scale(value):
    con, _ = connected(Answer(value))
    result = con.uql('SELECT id FROM notes ORDER BY "how good it is" LIMIT 2')
    assert not result.exact and len(result.errors) == 4


@pytest.mark.parametrize("share", [-3.0, 7.0, float("inf"), "0.5", None], ids=repr)
def test_what_is_no_share_is_not_kept_and_the_answer_is_not_paid_again(share):
    con, model = connected(Answer(True, share, (share, 0.5)))
    for text in ('SELECT count(*) FROM notes WHERE "it is good"', 'SELECT id FROM notes WHERE "it is good"'):
        result = con.uql(text)
        assert len(result.fetchall()) in (1, 4) and result.exact
    assert model.calls == 4


def test_half_a_surrogate_pair_is_kept_as_other_replies_keep_it():
    con, _ = connected(Answer("Ada \ud800"))
    assert con.uql('SELECT DISTINCT "the name" FROM notes').fetchall() == [("Ada \ufffd",)]


def test_pieces_that_were_paid_for_are_counted_where_a_later_one_fails():
    class Failing(RowModel):
        async def answer(self, request):
            if request.row.holes:
                raise CallError("truncated", "cut", input_tokens=5, output_tokens=2)
            return Reply((Answer(False),), 100, 3)

    parts = [Request((Predicate("it is good"),), row) for row in (Row(), Row(), Row((), (("body", "x"),)))]
    with pytest.raises(CallError) as raised:
        asyncio.run(answer_pieces(Failing(), parts))
    assert (raised.value.input_tokens, raised.value.output_tokens) == (205, 8)
