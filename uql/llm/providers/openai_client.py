"""Clients of the openai SDK, for the vendor's host and for servers that speak its protocol."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uql.base.errors import AuthError, ConfigError
from uql.llm.providers.base import Limits
from uql.llm.providers.wire import keep_out

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Heard = Callable[[float | None, float | None], None]
RATE_HEADERS = (
    (b"x-ratelimit-limit-requests", b"anthropic-ratelimit-requests-limit"),
    (b"x-ratelimit-limit-tokens", b"anthropic-ratelimit-tokens-limit", b"anthropic-ratelimit-input-tokens-limit"),
)
VENDOR_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # the SDK wants one; sent to servers that were given none


def client(
    base_url: str, *, api_key: str | None, timeout_s: float, vendor: bool = False, heard: Heard | None = None
) -> AsyncOpenAI:
    """A client that retries nothing, follows no redirect, and takes its key from nowhere but `api_key`.

    What the SDK reads from the environment (organisation, project, custom headers) goes to the vendor's own host alone.

    Args:
        base_url: of the endpoint.
        api_key: None: the endpoint takes none.
        timeout_s: of one request.
        vendor: it is OpenAI's own host.
        heard: called with the rates that a reply's headers state.
    Raises: ConfigError where the SDK is not installed.
    """
    try:
        import openai
    except ImportError as error:
        raise ConfigError(
            "this model needs the openai package", code="UQL402", help="pip install 'uql-engine[openai]'"
        ) from error
    keep_out(api_key)
    names = set() if vendor else {"openai-organization", "openai-project", *ambient_headers("OPENAI_CUSTOM_HEADERS")}
    http = http_client(
        timeout_s, strip=names, authorization=None if vendor else f"Bearer {api_key or NO_KEY}", heard=heard
    )
    return openai.AsyncOpenAI(base_url=base_url, api_key=api_key or NO_KEY, max_retries=0, http_client=http)


def ambient_headers(variable: str) -> set[str]:
    """The names of the headers that an SDK would take from a variable of the environment."""
    return {line.partition(":")[0].strip().lower() for line in os.environ.get(variable, "").split("\n")} - {""}


def http_client(timeout_s: float, *, strip: set[str], authorization: str | None, heard: Heard | None = None) -> Any:
    """An HTTP client that follows no redirect; headers in `strip` are never sent, `authorization` is where it is given.

    Args:
        timeout_s: of one request.
        strip: names of headers that are never sent.
        authorization: the header's value; None: as the SDK has it.
        heard: called with the requests and the tokens a minute that a reply's headers state, None where they state none.
    """
    import httpx2

    from uql.llm.providers.connections import Connections

    async def clean(request: Any) -> None:
        for name in strip - {"content-type", "content-length", "host", "accept"}:
            if name in request.headers:
                del request.headers[name]
        if authorization is not None:
            request.headers["authorization"] = authorization

    async def listen(response: Any) -> None:
        if heard is not None:
            stated = [(name.lower(), value) for name, value in response.headers.raw if b"limit" in name.lower()]
            if stated:
                heard(*(stated_rate(stated, names) for names in RATE_HEADERS))

    hooks: dict[str, list[Any]] = {"response": [listen]} if heard is not None else {}
    if strip or authorization:
        hooks["request"] = [clean]
    certificates = httpx2.create_ssl_context()
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(
            timeout_s, connect=min(10.0, timeout_s / 2)
        ),  # ends before the request's time: nothing is paid
        verify=certificates,
        mounts={"all://": Connections(certificates)},  # a proxy that the environment names goes before it
        follow_redirects=False,
        event_hooks=hooks,
    )


def stated_rate(headers: Sequence[tuple[bytes, bytes]], names: tuple[bytes, ...]) -> float | None:
    """The first of the headers that states a number above 0."""
    for name in names:
        for found, value in headers:
            if found == name and value.isdigit() and int(value) > 0:
                return float(value)
    return None


def learnt(limits: Limits, requests: float | None, tokens: float | None) -> Limits:
    """The limits with the rates that a reply stated; the same object where nothing is new.

    Args:
        requests, tokens: a minute; None: not stated.
    """
    wanted = (requests or limits.requests_per_minute, tokens or limits.tokens_per_minute)
    if wanted == (limits.requests_per_minute, limits.tokens_per_minute):
        return limits
    return replace(limits, requests_per_minute=wanted[0], tokens_per_minute=wanted[1])


def vendor_key(variable: str, vendor: str, *, offline: bool = False) -> str:
    """A vendor's key: from the environment, else from the keyring under ("uql", variable) where the keyring package is there.

    Offline none is needed. Raises: AuthError naming the variable.

    Args:
        variable: the environment's.
        vendor: for the message.
        offline: nothing will be sent.
    """
    if offline:
        return NO_KEY
    key = os.environ.get(variable)
    if not key:
        try:
            import keyring
        except ImportError:
            key = None
        else:
            key = keyring.get_password("uql", variable)
    if not key:
        raise AuthError(f"there is no key for {vendor}", help=f"set {variable} in the environment")
    keep_out(key)
    return key
