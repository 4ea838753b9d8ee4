"""The page answers to processes of its own user alone.

The token keeps out whoever does not know it, and other users of the machine may come to know it: it stands in the address that a browser
is started with, which they may list, and a browser sends a cookie of 127.0.0.1 to a server on any port, theirs too.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

# Linux's: a line a connection, with the user id of its process
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
ESTABLISHED = "01"  # of a connection that its process has left, the table has no user
Address = tuple[str, int]


class OwnUser:
    """Refuses (403) requests that come from a process of another user. `app`: what answers the others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or comes_from_own_user(scope["client"], scope["server"]):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse("this page answers to the user who started it", 403)(scope, receive, send)


def comes_from_own_user(client: Address, server: Address) -> bool:
    """Is a process of this user, or of root, at the other end of a connection over IPv4? True where the system does not say."""
    tables = [table.read_text("ascii") for table in TABLES if table.exists()]
    own = {0, os.geteuid()} if tables else set()
    return not tables or any(user in own for table in tables for user in _users(table, client, server))


def _users(table: str, client: Address, server: Address) -> Iterator[int]:
    """The user ids of a connection's far end. A socket of IPv6 has the address of IPv4 at the end of its own."""
    ends = [
        f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}" for host, port in (client, server)
    ]
    for line in table.splitlines()[1:]:
        _, local, remote, state, _, _, _, user, *_ = line.split()
        if state == ESTABLISHED and local.endswith(ends[0]) and remote.endswith(ends[1]):
            yield int(user)
