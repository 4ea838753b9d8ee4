"""A loopback endpoint of OpenAI's protocol in front of a gate: what other programs ask counts in the same budget and ledger.

`/v1/chat/completions`, `/v1/embeddings` and `/v1/models`, on 127.0.0.1 and a free port, with a token made for the run. A request
becomes one `Write` question: it is one call, it is answered by the ledger where it was paid for before, and a spent budget is HTTP 429.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uql.base.errors import ConfigError, UQLError
from uql.base.extras import install
from uql.llm.gate import Gate
from uql.llm.questions import Cell, Row, Write

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MODEL = "uql"  # the one model there is, whatever the request names
LONGEST = 2_000_000  # bytes of a request
MAX_TOKENS = 1_024  # of a reply, where the request does not say
MOST_TOKENS = 8_192
TASK = "endpoint"
Embed = Callable[[list[str]], list[list[float]]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the gate listens.

    Attributes:
        url: as `base_url` of an OpenAI client.
        token: as its `api_key`.
        model: name of the model.
    """

    url: str
    token: str
    model: str = MODEL


@asynccontextmanager
async def endpoint(gate: Gate, *, model: Any = None, embed: Embed | None = None) -> AsyncIterator[Endpoint]:
    """Serves a gate while the block runs, in the event loop of the caller.

    Args:
        gate: must stay open; its costs and events are those of the requests.
        model: asked instead of the gate's own.
        embed: texts to vectors, in a thread; None: there are no embeddings.
    Raises: ConfigError (UQL610) where starlette or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise ConfigError("the endpoint needs starlette and uvicorn", code="UQL610", help=install("ui")) from None

    class Quiet(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:  # Ctrl-C stays the caller's
            yield

    token = secrets.token_urlsafe(24)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            application(gate, token, model, embed),
            log_level="critical",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        server = Quiet(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            while not server.started:
                if task.done():
                    task.result()
                await asyncio.sleep(0.005)
            yield Endpoint(f"http://127.0.0.1:{port}/v1", token)
        finally:
            server.should_exit = True
            await task


def application(gate: Gate, token: str, model: Any = None, embed: Embed | None = None) -> Starlette:
    """The web application of a gate; requests without the token are refused.

    Args:
        token: that a request must bear.
        model: that answers; None: the gate's own.
        embed: makes vectors of texts; None: that endpoint is not there.
    """
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    def refused(status: int, message: str, code: str) -> Response:
        return JSONResponse({"error": {"message": message, "type": code, "code": code}}, status_code=status)

    async def body_of(request: Request) -> dict[str, Any] | Response:
        authorization = request.headers.get("authorization", "")
        if not secrets.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            return refused(401, "the token is wrong", "invalid_api_key")
        if request.headers.get("host", "").partition(":")[0] != "127.0.0.1":
            return refused(403, "this endpoint is for this machine", "forbidden")
        raw = bytearray()
        async for part in request.stream():
            raw += part
            if len(raw) > LONGEST:
                return refused(413, f"a request has at most {LONGEST:,} bytes", "too_long")
        try:
            body = json.loads(raw) if raw else {}
        except (ValueError, RecursionError):
            return refused(400, "the request is not JSON", "bad_request")
        return body if isinstance(body, dict) else refused(400, "the request is not an object", "bad_request")

    async def chat(request: Request) -> Response:
        body = await body_of(request)
        if not isinstance(body, dict):
            return body
        if body.get("stream"):
            return refused(400, "streaming is not offered", "unsupported_parameter")
        try:
            question, row = _question(body)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            return refused(400, f"the messages cannot be read: {error}", "bad_request")
        before = (gate.cost.input_tokens, gate.cost.output_tokens)
        try:
            answers = await gate.ask(question, [row], model=model)
        except UQLError as error:
            return refused(502, error.message, "backend_error")
        for failure in answers.failures:
            if failure.kind in ("budget", "interrupted"):
                return refused(429, f"the budget is spent: {failure.message}", "insufficient_quota")
            return refused(502, f"{failure.kind}: {failure.message}", "backend_error")
        value = answers.values[0]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        input_tokens, output_tokens = gate.cost.input_tokens - before[0], gate.cost.output_tokens - before[1]
        return JSONResponse(
            {
                "id": f"chatcmpl-{secrets.token_hex(8)}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": MODEL,
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                "usage": {
                    "prompt_tokens": input_tokens,
                    "completion_tokens": output_tokens,
                    "total_tokens": input_tokens + output_tokens,
                },
            }
        )

    async def embeddings(request: Request) -> Response:
        body = await body_of(request)
        if not isinstance(body, dict):
            return body
        if embed is None:
            return refused(404, "there are no embeddings here", "not_found")
        value = body.get("input", [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return refused(400, "input is a text, or a list of texts", "bad_request")
        vectors = await asyncio.to_thread(embed, texts)
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return JSONResponse(
            {"object": "list", "model": MODEL, "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}
        )

    async def models(request: Request) -> Response:
        body = await body_of(request)
        if not isinstance(body, dict):
            return body
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "uql"}]})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models, methods=["GET"]),
        ]
    )


def _question(body: dict[str, Any]) -> tuple[Write, Row]:
    """The messages as one question: those of the system are its system, the others its text, images its row."""
    system: list[str] = []
    turns: list[str] = []
    cells: list[Cell] = []
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise ValueError("there are none")
    several = sum(1 for m in messages if m["role"] not in ("system", "developer")) > 1
    for message in messages:
        role = str(message["role"])
        content = message.get("content") or ""
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = []
        for part in parts:
            if part["type"] == "text":
                texts.append(str(part["text"]))
            elif part["type"] == "image_url":
                cells.append(_image(str(part["image_url"]["url"]), len(cells) + 1))
            else:
                raise ValueError(f"a part of type {part['type']!r}")
        text = "\n".join(texts)
        if role in ("system", "developer"):
            system.append(text)
        else:
            turns.append(f"{role}: {text}" if several else text)
    prompt = "\n\n".join(turns).replace("{", "{{").replace("}", "}}")
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or MAX_TOKENS
    question = Write(
        prompt,
        task=TASK,
        schema=_schema(body.get("response_format")),
        parameters=(("system", "\n\n".join(system) or "You answer exactly what is asked."),),
        max_tokens=max(1, min(MOST_TOKENS, int(limit))),
    )
    return question, Row(tuple(cells))


def _schema(form: Any) -> str | None:
    """The JSON schema of a request's `response_format`; None where the words of the prompt say the form."""
    if isinstance(form, dict) and form.get("type") == "json_schema":
        return json.dumps(form["json_schema"]["schema"])
    return None


def _image(url: str, number: int) -> Cell:
    """An image of a data: address. Raises ValueError on others: nothing is fetched."""
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        raise ValueError("images are given as data:image/…;base64")
    with contextlib.suppress(ValueError):
        return Cell(f"image {number}", base64.b64decode(data, validate=True), "", head[5:-7])
    raise ValueError("an image is not base64")
