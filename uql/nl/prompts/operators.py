"""Which operators may answer a sub-query, from titles and short captions alone. Source: Meta Engine, section 4.2 and figure 6."""

from __future__ import annotations

from collections.abc import Sequence

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import Wording, array, one_of

VERSION = "operators-2"
RANGES = ((0.7, 0.95), (0.5, 0.75), (0.3, 0.6))  # of the confidence of the first, middle and last operator


def wording(query: str, captions: str, operators: Sequence[str], sources: Sequence[str]) -> Wording:
    """Asks which operators may answer a sub-query, and from which sources.

    Args:
        query: one sub-query.
        captions: one line a source.
        operators, sources: names to choose from.
    """
    confidence = {"type": "number", "minimum": 0, "maximum": 1}
    operator = {"operator": one_of(operators), "sources": array(one_of(sources), 4, 1), "confidence": confidence}
    return Wording(
        "operators",
        VERSION,
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
