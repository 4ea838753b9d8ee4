"""What the tests of questions share."""

from __future__ import annotations

import pytest

from uql.features.embedder import Embedder
from uql.features.static import static_embedder


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return static_embedder()
