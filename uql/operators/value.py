"""A value that the row states, or null."""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.record import Key, Operator, Place, Prompt, Question, Row, Words
from uql.operators.replies import Value
from uql.operators.rows import SYSTEM, about, filled
from uql.operators.statement_text import is_statement
from uql.operators.types import Type, parse_type

VERSION = "extract-2"
STATEMENT = "statement-1"  # the words of a text that is true or false
_HOW = {
    "text": "in a few words",
    "integer": "with a whole number alone",
    "float": "with a number alone",
    "decimal": "with a number alone",
    "boolean": "true or false",
    "date": "with a date as YYYY-MM-DD",
    "time": "with a time as HH:MM",
    "datetime": "with date and time as YYYY-MM-DD HH:MM",
    "interval": "with a duration, as 3 days",
    "list": "with a JSON list",
    "struct": "with a JSON object",
}


@dataclass(frozen=True, slots=True)
class Extract(Question):
    """A value of a DuckDB type, or None where the row does not say. `type` is VARCHAR, DOUBLE, BIGINT, DATE, STRUCT(…), VARCHAR[] …"""

    type: str = "VARCHAR"

    @property
    def operator(self) -> Operator:
        return VALUE

    @property
    def version(self) -> str:
        return f"{VERSION}/{STATEMENT}" if is_statement(self.text) else VERSION

    def reply(self, row: Row | None = None) -> Value:
        return Value(self.type)


def how(kind: Type) -> str:
    return f"with one of: {', '.join(kind.labels)}" if kind.kind == "enum" else _HOW[kind.kind]


def question_text(question: Extract, row: Row) -> str:
    text = filled(question, row).strip().rstrip(".")
    if text.endswith("?"):
        return text
    return f"Does it hold that {text}?" if is_statement(question.text) else f"What is {text}?"


def single_prompt(question: Extract, row: Row) -> Prompt:
    """For one question a request, decoded under a grammar of the bare value."""
    kind = parse_type(question.type)
    task = f"Question: {question_text(question, row)} Answer {how(kind)}, or null if the text does not say it."
    return Prompt(SYSTEM, about(row, task))


def instruction(question: Extract, row: Row) -> str:
    return (
        f"{question_text(question, row)} Answer {how(parse_type(question.type))}, or null if the data does not say it."
    )


VALUE = Operator(
    name="value",
    places=(Place.VALUE,),
    reply=Value(),
    words=Words(VERSION, single_prompt=single_prompt, instruction=instruction, bare=question_text),
    key=Key("Extract", ("text", "type")),
    question=lambda text, given: Extract(text, given.type),
    answer_tokens=8,
    shown_as="SemMap",
    noun="extract",
    kernel="select",
)
