"""One file from an address in data: https alone, no host of a private network, limits of size and time.

Addresses come from rows, so they are nobody's wish until the user allowed them, and even then they must not reach what only this
machine can reach. The name is resolved once, every address it has is checked, and the connection goes to a checked one.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from urllib.parse import urljoin, urlsplit

from uql.media_types import Unreadable

SECONDS = 20.0  # for one file, redirects included
REDIRECTS = 3
BLOCK = 65_536
MOVED = (301, 302, 303, 307, 308)


class _Pinned(http.client.HTTPSConnection):
    """A connection to an address that was checked, under the name that the certificate must have."""

    def __init__(self, host: str, port: int, address: str, timeout: float) -> None:
        self._context = ssl.create_default_context()
        super().__init__(host, port, timeout=timeout, context=self._context)
        self._address = address

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self.port), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


def addresses(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises: OSError where it has none, PermissionError where one is of no public network."""
    found = list(dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
    for address in found:
        where = ipaddress.ip_address(address.partition("%")[0])
        inner = getattr(where, "ipv4_mapped", None) or where
        if not inner.is_global or inner.is_multicast:
            raise PermissionError(f"{host} is an address of a private network")
    if not found:
        raise OSError(f"{host} has no address")
    return found


def fetch(url: str, most: int) -> bytes | Unreadable:
    """The bytes behind an address, at most `most`, or why there are none."""
    deadline = time.monotonic() + SECONDS
    try:
        for _ in range(REDIRECTS + 1):
            parts = urlsplit(url)
            if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
                return Unreadable(f"{url[:80]} is not fetched: only https addresses without a password are")
            port = parts.port or 443
            address = addresses(parts.hostname, port)[0]
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection = _Pinned(parts.hostname, port, address, max(0.1, deadline - time.monotonic()))
            try:
                connection.request("GET", path, headers={"User-Agent": "uql", "Accept": "*/*"})
                reply = connection.getresponse()
                if reply.status in MOVED:
                    url = urljoin(url, reply.headers.get("Location", ""))
                    continue
                if reply.status != 200:
                    return Unreadable(f"{url[:80]} gave the status {reply.status}")
                return _body(reply, url, most, deadline)
            finally:
                connection.close()
        return Unreadable(f"{url[:80]} was redirected more than {REDIRECTS} times")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Unreadable(f"{url[:80]} cannot be fetched: {error}")


def _body(reply: http.client.HTTPResponse, url: str, most: int, deadline: float) -> bytes | Unreadable:
    parts: list[bytes] = []
    size = 0
    while block := reply.read(BLOCK):
        parts.append(block)
        size += len(block)
        if size > most:
            return Unreadable(f"{url[:80]} has more than {most:,} bytes")
        if time.monotonic() > deadline:
            return Unreadable(f"{url[:80]} took longer than {SECONDS:g} s")
    return b"".join(parts)
