"""Embeddings of vendors and servers: voyage:MODEL (texts and images), openai:MODEL (texts) and http(s)://host/v1#MODEL (texts, and images
where the server embeds them), batched to what a request may hold.

They have the shape that features use: `name`, and `embed(texts)` giving vectors of length 1. They are counted apart from the calls of a
run: `tokens` and `requests` add up over the life of an embedder.
"""

from __future__ import annotations

import asyncio
import base64
import io
import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.base.errors import AuthError, BackendError, ConfigError, DataError, ModelError, UnknownModelError, UQLError
from uql.base.extras import install
from uql.base.settings import Settings
from uql.llm import limiter
from uql.llm.failures import FINAL
from uql.llm.pictures import opened
from uql.llm.providers.address import address
from uql.llm.providers.base import CallError, Limits
from uql.llm.providers.chat_reply import reading
from uql.llm.providers.http_client import VENDOR_URL, client, vendor_key
from uql.llm.providers.wire import posted, retry_after

Matrix = NDArray[np.float32]
TEXTS_AT_ONCE = 128
TOKENS_AT_ONCE = 80_000  # below what every model of both vendors takes in one request (120,000 and more)
LONGEST = 90_000  # characters of one text; the rest is cut by the vendor anyway
SHORTEST = 1_000  # characters: a text that is refused as too long is halved down to this
IMAGES_AT_ONCE = 16
PIXELS = 2_000_000  # of one image, about 3,600 tokens: larger ones are made smaller
LARGEST = 1e15  # a part of a vector: the squares of larger ones are beyond float32
TRIES = 6
CHOICES = "voyage:MODEL, openai:MODEL, http(s)://host/v1#MODEL"


def open_embedder(
    spec: str, settings: Settings | None = None, *, announce: Callable[[str, int], None] | None = None
) -> RemoteEmbedder:
    """The embedder of a name.

    Args:
        spec: one of CHOICES.
        settings: `timeout_s`, `max_seconds`, `endpoints` and `offline` are read: offline, vectors that are not kept already are an
            error (UQL411).
        announce: called with its name and the number of texts before the first of them leave this machine.
    Raises: ConfigError on an unknown kind, AuthError where no key is set.
    """
    settings = settings or Settings()
    kind, _, model = spec.partition(":")
    timeout_s, offline = settings.timeout_s, settings.offline
    embedder: RemoteEmbedder | None = None
    if kind == "voyage" and model:
        embedder = Voyage(model, api_key=vendor_key("VOYAGE_API_KEY", "Voyage", offline=offline), timeout_s=timeout_s)
    if kind == "openai" and model:
        embedder = OpenAIEmbedder(
            model, api_key=vendor_key("OPENAI_API_KEY", "OpenAI", offline=offline), timeout_s=timeout_s
        )
    if kind in ("http", "https"):
        at = address(spec, settings, Limits())
        embedder = ServerEmbedder(at.model, api_key=at.api_key, timeout_s=timeout_s, url=at.url)
    if embedder is not None:
        embedder.offline, embedder.announce = offline, announce
        if settings.max_seconds is not None:
            embedder.deadline = time.monotonic() + settings.max_seconds
        return embedder
    raise ConfigError(
        f"there is no embedder {spec!r}", code="UQL402", help=f"choices: {CHOICES}; none for the static one"
    )


def tokens_at_most(text: str) -> float:
    """An upper estimate of a text's tokens: a third of its ASCII characters, and 1.5 for each other one.

    >>> tokens_at_most("a" * 300), tokens_at_most("日本")
    (100.0, 3.0)
    """
    others = 0 if text.isascii() else sum(char > "\x7f" for char in text)
    return (len(text) - others) / 3 + 1.5 * others


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, as many at once as one request may hold, each cut to its longest.

    >>> [len(b) for b in batches(["a"] * 200)]
    [128, 72]
    """
    batch: list[str] = []
    size = 0.0
    for text in texts:
        prefix = text[:LONGEST]
        tokens = tokens_at_most(prefix)
        if batch and (len(batch) == TEXTS_AT_ONCE or size + tokens > TOKENS_AT_ONCE):
            yield batch
            batch, size = [], 0.0
        batch.append(prefix)
        size += tokens
    if batch:
        yield batch


class RemoteEmbedder:
    """Texts to vectors by requests; equal texts of one call are sent once."""

    name: str

    def __init__(self) -> None:
        self.tokens = 0
        self.requests = 0
        self.offline = False
        self.announce: Callable[[str, int], None] | None = None
        self._announced = False
        self.deadline = math.inf  # by the monotonic clock, of the run that asks

    def _remaining_s(self) -> float:
        """Seconds that the run has left. Raises BackendError where there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise BackendError(f"{self.name}: max_seconds ended before the vectors came", help="a larger max_seconds")
        return left

    def _leaving(self, count: int) -> None:
        """Rows are about to leave this machine. Raises ModelError (UQL411) where none may."""
        if self.offline and count:
            raise ModelError(
                f"offline, and {count} vectors of {self.name} are not kept",
                code="UQL411",
                help="run it once without --offline, or without that embedder",
            )
        if count and not self._announced and self.announce is not None:
            self._announced = True
            self.announce(self.name, count)

    @property
    def embeds_images(self) -> bool:
        """Are images embedded too, in the space of the texts?"""
        return False

    @abstractmethod
    def _request(self, texts: list[str]) -> tuple[list[list[float]], int]:
        """The vectors of a batch and its tokens. Raises CallError where trying again may help."""

    def embed(self, texts: Sequence[str | None]) -> Matrix:
        """(n, d) float32, rows of length 1; zeros for a text that is None or empty.

        Raises: AuthError, QuotaError, UnknownModelError; BackendError where the vendor cannot be reached after six tries.
        """
        distinct = list(dict.fromkeys(text for text in texts if text))
        self._leaving(len(distinct))
        vectors: list[list[float]] = []
        for batch in batches(distinct):
            vectors += self._vectors(batch)
        return self._placed(texts, dict(zip(distinct, vectors, strict=True)))

    def embed_images(self, images: Sequence[bytes | None]) -> Matrix:
        """(n, d) float32 for images as files in memory; zeros for None and for bytes that are not an image.

        Raises: DataError (UQL503) where none of the bytes is an image; else as `embed`.
        """
        distinct = list(dict.fromkeys(image for image in images if image))
        self._leaving(len(distinct))
        vectors: dict[bytes, list[float]] = {}
        for start in range(0, len(distinct), IMAGES_AT_ONCE):
            pictures = {image: _picture(image) for image in distinct[start : start + IMAGES_AT_ONCE]}
            shown = {image: picture for image, picture in pictures.items() if picture is not None}
            if shown:
                vectors |= zip(
                    shown, self._send_with_retries(partial(self._images, list(shown.values())), len(shown)), strict=True
                )
        if distinct and not vectors:
            raise DataError(f"{self.name}: none of {len(distinct)} images can be read", code="UQL503")
        return self._placed(images, vectors)

    def _images(self, images: list[Any]) -> tuple[list[list[float]], int]:
        """The vectors of some pictures of Pillow's and their tokens. Raises CallError where trying again may help."""
        raise NotImplementedError(f"{self.name} embeds no images")

    def _vectors(self, batch: list[str]) -> list[list[float]]:
        """Of one batch; one that is refused as too large is sent in halves, a text that is refused alone is cut in half."""
        try:
            return self._send_with_retries(partial(self._request, batch), len(batch))
        except _Refused as error:
            if len(batch) > 1:
                half = len(batch) // 2
                return self._vectors(batch[:half]) + self._vectors(batch[half:])
            if len(batch[0]) <= SHORTEST:
                raise BackendError(f"{self.name}: {error.message}") from error
            return self._vectors([batch[0][: len(batch[0]) // 2]])

    def _send_with_retries(self, send: Callable[[], tuple[list[list[float]], int]], count: int) -> list[list[float]]:
        for attempt in range(1, TRIES + 1):
            self._remaining_s()
            self.requests += 1
            try:
                vectors, tokens = send()
            except CallError as error:
                if error.kind in ("bad_request", "too_long") and _large(error.message):
                    raise _Refused(error.kind, error.message) from error
                if attempt == TRIES or error.kind in FINAL:
                    raise BackendError(f"{self.name}: {error.message}") from error
                wait = error.retry_after_s
                wait = limiter.FIRST_PAUSE_S * 2 ** (attempt - 1) if wait is None else wait
                time.sleep(min(wait, limiter.LONGEST_WAIT_S, self._remaining_s()))
                continue
            if len(vectors) != count:
                raise BackendError(f"{self.name}: {count} texts were sent, {len(vectors)} vectors came")
            self.tokens += tokens
            return vectors
        raise AssertionError("unreachable")

    def _placed(self, items: Sequence[Any], vectors: dict[Any, list[float]]) -> Matrix:
        """The vectors of items, of length 1. Raises: BackendError where their lengths differ, or a value is not a finite number."""
        width = len(next(iter(vectors.values()), ()))
        out = np.zeros((len(items), width), np.float32)
        same = all(len(vector) == width for vector in vectors.values())
        for i, item in enumerate(items):
            if same and item in vectors:
                out[i] = vectors[item]
        if not same or not (np.abs(out) < LARGEST).all():
            raise BackendError(f"{self.name}: the vectors differ in length, or have values that are not finite numbers")
        lengths = np.linalg.norm(out, axis=1, keepdims=True)
        out /= np.where(lengths > 0, lengths, 1.0)
        return out


class _Refused(CallError):
    """A request that is larger than the vendor takes."""


def _large(message: str) -> bool:
    low = message.lower()
    return "token" in low or "too long" in low or "context length" in low or "too large" in low


class OpenAIEmbedder(RemoteEmbedder):
    """openai:MODEL, at the vendor's own host."""

    def __init__(self, model: str, *, api_key: str | None, timeout_s: float = 120.0, url: str = VENDOR_URL) -> None:
        super().__init__()
        self.model, self.name = model, f"openai:{model}"
        self._url, self._key, self._timeout_s = url, api_key, timeout_s

    def _request(self, texts: list[str]) -> tuple[list[list[float]], int]:
        return self._replied({"input": texts})

    def _replied(self, body: dict[str, Any]) -> tuple[list[list[float]], int]:
        """The vectors that a request brings, and its tokens. `body`: what is embedded, as a part of its body."""
        with ThreadPoolExecutor(1, thread_name_prefix="uql-embed") as worker:  # a loop may be running in this one
            return worker.submit(asyncio.run, self._post(body)).result()

    async def _post(self, fields: dict[str, Any]) -> tuple[list[list[float]], int]:
        """One deadline holds for connection, headers and body."""
        timeout_s = min(self._timeout_s, self._remaining_s())
        opened = client(self._url, api_key=self._key, timeout_s=timeout_s, vendor=self._url == VENDOR_URL)
        body = {"model": self.model, "encoding_format": "float", **fields}
        try:
            async with asyncio.timeout(timeout_s):
                reply = await posted(opened, "/embeddings", body, name=self.name, model=self.model)
        except TimeoutError as error:
            raise CallError("timeout", f"no reply within {timeout_s:.3g} s") from error
        finally:
            await opened.close()
        with reading():
            ordered = sorted(reply["data"], key=lambda item: int(item["index"]))
            tokens = (reply.get("usage") or {}).get("total_tokens", 0)  # some servers count none
            return [list(map(float, item["embedding"])) for item in ordered], int(tokens)


class ServerEmbedder(OpenAIEmbedder):
    """http(s)://host/v1#MODEL: a server of OpenAI's protocol.

    Images go in `messages` in the place of `input`, one a request, as vLLM takes them (its documentation, OpenAI-compatible server,
    Embeddings API). Whether a server does is tried once, with a picture of one colour.
    """

    def __init__(self, model: str, *, api_key: str | None, timeout_s: float = 120.0, url: str) -> None:
        super().__init__(model, api_key=api_key, timeout_s=timeout_s, url=url)
        self.name = f"{url}#{model}"

    @cached_property
    def embeds_images(self) -> bool:
        """Tried once; without a request where the run is offline."""
        from PIL import Image

        if self.offline:
            return False
        try:
            self._images([Image.new("RGB", (32, 32), "red")])
        except (CallError, UQLError):
            return False
        return True

    def _images(self, images: list[Any]) -> tuple[list[list[float]], int]:
        vectors, tokens = [], 0
        for image in images:
            buffer = io.BytesIO()
            image.save(buffer, "JPEG", quality=90)
            url = f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
            content = [{"type": "image_url", "image_url": {"url": url}}]
            image_vectors, more = self._replied({"messages": [{"role": "user", "content": content}]})
            vectors += image_vectors
            tokens += more
        return vectors, tokens


class Voyage(RemoteEmbedder):
    """voyage:MODEL, at the vendor's own host; a multimodal model embeds images too."""

    def __init__(self, model: str, *, api_key: str, timeout_s: float = 120.0, url: str | None = None) -> None:
        super().__init__()
        try:
            import voyageai
            from voyageai.client import Client
        except ImportError as error:
            raise ConfigError(
                "this embedder needs the voyageai package", code="UQL402", help=install("voyage")
            ) from error
        self.model, self.name = model, f"voyage:{model}"
        self._errors: Any = voyageai.error
        self._client: Any = Client(api_key=api_key, max_retries=0, timeout=timeout_s, base_url=url)

    @property
    def embeds_images(self) -> bool:
        return "multimodal" in self.model

    def _request(self, texts: list[str]) -> tuple[list[list[float]], int]:
        if self.embeds_images:
            return self._send(
                lambda: self._client.multimodal_embed([[text] for text in texts], self.model, input_type="document")
            )
        return self._send(lambda: self._client.embed(texts, model=self.model, input_type="document", truncation=True))

    def _images(self, images: list[Any]) -> tuple[list[list[float]], int]:
        inputs = [[image] for image in images]
        return self._send(lambda: self._client.multimodal_embed(inputs, self.model, input_type="document"))

    def _send(self, send: Callable[[], Any]) -> tuple[list[list[float]], int]:
        errors = self._errors
        try:
            reply = send()
        except errors.AuthenticationError as error:
            raise AuthError(
                f"{self.name} refused the key: {error}", help="set VOYAGE_API_KEY in the environment"
            ) from error
        except errors.RateLimitError as error:
            raise CallError(
                "rate_limit", str(error), retry_after_s=retry_after(getattr(error, "headers", None) or {})
            ) from error
        except (errors.InvalidRequestError, errors.MalformedRequestError) as error:
            if "model" in str(error).lower() and "not" in str(error).lower():
                raise UnknownModelError(f"{self.name}: {error}") from error
            raise CallError("bad_request", str(error)) from error
        except errors.Timeout as error:
            raise CallError("timeout", str(error)) from error
        except (errors.ServerError, errors.ServiceUnavailableError, errors.TryAgain) as error:
            raise CallError("server", str(error)) from error
        except errors.VoyageError as error:
            raise CallError("connection", str(error)) from error
        return [list(vector) for vector in reply.embeddings], int(reply.total_tokens)


def _picture(data: bytes) -> Any:
    """The picture of a file in memory, at most PIXELS large, its sides in proportion; None where it is none."""
    try:
        image = opened(data).convert("RGB")
    except (OSError, ValueError, SyntaxError):
        return None
    share = (PIXELS / (image.width * image.height)) ** 0.5
    return image if share >= 1 else image.resize((max(1, int(image.width * share)), max(1, int(image.height * share))))
