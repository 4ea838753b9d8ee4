"""Names of groups that a model wrote: cleaned before they enter an instruction, and those that mean the same merged.

Names near in meaning are found by their vectors, and the model says which of them are one group.
"""

from __future__ import annotations

import json
from typing import Any

from uql.compiler.virtual import VirtualColumn
from uql.kernels.base import Context
from uql.llm.questions import Write

MOST_CHARS = 80


def one_line(text: str) -> str:
    """At most 80 printable characters of one line.

    >>> one_line("  a\\n  b ")
    'a b'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MOST_CHARS].strip()


def stem(label: str) -> str:
    """What two spellings of one label have in common: case, plural, spaces, hyphens and articles left out.

    >>> stem("The Lost-Cards"), stem("lost card"), stem("companies"), stem("glass")
    ('lost card', 'lost card', 'company', 'glass')
    """
    words = "".join(c if c.isalnum() else " " for c in label.casefold()).split()
    content_words = [w for w in words if w not in ("a", "an", "the")] or words
    return " ".join(map(_singular, content_words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


NEAR = 0.6  # cosine of two names from which the model is asked whether they are one group
MOST_PAIRS = 12  # that are asked about, the nearest ones


async def duplicates(
    column: VirtualColumn, old: tuple[str, ...], new: tuple[str, ...], source: str, ctx: Context
) -> set[str]:
    """The new names that mean what a name before them means: at most one call, none where no two names are near.

    Args:
        old: names that stay, in any case.
        new: names, the first of two duplicates stays.
    """
    pairs = near(old, new, ctx)
    if not pairs or not ctx.purse.fits(1):
        return set()
    schema = {"type": "array", "items": {"type": "boolean"}, "minItems": len(pairs), "maxItems": len(pairs)}
    request = Write(
        column.text,
        task="same",
        schema=json.dumps(schema),
        parameters=tuple((str(i), f"{a} / {b}") for i, (a, b) in enumerate(pairs, 1)),
        max_tokens=20 + 8 * len(pairs),
    )
    return read_same(await ctx.write(request, optional=True, source=source), pairs)


def near(old: tuple[str, ...], new: tuple[str, ...], ctx: Context) -> list[tuple[str, str]]:
    """(name that stays, new name) of the pairs whose cosine is at least NEAR, the nearest first.

    Args:
        old: names that stay.
        new: names that may merge into those, or into each other.
    """
    names = (*old, *new)
    embedder = None if ctx.features is None else ctx.features.store.words
    if embedder is None or len(names) < 2:
        return []
    vectors = embedder.embed([stem(name) for name in names])
    cosines = vectors @ vectors.T
    candidates = [
        (float(cosines[i, j]), names[i], names[j])
        for j in range(max(1, len(old)), len(names))
        for i in range(j)
        if cosines[i, j] >= NEAR
    ]
    return [(a, b) for _, a, b in sorted(candidates, key=lambda pair: -pair[0])[:MOST_PAIRS]]


def read_same(reply: Any, pairs: list[tuple[str, str]]) -> set[str]:
    """The second names of the pairs that the reply says are one group.

    >>> sorted(read_same([True, False, True], [("a", "b"), ("b", "c"), ("d", "e")]))
    ['b', 'e']
    """
    if not isinstance(reply, list) or len(reply) != len(pairs):
        return set()
    return {b for same, (_, b) in zip(reply, pairs, strict=True) if same is True}
