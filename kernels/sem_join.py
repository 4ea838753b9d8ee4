"""sem_join: joins on a condition that a model decides, by nested blocks of pairs.

A mere INNER join is a filter over the pairs, and needs no kernel of its own. Equality conditions come first: DuckDB makes only the
pairs that meet them. Pairs of equal texts are asked once, by the gate. Where the pairs do not fit in the budget, a condition that one
attribute a side decides is answered from that attribute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from uql.base.schema import Field
from uql.compiler.bound import BoundItem, BoundSelect, BoundSource
from uql.compiler.join_plans import aliases_in
from uql.compiler.physical import OuterJoin, SemFilter
from uql.compiler.sql import query_sql
from uql.compiler.syntax import Column, Expr, Number
from uql.kernels import sem_classify, sem_filter, video_moments
from uql.kernels.asking import open_calls
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.pair_conditions.attribute import by_attribute, prefer, preferred
from uql.kernels.pair_features import MOST_PAIRS
from uql.kernels.pair_pool import whole_pairs
from uql.kernels.relation import Relation


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs that were asked: their relation, and which of them pass."""

    relation: Relation
    truth: sem_filter.Truth

    @property
    def flags(self) -> pa.Table:
        """(pairs,) as an Arrow table: __rid, __yes, and __maybe where the answer is yes or unknown."""
        rids = np.arange(self.relation.n, dtype=np.int64)
        return pa.table({"__rid": rids, "__yes": self.truth.yes, "__maybe": ~self.truth.no})

    @property
    def unknown(self) -> int:
        return int((~self.truth.yes & ~self.truth.no).sum())

    @property
    def exact(self) -> bool:
        """Has every pair an answer of its own, none told from an attribute of its rows or by a small model?"""
        return not self.unknown and not self.relation.doubtful


@dataclass(frozen=True, slots=True)
class Joined:
    """The rows of a join: the name of their temporary table, and whether every pair of it was asked and answered."""

    table: str
    exact: bool


async def outer_join(join: OuterJoin, columns: tuple[Column, ...], fields: dict[Column, Field], ctx: Context) -> Joined:
    """The rows of the join as a temporary table. Raises BudgetError (UQL401) where the pairs do not fit.

    A left row with a pair whose answer is unknown counts as matched for ANTI and as unmatched for all others: it is never returned
    for a missing answer; a note says how many such pairs there are.

    Args:
        columns: that the block reads, of both sides.
    """
    left_side, left_columns = await _side(join.left, join.left_where, columns, fields, ctx)
    right_side, right_columns = await _side(join.right, join.right_where, columns, fields, ctx)
    left, right = left_side.table, right_side.table
    on = ctx.duck.expression(join.pairs) if join.pairs is not None else "true"
    sizes = [int(ctx.duck.scalar(f"SELECT system.main.count(*) FROM {quote(side)}")) for side in (left, right)]
    if sizes[0] * sizes[1] > MOST_PAIRS:
        both = f"{quote(left)} AS l JOIN {quote(right)} AS r ON {on}"
        of_all = join.pairs is None
        n = sizes[0] * sizes[1] if of_all else int(ctx.duck.scalar(f"SELECT system.main.count(*) FROM {both}"))
        whole_pairs(n, sum(sizes), len(join.stages), f"{join.kind} JOIN", ctx)
    select_list = "".join(f", {quote(c.label)}" for c in (*left_columns, *right_columns))
    name, n = ctx.duck.create(
        f"SELECT l.rowid AS __l, r.rowid AS __r{select_list} FROM {quote(left)} AS l JOIN {quote(right)} AS r ON {on} "
        "ORDER BY l.rowid, r.rowid"
    )
    source = f"{join.kind} join"
    pairs = await ask_pairs(
        Relation(ctx.duck, name, n, fields, source), SemFilter(join.formula, join.stages), join.kind, ctx
    )
    matched = f"(SELECT p.* FROM __flags f JOIN {quote(name)} p ON p.rowid = f.__rid WHERE f.__yes)"
    maybe = f"(SELECT p.__l FROM __flags f JOIN {quote(name)} p ON p.rowid = f.__rid WHERE f.__maybe)"
    listed = ", ".join(
        f"{side}.{quote(c.label)}" for side, own in (("l", left_columns), ("r", right_columns)) for c in own
    )
    match join.kind:
        case "SEMI":
            sql = f"SELECT * FROM {quote(left)} WHERE rowid IN (SELECT __l FROM {matched}) ORDER BY rowid"
        case "ANTI":
            sql = f"SELECT * FROM {quote(left)} WHERE rowid NOT IN {maybe} ORDER BY rowid"
        case "INNER" | "CROSS":
            sql = f"SELECT {'* EXCLUDE (__l, __r)' if select_list else '1 AS __one'} FROM {matched} ORDER BY __l, __r"
        case kind:
            sql = (
                f"SELECT {listed or '1 AS __one'} FROM {quote(left)} l {'JOIN' if kind == 'RIGHT' else 'LEFT JOIN'} {matched} m "
                f"ON m.__l = l.rowid {kind} JOIN {quote(right)} r ON r.rowid = m.__r ORDER BY l.rowid NULLS LAST, r.rowid"
            )
    table, _ = ctx.duck.create(sql, {"__flags": pairs.flags})
    return Joined(table, left_side.exact and right_side.exact and pairs.exact)


async def ask_pairs(relation: Relation, where: SemFilter, what: str, ctx: Context) -> Pairs:
    """Asks a condition of all these pairs.

    Args:
        where: the condition; without a formula all of them pass.
        what: the join or sub-query, in the words of an error.
    Raises: BudgetError (UQL401) where they do not fit.
    """
    n, stages = relation.n, where.stages
    columns = [c for stage in stages for c in stage.columns]
    await video_moments.take(stages, relation, ctx)
    sem_classify.label_queries(columns, relation)
    await prefer(columns, relation, ctx)
    for column in columns:
        if not await preferred(column, ctx):
            await by_attribute(column, relation, ctx)
    if not ctx.purse.fits(n * len(stages)):
        calls = await open_calls(stages, relation, ctx)
        ctx.purse.need(calls, f"{what} JOIN over {n:,} pairs", "fewer pairs by an equality beside the text")
    rids = np.arange(n, dtype=np.int64)
    pairs = Pairs(relation, await sem_filter.every(where, rids, relation, ctx))
    if pairs.unknown:
        ctx.notes.append(f"{pairs.unknown:,} of {n:,} pairs gave no answer")
    return pairs


async def _side(
    side: BoundSource | OuterJoin,
    where: Expr | None,
    columns: tuple[Column, ...],
    fields: dict[Column, Field],
    ctx: Context,
) -> tuple[Joined, list[Column]]:
    """The rows of one side as a temporary table with columns "alias.name", and the columns it has."""
    own = [c for c in columns if c.table in aliases_in(side)]
    if isinstance(side, OuterJoin):
        joined = await outer_join(side, columns, fields, ctx)
        if side.kind in ("SEMI", "ANTI"):
            own = [c for c in own if c.table in aliases_in(side.left)]
        return joined, own
    items = tuple(BoundItem(c, c.label, "") for c in own) or (BoundItem(Number("1"), "__one", "INTEGER"),)
    with ctx.duck.users_orders():
        table, _ = ctx.duck.create(query_sql(BoundSelect(items, side, where=where)))
    return Joined(table, True), own
