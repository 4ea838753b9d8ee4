"""Vectors of rows, by which samples are drawn and searches guided: one store an embedder, kept beside the database file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from uql.base.settings import Settings

if TYPE_CHECKING:
    from uql.features.store import FeatureStore
    from uql.kernels.row_features import RowFeatures
    from uql.llm.embed import RemoteEmbedder

LEAVING = ("the texts that samples are drawn by",)


class Vectors:
    """Of one connection.

    Args:
        announced: called with the embedder, what is sent, and the number of texts before texts leave this machine.
        embedded: called with (texts done, texts to embed).
    """

    def __init__(
        self, announced: Callable[[str, tuple[str, ...], int | None], None], embedded: Callable[[int, int], None]
    ) -> None:
        self._announced, self._embedded = announced, embedded
        self._stores: dict[tuple[str, bool, str | None], FeatureStore] = {}
        self._remote: dict[tuple[str, bool, str | None], RemoteEmbedder] = {}  # to which texts leave this machine

    def of(self, settings: Settings, database: str | None) -> RowFeatures:
        """For the embedder of the settings, which has `max_seconds` from here on; vectors of a database file are kept between runs."""
        from uql.features.store import FOLDER, FeatureStore
        from uql.kernels.row_features import RowFeatures

        name = settings.embedder or "static"
        key = (name, settings.offline, database)
        if key not in self._stores:
            embedder = None
            if name != "static":
                embedder = self._remote[key] = self._open(name, settings)
            folder = Path(f"{database}{FOLDER}") if database else None
            self._stores[key] = FeatureStore(folder, embedder, self._embedded)
        if key in self._remote:
            seconds = math.inf if settings.max_seconds is None else settings.max_seconds
            self._remote[key].deadline = time.monotonic() + seconds
        return RowFeatures(self._stores[key])

    def _open(self, name: str, settings: Settings) -> RemoteEmbedder:
        from uql.llm.embed import open_embedder

        def announce(model: str, texts: int) -> None:
            self._announced(model, LEAVING, texts)

        return open_embedder(name, settings, announce=announce)
