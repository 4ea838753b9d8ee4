"""The tables of a scope joined along its links, and names as UQL writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from uql.nl.schema.name_words import snake
from uql.nl.schema.scope import Link, Scope

MOST_TABLES = 5  # of one query
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "DOUBLE", "FLOAT", "DECIMAL", "REAL")
_RESERVED_WORDS = "select from where group order by limit as and or not on join union having case when"
RESERVED = frozenset(_RESERVED_WORDS.split())
_CALLED = re.compile(r"(name|(^|[_.\"])(title|label))s?\"?$")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def joins(scope: Scope) -> Iterator[tuple[tuple[str, ...], tuple[Link, ...]]]:
    """Every table of the scope, and up to five tables along its links, with the links; the fewest tables first."""
    for size in range(1, MOST_TABLES + 1):
        for chosen in combinations(scope.sources, size):
            if (found := joined(chosen, scope.links)) is not None:
                yield found


def joined(chosen: Sequence[str], links: Sequence[Link]) -> tuple[tuple[str, ...], tuple[Link, ...]] | None:
    """The tables in an order in which each is linked to one before it, with those links; None where they do not hang together."""
    placed, used = [chosen[0]], []
    waiting = list(chosen[1:])
    mine = [link for link in links if link.left.table in chosen and link.right.table in chosen]
    while waiting:
        step = next(
            (
                (t, link)
                for t in waiting
                for link in mine
                if (link.left.table == t and link.right.table in placed)
                or (link.right.table == t and link.left.table in placed)
            ),
            None,
        )
        if step is None:
            return None
        placed.append(step[0])
        used.append(step[1])
        waiting.remove(step[0])
    return tuple(placed), tuple(used)


def from_text(tables: Sequence[str], links: Sequence[Link]) -> str:
    """What stands behind FROM."""
    text = named(tables[0])
    for table, link in zip(tables[1:], links, strict=True):
        text += f" JOIN {named(table)} ON " + " = ".join(named(c.table, c.name) for c in (link.left, link.right))
    return text


def named(*parts: str) -> str:
    """A name as UQL writes it, quoted where it must be."""
    return ".".join(part if _PLAIN.match(part) and part.lower() not in RESERVED else f'"{part}"' for part in parts)


def is_called(name: str) -> bool:
    """Is a column so named what its rows are called?

    >>> is_called("companyName"), is_called("albums.title"), is_called("fname"), is_called("named_by")
    (True, True, True, False)
    """
    return _CALLED.search(snake(name)) is not None
