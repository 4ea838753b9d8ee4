"""Of two rows, which has more of it? The kernel asks both orders."""

from __future__ import annotations

from dataclasses import dataclass

from uql.operators.record import Cell, Key, Operator, Prompt, Question, Row, Subject, Words
from uql.operators.replies import OneOf
from uql.operators.rows import filled, lines

VERSION = "compare-1"
SYSTEM = "You compare two texts. You answer with A or B."
LETTERS = ("A", "B")


@dataclass(frozen=True, slots=True)
class Compare(Question):
    """Of two rows (cells told apart by `Cell.table`), which has more of it? Answered by the table of one of them, as "a" or "b"."""

    @property
    def operator(self) -> Operator:
        return COMPARE

    def reply(self, row: Row | None = None) -> OneOf:
        """The letters A and B in the place of the tables of the row's two sides."""
        return OneOf(LETTERS if row is None else tuple(sides(row))[:2], letters=LETTERS)


def sides(row: Row) -> dict[str, Row]:
    """The two rows by the alias of their table, in the order in which they are shown."""
    by_table: dict[str, list[Cell]] = {}
    for cell in row.cells:
        by_table.setdefault(cell.table, []).append(Cell(cell.name, cell.value, "", cell.media_type))
    return {table: Row(tuple(cells)) for table, cells in by_table.items()}


def single_prompt(question: Compare, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of A and B."""
    first, second = list(sides(row).values())[:2]
    text = filled(question, row).strip().rstrip(".?")
    texts = f"Text A: {lines(first)}\n\nText B: {lines(second)}"
    return Prompt(SYSTEM, f"{texts}\n\nQuestion: Of which is it more so: {text}? Answer A or B.")


def instruction(question: Compare, row: Row) -> str:
    one, two = list(sides(row))[:2]
    text = filled(question, row).strip().rstrip(".?")
    return f'Of which of the two rows, "{one}" or "{two}", is it more so: {text}? Answer "A" for {one}, "B" for {two}.'


COMPARE = Operator(
    name="compare",
    places=(),  # ORDER BY "…" compares the rows around its cut
    reply=OneOf(LETTERS, letters=LETTERS),
    words=Words(VERSION, single_prompt=single_prompt, instruction=instruction),
    key=Key("Compare", ("text",)),
    question=lambda text, given: Compare(text),
    answer_tokens=1,
    shown_as="",
    noun="comparison",
    kernel="sem_order",
    subject=Subject.PAIR,
)
