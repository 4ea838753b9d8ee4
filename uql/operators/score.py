"""How much, on levels from 0 on?"""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.record import Key, Operator, Place, Prompt, Question, Row, Words
from uql.operators.replies import Level
from uql.operators.rows import SYSTEM, about, filled

VERSION = "score-2"
LEVELS = 10


@dataclass(frozen=True, slots=True)
class Score(Question):
    """How much, on levels 0 … levels − 1? Answered by the expected level."""

    levels: int = LEVELS

    @property
    def operator(self) -> Operator:
        return SCORE

    def reply(self, row: Row | None = None) -> Level:
        return Level(self.levels)


def single_prompt(question: Score, row: Row) -> Prompt:
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


def bare(question: Score, row: Row) -> str:
    return f"From 0 (not at all) to {question.levels - 1} (very much): {filled(question, row)}"


SCORE = Operator(
    name="score",
    places=(Place.ORDER_BY,),
    reply=Level(LEVELS),
    words=Words(VERSION, single_prompt=single_prompt, instruction=instruction, bare=bare),
    key=Key("Score", ("text", "levels")),
    question=lambda text, given: Score(text),
    answer_tokens=1,
    shown_as="SemMap",
    noun="score",
    kernel="sem_order",
)
