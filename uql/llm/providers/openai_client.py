"""The openai SDK for the vendor's host and for servers that speak its protocol: clients, keys, and the meaning of its errors."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from uql.errors import AuthError, BackendError, ConfigError, QuotaError, UnknownModelError
from uql.llm.providers.base import CallError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
VENDOR_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # the SDK wants one; sent to servers that were given none


def client(base_url: str, *, api_key: str | None, timeout_s: float, vendor: bool = False) -> AsyncOpenAI:
    """A client that retries nothing, follows no redirect, and takes its key from nowhere but `api_key`.

    What the SDK reads from the environment (organisation, project, custom headers) goes to the vendor's own host alone.
    Raises: ConfigError where the SDK is not installed.
    """
    try:
        import httpx2
        import openai
    except ImportError as error:
        raise ConfigError(
            "this model needs the openai package", code="UQL402", help="pip install 'uql-engine[openai]'"
        ) from error
    ambient = {"openai-organization", "openai-project"}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"):
        ambient.add(line.partition(":")[0].strip().lower())

    async def strip(request: Any) -> None:
        for name in ambient:
            if name and name in request.headers and name not in ("content-type", "content-length", "host"):
                del request.headers[name]
        request.headers["authorization"] = f"Bearer {api_key or NO_KEY}"

    http = httpx2.AsyncClient(
        timeout=httpx2.Timeout(timeout_s, connect=min(10.0, timeout_s)),
        limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=256),
        follow_redirects=False,
        event_hooks={} if vendor else {"request": [strip]},
    )
    return openai.AsyncOpenAI(base_url=base_url, api_key=api_key or NO_KEY, max_retries=0, http_client=http)


async def call(send: Callable[[], Awaitable[T]], *, name: str, model: str) -> T:
    """Send a request, its errors turned into ours.

    Raises: AuthError, QuotaError, UnknownModelError, BackendError (they concern every row); CallError (this one).
    """
    import httpx2
    import openai

    try:
        return await send()
    except openai.APITimeoutError as error:
        raise CallError("timeout", str(error)) from error
    except openai.APIConnectionError as error:
        raise CallError("connection", f"{error} {error.__cause__ or ''}".strip()) from error
    except openai.APIStatusError as error:
        raise status_error(error, name=name, model=model) from error
    except openai.APIResponseValidationError as error:
        raise CallError("truncated", f"the reply cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise CallError("truncated", f"the reply is not whole JSON: {error}") from error
    except httpx2.HTTPError as error:
        raise CallError("connection", str(error) or type(error).__name__) from error


def status_error(error: Any, *, name: str, model: str) -> Exception:
    """What an HTTP status means, by the table of failures."""
    status, code = int(error.status_code), str(error.code or error.type or "")
    message = _message(error)
    if status == 401 or (status == 403 and "quota" not in code):
        return AuthError(
            f"{name} refused the key ({status}): {message}", help="set the key in the environment; see uql config show"
        )
    if status == 402 or "insufficient_quota" in code or "billing" in code:
        return QuotaError(f"{name}: the quota is used up: {message}")
    if status == 404:
        return UnknownModelError(f"{name} knows no model {model!r}: {message}")
    if 300 <= status < 400:
        return BackendError(
            f"{name} redirects ({status}) and is not followed", help="give the address it redirects to, if you trust it"
        )
    if status == 429:
        return CallError("rate_limit", message, retry_after_s=retry_after(error.response.headers))
    if status in (408, 409) or status >= 500:
        kind = "timeout" if status == 408 else "server"
        return CallError(kind, f"{status}: {message}", retry_after_s=retry_after(error.response.headers))
    if (
        status == 413
        or "context_length" in code
        or "exceed_context" in code
        or "context size" in message
        or "maximum context" in message
    ):
        return CallError("too_long", message)
    if "content_filter" in code or "content_policy" in code:
        return CallError("content_filter", message)
    return CallError("bad_request", f"{status}: {message}")


def _message(error: Any) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            return str(inner["message"])[:300]
    return str(error)[:300]


def retry_after(headers: Any) -> float | None:
    """Seconds that the server wants to be left alone, from its headers; None where it does not say."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            from email.utils import parsedate_to_datetime

            try:
                moment = parsedate_to_datetime(value)
            except ValueError:
                continue
            from datetime import datetime

            return max(0.0, (moment - datetime.now(moment.tzinfo)).total_seconds())
    return None
