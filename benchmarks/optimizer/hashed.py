"""A model in this process that answers by a hash of question and row: the same question about the same row, the same answer."""

from __future__ import annotations

from hashlib import blake2b

from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Reply, Request, RowsReply, RowsRequest
from uql.llm.questions import Choice, Compare, Extract, Predicate, Question, Row, Score, Write

GROUPS = ("apples", "pears", "plums")
MENTIONS = "it mentions "
CHARS_PER_TOKEN = 4
INSTRUCTION_TOKENS = 40  # of a request, beside the questions and the row


class Hashed:
    """A provider. `rates`: share of yes by a word of the condition, 0.5 where it holds none of them.

    "it mentions WORD" is read from the row: so embeddings can tell something of it.
    """

    name, is_local = "hashed", True
    limits = Limits(concurrency=64)
    capabilities = Capabilities(probabilities=True)

    def __init__(self, rates: dict[str, float] | None = None, price: Price | None = None) -> None:
        self.rates, self.price = rates or {}, price or Price(0.2, 0.8)

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return self._input(request), 200

    async def answer(self, request: Request) -> Reply:
        answers = tuple(self._one(question, request.row) for question in request.questions)
        written = sum(1 + len(str(a.value)) // CHARS_PER_TOKEN for a in answers)
        return Reply(answers, self._input(request), written)

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        """What is said once is counted once."""
        replies = [await self.answer(part) for part in request.single_requests()]
        asked = sum(len(q.text) + sum(map(len, getattr(q, "labels", ()))) for q in request.questions)
        once = INSTRUCTION_TOKENS + asked // CHARS_PER_TOKEN
        read = once + sum(reply.input_tokens - once for reply in replies)
        return RowsReply(tuple(r.answers for r in replies), read, sum(r.output_tokens for r in replies))

    async def aclose(self) -> None:
        return None

    def _input(self, request: Request) -> int:
        shown = sum(len(str(cell.value)) for cell in request.row.cells) + sum(len(v) for _, v in request.row.holes)
        asked = sum(len(q.text) + sum(map(len, getattr(q, "labels", ()))) for q in request.questions)
        written = sum(len(str(c.value)) for q in request.questions for r in getattr(q, "shown", ()) for c in r.cells)
        return INSTRUCTION_TOKENS + (shown + asked + written) // CHARS_PER_TOKEN

    def _one(self, question: Question, row: Row) -> Answer:
        told = repr((question.text, [(c.name, c.value) for c in row.cells], row.holes))
        n = int.from_bytes(blake2b(told.encode(), digest_size=8).digest(), "big")
        match question:
            case Predicate(text=text) if text.startswith(MENTIONS):
                yes = any(text.removeprefix(MENTIONS) in str(cell.value) for cell in row.cells)
                return Answer(yes, float(yes))
            case Predicate(text=text):
                rate = next((rate for word, rate in self.rates.items() if word in text), 0.5)
                yes = n % 1_000_003 / 1_000_003 < rate
                return Answer(yes, float(yes))
            case Choice(labels=labels):
                return Answer(sorted(labels)[n % len(labels)])
            case Score(levels=levels):
                return Answer(float(n % levels))
            case Compare():
                return Answer("a" if n % 2 else "b")
            case Extract(type=type_):
                return Answer(n % 10 if type_ in ("DOUBLE", "BIGINT", "INTEGER") else f"value {n % 5}")
            case Write(task="taxonomy"):
                return Answer([{"name": group, "description": group} for group in GROUPS])
            case Write(task="examples"):
                return Answer({"yes": ["yes"], "no": ["no"]})
        return Answer(f"text {n % 7}")
