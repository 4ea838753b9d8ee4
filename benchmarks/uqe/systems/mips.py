"""Maximum inner product search: the B rows whose embedding is nearest that of the condition; no model is asked."""

from __future__ import annotations

import numpy as np

from uql.benchmarks.uqe.data import Condition, words
from uql.benchmarks.uqe.model import Model

NO_EMBEDDINGS = "there is no embedder of images and texts in one space on this machine"


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The first B rows by inner product with the condition's text, all of them returned. The same for every seed."""
    query = np.asarray(words().embed([condition.text])[0], np.float32)
    scores = model.world.embeddings @ query
    return [int(row) for row in np.argsort(-scores, kind="stable")[:budget]]
