"""A complex question as one to three sub-queries, from retrieval to inference. Source: Meta Engine, section 4.1."""

from __future__ import annotations

import json

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import Wording, array, text

VERSION = "decomposer-2"
MOST = 3
SHOTS = "\n\n".join(
    f"Question: {asked}\n{json.dumps({'sub_queries': [{'query': q, 'uses': uses} for q, uses in parts]})}"
    for asked, parts in (
        (
            "Which of the museums in Paris shows the painting whose poster has a horse on it?",
            [
                ("Which painting has a poster with a horse on it?", []),
                ("Which museum in Paris shows the painting found in sub-query 1?", [1]),
            ],
        ),
        (
            "How many of the players taller than 7 feet are praised in the report of their last game?",
            [
                ("Which players are taller than 7 feet?", []),
                ("How many of the players found in sub-query 1 are praised in the report of their last game?", [1]),
            ],
        ),
        (
            "What is the capital of Norway, and does its flag show a cross?",
            [("What is the capital of Norway?", []), ("Does the flag of Norway show a cross?", [])],
        ),
    )
)


def wording(question: str, sources: str) -> Wording:
    part = closed({"query": text(240), "uses": array({"type": "integer", "minimum": 1, "maximum": 2}, 2)})
    return Wording(
        "decomposer",
        VERSION,
        "You split a question into sub-queries. Use as few as possible, three at most. Each stands by itself: it names what it is "
        "about, with no 'it' or 'they'. They go from finding facts to drawing conclusions. A sub-query that needs the answer of an "
        "earlier one says 'found in sub-query N' and lists N under uses. Together they answer the question, and none repeats another.",
        f"{SHOTS}\n\nData:\n{sources}\n\nQuestion: {question}",
        closed({"sub_queries": array(part, MOST, 1)}),
    )


def refining(query: str, earlier: str) -> Wording:
    """The sub-query with names and values of earlier answers filled in, or the name of the table that holds them."""
    return Wording(
        "refine",
        VERSION,
        "You rewrite a question so that it stands by itself: what it refers to is replaced by the names and values that were found. "
        "What was found is a table too: where it has more than five rows, or where not all of them are shown, write 'the rows of "
        "TABLE' with its name in their place. You add nothing else and answer nothing.",
        f"Found so far:\n{earlier}\n\nQuestion: {query}\n\nThe question with names, values and tables filled in:",
        closed({"query": text(600)}),
    )
