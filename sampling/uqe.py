"""UQE's two algorithms, the baseline: clusters as strata for aggregates, greedy online logistic regression for retrieval.

Source: Dai et al. (2024), UQE: A Query Engine for Unstructured Databases, algorithms 1 and 2 (without the factor |S| of
equation 3, a slip), settings as in its appendix C.2.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from uql.sampling import surrogate
from uql.sampling.base import Indices, Matrix
from uql.sampling.clusters import CLUSTERS, best_clusters, clusters
from uql.sampling.retrieval import Search
from uql.sampling.stratified import StratifiedSampler

RETRIEVAL_BATCH = 16


class UqeSampler(StratifiedSampler):
    """Algorithm 1: clusters of the features, asked in proportion, means weighted by cluster size.

    Args:
        clustered: how many clusters, 10 as in the source's settings, or "auto" for as many as stand apart most.
    """

    method = "uqe"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        features: Matrix,
        clustered: int | Literal["auto"] = CLUSTERS,
        **kept: Any,
    ) -> None:
        seed = int(kept["rng"].integers(2**31 - 1))
        if clustered == "auto":
            strata = best_clusters(features, budget, seed)
        else:
            strata = clusters(features, clustered, seed)
        super().__init__(n_rows, budget, strata=strata, **kept)


class UqeSearch(Search):
    """Algorithm 2: ask random rows at first, then always the rows that a logistic regression on all answers puts first.

    Args:
        features: (N, d) float32.
        epsilon: chance that a row of the first batch after a fit is a random one; of batch t, epsilon / t (§4.1.2: it decays).
        batch: rows between two fits; the first batch is random.
    """

    method = "uqe"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        features: Matrix,
        epsilon: float = 0.0,
        batch: int = RETRIEVAL_BATCH,
        **kept: Any,
    ) -> None:
        super().__init__(n_rows, budget, **kept)
        self.features, self.epsilon, self.batch = features, epsilon, batch
        self._fits = 0

    def _choose(self, k: int) -> Indices:
        k = min(k, self.batch)
        rows, y = self._labels()
        if len(y) == 0 or y.min() == y.max() or self.features.shape[1] == 0:
            return self._random(k)
        from sklearn.linear_model import LogisticRegression

        with surrogate.one_thread():
            model = LogisticRegression(C=1.0, max_iter=200).fit(self.features[rows], y)
        scores = (self.features @ model.coef_[0].astype(np.float32)).astype(np.float64)
        self._fits += 1
        explore = int(self.rng.binomial(k, self.epsilon / self._fits)) if self.epsilon else 0
        top = self._top(scores, k - explore)
        self._is_asked[top] = True
        return np.concatenate([top, self._random(explore)])
