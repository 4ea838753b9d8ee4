"""Are two rows one thing, as a text says: DISTINCT ON "the same product"? The kernel asks it of pairs that are near in meaning."""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.compare import sides
from uql.operators.record import Key, Operator, Place, Prompt, Question, Row, Subject, Words
from uql.operators.replies import YesNo
from uql.operators.rows import filled, lines

VERSION = "duplicate-1"
SYSTEM = "You compare two texts. You answer exactly as asked."


@dataclass(frozen=True, slots=True)
class Duplicate(Question):
    """Of two rows (cells told apart by `Cell.table`), are they the same thing? Answered by a bool and its probability."""

    @property
    def operator(self) -> Operator:
        return DUPLICATE


def question_text(question: Duplicate, row: Row, one: str, two: str) -> str:
    """The question about two things that are shown under these names.

    Args:
        question: its text may have holes.
        one, two: how the things are named.
    """
    return f"Is it so of {one} and {two}: {filled(question, row).strip().rstrip('.?')}?"


def single_prompt(question: Duplicate, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of Yes and No."""
    texts = []
    for letter, side in zip("AB", sides(row).values(), strict=False):
        text = lines(side)
        texts.append(f"Text {letter}:{chr(10) if len(side.cells) > 1 else ' '}{text}")
    return Prompt(
        SYSTEM, "\n\n".join([*texts, f"Question: {question_text(question, row, 'text A', 'text B')} Answer Yes or No."])
    )


def bare(question: Duplicate, row: Row) -> str:
    one, two = list(sides(row))[:2]
    return question_text(question, row, f'row "{one}"', f'row "{two}"')


def instruction(question: Duplicate, row: Row) -> str:
    return f"{bare(question, row)} Answer true or false."


DUPLICATE = Operator(
    name="duplicate",
    places=(Place.DISTINCT_ON,),
    reply=YesNo(),
    words=Words(VERSION, single_prompt=single_prompt, instruction=instruction, bare=bare),
    key=Key("Duplicate", ("text",)),
    question=lambda text, given: Duplicate(text),
    answer_tokens=1,
    shown_as="SemDedupe",
    noun="duplicate",
    kernel="sem_dedupe",
    subject=Subject.PAIR,
)
