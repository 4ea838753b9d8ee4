"""Servers on 127.0.0.1 that are slow in bad faith: silent, or a byte now and then, in the headers or in the body."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"
STAGES = {
    "nothing": None,
    "headers": HEAD + b"X-Slow: ",
    "body": HEAD + b"\r\n",
}  # what is sent at once; None: nothing ever
PAUSE_S = 0.1  # between two bytes
LONGEST_S = 60.0  # that a server holds a connection


@contextmanager
def slow_server(stage: str) -> Iterator[int]:
    """The port of a server that takes every connection and never ends its reply."""
    begin, ended = STAGES[stage], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=_accept, args=(listening, begin, ended), daemon=True)
        accepting.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ended.set()
            with suppress(
                OSError
            ):  # wakes the thread, which else takes a connection of the next server on the same descriptor
                socket.create_connection(listening.getsockname(), 10).close()
            accepting.join(10)


def _accept(listening: socket.socket, begin: bytes | None, ended: threading.Event) -> None:
    with suppress(OSError):
        while not ended.is_set():
            connection, _ = listening.accept()
            threading.Thread(target=_drip, args=(connection, begin, ended), daemon=True).start()


def _drip(connection: socket.socket, begin: bytes | None, ended: threading.Event) -> None:
    with connection, suppress(OSError):
        connection.sendall(begin or b"")
        for _ in range(int(LONGEST_S / PAUSE_S)):
            if ended.wait(PAUSE_S):
                return
            if begin is not None:
                connection.sendall(b"x")


@contextmanager
def unreachable() -> Iterator[int]:
    """A port whose queue of connections is full: connecting to it takes forever (on Linux)."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listening,
        socket.socket() as first,
        socket.socket() as second,
    ):
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]
