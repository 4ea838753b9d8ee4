"""Names that are near to a word that somebody wrote."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def distance(a: str, b: str, limit: int) -> int:
    """Damerau–Levenshtein distance (adjacent swaps count one), or limit + 1 when it is greater.

    Args:
        limit: the greatest distance that matters.

    >>> distance("satrs", "stars", 2), distance("star", "stars", 2), distance("plot", "stars", 2)
    (1, 1, 3)
    """
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(row[j - 1] + 1, last[j] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        if min(row) > limit:
            return limit + 1
        before, last = last, row
    return min(last[-1], limit + 1)


def suggestion(name: str, names: Iterable[str]) -> str:
    """`did you mean x? `, or nothing when no name is near.

    >>> suggestion("Star", ["stars", "text"]), suggestion("year", ["stars"])
    ('did you mean stars? ', '')
    """
    low = {spelling.lower(): spelling for spelling in names}
    close = get_close_matches(name.lower(), low, 1)
    return f"did you mean {low[close[0]]}? " if close else ""
