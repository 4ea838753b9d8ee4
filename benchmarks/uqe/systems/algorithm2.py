"""UQE's algorithm 2: a logistic regression on what was asked chooses the rows to ask next; random rows at first.

Settings as in the paper's appendix C.2: ε = 0, scikit-learn's logistic regression, trained anew after every batch once there is a
yes and a no. The paper does not say how large a batch is; 16 here, the window of its figure 5.
"""

from __future__ import annotations

import numpy as np

from uql.base.extras import need
from uql.benchmarks.uqe.data import Condition
from uql.benchmarks.uqe.model import Model

BATCH = 16


def search(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[tuple[int, bool | None]]:
    """(row, answer) in the order asked."""
    need("learned searches", "uqe", "sklearn")
    from sklearn.linear_model import LogisticRegression

    embeddings = model.world.embeddings
    asked: list[tuple[int, bool | None]] = []
    free = np.ones(model.world.n, bool)
    while len(asked) < budget and free.any():
        k = min(BATCH, budget - len(asked), int(free.sum()))
        known = [(row, answer) for row, answer in asked if answer is not None]
        if len({answer for _, answer in known}) < 2:
            chosen = rng.choice(np.flatnonzero(free), k, replace=False)
        else:
            rows, answers = zip(*known, strict=True)
            fitted = LogisticRegression(max_iter=200).fit(embeddings[list(rows)], list(answers))
            scores = np.where(free, embeddings @ fitted.coef_[0].astype(np.float32), -np.inf)
            chosen = np.argsort(-scores, kind="stable")[:k]
        free[chosen] = False
        picked = [int(row) for row in chosen]
        asked += zip(picked, model.is_so(condition.text, picked), strict=True)
    return asked


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The rows that the model said yes to."""
    return [row for row, answer in search(model, condition, budget, rng) if answer]
