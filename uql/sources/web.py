"""One file from an address in data: https alone, no host of a private network, limits of size and time.

Addresses come from rows, so none is read until the user allows it, and even then they must not reach what only this
machine can reach. The name is resolved once, every address it has is checked, and the connection goes to a checked one.
"""

from __future__ import annotations

import http.client
import ipaddress
import math
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from uql.base.media_types import Unreadable

SECONDS = 20.0  # for one file, redirects included
REDIRECTS = 3
BLOCK = 65_536
# all that is given out of IPv6: the rest is private, reserved, or an old form of IPv4
UNICAST = ipaddress.IPv6Network("2000::/3")
SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")  # RFC 3056
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
# no Python knows all of them
RESERVED = [ipaddress.ip_network(n) for n in ("192.0.0.0/24", "192.88.99.0/24", "3fff::/20")]
ISATAP = 0x5EFE  # RFC 5214: so bits 80 to 96, the last 32 are an IPv4 address
MOVED = (301, 302, 303, 307, 308)


class _Pinned(http.client.HTTPSConnection):
    """A connection to an address that was checked, under the name that the certificate must have."""

    def __init__(self, host: str, port: int, address: str, timeout: float) -> None:
        self._context = ssl.create_default_context()
        super().__init__(host, port, timeout=timeout, context=self._context)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock.do_handshake()

    def cut(self) -> None:
        """End what another thread waits for on this connection."""
        if self.sock is not None:
            with suppress(OSError):  # not connected yet, or closed already
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


def addresses(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises: OSError where it has none, PermissionError where one is of no public network."""
    host_addresses = list(
        dict.fromkeys(str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    )
    if not all(is_public(ipaddress.ip_address(address.partition("%")[0])) for address in host_addresses):
        raise PermissionError(f"{host} is an address of a private network")
    if not host_addresses:
        raise OSError(f"{host} has no address")
    return host_addresses


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Is it an address of the public internet, and so is every IPv4 address that a translator or a tunnel takes from it?

    >>> [is_public(ipaddress.ip_address(a)) for a in ("93.184.216.34", "10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::")]
    [True, False, False, False]
    """
    if any(address in network for network in RESERVED):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast
    low = int(address) & 0xFFFFFFFF
    inner = [address.sixtofour, *(address.teredo or ())]
    if (int(address) >> 32) & 0xFFFF == ISATAP:
        inner.append(ipaddress.IPv4Address(low))
    if address in NAT64:
        inner.append(ipaddress.IPv4Address(low))
    elif address not in UNICAST or not (address.is_global or address in SIX_TO_FOUR):
        return False
    return all(is_public(one) for one in inner if one is not None)


def fetch(url: str, most: int, seconds: float = math.inf) -> bytes | Unreadable:
    """The bytes behind an address, at most `most`, or why there are none.

    One deadline holds for the name, the connections, their headers and bodies, and all redirects: `SECONDS`, or `seconds` where those
    are fewer. Whatever the server does, this returns by then.

    Args:
        most: bytes; a longer body is unreadable.
        seconds: of all, where fewer than SECONDS.
    """
    limit = min(SECONDS, seconds)
    if limit <= 0:
        return Unreadable(f"{url[:80]} is not fetched: no time is left")
    transfer = _Transfer(url, most, time.monotonic() + limit)
    worker = ThreadPoolExecutor(1, thread_name_prefix="uql-fetch")
    try:
        return worker.submit(transfer.run).result(limit)
    except TimeoutError:
        transfer.stop()
        return Unreadable(f"{url[:80]} took longer than {limit:.3g} s")
    finally:
        worker.shutdown(wait=False)


class _Transfer:
    """One file on its way, in a thread of its own; `stop` ends it from another one."""

    def __init__(self, url: str, most: int, deadline: float) -> None:
        self._url, self._most, self._deadline = url, most, deadline
        self._connection: _Pinned | None = None

    def stop(self) -> None:
        self._deadline = -math.inf
        if self._connection is not None:
            self._connection.cut()

    def _remaining_s(self) -> float:
        """Seconds until the deadline. Raises TimeoutError where there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("it took too long")
        return left

    def run(self) -> bytes | Unreadable:
        url = self._url
        try:
            for _ in range(REDIRECTS + 1):
                parts = urlsplit(url)
                if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
                    return Unreadable(f"{url[:80]} is not fetched: only https addresses without a password are")
                port = parts.port or 443
                address = addresses(parts.hostname, port)[0]
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection = self._connection = _Pinned(parts.hostname, port, address, self._remaining_s())
                try:
                    connection.request("GET", path, headers={"User-Agent": "uql", "Accept": "*/*"})
                    reply = connection.getresponse()
                    if reply.status in MOVED:
                        url = urljoin(url, reply.headers.get("Location", ""))
                        continue
                    if reply.status != 200:
                        return Unreadable(f"{url[:80]} gave the status {reply.status}")
                    return self._body(reply, url)
                finally:
                    connection.close()
            return Unreadable(f"{url[:80]} was redirected more than {REDIRECTS} times")
        except TimeoutError:  # the deadline, which the socket may notice before the waiting thread does
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Unreadable(f"{url[:80]} cannot be fetched: {error}")

    def _body(self, reply: http.client.HTTPResponse, url: str) -> bytes | Unreadable:
        parts: list[bytes] = []
        size = 0
        while block := reply.read(BLOCK):
            self._remaining_s()
            parts.append(block)
            size += len(block)
            if size > self._most:
                return Unreadable(f"{url[:80]} has more than {self._most:,} bytes")
        return b"".join(parts)
