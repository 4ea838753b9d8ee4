"""Aggregates that are not sums: what DuckDB makes of the rows that were asked and answered, said to be no more than that.

A median, a list or a largest date has no estimate from a sample. Where rows are left out, MIN and MAX are "at most" and "at least" the
value found; anything else stands with open ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

import numpy as np

from uql.compiler.physical import Block
from uql.compiler.sql import expression, flat_column, null_virtual
from uql.compiler.syntax import Call, Star
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import is_semantic
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote, sub_query
from uql.kernels.estimates.exact import exactly, number, numbers
from uql.kernels.estimates.sample import Sampled
from uql.kernels.relation import Relation
from uql.sampling.base import Estimate, Indices

ESTIMATED = frozenset({"count", "sum", "avg", "mean"})
ONE_SIDED = frozenset({"min", "max"})
NUMBER = re.compile(
    r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BIGNUM|BOOLEAN|DOUBLE|FLOAT|REAL|(DECIMAL|NUMERIC).*", re.IGNORECASE
)


def unsampled(calls: Sequence[Call], relation: Relation, ctx: Context) -> frozenset[Call]:
    """The aggregates that no sampler estimates: other functions, those of distinct values but COUNT, and those of no numbers.

    Args:
        calls: the aggregates of the query.
    """
    others = {c for c in calls if c.name not in ESTIMATED | ONE_SIDED or (c.distinct and c.name != "count")}
    others |= {c for c in calls if c.name in ONE_SIDED and len(c.args) > 1}  # max(x, 3): the three largest, as a list
    open_ = [c for c in calls if c not in others and c.name != "count" and not isinstance(c.args[0], Star)]
    if open_:
        arguments = [expression(c.args[0], flat_column, null_virtual, sub_query) for c in open_]
        types = ctx.duck.types(f"SELECT {', '.join(arguments)} FROM {quote(relation.name)}")
        others |= {c for c, type in zip(open_, types, strict=True) if not NUMBER.fullmatch(type) and type != '"NULL"'}
    return frozenset(others)


def of_all_rows(block: Block, calls: Sequence[Call], codes: Indices | None, relation: Relation) -> frozenset[Call]:
    """The aggregates that need no model: where no text chooses rows or makes groups, DuckDB knows them of all rows.

    Args:
        codes: (N,) the group of every row, where DuckDB tells it.
    """
    if (
        block.filter.formula is not None
        or relation.derives
        or block.aggregate.sets
        or (block.aggregate.keys and codes is None)
    ):
        return frozenset()
    return frozenset(call for call in calls if not is_semantic(call))


def is_bound(call: Call) -> bool:
    """Is what the rows seen say of it a bound: is it MIN or MAX of one value?"""
    return call.name in ONE_SIDED and len(call.args) == 1


def of_parts(
    calls: dict[Call, str],
    parts: Sequence[Rids],
    grouped: bool,
    columns: Sequence[VirtualColumn],
    relation: Relation,
    ctx: Context,
) -> str:
    """The aggregates of the rows of each part.

    Args:
        calls: with the names of their columns.
        parts: the rows that pass, of each group.
        grouped: False: there is one part, and it has a value without rows too.
    Returns: the name of a temporary table of __part, the number of the part, and a column for each of them.
    """
    number = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])
    rids = np.concatenate([*parts, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    joined, arrays = relation.joined(rids, columns, __part=number)
    values = ", ".join(f"{ctx.duck.expression(call)} AS {name}" for call, name in calls.items())
    part, group_by = ("__part", " GROUP BY __part") if grouped else ("0 AS __part", "")
    table, _ = ctx.duck.create(f"SELECT {part}, {values} FROM {joined}{group_by}", arrays)
    return table


def of_table(block: Block, calls: dict[Call, str], relation: Relation, ctx: Context) -> tuple[str, Indices | None]:
    """The aggregates of all rows of the table that a relation is the first stage of, and the rows of each group.

    Args:
        block: its keys are expressions that DuckDB knows.
        calls: with the names of their columns.
    Returns: the name of a temporary table of __part and a column for each of them; (G,) rows by __part, None without groups.
    """
    assert relation.stage is not None
    keys = [f"{ctx.duck.expression(key.expr)} AS __k{i}" for i, key in enumerate(block.aggregate.keys)]
    values = [f"{ctx.duck.expression(call)} AS {name}" for call, name in calls.items()]
    listed, rows = ", ".join([*keys, "system.main.count(*) AS __size", *values]), f"({relation.stage.rows}) AS r"
    if not keys:
        return ctx.duck.create(f"SELECT 0 AS __part, {listed} FROM {rows}")[0], None
    names = [f"__k{i}" for i in range(len(keys))]
    places = ", ".join(str(i) for i in range(1, len(keys) + 1))
    every, n_groups = ctx.duck.create(f"SELECT {listed} FROM {rows} GROUP BY {places}")
    codes = f"SELECT DISTINCT {', '.join(keys)} FROM {quote(relation.name)}"
    same = " AND ".join(f"c.{name} IS NOT DISTINCT FROM t.{name}" for name in names)
    table, n_present = ctx.duck.create(
        f"SELECT c.__part, t.* EXCLUDE ({', '.join(names)}) FROM {quote(every)} AS t JOIN "
        f"(SELECT *, system.main.row_number() OVER (ORDER BY {', '.join(names)}) - 1 AS __part FROM ({codes})) AS c ON {same}"
    )
    if n_groups > n_present:
        few = f"{n_groups - n_present:,} of {n_groups:,} groups have no row among the {relation.n:,} random ones"
        ctx.notes.append(f"{few} and are not shown")
    sizes = ctx.duck.arrow(f"SELECT __size FROM {quote(table)} ORDER BY __part").column(0).to_numpy()
    return table, sizes.astype(np.int64)


def values_of(table: str, name: str, parts: Sequence[object], ctx: Context) -> list[object]:
    """A column of `of_parts`, part by part; None for a part without rows.

    Args:
        table: that `of_parts` made.
        parts: as many as there are.
    Returns: one value a part.
    """
    rows = ctx.duck.arrow(f"SELECT __part, {name} FROM {quote(table)}")
    values = dict(zip(rows.column(0).to_pylist(), numbers(rows.column(1)), strict=True))
    return [values.get(part) for part in range(len(parts))]


def bounds_from_sample(
    call: Call, values: Sequence[object], unknown: Sequence[int], sampled: Sampled, confidence: float
) -> list[Estimate]:
    """What is known of an aggregate by the rows seen of each group; a value that is not a number has no bounds.

    Args:
        values: what DuckDB made of the rows of each group.
        unknown: rows asked of which it is not known what they add, of each group.
    """
    sample_size = len(sampled.labelled)
    return [
        exactly(value, confidence, sample_size)
        if sampled.every and not open_
        else _of(call, value, confidence, sample_size, open_)
        for value, open_ in zip(values, unknown, strict=True)
    ]


def _of(call: Call, value: object, confidence: float, calls: int, unknown: int) -> Estimate:
    seen, method = number(value), "seen"
    low: float | None = -inf
    high: float | None = inf
    if value is None:
        method = "nothing seen"
    elif is_bound(call):
        method = "at least" if call.name == "max" else "at most"
        low, high = (seen, inf) if call.name == "max" else (-inf, seen)
    if value is not None and seen is None:
        low = high = None
    return Estimate(seen, low, high, confidence, False, calls, unknown, method)
