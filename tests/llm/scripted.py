"""A provider for tests that answers by a function, and counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Reply, Request
from uql.llm.questions import Cell, Choice, Compare, Predicate, Question, Row, Score

CHEAP = Price(1.0, 2.0)
Script = Callable[[Request, int], Any]


def row(text: str | None, **holes: str) -> Row:
    return Row((Cell("text", text),), tuple(holes.items()))


def by_length(question: Question, about: Row) -> Answer:
    """An answer that depends on question and row alone."""
    n = sum(len(str(c.value)) for c in about.cells) + len(question.text)
    match question:
        case Predicate():
            return Answer(n % 2 == 0, float(n % 2 == 0))
        case Choice():
            return Answer(question.labels[n % len(question.labels)])
        case Score():
            return Answer(float(n % question.levels))
        case Compare():
            return Answer(question.reply(about).options[0])
    return Answer(f"value {n}")


class Scripted:
    """Answers by `script(request, number of the call)`: a Reply, a list of Answers, an Exception to be raised, or None for by_length."""

    is_local = True
    capabilities = Capabilities(probabilities=True)

    def __init__(
        self,
        script: Script | None = None,
        *,
        name: str = "scripted",
        latency_s: float = 0.0,
        concurrency: int = 8,
        price: Price | None = CHEAP,
        tokens: tuple[int, int] = (10, 2),
        limits: Limits | None = None,
    ) -> None:
        self.name, self.script, self.latency_s, self.price, self.tokens = name, script, latency_s, price, tokens
        self.limits = limits or Limits(concurrency=concurrency)
        self.calls: list[Request] = []
        self.in_flight = self.most_in_flight = 0
        self.closed = False

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return self.tokens

    def answer(self, request: Request) -> Awaitable[Reply]:
        return self._answer(request)

    async def _answer(self, request: Request) -> Reply:
        self.calls.append(request)
        number = len(self.calls)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            said = self.script(request, number) if self.script else None
            if isinstance(said, Exception):
                raise said
            if isinstance(said, Reply):
                return said
            answers = said if said is not None else [by_length(q, request.row) for q in request.questions]
            return Reply(tuple(answers), *self.tokens)
        finally:
            self.in_flight -= 1

    async def aclose(self) -> None:
        self.closed = True
