"""The sentence of a row that shows something, word for word: the example of docs/extending.md."""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.record import Key, Operator, Prompt, Question, Row, Words
from uql.operators.replies import Value
from uql.operators.rows import SYSTEM, about, filled


@dataclass(frozen=True, slots=True)
class Quote(Question):
    """Which sentence of the row shows it? Answered by that sentence, or None where none does."""

    @property
    def operator(self) -> Operator:
        return QUOTATION


def question_text(question: Quote, row: Row) -> str:
    return f"Which sentence shows that {filled(question, row)}? Copy it word for word, or answer null."


def single_prompt(question: Quote, row: Row) -> Prompt:
    """For one question a request: the row first, for small models."""
    return Prompt(SYSTEM, about(row, f"Question: {question_text(question, row)}"))


QUOTATION = Operator(
    name="quotation",
    places=(),  # or the place of a statement that means it; each place means one operator
    reply=Value("VARCHAR"),  # YesNo, OneOf, Level, Value or Text: all that a provider sees
    words=Words("quotation-1", single_prompt=single_prompt, instruction=question_text, bare=question_text),
    key=Key("Quote", ("text",)),
    question=lambda text, given: Quote(text),
    answer_tokens=20,
    shown_as="SemMap",
    noun="quotation",
    kernel="select",
)
