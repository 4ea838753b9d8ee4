"""Is the question simple or complex? Six signs of a complex question, four of a simple one; unsure is complex.

Source: Meta Engine (Li et al., 2026), section 4.1: multi-part, multi-step, aggregation, complex filtering, comparison, pipeline.
"""

from __future__ import annotations

from uql.nl.prompts import Wording, array, obj, one_of

VERSION = "checker-1"
COMPLEX = {
    "multi_part": "it asks several things at once",
    "multi_step": "one fact has to be found before another can be looked for",
    "aggregation": "it counts, sums or averages what first has to be read or found",
    "complex_filter": "several conditions, or conditions on different sources, have to hold together",
    "comparison": "it compares or ranks several entities",
    "pipeline": "results of one kind of data are used on another kind (table, text, image), or drawn",
}
SIMPLE = {
    "one_fact": "it asks for one fact",
    "one_source": "one table, text or image collection holds the whole answer",
    "one_entity": "it is about one entity or one condition",
    "no_reasoning": "the answer is read off, nothing is combined",
}


def wording(question: str, sources: str) -> Wording:
    complex_signs = "\n".join(f"- {name}: {said}" for name, said in COMPLEX.items())
    simple_signs = "\n".join(f"- {name}: {said}" for name, said in SIMPLE.items())
    return Wording(
        "checker",
        VERSION,
        "You judge whether a question is simple or complex. Where you are not sure, it is complex.",
        f"Data:\n{sources}\n\nA question is complex when one of these signs holds:\n{complex_signs}\n\nIt is "
        f"simple when none of them does, "
        f"and these hold:\n{simple_signs}\n\nQuestion: {question}\n\nName the signs that hold, then the verdict.",
        obj({"signs": array(one_of([*COMPLEX, *SIMPLE]), 10), "verdict": one_of(["simple", "complex", "unsure"])}),
        160,
    )
