"""What the errors of an SDK mean, by the table of failures (`uql.llm.failures`)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar

from uql.base.errors import AuthError, BackendError, QuotaError, UnknownModelError
from uql.llm.providers.base import CallError

T = TypeVar("T")
_keys: set[str] = set()  # that this process sends: no message repeats them
_FILTERED = ("content filtering policy", "content management policy")
_TOO_LONG = ("context size", "maximum context", "prompt is too long", "context window")


def keep_out(key: str | None) -> None:
    """Take a key out of every message of a server from now on: some repeat what they were sent."""
    if key and len(key) >= 4:
        _keys.add(key)


def without_keys(text: str) -> str:
    """A text of a server with every key of this process replaced."""
    for key in _keys:
        text = text.replace(key, "[key]")
    return text


async def posted(client: Any, path: str, body: dict[str, Any], *, sdk: Any, name: str, model: str) -> dict[str, Any]:
    """The JSON object that an SDK's client gets for a request to one of its endpoints.

    The client's own `post` is used: what the typed methods do beside it (checking the body against types, building objects of
    the reply) takes longer than all the rest of a call. Raises what `call` raises.

    Args:
        client: of the SDK.
        path: of the endpoint.
        body: sent as JSON.
        sdk: its module, openai or anthropic.
        name: of the provider, for messages.
        model: for messages.
    """
    import httpx2

    reply = await call(partial(client.post, path, body=body, cast_to=httpx2.Response), sdk=sdk, name=name, model=model)
    try:
        held = json.loads(reply.content)
    except (ValueError, RecursionError) as error:
        raise CallError("truncated", f"the reply is not whole JSON: {error}") from error
    if not isinstance(held, dict):
        raise CallError("wrong_type", "the reply is not a JSON object")
    return held


async def call(send: Callable[[], Awaitable[T]], *, sdk: Any, name: str, model: str) -> T:
    """Send a request through an SDK (the module openai or anthropic: their errors have the same names), its errors turned into ours.

    Args:
        send: makes the request.
        sdk: its module.
        name: of the provider, for messages.
        model: for messages.
    Raises: AuthError, QuotaError, UnknownModelError, BackendError (they concern every row); CallError (this one).
    """
    import httpx2

    try:
        return await send()
    except sdk.APITimeoutError as error:
        if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
            raise CallError("connection", "no connection in time", sent=False) from error
        raise CallError("timeout", without_keys(str(error))) from error
    except sdk.APIConnectionError as error:
        sent = not isinstance(error.__cause__, httpx2.ConnectError)
        raise CallError("connection", without_keys(f"{error} {error.__cause__ or ''}".strip()), sent=sent) from error
    except sdk.APIStatusError as error:
        raise status_error(error, name=name, model=model) from error
    except sdk.APIResponseValidationError as error:
        raise CallError("truncated", without_keys(f"the reply cannot be read: {error}")) from error
    except json.JSONDecodeError as error:
        raise CallError("truncated", f"the reply is not whole JSON: {error}") from error
    except httpx2.HTTPError as error:
        raise CallError("connection", str(error) or type(error).__name__) from error


def unstructured(error: CallError) -> bool:
    """Does a model say that it takes no JSON schema? It is asked for JSON in words then."""
    said = f"{error.parameter} {error.message}".lower()
    names = ("response_format", "text.format", "output_config", "output_format", "structured output", "json_schema")
    refuses = ("not support", "unsupported", "not permitted", "not available")
    return error.kind == "bad_request" and any(n in said for n in names) and any(r in said for r in refuses)


def status_error(error: Any, *, name: str, model: str) -> Exception:
    """What an HTTP status means, by the table of failures.

    Args:
        error: the SDK's, with `status_code` and `response`.
        name: of the provider, for the message.
        model: for the message.
    """
    status = int(error.status_code)
    code = str(getattr(error, "code", None) or getattr(error, "type", None) or "")
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
        or any(said in message.lower() for said in _TOO_LONG)
    ):
        return CallError("too_long", message)
    if "content_filter" in code or "content_policy" in code or any(said in message.lower() for said in _FILTERED):
        return CallError("content_filter", message)
    return CallError("bad_request", f"{status}: {message}", parameter=str(getattr(error, "param", None) or ""))


def _message(error: Any) -> str:
    body = error.body
    said = str(error)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and inner.get("message"):
            said = str(inner["message"])
    return without_keys(said)[:300]


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
            except ValueError:
                continue
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    return None
