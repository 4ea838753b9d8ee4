"""How much, on levels from 0 on?"""

from __future__ import annotations

from typing import Any

from uql.llm.prompts.rows import SYSTEM, Prompt, about, filled
from uql.llm.providers.base import Answer, Problem
from uql.llm.questions import Row, Score

VERSION = "score-1"


def alone(question: Score, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of the digits."""
    top = min(question.levels, 10) - 1
    text = filled(question, row).strip().rstrip(".?")
    return Prompt(
        SYSTEM,
        about(row, f"Question: From 0 (not at all) to {top} (very much), {text}? Answer with one digit."),
    )


def instruction(question: Score, row: Row) -> str:
    text = filled(question, row).strip().rstrip(".?")
    return f"Rate from 0 (not at all) to {question.levels - 1} (very much): {text}"


def schema(question: Score) -> dict[str, Any]:
    return {"type": "integer", "enum": list(range(question.levels))} if question.levels <= 20 else {"type": "integer"}


def read(value: Any, question: Score) -> Answer:
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None and isinstance(value, str) and value.strip().isdigit():
        number = float(value)
    if number is None or not 0 <= number <= question.levels - 1:
        said = f"a level from 0 to {question.levels - 1} was wanted, not {value!r}"
        return Answer(problem=Problem("wrong_type", said, str(value)))
    return Answer(number)
