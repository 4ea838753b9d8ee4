"""A model for tests that answers by a hash of question and row: the same question about the same row, the same answer, always."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Reply, Request, RowsReply, RowsRequest
from uql.llm.questions import Choice, Compare, Duplicate, Extract, Predicate, Question, Row, Score, Write

GROUPS = ["apples", "pears", "plums"]


def digest(question: Question, row: Row) -> int:
    shown = repr((question.text, [(c.name, c.value) for c in row.cells], row.holes))
    return int.from_bytes(blake2b(shown.encode(), digest_size=8).digest(), "big")


class HashModel:
    """A Provider in this process. `rates`: share of yes by the text of a condition, 0.5 where not given."""

    name = "hash"
    is_local = True
    limits = Limits(concurrency=64)
    capabilities = Capabilities(probabilities=True)

    def __init__(
        self,
        rates: dict[str, float] | None = None,
        price: Price | None = None,
        answers: Callable[[Question, Row], Any] | None = None,
    ) -> None:
        self.rates, self.price, self.answers = rates or {}, price or Price(0.2, 0.8), answers
        self.calls = 0
        self.asked: list[tuple[str, ...]] = []  # texts of every request

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return 50, 5

    async def answer(self, request: Request) -> Reply:
        self.calls += 1
        self.asked.append(tuple(q.text for q in request.questions))
        return Reply(tuple(self._answer(q, request.row) for q in request.questions), 50, len(request.questions))

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        replies = [await self.answer(part) for part in request.single_requests()]
        return RowsReply(tuple(r.answers for r in replies), 30 * len(replies), sum(r.output_tokens for r in replies))

    def _answer(self, question: Question, row: Row) -> Answer:
        if self.answers is not None and not isinstance(question, Write):
            return Answer(self.answers(question, row))
        n = digest(question, row)
        match question:
            case Predicate() | Duplicate():
                yes = n % 1_000_003 / 1_000_003 < self.rates.get(question.text, 0.5)
                return Answer(yes, 1.0 if yes else 0.0)
            case Choice(labels=labels, none_of_these=none):
                known = [*sorted(labels), *(["none of these"] if none and n % 4 == 0 else [])]
                return Answer(known[n % len(known)])
            case Score(levels=levels):
                return Answer(float(n % levels))
            case Compare():
                return Answer("a" if n % 2 else "b")
            case Extract(type=type_):
                return Answer(float(n % 10) if type_ in ("DOUBLE", "BIGINT", "INTEGER") else f"value {n % 5}")
            case Write(task="taxonomy"):
                return Answer([{"name": g, "description": g} for g in GROUPS])
            case Write(task="examples"):
                return Answer({"yes": ["yes"], "no": ["no"]})
        return Answer(f"text {n % 7}")

    async def aclose(self) -> None:
        pass
