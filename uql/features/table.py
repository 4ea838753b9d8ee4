"""The features of a table's rows: blocks of embeddings, reduced and stacked. Made once, cached by content."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uql.base.extras import install
from uql.base.process_wide import one_thread
from uql.features.cache import (
    Half,
    Progress,
    VectorCache,
    alone,
    content_hashes,
    distinct,
    forget_pages,
    own_folder,
    read_array,
    save_array,
)
from uql.features.embedder import Embedder, Matrix, unit_rows
from uql.features.lsa import FIT_ROWS, Lsa, load_lsa, save_lsa
from uql.features.static import static_embedder

COMPONENTS = 96  # principal components kept of each block
SLICE = 8_192  # rows held as float32 at a time
LARGE = 128_000_000  # bytes of a matrix that is rather kept in a file
REFIT_SHARE = 0.25  # of more than FIT_ROWS texts that a kept LSA was not made for: above, another one is fitted
LSAS = ("lsa", "lsa-2", "lsa-3", "lsa-4")  # that are kept of a key; the last one makes way for another
WITHOUT_STATIC = f"wordllama is not installed: features are LSA alone ({install('local')})"


@dataclass(frozen=True)
class Block:
    """The vectors of a table's rows by one embedder: (M, e) of distinct texts, and (N,) each row's place among them."""

    embedder: Embedder
    vectors: Half
    index: NDArray[np.int64]
    mean: Matrix  # (e,) over the N rows

    @classmethod
    def of(cls, embedder: Embedder, vectors: Half, index: NDArray[np.int64]) -> Block:
        """Adds the mean.

        Args:
            vectors: (distinct texts, d) float16.
            index: (N,) int, the vector of each row.
        """
        total = np.zeros(vectors.shape[1])
        counts = np.bincount(index, minlength=len(vectors)).astype(np.float32)
        for start in range(0, len(vectors), SLICE):
            total += counts[start : start + SLICE] @ vectors[start : start + SLICE].astype(np.float32)
        forget_pages(vectors)
        return cls(embedder, vectors, index, (total / max(len(index), 1)).astype(np.float32))

    def slices(self) -> Iterator[tuple[slice, Matrix]]:
        """The rows' vectors less the mean, some rows at a time, as float32."""
        for start in range(0, len(self.index), SLICE):
            rows = slice(start, min(start + SLICE, len(self.index)))
            yield rows, self.vectors[self.index[rows]].astype(np.float32) - self.mean
        forget_pages(self.vectors)

    def products(self, weights: Matrix) -> NDArray[np.float64]:
        """(N,) the products of the rows' vectors, with their mean, and weights (e,)."""
        parts = [part @ weights for _, part in self.slices()]
        return np.concatenate(parts).astype(np.float64) + float(self.mean @ weights)

    def axes(self, components: int = COMPONENTS) -> Matrix:
        """(e, c) what a row less the mean is multiplied with: at most `components` principal components, not whitened, for
        a mean squared row norm of 1."""
        n, e = len(self.index), self.vectors.shape[1]
        covariance = np.zeros((e, e))
        for _, part in self.slices():
            covariance += part.T @ part
        keep = min(components, n - 1, e)
        if keep < 1:
            return np.zeros((e, 0), np.float32)
        with one_thread():  # two spinning threads make a small problem a hundred times slower on a busy machine
            values, axes = np.linalg.eigh(covariance)
        order = np.argsort(values)[::-1][:keep]
        order = order[values[order] > max(1e-6 * values[-1], 1e-6)]
        if len(order) == 0:
            return np.zeros((e, 0), np.float32)
        scale = np.sqrt(values[order].sum() / n)
        return np.ascontiguousarray(axes[:, order] / scale, np.float32)

    def cosines(self, texts: Sequence[str]) -> Matrix:
        """(N, len(texts)) cosines of every row with each text, the table's mean taken away from both."""
        vectors = unit_rows(self.embedder.embed(texts) - self.mean)
        out = np.empty((len(self.index), len(texts)), np.float32)
        for rows, part in self.slices():
            lengths = np.linalg.norm(part, axis=1)
            out[rows] = (part @ vectors.T) / np.where(lengths > 1e-6, lengths, 1.0)[:, None]
        return out


@dataclass(frozen=True)
class TableFeatures:
    """The rows of one table (or the texts given) as vectors.

    Attributes:
        matrix: (N, d) float32 in C order, mean 0, mean squared row norm 1; d is 0 where the texts say nothing.
        blocks: what it was stacked from; the first serves `cosines`.
        note: what was left out, for EXPLAIN; empty where nothing was.
    """

    matrix: Matrix
    blocks: tuple[Block, ...]
    note: str = ""

    def cosines(self, texts: Sequence[str]) -> Matrix:
        """(N, len(texts)) cosines of every row with each text, the table's mean taken away from both."""
        if not self.blocks:
            return np.zeros((len(self.matrix), len(texts)), np.float32)
        return self.blocks[0].cosines(texts)


def table_features(
    texts: Sequence[str | None],
    *,
    key: str = "",
    cache_dir: Path | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> TableFeatures:
    """The features of N texts: static embedding and LSA, or another embedder and LSA.

    Args:
        texts: (N,) one a row; None and empty texts are fine.
        key: names the table and columns: texts of one key share a cache and an LSA.
        cache_dir: where vectors are kept; None keeps nothing.
        embedder: instead of the static one.
        progress: called with (texts done, texts to embed).
    """
    hashes = content_hashes(texts)
    first, index = distinct(hashes)
    once = [texts[i] for i in first]
    folder = own_folder(cache_dir, key)
    main = embedder if embedder is not None else static_embedder()
    blocks = []
    with alone(folder):
        if main is not None and len(once):
            if folder is not None:
                _drop_others(folder, folder_name(main.name))
            cache = VectorCache(None if folder is None else folder / folder_name(main.name), main.name)
            blocks.append(Block.of(main, cache.vectors(once, hashes[first], main, progress), index))
            trim()
        if len(once):
            lsa, vectors = _lsa(once, hashes[first], folder, progress if main is None else None)
            if vectors.shape[1]:
                blocks.append(Block.of(lsa, vectors, index))
    return TableFeatures(stacked(blocks, len(texts), folder), tuple(blocks), WITHOUT_STATIC if main is None else "")


def stacked(blocks: Sequence[Block], n_rows: int, folder: Path | None = None) -> Matrix:
    """(N, d) the principal components of all blocks side by side, each block of equal weight, filled in some rows at a
    time: beside the result and the vectors little memory is used. A large result lies in a file of the folder that goes with
    it, mapped into memory.

    Args:
        blocks: of the same N rows.
        n_rows: N.
        folder: of the file that holds a large result; None: memory.
    """
    turned = [(block, axes) for block, axes in ((block, block.axes()) for block in blocks) if axes.shape[1]]
    out = _room((n_rows, sum(axes.shape[1] for _, axes in turned)), folder)
    at = 0
    for block, axes in turned:
        turn = axes / np.float32(np.sqrt(len(turned)))
        for rows, part in block.slices():
            out[rows, at : at + turn.shape[1]] = part @ turn
            forget_pages(out)
        at += turn.shape[1]
    return out


def _room(shape: tuple[int, int], folder: Path | None) -> Matrix:
    """An array to be filled: of a nameless file where it is large and there is a folder."""
    if folder is None or 4 * shape[0] * shape[1] < LARGE or os.name != "posix":
        return np.empty(shape, np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.asarray(np.memmap(file, np.float32, "w+", shape=shape))


def has_vectors(cache_dir: Path | None, key: str) -> bool:
    """Are there vectors under this key?"""
    folder = own_folder(cache_dir, key)
    return folder is not None and folder.is_dir()


def _lsa(
    texts: Sequence[str | None], hashes: NDArray[np.void], folder: Path | None, progress: Progress | None
) -> tuple[Lsa, Half]:
    """The LSA of these texts, kept or fitted, with their vectors: whatever was kept here before, so that a statement draws the same
    rows beside another copy of its table. Of more than FIT_ROWS the first kept one that was made for most of them is good enough.
    """
    place = None
    for place in [] if folder is None else [folder / name for name in LSAS]:
        earlier = load_lsa(place)
        if earlier is None:
            break
        cache = VectorCache(place / "vectors", earlier.name)
        at, is_cached = cache.find(hashes)
        n = _made_for(place, cache)
        least = 1 - REFIT_SHARE if len(texts) > FIT_ROWS else max(1, n / len(texts))
        if float((is_cached & (at < n)).mean()) >= least:
            return earlier, cache.vectors(texts, hashes, earlier, progress)
    lsa, vectors = Lsa.fit_embed(texts)
    trim()
    if not lsa.dimensions:
        return lsa, np.zeros((len(texts), 0), np.float16)
    if place is not None:
        save_array(place / "texts.npy", np.array(len(texts)))
        save_lsa(place, lsa)
    cache = VectorCache(None if place is None else place / "vectors", lsa.name)
    if vectors is not None and not len(cache):
        cache.append(hashes, [vectors.astype(np.float16)])
    return lsa, cache.vectors(texts, hashes, lsa, progress)


def _made_for(place: Path, cache: VectorCache) -> int:
    """How many of the first texts of a cache its LSA was made for: of one that says nothing, all."""
    try:
        return int(read_array(place / "texts.npy", ()))
    except (OSError, ValueError, EOFError):
        return len(cache)


def trim() -> None:
    """Give back what was freed: the C library of Linux keeps the room of the many small strings that counting words takes."""
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if give_back is not None:
        give_back(0)


def _drop_others(folder: Path, keep: str) -> None:
    """Remove what another embedder left for the same texts."""
    for other in folder.glob("*/manifest.json"):
        if other.parent.name != keep:
            shutil.rmtree(other.parent, ignore_errors=True)


def folder_name(name: str) -> str:
    """A name for the folder of an embedder's vectors that every file system takes."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:60].lstrip(".")
    return f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}"
