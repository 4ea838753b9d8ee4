"""Through each SDK against a loopback server: calls a second of the gate, beside those of the bare SDK in the same run."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import rows
from uql.llm.gate import Gate
from uql.llm.prompts import fused
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import Provider
from uql.llm.providers.chat import output_at_most
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Predicate, Row

Sender = Callable[[Row], Awaitable[Any]]
TARGET = 0.8
SO = Predicate("it is so")
IN_FLIGHT = 32
TIMEOUT_S = 120.0  # of both, to connect too: a busy machine is no fault
TURNS = 7
CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "usage": {"prompt_tokens": 60, "completion_tokens": 5, "total_tokens": 65},
    "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None,
                 "message": {"role": "assistant", "content": "true", "refusal": None}}],
}  # fmt: skip
MESSAGE = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "true"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 60, "output_tokens": 5},
}  # fmt: skip


def serve(port: int) -> None:
    """A server that gives every request the same reply after 20 ms; runs until it is killed."""
    import uvicorn

    replies = {"/v1/chat/completions": json.dumps(CHAT).encode(), "/v1/messages": json.dumps(MESSAGE).encode()}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            continue
        await asyncio.sleep(0.02)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": replies[scope["path"]]})

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", lifespan="off", timeout_keep_alive=600)


async def bare(count: int, send: Sender) -> float:
    """Calls a second of the SDK alone, with the same words and the same number in flight."""
    waiting = iter(rows(count))

    async def worker() -> None:
        for row in waiting:
            await send(row)

    began = time.monotonic()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return count / (time.monotonic() - began)


async def gated(count: int, provider: Provider, folder: Path, turn: int) -> float:
    settings = Settings(ledger=str(folder / f"{turn}.sqlite"), concurrency=IN_FLIGHT)
    async with Gate.open(settings, model=provider, calls=None) as gate:
        gate.on_announce.append(lambda *_: None)  # the server is this machine's
        began = time.monotonic()
        answers = await gate.ask(SO, rows(count))
        assert not answers.failures
        return count / (time.monotonic() - began)


def openai_sender(url: str) -> tuple[Sender, Callable[[], Awaitable[None]]]:
    """The gate's own request through the SDK's own client and method, as its documentation shows it; and the client's end."""
    import openai

    client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0, timeout=TIMEOUT_S)

    async def send(row: Row) -> Any:
        words = fused.word(SO, row)
        messages: Any = [{"role": "system", "content": words.system}, {"role": "user", "content": words.user}]
        reply = await client.chat.completions.create(
            model="m",
            messages=messages,
            temperature=0.0,
            seed=0,
            max_completion_tokens=output_at_most((SO,)),
            logprobs=True,
            top_logprobs=20,
        )
        return reply.choices[0].message.content == "true"

    return send, client.close


def anthropic_sender(url: str) -> tuple[Sender, Callable[[], Awaitable[None]]]:
    """The same of the other SDK."""
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0, timeout=TIMEOUT_S)

    async def send(row: Row) -> Any:
        words = fused.word(SO, row)
        messages: Any = [{"role": "user", "content": [{"type": "text", "text": words.user}]}]
        system: Any = [{"type": "text", "text": words.system, "cache_control": {"type": "ephemeral"}}]
        reply = await client.messages.create(
            model="m", max_tokens=output_at_most((SO,)), system=system, messages=messages
        )
        return "".join(block.text for block in reply.content if block.type == "text") == "true"

    return send, client.close


async def measure(count: int, url: str, folder: Path) -> bool:
    good = True
    openai, anthropic = OpenAI("m", api_key="k", url=f"{url}/v1"), Anthropic("m", api_key="k", url=url)
    for name, provider, made in (
        ("openai", openai, openai_sender(url)),
        ("anthropic", anthropic, anthropic_sender(url)),
    ):
        send, close = made
        await bare(IN_FLIGHT, send)  # connections
        await gated(IN_FLIGHT, provider, folder / name, -1)
        alone, ours = [], []
        for turn in range(TURNS):  # in turns, so that a busy machine is busy for both
            alone.append(await bare(count, send))
            ours.append(await gated(count, provider, folder / name, turn))
        share = median(o / a for o, a in zip(ours, alone, strict=True))
        print(f"{name}: gate {median(ours):,.0f} calls/s, bare SDK {median(alone):,.0f}: {share:.2f} (target {TARGET})")
        good &= share >= TARGET
        await close()
        await provider.aclose()
    return good


def main(count: int = 600) -> bool:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = f"from uql.benchmarks.gate.sdk import serve; serve({port})"
    server = subprocess.Popen([sys.executable, "-c", code])
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        with tempfile.TemporaryDirectory() as folder:
            return asyncio.run(measure(count, f"http://127.0.0.1:{port}", Path(folder)))
    finally:
        server.terminate()
        server.wait()
