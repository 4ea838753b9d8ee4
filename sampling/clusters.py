"""Clusters of rows by their features: the strata of UQE's algorithm 1, and of its neighbours."""

from __future__ import annotations

import numpy as np

from uql.sampling import surrogate
from uql.sampling.base import Indices, Matrix

CLUSTERS = 10
CANDIDATES = (4, 6, 8, 10, 14, 20, 28)


def clusters(features: Matrix, k: int = CLUSTERS, seed: int = 0) -> Indices:
    """(N,) the cluster of each row by k-means on at most 20,000 random rows, then assigned to the nearest centre.

    Args:
        features: (N, d) float32.
        k: clusters wanted; no more than N are made.
    """
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

    Args:
        features: (N, d) float32.
        draws: rows that will be asked in all.
    Source: Caliński & Harabasz (1974).
    """
    best_labels = clusters(features, 2, seed)
    best = separation(features, best_labels)
    for k in CANDIDATES:
        if 4 * k > draws or k >= len(features):
            break
        labels = clusters(features, k, seed)
        score = separation(features, labels)
        if score > best:
            best_labels, best = labels, score
    return best_labels


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
