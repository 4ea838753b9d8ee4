"""What all tests share: `pytest --update-golden` rewrites the text fixtures in tests/golden; `one_in(n)` marks the other cases of a
test slow; the features of equal texts are made once in a process."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from uql.features import store, table
from uql.features.cache import Progress
from uql.features.embedder import Embedder
from uql.features.table import TableFeatures

gc.set_threshold(20_000, 20, 100)  # a sixth of a test's time is the collector's: most of the heap is modules, and stays

os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # never the keyring of whoever runs the tests

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell without job control has begun this with "&"
    signal.signal(signal.SIGINT, signal.default_int_handler)


KEPT, KEPT_ROWS = 16, 4_000  # lists of texts whose features a process keeps, and texts of a list


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the fixtures in tests/golden")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@lru_cache(KEPT)
def _made(texts: tuple[str | None, ...], static: Embedder | None) -> tuple[TableFeatures, list[tuple[int, int]]]:
    """The features of the texts, read only, and what was said of the progress."""
    said: list[tuple[int, int]] = []
    features = table.table_features(texts, progress=lambda done, n: said.append((done, n)))
    for array in (features.matrix, *(block.vectors for block in features.blocks)):
        array.setflags(write=False)
    return features, said


def _features(
    texts: Sequence[str | None],
    *,
    key: str = "",
    cache_dir: Path | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> TableFeatures:
    if cache_dir is not None or embedder is not None or len(texts) > KEPT_ROWS:
        return table.table_features(texts, key=key, cache_dir=cache_dir, embedder=embedder, progress=progress)
    features, said = _made(tuple(texts), table.static_embedder())
    for done, n in said if progress is not None else ():
        progress(done, n)
    return features


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what is collected stays: the collector need not look through it again


@pytest.fixture(autouse=True)
def features_are_made_once() -> Iterator[None]:
    """Tests ask the same rows again and again, under many seeds, and half of the time of a sample are the features of its rows.
    They follow from the texts alone. tests/features makes them anew each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "table_features", _features)
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
