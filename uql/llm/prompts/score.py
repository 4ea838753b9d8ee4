"""How much, on levels from 0 on?"""

from __future__ import annotations

from typing import Any

from uql.llm.prompts.rows import SYSTEM, Prompt, about, filled
from uql.llm.providers.base import Answer, Problem
from uql.llm.questions import Row, Score

VERSION = "score-2"


def alone(question: Score, row: Row) -> Prompt:
    """For one question a request: much or little, read from the log-probabilities of Yes and No.

    Digits are not asked for: of 20 tweets, half of them negative, the digits 0 to 9 ranked "how angry or disappointed the tweet is" no
    better than chance (AUC 0.53), this question well (0.82).
    """
    text = filled(question, row).strip().rstrip(".?")
    size = "much" if text.lower().startswith("how ") else "high"
    return Prompt(SYSTEM, about(row, f"Question: {text[:1].upper()}{text[1:]}: is it {size}? Answer Yes or No."))


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
