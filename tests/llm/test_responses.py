"""openai:MODEL by its two chat endpoints: which one is asked, what is sent, and models that reason before they answer."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Server, chat, chat_reply, generate, messages, response_reply, responses, serve, strict
from PIL import Image
from scripted import row

from uql.base.errors import ConfigError, UnknownModelError
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers import open_provider, openai_api
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import Price
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Cell, Choice, Extract, Predicate, Row, Score, Write

SO = Predicate("it is so")
ONLY = (404, {"error": {"message": "This model is only supported in v1/responses and not in v1/chat/completions."}})


def gate(model: OpenAI, **more: Any) -> Gate:
    return Gate.open(Settings(ledger=":memory:", budget="all").with_values(**more), model=model)


def model(told: Server, **more: Any) -> OpenAI:
    return OpenAI("gpt-x", api_key="k", url=f"{told.url}/v1", **more)


def of(told: Server, key: str) -> list[dict[str, Any]]:
    return [body for body in told.bodies if key in body]


def test_a_model_that_is_no_chat_is_asked_through_responses_from_then_on(run) -> None:
    async def go(told: Server) -> None:
        async with gate(model(told)) as g:
            questions = [SO, Choice("kind", ("a", "b")), Score("much", 6), Extract("n", "BIGINT")]
            said = await g.ask(questions, [row("x" * n) for n in range(1, 7)])
            assert not any(answers.failures for answers in said)
            assert said[0].values == [n % 2 == 0 for n in range(1, 7)] and said[3].values == [1, 2, 3, 4, 5, 6]
            assert said[0].probabilities == pytest.approx([0.9 if v else 0.1 for v in said[0].values])
            chats = len(of(told, "messages"))
            assert chats <= 6
            await g.ask(SO, [row("another")])
            assert (await g.ask(Write("say it"), [Row()])).values == ["a text about 6"]
            assert len(of(told, "messages")) == chats, "which endpoint it is was learnt"
            assert g.cost.calls == 8 and g.cost.input_tokens == 8 * 25 and g.cost.output_tokens == 8 * 9
        sent = of(told, "instructions")[0]
        assert sent["temperature"] == 0 and sent["include"] == ["message.output_text.logprobs"]

    with serve({"/v1/chat/completions": lambda b, h: ONLY, "/v1/responses": responses}) as told:
        run(go(told))


def test_the_endpoint_can_be_said(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "vendor-secret")

    async def go(told: Server) -> None:
        monkeypatch.setattr(openai_api, "OpenAI", lambda name, **more: OpenAI(name, url=f"{told.url}/v1", **more))
        for spec, key in (("openai:gpt-x?api=responses", "instructions"), ("openai:gpt-x", "messages")):
            opened = open_provider(spec, Settings())
            before = len(of(told, key))
            async with gate(opened) as g:
                assert not (await g.ask(SO, [row("xx")])).failures
            assert len(of(told, key)) == before + 1 and opened.name == "openai:gpt-x"
        with pytest.raises(ConfigError, match="api=responses"):
            open_provider("openai:gpt-x?api=other", Settings())
        async with gate(model(told, api="chat")) as g:
            assert not (await g.ask(SO, [row("xx")])).failures

    with serve({"/v1/chat/completions": chat, "/v1/responses": responses}) as told:
        run(go(told))
    with serve({"/v1/chat/completions": lambda b, h: ONLY, "/v1/responses": responses}) as told:

        async def refused() -> None:
            async with gate(model(told, api="chat")) as g:
                with pytest.raises(UnknownModelError):
                    await g.ask(SO, [row("x")])

        run(refused())


def test_images_go_to_responses_and_sounds_to_chat(run) -> None:
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")

    async def go(told: Server) -> None:
        async with gate(model(told, api="responses")) as g:
            assert not (await g.ask(SO, [Row((Cell("photo", made.getvalue(), "", "image/png"),))])).failures
            assert not (await g.ask(SO, [Row((Cell("clip", b"RIFF", "", "audio/wav"),))])).failures
        assert [p["type"] for p in of(told, "instructions")[0]["input"][0]["content"]] == ["input_text", "input_image"]
        assert len(of(told, "messages")) == 1

    with serve({"/v1/chat/completions": chat, "/v1/responses": responses}) as told:
        run(go(told))


FAILED = [
    (response_reply([{"type": "refusal", "refusal": "no"}]), "refusal", 1),
    (response_reply([], "incomplete", incomplete_details={"reason": "content_filter"}), "content_filter", 1),
    (response_reply([], "incomplete", incomplete_details={"reason": "max_output_tokens"}), "truncated", 2),
    (response_reply([], "failed", error={"code": "server_error", "message": "sorry"}), "server", 5),
    (response_reply([], "failed", error={"code": "rate_limit_exceeded", "message": "slow"}), "rate_limit", 8),
    (response_reply([]), "empty", 2),
    ({"id": "resp", "output": 5}, "wrong_type", 2),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "kind", "tries"), FAILED, ids=[kind for _, kind, _ in FAILED])
def test_what_a_response_can_fail_by(run, reply: Any, kind: str, tries: int) -> None:
    def faulty(body: dict[str, Any], headers: dict[str, str]) -> Any:
        return reply if "bad" in str(body["input"]) else responses(body, headers)

    async def go(told: Server) -> None:
        async with gate(model(told, api="responses"), concurrency=1) as g:
            answers = await g.ask(SO, [row("good"), row("bad"), row("fine")])
            assert [(f.index, f.kind) for f in answers.failures] == [(1, kind)] and g.cost.calls == 2 + tries

    with serve({"/v1/responses": faulty}) as told:
        run(go(told))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_model_that_reasons_gets_room_for_it_within_the_budget(run, api: str) -> None:
    """Its first reply is cut before it began; from then on it may reason, at a low effort, and the budget reserves for that."""

    def reasoning(body: dict[str, Any], headers: dict[str, str]) -> Any:
        cap = body.get("max_completion_tokens") or body.get("max_output_tokens")
        if "temperature" in body:
            return 400, {"error": {"message": "Unsupported parameter: 'temperature'", "param": "temperature"}}
        if cap < 1000 and api == "chat":
            reply = chat_reply("", tokens=False, finish="length", used=(30, cap))
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": cap}
            return reply
        if cap < 1000:
            reply = response_reply([], "incomplete", incomplete_details={"reason": "max_output_tokens"})
            reply["usage"] |= {"output_tokens": cap, "output_tokens_details": {"reasoning_tokens": cap}}
            return reply
        assert body.get("reasoning_effort", body.get("reasoning", {}).get("effort")) == "low"
        more = {key: value for key, value in body.items() if key != "reasoning_effort"}
        answer: Callable[..., Any] = chat if api == "chat" else responses
        return answer(more, headers)

    async def go(told: Server) -> None:
        reasons = model(told, api=api, price=Price(1.0, 1.0))
        async with gate(reasons, max_tokens=100_000, concurrency=1) as g:
            answers = await g.ask(SO, [row("xx"), row("yyy")])
            assert answers.values == [True, False] and g.cost.calls == 3
            assert g.budget.largest_tokens > 4000 and g.cost.usd == pytest.approx(g.budget.spent_usd)

    with serve({"/v1/chat/completions": reasoning, "/v1/responses": reasoning}) as told:
        run(go(told))


def test_the_schemas_sent_are_those_that_strict_mode_takes() -> None:
    from uql.llm.prompts import fused

    wanted = fused.schema((SO, Choice("kind", ("a", 'say "b"\n'), many=True), Extract("p", "STRUCT(a VARCHAR)")))
    assert strict(wanted) and "\n" not in str(wanted["properties"]["q2"]["items"]["enum"])


KERNELS = [
    '{"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 40}, "minItems": 1, "maxItems": 8}',
    '{"type": "boolean"}',
    '{"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}',
    '{"type": "object", "properties": {"yes": {"type": "array", "items": {"type": "string", "maxLength": 9}}}}',
]


@pytest.mark.parametrize("schema", KERNELS)
def test_what_kernels_want_written_is_asked_in_a_form_that_strict_mode_takes(run, schema: str) -> None:
    async def go(told: Server) -> None:
        for asked in (
            model(told),
            model(told, api="responses"),
            Anthropic("claude-x", api_key="k", url=told.url),
            Gemini("gemini-x", api_key="k", url=told.url),
            OpenAI("gpt-6-luna", api_key="k", url=f"{told.url}/v1"),
        ):
            async with gate(asked) as g:
                answers = await g.ask(Write("the names", schema=schema), [Row()])
                assert not answers.failures and isinstance(answers.values[0], bool | list | dict)

    routes = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}
    with serve({**routes, "/models/gemini-x:generateContent": generate}) as told:
        run(go(told))
