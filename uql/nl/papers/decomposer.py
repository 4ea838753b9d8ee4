"""The decomposer: a question as one to three self-contained sub-queries, basic to advanced. Source: Meta Engine, section 4.1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uql.base.errors import QuestionError
from uql.nl.ask.context import AskContext
from uql.nl.prompts import decomposer as words


@dataclass(frozen=True, slots=True)
class SubQuery:
    """One part of a question; `uses` are the positions (from 0) of the earlier ones whose answers it needs."""

    text: str
    uses: tuple[int, ...] = ()


async def decompose(ctx: AskContext, question: str, captions: str) -> tuple[SubQuery, ...]:
    """One to three sub-queries; the question itself where the model gives none. Equal ones are one."""
    try:
        said = await ctx.say(words.wording(question, captions))
    except QuestionError:
        return (SubQuery(question),)
    parts: list[SubQuery] = []
    place: list[int] = []  # of each reply's sub-query among the parts
    for item in said["sub_queries"][: words.MOST]:
        text = " ".join(item["query"].split())
        same = next((i for i, part in enumerate(parts) if part.text.casefold() == text.casefold()), None)
        if not text or same is not None:
            place.append(same if same is not None else -1)
            continue
        uses = {place[n - 1] for n in item.get("uses", ()) if 0 < n <= len(place) and place[n - 1] >= 0}
        place.append(len(parts))
        parts.append(SubQuery(text, tuple(sorted(uses))))
    return tuple(parts) or (SubQuery(question),)


async def refine(ctx: AskContext, text: str, earlier: Sequence[tuple[str, str]]) -> str:
    """The sub-query with the names and values of earlier answers filled in; as it was where the model gives no other.

    Args:
        earlier: (sub-query, answer in words) of those it needs.
    """
    found = "\n".join(f"{i}. {asked} → {answer}" for i, (asked, answer) in enumerate(earlier, 1))
    try:
        said = await ctx.say(words.refining(text, found))
    except QuestionError:
        return text
    return " ".join(said["query"].split()) or text
