"""Connections to a server: as many as requests in flight, used again, closed at the end; a proxy of the environment goes first."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import aiohttp
import pytest
from loopback import chat
from scripted import row

from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.http_client import SHORT_BYTES, Client, Response
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Predicate

REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


class Counting:
    """A server of this process that counts its connections and answers each request after a moment."""

    def __init__(self) -> None:
        self.opened, self.open_now, self.most = 0, 0, 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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


class Told:
    """A server or proxy of this process that keeps the heads and bodies that it was sent, and gives each the same bytes."""

    def __init__(self, reply: bytes) -> None:
        self.reply, self.heads, self.bodies = reply, list[bytes](), list[bytes]()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(size))
                writer.write(self.reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def post(reply: bytes, *bodies: dict[str, str], proxied: bool = False, **own: Any) -> tuple[Told, list[Response]]:
    """What a client gets for these bodies, one after another."""
    told = Told(reply)
    server = await asyncio.start_server(told, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    there = Client("http://api.example/v1" if proxied else f"{place}/v1", timeout_s=5.0, **{"api_key": "k", **own})
    there.proxy = place if proxied else None
    try:
        return told, [await there.post("/chat?a=%20b", body=body) for body in bodies]
    finally:
        await there.close()
        server.close()


OK = REPLY % (4, b"true")
BODY = {"said": "für"}


def test_a_short_request_is_sent_as_the_session_sends_a_long_one(run) -> None:
    long = {"said": "x" * 2 * SHORT_BYTES}
    told, replies = run(post(OK, BODY, long, headers={"X-Own": "1"}))
    assert [json.loads(body) for body in told.bodies] == [BODY, long]
    short, other = (
        {line.lower() for line in head.split(b"\r\n") if b"content-length" not in line.lower()} for head in told.heads
    )
    assert short == other and b"authorization: bearer k" in short and b"post /v1/chat?a=%20b http/1.1" in short
    assert [(r.status_code, r.content, r.headers["Content-Type"]) for r in replies] == [
        (200, b"true", "application/json")
    ] * 2


def test_a_reply_after_an_interim_one_is_the_reply(run) -> None:
    _, replies = run(post(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK, BODY, BODY))
    assert [reply.content for reply in replies] == [b"true", b"true"]


def test_a_packed_reply_in_chunks_is_read_whole(run) -> None:
    packed = gzip.compress(b"true" * 30_000, 0)
    half = len(packed) // 2
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (packed[:half], packed[half:], b""))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    _, replies = run(post(head + chunks, BODY, BODY))
    assert [reply.content for reply in replies] == [b"true" * 30_000] * 2


def test_what_is_not_http_is_a_fault_of_the_connection(run) -> None:
    with pytest.raises(aiohttp.ClientError, match="not HTTP"):
        run(post(b"no such protocol\r\n\r\n", BODY))


def test_a_request_through_a_proxy_names_the_whole_address(run) -> None:
    told, replies = run(post(OK, BODY, proxied=True))
    assert (
        told.heads[0].startswith(b"POST http://api.example/v1/chat?a=%20b HTTP/1.1\r\n")
        and replies[0].content == b"true"
    )


def test_a_key_with_a_line_break_adds_no_header(run) -> None:
    with pytest.raises(ValueError, match="line break"):
        run(post(OK, BODY, api_key="k\r\nx-evil: 1"))
