"""Which operators may answer a sub-query, from titles and short captions alone. Source: Meta Engine, section 4.2 and figure 6."""

from __future__ import annotations

from collections.abc import Sequence

from uql.nl.prompts import Wording, array, obj, one_of

VERSION = "operators-1"
FITS = {  # how well → the range that the confidence lies in
    "direct": (0.9, 1.0),
    "likely": (0.7, 0.89),
    "possible": (0.4, 0.69),
    "unlikely": (0.1, 0.39),
}


def wording(query: str, captions: str, operators: Sequence[str], sources: Sequence[str]) -> Wording:
    return Wording(
        "operators",
        VERSION,
        "You choose how a question is answered: TableAnalytics computes over the columns of tables, "
        "TextAnalytics reads texts, ImageAnalytics looks "
        "at images. You see titles and captions only, not the data. Rank the operators that may answer it, the "
        "best first, each with the "
        "sources it needs. direct (0.9 to 1): the title or caption names exactly what is asked. likely (0.7 to "
        "0.89): it is about the same thing. "
        "possible (0.4 to 0.69): it may hold a part of it. unlikely (0.1 to 0.39): a last resort.",
        f"Sources:\n{captions}\n\nQuestion: {query}",
        obj(
            {
                "operators": array(
                    obj(
                        {
                            "operator": one_of(operators),
                            "sources": array(one_of(sources), 4, 1),
                            "fit": one_of(list(FITS)),
                            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                        }
                    ),
                    3,
                    1,
                )
            }
        ),
        320,
    )
