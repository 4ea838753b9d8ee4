"""gemini:MODEL over generateContent: what is sent, what is read, and what it learns of a model that lacks something."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from loopback import Server, generate, generate_reply, google_error, serve
from PIL import Image
from scripted import row
from starlette.responses import JSONResponse
from typer.testing import CliRunner

from uql.base.errors import AuthError, ModelError, QuotaError, UnknownModelError
from uql.base.settings import Settings
from uql.command.models import app
from uql.llm.gate import Gate
from uql.llm.providers import gemini_api, open_provider, server_abilities as remembered
from uql.llm.providers.base import Request
from uql.llm.providers.gemini_api import Gemini
from uql.llm.questions import Cell, Choice, Extract, Predicate, Question, Row, Score, Write
from uql.pricing.model_prices import watches

PATH = "/models/g:generateContent"
SO = Predicate("it is so")
ALL: tuple[Question, ...] = (
    SO,
    Choice("kind", ("a", "b"), none_of_these=False),
    Score("much", 6),
    Extract("n", "BIGINT"),
)


def gate(told: Server) -> Gate:
    return Gate.open(Settings(ledger=":memory:", budget="all"), model=Gemini("g", api_key="a-key", url=told.url))


def shown(kind: str, data: bytes = b"....") -> Row:
    return Row((Cell("clip", data, "", kind),))


def config(told: Server, n: int = -1) -> dict[str, Any]:
    return dict(told.bodies[n]["generationConfig"])


def test_questions_travel_together_with_a_schema_and_probabilities(run) -> None:
    async def go(told: Server) -> None:
        async with gate(told) as g:
            said = await g.ask(ALL, [row("ab"), row("refuse")])
            assert [answers.values for answers in said] == [[True, None], ["a", None], [2.0, None], [2, None]]
            assert said[0].probabilities[0] == pytest.approx(0.9)
            assert said[1].failures[0].kind == "content_filter"
            assert (await g.ask(Write("say"), [Row()])).values == ["a text about 3"]
            assert (g.cost.calls, g.cost.input_tokens, g.cost.output_tokens) == (3, 60, 12)
        assert {h["x-goog-api-key"] for h in told.headers} == {"a-key"}
        assert config(told, 0)["temperature"] == 0 and config(told, 0)["responseMimeType"] == "application/json"

    with serve({PATH: generate}) as told:
        run(go(told))


def test_images_sounds_and_videos_are_sent_as_files(run) -> None:
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")

    async def go(told: Server) -> None:
        async with gate(told) as g:
            kinds = ["audio/wav", "audio/mpeg", "audio/flac", "audio/ogg", "video/mp4", "video/quicktime", "video/webm"]
            rows = [shown("image/png", made.getvalue()), *map(shown, kinds)]
            assert not (await g.ask(SO, rows)).failures
            other = await g.ask(SO, [shown("video/x-matroska"), shown("application/pdf")])
            assert [f.kind for f in other.failures] == ["bad_request"] * 2
            assert g.cost.calls == len(rows) == len(told.bodies), "what cannot be shown is no call"
        sent = {part["mimeType"]: body["contents"][0]["parts"][0].get("videoMetadata")
                for body in told.bodies for part in [body["contents"][0]["parts"][0]["inlineData"]]}  # fmt: skip
        assert set(sent) == {
            *("image/png", "audio/wav", "audio/mp3", "audio/flac", "audio/ogg"),
            *("video/mp4", "video/mov", "video/webm"),
        }
        assert all((rate == {"fps": 1.0}) == kind.startswith("video/") for kind, rate in sent.items())

    with serve({PATH: generate}) as told:
        run(go(told))


@pytest.mark.parametrize(
    ("message", "lacking", "sent"),
    [
        ("Logprobs is not enabled for models/g", "probabilities", "responseLogprobs"),
        ("Logprobs is not supported for the current model.", "probabilities", "responseLogprobs"),
        ("JSON mode is not enabled for models/g", "schema", "responseMimeType"),
    ],
)
def test_what_a_model_refuses_is_left_out_from_then_on(run, message: str, lacking: str, sent: str) -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if sent in body["generationConfig"]:
            return google_error(400, message)
        return generate_reply('{"q1": true, "q2": "a"}')

    async def go(told: Server) -> None:
        async with gate(told) as g:
            for text in ("xx", "yy"):
                answers = await g.ask([SO, Choice("kind", ("a", "b"))], [row(text)])
                assert [a.values for a in answers] == [[True], ["a"]]
            assert (g.cost.calls, g.cost.requests) == (2, 3), "the refusal comes once"
            assert getattr((await g.provider()).capabilities, lacking) is False

    with serve({PATH: handler}) as told:
        run(go(told))


def test_a_schema_that_the_vendor_finds_too_large_is_left_out_of_that_request_alone(run) -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if "responseJsonSchema" in body["generationConfig"] and "k299" in json.dumps(body):
            return google_error(400, "The specified schema produces a constraint that has too many states for serving.")
        return generate_reply('{"q1": "k1"}')

    async def go(told: Server) -> None:
        async with gate(told) as g:
            many = Choice("kind", tuple(f"k{n}" for n in range(300)))
            assert (await g.ask(many, [row("x")])).values == ["k1"]
            assert config(told)["responseMimeType"] == "application/json"
            assert (await g.ask(Choice("kind", ("k1", "k2")), [row("x")])).values == ["k1"]
            assert "responseJsonSchema" in config(told) and len(told.bodies) == 3

    with serve({PATH: handler}) as told:
        run(go(told))


def test_a_model_that_takes_no_videos_is_sent_none_again(run) -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if "inlineData" in body["contents"][0]["parts"][0]:
            return google_error(400, "Video input modality is not enabled for models/g")
        return generate(body, headers)

    async def go(told: Server) -> None:
        async with gate(told) as g:
            for data in (b"1", b"2"):
                answers = await g.ask(SO, [shown("video/mp4", data)])
                assert [f.kind for f in answers.failures] == ["bad_request"]
            assert len(told.bodies) == 1
            assert not watches(await g.provider(), Settings())

    with serve({PATH: handler}) as told:
        run(go(told))


def test_a_model_that_thinks_gets_room_for_it_once_its_thoughts_took_a_replys_place(run) -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if body["generationConfig"]["maxOutputTokens"] < 1_000:
            return generate_reply("", finish="MAX_TOKENS", thoughtsTokenCount=30, candidatesTokenCount=0)
        assert body["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 1_024}
        made = generate(body, headers)
        return {**made, "usageMetadata": {**made["usageMetadata"], "thoughtsTokenCount": 200}}

    async def go(told: Server) -> None:
        async with gate(told) as g:
            assert (await g.ask(SO, [row("xx")])).values == [True]
            assert (await g.ask(SO, [row("yy")])).values == [True]
            assert g.cost.output_tokens == 30 + 2 * 206 and len(told.bodies) == 3
            assert "responseJsonSchema" not in config(told), "one word is asked for all the same"

    with serve({PATH: handler}) as told:
        run(go(told))


KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (google_error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", KEY), AuthError),
        (google_error(403, "denied", "PERMISSION_DENIED"), AuthError),
        (google_error(404, "models/g is not found", "NOT_FOUND"), UnknownModelError),
        (google_error(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED", DAY), QuotaError),
    ],
)
def test_errors_that_concern_every_row_are_raised(run, reply: Any, error: type[ModelError]) -> None:
    async def go(told: Server) -> None:
        async with gate(told) as g:
            with pytest.raises(error):
                await g.ask(SO, [row("x")])

    with serve({PATH: lambda body, headers: reply}) as told:
        run(go(told))


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).", "too_long"),
        ("Request payload size exceeds the limit: 20971520 bytes.", "too_long"),
        ("Unsupported MIME type: video/x", "bad_request"),
    ],
)
def test_errors_of_a_row_have_the_kind_of_the_table(run, message: str, kind: str) -> None:
    async def go(told: Server) -> None:
        async with gate(told) as g:
            assert [f.kind for f in (await g.ask(SO, [row("x")])).failures] == [kind]

    with serve({PATH: lambda body, headers: google_error(400, message)}) as told:
        run(go(told))


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"])
def test_a_reply_that_a_filter_held_back_is_no_answer(run, reason: str) -> None:
    async def go(told: Server) -> None:
        async with gate(told) as g:
            assert [f.kind for f in (await g.ask(SO, [row("x")])).failures] == ["content_filter"]

    with serve({PATH: lambda body, headers: generate_reply("true", finish=reason)}) as told:
        run(go(told))


def test_the_delay_that_an_error_states_is_kept(run) -> None:
    waits: list[float] = []

    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if len(waits) == 0:
            waits.append(0.0)
            return google_error(429, "slow down", "RESOURCE_EXHAUSTED", {"retryDelay": "0.25s"})
        return generate(body, headers)

    async def go(told: Server) -> None:
        async with gate(told) as g:
            events: list[Any] = []
            g.listeners.append(events.append)
            assert (await g.ask(SO, [row("xx")])).values == [True]
            assert len(told.bodies) == 2

    with serve({PATH: handler}) as told:
        run(go(told))


def test_the_context_and_the_list_of_models_come_from_the_vendor(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-key")
    listed = {"models": [{"name": "models/b", "inputTokenLimit": 9_000}, {"name": "models/a"}]}

    async def go(told: Server) -> None:
        model = Gemini("g", api_key="a-key", url=told.url)
        await model.learn_context()
        assert model.capabilities.context == 9_000
        await model.aclose()

    with serve(
        {"/models/g": lambda body, headers: listed["models"][0], "/models": lambda b, h: JSONResponse(listed)}
    ) as told:
        run(go(told))
        monkeypatch.setattr(gemini_api, "VENDOR_URL", told.url)
        said = CliRunner().invoke(app, ["list", "gemini"])
        assert said.exit_code == 0 and said.output.split() == ["a", "b"]
        assert all(h["x-goog-api-key"] == "a-key" and "authorization" not in h for h in told.headers)


def test_a_model_of_the_vendor_is_opened_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-secret-key")
    made = open_provider("gemini:gemini-2.5-flash", Settings())
    assert made.price is not None and 0 < made.price.input < made.price.output
    assert not made.is_local and "secret" not in made.name
    assert open_provider("gemini:not-listed", Settings()).price is None


def test_what_a_model_lacks_is_remembered_for_later_processes(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if "responseLogprobs" in body["generationConfig"]:
            return google_error(400, "Logprobs is not enabled for models/remembered")
        return generate(body, headers)

    async def go(told: Server) -> None:
        for requests in (2, 1):
            model = Gemini("remembered", api_key="k")
            async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
                assert not (await g.ask(SO, [row("xx")])).failures
                assert g.cost.requests == requests
            await model.aclose()
        assert remembered.facts("gemini:remembered")["lacks"] == ["probabilities"]
        assert watches(None, Settings(model="gemini:remembered")) and watches(None, Settings(model="gemini:new"))

    with serve({"/models/remembered:generateContent": handler}) as told:
        monkeypatch.setattr(gemini_api, "VENDOR_URL", told.url)
        run(go(told))


def test_the_tokens_of_a_clip_are_bounded_by_its_seconds() -> None:
    model = Gemini("g", api_key="k", url="http://127.0.0.1:1")
    short, long = (Row((Cell("clip", b"x" * 20_000, "", "video/mp4", s),)) for s in (10.0, 100.0))
    least, most = (model.tokens_at_most(Request((SO,), clip))[0] for clip in (short, long))
    assert most - least == 90 * 320
    assert least > 10 * (258 + 32)
