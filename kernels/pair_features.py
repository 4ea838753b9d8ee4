"""What guides a search among pairs: how near the two rows of a pair are in meaning (blocking by embeddings, learned from the answers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from uql.base.schema import Field
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.features.store import FeatureStore
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.relation import Relation
from uql.sampling.base import Floats, Indices, Matrix

MOST_PAIRS = 200_000  # beyond, not all pairs are candidates, and a search looks at the nearest ones
SLICE = 65_536  # pairs whose vectors are in memory at once
PRODUCTS_AT_ONCE = 8_000_000  # inner products in memory at once
PRODUCTS = 24  # axes whose products tell which way the two rows are alike
WEIGHT = 1.0  # of the cosine beside the products


def pair_features(
    columns: Sequence[VirtualColumn], relation: Relation, store: FeatureStore
) -> tuple[NDArray[np.float32], Floats] | None:
    """(pairs, d) features of pairs of rows and (pairs,) their cosine, standardised; None where a side has no text.

    The texts of both sides are embedded together, each distinct one once.

    Args:
        columns: the texts whose columns are compared; those without text are left out.
        store: embeds the texts.
    """
    if relation.pool is not None:
        pool = relation.pool
        return None if pool.units is None else of_pairs(*pool.units, pool.left, pool.right)
    reads = _reads(columns, relation.fields)
    if reads is None or relation.n > MOST_PAIRS:
        return None
    (left, left_texts), (right, right_texts) = (_side(side, relation) for side in reads)
    units = _embedded(reads, left_texts, right_texts, relation.source, store)
    return None if units is None else of_pairs(*units, left, right)


def unit_vectors(
    columns: Sequence[VirtualColumn], sides: tuple[str, str], fields: Mapping[Column, Field], source: str, ctx: Context
) -> tuple[Matrix, Matrix] | None:
    """The unit vectors of all rows of both sides, (n, e) and (m, e); None where a side has no text.

    Args:
        columns: the conditions on pairs.
        sides: the tables of both, left and right.
        source: the tables that the rows come from, by which vectors are kept.
    """
    assert ctx.features is not None
    reads = _reads(columns, fields)
    if reads is None:
        return None
    if not set(ctx.duck.columns(sides[0])) >= {c.label for c in reads[0]}:
        reads = reads[1], reads[0]
    left, right = (
        ctx.duck.arrow(f"SELECT {_text(own)} AS t FROM {quote(side)} ORDER BY rowid").column(0).to_pylist()
        for own, side in zip(reads, sides, strict=True)
    )
    return _embedded(reads, left, right, source, ctx.features.store)


def most_similar(left: Matrix, right: Matrix, k: int, *, skip_own: bool = False) -> Indices:
    """(n, k) the numbers of the k rows of `right` whose inner products with each row of `left` are highest, in no order.

    Args:
        left: (n, e).
        right: (m, e).
        k: from 1 to m; below m under `skip_own`.
        skip_own: both are the same rows, and none is its own neighbour.

    >>> most_similar(np.eye(2, dtype=np.float32), np.float32([[0, 1], [1, 0], [-1, 0]]), 1).tolist()
    [[1], [0]]
    """
    out = np.empty((len(left), k), np.int64)
    step = max(1, PRODUCTS_AT_ONCE // max(1, len(right)))
    for start in range(0, len(left), step):
        products = left[start : start + step] @ right.T
        if skip_own:
            own = np.arange(len(products))
            products[own, start + own] = -np.inf
        out[start : start + step] = products.argpartition(len(right) - k, axis=1)[:, len(right) - k :]
    return out


def _reads(
    columns: Sequence[VirtualColumn], fields: Mapping[Column, Field]
) -> tuple[list[Column], list[Column]] | None:
    """The columns with text of both tables; None where one has none."""
    reads = dict.fromkeys(c for column in columns for c in column.inputs if _is_text(c, fields))
    tables = list(dict.fromkeys(c.table for c in reads))
    if len(tables) != 2:
        return None
    return [c for c in reads if c.table == tables[0]], [c for c in reads if c.table == tables[1]]


def _embedded(
    reads: tuple[list[Column], list[Column]],
    left: list[str],
    right: list[str],
    source: str,
    store: FeatureStore,
) -> tuple[Matrix, Matrix] | None:
    """The unit vectors of the texts of both sides, embedded together, each distinct one once."""
    key = f"{source}: {', '.join(c.label for side in reads for c in side)}"
    both = store.table([*left, *right], key).matrix
    if both.shape[1] == 0:
        return None
    unit = both / np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    return unit[: len(left)], unit[len(left) :]


def cosines(u: Matrix, v: Matrix, first: Indices, second: Indices) -> Floats:
    """(pairs,) the cosines of rows of u with rows of v.

    Args:
        u, v: (n, e) and (m, e) unit vectors.
        first, second: (pairs,) rows of u and of v.
    """
    out = np.empty(len(first))
    for start in range(0, len(first), SLICE):
        some = slice(start, start + SLICE)
        out[some] = (u[first[some]] * v[second[some]]).sum(axis=1)
    return out


def of_pairs(u: Matrix, v: Matrix, first: Indices, second: Indices) -> tuple[NDArray[np.float32], Floats]:
    """(pairs, d) features of pairs and (pairs,) their cosine, standardised.

    Args:
        u, v: (n, e) and (m, e) unit vectors of both sides.
        first, second: (pairs,) the row of each side.
    """
    cosine = cosines(u, v, first, second)
    spread = float(cosine.std())
    near = (cosine - cosine.mean()) / (spread if spread > 1e-9 else np.inf)
    products = u[first, :PRODUCTS] * v[second, :PRODUCTS]
    products = products - products.mean(axis=0)
    size = float(np.sqrt((products**2).sum(axis=1).mean()))
    matrix = np.concatenate([WEIGHT * near[:, None], products / (size if size > 1e-9 else np.inf)], axis=1)
    return np.ascontiguousarray(matrix, dtype=np.float32), near


def _is_text(column: Column, fields: Mapping[Column, Field]) -> bool:
    field = fields.get(column)
    return field is None or field.type != "BLOB"


def _text(columns: Sequence[Column]) -> str:
    """SQL of what columns show, as one text."""
    return f"system.main.concat_ws(system.main.chr(10), {', '.join(f'CAST({quote(c.label)} AS VARCHAR)' for c in columns)})"


def _side(columns: Sequence[Column], relation: Relation) -> tuple[Indices, list[str]]:
    """(pairs,) which of the distinct texts each pair holds, and these texts."""
    texts, codes = np.unique(relation.each(_text(columns)), return_inverse=True)
    return codes.astype(np.int64), [str(t) for t in texts]
