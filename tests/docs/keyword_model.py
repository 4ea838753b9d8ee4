"""A model that says yes where a word of the question stands in the row: the example of docs/extending.md."""

from __future__ import annotations

import re

from uql.base.settings import Settings
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Problem, Reply, Request
from uql.llm.questions import Question
from uql.operators.replies import YesNo


class KeywordModel:
    """Answers conditions; of everything else it says that it cannot."""

    limits = Limits(concurrency=32)
    price: Price | None = Price(0.0, 0.0)  # USD per million tokens; None: unknown, and a cap on USD is refused
    capabilities = Capabilities(probabilities=False)
    is_local = True  # rows stay on this machine: nothing is announced before they are sent

    def __init__(self, name: str) -> None:
        self.name = f"keywords:{name}"

    def version(self, question: Question) -> str:
        """Part of the ledger's key: a new version asks again."""
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        """What is reserved in the budget before the request is sent."""
        return 0, 0

    async def answer(self, request: Request) -> Reply:
        """One row, every question about it; an answer each, in order. A request that brings no reply raises CallError."""
        row = " ".join(str(cell.value) for cell in request.row.cells).lower()
        return Reply(tuple(self._one(question, row) for question in request.questions))

    def _one(self, question: Question, row: str) -> Answer:
        if not isinstance(question.reply(), YesNo):  # one of five shapes: YesNo, OneOf, Level, Value, Text
            return Answer(problem=Problem("refusal", "only conditions are answered"))
        words = re.findall(r"\w{4,}", question.text.lower())
        return Answer(any(word in row for word in words))

    async def aclose(self) -> None:
        """Called when the run ends."""


def open_provider(name: str, settings: Settings) -> KeywordModel:
    """What the entry point names: `keywords:NAME` comes here with NAME."""
    return KeywordModel(name)
