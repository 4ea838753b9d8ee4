"""Replies of providers, mutated: an answer or a CallError, never another exception."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from wire_cases import DECIDES, PROTOCOLS, ROUTES, Transport, asked, cases, llama, opened, takes

from uql.llm import codec
from uql.llm.providers.anthropic_api import message
from uql.llm.providers.base import Answer, CallError
from uql.llm.providers.chat_reply import ChatReply, completion, formed, response
from uql.llm.providers.gemini_api import generated
from uql.llm.providers.wire import posted

CHAT = {
    "choices": [
        {
            "message": {"content": "Yes", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {
                "content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": [{"token": "No", "logprob": -2}]}]
            },
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 0}},
}
RESPONSE = {
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "Yes", "logprobs": []}]}],
    "usage": {"input_tokens": 10, "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}},
}
MESSAGE = {
    "content": [{"type": "text", "text": "Yes"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": None},
}
GENERATED = {
    "candidates": [
        {
            "content": {"parts": [{"text": "thinking", "thought": True}, {"text": "Yes"}]},
            "finishReason": "STOP",
            "logprobsResult": {
                "chosenCandidates": [{"token": "Yes", "logProbability": -0.1}],
                "topCandidates": [{"candidates": [{"token": "No", "logProbability": -2}]}],
            },
        }
    ],
    "promptFeedback": {"blockReason": "SAFETY"},
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 1, "thoughtsTokenCount": 4},
}
FORMS = [(completion, CHAT), (response, RESPONSE), (message, MESSAGE), (generated, GENERATED)]
OTHERS = [None, True, -1, 1e999, float("nan"), 10**400, "", "x", "\ud800", [], {}, [[]], [None], {"a": 1}, "9" * 5000, 1e200, "1e200", "1e200 days", "²"]  # fmt: skip


def mutated(reply: Any, random: random.Random) -> Any:
    """A copy with one to three places replaced, dropped or doubled."""
    found = copy.deepcopy(reply)
    for _ in range(random.randint(1, 3)):
        at: Any = found
        while True:
            places = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not places:
                break
            place = random.choice(places)
            if isinstance(at[place], dict | list) and random.random() < 0.7:
                at = at[place]
            elif random.random() < 0.3:
                del at[place]
                break
            else:
                at[place] = copy.deepcopy(random.choice(OTHERS))
                break
    return found


def fuzz(read: Callable[[dict[str, Any]], ChatReply], reply: dict[str, Any], count: int) -> None:
    draw = random.Random(7)
    for _ in range(count):
        given = mutated(reply, draw)
        try:
            said = formed(read, given)
            said.problem()
        except CallError:
            continue
        assert isinstance(said.text, str) and said.input_tokens >= 0 and said.output_tokens >= 0, given


@pytest.mark.parametrize(("read", "reply"), FORMS)
def test_a_mutated_reply_is_an_answer_or_a_call_error(read: Any, reply: dict[str, Any]) -> None:
    fuzz(read, reply, 300)


@pytest.mark.slow
@pytest.mark.parametrize(("read", "reply"), FORMS)
def test_many_mutated_replies_are_answers_or_call_errors(read: Any, reply: dict[str, Any]) -> None:
    fuzz(read, reply, 10_000)


@pytest.mark.parametrize(("read", "reply"), FORMS)
@pytest.mark.parametrize(
    "usage",
    [None, [], "many", 3, {"prompt_tokens": "x", "input_tokens": [1], "promptTokenCount": -1}, {"input_tokens": -5}],
)
def test_a_usage_of_the_wrong_type_keeps_the_answer(read: Any, reply: dict[str, Any], usage: Any) -> None:
    said = formed(read, {**reply, "usage": usage, "usageMetadata": usage})
    assert said.text == "Yes" and said.input_tokens == 0


@pytest.mark.parametrize("content", [b"[" * 2_000_000, b'{"a":' * 400_000, b"\xff", b"", b"9" * 10_000])
def test_a_reply_that_nests_too_deep_is_one_failure_of_its_row(content: bytes) -> None:
    async def post(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(status_code=200, content=content)

    with pytest.raises(CallError):
        asyncio.run(posted(SimpleNamespace(post=post), "/x", {}, name="openai", model="m"))


DEEP = "[" * 600 + "]" * 600  # is read, and is deeper than what is kept
NOISE = [
    b"",
    b"{",
    b"[" * 2_000_000,
    b"\xff\xfe",
    b"null",
    b"[]",
    b"9" * 5000,
    b'"x"',
    b'{"choices": ' + DEEP.encode() + b"}",
]
TEXTS = [
    "", "null", "{}", "[]", "x", "[" * 2_000_000, DEEP, '{"q1": ' + DEEP + "}", '{"value": ' + DEEP + "}", '{"rows": ' + DEEP + "}",
    '{"q1": NaN}', '{"q1": 1e999}', '{"q1": ' + "9" * 5000 + "}", '{"value": -1e999}', '{"value": "\\ud800"}', '{"q1": "9999-99-99"}',
    '{"rows": [null, 1, {"row": 1e999}, {"row": true}, {"row": "²"}, {"row": 1}, {"row": 1}]}', '{"q1": {"a": {}}}', "²", "\ud800",
]  # fmt: skip


def spoiled(reply: Any, draw: random.Random) -> Any:
    """A reply whose text is another one, or whose form is."""
    if draw.random() < 0.5:
        return mutated(reply, draw)
    found = copy.deepcopy(reply)
    text = draw.choice(TEXTS)
    for holder in (*found.get("choices", ()), *found.get("output", ()), {"message": found}):
        message = holder.get("message", holder)
        if isinstance(message.get("content"), list):
            for part in message["content"]:
                part["text"] = cut(part["text"], draw) if draw.random() < 0.3 else text
        elif "content" in message:
            message["content"] = cut(message["content"], draw) if draw.random() < 0.3 else text
    return mutated(found, draw) if draw.random() < 0.2 else found


def cut(text: str, draw: random.Random) -> str:
    """The text with its end missing, or with a part of its JSON replaced."""
    try:
        held = json.loads(text)
    except ValueError:
        return text[: draw.randrange(len(text) + 1)]
    if draw.random() < 0.3 or not isinstance(held, dict | list) or not held:
        return text[: draw.randrange(len(text) + 1)]
    return json.dumps(mutated(held, draw))


class Spoiling(Transport):
    """Replies in the form of each protocol, spoiled; now and then bytes that are no JSON."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._draw = draw

    async def post(self, path: str, *, body: dict[str, Any]) -> Any:
        self.last: Any = self._draw.choice(NOISE) if self._draw.random() < 0.1 else None
        if self.last is None:
            self.last = json.dumps(spoiled(ROUTES[path](body), self._draw)).encode()
        return SimpleNamespace(status_code=200, content=self.last)

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        self.last = spoiled(llama(body), self._draw)
        return dict(self.last)


def fuzz_provider(protocol: str, count: int) -> None:
    """Every reply ends in answers that the ledger can keep, or in a failure of the row."""
    draw = random.Random(11)
    held = [case for case in cases() if takes(protocol, case)]
    with opened(protocol, Spoiling(draw)) as (provider, transport):
        for _ in range(count):
            case = draw.choice(held)
            found = asked(provider, case)
            if isinstance(found, str):
                continue
            assert len(found) == len(case.rows)
            for answers in found:
                assert len(answers) == len(case.questions), (case.name, transport.last)
                for answer in answers:
                    assert isinstance(answer, Answer)
                    if answer.problem is None:
                        codec.loads(codec.dumps(answer).encode())


@pytest.mark.parametrize("protocol", [*PROTOCOLS, *DECIDES])
def test_spoiled_replies_of_every_provider_are_answers_or_failures_of_the_row(protocol: str) -> None:
    fuzz_provider(protocol, 150)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [*PROTOCOLS, *DECIDES])
def test_10_000_spoiled_replies_of_every_provider_are_answers_or_failures_of_the_row(protocol: str) -> None:
    fuzz_provider(protocol, 10_000)
