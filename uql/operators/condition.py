"""Is it so? The row first and the question after it, as measured best for small models.

A pair is shown to a small model as text A and text B, and the question names them so: shown as two named lines of one text, it takes
nearly every pair for a match (a quarter of the pairs of bank questions match: it said so of 92 % of 64, and in this form of 38 % of 24).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from uql.operators.record import Cell, Key, Operator, Place, Prompt, Question, Row, Words
from uql.operators.replies import YesNo
from uql.operators.rows import about, filled, lines, named_cells
from uql.operators.texts import named

VERSION = "predicate-2"
SYSTEM = "You answer questions about a text with Yes or No."
OF_PAIRS = "You compare two texts. You answer exactly as asked."


@dataclass(frozen=True, slots=True)
class Predicate(Question):
    """Is it so? Answered by a bool and its probability."""

    @property
    def operator(self) -> Operator:
        return CONDITION


def question_text(question: Predicate, row: Row, names: Mapping[Cell, str] | None = None) -> str:
    """The condition as a question.

    Args:
        question: its text may have holes.
        names: of cells, in the place of their values.
    """
    text = filled(question, row, names).strip()
    return text if text.endswith("?") else f"Is it so that {text.rstrip('.')}?"


def single_prompt(question: Predicate, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of Yes and No."""
    sides = pair(question, row)
    if sides is None:
        return Prompt(SYSTEM, about(row, f"Question: {question_text(question, row)}"))
    texts, names = [], {}
    for letter, cells in zip("AB", sides, strict=True):
        text = lines(Row(tuple(replace(cell, table="") for cell in cells)))
        several = len(cells) > 1
        texts.append(f"Text {letter}:{chr(10) if several else ' '}{text}")
        names.update({c: f"the {named(c.name)} of text {letter}" if several else f"text {letter}" for c in cells})
    question_of_both = f"Question: {question_text(question, row, names)} Answer Yes or No."
    return Prompt(OF_PAIRS, "\n\n".join([*texts, question_of_both]))


def pair(question: Predicate, row: Row) -> tuple[tuple[Cell, ...], tuple[Cell, ...]] | None:
    """The two texts that a condition compares: those of two tables, or two columns that it names; None where it does not."""
    cells = tuple(cell for cell in row.cells if cell.value is not None)
    hole_cells = named_cells(question, row)
    if not all(isinstance(cell.value, str) for cell in cells):
        return None
    tables = dict.fromkeys(cell.table for cell in cells)
    if len(tables) == 2:
        one, two = (tuple(cell for cell in cells if cell.table == table) for table in tables)
        whole = {cell.table for cell in hole_cells} == set(tables)
        return (one, two) if whole or (not hole_cells and not _speaks_of(question.text, tables)) else None
    return ((cells[0],), (cells[1],)) if len(cells) == 2 and set(hole_cells) == set(cells) else None


def _speaks_of(text: str, tables: Iterable[str]) -> bool:
    """Does a condition without holes call a side by its alias? Of one-letter aliases only "x.", which cannot be a word."""
    return any(re.search(rf"\b{re.escape(t)}\b{'' if len(t) > 1 else '[.]'}", text, re.IGNORECASE) for t in tables)


def instruction(question: Predicate, row: Row) -> str:
    return f"true/false: {filled(question, row).strip().rstrip('.')}"


CONDITION = Operator(
    name="condition",
    places=(Place.CONDITION,),
    reply=YesNo(),
    words=Words(VERSION, single_prompt=single_prompt, instruction=instruction, bare=question_text),
    key=Key("Predicate", ("text",)),
    question=lambda text, given: Predicate(text),
    answer_tokens=1,
    shown_as="SemFilter",
    noun="condition",
    kernel="sem_filter",
)
