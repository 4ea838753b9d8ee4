"""The table of failures, walked through on each protocol: every cause is injected by a server, and what the table says happens."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from loopback import (
    Server,
    chat,
    chat_reply,
    decisions,
    generate,
    generate_reply,
    messages,
    response_reply,
    responses,
    serve,
    systemone,
)
from scripted import Scripted, row
from starlette.responses import Response, StreamingResponse

from uql.base.errors import AuthError, BackendError, ModelError, QuotaError, UnknownModelError
from uql.base.settings import Settings
from uql.llm.failures import FAILURES, Then
from uql.llm.gate import Gate
from uql.llm.providers import compatible
from uql.llm.providers.address import Address
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import CallError, Provider
from uql.llm.providers.compatible import Compatible
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.providers.systemone import LIMITS, SystemOne
from uql.llm.questions import Extract, Predicate

SO = Predicate("it is so")
Handler = Callable[[dict[str, Any], dict[str, str]], Any]
PROTOCOLS = ("compatible", "chat", "responses", "decisions", "messages", "generate", "systemone")
TRIES = {cause.kind: cause.tries for cause in FAILURES}


@contextmanager
def served(protocol: str, fault: Callable[[str], Any]) -> Iterator[tuple[Provider, Server]]:
    """A provider of a protocol and its server, which gives what `fault` has for a row's text, and is well where that is None."""
    well: dict[str, tuple[str, Handler]] = {
        "compatible": ("/v1/chat/completions", chat),
        "chat": ("/v1/chat/completions", chat),
        "responses": ("/v1/responses", responses),
        "decisions": ("/v1/decisions", decisions),
        "messages": ("/v1/messages", messages),
        "generate": ("/models/m:generateContent", generate),
        "systemone": ("/v1/systemone", systemone),
    }
    path, handler = well[protocol]

    def handle(body: dict[str, Any], headers: dict[str, str]) -> Any:
        sent = json.dumps(body)
        named = next((cause for cause in CAUSES if f"row {cause}." in sent), "")
        found = fault(named) if named else None
        return handler(body, headers) if found is None else found

    compatible._probed.clear()
    with serve({path: handle}) as told:
        made: Provider
        if protocol == "messages":
            made = Anthropic("m", api_key="k", url=told.url)
        elif protocol == "generate":
            made = Gemini("m", api_key="k", url=told.url)
        elif protocol == "compatible":
            made = Compatible(f"{told.url}/v1", "m")
            made.is_local = False
        elif protocol == "systemone":
            made = SystemOne(Address(told.url, "m", "k", LIMITS), None, 120.0)
        else:
            name = "gpt-6-luna" if protocol == "decisions" else "gpt-x"
            made = OpenAI(name, api_key="k", url=f"{told.url}/v1", api=protocol if protocol != "decisions" else "")
        yield made, told
    compatible._probed.clear()


def status(number: int, message: str = "it went wrong", **more: Any) -> tuple[int, dict[str, Any]]:
    return number, {"type": "error", "error": {"message": message, **more}}


async def _broken() -> AsyncIterator[bytes]:
    yield b'{"id": '
    raise ConnectionResetError


def said(protocol: str, text: str, finish: str = "stop") -> Any:
    """A reply of the protocol that says this."""
    if protocol == "messages":
        stop = {"length": "max_tokens"}.get(finish, "end_turn")
        content = [{"type": "text", "text": text}] if text else []
        return {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": stop,
                "stop_sequence": None, "usage": {"input_tokens": 20, "output_tokens": 6}}  # fmt: skip
    if protocol == "generate":
        return generate_reply(text, finish={"length": "MAX_TOKENS"}.get(finish, "STOP"))
    if protocol == "responses":
        parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
        cut = {"incomplete_details": {"reason": "max_output_tokens"}} if finish == "length" else {}
        return response_reply(parts, **cut)
    if protocol == "decisions":
        usage = {"input_tokens": 4, "output_tokens": 1, "total_tokens": 5}
        return {
            "answers": [{"type": "predicate", "name": "q1", "probability": 7}] if text else [],
            "model": "m",
            "usage": usage,
        }
    if protocol == "systemone":
        return {"answers": {"q1": {"type": "noul", "noul": 7}} if text else {}, "model": "m", "usage": {}}
    return chat_reply(text, tokens=False, finish=finish)


def declined(protocol: str) -> Any:
    if protocol == "messages":
        return {**said(protocol, "no"), "stop_reason": "refusal"}
    if protocol == "responses":
        return response_reply([{"type": "refusal", "refusal": "no"}])
    if protocol == "decisions":
        return {**said(protocol, "no"), "answers": [{"type": "refusal", "name": "q1"}]}
    reply = chat_reply("", tokens=False)
    reply["choices"][0]["message"]["refusal"] = "no"
    return reply


HALF = Response('{"id": "half', media_type="application/json")
CAUSES: dict[str, tuple[str, Callable[[str], Any]]] = {  # sign → kind of the table, what the server does
    "429": ("rate_limit", lambda p: status(429)),
    "500": ("server", lambda p: status(500)),
    "503": ("server", lambda p: status(503)),
    "529": ("server", lambda p: status(529, type="overloaded_error")),
    "409": ("server", lambda p: status(409)),
    "reset": ("connection", lambda p: StreamingResponse(_broken(), media_type="application/json")),
    "408": ("timeout", lambda p: status(408)),
    "half": ("truncated", lambda p: HALF),
    "list": ("wrong_type", lambda p: Response("[1, 2]", media_type="application/json")),
    "formless": (
        "wrong_type",
        lambda p: {"usage": 5, "choices": [7], "output": 5, "content": 3, "answers": 3, "candidates": [3]},
    ),
    "type": ("wrong_type", lambda p: said(p, '{"q1": "perhaps"}')),
    "cut": ("truncated", lambda p: said(p, '{"q1": tr', "length")),
    "empty": ("empty", lambda p: said(p, "")),
    "declined": ("refusal", lambda p: declined(p)),
    "413": ("too_long", lambda p: status(413)),
    "context": (
        "too_long",
        lambda p: status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ),
    "filter": ("content_filter", lambda p: status(400, "Output blocked by content filtering policy")),
    "400": ("bad_request", lambda p: status(400, "what is this")),
    "422": ("bad_request", lambda p: status(422)),
}
NOT_THERE = {  # what has no text cannot be cut or empty, and such a model declines nothing
    ("decisions", "cut"), ("decisions", "empty"), ("systemone", "cut"), ("systemone", "empty"), ("systemone", "declined"),
    ("generate", "declined"),
}  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_cause_that_fails_a_row(run, protocol: str) -> None:
    causes = [name for name in CAUSES if (protocol, name) not in NOT_THERE]

    async def go() -> None:
        with served(protocol, lambda name: CAUSES[name][1](protocol)) as (model, _):
            settings = Settings(ledger=":memory:", concurrency=8)
            async with Gate.open(settings, model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                assert not (await g.ask(SO, [row("row well"), row("row fine")])).failures
                calls = g.cost.calls
                events: list[Any] = []
                g.listeners.append(events.append)
                texts = [text for name in causes for text in (f"row {name}.", f"the row beside {name}")]
                answers = await g.ask(SO, [row(text) for text in texts])
                kinds = {failure.index: failure.kind for failure in answers.failures}
                assert kinds == {2 * n: CAUSES[name][0] for n, name in enumerate(causes)}
                assert all(isinstance(value, bool) for value in answers.values[1::2])
                tries = sum(TRIES[CAUSES[name][0]] for name in causes) + len(causes)
                assert g.cost.calls - calls == tries and g.cost.failed == len(causes)
                assert len(events) == tries + len(causes), "an event for each call and each row given up"
                assert all(word != "k" for failure in answers.failures for word in failure.message.split())
                again = await g.ask(SO, [row(f"row {causes[0]}.")])
                assert again.failures, "a failure is not kept"

    run(go())


ENDS: list[tuple[Any, type[ModelError]]] = [
    (status(401), AuthError), (status(403), AuthError), (status(402), QuotaError),
    (status(429, code="insufficient_quota", type="insufficient_quota"), QuotaError), (status(404), UnknownModelError),
    (Response(status_code=302, headers={"location": "http://127.0.0.1:9/"}), BackendError),
]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_cause_that_ends_the_run(run, protocol: str) -> None:
    async def go() -> None:
        reply: list[Any] = [None]
        with served(protocol, lambda name: reply[0]) as (model, told):
            async with Gate.open(Settings(ledger=":memory:", concurrency=1), model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                await g.ask(SO, [row("row well")])
                for given, error in ENDS:
                    reply[0], before = given, len(told.bodies)
                    with pytest.raises(error):
                        await g.ask(SO, [row("row 400."), row("row 422."), row("row 413.")])
                    assert len(told.bodies) == before + 1, "it stops at once, whatever on_error says"

    run(go())


@pytest.mark.parametrize(("protocol", "calls"), [*((name, None) for name in PROTOCOLS), ("chat", 1), ("chat", 2)])
def test_a_server_that_is_not_there(run, protocol: str, calls: int | None) -> None:
    """Also where the budget ends before the last try."""

    async def go() -> None:
        with served(protocol, lambda name: None) as (model, _):
            pass
        async with Gate.open(Settings(ledger=":memory:"), model=model, calls=calls) as g:
            g.on_announce.append(lambda *_: None)
            with pytest.raises(BackendError, match="cannot be reached"):
                await g.ask(SO, [row("x")])

    run(go())


def test_a_try_that_failed_is_a_failure_also_where_the_budget_allows_no_other(run) -> None:
    async def go() -> None:
        for fault, kind in (
            (CallError("server", "it is down"), "server"),
            (CallError("truncated", "half"), "truncated"),
        ):
            provider = Scripted(lambda request, n, fault=fault: fault)
            async with Gate.open(Settings(ledger=":memory:"), model=provider, calls=1) as g:
                answers = await g.ask(SO, [row("x"), row("y")])
                assert sorted(f.kind for f in answers.failures) == sorted(["budget", kind])
                assert g.cost.failed == 1
                (said,) = (f.message for f in answers.failures if f.kind == kind)
                assert fault.message in said and "budget" in said

    run(go())


@pytest.mark.parametrize("protocol", ["chat", "messages"])
def test_no_reply_in_time(run, protocol: str) -> None:
    async def go() -> None:
        with served(protocol, lambda name: time.sleep(0.8)) as (model, _):
            settings = Settings(ledger=":memory:", timeout_s=0.4, concurrency=1)
            async with Gate.open(settings, model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                answers = await g.ask(SO, [row("row 408.")])
                assert [f.kind for f in answers.failures] == ["timeout"] and g.cost.calls == TRIES["timeout"]
                assert g.cost.input_tokens > 0, "what it may have cost is counted"

    run(go())


@pytest.mark.parametrize("protocol", ["chat", "messages"])
@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date"])
def test_retry_after_as_seconds_and_as_a_date(run, protocol: str, form: str) -> None:
    seen: list[float] = []

    def busy(name: str) -> Any:
        seen.append(time.time())
        if len(seen) > 1:
            return None
        moment = datetime.now(UTC) + timedelta(seconds=2)
        told = {"seconds": ("retry-after", "0.4"), "milliseconds": ("retry-after-ms", "400"),
                "date": ("retry-after", format_datetime(moment, usegmt=True))}[form]  # fmt: skip
        return Response('{"error": {"message": "slow down"}}', 429, dict([told]), media_type="application/json")

    async def go() -> None:
        with served(protocol, busy) as (model, _):
            async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                assert not (await g.ask(SO, [row("row 429.")])).failures

    run(go())
    assert seen[1] - seen[0] >= (0.9 if form == "date" else 0.4)


def test_a_provider_that_wants_to_be_left_alone_for_longer_than_the_run_has(run) -> None:
    def busy(name: str) -> Any:
        headers = {"retry-after": "3600"}
        return Response('{"error": {"message": "slow down"}}', 429, headers, media_type="application/json")

    async def go() -> None:
        with served("chat", busy) as (model, _):
            async with Gate.open(Settings(ledger=":memory:", max_seconds=1.0), model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                began = time.monotonic()
                answers = await g.ask(SO, [row("row 429."), row("row 400."), row("well")])
                assert time.monotonic() - began < 30 and g.budget.exhausted == "seconds"
                assert {f.kind for f in answers.failures} <= {"budget", "rate_limit"} and len(answers.failures) >= 2

    run(go())


def test_the_causes_here_are_those_of_the_table() -> None:
    fails = {cause.kind for cause in FAILURES if cause.then is not Then.ENDS}
    assert fails == {kind for kind, _ in CAUSES.values()}
    assert {error.__name__ for _, error in ENDS} == {cause.kind for cause in FAILURES if cause.then is Then.ENDS}


def test_a_second_try_is_shown_what_was_wrong(run) -> None:
    async def go() -> None:
        with served("chat", lambda name: said("chat", '{"q1": "many"}')) as (model, told):
            async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
                g.on_announce.append(lambda *_: None)
                answers = await g.ask(Extract("n", "BIGINT"), [row("row type.")])
                assert [f.kind for f in answers.failures] == ["wrong_type"] and len(told.bodies) == 2
                first, second = (body["messages"][1]["content"] for body in told.bodies)
                assert "could not be used" in second and "could not be used" not in first

    run(go())
