"""What all tests share: `pytest --update-golden` rewrites the text fixtures in tests/golden; `one_in(n)` marks the other cases of a
test slow; the features of equal texts are made once in a process."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

gc.set_threshold(20_000, 20, 100)  # a sixth of a test's time is the collector's: most of the heap is modules, and stays

for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # read when NumPy is loaded, which nothing has done yet
    os.environ.setdefault(library, "1")  # two threads for small matrices spin: they take twice the CPU time of one

os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never the keyring of whoever runs the tests

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell without job control has begun this with "&"
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the fixtures in tests/golden")


def pytest_configure(config: pytest.Config) -> None:
    """`make test` gives each DuckDB one thread, `make test-all` as many as there are cores: a second one takes a tenth of the CPU time of
    tests that have too few rows for it. Tests about several threads say how many."""
    if "not slow" in config.option.markexpr:
        os.environ.setdefault("SLURM_CPUS_ON_NODE", "1")  # what DuckDB takes for the number of cores


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


def pytest_collection_finish() -> None:
    gc.freeze()  # what is collected stays: the collector need not look through it again


@pytest.fixture(autouse=True)
def features_are_made_once() -> Iterator[None]:
    """Tests ask the same rows again and again, under many seeds, and half of the time of a sample are the features of its rows.
    They follow from the texts alone. tests/features makes them anew each time."""
    import kept_features

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_features.store, "table_features", kept_features.table_features)
        yield


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
