"""What one call of a function may take. DuckDB looks at its limits of time and memory between rows, not inside a call.

So a call that makes a text much longer, or takes the product of two lengths, is bounded by what is written in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GROWING = frozenset({"replace", "regexp_replace"})
PAIRED = frozenset({"levenshtein", "editdist3", "damerau_levenshtein"})  # time and memory: one length times the other
MOST_GROWTH = 128  # of a text, by all calls of a statement one after another
SHORT = 1_000  # characters of each of a pair
_REFERENCE = re.compile(r"\\\d")


def growth(name: str, pattern: str | None, replacement: str | None) -> float | None:
    r"""How many times longer `replace` or `regexp_replace` may make a text; None: no bound, the replacement is not written out.

    Args:
        pattern: what is replaced, as written; None: an expression.

    >>> growth("replace", "a", "bb"), growth("replace", "&", None), growth("regexp_replace", "(a)", r"\1-\1")
    (2.0, None, 3.0)
    """
    if replacement is None:
        return None
    if name == "replace":
        return max(1.0, len(replacement) / max(1, len(pattern or "")))
    copies = len(_REFERENCE.findall(replacement))  # each may be all that was found
    plain = len(replacement) - 2 * copies
    return float(max(1, copies + plain + (plain if _finds_nothing(pattern) else 0)))


def too_long(factors: Sequence[float | None]) -> str:
    """Why calls that make texts longer may make them too long, one after another; "" where they may not."""
    total = 1.0
    for factor in factors:
        if factor is None:
            return "replace and regexp_replace need their replacement written out as a text"
        total *= factor
    return "" if total <= MOST_GROWTH else f"its replacements may make a text {total:,.0f} times longer"


def _finds_nothing(pattern: str | None) -> bool:
    """May the pattern be found between any two characters?"""
    try:
        return pattern is None or re.search(pattern, "") is not None
    except (re.error, RecursionError, OverflowError):
        return True
