"""anthropic:MODEL, at the vendor's own host: Messages with a JSON schema as output format, the shared instruction cached.

The API has no temperature and no log-probabilities: answers have no probability. Its form is that of `types/message_create_params.py` and
`types/message.py` in the Python package anthropic 2.14.0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.base.settings import Settings
from uql.base.vendors import VENDORS
from uql.llm.prices import price_of
from uql.llm.prompts import fused
from uql.llm.providers.base import CallError, Capabilities, Limits, Price, Request, Usage
from uql.llm.providers.batches import ANTHROPIC, Service
from uql.llm.providers.chat import picture, tokens_at_most
from uql.llm.providers.chat_provider import ChatProvider
from uql.llm.providers.chat_reply import ChatReply, counts, formed
from uql.llm.providers.http_client import Client, account_of, ambient_headers, vendor_key
from uql.llm.providers.wire import posted, unstructured
from uql.llm.questions import Question, Row
from uql.operators.record import Prompt
from uql.operators.rows import media

VENDOR_URL = VENDORS["anthropic"].url
VERSION = "2026-10-21"  # of the API
CONTEXT, OUTPUT = 200_000, 8_192  # tokens that every model which the vendor serves has at least


def open_provider(rest: str, settings: Settings) -> Anthropic:
    """The vendor's model of a name. Raises AuthError where no key is set."""
    key = vendor_key("ANTHROPIC_API_KEY", "Anthropic", offline=settings.offline)
    return Anthropic(rest, api_key=key, timeout_s=settings.timeout_s, price=price_of(f"anthropic:{rest}", settings))


class Anthropic(ChatProvider):
    """One model of the vendor."""

    batches: Service | None = ANTHROPIC
    capabilities = Capabilities(
        probabilities=False,
        schema=True,
        images=True,
        audio=False,
        context=CONTEXT,
        output=OUTPUT,
    )

    def __init__(
        self, model: str, *, api_key: str, timeout_s: float = 120.0, url: str = VENDOR_URL, price: Price | None = None
    ) -> None:
        self.model, self.name = model, f"anthropic:{model}"
        self.price: Price | None = price or price_of(self.name)
        self.limits = Limits(concurrency=64, adaptive=True, account=account_of(api_key))
        headers = ambient_headers("ANTHROPIC_CUSTOM_HEADERS") if url == VENDOR_URL else {}
        headers |= {"anthropic-version": VERSION}
        self._client = Client(url, api_key=api_key, timeout_s=timeout_s, headers=headers, on_limits=self._update_limits)

    def version(self, question: Question) -> str:
        return f"{fused.version(question)}/messages-1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return tokens_at_most(request, word=not self._talks)

    async def _ready(self, row: Row, usage: Usage) -> Capabilities:
        return self.capabilities

    async def _message(self, words: Prompt, row: Row, body: dict[str, Any], usage: Usage) -> ChatReply:
        content: list[Any] = [_image(cell) for cell in media(row)]
        content.append({"type": "text", "text": words.user})
        sent: dict[str, Any] = {
            "system": [{"type": "text", "text": words.system, "cache_control": {"type": "ephemeral"}}]
        }
        if "response_format" in body:
            schema = body["response_format"]["json_schema"]["schema"]
            sent["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        usage.requests += 1
        messages = [{"role": "user", "content": content}]
        sent |= {"model": self.model, "max_tokens": body["max_tokens"], "messages": messages}
        try:
            reply = await posted(self._client, "/v1/messages", sent, name=self.name, model=self.model)
        except CallError as error:
            if "output_config" not in sent or not unstructured(error):
                raise
            self.capabilities = replace(self.capabilities, schema=False)  # from now on it is asked for JSON in words
            body = {name: value for name, value in body.items() if name != "response_format"}
            return await self._message(words, row, body, usage)
        chat_reply = formed(message, reply)
        usage.add(
            chat_reply.input_tokens, chat_reply.output_tokens, chat_reply.cached_tokens, chat_reply.written_tokens
        )
        return chat_reply


def message(reply: dict[str, Any]) -> ChatReply:
    """A reply of Messages, read."""
    plain, cache_writes, cached, output = counts(
        reply, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
    )
    text = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
    stop = reply.get("stop_reason")
    finish = {"max_tokens": "length", "model_context_window_exceeded": "too_long"}.get(str(stop), "stop")
    declined = (text or stop) if stop == "refusal" else None
    return ChatReply(text, finish, [], declined, plain + cache_writes + cached, output, 0, cached, cache_writes)


def _image(cell: Any) -> dict[str, Any]:
    kind, data = picture(cell)
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
