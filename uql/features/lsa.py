"""Latent semantic analysis of a table's own texts: TF-IDF of words and word pairs, then a truncated SVD."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from uql.features.cache import save_array, save_bytes
from uql.features.embedder import LONGEST, Matrix, unit_rows

FIT_ROWS = 50_000
TERMS = 50_000
DIMENSIONS = 128


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
        self._counter: Any = None

    @classmethod
    def fit(cls, texts: Sequence[str | None], seed: int = 0) -> Lsa:
        """Fit on at most 50,000 of the texts, drawn with `seed`."""
        return cls._fit(texts, seed)[0]

    @classmethod
    def fit_embed(cls, texts: Sequence[str | None], seed: int = 0) -> tuple[Lsa, Matrix | None]:
        """Fit, and embed the same texts where all were fitted on: their words are counted once."""
        lsa, counted = cls._fit(texts, seed)
        return lsa, None if counted is None else lsa._project(counted)

    @classmethod
    def _fit(cls, texts: Sequence[str | None], seed: int) -> tuple[Lsa, Any]:
        from sklearn.utils.extmath import randomized_svd

        rng = np.random.default_rng(seed)
        whole = len(texts) <= FIT_ROWS
        rows = np.arange(len(texts)) if whole else np.sort(rng.choice(len(texts), FIT_ROWS, replace=False))
        counter = _counter(None, len(rows))
        sample = [(texts[i] or "")[:LONGEST] for i in rows]
        try:
            counts = counter.fit_transform(sample)
        except ValueError:  # no term is left: empty texts, or all alike
            return cls([], np.zeros(0, np.float32), np.zeros((0, 0), np.float32)), None
        idf = (np.log((1 + len(rows)) / (1 + np.asarray((counts > 0).sum(axis=0)).ravel())) + 1).astype(np.float32)
        weighted = _weighted(counts, idf)
        d = min(DIMENSIONS, min(weighted.shape) - 1)
        if d >= 1:
            _, _, components = randomized_svd(weighted, n_components=d, n_iter=3, random_state=seed)
        else:
            components = np.asarray(weighted[:1].todense(), np.float32)
        lsa = cls(counter.get_feature_names_out().tolist(), idf, np.ascontiguousarray(components, np.float32))
        return lsa, weighted if whole else None

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
        if self._counter is None:
            self._counter = _counter(self._terms, 0)
        out = np.empty((len(texts), self.dimensions), np.float32)
        for i in range(0, len(texts), 8192):
            counts = self._counter.transform([(t or "")[:LONGEST] for t in texts[i : i + 8192]])
            out[i : i + 8192] = self._project(_weighted(counts, self._idf))
        return out

    def _project(self, weighted: Any) -> Matrix:
        return unit_rows(np.ascontiguousarray(weighted @ self._components.T, np.float32))


def _counter(terms: list[str] | None, rows: int) -> Any:
    from sklearn.feature_extraction.text import CountVectorizer

    fitted = {"vocabulary": terms} if terms is not None else {}
    return CountVectorizer(
        ngram_range=(1, 2), min_df=3 if rows >= 200 else 1, max_df=0.5 if rows >= 20 else 1.0, max_features=TERMS,
        dtype=np.float32, **fitted,
    )  # fmt: skip


def _weighted(counts: Any, idf: Matrix) -> Any:
    """Sublinear TF-IDF with rows of length 1."""
    from sklearn.preprocessing import normalize

    counts = counts.astype(np.float32)
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    return normalize(counts, copy=False)


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
        idf, components = np.load(folder / "idf.npy"), np.load(folder / "components.npy")
    except (OSError, ValueError, EOFError):
        return None
    if components.ndim != 2 or components.shape[1] != len(terms) or idf.shape != (len(terms),):
        return None
    lsa = Lsa(terms, idf, components)
    return lsa if lsa.name == name else None
