"""The page answers to processes of the user who started it, whoever has the token."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from uql.ui import own_user
from uql.ui.own_user import Address, comes_from_own_user

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="the system does not say whose a connection is"
)
OTHER = 65_534


@contextmanager
def connection(family: socket.AddressFamily = socket.AF_INET) -> Iterator[tuple[socket.socket, Address, Address]]:
    """The client's end of a connection over loopback, and the addresses of both ends as the server has them."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        client = stack.enter_context(socket.socket(family))
        host = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
        client.connect((host, listening.getsockname()[1]))
        accepted, address = listening.accept()
        stack.enter_context(accepted)
        yield client, address, accepted.getsockname()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_process_of_the_own_user_may_ask(family: socket.AddressFamily) -> None:
    with connection(family) as (_, client, server):
        assert comes_from_own_user(client, server)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_process_of_another_user_may_not_ask(family: socket.AddressFamily, monkeypatch: pytest.MonkeyPatch) -> None:
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(OTHER)
    try:
        with connection(family) as (_, client, server):
            if is_root:
                os.seteuid(0)
            else:
                monkeypatch.setattr(os, "geteuid", lambda: OTHER)
            assert not comes_from_own_user(client, server)
    finally:
        if is_root:
            os.seteuid(0)


def test_a_process_that_asks_and_leaves_at_once_is_nobodys() -> None:
    """Linux gives such connections to root."""
    with connection() as (held, client, server):
        held.close()
        assert not comes_from_own_user(client, server)


def test_a_system_without_that_table_lets_the_token_decide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(own_user, "TABLES", (tmp_path / "tcp",))
    assert comes_from_own_user(("127.0.0.1", 1), ("127.0.0.1", 2))
