"""Addresses and documents of rows that hang: each ends with its time, and holds only itself."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drip import STAGES, slow_server

from uql.base.media_types import Unreadable
from uql.base.schema import Modality
from uql.sources import documents, web
from uql.sources.media import Media

SLACK_S = 10.0  # on a busy machine; without a limit each would take a minute
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


class PlainSocket(socket.socket):
    def do_handshake(self) -> None:
        return None


class PlainSockets(ssl.SSLContext):
    """In place of TLS: what the server says is read as it is."""

    def wrap_socket(self, plain: Any, **_: Any) -> Any:
        timeout = plain.gettimeout()
        wrapped = PlainSocket(fileno=plain.detach())
        wrapped.settimeout(timeout)
        return wrapped


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name is this machine, for tests alone."""
    monkeypatch.setattr(web, "addresses", lambda host, port: ["127.0.0.1"])


@pytest.fixture
def without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "create_default_context", lambda: PlainSockets(ssl.PROTOCOL_TLS_CLIENT))


@contextlib.contextmanager
def quick_server(body: bytes) -> Iterator[int]:
    """A server that gives these bytes at once."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(head + body)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1]


@pytest.mark.parametrize("stage", STAGES)
def test_an_address_ends_with_its_time_wherever_the_server_is_slow(
    stage: str, on_this_machine: None, without_tls: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.5)
    with slow_server(stage) as port:
        began, threads = time.monotonic(), threading.active_count()
        found = web.fetch(f"https://slow.example:{port}/a.png", 1_000_000)
        assert isinstance(found, Unreadable) and "longer than 0.5 s" in found.message
        assert time.monotonic() - began < 0.5 + SLACK_S
        time.sleep(0.3)
        assert threading.active_count() <= threads + 1, "the reader ends with it; the server has a thread a connection"


def test_an_address_ends_with_its_time_where_tls_is_never_begun(
    on_this_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.5)
    with slow_server("body") as port:
        began = time.monotonic()
        assert isinstance(web.fetch(f"https://slow.example:{port}/a.png", 1_000_000), Unreadable)
        assert time.monotonic() - began < 0.5 + SLACK_S
    with slow_server("nothing") as port:
        began = time.monotonic()
        assert isinstance(web.fetch(f"https://slow.example:{port}/a.png", 1_000_000), Unreadable)
        assert time.monotonic() - began < 0.5 + SLACK_S


def test_a_name_that_is_never_resolved_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.3)
    ended = threading.Event()
    monkeypatch.setattr(web, "addresses", lambda host, port: ended.wait(60) and [])
    began = time.monotonic()
    assert isinstance(web.fetch("https://slow.example/a.png", 1_000_000), Unreadable)
    assert time.monotonic() - began < 0.3 + SLACK_S
    ended.set()


def test_what_a_run_has_left_bounds_all_its_addresses(on_this_machine: None, without_tls: None, tmp_path: Path) -> None:
    with slow_server("body") as port:
        began = time.monotonic()
        media = Media(tmp_path, urls=True, seconds=0.6)
        found = media.load([f"https://slow.example:{port}/{n}.png" for n in range(400)], Modality.IMAGE)
        assert all(isinstance(one, Unreadable) for one in found)
        assert time.monotonic() - began < 0.6 + SLACK_S


def test_an_address_that_hangs_holds_only_itself(
    on_this_machine: None, without_tls: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.5)
    with slow_server("headers") as slow, quick_server(PNG) as quick:
        urls = [f"https://slow.example:{slow}/a.png", *(f"https://quick.example:{quick}/{n}.png" for n in range(20))]
        found = Media(tmp_path, urls=True).load(urls, Modality.IMAGE)
        assert isinstance(found[0], Unreadable) and found[1:] == [PNG] * 20


# ----------------------------------------------------------------------------------------------------------- documents
HANGS = b"%PDF hangs"
READER = """
import json, sys, time
source = sys.stdin.buffer
while head := source.read(8):
    data = source.read(int.from_bytes(head, "big"))
    if data.startswith(b"%PDF hangs"):
        time.sleep(60)
    print(json.dumps({"text": data.decode()}), flush=True)
"""


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of documents that hangs on some."""
    path = tmp_path / "reader.py"
    path.write_text(READER)
    monkeypatch.setattr(documents, "COMMAND", ("-I", str(path)))
    monkeypatch.setattr("uql.base.extras.find_spec", lambda name: name)
    monkeypatch.setattr(documents, "SECONDS", 1.0)


def test_a_document_that_hangs_holds_only_itself(reader: None) -> None:
    texts = [b"one", b"two", HANGS, b"three", b"x" * 1_000_000]
    began = time.monotonic()
    found = documents.texts(texts)
    assert time.monotonic() - began < 1.0 + SLACK_S
    assert isinstance(found[2], Unreadable) and "longer than 1 s" in found[2].message
    assert [found[n] for n in (0, 1, 3, 4)] == ["one", "two", "three", "x" * 1_000_000]


def test_what_a_run_has_left_bounds_all_its_documents(reader: None, tmp_path: Path) -> None:
    began = time.monotonic()
    found = Media(tmp_path, seconds=0.7).load([HANGS + bytes([65 + n]) for n in range(60)], Modality.DOCUMENT)
    assert all(isinstance(one, Unreadable) for one in found)
    assert time.monotonic() - began < 0.7 + SLACK_S
