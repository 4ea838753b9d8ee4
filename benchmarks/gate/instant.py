"""A provider in this process that answers at once, by the row's length; and one that keeps a vendor's limits."""

from __future__ import annotations

import asyncio
import time

from uql.llm.providers.base import Answer, CallError, Capabilities, Limits, Price, Reply, Request
from uql.llm.questions import Cell, Extract, Question, Row


def rows(count: int, length: int = 200) -> list[Row]:
    """Rows of one text, each another."""
    return [Row((Cell("text", f"{n:08} ".ljust(length, "x")),)) for n in range(count)]


class Instant:
    """Answers yes to every second row, at once."""

    name = "instant"
    is_local = True
    price = Price(1.0, 1.0)
    capabilities = Capabilities(probabilities=True)

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits(concurrency=64)

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return 60, 2

    async def answer(self, request: Request) -> Reply:
        cell = request.row.cells[0].value
        number = cell[:8] if isinstance(cell, str) else ""
        answers = (
            Answer(f"value {number}") if isinstance(q, Extract) else Answer(number[7:] in tuple("02468"), 0.5)
            for q in request.questions
        )
        return Reply(tuple(answers), 50, 1)

    async def aclose(self) -> None:
        """Nothing is open."""


class Limited(Instant):
    """Refuses what goes beyond its requests and tokens a minute, counted over a minute that slides; each call takes `latency_s`."""

    name = "limited"

    def __init__(self, requests: float, tokens: float, call_tokens: int, latency_s: float) -> None:
        super().__init__(Limits(256, requests_per_minute=requests, tokens_per_minute=tokens, adaptive=True))
        self.requests, self.tokens, self.call_tokens, self.latency_s = requests, tokens, call_tokens, latency_s
        self.begun: list[tuple[float, int]] = []
        self.refused = 0

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return 3 * self.call_tokens, 50

    async def answer(self, request: Request) -> Reply:
        now = time.monotonic()
        recent = [used for at, used in self.begun if at > now - 60]
        if len(recent) >= self.requests or sum(recent) + self.call_tokens > self.tokens:
            self.refused += 1
            raise CallError("rate_limit", "slow down", retry_after_s=0.5)
        self.begun.append((now, self.call_tokens))
        await asyncio.sleep(self.latency_s)
        return Reply((Answer(True, 0.5),) * len(request.questions), self.call_tokens - 1, 1)
