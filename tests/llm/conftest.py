"""What the tests of the gate share."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


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
