"""A value that the row states, or null."""

from __future__ import annotations

from typing import Any

from uql.llm.prompts.rows import SYSTEM, Prompt, about, filled
from uql.llm.providers.base import Answer, Problem
from uql.llm.questions import Extract, Row
from uql.llm.values import Type, json_schema, parse_type
from uql.llm.values import read as read_value

VERSION = "extract-2"
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


def how(kind: Type) -> str:
    return f"with one of: {', '.join(kind.labels)}" if kind.kind == "enum" else _HOW[kind.kind]


def asked(question: Extract, row: Row) -> str:
    text = filled(question, row).strip().rstrip(".")
    return text if text.endswith("?") else f"What is {text}?"


def alone(question: Extract, row: Row) -> Prompt:
    """For one question a request, decoded under a grammar of the bare value."""
    kind = parse_type(question.type)
    said = f"Question: {asked(question, row)} Answer {how(kind)}, or null if the text does not say it."
    return Prompt(SYSTEM, about(row, said))


def instruction(question: Extract, row: Row) -> str:
    return f"{asked(question, row)} Answer {how(parse_type(question.type))}, or null if the data does not say it."


def schema(question: Extract) -> dict[str, Any]:
    kind = parse_type(question.type)
    return json_schema(
        kind, nullable=kind.kind != "struct"
    )  # its fields may be null: one of nulls alone is read as NULL


def read(value: Any, question: Extract) -> Answer:
    try:
        return Answer(read_value(value, parse_type(question.type)))
    except ValueError as error:
        return Answer(problem=Problem("wrong_type", str(error), str(value)))
