"""What is asked before there is a plan: what the question may mean, and which columns it needs."""

from __future__ import annotations

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import BOOLEAN, Wording, array, one_of, text


def readings(question: str, schema: str) -> Wording:
    """What an ambiguous question may mean: up to three readings."""
    return Wording(
        "readings",
        "readings-2",
        "You say whether a question to a database can be read in ways that give different answers: a word that fits two columns, a "
        "period or a measure that is not named. Differences in wording alone are no readings.",
        f"{schema}\n\nQuestion: {question}\n\nIs it ambiguous? If so, write up to three precise questions, the most probable first.",
        closed({"ambiguous": BOOLEAN, "readings": array(text(200), 3)}),
    )


def columns(question: str, schema: str, names: list[str]) -> Wording:
    """Asks which columns a question needs. Source: CAESURA's discovery phase.

    Args:
        question: as the user wrote it.
        schema: the tables, as text.
        names: the columns to choose from: table.column.
    """
    return Wording(
        "columns",
        "columns-2",
        "You find the columns of a database that a question needs. Texts and images count: what a table does not hold may be read from "
        "them.",
        f"{schema}\n\nQuestion: {question}\n\nList the columns that are needed to answer it: those to filter, to join, to read and to "
        "show.",
        closed({"columns": array(one_of(names), 12, 1)}),
    )
