"""What guides a search among pairs: how near the two rows of a pair are in meaning (blocking by embeddings, learned from the answers)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels.duck import quote

if TYPE_CHECKING:
    from uql.features.store import FeatureStore
    from uql.kernels.relation import Relation

MOST_PAIRS = 200_000  # beyond, features of pairs would not fit in memory
PRODUCTS = 24  # axes whose products tell which way the two rows are alike
WEIGHT = 1.0  # of the cosine beside the products


def pair_features(
    columns: Sequence[VirtualColumn], relation: Relation, store: FeatureStore
) -> tuple[NDArray[np.float32], NDArray[np.float64]] | None:
    """(pairs, d) features of pairs of rows and (pairs,) their cosine, standardised; None where a side has no text.

    The texts of both sides are embedded together, each distinct one once.

    Args:
        columns: the texts whose columns are compared; those without text are left out.
        relation: the pairs.
        store: embeds the texts.
    """
    reads = dict.fromkeys(c for column in columns for c in (*column.reads, *column.holes) if _is_text(c, relation))
    tables = list(dict.fromkeys(c.table for c in reads))
    if len(tables) != 2 or relation.n > MOST_PAIRS:
        return None
    sides = [_side([c for c in reads if c.table == table], relation) for table in tables]
    (left, left_texts), (right, right_texts) = sides
    key = f"{relation.source}: {', '.join(c.label for c in reads)}"
    both = store.table([*left_texts, *right_texts], key).matrix
    if both.shape[1] == 0:
        return None
    unit = both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    return of_pairs(unit[: len(left_texts)][left], unit[len(left_texts) :][right])


def of_pairs(u: NDArray[np.float32], v: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """(pairs, d) features of pairs and (pairs,) their cosine, standardised, from the unit vectors (pairs, e) of both sides."""
    cosine = (u * v).sum(axis=1).astype(np.float64)
    spread = float(cosine.std())
    near = (cosine - cosine.mean()) / (spread if spread > 1e-9 else np.inf)
    products = u[:, :PRODUCTS] * v[:, :PRODUCTS]
    products = products - products.mean(axis=0)
    size = float(np.sqrt((products**2).sum(axis=1).mean()))
    matrix = np.concatenate([WEIGHT * near[:, None], products / (size if size > 1e-9 else np.inf)], axis=1)
    return np.ascontiguousarray(matrix, dtype=np.float32), near


def _is_text(column: Column, relation: Relation) -> bool:
    field = relation.fields.get(column)
    return field is None or field.type != "BLOB"


def _side(columns: Sequence[Column], relation: Relation) -> tuple[NDArray[np.int64], list[str]]:
    """(pairs,) which of the distinct texts each pair holds, and these texts."""
    shown = [f"CAST({quote(c.label)} AS VARCHAR)" for c in columns]
    found = relation.duck.arrow(
        f"SELECT concat_ws(chr(10), {', '.join(shown)}) AS t FROM {quote(relation.name)} ORDER BY rowid"
    )
    texts, codes = np.unique(np.array(found.column(0).to_pylist(), dtype=object), return_inverse=True)
    return codes.astype(np.int64), [str(t) for t in texts]
