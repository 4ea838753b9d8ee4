"""Routers: which adapter answers a sub-query best, learned from traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from uql.base.errors import ConfigError, DataError
from uql.base.extras import install
from uql.base.settings import Settings

if TYPE_CHECKING:
    from uql.features.embedder import Embedder
    from uql.nl.routers.ml import MLRouter
    from uql.nl.routers.stat import StatRouter


def embedder_of(name: str | None) -> Embedder:
    """The embedder of a setting; the static one where it is None. Raises ConfigError (UQL610) where that is not installed."""
    from uql.features import static

    embedder = static.embedder_of(Settings(embedder=name))
    if embedder is None:
        raise ConfigError("a router needs an embedder", code="UQL610", help=f"{install('local')}, or set embedder")
    return embedder


def load_router(path: str | Path, embedder: Embedder | None = None) -> StatRouter | MLRouter:
    """The router of a file that `uql router train` wrote.

    Args:
        embedder: of an MLRouter; None: the static one.
    Raises: DataError (UQL514) where the file is not one; ConfigError (UQL643) where another embedder made it.
    """
    place = Path(path).with_suffix(".json")
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"the router {place} cannot be read: {error}", code="UQL514", help="uql router train"
        ) from error
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind == "stat":
        from uql.nl.routers.stat import StatRouter

        return StatRouter.load(content)
    if kind == "ml":
        from uql.nl.routers.ml import MLRouter

        return MLRouter.load(place, content, embedder or embedder_of(None))
    raise DataError(f"{place} is not a router", code="UQL514", help="uql router train")
