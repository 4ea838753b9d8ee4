"""Latent semantic analysis of a table's own texts: TF-IDF of words and word pairs, then a truncated SVD."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Sized
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from uql.base.process_wide import one_thread
from uql.features.cache import read_array, save_array, save_bytes
from uql.features.embedder import LONGEST, Matrix, unit_rows

FIT_ROWS = 50_000
TERMS = 50_000
DIMENSIONS = 128
WORD = re.compile(r"\b\w\w+\b")
OVERSAMPLES, POWER_ITERATIONS = 10, 3  # of the random projection


class Lsa:
    """An embedder fitted to the texts of one table; `state` and `restore` keep a fit, so that new rows land in the
    same space.

    Source: Deerwester et al. (1990); Halko, Martinsson & Tropp (2011) for the SVD.
    """

    def __init__(self, terms: Sequence[str], idf: Matrix, components: Matrix) -> None:
        self._terms, self._idf, self._components = list(terms), idf, components
        digest = blake2b("\n".join(self._terms).encode("utf-8", "surrogatepass"), digest_size=6)
        digest.update(np.ascontiguousarray(components).tobytes())
        self.name = f"lsa-{len(components)}-{digest.hexdigest()}"
        self._columns: dict[str, int] = {}  # of each term, made when texts are first embedded

    @classmethod
    def fit_embed(cls, texts: Sequence[str | None]) -> tuple[Lsa, Matrix | None]:
        """Fit on at most 50,000 of the texts, and embed them where all were fitted on: their words are counted once."""
        rng = np.random.default_rng(0)
        whole = len(texts) <= FIT_ROWS
        rows = np.arange(len(texts)) if whole else np.sort(rng.choice(len(texts), FIT_ROWS, replace=False))
        terms, counts = vocabulary([(texts[i] or "")[:LONGEST] for i in rows])
        if not terms:  # empty texts, or all alike
            return cls([], np.zeros(0, np.float32), np.zeros((0, 0), np.float32)), None
        idf = (np.log((1 + len(rows)) / (1 + np.asarray((counts > 0).sum(axis=0)).ravel())) + 1).astype(np.float32)
        weighted = _weighted(counts, idf)
        d = min(DIMENSIONS, min(weighted.shape) - 1)
        if d >= 1:
            components = right_singular_vectors(weighted, d, 0)
        else:
            components = np.asarray(weighted[:1].todense(), np.float32)
        lsa = cls(terms, idf, np.ascontiguousarray(components, np.float32))
        return lsa, lsa._project(weighted) if whole else None

    @property
    def state(self) -> tuple[list[str], Matrix, Matrix]:
        """Terms (T,), inverse document frequencies (T,), components (d, T): the arguments of the constructor."""
        return self._terms, self._idf, self._components

    @property
    def dimensions(self) -> int:
        """Columns of what `embed` gives; 0 where the texts had no words."""
        return int(self._components.shape[0])

    def embed(self, texts: Sequence[str | None]) -> Matrix:
        """(n, d) float32, rows of length 1; zeros for a text without a known word."""
        if not self._terms:
            return np.zeros((len(texts), 0), np.float32)
        if not self._columns:
            self._columns = {term: column for column, term in enumerate(self._terms)}
        columns = self._columns
        out = np.empty((len(texts), self.dimensions), np.float32)
        for i in range(0, len(texts), 8192):
            part = [(t or "")[:LONGEST] for t in texts[i : i + 8192]]
            counts = _counted(part, columns, lambda terms: map(columns.get, terms, repeat(-1)))
            out[i : i + 8192] = self._project(_weighted(counts, self._idf))
        return out

    def _project(self, weighted: Any) -> Matrix:
        return unit_rows(np.ascontiguousarray(weighted @ self._components.T, np.float32))


def vocabulary(texts: Sequence[str]) -> tuple[list[str], Any]:
    """The words and word pairs of the texts that are neither rare nor in most of them, sorted, and their counts.

    Words have two characters at least and are in lower case. From 200 texts on a term stands in three of them, from 20 on in
    no more than half; of more than TERMS the most frequent ones.

    Returns: the terms (T,) and a sparse matrix (n, T) of float32; no terms where none is left.

    >>> terms, counts = vocabulary(["The plum", "A red, red pear"])
    >>> terms, counts.toarray().tolist()[1]
    (['pear', 'plum', 'red', 'red pear', 'red red', 'the', 'the plum'], [1.0, 0.0, 2.0, 1.0, 1.0, 0.0, 0.0])
    """
    column_of: defaultdict[str, int] = defaultdict()
    column_of.default_factory = column_of.__len__  # a new term gets the next column
    counts = _counted(texts, column_of, partial(map, column_of.__getitem__))
    terms = np.array(list(column_of), dtype=object)
    order = np.argsort(terms) if len(terms) else np.zeros(0, np.int64)
    counts, terms = counts[:, order], terms[order]
    n = len(texts)
    held_by = np.bincount(counts.indices, minlength=len(terms))
    keep = (held_by >= (3 if n >= 200 else 1)) & (held_by <= (0.5 * n if n >= 20 else n))
    chosen = np.flatnonzero(keep)
    if len(chosen) > TERMS:
        total = np.asarray(counts.sum(axis=0)).ravel()
        chosen = np.sort(chosen[(-total[chosen]).argsort()[:TERMS]])
    return terms[chosen].tolist(), counts[:, chosen]


def _counted(texts: Sequence[str], columns: Sized, look_up: Callable[[Iterator[str]], Iterator[int]]) -> Any:
    """The sparse matrix (n, T) of how often each term stands in each text; terms without a column are left out.

    Args:
        columns: T of them, when all are looked up.
        look_up: the columns of terms, −1 where one has none.
    """
    from scipy.sparse import csr_matrix

    found, ends = array("i"), array("q", [0])
    for text in texts:
        words = WORD.findall(text.lower())
        found.extend(look_up(chain(words, map(" ".join, pairwise(words)))))
        ends.append(len(found))
    indices, starts = np.asarray(found, np.int32), np.asarray(ends, np.int64)
    known = indices >= 0
    if not known.all():
        indices, starts = indices[known], np.append(0, np.cumsum(known))[starts]
    parts = (np.ones(len(indices), np.float32), indices, starts)
    counts = csr_matrix(parts, shape=(len(texts), len(columns)), dtype=np.float32)
    counts.sum_duplicates()
    return counts


def _weighted(counts: Any, idf: Matrix) -> Any:
    """Sublinear TF-IDF with rows of length 1."""
    counts = counts.astype(np.float32)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    squares = np.bincount(rows, counts.data * counts.data, minlength=counts.shape[0])  # of float32, added up in float64
    counts.data = (counts.data / np.sqrt(squares)[rows]).astype(np.float32)
    return counts


def right_singular_vectors(matrix: Any, d: int, seed: int) -> Matrix:
    """(d, T) the first right singular vectors of a sparse matrix (n, T) by random projection with three power iterations.

    Args:
        matrix: sparse, float32.
        d: vectors, less than its smaller side.
    Source: Halko, Martinsson & Tropp (2011), algorithms 4.4 and 5.1; LU in the place of QR between the iterations.
    """
    from scipy import linalg

    wide = matrix.shape[0] < matrix.shape[1]
    tall = matrix.T if wide else matrix
    base = np.random.RandomState(seed).normal(size=(tall.shape[1], d + OVERSAMPLES)).astype(np.float32)
    with one_thread():  # the BLAS of SciPy, which may be loaded only now
        for _ in range(POWER_ITERATIONS):
            base, _ = linalg.lu(tall @ base, permute_l=True, check_finite=False)
            base, _ = linalg.lu(tall.T @ base, permute_l=True, check_finite=False)
        base, _ = linalg.qr(tall @ base, mode="economic", check_finite=False)
        thin, _, of_columns = linalg.svd(base.T @ tall, full_matrices=False)
        of_rows = (base @ thin).T
    right, rows = (of_rows, of_columns) if wide else (of_columns, of_rows)
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    # a vector's sign makes the largest entry of its left one positive
    out: Matrix = (right * np.sign(largest)[:, None])[:d]
    return out


def save_lsa(folder: Path, lsa: Lsa) -> None:
    """Keep a fit in a folder; the terms, which name it whole, are written last."""
    terms, idf, components = lsa.state
    (folder / "terms.txt").unlink(missing_ok=True)
    save_array(folder / "idf.npy", idf)
    save_array(folder / "components.npy", components)
    save_bytes(folder / "terms.txt", "\n".join([lsa.name, *terms]).encode("utf-8", "surrogatepass"))


def load_lsa(folder: Path) -> Lsa | None:
    """The fit kept in a folder, or None where there is none, or it is damaged."""
    try:
        name, *terms = (folder / "terms.txt").read_bytes().decode("utf-8", "surrogatepass").split("\n")
        idf = np.array(read_array(folder / "idf.npy", (len(terms),)))
        components = np.array(read_array(folder / "components.npy", (None, len(terms))))
    except (OSError, ValueError, EOFError):
        return None
    lsa = Lsa(terms, idf, components)
    return lsa if lsa.name == name else None
