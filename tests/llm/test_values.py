"""Typed values: schemas, grammars and the reading of replies."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from uql.base.errors import BindError
from uql.llm.providers.stated_numbers import not_in_row
from uql.llm.questions import Cell, Row
from uql.operators.types import grammar, json_schema, parse_type, read

READ = [
    ("VARCHAR", "Rome", "Rome"), ("VARCHAR", "null", None), ("VARCHAR", "N/A", None), ("VARCHAR", 3, "3"), ("BIGINT", "1,200", 1200),
    ("INTEGER", 4.0, 4), ("DOUBLE", "$3.50", 3.5), ("DOUBLE", 7, 7.0), ("DECIMAL(10,2)", "1.239", Decimal("1.24")),
    ("BOOLEAN", "Yes.", True),
    ("BOOLEAN", False, False), ("DATE", "2026-02-03", date(2026, 2, 3)), ("TIMESTAMP", "2026-02-03 04:05", datetime(2026, 2, 3, 4, 5)),
    ("INTERVAL", "2 days 3 hours", timedelta(days=2, hours=3)), ("ENUM('a','it''s')", "IT'S", "it's"), ("ENUM('null','b')", "null", "null"),
    ("VARCHAR[]", ["a", "b"], ["a", "b"]), ("STRUCT(id VARCHAR, total DOUBLE)", {"id": "x", "total": "3"}, {"id": "x", "total": 3.0}),
    ("STRUCT(a INTEGER)[]", [{"a": 1}, {}], [{"a": 1}, None]), ("DOUBLE", None, None), ("double precision", 1, 1.0),
]  # fmt: skip
WRONG = [
    ("BIGINT", "many"), ("BIGINT", 1.5), ("BIGINT", True), ("TINYINT", 400), ("UINTEGER", -1), ("DOUBLE", "NaN1"), ("DOUBLE", float("inf")),
    ("DATE", "2026-02-31"), ("DATE", 20260203), ("BOOLEAN", "maybe"), ("ENUM('a')", "b"), ("VARCHAR[]", "a"), ("STRUCT(a INTEGER)", [1]),
    ("DECIMAL(3,1)", "1000"), ("INTERVAL", "soon"), ("VARCHAR", ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "reply", "value"), READ)
def test_a_reply_is_read_in_the_type(kind: str, reply: object, value: object) -> None:
    made = read(reply, parse_type(kind))
    assert made == value and type(made) is type(value)


@pytest.mark.parametrize(("kind", "reply"), WRONG)
def test_a_reply_of_another_type_is_refused_with_what_was_wanted(kind: str, reply: object) -> None:
    with pytest.raises(ValueError, match=r"wanted|range|fit|none of"):
        read(reply, parse_type(kind))


@pytest.mark.parametrize(
    "kind", ["", "WIDGET", "STRUCT(a)", "ENUM()", "VARCHAR[", "DECIMAL(a)", "INT INT", "STRUCT(a INT", "MAP(INT, INT)"]
)
def test_an_unknown_type_is_an_error_with_the_choices(kind: str) -> None:
    with pytest.raises(BindError, match="VARCHAR, BOOLEAN"):
        parse_type(kind)


def test_schemas_are_strict_and_null_able() -> None:
    made = json_schema(parse_type("STRUCT(id VARCHAR, tags ENUM('a','b')[])"))
    assert (
        made["required"] == ["id", "tags"]
        and made["additionalProperties"] is False
        and made["type"] == ["object", "null"]
    )
    assert made["properties"]["id"] == {"type": ["string", "null"]}
    assert made["properties"]["tags"]["items"] == {"type": "string", "enum": ["a", "b"]}


def test_grammars_of_bare_values_allow_null_and_escape_labels() -> None:
    assert grammar(parse_type("BIGINT")) == 'root ::= "null" | "-"? [0-9]{1,18}'
    assert grammar(parse_type("ENUM('say \"x\"','b')")) == 'root ::= "null" | "say \\"x\\"" | "b"'
    assert grammar(parse_type("INTEGER[]")) is None


@pytest.mark.parametrize(
    ("value", "question", "text", "absent"),
    [
        (27, "the points of Davis", "Davis had 27 points", False), (31, "the points of Davis", "Davis had 27 points", True),
        (1200.0, "the price", "it costs $1,200 in all", False), (3, "the rooms", "three rooms and a bath", False),
        (3, "the number of rooms", "a kitchen, a bath, a bedroom", False), (4, "the rating from 1 to 5", "quite good", False),
        (2.5, "the weight", "2.5 kg", False), ("31", "the points", "none", False),
        (True, "it is so", "no", False), (7, "the points", "", True),
    ],
)  # fmt: skip
def test_a_number_that_is_read_must_stand_in_the_row(value: object, question: str, text: str, absent: bool) -> None:
    assert not_in_row(value, question, Row((Cell("text", text),))) is absent


@pytest.mark.parametrize(
    ("kind", "text"), [("DOUBLE", "1" + " " * 100_000 + "x"), ("INTERVAL", "1" * 100_000), ("DATE", "2" * 100_000)]
)
def test_an_endless_value_is_refused_by_its_length(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"not {len(text):,} characters"):
        read(text, parse_type(kind))
