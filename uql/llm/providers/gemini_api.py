"""gemini:MODEL, at the vendor's own host: generateContent, which takes images, sounds and videos as files.

The form of requests and replies is that of ai.google.dev/api/generate-content and of `types.py` in the Python package google-genai 3.6.
What a model lacks (log-probabilities, JSON schemas, sounds, …) it says when it is first sent that; it is remembered for a week.
"""

from __future__ import annotations

import base64
import math
from functools import partial
from typing import Any
from urllib.parse import quote

from uql.base.errors import ModelError
from uql.base.settings import Settings
from uql.base.vendors import VENDORS
from uql.llm.prices import price_of
from uql.llm.prompts import fused
from uql.llm.providers import server_abilities as remembered
from uql.llm.providers.base import CallError, Capabilities, Limits, Price, Request, Usage
from uql.llm.providers.chat import Token, picture, tokens_at_most
from uql.llm.providers.chat_provider import ChatProvider
from uql.llm.providers.chat_reply import ChatReply, counts, formed
from uql.llm.providers.compatible import REASONING_TOKENS
from uql.llm.providers.http_client import Client, account_of, vendor_key
from uql.llm.providers.wire import call, posted
from uql.llm.questions import Cell, Question, Row
from uql.operators.record import Prompt
from uql.operators.rows import media

KEY, TITLE = "GEMINI_API_KEY", "Gemini"
VENDOR_URL = VENDORS["gemini"].url
FILES = {  # sounds and videos that are sent as they are, as the vendor calls them
    "audio/wav": "audio/wav",
    "audio/mpeg": "audio/mp3",
    "audio/flac": "audio/flac",
    "audio/ogg": "audio/ogg",
    "video/mp4": "video/mp4",
    "video/quicktime": "video/mov",
    "video/webm": "video/webm",
}
FRAMES_A_SECOND = 1.0  # of a video: as many as a search by frames asks
THINKING_TOKENS = 1_024  # what a model may think before its reply; a fourth of the room that it has for that
LACKS = {  # words of a refusal, and what the model does not have
    "logprobs": "probabilities",
    "json mode": "schema",
    "image input": "images",
    "audio input": "audio",
    "video input": "video",
    "thinking": "thinking",
}
MEDIA = ("images", "audio", "video")
FILTERED = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "ESCALATION"}


def open_provider(rest: str, settings: Settings) -> Gemini:
    """The vendor's model of a name. Raises AuthError where no key is set."""
    key = vendor_key(KEY, TITLE, offline=settings.offline)
    return Gemini(rest, api_key=key, timeout_s=settings.timeout_s, price=price_of(f"gemini:{rest}", settings))


class Gemini(ChatProvider):
    """One model of the vendor."""

    def __init__(
        self, model: str, *, api_key: str, timeout_s: float = 120.0, url: str = "", price: Price | None = None
    ) -> None:
        self.model, self.name = model, f"gemini:{model}"
        self.price: Price | None = price or price_of(self.name)
        self.limits = Limits(concurrency=64, adaptive=True, account=account_of(api_key))
        self._client = client(api_key, timeout_s, url=url)
        self._own_host = not url
        learnt = remembered.facts(self.name) if self._own_host else {}
        self._lacks = {name for name in learnt.get("lacks", ()) if name in LACKS.values()}
        self._thinks = learnt.get("thinks") is True
        self._context: int | None = None

    @property
    def capabilities(self) -> Capabilities:
        has = {name: name not in self._lacks for name in ("probabilities", "schema", *MEDIA)}
        return Capabilities(context=self._context, **has)

    def version(self, question: Question) -> str:
        return f"{fused.version(question)}/chat-1/t0"  # as over OpenAI's protocol: what is asked is the same

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        most_in, most_out = tokens_at_most(request, word=not self._talks)
        return most_in, self._with_room(most_out)

    async def learn_context(self) -> None:
        """Learns the context that the vendor states, before the first request: it costs no tokens."""
        if self._context is None:
            try:
                stated = await call(partial(self._client.get, self._path), name=self.name, model=self.model)
            except (CallError, ModelError):  # nothing is known then
                return
            tokens = stated.get("inputTokenLimit")
            self._context = tokens if isinstance(tokens, int) and tokens > 0 else None

    async def _ready(self, row: Row, usage: Usage) -> Capabilities:
        can = self.capabilities
        for cell in media(row):
            kind = cell.media_type.partition("/")[0]
            if not {"image": can.images, "audio": can.audio, "video": can.video}.get(kind, True):
                raise CallError("bad_request", f"{self.name} takes no {kind}s", sent=False)
        return can

    def _with_room(self, bound: int) -> int:
        return bound + REASONING_TOKENS if self._thinks else bound

    @property
    def _path(self) -> str:
        return quote(f"/{self.model}" if "/" in self.model else f"/models/{self.model}")

    async def _message(self, words: Prompt, row: Row, body: dict[str, Any], usage: Usage) -> ChatReply:
        sent = {
            "systemInstruction": {"parts": [{"text": words.system}]},
            "contents": [{"role": "user", "parts": [*map(part, media(row)), {"text": words.user}]}],
            "generationConfig": self._config(body),
        }
        usage.requests += 1
        try:
            reply = await posted(self._client, f"{self._path}:generateContent", sent, name=self.name, model=self.model)
        except CallError as error:
            plainer = self._plainer(error, body)
            if plainer is None:
                raise
            return await self._message(words, row, plainer, usage)
        chat_reply = formed(generated, reply)
        usage.add(chat_reply.input_tokens, chat_reply.output_tokens, chat_reply.cached_tokens)
        if chat_reply.finish == "length" and chat_reply.reasoned and not self._thinks:
            self._thinks = True  # its thoughts took the place of a reply: from now on there is room for them
            self._remember()
        return chat_reply

    def _config(self, body: dict[str, Any]) -> dict[str, Any]:
        """The vendor's names of the parameters of a chat completion, without those that the model does not have."""
        config = {
            "temperature": body.get("temperature", 0.0),
            "seed": body.get("seed", 0),
            "maxOutputTokens": body["max_tokens"],
        }
        form = body.get("response_format")
        if form and "schema" not in self._lacks:
            config["responseMimeType"] = "application/json"
            if form["type"] == "json_schema":
                config["responseJsonSchema"] = form["json_schema"]["schema"]
        if body.get("logprobs") and "probabilities" not in self._lacks:
            config |= {"responseLogprobs": True, "logprobs": body["top_logprobs"]}
        if self._thinks and "thinking" not in self._lacks:
            config["thinkingConfig"] = {"thinkingBudget": THINKING_TOKENS}
        return config

    def _plainer(self, error: CallError, body: dict[str, Any]) -> dict[str, Any] | None:
        """The parameters without the one that was refused, by which the same can be asked; None where there is no such one."""
        message = error.message.lower()
        lacking = next((name for words, name in LACKS.items() if words in message), None)
        if error.kind != "bad_request" or lacking in self._lacks:
            return None
        if lacking is not None:
            self._lacks.add(lacking)
            self._remember()
            return None if lacking in MEDIA else body
        form = body.get("response_format")
        if (
            "schema" in message and form and form["type"] == "json_schema"
        ):  # this one is too large for it, or unlike those it knows
            return {**body, "response_format": {"type": "json_object"}}
        return None

    def _remember(self) -> None:
        """Keep what was learnt of the model for later processes."""
        if self._own_host:
            remembered.keep_facts(
                self.name, {"lacks": sorted(self._lacks), "thinks": self._thinks, "video": self.capabilities.video}
            )


def client(api_key: str, timeout_s: float, *, url: str = "") -> Client:
    """A client of the vendor's protocol.

    Args:
        api_key: that the vendor gave.
        timeout_s: of one request.
        url: of a server other than the vendor's.
    """
    return Client(url or VENDOR_URL, api_key=api_key, timeout_s=timeout_s, key_header="x-goog-api-key")


def part(cell: Cell) -> dict[str, Any]:
    """An image, a sound or a video as a part of a message. Raises CallError on other media."""
    kind = FILES.get(cell.media_type)
    if kind is None or not isinstance(cell.value, bytes):
        kind, data = picture(cell)
        return {"inlineData": {"mimeType": kind, "data": data}}
    inline: dict[str, Any] = {"inlineData": {"mimeType": kind, "data": base64.b64encode(cell.value).decode()}}
    return {**inline, "videoMetadata": {"fps": FRAMES_A_SECOND}} if kind.startswith("video/") else inline


def generated(reply: dict[str, Any]) -> ChatReply:
    """A reply of generateContent, read. Raises CallError (empty) where it has no candidates, and no reason for that."""
    read, output, thought, cached = counts(
        {"usage": reply.get("usageMetadata")},
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
    )
    used: Any = {"input_tokens": read, "output_tokens": output + thought}
    candidates = reply.get("candidates") or []
    if not candidates:
        blocked = (reply.get("promptFeedback") or {}).get("blockReason")
        if not blocked:
            raise CallError("empty", "the reply has no candidates", **used)
        return ChatReply("", "content_filter", [], None, read, output + thought, thought, cached)
    first = candidates[0]
    parts = (first.get("content") or {}).get("parts") or []
    text = "".join(str(item["text"]) for item in parts if "text" in item and not item.get("thought"))
    why = str(first.get("finishReason") or "STOP")
    finish = "content_filter" if why in FILTERED else {"MAX_TOKENS": "length", "STOP": "stop"}.get(why, why.lower())
    tokens = _tokens(first.get("logprobsResult") or {})
    return ChatReply(text, finish, tokens, None, read, output + thought, thought, cached)


def _tokens(result: dict[str, Any]) -> list[Token]:
    """The tokens of a reply; the one that was chosen need not be among the likely ones."""
    tokens = []
    for token, others in zip(result.get("chosenCandidates") or (), result.get("topCandidates") or (), strict=False):
        shares = {
            str(candidate["token"]): math.exp(min(0.0, float(candidate["logProbability"])))
            for candidate in (token, *(others.get("candidates") or ()))
        }
        tokens.append(Token(str(token["token"]), shares))
    return tokens
