"""sem_join: LEFT, SEMI and ANTI joins on a condition that a model decides, by nested blocks of pairs.

An INNER join is a filter over the pairs, and needs no kernel of its own. Equality conditions come first: DuckDB makes only the
pairs that meet them. Pairs of equal texts are asked once, by the gate. Where the pairs do not fit in the budget, a condition that one
attribute a side decides is answered from that attribute.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from uql.compiler.bound import BoundItem, BoundSelect
from uql.compiler.physical import OuterJoin
from uql.compiler.sql import query_sql, render
from uql.compiler.subqueries import aliases
from uql.compiler.syntax import Column, Number
from uql.kernels import sem_filter
from uql.kernels.attribute import by_attribute
from uql.kernels.base import Context, Relation, need
from uql.kernels.duck import quote
from uql.schema import Field


async def outer_join(join: OuterJoin, columns: tuple[Column, ...], fields: dict[Column, Field], ctx: Context) -> str:
    """The name of a temporary table with the rows of the join. Raises BudgetError (UQL401) where the pairs do not fit.

    A left row with a pair whose answer is unknown counts as matched for ANTI and as unmatched for SEMI: it is never returned for
    an answer that nobody gave; a note says how many such pairs there are.
    """
    left_aliases = set(aliases(join.left))
    left_columns = [c for c in columns if c.table in left_aliases]
    left_query = BoundSelect(tuple(BoundItem(c, c.label, "") for c in left_columns) or _one(), join.left)
    left, _ = ctx.duck.create(_select(left_query))
    right_columns = [c for c in columns if c.table not in left_aliases]
    right_query = BoundSelect(tuple(BoundItem(c, c.label, "") for c in right_columns) or _one(), join.right)
    right, _ = ctx.duck.create(_select(right_query))
    on = ctx.duck.expression(join.pairs) if join.pairs is not None else "true"
    shown = ", ".join(quote(c.label) for c in (*left_columns, *right_columns))
    shown = f", {shown}" if shown else ""
    pairs, n = ctx.duck.create(
        f"SELECT l.rowid AS __l{shown} FROM {quote(left)} AS l JOIN {quote(right)} AS r ON {on} ORDER BY l.rowid, r.rowid"
    )
    relation = Relation(ctx.duck, pairs, n, fields)
    for column in (c for stage in join.stages for c in stage.columns):
        await by_attribute(column, relation, ctx)
    if not ctx.fits(n * len(join.stages)):
        need(ctx, relation.calls(join.stages), f"a {join.kind} JOIN over {n:,} pairs")
    rids = np.arange(n, dtype=np.int64)
    truth = await sem_filter.every(join.formula, join.stages, rids, relation, ctx)
    unknown = int((~truth.yes & ~truth.no).sum())
    if unknown:
        ctx.exact = False
        ctx.notes.append(f"{unknown:,} of {n:,} pairs gave no answer")
    flags = pa.table({"__rid": rids, "__yes": truth.yes, "__maybe": ~truth.no})
    matched = f"SELECT p.* EXCLUDE (__l), p.__l FROM __flags f JOIN {quote(pairs)} p ON p.rowid = f.__rid WHERE f.__yes"
    if join.kind == "SEMI":
        sql = f"SELECT * FROM {quote(left)} WHERE rowid IN (SELECT __l FROM ({matched})) ORDER BY rowid"
    elif join.kind == "ANTI":
        maybe = f"SELECT p.__l FROM __flags f JOIN {quote(pairs)} p ON p.rowid = f.__rid WHERE f.__maybe"
        sql = f"SELECT * FROM {quote(left)} WHERE rowid NOT IN ({maybe}) ORDER BY rowid"
    else:
        right_names = "".join(f", m.{quote(c.label)}" for c in right_columns)
        left_names = ", ".join(f"l.{quote(c.label)}" for c in left_columns) or "1 AS __one"
        sql = (
            f"SELECT {left_names}{right_names} FROM {quote(left)} l LEFT JOIN ({matched}) m ON m.__l = l.rowid "
            "ORDER BY l.rowid"
        )
    name, _ = ctx.duck.create(sql, {"__flags": flags})
    return name


def _one() -> tuple[BoundItem, ...]:
    return (BoundItem(Number("1"), "__one", "INTEGER"),)


def _select(query: BoundSelect) -> str:
    return render(query_sql(query))
