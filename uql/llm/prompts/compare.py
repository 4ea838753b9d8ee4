"""Of two rows, which has more of it? The kernel asks both orders."""

from __future__ import annotations

from typing import Any

from uql.llm.prompts.rows import Prompt, filled, lines
from uql.llm.providers.base import Answer, Problem
from uql.llm.questions import Cell, Compare, Row

VERSION = "compare-1"
SYSTEM = "You compare two texts. You answer with A or B."


def sides(row: Row) -> dict[str, Row]:
    """The two rows by the alias of their table, in the order in which they are shown."""
    found: dict[str, list[Cell]] = {}
    for cell in row.cells:
        found.setdefault(cell.table, []).append(Cell(cell.name, cell.value, "", cell.media_type))
    return {table: Row(tuple(cells)) for table, cells in found.items()}


def alone(question: Compare, row: Row) -> Prompt:
    """For one question a request, read from the log-probabilities of A and B."""
    first, second = list(sides(row).values())[:2]
    text = filled(question, row).strip().rstrip(".?")
    shown = f"Text A: {lines(first)}\n\nText B: {lines(second)}"
    return Prompt(SYSTEM, f"{shown}\n\nQuestion: Of which is it more so: {text}? Answer A or B.")


def instruction(question: Compare, row: Row) -> str:
    one, two = list(sides(row))[:2]
    text = filled(question, row).strip().rstrip(".?")
    return f'Of which of the two rows, "{one}" or "{two}", is it more so: {text}? Answer "A" for {one}, "B" for {two}.'


def schema(question: Compare) -> dict[str, Any]:
    return {"type": "string", "enum": ["A", "B"]}


def read(value: Any, question: Compare, row: Row) -> Answer:
    said = value.strip().upper().rstrip(".") if isinstance(value, str) else ""
    if said in ("A", "B"):
        return Answer(list(sides(row))[0 if said == "A" else 1])
    return Answer(problem=Problem("wrong_type", f"A or B was wanted, not {value!r}", str(value)))
