"""What all chat providers do with a request: questions about a row travel together, a text is asked for alone, rows that share a
request are answered by a list. How a message is sent is each provider's own."""

from __future__ import annotations

import json
from abc import abstractmethod
from copy import copy
from dataclasses import replace
from typing import Any

from uql.llm.ledger import Ledger
from uql.llm.prompts import fused, several
from uql.llm.prompts.json_schema import json_form
from uql.llm.providers import strict
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Reply, Request, RowsReply, RowsRequest, Usage
from uql.llm.providers.batches import Batches, Service
from uql.llm.providers.chat import cut, output_at_most, rows_output_at_most, with_probabilities
from uql.llm.providers.chat_reply import ChatReply
from uql.llm.providers.http_client import learnt
from uql.llm.questions import Question, Row
from uql.operators.record import Prompt
from uql.operators.replies import Text

IN_A_BATCH = 2048  # requests that wait for replies at once: as many as the gate has in hand


class ChatProvider:
    """One chat model.

    Attributes:
        is_local: rows stay on this machine: a server here takes schemas with bounds.
    """

    name: str
    model: str
    is_local = False
    limits: Limits
    price: Price | None
    batches: Service | None = None  # the vendor's batch API
    _client: Any
    _talks = False  # it wrote more than the word that was asked for: from then on it is asked for JSON

    async def aclose(self) -> None:
        await self._client.close()

    def _update_limits(self, requests: float | None, tokens: float | None) -> None:
        self.limits = learnt(self.limits, requests, tokens)

    @abstractmethod
    async def _ready(self, row: Row, usage: Usage) -> Capabilities:
        """What the model can do, tried where it is not known. Raises CallError where it cannot be shown the row."""

    @abstractmethod
    async def _message(self, words: Prompt, row: Row, body: dict[str, Any], usage: Usage) -> ChatReply:
        """The reply to one message that shows the media of a row, counted; `body` is that of OpenAI's protocol, with `max_tokens`."""

    def in_batches(self, ledger: Ledger) -> ChatProvider:
        """The same model by its vendor's batch API: half the price, replies within a day."""
        assert self.batches is not None
        provider = copy(self)
        provider._client = Batches(self._client, self.batches, ledger, name=self.name, model=self.model)
        provider.limits = Limits(concurrency=IN_A_BATCH, timed=False)
        provider.price = None if self.price is None else self.price.halved()
        return provider

    def _with_room(self, bound: int) -> int:
        """The cap of a reply of at most `bound` tokens."""
        return bound

    async def answer(self, request: Request) -> Reply:
        usage = Usage()
        can = await self._ready(request.row, usage)
        replies = [question.reply() for question in request.questions]
        places = [n for n, reply in enumerate(replies) if not isinstance(reply, Text)]
        answers: dict[int, Answer] = {}
        if len(places) == len(replies):
            return Reply(await self._together(request, can, usage), **usage.totals())
        if places:
            answers.update(zip(places, await self._together(request.only(places), can, usage), strict=True))
        for n, reply in enumerate(replies):
            if isinstance(reply, Text):
                answers[n] = await self._write(request.questions[n], reply, request, can, usage)
        ordered = tuple(answers[n] for n in range(len(replies)))
        return Reply(ordered, **usage.totals())

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        """Several rows in one request, with a list of answers as JSON; these have no probability."""
        usage = Usage()
        can = await self._ready(Row(), usage)
        body: dict[str, Any] = {"max_tokens": self._with_room(rows_output_at_most(request))}
        if can.schema:
            schema = several.schema(request.questions, len(request.rows) if self.is_local else None)
            body["response_format"] = json_form("answers", schema)
        words = several.prompt(request.questions, request.rows, request.seed)
        reply = await self._message(words, Row(), body, usage)
        answers = several.answers(reply.text, reply.problem(), request.questions, request.rows)
        return RowsReply(answers, **usage.totals())

    async def _together(self, request: Request, can: Capabilities, usage: Usage) -> tuple[Answer, ...]:
        """The answers to questions that are asked in one message: none of them asks for a text."""
        questions, row = request.questions, request.row
        bound = output_at_most(questions)
        cut_row = self._cut(row, can, self._with_room(bound), usage)
        body: dict[str, Any] = {"max_tokens": self._with_room(bound)}
        is_word = fused.is_word(questions, row, request.errors) and not self._talks
        if can.schema and not is_word:
            body["response_format"] = json_form("answers", fused.schema(questions))
        if can.probabilities:
            body |= {"logprobs": True, "top_logprobs": 20}
        if is_word:
            words = fused.word(questions[0], cut_row)
        else:
            words = fused.prompt(questions, cut_row, request.seed, request.errors)
        reply = await self._message(words, row, body, usage)
        problem = reply.problem()
        if problem is not None:
            self._talks |= is_word and problem.kind == "truncated" and bool(reply.text.strip())
            return (Answer(problem=problem),) * len(questions)
        if is_word:
            answers: tuple[Answer, ...] = (fused.read_word(reply.text, questions[0], row),)
            self._talks |= answers[0].problem is not None
        else:
            answers = fused.read(reply.text, questions, row)
        return with_probabilities(answers, questions, row, reply.text, reply.tokens) if reply.tokens else answers

    def _cut(self, row: Row, can: Capabilities, reserved: int, usage: Usage) -> Row:
        """The row with texts that fit the context beside so many tokens."""
        cut_row, was_cut = cut(row, can.context, reserved)
        if was_cut:
            usage.warnings.append(f"rows longer than {self.name} can be shown were cut at their end")
        return cut_row

    async def _write(
        self, question: Question, reply: Text, request: Request, can: Capabilities, usage: Usage
    ) -> Answer:
        words = question.operator.words.single_prompt(question, request.row, request.seed)
        body: dict[str, Any] = {"max_tokens": self._with_room(reply.max_tokens)}
        if reply.temperature:
            body |= {"temperature": reply.temperature, "seed": reply.seed}
        if reply.schema is not None and can.schema:
            schema = json.loads(reply.schema) if self.is_local else strict.schema(reply.schema)
            body["response_format"] = json_form("reply", schema)
        elif reply.schema is not None:
            words = replace(words, user=f"{words.user}\n\nAnswer with JSON of this schema: {reply.schema}")
        chat_reply = await self._message(words, request.row, body, usage)
        problem = chat_reply.problem()
        if problem is not None:
            return Answer(problem=problem)
        if reply.schema is not None and can.schema and not self.is_local:
            return strict.read(chat_reply.text, reply)
        return reply.read(chat_reply.text)
