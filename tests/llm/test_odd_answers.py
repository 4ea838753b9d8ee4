"""What a provider may give as an answer: a value of another kind is no answer, and shares that are none are not believed."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from decimal import Decimal

import duckdb
import pytest
from row_model import RowModel

import uql
from uql.base.errors import BackendError, ConfigError
from uql.llm.chunks import answer_pieces
from uql.llm.providers.base import Answer, CallError, Reply, Request, RowsReply
from uql.llm.questions import Predicate, Row
from uql.operators.replies import Value, YesNo, fitting

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


async def _raises(*_):
    raise TypeError("the weights are missing")


async def _gives_a_word(*_):
    return "yes"


async def _gives_a_value(request):
    return RowsReply(((True,),) * 4) if hasattr(request, "rows") else Reply((True,))


async def _gives_no_tokens(request):
    answers = (Answer(True),)
    return RowsReply((answers,) * 4, None) if hasattr(request, "rows") else Reply(answers, None)


BROKEN = [_raises, _gives_a_word, _gives_a_value, _gives_no_tokens, lambda request: Reply((Answer(True),))]


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("broken", BROKEN)
def test_a_model_that_fails_in_its_own_code_is_named(broken, together):
    con, model = connected(Answer(True))
    model.answer = model.answer_rows = broken
    with pytest.raises(BackendError, match="the model row-model failed in `answer") as raised:
        con.uql(f'SELECT id FROM notes WHERE "it is good" WITH (rows_per_request = {together})').fetchall()
    assert "a Reply" in raised.value.help


@pytest.mark.parametrize("part", ["version", "tokens_at_most"])
def test_so_is_one_that_fails_before_it_is_asked(part):
    con, model = connected(Answer(True))
    setattr(model, part, lambda _: 1 / 0)
    with pytest.raises(BackendError, match=f"failed in `{part}`: ZeroDivisionError"):
        con.uql('SELECT id FROM notes WHERE "it is good" WITH (max_tokens = 100000)').fetchall()


def test_rows_that_were_answered_before_it_failed_stay_paid():
    class Failing(Odd):
        def _one(self, question, row):
            if self.calls == 2:
                raise KeyError("body")
            return super()._one(question, row)

    con, _ = connected(Answer(True))
    failing = Failing(Answer(True))
    con.session.model = failing
    query = 'SELECT id FROM notes WHERE "it is good" WITH (concurrency = 1)'
    with pytest.raises(BackendError, match="KeyError"):
        con.uql(query).fetchall()
    failing._one = lambda question, row: Odd._one(failing, question, row)
    assert len(con.uql(query).fetchall()) == 4 and failing.calls == 4


@pytest.mark.parametrize("model", [5, lambda row: True, RowModel], ids=["number", "function", "class"])
def test_what_is_no_model_is_refused_where_it_is_given(model):
    with pytest.raises(ConfigError, match="is no model") as raised:
        uql.attach(duckdb.connect(), model=model)
    assert raised.value.code == "UQL402"
    with pytest.raises(ConfigError, match="is no model"):
        uql.attach(duckdb.connect(), models=["small", model])


def test_what_an_answer_cost_stays_with_it():
    paid = (50, 1, 0.01)
    assert fitting(Answer(True, 7.0, paid=paid), YesNo()).paid == paid
    assert fitting(Answer("Ada \ud800", paid=paid), Value()).paid == paid


MISFITS = [
    ("STRUCT(a INTEGER, b VARCHAR)", [1, "x"]),
    ("STRUCT(a INTEGER, b VARCHAR)", 7),
    ("STRUCT(a INTEGER, b VARCHAR)", {"c": 3}),
    ("STRUCT(a INTEGER, b VARCHAR)", {"a": "much", "b": "x"}),
    ("STRUCT(a STRUCT(b INTEGER))", {"a": [1]}),
    ("STRUCT(a INTEGER)[]", [{"a": 1}, [2]]),
    ("INTEGER[]", [1, "x"]),
    ("INTEGER[]", {1, 2}),
    ("INTEGER[3]", [1, 2]),
    ("MAP(VARCHAR, INTEGER)", {"a": 1, "b": "x"}),
]


@pytest.mark.parametrize(("kind", "value"), MISFITS, ids=repr)
def test_a_value_that_the_type_holds_in_part_is_unreadable(kind, value):
    con, _ = connected(Answer(value))
    result = con.uql(f'SELECT "the parts"::{kind} AS parts FROM notes')
    assert result.fetchall() == [(None,)] * 4
    assert not result.exact and len(result.errors) == 4


FITTING = [
    ("STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "c": 3}, {"a": 1, "b": None}),
    ("BIGINT", 2**53 + 1, 2**53 + 1),
    ("HUGEINT", 2**100 + 1, 2**100 + 1),
    ("UBIGINT", 2**64 - 1, 2**64 - 1),
    ("VARCHAR", 7, "7"),
    ("INTERVAL", timedelta(days=400, seconds=3.5), timedelta(days=400, seconds=3.5)),
    ("INTERVAL", timedelta(hours=-3), timedelta(hours=-3)),
    ("DATE[]", [date(2024, 2, 29)], [date(2024, 2, 29)]),
    ("MAP(VARCHAR, INTEGER)", {"a": 1}, {"a": 1}),
    ("MAP(VARCHAR, INTEGER)", '{"a": 1}', {"a": 1}),
    ("MAP(INTEGER, VARCHAR[])", {"1": ["x"]}, {1: ["x"]}),
    ("VARCHAR[2]", "[plum, pear]", ("plum", "pear")),
    ("JSON", {"a": [1]}, '{"a": [1]}'),
    ("BLOB", b"a\x00\\", b"a\x00\\"),
    ("STRUCT(n DECIMAL(4, 2), t INTERVAL)", {"n": Decimal("1.50"), "t": timedelta(2)}, {"n": Decimal("1.50"), "t": timedelta(2)}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "read"), FITTING, ids=repr)
def test_a_value_comes_back_as_it_was_given(kind, value, read):
    con, _ = connected(Answer(value))
    result = con.uql(f'SELECT "the value"::{kind} AS v FROM notes')
    assert result.fetchall() == [(read,)] * 4 and result.exact
