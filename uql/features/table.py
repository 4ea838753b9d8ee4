"""The features of a table's rows: blocks of embeddings, reduced and stacked. Made once, cached by content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from uql.features.embedder import Embedder, Matrix, unit_rows

COMPONENTS = 96  # principal components kept of each block


@dataclass(frozen=True)
class TableFeatures:
    """The rows of one table (or of the texts given) as vectors.

    Attributes:
        matrix: (N, d) float32 in C order, mean 0, mean squared row norm 1.
        blocks: for each embedder, itself, the (N, e) vectors of the rows and their (e,) mean.
        note: what was left out, for EXPLAIN; empty where nothing was.
    """

    matrix: Matrix
    blocks: tuple[tuple[Embedder, Matrix, Matrix], ...]
    note: str = ""

    def cosines(self, texts: Sequence[str]) -> Matrix:
        """(N, len(texts)) cosines of every row with each text in the first block, the table's mean taken away from
        both."""
        if not self.blocks:
            return np.zeros((len(self.matrix), len(texts)), np.float32)
        embedder, vectors, mean = self.blocks[0]
        asked = unit_rows(embedder.embed(texts) - mean)
        products = vectors @ asked.T - mean @ asked.T
        # |v − m|² = |v|² − 2 v·m + |m|²
        squares = np.einsum("ij,ij->i", vectors, vectors) - 2 * (vectors @ mean) + float(mean @ mean)
        lengths = np.sqrt(np.maximum(squares, 0.0))
        out: Matrix = (products / np.where(lengths > 1e-6, lengths, 1.0)[:, None]).astype(np.float32)
        return out


def reduce_block(vectors: Matrix, components: int = COMPONENTS) -> Matrix:
    """Centre, rotate to at most `components` principal components without whitening, scale to a mean squared row norm
    of 1."""
    if vectors.shape[1] == 0 or len(vectors) == 0:
        return np.zeros((len(vectors), 0), np.float32)
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    covariance = np.zeros((vectors.shape[1], vectors.shape[1]))
    for start in range(0, len(vectors), 65_536):
        part = vectors[start : start + 65_536] - mean
        covariance += part.T @ part
    values, axes = np.linalg.eigh(covariance)
    keep = min(components, len(vectors) - 1, vectors.shape[1])
    if keep < 1 or values[-1] <= 0:
        return np.zeros((len(vectors), 0), np.float32)
    order = np.argsort(values)[::-1][:keep]
    order = order[values[order] > values[-1] * 1e-8]
    rotated = (vectors - mean) @ np.ascontiguousarray(axes[:, order], np.float32)
    out: Matrix = rotated / np.float32(np.sqrt(values[order].sum() / len(vectors)))
    return out


def stack_blocks(blocks: Sequence[Matrix], n_rows: int) -> Matrix:
    """Blocks of mean squared row norm 1, side by side, rescaled to 1."""
    kept = [block for block in blocks if block.shape[1]]
    if not kept:
        return np.zeros((n_rows, 0), np.float32)
    return np.ascontiguousarray(np.concatenate(kept, axis=1) / np.float32(np.sqrt(len(kept))), np.float32)


Progress = Callable[[int, int], None]
