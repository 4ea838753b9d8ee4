"""The operator generator: which of the three operators may answer a sub-query, over which sources, how surely.

It sees titles and short captions alone. Confidences lie in the range of the fit that was named. Source: Meta Engine, section 4.2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from uql.base.errors import QuestionError
from uql.base.schema import Modality
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Operator
from uql.nl.prompts import operators as words
from uql.nl.schema.scope import Source
from uql.operators.texts import quoted

CAPTION = 120  # characters
MODALITY = {Operator.TEXT: Modality.TEXT, Operator.IMAGE: Modality.IMAGE}


@dataclass(frozen=True, slots=True)
class Ranked:
    """An operator with its sources, and how surely it answers the sub-query."""

    operator: Operator
    sources: tuple[str, ...]
    confidence: float


def captions(sources: Mapping[str, Source]) -> str:
    """One line a source: its name, what it holds, and its caption."""
    return "\n".join(f"{name} ({holds(source)}): {_caption(source)}" for name, source in sources.items())


def holds(source: Source) -> str:
    kinds = ["table"] + [
        m.value + "s" for m in (Modality.TEXT, Modality.IMAGE, Modality.AUDIO, Modality.DOCUMENT) if source.has(m)
    ]
    return kinds[-1] if len(kinds) > 1 and len(source.shown) <= 3 else " with ".join(kinds)


def _caption(source: Source) -> str:
    if source.description:
        return quoted(source.description)
    said = ", ".join(f.name for f in source.shown)
    return said if len(said) <= CAPTION else said[: CAPTION - 1] + "…"


def fitting(operator: Operator, sources: Mapping[str, Source]) -> list[str]:
    """The sources that an operator can read: text for TextAnalytics, images for ImageAnalytics, every table for TableAnalytics."""
    if operator is Operator.TABLE:
        return list(sources)
    kinds = (Modality.TEXT, Modality.DOCUMENT) if operator is Operator.TEXT else (Modality.IMAGE,)
    return [name for name, source in sources.items() if any(source.has(kind) for kind in kinds)]


async def generate(ctx: AskContext, query: str, sources: Mapping[str, Source]) -> tuple[Ranked, ...]:
    """The operators in order of confidence, each at most once. Those that the data has nothing for are left out.

    Where the model gives none, every operator that has a source is tried, images and texts first.
    """
    possible = {op: names for op in Operator if (names := fitting(op, sources))}
    try:
        said = await ctx.say(words.wording(query, captions(sources), list(possible), list(sources)))
    except QuestionError:
        return fallback(possible)
    return ranked(said, possible) or fallback(possible)


def ranked(said: Mapping[str, Any], possible: Mapping[Operator, Collection[str]]) -> tuple[Ranked, ...]:
    """The reply with each confidence moved into the range of its fit, sorted; what cannot be is left out.

    >>> [r.confidence for r in ranked({"operators": [{"operator": "TableAnalytics", "sources": ["t"], "fit": "likely", "confidence": 1}]},
    ...                               {Operator.TABLE: ["t"]})]
    [0.89]
    """
    found: dict[Operator, Ranked] = {}
    for item in said["operators"]:
        operator = Operator(item["operator"])
        if operator in found or operator not in possible:
            continue
        low, high = words.FITS[item["fit"]]
        named = tuple(dict.fromkeys(s for s in item["sources"]))
        if not set(named) & set(possible[operator]):
            continue
        found[operator] = Ranked(operator, named, min(high, max(low, float(item["confidence"]))))
    return tuple(sorted(found.values(), key=lambda r: -r.confidence))


def fallback(possible: Mapping[Operator, Collection[str]]) -> tuple[Ranked, ...]:
    order = (Operator.IMAGE, Operator.TEXT, Operator.TABLE)
    low = words.FITS["unlikely"][0]
    return tuple(Ranked(op, tuple(possible[op]), low) for op in order if op in possible)
