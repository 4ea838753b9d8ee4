"""UQE's two algorithms, the baseline: clusters as strata for aggregates, greedy online logistic regression for
retrieval.

Source: Dai et al. (2024), UQE: A Query Engine for Unstructured Databases, algorithms 1 and 2 (without the factor |S|
of equation 3,
a slip), settings as in its appendix C.2.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from uql.sampling import surrogate
from uql.sampling.base import Floats, Indices
from uql.sampling.retrieval import Search
from uql.sampling.stratified import StratifiedSampler
from uql.sampling.surrogate import Matrix

CLUSTERS = 10
CANDIDATES = (4, 6, 8, 10, 14, 20, 28)
RETRIEVAL_BATCH = 16


def clusters(features: Matrix, k: int = CLUSTERS, seed: int = 0) -> Indices:
    """(N,) the cluster of each row by k-means on at most 20,000 random rows, then assigned to the nearest centre."""
    k = min(k, len(features))
    if k <= 1:
        return np.zeros(len(features), np.int64)
    import faiss

    data = np.ascontiguousarray(features, np.float32)
    with surrogate.one_thread():
        means = faiss.Kmeans(
            data.shape[1], k, niter=20, seed=seed, min_points_per_centroid=1, max_points_per_centroid=20_000 // k
        )
        means.train(data)
        _, nearest = means.index.search(data, 1)
    out: Indices = nearest[:, 0].astype(np.int64)
    return out


def best_clusters(features: Matrix, draws: int, seed: int = 0) -> Indices:
    """(N,) the clustering, of a few numbers of clusters with at least four draws each, whose clusters stand apart most:
    the largest ratio of the spread between them to the spread within.

    Source: Caliński & Harabasz (1974).
    """
    found = clusters(features, 2, seed)
    best = separation(features, found)
    for k in CANDIDATES:
        if 4 * k > draws or k >= len(features):
            break
        made = clusters(features, k, seed)
        score = separation(features, made)
        if score > best:
            found, best = made, score
    return found


def separation(features: Matrix, labels: Indices) -> float:
    """Spread between clusters over spread within, each by its degrees of freedom; 0 for one cluster."""
    n = len(features)
    names, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) < 2 or n <= len(names):
        return 0.0
    means = np.zeros((len(names), features.shape[1]))
    np.add.at(means, place, features)
    means /= sizes[:, None]
    centre = features.mean(axis=0)
    between = float((sizes * ((means - centre) ** 2).sum(axis=1)).sum())
    within = float(((features - centre) ** 2).sum()) - between
    return between / (len(names) - 1) / max(within / (n - len(names)), 1e-12)


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
        epsilon: chance that a row is a random one instead.
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
        self._last: Floats = np.zeros(n_rows)

    def _scores(self) -> Floats:
        return self._last.copy()

    def _choose(self, k: int) -> Indices:
        k = min(k, self.batch)
        seen = ~np.isnan(self.answers)
        rows, y = self.told[seen], self.answers[seen]
        if len(y) == 0 or y.min() == y.max() or self.features.shape[1] == 0:
            return self._random(k)
        from sklearn.linear_model import LogisticRegression

        with surrogate.one_thread():
            model = LogisticRegression(C=1.0, max_iter=200).fit(self.features[rows], y)
        self._last = (self.features @ model.coef_[0].astype(np.float32)).astype(np.float64)
        explore = int(self.rng.binomial(k, self.epsilon)) if self.epsilon else 0
        scores = np.where(self._asked, -np.inf, self._last)
        k_top = min(k - explore, int((~self._asked).sum()))
        top = np.argpartition(scores, len(scores) - k_top)[len(scores) - k_top :] if k_top else np.zeros(0, np.int64)
        top = top[np.argsort(-scores[top], kind="stable")]
        self._asked[top] = True
        return np.concatenate([top, self._random(explore)]).astype(np.int64)
