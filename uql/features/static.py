"""The static embedder: the mean of token vectors, from wordllama's table, 10–20 times faster than the package's own
embed call."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from uql.base.settings import Settings
from uql.features.embedder import LONGEST, Embedder, Matrix, unit_rows

CHUNK = 1024  # texts tokenised at once


class StaticEmbedder:
    """256-d mean token vectors of length 1 (wordllama l2_supercat, MIT).

    The wheel looks for its tokenizer in the wrong folder, so it is loaded from the package folder; nothing is
    downloaded.
    Raises: ImportError where wordllama is not installed.
    """

    name = "wordllama-l2_supercat-256"

    def __init__(self) -> None:
        with _root_logger_kept():
            import wordllama

        model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True, dim=256)
        self._table = np.ascontiguousarray(model.embedding, dtype=np.float32)
        self._tokenizer: Any = model.tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def embed(self, texts: Sequence[str | None]) -> Matrix:
        """(n, 256) float32, rows of length 1; zeros for a text that is None or empty."""
        from scipy.sparse import csr_matrix

        out = np.zeros((len(texts), self._table.shape[1]), np.float32)
        for start in range(0, len(texts), CHUNK):
            chunk = [(text or "")[:LONGEST] for text in texts[start : start + CHUNK]]
            encoded = self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False)
            ids = [one.ids for one in encoded]
            ends = np.cumsum([0, *map(len, ids)])
            flat = np.fromiter(chain.from_iterable(ids), np.int32, count=int(ends[-1]))
            counts = csr_matrix((np.ones(len(flat), np.float32), flat, ends), shape=(len(chunk), len(self._table)))
            out[start : start + len(chunk)] = counts @ self._table
        return unit_rows(out)


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """The import of wordllama calls logging.basicConfig, which does nothing while the root logger has a handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


@cache
def static_embedder() -> StaticEmbedder | None:
    """The static embedder, or None where wordllama is not installed. Loaded once a process: it takes half a second, and never changes."""
    try:
        return StaticEmbedder()
    except ImportError:
        return None


def embedder_of(settings: Settings) -> Embedder | None:
    """The embedder of the settings, the static one where they name no other; None where that is not installed."""
    from uql.llm.embed import open_embedder

    name = settings.embedder
    return static_embedder() if name is None or name == "static" else open_embedder(name, settings)
