"""What all tests share: `pytest --update-golden` rewrites the text fixtures in tests/golden."""

from __future__ import annotations

import gc

import pytest

gc.set_threshold(20_000, 20, 100)  # a sixth of a test's time is the collector's: most of the heap is modules, and stays


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the fixtures in tests/golden")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
