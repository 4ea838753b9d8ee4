"""What a chat model said: the form that replies of all chat protocols are brought to, and OpenAI's two, read from their JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uql.llm.providers.base import CallError, Problem
from uql.llm.providers.chat import Token
from uql.operators.replies import well_formed

MAX_TOKENS = 10**12  # a reply that reports more reports nonsense


@dataclass(slots=True)
class ChatReply:
    """One reply.

    Attributes:
        finish: "stop", "length" (cut at its limit of tokens), "too_long" (no room in the context), "content_filter", or the
            server's own word.
        tokens: with their likely alternatives, where the server gave any.
        reasoned: tokens of hidden reasoning among the output tokens.
        cached_tokens: of the input, those read from the vendor's prompt cache.
        written_tokens: of the input, those written to it.
    """

    text: str
    finish: str
    tokens: list[Token]
    refusal: str | None
    input_tokens: int = 0
    output_tokens: int = 0
    reasoned: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0

    def problem(self) -> Problem | None:
        """Why the reply is of no use; None where it may be read."""
        if self.refusal:
            return Problem("refusal", "the model declined to answer", self.refusal)
        if self.finish == "content_filter":
            return Problem("content_filter", "the provider's filter held the answer back", self.text)
        if self.finish == "length":
            return Problem("truncated", "the reply was cut at its limit", self.text)
        if self.finish == "too_long":
            return Problem("too_long", "the request and its reply do not fit the context", self.text)
        if not self.text.strip():
            return Problem("empty", "the reply was empty")
        return None


class reading:
    """Around what is read of a reply. Raises CallError (wrong_type) where it has not the form of its protocol.

    A class, since a generator takes 2 µs of each call.
    """

    def __enter__(self) -> None:
        """Nothing is opened."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)):
            raise CallError("wrong_type", f"the reply has not the form of its protocol: {error!r}") from error


def formed(read: Callable[[dict[str, Any]], ChatReply], reply: dict[str, Any]) -> ChatReply:
    """What `read` makes of a reply. Raises as `reading`."""
    with reading():
        chat_reply = read(reply)
        text = well_formed(without_thinking(chat_reply.text))
        return chat_reply if text == chat_reply.text else replace(chat_reply, text=text)


def without_thinking(text: str) -> str:
    """A reply without the reasoning before it, which some servers leave in its text.

    >>> without_thinking("<think>is it {red}?</think> yes")
    'yes'
    """
    head, end, said = text.partition("</think>")
    return said.lstrip() if end and head.lstrip().startswith("<think>") else text


def counts(reply: dict[str, Any], *names: str) -> tuple[int, ...]:
    """The token counts that a reply reports under `names`; 0 for what is missing or no count, so that the answer is kept.

    A dot parts the levels.
    """
    used = reply.get("usage")
    return tuple([_count(used, name) for name in names])


def _count(used: Any, name: str) -> int:
    for level in name.split(".") if "." in name else (name,):
        used = used.get(level) if isinstance(used, dict) else None
    if used is None or isinstance(used, bool) or not isinstance(used, (int, float)) or not 0 <= used <= MAX_TOKENS:
        return 0
    return int(used)


def _names(read: str, written: str) -> tuple[str, ...]:
    """Where an endpoint, which calls input and output so, reports the last fields of `ChatReply`."""
    inner = f"{read}_tokens_details"
    return (
        f"{read}_tokens",
        f"{written}_tokens",
        f"{written}_tokens_details.reasoning_tokens",
        f"{inner}.cached_tokens",
        f"{inner}.cache_write_tokens",
    )


OF_COMPLETIONS, OF_RESPONSES = _names("prompt", "completion"), _names("input", "output")


def completion(reply: dict[str, Any]) -> ChatReply:
    """A chat completion. Raises CallError (empty) where it has no choices."""
    used = counts(reply, *OF_COMPLETIONS)
    if not reply.get("choices"):
        raise CallError("empty", "the reply has no choices", input_tokens=used[0], output_tokens=used[1])
    first = reply["choices"][0]
    message = first["message"]
    steps = (first.get("logprobs") or {}).get("content") or ()
    return ChatReply(
        _text(message.get("content")),
        first.get("finish_reason") or "",
        _tokens(steps),
        message.get("refusal"),
        *used,
    )


def response(reply: dict[str, Any]) -> ChatReply:
    """A response. Raises CallError where the vendor reports a failure of its own."""
    used = counts(reply, *OF_RESPONSES)
    failure = reply.get("error")
    if reply.get("status") == "failed" or failure:
        code = str((failure or {}).get("code") or "")
        kind = "rate_limit" if "rate_limit" in code else "content_filter" if "policy" in code else "server"
        message = str((failure or {}).get("message") or "the response failed")[:300]
        raise CallError(kind, message, input_tokens=used[0], output_tokens=used[1])
    parts = [part for item in reply["output"] if item.get("type") == "message" for part in item["content"]]
    why = (reply.get("incomplete_details") or {}).get("reason")
    finish = {"max_output_tokens": "length", None: "stop"}.get(why, str(why))
    refusal = next((str(part["refusal"]) for part in parts if part["type"] == "refusal"), None)
    texts = [part for part in parts if part["type"] == "output_text"]
    steps = [step for part in texts for step in part.get("logprobs") or ()]
    return ChatReply("".join(part["text"] for part in texts), finish, _tokens(steps), refusal, *used)


def _text(content: Any) -> str:
    if isinstance(content, list):  # some gateways split it
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")


def _tokens(steps: Sequence[dict[str, Any]]) -> list[Token]:
    tokens = []
    for step in steps:
        shares: dict[str, float] = {}
        for item in step.get("top_logprobs") or ():
            token = str(item["token"])
            shares[token] = shares.get(token, 0.0) + math.exp(min(0.0, float(item["logprob"])))
        tokens.append(Token(str(step["token"]), shares))
    return tokens
