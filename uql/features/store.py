"""One run's features: what the engine asks for rows as vectors, and for similarity to a condition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from uql.features.cache import Progress
from uql.features.embedder import Embedder
from uql.features.images import Named, image_features
from uql.features.static import static_embedder
from uql.features.table import TableFeatures, has_vectors, table_features

FOLDER = ".uql-features"  # ends the name of the folder of vectors beside a database file or a lake


class FeatureStore:
    """Makes features once a text list, keeps them in memory for the run and, with a folder, on disk between runs.

    Args:
        cache_dir: beside the database; None for a database in memory.
        embedder: instead of the static one.
        progress: called with (texts done, texts to embed).
    """

    def __init__(
        self, cache_dir: Path | None = None, embedder: Embedder | None = None, progress: Progress | None = None
    ) -> None:
        self.cache_dir, self.embedder, self.progress = cache_dir, embedder, progress
        self._by_key: dict[str, tuple[Sequence[str | None], TableFeatures]] = {}
        self._images_by_key: dict[str, dict[bytes, TableFeatures]] = {}

    @cached_property
    def words(self) -> Embedder | None:
        """The embedder of texts; None where there is none."""
        return self.embedder or static_embedder()

    def table(self, texts: Sequence[str | None], key: str) -> TableFeatures:
        """The features of these texts; `key` names the table and the columns they come from."""
        entry = self._by_key.get(key)
        if entry is not None and (entry[0] is texts or list(entry[0]) == list(texts)):
            return entry[1]
        features = table_features(
            texts, key=key, cache_dir=self.cache_dir, embedder=self.embedder, progress=self.progress
        )
        self._by_key[key] = (texts, features)
        return features

    def has(self, key: str) -> bool:
        """Were features under this key made before, in this run or beside the database? Rows that are new since are few, or made then."""
        return key in self._by_key or has_vectors(self.cache_dir, key)

    def images(
        self,
        images: Iterable[Sequence[bytes | Named | None]],
        key: str,
        load: Callable[[Sequence[str]], Sequence[bytes | None]] | None = None,
    ) -> TableFeatures:
        """The features of a column of images.

        Args:
            images: come in chunks.
            key: names the table and the column.
            load: reads the images of names; None: there are no names.
        """
        by_hash = self._images_by_key.setdefault(key, {})
        features = image_features(
            images,
            load=load,
            key=key,
            cache_dir=self.cache_dir,
            embedder=self.embedder,
            progress=self.progress,
            by_hash=by_hash,
        )
        if len(by_hash) > 1:  # of each column the images seen last are kept
            del by_hash[next(iter(by_hash))]
        return features
