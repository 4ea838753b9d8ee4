"""The questions of the mode `meta`: is it complex, which sub-queries has it, which operators may answer one.

Source: Meta Engine (Li et al., 2026), section 4.1, and section 4.2 with figure 6.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import Wording, array, one_of, text

COMPLEX = {
    "multi_part": "it asks several things, with and, or, for each",
    "multi_step": "two facts or results have to be combined, or one found before another can be looked for",
    "aggregation": "it aggregates or groups: a sum, average, count, trend, per year, per category",
    "complex_filter": "it has conditions that are not plain: several, on different sources, or of time",
    "comparison": "it compares or ranks several entities",
    "pipeline": "first one thing is to be done, then another with what it gives",
}
SIMPLE = {
    "one_intent": "it has one clear intent",
    "one_fact": "it is about one entity or one fact",
    "one_operator": "one operator over one kind of data answers it directly",
    "no_gain": "to split it would not make it clearer",
}
MOST = 3  # sub-queries of a question
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
RANGES = ((0.7, 0.95), (0.5, 0.75), (0.3, 0.6))  # of the confidence of the first, middle and last operator


def checking(question: str, sources: str) -> Wording:
    """Is the question simple or complex? Six signs of a complex question, four of a simple one; unsure is complex."""
    complex_signs = "\n".join(f"- {name}: {meaning}" for name, meaning in COMPLEX.items())
    simple_signs = "\n".join(f"- {name}: {meaning}" for name, meaning in SIMPLE.items())
    return Wording(
        "checker",
        "checker-2",
        "You judge whether a question is simple or complex. Where you are not sure, it is complex.",
        f"Data:\n{sources}\n\nA question is complex when one of these signs holds:\n{complex_signs}\n\nIt is simple when none of them "
        f"does, and these hold:\n{simple_signs}\n\nQuestion: {question}\n\nName the signs that hold, then the verdict.",
        closed({"signs": array(one_of([*COMPLEX, *SIMPLE]), 10), "verdict": one_of(["simple", "complex", "unsure"])}),
    )


def decomposing(question: str, sources: str) -> Wording:
    """A complex question as one to three sub-queries, from retrieval to inference."""
    part = closed({"query": text(240), "uses": array({"type": "integer", "minimum": 1, "maximum": 2}, 2)})
    return Wording(
        "decomposer",
        "decomposer-2",
        "You split a question into sub-queries. Use as few as possible, three at most. Each stands by itself: it names what it is "
        "about, with no 'it' or 'they'. They go from finding facts to drawing conclusions. A sub-query that needs the answer of an "
        "earlier one says 'found in sub-query N' and lists N under uses. Together they answer the question, and none repeats another.",
        f"{SHOTS}\n\nData:\n{sources}\n\nQuestion: {question}",
        closed({"sub_queries": array(part, MOST, 1)}),
        ruled=True,
    )


def refining(query: str, earlier: str) -> Wording:
    """The sub-query with names and values of earlier answers filled in, or the name of the table that holds them."""
    return Wording(
        "refine",
        "decomposer-2",
        "You rewrite a question so that it stands by itself: what it refers to is replaced by the names and values that were found. "
        "What was found is a table too: where it has more than five rows, or where not all of them are shown, write 'the rows of "
        "TABLE' with its name in their place. You add nothing else and answer nothing.",
        f"Found so far:\n{earlier}\n\nQuestion: {query}\n\nThe question with names, values and tables filled in:",
        closed({"query": text(600)}),
    )


def ranking(query: str, captions: str, operators: Sequence[str], sources: Sequence[str]) -> Wording:
    """Asks which operators may answer a sub-query, and from which sources, of which it shows titles and short captions alone.

    Args:
        query: one sub-query.
        captions: one line a source.
        operators, sources: names to choose from.
    """
    confidence = {"type": "number", "minimum": 0, "maximum": 1}
    operator = {"operator": one_of(operators), "sources": array(one_of(sources), 4, 1), "confidence": confidence}
    return Wording(
        "operators",
        "operators-2",
        "You choose how a question is answered. TableAnalytics computes over the columns of tables, TextAnalytics reads texts, "
        "ImageAnalytics looks at images. You see titles and captions only, not the data. Rank the operators that may answer it, each "
        "with the sources it needs.\n"
        "1. A question that names a kind of data, or means one, is for its operator: a picture or photo for ImageAnalytics, a table or "
        "its columns for TableAnalytics, a report, review or description for TextAnalytics.\n"
        "2. Else by what is asked: counts, sums and comparisons of numbers are for TableAnalytics first, events and reasons for "
        "TextAnalytics, appearance and colours for ImageAnalytics.\n"
        "3. Where several operators may answer, list them all, the one whose title or caption is nearest first.\n"
        "4. Confidence: 0.7 to 0.95 for the first, 0.5 to 0.75 for the middle one, 0.3 to 0.6 for the last.",
        f"Sources:\n{captions}\n\nQuestion: {query}",
        closed({"operators": array(closed(operator), 3, 1)}),
    )
