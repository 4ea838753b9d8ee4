"""The static embedder: the mean of token vectors, from wordllama's table, 10–20 times faster than the package's own
embed call. The package is not imported, which takes longer than to read its two files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np

from uql.base.settings import Settings
from uql.features.embedder import LONGEST, Embedder, Matrix, unit_rows

CHUNK = 1024  # texts tokenised at once


class StaticEmbedder:
    """256-d mean token vectors of length 1 (wordllama l2_supercat, MIT), from the files of the wheel: nothing is downloaded.

    Raises: ImportError where wordllama is not installed.
    """

    name = "wordllama-l2_supercat-256"

    def __init__(self) -> None:
        package = find_spec("wordllama")
        if package is None or package.origin is None:
            raise ImportError("wordllama is not installed")
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = Path(package.origin).parent
        weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        self._table = np.ascontiguousarray(weights, dtype=np.float32)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
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
