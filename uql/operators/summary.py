"""Something of all rows of a group together: a summary, or a condition on the group."""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.record import Operator, Place, Prompt, Row, Subject, Words
from uql.operators.rows import filled
from uql.operators.types import parse_type
from uql.operators.value import how
from uql.operators.write import VERSION, WRITE, Write, listed, rows_of


@dataclass(frozen=True, slots=True)
class Summary(Write):
    """What is so of the rows shown together. The parameter "stage" is "reduce" where they are themselves answers about parts of a
    group; the parameter "type" is BOOLEAN where a condition on the group is asked, and an ENUM where one of labels is."""

    task: str = "summary"

    @property
    def operator(self) -> Operator:
        return SUMMARY


def prompt(question: Write, row: Row, seed: int | None = None) -> Prompt:
    """The prompt of a summary. With a seed, the rows are fenced.

    Args:
        question: with the rows that it shows.
        row: one more, where it has cells.
        seed: of the delimiters; None: none.
    """
    return _summary(question, row, rows_of(question, row, seed))


def _summary(question: Write, row: Row, rows: str) -> Prompt:
    if "type" in dict(question.parameters):
        return _of_group(question, row, rows)
    cite = (
        "keep the numbers of rows in brackets that support it"
        if _stage(question) == "reduce"
        else ("name rows that support it by their number in brackets, as [12]")
    )
    return Prompt(
        "You summarise the rows of a table.",
        f"{rows}\n\nSay of all the rows above together: {filled(question, row)}. Answer in at most three sentences, from these "
        f"rows alone, and {cite}.",
    )


def _of_group(question: Write, row: Row, rows: str) -> Prompt:
    """Is it so of a group, or which label fits it? Of a part of a long group: what speaks for it, in numbers that can be added up."""
    claim, kind = condition(question, row), parse_type(dict(question.parameters)["type"])
    asked = f"is it so that {claim}" if kind.kind == "boolean" else f"what is {claim}"
    if question.schema is not None:
        subject = "parts of a group, each judged by itself" if _stage(question) == "reduce" else "a group of rows"
        task = f"Above is {subject}. Of the whole group, {asked}? Answer {how(kind)}, from this alone."
    elif kind.labels:
        task = (
            f"Above are {len(question.shown)} of the rows of a group. To be told of the whole group later: {claim}, as one of: "
            f"{', '.join(kind.labels)}. Say in at most two sentences how many of these rows speak for which."
        )
    else:
        task = (
            f"Above are {len(question.shown)} of the rows of a group. To be decided of the whole group later: {claim}. Say in at most "
            "two sentences what these rows tell about it: how many of them speak for it, how many against, and the strongest."
        )
    return Prompt("You judge the rows of a table.", f"{rows}\n\n{task}")


def condition(question: Write, row: Row) -> str:
    return filled(question, row).strip().rstrip(".?")


def condition_prompt(question: Write, row: Row) -> Prompt:
    """A condition on a group for a small model, read from the log-probabilities of Yes and No: the form of conditions on a row."""
    texts = listed(question.shown)
    return Prompt(
        "You answer questions about texts with Yes or No.",
        f"Texts:\n{texts}\n\nQuestion: Of these texts together, is it so that {condition(question, row)}?",
    )


def _stage(question: Write) -> str:
    return dict(question.parameters).get("stage", "")


SUMMARY = Operator(
    name="summary",
    places=(Place.OF_GROUP,),
    reply=WRITE.reply,
    words=Words(VERSION, single_prompt=prompt, whether=condition_prompt),
    key=WRITE.key,
    question=lambda text, given: Summary(text),
    answer_tokens=150,
    shown_as="SemAgg",
    noun="summary",
    kernel="sem_agg",
    subject=Subject.ROWS,
)
