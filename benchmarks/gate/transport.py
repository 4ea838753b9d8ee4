"""Calls a second through the gate beside a bare aiohttp loop, in one run: a server without latency, and one of 200 ms.

Both send the same bodies to a server in a process of its own. The bare loop reads the JSON of the reply and keeps nothing.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from pathlib import Path

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import rows
from uql.benchmarks.gate.sdk import CHAT, SO
from uql.llm.gate import Gate
from uql.llm.prompts import fused
from uql.llm.providers.chat import output_at_most
from uql.llm.providers.openai_api import OpenAI

BODY = json.dumps(CHAT).encode()
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
ROUNDS = 20  # of each place in flight
RUNS = ((0.0, 32, 8_000), (0.2, 64, 64 * ROUNDS), (0.2, 256, 256 * ROUNDS), (0.2, 1024, 1024 * ROUNDS))


class Fixed(asyncio.Protocol):
    """Gives every request the same reply, after a while."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s, self._held = latency_s, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, found, rest = self._held.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]) if found else 0
        if found and len(rest) >= size:
            self._held = rest[size:]
            asyncio.get_running_loop().call_later(self._latency_s, self._transport.write, REPLY)


def serve(listening: socket.socket, latency_s: float) -> None:
    """Runs until it is killed."""

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Fixed(latency_s), sock=listening, backlog=2048)
        await server.serve_forever()

    asyncio.run(forever())


async def bare(url: str, count: int, in_flight: int) -> tuple[float, float]:
    """(calls a second, CPU seconds of a call) of a plain aiohttp loop."""
    import aiohttp

    waiting = iter(rows(count))
    fixed = {"model": "m", "max_completion_tokens": output_at_most((SO,)), "temperature": 0.0, "seed": 0}

    async def worker(session: aiohttp.ClientSession) -> None:
        for row in waiting:
            words = fused.word(SO, row)
            said = [{"role": "system", "content": words.system}, {"role": "user", "content": words.user}]
            body = {**fixed, "messages": said, "logprobs": True, "top_logprobs": 20}
            async with session.post(f"{url}/chat/completions", json=body) as reply:
                json.loads(await reply.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        began, used = time.monotonic(), time.process_time()
        await asyncio.gather(*(worker(session) for _ in range(in_flight)))
        return count / (time.monotonic() - began), (time.process_time() - used) / count


async def gated(url: str, count: int, in_flight: int, folder: Path) -> tuple[float, float]:
    """The same through the gate, with the ledger on disk."""
    settings = Settings(ledger=str(folder / f"{in_flight}.sqlite"), concurrency=in_flight)
    model = OpenAI("m", api_key="k", url=url, api="chat")
    async with Gate.open(settings, model=model, calls=None) as gate:
        gate.on_announce.append(lambda *_: None)  # the server is this machine's
        began, used = time.monotonic(), time.process_time()
        answers = await gate.ask(SO, rows(count))
        assert not answers.failures
        measured = count / (time.monotonic() - began), (time.process_time() - used) / count
    await model.aclose()
    return measured


def main() -> bool:
    good = True
    for latency_s, in_flight, count in RUNS:
        with socket.create_server(("127.0.0.1", 0)) as listening, tempfile.TemporaryDirectory() as folder:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
            server = multiprocessing.Process(target=serve, args=(listening, latency_s), daemon=True)
            server.start()
            try:
                alone, alone_cpu = asyncio.run(bare(url, count, in_flight))
                ours, ours_cpu = asyncio.run(gated(url, count, in_flight, Path(folder)))
            finally:
                server.terminate()
                server.join()
        ideal = f", ideal {in_flight / latency_s:,.0f}" if latency_s else ""
        print(
            f"{latency_s * 1000:.0f} ms, {in_flight} in flight: gate {ours:,.0f} calls/s, bare aiohttp {alone:,.0f}{ideal}; "
            f"CPU of a call {ours_cpu * 1e6:.0f} µs, bare {alone_cpu * 1e6:.0f} µs"
        )
        most = min(1 / ours_cpu, in_flight / latency_s if latency_s else 2_000.0)
        good &= ours >= 0.8 * most
    return good
