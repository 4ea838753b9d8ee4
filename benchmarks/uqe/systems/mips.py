"""Maximum inner product search: the B rows whose embedding is nearest that of the condition; no model is asked."""

from __future__ import annotations

import numpy as np

from uql.benchmarks.uqe.data import Condition
from uql.benchmarks.uqe.model import Model
from uql.features.static import static_embedder

NO_EMBEDDINGS = "there is no embedder of images and texts in one space on this machine"


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The first B rows by inner product with the condition's text, all of them returned. The same for every seed."""
    embeddings, embedder = model.world.embeddings, static_embedder()
    assert embeddings is not None and embedder is not None
    query = np.asarray(embedder.embed([condition.text])[0], np.float32)
    scores = embeddings @ query
    return [int(row) for row in np.argsort(-scores, kind="stable")[:budget]]
