"""Names of columns and tables that are each said once, as DuckDB numbers them."""

from __future__ import annotations

from collections.abc import Iterable
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
