"""Whether a number that a small model read from a row stands in the row."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from uql.llm.questions import Row

# Asked for with these words, a number is counted, judged or worked out, and need not stand in the row.
_WORKED_OUT = re.compile(
    r"\b(number of|how many|count|counts|rating|rate|score|scale|estimate\w*|probab\w*|likel\w*|percent\w*|share|total|average|mean|sum|"
    r"difference|age|years? since|stars?|level|degree|rank|sentiment|how \w+)\b|\d",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d[\d,.\u00a0 ']*\d|\d")
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip


def not_in_row(value: Any, question: str, row: Row) -> bool:
    """The value is a number that is nowhere in the row, and the question asks for one that the row states.

    A question that asks to count, rate or compute is left alone, as is a number of a row without text.

    Args:
        value: that the model gave.
        question: its text.

    >>> from uql.llm.questions import Cell
    >>> not_in_row(31, "the points of Davis", Row((Cell("report", "Davis had 27 points"),)))
    True
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or _WORKED_OUT.search(question):
        return False
    texts = [c.value for c in row.cells if isinstance(c.value, str)]
    if not texts:
        return False
    magnitude = abs(float(value))
    for text in texts:
        for number in _NUMBER.findall(text):
            for digits in {
                re.sub(r"[,\u00a0 ']", "", number),
                *re.split(r"[\u00a0 ']", number),
                *re.split(r"[,.\u00a0 ']", number),
            }:
                try:
                    if float(digits.rstrip(".,").replace(",", "")) == magnitude:
                        return False
                except ValueError:
                    continue
        if magnitude in range(len(_WORDS)) and _WORDS[int(magnitude)] in re.findall(r"[a-z]+", text.lower()):
            return False
    return True
