"""One question a prompt, the row first: the measured form of small models, over a server's log-probabilities and JSON schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from uql.llm.prompts import choice, compare, extract
from uql.llm.providers.base import Answer, Problem
from uql.llm.providers.chat import Token
from uql.llm.providers.labels import label_masses, yes_no
from uql.llm.questions import Choice, Compare, Extract, Predicate, Question, Row, Score

ONE_TOKEN = (Predicate, Score, Compare)


def body(question: Question) -> dict[str, Any]:
    """The parameters of the request beside its messages."""
    if isinstance(question, ONE_TOKEN):
        return {"logprobs": True, "top_logprobs": 20}
    inner = choice.schema(question) if isinstance(question, Choice) else extract.schema(_extract(question))
    wanted = {"type": "object", "properties": {"value": inner}, "required": ["value"], "additionalProperties": False}
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "value", "schema": wanted, "strict": True}}
    }


def tokens(question: Question, bound: int) -> int:
    """Tokens that the reply may have."""
    return 1 if isinstance(question, ONE_TOKEN) else bound


def read(question: Question, row: Row, text: str, said: Sequence[Token]) -> Answer:
    """The answer in a reply to `body`."""
    top = said[0].top if said else {}
    match question:
        case Predicate():
            yes, no = yes_no(top)
            return Answer(yes > no, yes / (yes + no)) if yes + no > 0 else _unlikely("neither Yes nor No", text)
        case Compare():
            first, second = label_masses([top], ["A", "B"], [])
            if first + second <= 0:
                return _unlikely("neither A nor B", text)
            share = first / (first + second)
            return Answer(list(compare.sides(row))[0 if share >= 0.5 else 1], max(share, 1 - share))
        case Score():
            return scored(question, top, text)
    try:
        held = json.loads(text)["value"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return Answer(problem=Problem("truncated", "a JSON object with a value was wanted", text))
    return choice.read(held, question) if isinstance(question, Choice) else extract.read(held, _extract(question))


def scored(question: Score, top: dict[str, float], text: str) -> Answer:
    """The level between "little" (0) and "much" (levels − 1) that the masses on Yes and No say."""
    yes, no = yes_no(top)
    if yes + no <= 0:
        return _unlikely("neither Yes nor No", text)
    return Answer((question.levels - 1) * yes / (yes + no), max(yes, no) / (yes + no))


def _extract(question: Question) -> Extract:
    return question if isinstance(question, Extract) else Extract(question.text)


def _unlikely(what: str, text: str) -> Answer:
    return Answer(problem=Problem("wrong_type", f"{what} was among the likely words", text))
