"""local: a GGUF file in this process, through llama.cpp (xllamacpp).

    local                          the default model of the store
    local:NAME  local:/path.gguf   another one;  ?n_ctx=8192&threads=1 behind it

A yes or no, a level and a letter are read from the log-probabilities of one token; a label is decoded under a grammar of the
labels, a value under one of the bare value, a text under a JSON schema. Each question about a row is a prompt of its own
with the row first, so that the next question finds the row evaluated. The row is not fenced: the measured form has none, one
prompt holds one row, and what may be answered is fixed by the reading; control tokens of the chat template are made harmless.
Rows never share a prompt, whatever `rows_per_request` says, so that none can change another's answer; sharing one would save little, as
the instruction that prompts have in common is evaluated once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm import model_files as models
from uql.llm.prompts import fused
from uql.llm.providers.base import Answer, CallError, Capabilities, Limits, Price, Problem, Reply, Request, Usage
from uql.llm.providers.chat_reply import ChatReply, completion, counts, formed
from uql.llm.providers.direct import by_token
from uql.llm.providers.labels import label_masses
from uql.llm.providers.llama import Engine, engine, is_loaded
from uql.llm.providers.stated_numbers import not_in_row
from uql.llm.questions import Cell, Question, Row
from uql.operators.record import Prompt
from uql.operators.replies import Level, OneOf, Text, Value, YesNo, json_value
from uql.operators.rows import VERSION as ROWS
from uql.operators.texts import short
from uql.operators.types import grammar, literal, parse_type

Ask = Callable[..., ChatReply]  # a prompt made of the row, and parameters of the request
LONG_MENU = 6  # options; a longer menu stands before the row where it can be shared: it costs more than it tells

_OPTIONS = {"n_ctx": 4096, "threads": 0}
SURE_FROM = 0.73  # log-odds of 1
VALUE_TOKENS = 320  # of a value that is JSON
MARGIN = 64  # tokens kept free beside prompt and reply


def open_provider(rest: str, settings: Settings) -> Local:
    """The model of a name or path. Raises UnknownModelError where the file is not there; it is loaded when first asked."""
    name, _, query = rest.partition("?")
    options = dict(_OPTIONS)
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in options or not value.isdigit():
            raise ConfigError(
                f"local: {key}={value} is not possible", code="UQL402", help="options: n_ctx=TOKENS, threads=NUMBER"
            )
        options[key] = int(value)
    return Local(models.find(name), **options, keeps_states=settings.ledger != ":memory:")


class Local:
    """One model file. Instances of one file share the loaded model."""

    is_local = True
    price = Price(0.0, 0.0)
    limits = Limits(concurrency=1, timed=False)

    def __init__(self, path: Path, *, n_ctx: int = 4096, threads: int = 0, keeps_states: bool = False) -> None:
        self.path, self.n_ctx, self.threads = path, max(512, n_ctx), threads
        self.keeps_states = keeps_states  # on disk, of prompts that others begin like
        self.name = f"local:{path.stem}"
        self.capabilities = Capabilities(
            probabilities=True,
            schema=True,
            images=False,
            audio=False,
            context=self.n_ctx,
            small=True,
            judges=False,
            descriptions=False,
            shares_prefix=True,
            weighs_pairs=False,
            sure_from=SURE_FROM,
        )

    @property
    def loads(self) -> bool:
        """Must the next request load the model first?"""
        return not is_loaded(self.path, n_ctx=self.n_ctx, threads=self.threads)

    def version(self, question: Question) -> str:
        return f"{question.version}/{ROWS}/local-1/ctx{self.n_ctx}"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        output = prompts = 0
        for question in request.questions:
            reply = question.reply()
            output += reply.max_tokens if isinstance(reply, Text) else VALUE_TOKENS if isinstance(reply, Value) else 40
            prompts += len(reply.labels) if isinstance(reply, OneOf) and reply.many else 1
        return self.n_ctx * prompts, output + prompts

    async def aclose(self) -> None:
        """The model stays loaded for the next query."""

    async def answer(self, request: Request) -> Reply:
        loaded = await engine(self.path, n_ctx=self.n_ctx, threads=self.threads)
        return await loaded.run(lambda: self._answer(loaded, request))

    # ------------------------------------------------------------------------------------------- in the engine's thread
    def _answer(self, loaded: Engine, request: Request) -> Reply:
        usage = Usage(requests=1)
        errors = request.errors or ("",) * len(request.questions)
        answers = []
        for question, error in zip(request.questions, errors, strict=True):
            try:
                alone = len(request.questions) == 1 and not request.row.holes
                answers.append(self._one(loaded, question, request.row, error, usage, alone=alone))
            except CallError as failure:
                answers.append(Answer(problem=Problem(failure.kind, failure.message)))
        return Reply(tuple(answers), usage.input_tokens, usage.output_tokens, 1, tuple(usage.warnings))

    def _one(
        self, loaded: Engine, question: Question, row: Row, error: str, usage: Usage, *, alone: bool = False
    ) -> Answer:
        def ask(make: Callable[[Row], Prompt], **body: Any) -> ChatReply:
            return self._fitted(loaded, lambda r: fused.taught(make(r), question), row, error, usage, body)

        words, reply = question.operator.words, question.reply(row)
        match reply:
            case OneOf(letters=()):
                return self._choice(ask, question, reply, alone=alone)
            case YesNo() | OneOf() | Level():
                return self._by_token(ask, lambda r: words.single_prompt(question, r), reply)
            case Value():
                return self._value(ask, question, reply, row)
            case Text():
                return self._write(ask, question, reply)

    def _by_token(self, ask: Ask, make: Callable[[Row], Prompt], reply: YesNo | OneOf | Level) -> Answer:
        """From the log-probabilities of the one token that is decoded."""
        chat_reply = ask(make, max_tokens=1, logprobs=True, top_logprobs=40)
        return by_token(reply, chat_reply.tokens[0].top if chat_reply.tokens else {}, chat_reply.text)

    def _choice(self, ask: Ask, question: Question, reply: OneOf, *, alone: bool) -> Answer:
        words, options = question.operator.words, reply.options
        if reply.many:  # each label is a condition of its own; the row is evaluated once
            assert words.whether is not None
            labels = []
            for label in reply.labels:
                answer = self._by_token(ask, partial(words.whether, question, label=label), YesNo())
                if answer.problem is not None:
                    return answer
                if answer.value:
                    labels.append(label)
            return Answer(labels)
        make = partial(
            words.menu_first if words.menu_first and alone and len(options) > LONG_MENU else words.single_prompt,
            question,
        )
        texts = list(reply.option_texts.values())
        one = {"grammar": menu_grammar(texts), "logprobs": True, "top_logprobs": 40}
        chat_reply = ask(make, max_tokens=1, **one)
        begun = chat_reply.text
        fitting = [n for n, line in enumerate(texts) if begun and line.startswith(begun)]
        if len(fitting) != 1:
            chat_reply = ask(make, max_tokens=tokens_of(texts), **one)
            fitting = [n for n, line in enumerate(texts) if line == chat_reply.text.strip()]
        if not fitting:
            return Answer(problem=Problem("wrong_type", "the reply is none of the labels", chat_reply.text))
        masses = label_masses([t.top for t in chat_reply.tokens], texts, [t.text for t in chat_reply.tokens])
        total = sum(masses)
        shares = tuple(mass / total for mass in masses) if total > 0 else None
        return Answer(options[fitting[0]], shares[fitting[0]] if shares else math.nan, shares)

    def _value(self, ask: Ask, question: Question, reply: Value, row: Row) -> Answer:
        make = partial(question.operator.words.single_prompt, question)
        rule = grammar(parse_type(reply.type))
        if rule is not None:
            chat_reply = ask(make, max_tokens=96, grammar=rule)
            answer = reply.read(chat_reply.text.strip())
        else:
            schema = {"name": "value", "schema": reply.json_schema()}
            form = {"type": "json_schema", "json_schema": schema}
            chat_reply = ask(make, max_tokens=VALUE_TOKENS, response_format=form)
            try:
                answer = reply.read(json_value(chat_reply.text))
            except ValueError as error:
                return Answer(problem=Problem("truncated", f"the reply is not JSON: {error}", chat_reply.text))
        if answer.problem is None and not_in_row(answer.value, question.text, row):
            return Answer(None)  # a number that the row does not hold is another one's, or made up
        return answer

    def _write(self, ask: Ask, question: Question, reply: Text) -> Answer:
        words = question.operator.words
        if words.whether is not None and reply.schema == Text.BOOLEAN:
            return self._by_token(ask, partial(words.whether, question), YesNo())
        body: dict[str, Any] = {"max_tokens": reply.max_tokens, "temperature": reply.temperature, "seed": reply.seed}
        if reply.grammar:
            body["grammar"] = reply.grammar
        if reply.schema is not None:
            schema = {"name": "reply", "schema": json.loads(reply.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        chat_reply = ask(partial(words.single_prompt, question), **body)
        if chat_reply.finish == "length" and reply.schema is not None:
            return Answer(
                problem=Problem("truncated", f"the reply was cut at {reply.max_tokens} tokens", chat_reply.text)
            )
        return reply.read(chat_reply.text)

    def _fitted(
        self, loaded: Engine, make: Callable[[Row], Prompt], row: Row, error: str, usage: Usage, body: dict[str, Any]
    ) -> ChatReply:
        """Send a prompt, its row shortened at the end until it fits the context."""
        room = self.n_ctx - int(body["max_tokens"]) - MARGIN
        short_row, cut = _shortened(row, 8 * self.n_ctx)
        for _ in range(6):
            prompt = make(short_row)
            if error:
                prompt = replace(
                    prompt, user=f"{prompt.user}\n\n(Your last answer could not be used: {short(error, 200)})"
                )
            reply = self._send(loaded, prompt, usage, body)
            if isinstance(reply, ChatReply):
                if cut:
                    usage.warnings.append(
                        f"rows longer than the context of {self.name} ({self.n_ctx} tokens) were cut at their end"
                    )
                return reply
            longest = max((len(c.value) for c in short_row.cells if isinstance(c.value, str)), default=0)
            fits = int(longest * max(0.0, 0.95 * room / max(1, reply)))
            if fits < 16:
                break
            short_row, cut = _shortened(short_row, fits)[0], True
        raise CallError("too_long", f"the question does not fit the context of {self.n_ctx} tokens")

    def _send(self, loaded: Engine, prompt: Prompt, usage: Usage, body: dict[str, Any]) -> ChatReply | int:
        """The reply to a prompt, counted; the tokens of a prompt that is too long. Raises CallError for another error."""
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        chat = loaded.chat_keeping_state if self.keeps_states and prompt.begins_alike else loaded.chat
        reply = chat({"messages": messages, "temperature": 0.0, "seed": 0, "cache_prompt": True, **body})
        problem = reply.get("error")
        if isinstance(problem, dict) and problem.get("type") == "exceed_context_size_error":
            return int(problem["n_prompt_tokens"])
        if problem is not None:
            raise CallError("server", str(problem.get("message", problem) if isinstance(problem, dict) else problem))
        chat_reply = formed(completion, reply)
        # less than all where a prefix was evaluated before
        evaluated = counts({"usage": reply.get("timings")}, "prompt_n")[0]
        usage.input_tokens += evaluated or chat_reply.input_tokens
        usage.output_tokens += chat_reply.output_tokens
        return chat_reply


def menu_grammar(lines: Sequence[str]) -> str:
    """The grammar of a reply that is one of these lines.

    >>> print(menu_grammar(["a card", "none of these"]))
    root ::= "a card" | "none of these"
    """
    return "root ::= " + " | ".join(literal(line) for line in lines)


def tokens_of(lines: Sequence[str]) -> int:
    """Tokens that the longest of these lines may take: one a byte at most."""
    return max(8, max(len(line.encode()) for line in lines))


def _shortened(row: Row, most: int) -> tuple[Row, bool]:
    """The row with no text longer than `most` characters, and whether one was."""
    if all(not isinstance(c.value, str) or len(c.value) <= most for c in row.cells):
        return row, False
    cells = tuple(
        Cell(c.name, c.value[:most], c.table, c.media_type) if isinstance(c.value, str) else c for c in row.cells
    )
    return replace(row, cells=cells), True
