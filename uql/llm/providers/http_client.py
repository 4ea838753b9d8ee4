"""A client of JSON over HTTP for one endpoint: OpenAI's protocol, Anthropic's, and every server that speaks one of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from uql.base import keys
from uql.base.errors import AuthError
from uql.base.version import __version__
from uql.llm.providers.base import Limits
from uql.llm.providers.wire import keep_out

if TYPE_CHECKING:
    import ssl

Heard = Callable[[float | None, float | None], None]
RATE_HEADERS = (
    (b"x-ratelimit-limit-requests", b"anthropic-ratelimit-requests-limit"),
    (b"x-ratelimit-limit-tokens", b"anthropic-ratelimit-tokens-limit", b"anthropic-ratelimit-input-tokens-limit"),
)
VENDOR_URL = "https://api.openai.com/v1"
NO_KEY = "none"  # sent to servers that were given none: some refuse a request without a key


class Client:
    """Requests to one endpoint. It retries nothing, follows no redirect, and sends no header but those that it is given."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        heard: Heard | None = None,
    ) -> None:
        """
        Args:
            base_url: of the endpoint; paths are appended to it.
            api_key: sent as a bearer token; None: the endpoint takes none.
            timeout_s: of one request.
            headers: sent besides.
            heard: called with the requests and the tokens a minute that a reply's headers state, None where they state none.
        """
        import httpx2

        from uql.llm.providers.connections import Connections

        keep_out(api_key)

        async def listen(response: Any) -> None:
            if heard is not None:
                stated = [(name.lower(), value) for name, value in response.headers.raw if b"limit" in name.lower()]
                if stated:
                    heard(*(stated_rate(stated, names) for names in RATE_HEADERS))

        self._base_url = base_url.rstrip("/")
        self._headers = {
            **(headers or {}),
            "authorization": f"Bearer {api_key or NO_KEY}",
            "accept": "application/json",
            "user-agent": f"uql/{__version__}",
        }
        certificates = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(
                timeout_s, connect=min(10.0, timeout_s / 2)
            ),  # ends before the request's time: nothing is paid
            verify=certificates,
            mounts={"all://": Connections(certificates)},  # a proxy that the environment names goes before it
            follow_redirects=False,
            event_hooks={"response": [listen]} if heard is not None else {},
        )

    async def post(self, path: str, *, body: Mapping[str, Any]) -> Any:
        """The response (httpx2) to a JSON body. Raises what httpx2 raises."""
        return await self._http.post(self._base_url + path, json=body, headers=self._headers)

    async def upload(self, path: str, *, fields: Mapping[str, str], name: str, data: str) -> Any:
        """The response (httpx2) to a form with one file. Raises what httpx2 raises.

        Args:
            path: of the endpoint.
            fields: the others of the form.
            name: of the file.
            data: its contents.
        """
        file = {"file": (name, data.encode(), "application/jsonl")}
        return await self._http.post(self._base_url + path, data=dict(fields), files=file, headers=self._headers)

    async def get(self, path: str) -> Any:
        """The response (httpx2) to a GET. Raises what httpx2 raises."""
        return await self._http.get(self._base_url + path, headers=self._headers)

    async def close(self) -> None:
        """Ends its connections."""
        await self._http.aclose()


def client(
    base_url: str, *, api_key: str | None, timeout_s: float, vendor: bool = False, heard: Heard | None = None
) -> Client:
    """A client of OpenAI's protocol.

    The organisation, the project and the headers that OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS hold go to the
    vendor's own host alone.

    Args:
        base_url: of the endpoint.
        api_key: None: the endpoint takes none.
        timeout_s: of one request.
        vendor: it is OpenAI's own host.
        heard: called with the rates that a reply's headers state.
    """
    headers = {}
    if vendor:
        named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers = {name: os.environ[variable] for name, variable in named.items() if os.environ.get(variable)}
        headers |= ambient_headers("OPENAI_CUSTOM_HEADERS")
    return Client(base_url, api_key=api_key, timeout_s=timeout_s, headers=headers, heard=heard)


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The context of every client of a process, by the places that the environment names: to read certificates takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def ambient_headers(variable: str) -> dict[str, str]:
    """The headers that a variable of the environment holds, a line "Name: value" each."""
    lines = (line.partition(":") for line in os.environ.get(variable, "").split("\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon and name.strip()}


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
    """A vendor's key: from the environment, else from the keyring under ("uql", variable), else from the user's file of keys.

    Offline none is needed. Raises: AuthError naming the variable.

    Args:
        variable: the environment's.
        vendor: for the message.
        offline: nothing will be sent.
    """
    if offline:
        return NO_KEY
    key = keys.find(variable)
    if not key:
        raise AuthError(f"there is no key for {vendor}", help=f"uql keys set {variable}, or set it in the environment")
    keep_out(key)
    return key
