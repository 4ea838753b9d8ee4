"""Is the question simple or complex? Six signs of a complex question, four of a simple one; unsure is complex.

Source: Meta Engine (Li et al., 2026), section 4.1.
"""

from __future__ import annotations

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import Wording, array, one_of

VERSION = "checker-2"
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


def wording(question: str, sources: str) -> Wording:
    complex_signs = "\n".join(f"- {name}: {meaning}" for name, meaning in COMPLEX.items())
    simple_signs = "\n".join(f"- {name}: {meaning}" for name, meaning in SIMPLE.items())
    return Wording(
        "checker",
        VERSION,
        "You judge whether a question is simple or complex. Where you are not sure, it is complex.",
        f"Data:\n{sources}\n\nA question is complex when one of these signs holds:\n{complex_signs}\n\nIt is simple when none of them "
        f"does, and these hold:\n{simple_signs}\n\nQuestion: {question}\n\nName the signs that hold, then the verdict.",
        closed({"signs": array(one_of([*COMPLEX, *SIMPLE]), 10), "verdict": one_of(["simple", "complex", "unsure"])}),
    )
