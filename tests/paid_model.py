"""A model for tests that keeps what it is asked and paid for, and what a result says that the same statement gives again."""

from __future__ import annotations

from typing import Any

from hash_model import HashModel

import uql
from uql.llm.providers.base import Limits, Reply, Request


class Paid(HashModel):
    """Keeps what it is asked."""

    limits = Limits(concurrency=8)

    def __init__(self, **more: Any) -> None:
        super().__init__({"it is so": 0.3, "it is nice": 0.2}, **more)
        self.paid: list[tuple[Any, ...]] = []

    async def answer(self, request: Request) -> Reply:
        cells = tuple(c.value for c in request.row.cells) + tuple(request.row.holes)
        self.paid.append((tuple(q.text for q in request.questions), cells))
        return await super().answer(request)

    def since(self, before: int) -> int:
        return len(self.paid) - before


def said(result: uql.Result) -> Any:
    return (
        result.fetchall(),
        result.estimates,
        result.exact,
        result.partial,
        [n for n in result.notes if "fresh" not in n],
    )
