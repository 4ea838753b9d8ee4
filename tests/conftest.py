"""What all tests share: `pytest --update-golden` rewrites the text fixtures in tests/golden; `one_in(n)` marks the other cases of a
test slow."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter

import pytest

gc.set_threshold(20_000, 20, 100)  # a sixth of a test's time is the collector's: most of the heap is modules, and stays

os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never the keyring of whoever runs the tests

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell without job control has begun this with "&"
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the fixtures in tests/golden")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with many cases `make test` runs every n-th, `make test-all` all."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % mark.args[0]:
                item.add_marker("slow")
            seen[name] += 1
