"""The features of a table's rows, made once in a process for the same texts: in the place of `uql.features.table.table_features`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from uql.features import store, table
from uql.features.cache import Progress
from uql.features.embedder import Embedder
from uql.features.table import TableFeatures

__all__ = ["store", "table_features"]

KEPT, KEPT_ROWS = 16, 4_000  # lists of texts whose features are kept, and texts of a list


@lru_cache(KEPT)
def _made(texts: tuple[str | None, ...], static: Embedder | None) -> tuple[TableFeatures, list[tuple[int, int]]]:
    """The features of the texts, read only, and what was said of the progress."""
    said: list[tuple[int, int]] = []
    features = table.table_features(texts, progress=lambda done, n: said.append((done, n)))
    for array in (features.matrix, *(block.vectors for block in features.blocks)):
        array.setflags(write=False)
    return features, said


def table_features(texts: Sequence[str | None], *, progress: Progress | None = None, **options: Any) -> TableFeatures:
    """As `uql.features.table.table_features`; the options are its own."""
    elsewhere = options.get("cache_dir") is not None or options.get("embedder") is not None
    if elsewhere or len(texts) > KEPT_ROWS:
        return table.table_features(texts, progress=progress, **options)
    features, said = _made(tuple(texts), table.static_embedder())
    for done, n in said if progress is not None else ():
        progress(done, n)
    return features
