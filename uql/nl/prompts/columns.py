"""Which columns does the question need? Source: CAESURA's discovery phase."""

from __future__ import annotations

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import Wording, array, one_of

VERSION = "columns-2"


def wording(question: str, schema: str, columns: list[str]) -> Wording:
    """Asks which columns a question needs.

    Args:
        question: as the user wrote it.
        schema: the tables, as text.
        columns: the names to choose from: table.column.
    """
    return Wording(
        "columns",
        VERSION,
        "You find the columns of a database that a question needs. Texts and images count: what a table does not hold may be read from "
        "them.",
        f"{schema}\n\nQuestion: {question}\n\nList the columns that are needed to answer it: those to filter, to join, to read and to "
        "show.",
        closed({"columns": array(one_of(columns), 12, 1)}),
    )
