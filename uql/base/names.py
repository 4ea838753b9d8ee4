"""Names of columns and tables: numbered where they are said twice, as DuckDB does, and found where a word is near to one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import count


def free_name(name: str, others: Iterable[str]) -> str:
    """The name, numbered where one of the others is the same in upper or lower case.

    >>> free_name("n", {"m"}), free_name("N", {"n", "n_1"})
    ('n', 'N_2')
    """
    return free_names([name], others)[0]


def free_names(names: Iterable[str], others: Iterable[str] = ()) -> tuple[str, ...]:
    """The names, numbered so that each is another than the others and than those before it: a second `n` is `n_1`.

    >>> free_names(["n", "n", "N_1", "n"])
    ('n', 'n_1', 'N_1_1', 'n_2')
    """
    free: list[str] = []
    used = {other.lower() for other in others}
    for name in names:
        free.append(next(n for i in count() if (n := f"{name}_{i}" if i else name).lower() not in used))
        used.add(free[-1].lower())
    return tuple(free)


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
