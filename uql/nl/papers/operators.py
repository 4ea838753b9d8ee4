"""The operator generator: which of the three operators may answer a sub-query, over which sources, how surely.

It sees titles and short captions alone. Confidences lie in the range of the rank. Source: Meta Engine, section 4.2 and figure 6.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from uql.base.schema import Modality
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Operator
from uql.nl.prompts import meta_engine as words
from uql.nl.schema.scope import Source
from uql.operators.texts import quoted

CAPTION = 120  # characters
READS = {Operator.TEXT: (Modality.TEXT, Modality.DOCUMENT), Operator.IMAGE: (Modality.IMAGE,)}  # TABLE: every source


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
    return kinds[-1] if len(kinds) > 1 and len(source.visible_fields) <= 3 else " with ".join(kinds)


def _caption(source: Source) -> str:
    if source.description:
        return quoted(source.description)
    names = ", ".join(f.name for f in source.visible_fields)
    return names if len(names) <= CAPTION else names[: CAPTION - 1] + "…"


async def generate(ctx: AskContext, query: str, sources: Mapping[str, Source]) -> tuple[Ranked, ...]:
    """The operators in order of confidence, each at most once. Those that the data has nothing for are left out.

    Where the model gives none, every operator that has a source is tried, images and texts first.

    Args:
        query: one sub-query.
        sources: by name; what they hold decides which operators are possible.
    """
    possible = {
        op: [n for n, s in sources.items() if op is Operator.TABLE or any(s.has(kind) for kind in READS[op])]
        for op in Operator
    }
    possible = {op: names for op, names in possible.items() if names}
    wording = words.ranking(query, captions(sources), list(possible), list(sources))
    reply = await ctx.say_or(wording, {"operators": ()})
    return ranked(reply, possible) or fallback(possible)


def ranked(reply: Mapping[str, Any], possible: Mapping[Operator, Collection[str]]) -> tuple[Ranked, ...]:
    """The reply by its confidences, each moved into the range of its rank; what cannot be is left out.

    >>> [r.confidence for r in ranked({"operators": [{"operator": "TableAnalytics", "sources": ["t"], "confidence": 1}]},
    ...                               {Operator.TABLE: ["t"]})]
    [0.95]
    """
    by_operator: dict[Operator, Ranked] = {}
    for item in reply["operators"]:
        operator = Operator(item["operator"])
        sources = tuple(dict.fromkeys(item["sources"]))
        if operator not in by_operator and set(sources) & set(possible.get(operator, ())):
            by_operator[operator] = Ranked(operator, sources, float(item["confidence"]))
    ordered = sorted(by_operator.values(), key=lambda r: -r.confidence)
    ranges = words.RANGES if len(ordered) > 2 else (words.RANGES[0], words.RANGES[-1])
    return tuple(
        Ranked(r.operator, r.sources, min(high, max(low, r.confidence)))
        for r, (low, high) in zip(ordered, ranges, strict=False)
    )


def fallback(possible: Mapping[Operator, Collection[str]]) -> tuple[Ranked, ...]:
    order = (Operator.IMAGE, Operator.TEXT, Operator.TABLE)
    low = words.RANGES[-1][0]
    return tuple(Ranked(op, tuple(possible[op]), low) for op in order if op in possible)
