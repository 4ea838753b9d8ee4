"""The ledger's keys are fixed bytes: an answer that was paid for stays known when the code changes."""

from __future__ import annotations

from dataclasses import make_dataclass

import pytest
from row_model import RowModel
from wire_cases import cases

from uql.llm.ledger import keyed
from uql.llm.ledger_keys import encoded, question_key, row_key
from uql.llm.providers.base import Provider
from uql.llm.questions import Cell, Choice, Compare, Extract, Predicate, Row, Score, Summary, Write

MODEL: Provider = RowModel()
ROW = Row((Cell("text", "a text"), Cell("photo", b"\x89PNG", "t", "image/png")), (("city", "Rome"),))


def test_the_encoding_is_pythons_notation_of_what_is_asked() -> None:
    for case in cases():
        for question in case.questions:
            parts = ("row-model", "1", question.operator.key.name, question)
            told = (*parts, question.examples) if question.examples else parts
            said = repr(told).replace("Summary(", "Write(")
            assert question_key(MODEL, question) == said.encode("utf-8", "surrogatepass")


GOLDEN = {
    "9ae6f7dd400d5c24a74dce76bfb940ae5ecb0b92": Predicate("it is so"),
    "ae07561e4481db10586818ab788f729ff9db7e46": Choice("topic", ("a", 'b"'), ("of a",), none_of_these=False, many=True),
    "7ceb2f385cbf4b75397c9408b473044826eb7357": Score("how angry", 5),
    "509c7380ea0d7a083af3ee24b1c83615c1e53d67": Predicate("it is so", examples=(("x", "yes"),)),
    "5040c8e980702e5fd129d9649e255816a8b8070a": Extract("the day", "DATE"),
    "4a1a7a11954a9d7b8d1a4acb19cf320691486f4f": Compare("angry"),
    "d54549c2fd732a222dcafde2a8408d7293d78db4": Summary("sum up", shown=(ROW,), parameters=(("stage", "map"),)),
}


@pytest.mark.parametrize("key", GOLDEN)
def test_the_key_of_an_answer_is_the_one_that_it_was_paid_under(key: str) -> None:
    assert keyed(b"s", question_key(MODEL, GOLDEN[key]), row_key(ROW)).hex() == key


def test_how_long_a_sound_lasts_makes_no_other_question_of_it() -> None:
    short, long = (Row((Cell("call", b"RIFF", "", "audio/wav", seconds),)) for seconds in (0.0, 9.0))
    assert row_key(short) == row_key(long)
    assert encoded(short) == encoded(long)


def test_rows_that_share_a_request_have_keys_of_their_own() -> None:
    head = question_key(MODEL, Predicate("it is so"), together=True)
    assert keyed(b"s", head, row_key(ROW)).hex() == "bda7bfc40978a46ca2ab23861e02d51203b35c1a"


def test_a_field_that_is_added_with_a_default_changes_no_key() -> None:
    later = make_dataclass("Score", [("scale", str, "linear")], bases=(Score,), frozen=True)
    assert question_key(MODEL, later("how angry")) == question_key(MODEL, Score("how angry"))
    assert question_key(MODEL, later("how angry", scale="log")) != question_key(MODEL, Score("how angry"))
    assert encoded(later("x", scale="log")) == "Score(text='x', levels=10, scale='log')"


def test_what_has_no_fixed_notation_is_refused() -> None:
    with pytest.raises(TypeError, match="its key in the ledger"):
        encoded(Choice("x", labels=["a", "b"]))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        encoded(Write("x", shown=(object(),)))  # type: ignore[arg-type]
