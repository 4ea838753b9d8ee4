"""A vendor's model that takes no JSON schema is asked for JSON in words: the refusal is one request, and no row fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from loopback import (
    chat,
    chat_reply,
    generate,
    generate_reply,
    google_error,
    messages,
    response_reply,
    responses,
    row_text,
    serve,
)
from scripted import row

from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Choice, Predicate

SO, KIND = Predicate("it is so"), Choice("the kind", ("a", "b"))


def said(text: str) -> str:
    """What a model writes that was asked in words: JSON inside a fence, as many do."""
    held = {"q1": len(text) % 2 == 0, "q2": "a"}
    return f"Here it is:\n```json\n{json.dumps(held)}\n```"


def old_chat(body: dict[str, Any], headers: dict[str, str]) -> Any:
    if "response_format" in body:
        message = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
        return 400, {"error": {"message": message, "type": "invalid_request_error", "param": "response_format"}}
    made = chat(body, headers)
    assert isinstance(made, dict)
    return chat_reply(said(row_text(body["messages"][1]["content"])), tokens=False)


def old_responses(body: dict[str, Any], headers: dict[str, str]) -> Any:
    if "text" in body:
        message = "Invalid parameter: 'text.format' of type 'json_schema' is not supported with model version m."
        return 400, {"error": {"message": message, "type": "invalid_request_error", "param": "text.format"}}
    assert isinstance(responses(body, headers), dict)
    text = said(row_text(body["input"][0]["content"][0]["text"]))
    return response_reply([{"type": "output_text", "text": text, "annotations": [], "logprobs": []}])


def old_messages(body: dict[str, Any], headers: dict[str, str]) -> Any:
    if "output_config" in body:
        message = "'m' does not support output_config.format"
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    made = messages(body, headers)
    made["content"][0]["text"] = said(row_text(body["messages"][0]["content"][0]["text"]))
    return made


def old_generate(body: dict[str, Any], headers: dict[str, str]) -> Any:
    if "responseMimeType" in body["generationConfig"]:
        return google_error(400, "JSON mode is not enabled for models/m")
    assert isinstance(generate(body, headers), dict)
    return generate_reply(said(row_text(body["contents"][0]["parts"][-1]["text"])))


@pytest.mark.parametrize(
    "opened",
    [
        lambda url: OpenAI("m", api_key="k", url=url + "/v1", api="chat"),
        lambda url: OpenAI("m", api_key="k", url=url + "/v1", api="responses"),
        lambda url: Anthropic("m", api_key="k", url=url),
        lambda url: Gemini("m", api_key="k", url=url),
    ],
    ids=["chat", "responses", "messages", "generate"],
)
def test_a_model_without_structured_output_is_asked_in_words(run, opened: Callable[[str], Any]) -> None:
    routes = {
        "/v1/chat/completions": old_chat,
        "/v1/responses": old_responses,
        "/v1/messages": old_messages,
        "/models/m:generateContent": old_generate,
    }
    with serve(routes) as told:

        async def go() -> None:
            model = opened(told.url)
            async with Gate.open(Settings(ledger=":memory:", concurrency=1), model=model, calls=None) as g:
                so, kind = await g.ask([SO, KIND], [row("x" * n) for n in range(1, 5)])
                assert not so.failures and not kind.failures
                assert so.values == [False, True, False, True] and kind.values == ["a"] * 4
                assert (g.cost.calls, g.cost.requests) == (4, 5), "the refusal comes once"
                assert model.capabilities.schema is False
            await model.aclose()

        run(go())


def test_a_schema_that_is_wrong_is_an_error_and_no_reason_to_ask_in_words(run) -> None:
    def wrong(body: dict[str, Any], headers: dict[str, str]) -> Any:
        message = "Invalid schema for response_format 'answers': extra keys"
        return 400, {"error": {"message": message, "type": "invalid_request_error", "param": "response_format"}}

    with serve({"/v1/chat/completions": wrong}) as told:

        async def go() -> None:
            model = OpenAI("m", api_key="k", url=told.url + "/v1", api="chat")
            async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
                found = await g.ask(SO, [row("x")])
                assert [f.kind for f in found.failures] == ["bad_request"] and model.capabilities.schema
            await model.aclose()

        run(go())
