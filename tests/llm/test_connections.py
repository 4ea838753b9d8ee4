"""Connections to a server: as many as requests in flight, used again, closed at the end; a proxy of the environment goes first."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from loopback import chat
from scripted import row

from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.http_client import Client
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Predicate

REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


class Counting:
    """A server of this process that counts its connections and answers each request after a moment."""

    def __init__(self) -> None:
        self.opened, self.open_now, self.most = 0, 0, 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import json

        self.opened += 1
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = dict(line.lower().split(b": ", 1) for line in head.splitlines()[1:] if b": " in line)
                body = json.loads(await reader.readexactly(int(lines[b"content-length"])))
                await asyncio.sleep(0.01)
                said = json.dumps(chat(body, {"authorization": "Bearer k"})).encode()
                writer.write(REPLY % (len(said), said))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open_now -= 1
            writer.close()


def test_connections_are_used_again_and_closed(run) -> None:
    async def go() -> None:
        counted = Counting()
        server = await asyncio.start_server(counted, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = OpenAI("m", api_key="k", url=f"http://127.0.0.1:{port}/v1", api="chat")
        async with Gate.open(Settings(ledger=":memory:", concurrency=16), model=model, calls=None) as g:
            for part in range(3):
                found = await g.ask(Predicate("it is so"), [row("x" * n) for n in range(1 + 60 * part, 61 + 60 * part)])
                assert not found.failures
            assert g.cost.calls == 180 and counted.opened == counted.most <= 16, "none is opened twice"
        await model.aclose()
        for _ in range(100):
            if not counted.open_now:
                break
            await asyncio.sleep(0.01)
        assert counted.open_now == 0
        server.close()

    run(go())


def test_a_request_that_is_given_up_spoils_no_other(run) -> None:
    async def go() -> None:
        counted = Counting()
        server = await asyncio.start_server(counted, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = OpenAI("m", api_key="k", url=f"http://127.0.0.1:{port}/v1", api="chat")
        async with Gate.open(Settings(ledger=":memory:", timeout_s=0.005), model=model, calls=4) as g:
            lost = await g.ask(Predicate("it is so"), [row("x")])
            assert [f.kind for f in lost.failures] == ["timeout"]
        async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
            found = await g.ask(Predicate("it is so"), [row("x" * n) for n in range(1, 9)])
            assert found.values == [n % 2 == 0 for n in range(1, 9)]
        await model.aclose()
        server.close()

    run(go())


def test_a_proxy_of_the_environment_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)

    def way(url: str) -> str | None:
        return Client(url, api_key=None, timeout_s=5.0).proxy

    assert way("https://api.example/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert way("https://api.example/v1") == "http://127.0.0.1:9" and way("http://api.example/v1") is None
    monkeypatch.setenv("NO_PROXY", "api.example")
    assert way("https://api.example/v1") is None


def test_a_server_that_is_not_there_is_a_connection_fault(run) -> None:
    async def go() -> None:
        there = Client("http://127.0.0.1:9", api_key=None, timeout_s=5.0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await there.get("/")
        await there.close()

    run(go())
