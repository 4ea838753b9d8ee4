"""What an ambiguous question may mean: up to three readings."""

from __future__ import annotations

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import BOOLEAN, Wording, array, text

VERSION = "readings-2"


def wording(question: str, schema: str) -> Wording:
    return Wording(
        "readings",
        VERSION,
        "You say whether a question to a database can be read in ways that give different answers: a word that fits two columns, a "
        "period or a measure that is not named. Differences in wording alone are no readings.",
        f"{schema}\n\nQuestion: {question}\n\nIs it ambiguous? If so, write up to three precise questions, the most probable first.",
        closed({"ambiguous": BOOLEAN, "readings": array(text(200), 3)}),
    )
