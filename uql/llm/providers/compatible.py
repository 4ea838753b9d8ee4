"""http(s)://host/v1#MODEL: any server that speaks OpenAI's chat completions (vLLM, llama.cpp, Ollama, gateways).

What the server can do (a JSON schema, log-probabilities, images) is tried once with made-up rows and remembered beside the models for
a week. The key is that of the environment variable that the user's configuration names for the server's origin, else none: a
vendor's key is never sent elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from uql.base.errors import ModelError
from uql.base.settings import Settings
from uql.llm.prices import price_of
from uql.llm.prompts import fused
from uql.llm.prompts.json_schema import closed, json_form
from uql.llm.providers import direct, server_abilities as remembered
from uql.llm.providers.address import LOOPBACK, address
from uql.llm.providers.base import Answer, CallError, Capabilities, Limits, Price, Request, Usage
from uql.llm.providers.chat import output_at_most, parts, sent_at_most, tokens_at_most
from uql.llm.providers.chat_provider import ChatProvider
from uql.llm.providers.chat_reply import ChatReply, completion, formed
from uql.llm.providers.http_client import account_of, client
from uql.llm.providers.wire import call, posted, unstructured
from uql.llm.questions import Question, Row
from uql.operators.record import Prompt
from uql.operators.replies import OneOf, parsed
from uql.operators.rows import media
from uql.operators.texts import short

_probed: dict[tuple[str, str], Capabilities] = {}
PROBE_TOKENS = 400
WHITE = "data:image/png;base64,"  # of 8 × 8 pixels
WHITE += "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAFUlEQVR42mP8//8/AzbAxIADDE4JAFbUAw3/dxQWAAAAAElFTkSuQmCC"
OPTIONAL = ("temperature", "seed", "top_logprobs", "logprobs", "reasoning_effort")  # parameters that a model may refuse
REASONING_TOKENS = 4_000  # that a model which reasons may take before its reply, at a low effort


def open_provider(rest: str, settings: Settings) -> Compatible:
    """The server and model of an address. Raises ConfigError where a part is missing."""
    at = address(rest, settings, Limits(concurrency=64, adaptive=True))
    provider = Compatible(
        at.url,
        at.model,
        api_key=at.api_key,
        timeout_s=settings.timeout_s,
        price=price_of(f"{at.url}#{at.model}", settings),
    )
    provider.limits = at.limits
    return provider


class Compatible(ChatProvider):
    """One model of one server.

    Args:
        vendor: its key is one that only the vendor's host gets.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        price: Price | None = None,
        vendor: bool = False,
    ) -> None:
        self.url, self.model = url, model
        self.name = f"{url}#{model}"
        self.is_local = urlsplit(url).hostname in LOOPBACK
        self.price = price if price is not None else (Price(0.0, 0.0) if self.is_local else None)
        self.limits = Limits(concurrency=64, adaptive=True, account=account_of(api_key))
        self._client = client(url, api_key=api_key, timeout_s=timeout_s, vendor=vendor, on_limits=self._update_limits)
        self._probing = asyncio.Lock()
        self._limit = "max_tokens"  # what the server calls the cap of the reply
        self._refused: set[str] = set()
        self._reasons = False
        self._vendor = vendor
        self._listed_context: int | None = None  # context, as the list of models states it

    @property
    def capabilities(self) -> Capabilities:
        abilities = _probed.get((self.url, self.model), Capabilities(context=self._listed_context))
        return replace(abilities, descriptions=not self.is_local)

    def version(self, question: Question) -> str:
        return f"{fused.version(question)}/chat-1/t0"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        most_in, most_out = tokens_at_most(request, word=not self.is_local and not self._talks)
        if self.is_local:  # it may be asked one by one
            alone = ((fused.single_prompt(q, request.row), json.dumps(direct.body(q))) for q in request.questions)
            most_in = max(most_in, sum(sent_at_most(words, body, *request.errors) for words, body in alone))
        probing = 0 if (self.url, self.model) in _probed else PROBE_TOKENS
        return most_in + probing, self._with_room(most_out) + probing

    async def _ready(self, row: Row, usage: Usage) -> Capabilities:
        can = await self._abilities(usage)
        shows_image = any(cell.media_type.startswith("image/") for cell in media(row))
        if shows_image and not await self._sees(can, usage):
            raise CallError("bad_request", f"{self.name} takes no images")
        return can

    async def _together(self, request: Request, can: Capabilities, usage: Usage) -> tuple[Answer, ...]:
        if self.is_local and can.schema and can.probabilities:
            replies = (question.reply() for question in request.questions)
            if not any(isinstance(reply, OneOf) and reply.many for reply in replies):
                return await self._one_by_one(request, can, usage)
        return await super()._together(request, can, usage)

    async def _one_by_one(self, request: Request, can: Capabilities, usage: Usage) -> tuple[Answer, ...]:
        """Each question a prompt of its own, the row first: small models answer these far better than several at once, and a
        server on this machine finds the row evaluated already."""
        row, answers = request.row, []
        for n, question in enumerate(request.questions):
            bound = output_at_most((question,))
            words: Prompt = fused.single_prompt(question, self._cut(row, can, bound, usage))
            if request.errors and request.errors[n]:
                error = short(request.errors[n], 200)
                words = replace(words, user=f"{words.user}\n\n(Your last answer could not be used: {error})")
            body = {**direct.body(question), "max_tokens": direct.tokens(question, bound)}
            reply = await self._message(words, row, body, usage)
            problem = None if reply.tokens and reply.finish == "length" else reply.problem()
            answers.append(Answer(problem=problem) if problem else direct.read(question, row, reply.text, reply.tokens))
        return tuple(answers)

    # ------------------------------------------------------------------------------------------------------------- wire
    async def _message(self, words: Prompt, row: Row, body: dict[str, Any], usage: Usage) -> ChatReply:
        return await self._chat(words, parts(row), body, usage)

    async def _chat(
        self, words: Prompt, media_parts: list[dict[str, Any]], body: dict[str, Any], usage: Usage
    ) -> ChatReply:
        """One request. Raises what `call` raises; usage grows also where the reply is of no use."""
        content: Any = words.user
        if media_parts:
            content = [{"type": "text", "text": words.user}, *media_parts]
        messages: Any = [{"role": "system", "content": words.system}, {"role": "user", "content": content}]
        reply = await self._complete(messages, body, usage)
        usage.add(reply.input_tokens, reply.output_tokens, reply.cached_tokens, reply.written_tokens)
        if reply.finish == "length" and (reply.reasoned or not reply.text.strip()):
            self._learn_reasoning()
        return reply

    async def _complete(self, messages: list[dict[str, Any]], body: dict[str, Any], usage: Usage) -> ChatReply:
        """The reply to a chat completion."""

        def whole(parameters: dict[str, Any]) -> dict[str, Any]:
            return {"model": self.model, "messages": messages, self._limit: parameters.pop("max_tokens"), **parameters}

        reply = await self._send("/chat/completions", {"temperature": 0.0, "seed": 0, **body}, whole, usage)
        return formed(completion, reply)

    async def _send(
        self,
        path: str,
        parameters: dict[str, Any],
        whole: Callable[[dict[str, Any]], dict[str, Any]],
        usage: Usage,
    ) -> dict[str, Any]:
        """The reply to a request. A parameter that the model refuses (as reasoning models do) is left out from then on.

        Args:
            parameters: parameters of a chat completion.
            whole: makes the endpoint's body from those that are not refused.
        """
        if self._reasons:
            parameters = {"reasoning_effort": "low", **parameters}
        while True:
            sent = {name: value for name, value in parameters.items() if name not in self._refused}
            usage.requests += 1
            try:
                return await posted(self._client, path, whole(dict(sent)), name=self.name, model=self.model)
            except CallError as error:
                error.sent = error.sent or usage.requests > 1
                message = (error.parameter or error.message).replace("reasoning.effort", "reasoning_effort")
                option = next((name for name in OPTIONAL if error.kind == "bad_request" and name in message), None)
                if option is None and self._vendor and unstructured(error):
                    option = "response_format"
                if option is None or option not in sent:
                    raise
                self._refuse({"logprobs", "top_logprobs"} if option in ("logprobs", "top_logprobs") else {option})

    def _learn_reasoning(self) -> None:
        """Hidden reasoning took the place of a reply: from now on there is room for it."""
        self._reasons = True

    def _refuse(self, names: set[str]) -> None:
        """Send these parameters no more."""
        self._refused |= names

    def _with_room(self, bound: int) -> int:
        """The cap of a reply of at most `bound` tokens: more where the model reasons before it."""
        return bound + REASONING_TOKENS if self._reasons else bound

    async def _abilities(self, usage: Usage) -> Capabilities:
        """What the server can do: asked once with a made-up question, and remembered."""
        abilities = _probed.get((self.url, self.model))
        if abilities is not None:
            return abilities
        async with self._probing:
            abilities = _probed.get((self.url, self.model)) or (None if self.is_local else remembered.load(self.name))
            if abilities is None:
                abilities = await self._probe(usage)
                if not self.is_local:
                    remembered.save(self.name, abilities)
            _probed[(self.url, self.model)] = abilities
        return abilities

    async def _sees(self, can: Capabilities, usage: Usage) -> bool:
        """Does the model take images? Tried with a white one, when the first row has one."""
        if can.images is not None:
            return can.images
        async with self._probing:
            abilities = _probed.get((self.url, self.model), can)
            if abilities.images is None:
                words = Prompt("You answer with one word.", "Which colour is the image?")
                try:
                    await self._chat(
                        words, [{"type": "image_url", "image_url": {"url": WHITE}}], {"max_tokens": 8}, usage
                    )
                except CallError as error:
                    if error.kind != "bad_request":
                        raise
                    abilities = replace(abilities, images=False)
                else:
                    abilities = replace(abilities, images=True)
                _probed[(self.url, self.model)] = abilities
                if not self.is_local:
                    remembered.save(self.name, abilities)
        return bool(abilities.images)

    async def _probe(self, usage: Usage) -> Capabilities:
        words = Prompt("You answer with JSON.", 'Is water wet? Answer {"ok": true} or {"ok": false}.')
        schema = {"response_format": json_form("ok", closed({"ok": {"type": "boolean"}}))}
        chances = {"logprobs": True, "top_logprobs": 2}
        offered = {"schema": False, "probabilities": False}
        for names, body in (
            (("schema", "probabilities"), {**schema, **chances}),
            (("schema",), schema),
            (("probabilities",), chances),
        ):
            try:
                reply = await self._chat(words, [], {"max_tokens": 24, **body}, usage)
            except CallError as error:
                if error.kind == "bad_request":
                    continue
                raise
            answer = parsed(reply.text)
            offered["schema"] = "schema" in names and isinstance((answer or {}).get("ok"), bool)
            offered["probabilities"] = "probabilities" in names and bool(reply.tokens)
            break
        stated = await self._listed()
        return Capabilities(
            probabilities=offered["probabilities"],
            schema=offered["schema"],
            context=_context(stated),
            video=_video(stated),
        )

    async def learn_context(self) -> None:
        """Learns the context that the server states, before the first request: it costs no tokens."""
        if self.capabilities.context is None:
            self._listed_context = _context(await self._listed())

    async def _listed(self) -> dict[str, Any]:
        """What the server's list of models says of this one; {} where it says nothing."""
        try:
            listed = await call(partial(self._client.get, "/models"), name=self.name, model=self.model)
        except (CallError, ModelError):  # an optional route: where it is missing, nothing is known
            return {}
        stated = listed.get("data")
        served = [m for m in stated if isinstance(m, dict)] if isinstance(stated, list) else []
        own = [m for m in served if m.get("id") == self.model] or (served if len(served) == 1 else [])
        return own[0] if own else {}


def _context(stated: dict[str, Any]) -> int | None:
    """The context of a model, as the list of its server states it."""
    meta = stated["meta"] if isinstance(stated.get("meta"), dict) else {}
    tokens = (stated.get("max_model_len"), stated.get("context_length"), meta.get("n_ctx"))
    return next((value for value in tokens if isinstance(value, int) and value > 0), None)


def _video(stated: dict[str, Any]) -> bool | None:
    """Does a model take videos, as the list of its server states it? None: it does not say."""
    built = stated.get("architecture")
    takes = built.get("input_modalities") if isinstance(built, dict) else None
    return "video" in takes if isinstance(takes, list) else None
