"""Calls a second through the gate beside a bare aiohttp loop, in one run: a server without latency, and one of 200 ms.

Both send the same bodies to a server in a process of its own. The bare loop reads the JSON of the reply and keeps nothing.

    python -m uql.benchmarks.gate.transport [--rounds 3] [--results benchmarks/gate/transport.jsonl]

With `--results` a line is added to the file for each run, which `uql.benchmarks.kept` shows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import rows
from uql.benchmarks.gate.sdk import CHAT, SO
from uql.benchmarks.runner import lines
from uql.benchmarks.runner.suite import Table
from uql.llm.gate import Gate
from uql.llm.prompts import fused
from uql.llm.providers.chat import output_at_most
from uql.llm.providers.openai_api import OpenAI

BODY = json.dumps(CHAT).encode()
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(BODY), BODY)
ROUNDS = 20  # of each place in flight
RUNS = ((0.0, 32, 8_000), (0.2, 64, 64 * ROUNDS), (0.2, 256, 256 * ROUNDS), (0.2, 1024, 1024 * ROUNDS))
RESULTS = Path(__file__).with_name("transport.jsonl")


@dataclass(frozen=True, slots=True)
class Run:
    """The gate and the bare loop, one after the other.

    Attributes:
        latency_s: of the server, seconds.
        rate, bare_rate: calls a second.
        cpu_us, bare_cpu_us: microseconds of processor time of a call.
    """

    latency_s: float
    in_flight: int
    calls: int
    rate: float
    bare_rate: float
    cpu_us: float
    bare_cpu_us: float

    @property
    def ideal(self) -> float | None:
        """Calls a second, were there nothing but the latency."""
        return self.in_flight / self.latency_s if self.latency_s else None


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


def runs() -> Iterator[Run]:
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
        rates, cpu_us = (round(rate) for rate in (ours, alone)), (round(1e6 * cpu) for cpu in (ours_cpu, alone_cpu))
        yield Run(latency_s, in_flight, count, *rates, *cpu_us)


def main(results: Path | None = None) -> bool:
    """Print a line for each run; false where one of the gate's is slower than latency and processor time explain."""
    good = True
    for run in runs():
        ideal = f", ideal {run.ideal:,.0f}" if run.ideal else ""
        print(
            f"{run.latency_s * 1000:.0f} ms, {run.in_flight} in flight: gate {run.rate:,.0f} calls/s, bare aiohttp "
            f"{run.bare_rate:,.0f}{ideal}; CPU of a call {run.cpu_us:.0f} µs, bare {run.bare_cpu_us:.0f} µs",
            flush=True,
        )
        good &= run.rate >= 0.8 * min(1e6 / run.cpu_us, run.ideal or 2_000.0)
        if results:
            lines.append(results, asdict(run))
    return good


def table(found: Sequence[Run]) -> Table:
    """A row for each latency and number in flight: medians over the rounds, and the range of the ratios."""
    rows = []
    for place in dict.fromkeys((run.latency_s, run.in_flight) for run in found):
        own = [run for run in found if (run.latency_s, run.in_flight) == place]
        rate, bare_rate, cpu, bare_cpu = (
            f"{median(getattr(run, name) for run in own):,.0f}"
            for name in ("rate", "bare_rate", "cpu_us", "bare_cpu_us")
        )
        times = sorted(run.cpu_us / run.bare_cpu_us for run in own)
        ideal = f"{own[0].ideal:,.0f}" if own[0].ideal else "–"
        ratio = f"{median(times):.2f} ({times[0]:.2f} to {times[-1]:.2f})"
        rows.append(
            (f"{1000 * place[0]:.0f} ms", f"{place[1]:,}", rate, bare_rate, ideal, cpu, bare_cpu, ratio, str(len(own)))
        )
    head = ("latency", "in flight", "calls a second", "bare", "ideal", "CPU of a call, µs", "bare", "times", "rounds")
    notes = (
        "the ledger is on disk; bare: a plain aiohttp loop that keeps nothing, in the same round; medians over the rounds",
        "calls a second are those of two cores that had other work and the server's process too: of them the ratio counts; processor "
        "time is lengthened least",
    )
    return Table("Calls through the gate beside a bare loop", head, tuple(rows), notes)


def read(path: Path = RESULTS) -> list[Run]:
    """The runs of a results file."""
    return [Run(**held) for _, held in lines.read(path)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    good = [main(given.results) for _ in range(given.rounds)]
    raise SystemExit(0 if all(good) else 1)
