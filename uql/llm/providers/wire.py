"""One request and its JSON reply; what its failures mean, by the table of failures (`uql.llm.failures`)."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

from uql.base.errors import AuthError, BackendError, QuotaError, UnknownModelError
from uql.llm.providers.base import CallError

_keys: set[str] = set()  # that this process sends: no message repeats them
_FILTERED = ("content filtering policy", "content management policy")
_TOO_LONG = (
    "context size",
    "maximum context",
    "prompt is too long",
    "context window",
    "maximum number of tokens",
    "payload size exceeds",
)


def keep_out(key: str | None) -> None:
    """Take a key out of every message of a server from now on: some repeat what they were sent."""
    if key and len(key) >= 4:
        _keys.add(key)


def without_keys(text: str) -> str:
    """A text of a server with every key of this process replaced."""
    for key in _keys:
        text = text.replace(key, "[key]")
    return text


async def posted(client: Any, path: str, body: dict[str, Any], *, name: str, model: str) -> dict[str, Any]:
    """The JSON object that an endpoint replies to a request. Raises what `call` raises.

    Args:
        client: of the server (`uql.llm.providers.http_client`).
        body: sent as JSON.
        name: of the provider, for messages.
        model: for messages.
    """
    return await call(partial(client.post, path, body=body), name=name, model=model)


async def call(send: Callable[[], Awaitable[Any]], *, name: str, model: str) -> dict[str, Any]:
    """The JSON object of a reply. Raises what `replied` raises; CallError where it is none.

    Args:
        send: makes the request; gives a response (`http_client.Response`).
        name: of the provider, for messages.
        model: for messages.
    """
    response = await replied(send, name=name, model=model)
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError) as error:
        raise CallError("truncated", f"the reply is not whole JSON: {error}") from error
    if not isinstance(body, dict):
        raise CallError("wrong_type", "the reply is not a JSON object")
    return body


async def replied(send: Callable[[], Awaitable[Any]], *, name: str, model: str) -> Any:
    """The response to a request; what goes wrong is raised as the table of failures says.

    Args:
        send: makes the request; gives a response (`http_client.Response`).
        name: of the provider, for messages.
        model: for messages.
    Raises: AuthError, QuotaError, UnknownModelError, BackendError (they concern every row); CallError (this one).
    """
    import aiohttp

    try:
        response = await send()
    except aiohttp.ConnectionTimeoutError as error:
        raise CallError("connection", "no connection in time", sent=False) from error
    except TimeoutError as error:
        raise CallError("timeout", without_keys(f"no reply in time {error}".rstrip())) from error
    except aiohttp.ClientConnectorError as error:
        place = f"cannot connect to {error.host}:{error.port}"
        message = str(error) if isinstance(error, aiohttp.ClientSSLError) else f"{place}: {_refusal(error.os_error)}"
        raise CallError("connection", without_keys(message), sent=False) from error
    except (aiohttp.ClientError, OSError) as error:
        message = f"Connection error. {error or type(error).__name__}"
        raise CallError("connection", without_keys(message)) from error
    if response.status_code // 100 != 2:
        raise status_error(response, name=name, model=model)
    return response


def _refusal(error: OSError) -> str:
    """Why no connection came about, in the words of the system."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def unstructured(error: CallError) -> bool:
    """Does a model say that it takes no JSON schema? It is asked for JSON in words then."""
    message = f"{error.parameter} {error.message}".lower()
    names = ("response_format", "text.format", "output_config", "output_format", "structured output", "json_schema")
    refuses = ("not support", "unsupported", "not permitted", "not available")
    return error.kind == "bad_request" and any(n in message for n in names) and any(r in message for r in refuses)


def status_error(response: Any, *, name: str, model: str) -> Exception:
    """What an HTTP status means, by the table of failures.

    Args:
        response: of a status other than 2xx.
        name: of the provider, for the message.
        model: for the message.
    """
    status = int(response.status_code)
    stated = _error_object(response.content)
    code = str(stated.get("code") or stated.get("type") or "")
    message = without_keys(
        str(stated.get("message") or response.content.decode(errors="replace") or f"error {status}")
    )[:300]
    details = [part for part in _listed(stated, "details") if isinstance(part, dict)]
    bad_key = any(part.get("reason") == "API_KEY_INVALID" for part in details)  # of Google, under 400
    if status == 401 or bad_key or (status == 403 and "quota" not in code):
        return AuthError(
            f"{name} refused the key ({status}): {message}", help="set the key in the environment; see uql config show"
        )
    if status == 402 or "insufficient_quota" in code or "billing" in code or _is_daily(details):
        return QuotaError(f"{name}: the quota is used up: {message}")
    if status == 404:
        return UnknownModelError(f"{name} knows no model {model!r}: {message}")
    if 300 <= status < 400:
        return BackendError(
            f"{name} redirects ({status}) and is not followed", help="give the address it redirects to, if you trust it"
        )
    if status == 429:
        return CallError("rate_limit", message, retry_after_s=retry_after(response.headers) or _delay(details))
    if status in (408, 409) or status >= 500:
        kind = "timeout" if status == 408 else "server"
        return CallError(kind, f"{status}: {message}", retry_after_s=retry_after(response.headers))
    if (
        status == 413
        or "context_length" in code
        or "exceed_context" in code
        or any(words in message.lower() for words in _TOO_LONG)
    ):
        return CallError("too_long", message)
    if "content_filter" in code or "content_policy" in code or any(words in message.lower() for words in _FILTERED):
        return CallError("content_filter", message)
    return CallError("bad_request", f"{status}: {message}", parameter=str(stated.get("param") or ""))


def _error_object(content: bytes) -> dict[str, Any]:
    """The object in which a server says what went wrong; {} where it sent none."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    inner = body.get("error", body) if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _listed(part: dict[str, Any], name: str) -> list[Any]:
    items = part.get(name)
    return items if isinstance(items, list) else []


def _is_daily(details: list[dict[str, Any]]) -> bool:
    """Is a quota of a day used up, as google.rpc.QuotaFailure says? To wait for the next minute is of no use then."""
    violations = (violation for part in details for violation in _listed(part, "violations"))
    return any("PerDay" in str(violation.get("quotaId")) for violation in violations if isinstance(violation, dict))


def _delay(details: list[dict[str, Any]]) -> float | None:
    """Seconds that the server wants to be left alone, as google.rpc.RetryInfo says them: "34.07s"."""
    stated = (str(part.get("retryDelay", "")).removesuffix("s") for part in details)
    return next((float(text) for text in stated if text.replace(".", "", 1).isdecimal()), None)


def retry_after(headers: Any) -> float | None:
    """Seconds that the server wants to be left alone, from its headers; None where it does not say."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * scale)
        except ValueError:
            try:
                moment = parsedate_to_datetime(value)
            except (ValueError, OverflowError):
                continue
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None
