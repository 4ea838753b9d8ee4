"""The replaying model behind the protocols of OpenAI, Anthropic and Gemini, on this machine only, with the limits of a real one.

`uql plans serve FOLDER` serves /v1/chat/completions, /v1/responses, /v1/messages, /models/NAME:generateContent and /v1/models. A prompt
longer than the context is refused as the vendors refuse it, a reply longer than `max_tokens` ends in its middle. Plans come from the
folder's files (`plans.py`); rows are read from the labels of an oracle file where one is given.
"""

from __future__ import annotations

import base64
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uql.base.errors import DataError, UQLError
from uql.benchmarks.nl.replay import Replay
from uql.benchmarks.peers.server import tokens
from uql.llm.providers.base import Request
from uql.llm.providers.oracle import Oracle
from uql.llm.questions import Cell, Extract, Predicate, Question, Row

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

MODEL = "replay"
WORD = "Of the data, "  # begins the instruction to answer one condition by a word
IMAGE_TOKENS = 85  # of a small image, as OpenAI counts
_KEYED = re.compile(r"^(q\d+): (.*)$", re.MULTILINE)
_FENCED = re.compile(r"<([\w-]+)>\n(.*)\n</\1>", re.DOTALL)
_HOLE = re.compile(r"\\\{([^{}]*)\\\}")
_TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "number": "DOUBLE"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of any protocol: words, images, the schema of the reply, and its longest length in tokens."""

    system: str
    user: str
    images: tuple[bytes, ...]
    schema: Mapping[str, Any]
    max_tokens: int

    @property
    def tokens(self) -> int:
        return tokens(self.system + self.user + json.dumps(self.schema)) + IMAGE_TOKENS * len(self.images)


@dataclass(slots=True)
class Service:
    """A model with limits.

    Attributes:
        replay: plans.
        reader: reads rows; None: rows are refused.
        context: tokens of a request and its reply.
        requests, refused: counted.
    """

    replay: Replay
    reader: Oracle | None = None
    context: int = 128_000
    requests: int = 0
    refused: int = 0
    last_refusal: str = ""
    _templates: list[tuple[re.Pattern[str], str]] = field(default_factory=list)

    async def reply(self, asked: Asked) -> tuple[str, bool]:
        """The text of a reply, and whether it was cut.

        Raises: DataError (UQL502) on a prompt that it knows nothing of, or that is longer than the context (UQL501).
        """
        self.requests += 1
        try:
            if asked.tokens + asked.max_tokens > self.context:
                said = f"This model's maximum context length is {self.context} tokens, your request has {asked.tokens}"
                raise DataError(f"{said} and {asked.max_tokens} of its reply", code="UQL501")
            text, cut = await self._said(asked)
        except UQLError as error:
            self.refused += 1
            self.last_refusal = str(error)
            raise
        most = 4 * asked.max_tokens
        return text[:most], cut or len(text) > most

    async def _said(self, asked: Asked) -> tuple[str, bool]:
        """A reply of any length, and whether it was cut."""
        if asked.system.startswith(WORD) and not asked.schema:
            return await self._word(asked), False
        if any(name.startswith("q") and name[1:].isdigit() for name in asked.schema.get("properties", {})):
            return json.dumps(await self._read(asked)), False
        if set(asked.schema.get("properties", {})) == {"ok"}:  # what the server can do
            return '{"ok": true}', False
        if asked.images and not asked.schema:  # whether it sees: a white picture
            return "white", False
        return self.replay.reply(asked.user, asked.schema)

    # ------------------------------------------------------------------------------------------------------------ rows
    async def _word(self, asked: Asked) -> str:
        """The bare word that answers one condition about one row."""
        if self.reader is None:
            raise DataError("no labels are served: rows cannot be read", code="UQL502")
        text, holes = self._known(asked.system)
        row = self._row(asked.user, asked.images)
        reply = await self.reader.answer(Request((Predicate(text),), Row(row.cells, tuple(holes.items()))))
        return "true" if reply.answers[0].value else "false"

    async def _read(self, asked: Asked) -> dict[str, Any]:
        """The answers to the questions about one row."""
        if self.reader is None:
            raise DataError("no labels are served: rows cannot be read", code="UQL502")
        found = _FENCED.search(asked.user)
        row = self._row(found[2] if found else "", asked.images)
        kinds = asked.schema["properties"]
        answers = {}
        for name, words in _KEYED.findall(asked.system):
            text, holes = self._known(words)
            kind = kinds[name].get("type")
            kind = next((k for k in kind if k != "null"), "string") if isinstance(kind, list) else kind
            question: Question = (
                Predicate(text) if kind == "boolean" else Extract(text, _TYPES.get(str(kind), "VARCHAR"))
            )
            shown = Row(row.cells, tuple(holes.items()))
            (answer,) = (await self.reader.answer(Request((question,), shown))).answers
            answers[name] = answer.value
        return answers

    def _row(self, shown: str, images: tuple[bytes, ...]) -> Row:
        """The row as it was shown: one bare text, or lines of names and values."""
        assert self.reader is not None
        columns = "|".join(re.escape(name) for name in self.reader.columns)
        pieces = re.split(rf"^(?:\w+\.)?({columns}): ", shown, flags=re.MULTILINE | re.IGNORECASE)
        named = list(zip(pieces[1::2], (value.rstrip("\n") for value in pieces[2::2]), strict=True))
        bare = [("text", pieces[0])] if pieces[0] not in ("", "(no text)") else []
        cells = [Cell(name, value) for name, value in [*bare, *named]]
        return Row((*cells, *(Cell("image", data, media_type="image/png") for data in images)))

    def _known(self, words: str) -> tuple[str, dict[str, str]]:
        """The question of the labels that an instruction asks, and the values in its holes. Raises DataError where it asks none."""
        assert self.reader is not None
        if not self._templates:
            for text in sorted(self.reader.answers, key=len, reverse=True):
                names = iter(range(99))
                pattern = _HOLE.sub(lambda _: rf'(?P<h{next(names)}>"[^"]*"|[\w.]+)', re.escape(text))  # noqa: B023
                self._templates.append((re.compile(pattern), text))
        for pattern_, text in self._templates:
            found = pattern_.search(words)
            if found is not None:
                names_ = re.findall(r"\{([^{}]*)\}", text)
                held = {
                    name: value for name, value in zip(names_, found.groups(), strict=True) if value.startswith('"')
                }
                return text, {name: value.strip('"') for name, value in held.items()}
        raise DataError(f"the labels know no question like {words[:200]!r}", code="UQL502")


def app(service: Service) -> Starlette:
    """The routes of a service."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def refused(error: DataError) -> Response:
        too_long = error.code == "UQL501"
        fault = {"message": error.message, "type": "invalid_request_error"}
        fault["code"] = "context_length_exceeded" if too_long else error.code
        return JSONResponse({"type": "error", "error": fault}, status_code=400)

    async def replied(
        request: HttpRequest,
        read: Callable[[Mapping[str, Any]], Asked],
        form: Callable[[Asked, str, bool, str], dict[str, Any]],
    ) -> Response:
        """The reply to a request that `read` reads, in the `form` of its protocol."""
        held = await request.json()
        try:
            asked = read(held)
            said, cut = await service.reply(asked)
        except DataError as error:
            return refused(error)
        return JSONResponse(form(asked, said, cut, held.get("model", "")))

    def completion(asked: Asked, said: str, cut: bool, model: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": said, "refusal": None}
        choice = {"index": 0, "finish_reason": "length" if cut else "stop", "message": message, "logprobs": None}
        used = {"prompt_tokens": asked.tokens, "completion_tokens": tokens(said)}
        made = {"id": MODEL, "object": "chat.completion", "created": int(time.time()), "model": model}
        return {**made, "choices": [choice], "usage": {**used, "total_tokens": sum(used.values())}}

    def message(asked: Asked, said: str, cut: bool, model: str) -> dict[str, Any]:
        used = {"input_tokens": asked.tokens, "output_tokens": tokens(said)}
        made = {"id": MODEL, "type": "message", "role": "assistant", "model": model, "usage": used}
        stop = "max_tokens" if cut else "end_turn"
        return {**made, "content": [{"type": "text", "text": said}], "stop_reason": stop, "stop_sequence": None}

    def response(asked: Asked, said: str, cut: bool, model: str) -> dict[str, Any]:
        used = {"input_tokens": asked.tokens, "output_tokens": tokens(said)}
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
        why = {"reason": "max_output_tokens"} if cut else None
        made = {"id": MODEL, "object": "response", "created_at": int(time.time()), "model": model, "error": None}
        state = {"status": "incomplete" if cut else "completed", "incomplete_details": why}
        return {**made, **state, "output": [item], "usage": {**used, "total_tokens": sum(used.values())}}

    def generated(asked: Asked, said: str, cut: bool, model: str) -> dict[str, Any]:
        candidate = {
            "content": {"role": "model", "parts": [{"text": said}]},
            "finishReason": "MAX_TOKENS" if cut else "STOP",
        }
        used = {"promptTokenCount": asked.tokens, "candidatesTokenCount": tokens(said)}
        return {"candidates": [candidate], "usageMetadata": used, "modelVersion": MODEL}

    async def chat(request: HttpRequest) -> Response:
        return await replied(request, of_chat, completion)

    async def messages(request: HttpRequest) -> Response:
        return await replied(request, of_messages, message)

    async def responses(request: HttpRequest) -> Response:
        return await replied(request, of_responses, response)

    async def contents(request: HttpRequest) -> Response:
        return await replied(request, of_contents, generated)

    async def stated(request: HttpRequest) -> Response:
        return JSONResponse({"name": f"models/{MODEL}", "inputTokenLimit": service.context})

    async def models(request: HttpRequest) -> Response:
        one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "uql", "context_length": service.context}
        return JSONResponse({"object": "list", "data": [one]})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/responses", responses, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/models/{model}:generateContent", contents, methods=["POST"]),
            Route("/models/{model}", stated),
            Route("/v1/models", models),
        ]
    )


def of_chat(held: Mapping[str, Any]) -> Asked:
    """A request of OpenAI's chat completions. Raises DataError (UQL502) on one that cannot be read."""
    try:
        system, user, images = "", "", []
        for message in held["messages"]:
            text, shown = _content(message.get("content") or "")
            images += shown
            if message["role"] in ("system", "developer"):
                system += text
            else:
                user += text
        form = held.get("response_format") or {}
        schema = form["json_schema"]["schema"] if form.get("type") == "json_schema" else {}
        most = held.get("max_completion_tokens") or held.get("max_tokens") or 16
        return Asked(system, user, tuple(images), schema, int(most))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the request cannot be read: {error}", code="UQL502") from None


def of_messages(held: Mapping[str, Any]) -> Asked:
    """A request of Anthropic's Messages. Raises DataError (UQL502) on one that cannot be read."""
    try:
        system, _ = _content(held.get("system") or "")
        parts = [_content(message["content"]) for message in held["messages"]]
        form = (held.get("output_config") or {}).get("format") or {}
        images = tuple(image for _, shown in parts for image in shown)
        return Asked(
            system, "".join(text for text, _ in parts), images, form.get("schema") or {}, int(held["max_tokens"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the request cannot be read: {error}", code="UQL502") from None


def of_responses(held: Mapping[str, Any]) -> Asked:
    """A request of OpenAI's Responses. Raises DataError (UQL502) on one that cannot be read."""
    try:
        text, images = _content([part for message in held["input"] for part in message["content"]])
        schema = ((held.get("text") or {}).get("format") or {}).get("schema") or {}
        return Asked(held.get("instructions") or "", text, tuple(images), schema, int(held["max_output_tokens"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the request cannot be read: {error}", code="UQL502") from None


def of_contents(held: Mapping[str, Any]) -> Asked:
    """A request of Gemini's generateContent. Raises DataError (UQL502) on one that cannot be read."""
    try:
        system = "".join(part["text"] for part in held["systemInstruction"]["parts"])
        text, images = _content([part for message in held["contents"] for part in message["parts"]])
        config = held["generationConfig"]
        return Asked(
            system, text, tuple(images), config.get("responseJsonSchema") or {}, int(config["maxOutputTokens"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the request cannot be read: {error}", code="UQL502") from None


def _content(content: Any) -> tuple[str, list[bytes]]:
    """The words and images of a message's content, of any protocol."""
    if isinstance(content, str):
        return content, []
    text, images = "", []
    for part in content:
        match part:
            case {"text": str(words)}:
                text += words
                continue
            case {"image_url": {"url": str(url)}} | {"image_url": str(url)}:
                data = url.partition(",")[2]
            case {"inlineData": {"data": str(data)}} | {"source": {"data": str(data)}}:
                pass
            case _:
                raise ValueError(f"a part of another kind: {sorted(part)}")
        images.append(base64.b64decode(data, validate=True))
    return text, images


@contextmanager
def served(service: Service) -> Iterator[str]:
    """The address of a service on a free port of this machine, while the block runs."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app(service), log_level="critical", lifespan="off")
        server: Any = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(5)
