"""Replies of providers, mutated: an answer or a CallError, never another exception."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from uql.llm.providers.anthropic_api import message
from uql.llm.providers.base import CallError
from uql.llm.providers.chat_reply import Said, completion, formed, response
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
FORMS = [(completion, CHAT), (response, RESPONSE), (message, MESSAGE)]
OTHERS = [None, True, -1, 1e999, float("nan"), 10**400, "", "x", "\ud800", [], {}, [[]], [None], {"a": 1}, "9" * 5000]


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
                at[place] = random.choice(OTHERS)
                break
    return found


def fuzz(read: Callable[[dict[str, Any]], Said], reply: dict[str, Any], count: int) -> None:
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
    "usage", [None, [], "many", 3, {"prompt_tokens": "x", "input_tokens": [1]}, {"input_tokens": -5}]
)
def test_a_usage_of_the_wrong_type_keeps_the_answer(read: Any, reply: dict[str, Any], usage: Any) -> None:
    said = formed(read, {**reply, "usage": usage})
    assert said.text == "Yes" and said.input_tokens == 0


@pytest.mark.parametrize("content", [b"[" * 2_000_000, b'{"a":' * 400_000, b"\xff", b"", b"9" * 10_000])
def test_a_reply_that_nests_too_deep_is_one_failure_of_its_row(content: bytes) -> None:
    import openai

    async def post(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(content=content)

    with pytest.raises(CallError):
        asyncio.run(posted(SimpleNamespace(post=post), "/x", {}, sdk=openai, name="openai", model="m"))
