"""Candidates of a join by a text where the product of its sides is large: a pool of pairs stands for all of them.

A pair is a number, i · M + j for row i of the left side and row j of the right side, which has M rows. The product is never built: DuckDB
applies the conditions on one side before pairs are made, and those on both sides to the pairs that are drawn. The pool holds each row
with those nearest to it in meaning, and random pairs of all others. A search finds matches among the near ones. An estimate stands for
all pairs, as the near ones and the others are strata of known sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uql.base.errors import BudgetError
from uql.base.schema import Field
from uql.compiler.bound import BoundItem, BoundJoin, BoundSelect, BoundSource
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.joins import is_inner
from uql.compiler.physical import Block, Goal
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import aliases, derived, in_expressions, outer_columns, visible_aliases
from uql.compiler.syntax import Column, Expr, Number
from uql.compiler.walk import columns
from uql.kernels.base import Context
from uql.kernels.duck import Duck, content_of, quote
from uql.kernels.pair_features import MOST_PAIRS, cosines, most_similar, unit_vectors
from uql.kernels.relation import Pool, Relation
from uql.kernels.row_order import settled
from uql.sampling.base import Indices

RANDOM = 50_000  # random pairs of a pool, and at least twice the budget
MOST_WHOLE = 10_000_000  # pairs that are all candidates, at some 80 bytes each
FLAT = 1_000_000_000  # pairs; beyond, and where faiss is installed, the nearest rows are looked for in the nearest clusters alone
PROBED = 12  # clusters in which the rows nearest to a row are looked for
CUTS = (1 / 64, 1 / 16, 1 / 4)  # of the near pairs, the nearest first: where their strata end


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of the FROM clause of a condition on pairs.

    Attributes:
        queries: SQL of each side, with columns "alias.name".
        between: the conditions on rows of both.
    """

    queries: tuple[str, str]
    between: Expr | None

    def sizes(self, duck: Duck) -> tuple[int, int]:
        """The rows of each side."""
        left, right = (int(duck.scalar(f"SELECT system.main.count(*) FROM ({sql})")) for sql in self.queries)
        return left, right


def sides_of(block: Block) -> Sides | None:
    """The sides of a block with conditions on the rows of the same two tables; None of another, and where sub-queries read its rows."""
    pairs = [c for c in block.filter.columns if c.is_pair_condition]
    tables = {frozenset(c.table for c in column.inputs) for column in pairs}
    if len(tables) != 1 or block.inner.correlated or block.inner.repeated or block.scan.join is not None:
        return None
    parts, terms = _parts(block.scan.source)
    terms += conjuncts(block.scan.where)
    if any(True for part in parts for d in derived(part) for _ in outer_columns(d.query)):
        return None
    hidden = [t for t in terms if any(True for _ in in_expressions(t))]
    both = next(iter(tables))
    groups = [{alias} for alias in aliases(block.scan.source) if alias in both]
    if len(groups) != 2:
        return None
    sources: list[list[BoundSource]] = [[], []]
    open_ = list(parts)
    while open_:  # a table goes to the side that a condition joins it with
        part = next((p for p in open_ if _home(p, groups, terms) is not None), open_[0])
        side = _home(part, groups, terms) or 0
        open_.remove(part)
        sources[side].append(part)
        groups[side] |= set(visible_aliases(part))
    if not all(sources):
        return None
    own = [[t for t in terms if t not in hidden and {c.table for c in columns(t)} <= group] for group in groups]
    between = [t for t in terms if t not in own[0] and t not in own[1]]
    if any(True for t in hidden for b in in_expressions(t) for _ in outer_columns(b.query)):
        return None
    needed = dict.fromkeys([*block.scan.columns, *columns(*between)])
    queries = []
    for group, own_parts, own_terms in zip(groups, sources, own, strict=True):
        source = own_parts[0]
        for part in own_parts[1:]:
            source = BoundJoin("CROSS", source, part)
        items = tuple(BoundItem(c, c.label, "") for c in needed if c.table in group)
        items = items or (BoundItem(Number("1"), "__one", "INTEGER"),)
        queries.append(query_sql(BoundSelect(items, source, where=conjunction(own_terms))))
    return Sides((queries[0], queries[1]), conjunction(between))


def _parts(source: BoundSource | None) -> tuple[list[BoundSource], list[Expr]]:
    """What inner joins combine, and their conditions."""
    if isinstance(source, BoundJoin) and is_inner(source):
        (left, first), (right, second) = _parts(source.left), _parts(source.right)
        return left + right, first + second + conjuncts(source.on)
    return ([] if source is None else [source]), []


def _home(part: BoundSource, groups: Sequence[set[str]], terms: Sequence[Expr]) -> int | None:
    """The side that a table belongs to: its own, or the one that a condition joins it with; None where neither tells yet."""
    own = set(aliases(part))
    read = [{c.table for c in columns(term)} for term in terms]
    joined = [any(one <= own | group and one & own and one & group for one in read) for group in groups]
    is_own = [bool(own & group) for group in groups]
    return next((side for side, is_home in enumerate(is_own if any(is_own) else joined) if is_home), None)


def whole_pairs(pairs: int, rows: int, stages: int, what: str, ctx: Context) -> None:
    """Checks that all pairs may be candidates: they fit in the budget, or in memory where an attribute of each row may decide them.

    Args:
        pairs: their number.
        rows: of both sides.
        stages: requests a pair.
        what: the join, in the words of an error.
    Raises: BudgetError (UQL401).
    """
    less = "an equality beside the text, or plain conditions on each side, make fewer pairs"
    if pairs > MOST_PAIRS and not ctx.purse.fits(rows):
        ctx.purse.need(pairs * stages, f"{what} over {pairs:,} pairs", less)
    if pairs > MOST_WHOLE:
        raise BudgetError(f"{what} reads each of {pairs:,} pairs: {MOST_WHOLE:,} at most", help=less)


def large_sides(block: Block, duck: Duck) -> Sides | None:
    """The sides of a block whose product has more than MOST_PAIRS rows; None of another."""
    sides = sides_of(block)
    if sides is None:
        return None
    left, right = sides.sizes(duck)
    if left * right <= MOST_PAIRS:
        return None
    one, other = (settled(sql, duck) for sql in sides.queries)
    return replace(sides, queries=(one, other))


def pooled(sides: Sides, block: Block, fields: dict[Column, Field], ctx: Context) -> Relation | None:
    """The pool of a block as its candidates; None where all pairs are candidates.

    Args:
        sides: of the block.
        fields: of its columns.
    Raises: BudgetError (UQL401) where all pairs are needed, and they are too many.
    """
    with ctx.duck.users_orders():
        (left, n), (right, m) = (ctx.duck.create(sql) for sql in sides.queries)
    between = ctx.duck.expression(sides.between) if sides.between is not None else None
    joined = f"{quote(left)} AS l JOIN {quote(right)} AS r ON {between}"
    total = int(ctx.duck.scalar(f"SELECT system.main.count(*) FROM {joined}")) if between else n * m
    first = block.filter.goal is Goal.FIRST
    fits = ctx.purse.fits(total * len(block.filter.stages))
    if total <= MOST_PAIRS or ((fits or ctx.purse.fits(n + m)) and total <= MOST_WHOLE):
        return None  # all can be asked, or an attribute of each row can be
    if fits and not first:
        whole_pairs(total, n + m, len(block.filter.stages), "a JOIN by a text", ctx)
    if first and block.order.keys:
        return _ordered(block, fields, total, ctx)
    budget = ctx.purse.remaining or 0
    rng = np.random.default_rng([ctx.settings.seed, total])
    conditions = [c for c in block.filter.columns if c.is_pair_condition]
    units = None if ctx.features is None else unit_vectors(conditions, (left, right), fields, block.scan.tables, ctx)
    near = np.zeros(0, dtype=np.int64)
    if units is not None:
        near = _near(units, m)
        near = near if between is None else _matching_pairs(near, m, (left, right), between, ctx.duck)
        cosine = cosines(*units, near // m, near % m)
        near = near[np.lexsort((near, -cosine))][:MOST_PAIRS]
    n_random = max(RANDOM, 2 * budget)
    wanted = n_random + n_random // 2
    draws = wanted * n * m // total  # of the product, of which about `wanted` meet the conditions
    is_small, is_sparse = total <= 4 * (len(near) + n_random), draws > MOST_WHOLE
    if between is not None and (is_small or is_sparse):
        sql = (
            f"SELECT l.rowid * {m} + r.rowid AS p FROM {joined} ORDER BY system.main.hash(l.rowid * {m} + r.rowid + "
            f"{int(rng.integers(2**31))}), p LIMIT {n_random + len(near)}"
        )
        matches = np.asarray(ctx.duck.arrow(sql).column(0).to_numpy(), dtype=np.int64)
        far = matches[~np.isin(matches, near)][:n_random]
    elif is_small:
        is_far = np.ones(total, dtype=bool)
        is_far[near] = False
        far = np.flatnonzero(is_far)
    else:
        drawn = np.unique(rng.integers(n * m, size=draws))
        drawn = drawn if between is None else np.sort(_matching_pairs(drawn, m, (left, right), between, ctx.duck))
        far = np.setdiff1d(drawn, near, assume_unique=True)
    far = rng.permutation(far)[:n_random]
    numbers = np.concatenate([near, far])
    ends = np.unique([0, *(int(cut * len(near)) for cut in CUTS), len(near)])
    sizes = np.append(np.diff(ends), total - len(near)).astype(np.int64)
    strata = np.repeat(np.arange(len(sizes)), [*sizes[:-1], len(far)]).astype(np.int64)
    pool = Pool(total, numbers // m, numbers % m, strata, sizes, units)
    name, pairs = _table(pool, (left, right), ctx.duck)
    return Relation(ctx.duck, name, pairs, fields, block.scan.tables, pool)


def _ordered(block: Block, fields: dict[Column, Field], total: int, ctx: Context) -> Relation:
    """The first pairs in the order of ORDER BY, in which LIMIT asks them."""
    items = tuple(BoundItem(c, c.label, "") for c in block.scan.columns)
    query = BoundSelect(
        items,
        block.scan.source,
        where=block.scan.where,
        order_by=block.order.keys,
        limit=max(RANDOM, 2 * (ctx.purse.remaining or 0)),
    )
    name, n = ctx.duck.create(query_sql(query))
    numbers, sizes = np.zeros(n, dtype=np.int64), np.array([total], dtype=np.int64)
    return Relation(ctx.duck, name, n, fields, block.scan.tables, Pool(total, numbers, numbers, numbers, sizes, None))


def content(sides: Sides, duck: Duck) -> int:
    """A hash of the rows of both sides."""
    parts = [duck.scalar(content_of(sql)) for sql in sides.queries]
    return hash(tuple(int(part or 0) for part in parts)) & (2**63 - 1)


def _table(pool: Pool, sides: tuple[str, str], duck: Duck) -> tuple[str, int]:
    """The pairs of a pool with the columns of both sides, in its order."""
    numbers = pa.table({"__p": np.arange(len(pool.left)), "__l": pool.left, "__r": pool.right})
    return duck.create(
        f"SELECT l.*, r.* FROM __pool p JOIN {quote(sides[0])} AS l ON l.rowid = p.__l "
        f"JOIN {quote(sides[1])} AS r ON r.rowid = p.__r ORDER BY p.__p",
        {"__pool": numbers},
    )


def _matching_pairs(pairs: Indices, m: int, sides: tuple[str, str], between: str, duck: Duck) -> Indices:
    """The pairs that meet the conditions on both sides."""
    numbers = pa.table({"__n": pairs, "__l": pairs // m, "__r": pairs % m})
    table = duck.arrow(
        f"SELECT p.__n FROM __pool p JOIN {quote(sides[0])} AS l ON l.rowid = p.__l "
        f"JOIN {quote(sides[1])} AS r ON r.rowid = p.__r WHERE {between}",
        {"__pool": numbers},
    )
    return np.asarray(table.column(0).to_numpy(), dtype=np.int64)


def _near(units: tuple[NDArray[np.float32], NDArray[np.float32]], m: int) -> Indices:
    """The pairs of each left row with the right rows nearest to it, as numbers: about MOST_PAIRS in all, one a row at least."""
    left, right = units
    k = min(m, max(1, MOST_PAIRS // len(left)))
    if len(left) * m > FLAT and find_spec("faiss") is not None:
        neighbours = _near_in_cells(left, right, k)
    else:
        neighbours = most_similar(left, right, k)
    rows = np.repeat(np.arange(len(left), dtype=np.int64), k)
    nearest: Indices = neighbours.ravel()
    return (rows * m + nearest)[nearest >= 0]


def _near_in_cells(left: NDArray[np.float32], right: NDArray[np.float32], k: int) -> Indices:
    """(n, k) the right rows nearest to each left one, looked for in the PROBED clusters nearest to it; -1 where these hold fewer."""
    import faiss

    cells = int(np.sqrt(len(right))) * 2
    flat = faiss.IndexFlatIP(right.shape[1])
    index: Any = faiss.IndexIVFFlat(flat, right.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.nprobe = 8, PROBED
    index.train(right[:: max(1, len(right) // (40 * cells))])
    index.add(right)
    neighbours: Indices = index.search(left, k)[1]
    return neighbours
