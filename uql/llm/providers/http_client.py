"""A client of JSON over HTTP for one endpoint: OpenAI's protocol, Anthropic's, and every server that speaks one of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from uql.base import keys
from uql.base.errors import AuthError
from uql.base.vendors import VENDORS
from uql.base.version import __version__
from uql.llm.providers.base import Limits
from uql.llm.providers.wire import keep_out

if TYPE_CHECKING:
    import ssl

    from aiohttp import ClientRequest, ClientSession, StreamReader

Heard = Callable[[float | None, float | None], None]
RATE_HEADERS = (
    (b"x-ratelimit-limit-requests", b"anthropic-ratelimit-requests-limit"),
    (b"x-ratelimit-limit-tokens", b"anthropic-ratelimit-tokens-limit", b"anthropic-ratelimit-input-tokens-limit"),
)
VENDOR_URL = VENDORS["openai"].url
KEPT_S = 60.0  # that an idle connection stays open
HEADER_BYTES = 65_536  # of a header, at most
REPLY_BYTES = 32_000_000  # of a reply, unpacked: many are read at a time
BODY_BYTES = 256_000_000  # of what is fetched: the replies of a batch are in one
SHORT_BYTES = 32_768  # of a request that is handed to the system at once, and waited for from then on
JSON = {"content-type": "application/json"}
MOST_DIGITS = 15  # of a stated rate
NO_KEY = "none"  # sent to servers that were given none: some refuse a request without a key


@dataclass(slots=True)
class Response:
    """A reply that was read whole. `headers` are found in any letter case."""

    status_code: int
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Client:
    """Requests to one endpoint. It retries nothing, follows no redirect, keeps no cookie, and sends no header but those that it is given.

    A connection is opened for each request in flight and used again; how many there are is what the gate has in flight.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        on_limits: Heard | None = None,
        key_header: str = "",
    ) -> None:
        """
        Args:
            base_url: of the endpoint; paths are appended to it.
            api_key: sent as a bearer token; None: the endpoint takes none.
            timeout_s: without a byte of the reply.
            headers: sent besides.
            on_limits: called with the requests and the tokens a minute that a reply's headers state, None where they state none.
            key_header: in which the key is sent, bare, in place of the bearer token.
        """
        keep_out(api_key)
        self._base_url = base_url.rstrip("/")
        self._headers = {
            **(headers or {}),
            **({key_header: api_key or NO_KEY} if key_header else {"authorization": f"Bearer {api_key or NO_KEY}"}),
            "accept": "application/json",
            "user-agent": f"uql/{__version__}",
        }
        self._timeout_s, self._on_limits = timeout_s, on_limits
        self.proxy = proxy_of(self._base_url)
        self._session: ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heads: dict[str, tuple[ClientRequest, bytes]] = {}  # by path, of requests past the session

    async def post(self, path: str, *, body: Mapping[str, Any]) -> Response:
        """The response to a JSON body. Raises what aiohttp raises."""
        data = json.dumps(body).encode()
        if self.proxy is not None or len(data) > SHORT_BYTES:
            return await self._send("POST", path, data=data, headers=JSON)
        return await self._exchange(path, data)

    async def upload(self, path: str, *, fields: Mapping[str, str], name: str, data: str) -> Response:
        """The response to a form with one file. Raises what aiohttp raises.

        Args:
            fields: the others of the form.
            data: its contents.
        """
        from aiohttp import FormData

        form = FormData(dict(fields))
        form.add_field("file", data.encode(), filename=name, content_type="application/jsonl")
        return await self._send("POST", path, data=form)

    async def get(self, path: str) -> Response:
        """The response to a GET. Raises what aiohttp raises."""
        return await self._send("GET", path, BODY_BYTES)

    async def close(self) -> None:
        """Ends its connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(self, method: str, path: str, most: int | None = None, **what: Any) -> Response:
        """`most`: bytes of the body; None: those of a reply."""
        session, url = await self._ready_session(), self._base_url + path
        async with session.request(method, url, allow_redirects=False, proxy=self.proxy, **what) as reply:
            content = await _body(reply.content, most or REPLY_BYTES)
        return self._response(reply.status, content, reply.headers, reply.raw_headers)

    async def _exchange(self, path: str, data: bytes) -> Response:
        """A short POST on a connection of the session's pool. `ClientSession.request` does the same in twice the time, since it begins
        each request anew: what requests to a path have in common is made once here."""
        import aiohttp
        from aiohttp.http_exceptions import HttpProcessingError

        session = await self._ready_session()
        request, head = self._heads.get(path) or self._head(path)
        assert session.connector is not None
        try:
            connection = await session.connector.connect(request, [], session.timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {request.host} in time") from error
        content: bytes | None = None
        try:
            protocol = connection.protocol
            if protocol is None or protocol.transport is None:
                raise aiohttp.ServerDisconnectedError
            protocol.set_response_params(
                read_until_eof=True,
                read_timeout=self._timeout_s,
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
            )
            protocol.transport.write(b"%s%d\r\n\r\n%s" % (head, len(data), data))
            protocol.start_timeout()
            try:
                message, payload = await protocol.read()
                while 100 <= message.code < 200:  # the reply is still to come
                    message, payload = await protocol.read()
            except HttpProcessingError as error:
                raise aiohttp.ClientPayloadError(f"the reply is not HTTP: {error.message}") from error
            content = await _body(payload, REPLY_BYTES)
        finally:
            if content is None:  # what still comes on this connection is the reply to this request
                connection.close()
            else:
                connection.release()
        return self._response(message.code, content, message.headers, message.raw_headers)

    def _head(self, path: str) -> tuple[ClientRequest, bytes]:
        """What requests to a path have in common: for the pool, and as it is sent, up to the length of the body."""
        from aiohttp import ClientRequest
        from yarl import URL

        assert self._loop is not None
        headers = {**self._headers, **JSON}
        request = ClientRequest("POST", URL(self._base_url + path), headers=headers, loop=self._loop, ssl=_context())
        lines = [f"POST {request.url.raw_path_qs} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers.items() if name.lower() != "content-length"]
        if any(character in line for line in lines for character in "\r\n\0"):
            raise ValueError("a header has a line break")
        head = "\r\n".join([*lines, "content-length: "]).encode()
        self._heads[path] = request, head
        return request, head

    def _response(
        self, status: int, content: bytes, headers: Mapping[str, str], raw: Sequence[tuple[bytes, bytes]]
    ) -> Response:
        if self._on_limits is not None:
            stated = [(name.lower(), value) for name, value in raw if b"limit" in name.lower()]
            if stated:
                self._on_limits(*(stated_rate(stated, names) for names in RATE_HEADERS))
        return Response(status, content, headers)

    async def _ready_session(self) -> ClientSession:
        """The session of the loop that runs."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            await self.close()  # a model that was given is asked by many statements: the last loop has ended
            self._session, self._loop = self._open_session(), loop
            self._heads.clear()
        return self._session

    def _open_session(self) -> ClientSession:
        import aiohttp

        connecting_s = min(10.0, self._timeout_s / 2)  # ends before the request's time: nothing is paid
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_context(), keepalive_timeout=KEPT_S),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=connecting_s, sock_read=self._timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
        )


async def _body(stream: StreamReader, most: int) -> bytes:
    """The body, unpacked. Raises ClientPayloadError for one that is too long: a few bytes of gzip may be gigabytes."""
    from aiohttp import ClientPayloadError

    content = await stream.readany()
    if stream.at_eof() and len(content) <= most:  # as most are
        return content
    parts, size = [content], len(content)
    while part := await stream.readany():
        parts.append(part)
        size += len(part)
        if size > most:
            break
    if size > most:
        raise ClientPayloadError(f"the reply is longer than {most:,} bytes")
    return b"".join(parts)


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def client(
    base_url: str, *, api_key: str | None, timeout_s: float, vendor: bool = False, on_limits: Heard | None = None
) -> Client:
    """A client of OpenAI's protocol.

    The organisation, the project and the headers that OPENAI_ORG_ID, OPENAI_PROJECT_ID and OPENAI_CUSTOM_HEADERS hold go to the
    vendor's own host alone.

    Args:
        api_key: None: the endpoint takes none.
        timeout_s: of one request.
        vendor: it is OpenAI's own host.
        on_limits: called with the rates that a reply's headers state.
    """
    headers = {}
    if vendor:
        variables = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        headers = {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}
        headers |= ambient_headers("OPENAI_CUSTOM_HEADERS")
    return Client(base_url, api_key=api_key, timeout_s=timeout_s, headers=headers, on_limits=on_limits)


def _context() -> ssl.SSLContext:
    return _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """The context of every client of a process, by the places that the environment names: to read certificates takes 20 ms."""
    import ssl

    import certifi

    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        context.load_verify_locations(certifi.where())
    return context


def ambient_headers(variable: str) -> dict[str, str]:
    """The headers that a variable of the environment holds, a line "Name: value" each."""
    lines = (line.partition(":") for line in os.environ.get(variable, "").split("\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon and name.strip()}


def stated_rate(headers: Sequence[tuple[bytes, bytes]], names: tuple[bytes, ...]) -> float | None:
    """The first of the headers that states a number above 0, of at most 15 digits.

    >>> stated_rate([(b"limit", b"600")], (b"limit",)), stated_rate([(b"limit", b"9" * 5000)], (b"limit",))
    (600.0, None)
    """
    for name in names:
        for header, value in headers:
            if header == name and value.isdigit() and len(value) <= MOST_DIGITS and int(value) > 0:
                return float(value)
    return None


def account_of(api_key: str | None) -> str:
    """Whose rates a server counts, in a form that tells nothing of the key."""
    return hashlib.sha256((api_key or "").encode()).hexdigest()[:16]


def learnt(limits: Limits, requests: float | None, tokens: float | None) -> Limits:
    """The limits with the rates that a reply stated; the same object where nothing is new.

    Args:
        requests, tokens: a minute; None: not stated.
    """
    rates = (requests or limits.requests_per_minute, tokens or limits.tokens_per_minute)
    if rates == (limits.requests_per_minute, limits.tokens_per_minute):
        return limits
    return replace(limits, requests_per_minute=rates[0], tokens_per_minute=rates[1])


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
