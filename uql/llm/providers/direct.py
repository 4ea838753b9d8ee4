"""One question a prompt, the row first: the measured form of small models, over a server's log-probabilities and JSON schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uql.llm.prompts.json_schema import closed, json_form
from uql.llm.providers.base import Answer, Problem
from uql.llm.providers.chat import Token
from uql.llm.providers.labels import label_masses, yes_no
from uql.llm.questions import Question, Row
from uql.operators.replies import Level, OneOf, Shape, YesNo, json_value


def one_token(reply: Shape) -> bool:
    """Is the reply read from the log-probabilities of one token? A level is: it is asked whether it is much."""
    return isinstance(reply, YesNo | Level) or (isinstance(reply, OneOf) and bool(reply.letters))


def body(question: Question) -> dict[str, Any]:
    """The parameters of the request beside its messages."""
    reply = question.reply()
    if one_token(reply):
        return {"logprobs": True, "top_logprobs": 20}
    return {"response_format": json_form("value", closed({"value": reply.json_schema()}))}


def tokens(question: Question, bound: int) -> int:
    """Tokens that the reply may have."""
    return 1 if one_token(question.reply()) else bound


def read(question: Question, row: Row, text: str, tokens: Sequence[Token]) -> Answer:
    """The answer in a reply to `body`.

    Args:
        tokens: its tokens, each with its likely alternatives.
    """
    reply = question.reply(row)
    if one_token(reply):
        return by_token(reply, tokens[0].top if tokens else {}, text)
    try:
        value = json_value(text)["value"]
    except (ValueError, KeyError, TypeError):
        return Answer(problem=Problem("truncated", "a JSON object with a value was wanted", text))
    return reply.read(value)


def by_token(reply: Shape, top: dict[str, float], text: str) -> Answer:
    """The answer that the masses on the likely words of one token give: on Yes and No, or on the letters of a OneOf.

    A level lies between "little" (0) and "much" (levels − 1).

    Args:
        top: probability by likely word.
    """
    if isinstance(reply, OneOf):
        masses = label_masses([top], reply.letters, [])
        if sum(masses) <= 0:
            return _unlikely(f"neither {' nor '.join(reply.letters)}", text)
        best = max(range(len(masses)), key=masses.__getitem__)
        return Answer(reply.labels[best], masses[best] / sum(masses))
    yes, no = yes_no(top)
    if yes + no <= 0:
        return _unlikely("neither Yes nor No", text)
    if isinstance(reply, Level):
        return Answer((reply.levels - 1) * yes / (yes + no), max(yes, no) / (yes + no))
    return Answer(yes > no, yes / (yes + no))


def _unlikely(what: str, text: str) -> Answer:
    return Answer(problem=Problem("wrong_type", f"{what} was among the likely words", text))
