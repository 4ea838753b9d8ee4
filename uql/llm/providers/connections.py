"""Connections of an HTTP client: one for each request in flight, the one that was free last first.

The library's own pool looks at all its connections, and at the socket of each idle one, for every request: at 256 in flight that
takes more than all the rest of a call. Here a free connection is taken from a stack. How many there are is what the gate has in flight.
"""

from __future__ import annotations

import asyncio
from ssl import SSLContext

import httpx2

KEPT_S = 60.0  # that an idle connection stays open


class Connections(httpx2.AsyncBaseTransport):
    """A transport whose replies are read whole before they are given back: nothing here streams.

    Args:
        verify: the certificates that are trusted.
    """

    def __init__(self, verify: SSLContext) -> None:
        self._free: list[httpx2.AsyncHTTPTransport] = []
        self._all: list[httpx2.AsyncHTTPTransport] = []
        self._verify = verify
        self._loop: asyncio.AbstractEventLoop | None = None

    def _opened(self) -> httpx2.AsyncHTTPTransport:
        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=KEPT_S)
        made = httpx2.AsyncHTTPTransport(verify=self._verify, limits=limits)
        self._all.append(made)
        return made

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        loop = asyncio.get_running_loop()
        if (
            loop is not self._loop
        ):  # a model that was given is asked by many statements: what the last loop opened has ended with it
            self._loop, self._free, self._all = loop, [], []
        one = self._free.pop() if self._free else self._opened()
        try:
            reply = await one.handle_async_request(request)
            await reply.aread()
            return reply
        finally:
            self._free.append(one)

    async def aclose(self) -> None:
        """Close all of them."""
        for one in self._all:
            await one.aclose()
        self._all.clear()
        self._free.clear()
