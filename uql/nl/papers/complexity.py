"""The complexity checker: is a question answered in one step? Unsure is complex. Source: Meta Engine, section 4.1."""

from __future__ import annotations

from dataclasses import dataclass

from uql.base.errors import QuestionError
from uql.nl.ask.context import AskContext
from uql.nl.prompts import checker as words


@dataclass(frozen=True, slots=True)
class Complexity:
    """The verdict, and the signs it rests on."""

    is_complex: bool
    signs: tuple[str, ...] = ()


async def check(ctx: AskContext, question: str, captions: str) -> Complexity:
    """Asks the model for the signs. A sign of a complex question, doubt, or a reply that cannot be read make it complex."""
    try:
        said = await ctx.say(words.wording(question, captions))
    except QuestionError:
        return Complexity(True)
    signs = tuple(dict.fromkeys(said["signs"]))
    return Complexity(said["verdict"] != "simple" or any(sign in words.COMPLEX for sign in signs), signs)
