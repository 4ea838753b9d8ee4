"""Two methods that return sets and state nothing of their precision or recall: CSV's votes, and BigQuery's proxy with its check.

They stand beside those that do, for what they cost and how often such a set has both targets.
Sources: as in `uql.benchmarks.sampling.rival_methods`.
"""

from __future__ import annotations

import numpy as np

from uql.benchmarks.promise.tables import Dear, Table
from uql.benchmarks.sampling.rival_methods import csv_votes, proxy_of
from uql.sampling.base import Indices

SAMPLE = 1_000  # rows that train and check the proxy


def csv(table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float) -> Indices:
    """Clusters whose votes agree, split until all do: the rows of those that say yes, and the rows with a yes."""
    rows, shares = csv_votes(table.features, dear, len(table.truth), rng, int(rng.integers(1 << 30)))
    decided = [members for members, share in zip(rows, shares, strict=True) if share == 1.0]
    return np.unique(np.concatenate([*decided, dear.matches()]))


def bigquery(
    table: Table, dear: Dear, rng: np.random.Generator, precision: float, recall: float, delta: float
) -> Indices:
    """The rows that the proxy says yes to; every row is asked where its check fails, since the query then has no answer."""
    chances = proxy_of(table.features, dear, SAMPLE, rng)
    if chances is None:
        return np.flatnonzero(dear(np.arange(len(table.truth))) == 1.0)
    return np.unique(np.concatenate([np.flatnonzero(chances > 0.5), dear.matches()]))
