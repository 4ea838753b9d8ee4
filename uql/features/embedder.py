"""What turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

LONGEST = 20_000  # characters of a text that are read; what a row is about stands before


class Embedder(Protocol):
    """Texts in, vectors out. Another name is another vector space: the cache of a table is dropped when the name
    changes."""

    @property
    def name(self) -> str:
        """Names the model, its version and its dimensions."""

    def embed(self, texts: Sequence[str | None]) -> Matrix:
        """(n, d) float32, rows of length 1; zeros for a text that is None or empty."""


class ImageEmbedder(Protocol):
    """Images in, vectors out; as `Embedder`."""

    @property
    def name(self) -> str: ...

    def embed(self, images: Sequence[bytes | None]) -> Matrix:
        """(n, d) float32, rows of length 1; zeros for what is not a picture."""


def unit_rows(matrix: Matrix) -> Matrix:
    """The rows scaled to length 1, in place; rows of zeros stay."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths > 0, lengths, 1.0)
    return matrix
