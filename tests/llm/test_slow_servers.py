"""A server that hangs, or gives a byte now and then, ends with the time of a request and of the run; what was not sent is not paid."""

from __future__ import annotations

import gzip
import sys
import time
from functools import partial
from typing import Any

import duckdb
import pytest
from drip import STAGES, slow_server, unreachable
from loopback import serve
from scripted import Scripted, row
from starlette.responses import Response

import uql
from uql.base.errors import BackendError
from uql.base.settings import Settings
from uql.llm import limiter
from uql.llm.embed import OpenAIEmbedder
from uql.llm.gate import Gate
from uql.llm.limiter import Limiter
from uql.llm.providers import compatible, http_client
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import CallError, Limits, Provider
from uql.llm.providers.compatible import Compatible
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.providers.wire import posted, replied, retry_after
from uql.llm.questions import Predicate

SO = Predicate("it is so")
PROTOCOLS = ("compatible", "chat", "messages", "generate")
SLACK_S = 10.0  # on a busy machine; without a limit each would take a minute


def provider(protocol: str, port: int, timeout_s: float) -> Provider:
    url = f"http://127.0.0.1:{port}"
    compatible._probed.clear()
    if protocol == "messages":
        return Anthropic("m", api_key="k", url=url, timeout_s=timeout_s)
    if protocol == "generate":
        return Gemini("m", api_key="k", url=url, timeout_s=timeout_s)
    if protocol == "chat":
        return OpenAI("m", api_key="k", url=f"{url}/v1", timeout_s=timeout_s, api="chat")
    return Compatible(f"{url}/v1", "m", timeout_s=timeout_s)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_request_ends_with_its_time_wherever_the_server_is_slow(run, protocol: str, stage: str) -> None:
    async def go() -> None:
        with slow_server(stage) as port:
            settings = Settings(ledger=":memory:", timeout_s=0.4)
            model = provider(protocol, port, settings.timeout_s)
            async with Gate.open(settings, model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                began = time.monotonic()
                answers = await g.ask(SO, [row("one"), row("two")])
                assert [f.kind for f in answers.failures] == ["timeout", "timeout"]
                assert time.monotonic() - began < 3 * settings.timeout_s + SLACK_S

    run(go())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_run_ends_with_its_time_wherever_the_server_is_slow(run, protocol: str, stage: str) -> None:
    async def go() -> None:
        with slow_server(stage) as port:
            settings = Settings(ledger=":memory:", max_seconds=0.5)
            async with Gate.open(settings, model=provider(protocol, port, 120.0), calls=None) as g:
                g.on_announce.append(lambda *_: None)
                began = time.monotonic()
                answers = await g.ask(SO, [row("one"), row("two")])
                assert len(answers.failures) == 2
                assert time.monotonic() - began < settings.max_seconds + SLACK_S

    run(go())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses connections elsewhere")
def test_a_connection_that_is_not_made_in_time_costs_neither_a_call_nor_tokens(run, protocol: str) -> None:
    async def go() -> None:
        with unreachable() as port:
            settings = Settings(ledger=":memory:", timeout_s=6.0)
            async with Gate.open(settings, model=provider(protocol, port, 0.6), calls=5) as g:
                g.on_announce.append(lambda *_: None)
                events: list[Any] = []
                g.listeners.append(events.append)
                with pytest.raises(BackendError, match="cannot be reached"):
                    await g.ask(SO, [row("one")])
                cost = g.cost
                assert (cost.calls, cost.requests, cost.input_tokens, cost.output_tokens) == (0, 0, 0, 0)
                assert g.budget.calls_left == 5 and g.budget.spent_tokens == 0
                assert [event for event in events if event.kind == "call"] == []

    run(go())


def test_what_was_not_sent_leaves_the_budget_for_the_next_try(run) -> None:
    def script(request: Any, number: int) -> Any:
        return CallError("connection", "not in time", sent=False) if number < 3 else None

    async def go() -> None:
        async with Gate.open(Settings(ledger=":memory:"), model=Scripted(script), calls=1) as g:
            answers = await g.ask(SO, [row("one")])
            assert not answers.failures and g.cost.calls == 1 and g.cost.requests == 1

    run(go())


def test_a_connection_that_breaks_after_it_was_made_is_paid(run) -> None:
    def script(request: Any, number: int) -> Any:
        return CallError("connection", "reset") if number < 3 else None

    async def go() -> None:
        async with Gate.open(Settings(ledger=":memory:"), model=Scripted(script), calls=None) as g:
            assert not (await g.ask(SO, [row("one")])).failures
            assert g.cost.calls == 3

    run(go())


@pytest.mark.parametrize("told", ["86400", "1e999", "9" * 400])
def test_a_server_is_left_alone_for_two_minutes_at_most(run, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    waits: list[float] = []

    async def asleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(limiter.asyncio, "sleep", asleep)
    held = Limiter(Limits())
    run(held.pause(1, float(told)))
    run(held.pause(1, float(told), within_s=3.0))
    assert waits[0] <= 120.1 and waits[1] == 3.0
    before = time.monotonic()
    held.observe("rate_limit", 0.1, tokens=0, taken=0.0, at_most=1, retry_after_s=float(told))
    assert held._paused_until - before <= 120.1


def test_a_run_waits_no_longer_than_it_has(run) -> None:
    def busy(body: dict[str, Any], headers: dict[str, str]) -> Any:
        return Response('{"error": {"message": "slow"}}', 429, {"retry-after": "86400"}, media_type="application/json")

    async def go() -> None:
        with serve({"/v1/chat/completions": busy}) as told:
            settings = Settings(ledger=":memory:", max_seconds=0.6)
            model = provider("chat", int(told.url.rpartition(":")[2]), 5.0)
            async with Gate.open(settings, model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                began = time.monotonic()
                await g.ask(SO, [row(f"row {n}") for n in range(40)])
                assert time.monotonic() - began < settings.max_seconds + SLACK_S

    run(go())


# --------------------------------------------------------------------------------------------------------- embedders
@pytest.mark.parametrize("stage", STAGES)
def test_a_request_for_vectors_ends_with_its_time(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.llm.embed.TRIES", 2)
    with slow_server(stage) as port:
        embedder = OpenAIEmbedder("m", api_key="k", timeout_s=0.4, url=f"http://127.0.0.1:{port}/v1")
        began = time.monotonic()
        with pytest.raises(BackendError, match=r"0\.4 s"):
            embedder.embed(["a text"])
        assert time.monotonic() - began < 2 * 0.4 + SLACK_S


def test_a_question_in_words_waits_for_vectors_no_longer_than_it_has() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE shops AS SELECT 1 AS id")
    with slow_server("body") as port, uql.attach(con, model=Scripted(), ledger=":memory:", timeout_s=120) as connection:
        connection.uql(f"SET uql.embedder = 'http://127.0.0.1:{port}/v1#m'")
        began = time.monotonic()
        with pytest.raises(BackendError, match=r"vectors|within"):
            connection.ask("how many shops?", max_seconds=0.5)
        assert time.monotonic() - began < 0.5 + 2 * SLACK_S


def test_a_server_of_vectors_is_left_alone_for_two_minutes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("uql.llm.embed.time.sleep", waits.append)

    def busy(body: dict[str, Any], headers: dict[str, str]) -> Any:
        return Response('{"error": {"message": "slow"}}', 429, {"retry-after": "86400"}, media_type="application/json")

    with serve({"/v1/embeddings": busy}) as told:
        embedder = OpenAIEmbedder("m", api_key="k", timeout_s=5.0, url=f"{told.url}/v1")
        with pytest.raises(BackendError):
            embedder.embed(["a text"])
    assert waits and max(waits) <= 120.1


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
def test_a_body_without_end_is_not_read_to_its_end(run, monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    monkeypatch.setattr(http_client, "REPLY_BYTES", 1_000_000)
    monkeypatch.setattr(http_client, "BODY_BYTES", 2_000_000)
    body = b"[" * 50_000_000
    if packed:
        body = gzip.compress(body)
    sent = Response(body, headers={"content-encoding": "gzip"} if packed else {}, media_type="application/json")

    async def go() -> None:
        with serve({"/v1/chat/completions": lambda body, headers: sent}) as server:
            client = http_client.Client(f"{server.url}/v1", api_key=None, timeout_s=5.0)
            with pytest.raises(CallError, match="longer than 1,000,000 bytes"):
                await posted(client, "/chat/completions", {}, name="a server", model="m")
            with pytest.raises(CallError, match="longer than 2,000,000 bytes"):
                await replied(partial(client.get, "/chat/completions"), name="a server", model="m")
            await client.close()

    run(go())


@pytest.mark.parametrize(
    "told", ["Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2030 00:00:00 +" + "9" * 40]
)
def test_a_moment_that_is_none_is_not_kept(told: str) -> None:
    assert retry_after({"retry-after": told}) is None
