"""What the tests of the gate share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from uql.benchmarks.gate.postgres_server import NoServer, Server


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    return asyncio.run


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Pauses between tries are short in tests."""
    if "real_pauses" not in request.keywords:
        monkeypatch.setattr("uql.llm.limiter.FIRST_PAUSE_S", 0.001)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What servers can do is tried by each test."""
    monkeypatch.setattr("uql.llm.providers.server_abilities.file", lambda: tmp_path / "servers.json")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; the test is skipped where there cannot be one."""
    try:
        made = Server.start()
    except NoServer as why:
        pytest.skip(str(why))
    yield made
    made.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of a new ledger of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "l.sqlite")
    return str(request.getfixturevalue("server").database())
