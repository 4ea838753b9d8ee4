"""Is it so? The row first and the question after it, as measured best for small models."""

from __future__ import annotations

from typing import Any

from uql.llm.prompts.rows import Prompt, about, filled
from uql.llm.providers.base import Answer, Problem
from uql.llm.questions import Predicate, Row

VERSION = "predicate-1"
SYSTEM = "You answer questions about a text with Yes or No."


def asked(question: Predicate, row: Row) -> str:
    """The condition as a question."""
    text = filled(question, row).strip()
    return text if text.endswith("?") else f"Is it so that {text.rstrip('.')}?"


def alone(question: Predicate, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of Yes and No."""
    return Prompt(SYSTEM, about(row, f"Question: {asked(question, row)}"))


def instruction(question: Predicate, row: Row) -> str:
    return f"{asked(question, row)} Answer true or false."


def schema(question: Predicate) -> dict[str, Any]:
    return {"type": "boolean"}


def read(value: Any, question: Predicate) -> Answer:
    if isinstance(value, bool):
        return Answer(value)
    if isinstance(value, str) and value.strip().lower().rstrip(".") in ("yes", "no", "true", "false"):
        return Answer(value.strip().lower()[0] in "yt")
    return Answer(problem=Problem("wrong_type", f"true or false was wanted, not {value!r}", str(value)))
