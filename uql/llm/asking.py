"""What an ask puts to a model, and what is known of its rows before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from uql.llm.ledger_rows import Failed
from uql.llm.limiter import Limiter
from uql.llm.providers.base import Answer, Problem, Provider
from uql.llm.questions import Question
from uql.operators.replies import Shape


@dataclass(frozen=True, slots=True)
class Asking:
    """What an ask puts to a model: the same for all its rows."""

    questions: tuple[Question, ...]
    provider: Provider
    limiter: Limiter
    source: str = ""  # the table that the rows come from
    together: int = 1  # rows of one request at most
    heads: Sequence[bytes] = ()  # what `question_key` gives for each question
    shared: Sequence[bytes] = ()  # the same for rows that share requests; empty where they do not
    kinds: str = field(init=False)  # of the questions, and the first one's text, as events show them
    text: str = field(init=False)
    shapes: tuple[Shape, ...] = field(init=False)  # of the replies to the questions

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", "+".join(q.operator.key.name for q in self.questions))
        object.__setattr__(self, "text", self.questions[0].text[:80])
        object.__setattr__(self, "shapes", tuple(q.reply() for q in self.questions))

    def only(self, indices: Sequence[int]) -> Asking:
        """The same with some of its questions."""
        if len(indices) == len(self.questions):
            return self
        return replace(self, questions=tuple(self.questions[j] for j in indices))


def without_answer(failed: Failed) -> Answer:
    """What stands for the answer about a row that got none, with what its tries cost."""
    return Answer(problem=Problem(failed.kind, failed.message)).at_cost(failed.paid)


def known_answers(
    asking: Asking,
    keys: Sequence[Sequence[bytes]],
    single_keys: Sequence[Sequence[bytes]],
    answers: Mapping[bytes, Answer],
) -> list[list[Answer | None]]:
    """What is known of n rows: from where one was asked alone, else from where it shared a request, as this ask may.

    A value that no reply to the question can have is not used: others may write to the ledger, and a file may be damaged.

    Args:
        keys, single_keys: (questions,) as those of `Slot`, n each.
        answers: by key.
    Returns: (questions,) n each.
    """
    columns = []
    for own, single, shape in zip(keys, single_keys, asking.shapes, strict=True):
        found: list[Answer | None] = list(map(answers.get, single))
        if own is not single:
            found = [answer or answers.get(key) for answer, key in zip(found, own, strict=True)]
        each = dict(zip(map(id, found), found, strict=True))  # equal ones are one object
        wrong = {number for number, a in each.items() if a and a.value is not None and not shape.holds(a.value)}
        columns.append([None if id(a) in wrong else a for a in found] if wrong else found)
    return columns
