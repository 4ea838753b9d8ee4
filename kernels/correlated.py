"""Sub-queries with quoted texts that read columns of the query around them: EXISTS, IN and values, one for each row.

The sub-query's rows are paired with the rows around it by its concrete terms, the pairs are asked, and those that pass are a table.
Over this table the sub-query holds nothing semantic any more: DuckDB answers it for every row, with the meaning it has in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from uql.compiler.bound import Bound, BoundItem, BoundSelect, BoundTable
from uql.compiler.join_plans import aliases_in
from uql.compiler.physical import Correlated
from uql.compiler.sql import expression, flat_column, flat_virtual, query_sql, render
from uql.compiler.syntax import (
    Binary,
    Column,
    Exists,
    Expr,
    InQuery,
    Node,
    Number,
    Quantified,
    Query,
    ScalarQuery,
    Unary,
)
from uql.compiler.walk import rewrite, walk
from uql.kernels.base import Context, Relation, need
from uql.kernels.duck import quote, sub_query
from uql.kernels.sem_join import ask_pairs
from uql.schema import Field, Table

ROW, LEFT = "__row", "__l"  # the row around the sub-query, and the same among its pairs


async def answered(
    part: Correlated, exprs: Sequence[Expr], outer: Relation, fields: dict[Column, Field], ctx: Context
) -> tuple[str, dict[Expr, Expr]]:
    """The candidate rows with the values of a sub-query as columns, and what stands for the sub-query in their expressions.

    A row with a pair whose answer is unknown has the value NULL, unless another pair settles it; a note says how many pairs there are.

    Args:
        exprs: the expressions of the block, in which the sub-query stands.
        outer: the candidate rows.
        fields: of the columns around the sub-query and of its own.
    Returns: the name of a temporary table of `outer`'s rows in their order, and the replacements.
    Raises: BudgetError (UQL401) where the pairs do not fit.
    """
    passing, unknown = await _pairs(part, outer, fields, ctx)
    found: dict[Expr, Expr] = {}
    columns: list[str] = []
    for node in dict.fromkeys(n for e in exprs for n in walk(e) if getattr(n, "query", None) == part.part):
        assert isinstance(node, Exists | InQuery | Quantified | ScalarQuery)
        name = f"__sub{len(columns)}_{passing.removeprefix('__uql_')}"
        columns.append(f"{_value(node, part, passing, unknown)} AS {quote(name)}")
        value: Expr = Column("", name)
        found[node] = Unary("NOT", value) if isinstance(node, InQuery) and node.negated else value
    rows = f"(SELECT rowid AS {ROW}, * FROM {quote(outer.name)})"
    made, _ = ctx.duck.create(f"SELECT * EXCLUDE ({ROW}), {', '.join(columns)} FROM {rows} AS __t ORDER BY {ROW}")
    return made, found


def replaced(expr: Any, found: dict[Expr, Expr]) -> Any:
    """The expression with the columns that stand for its sub-queries."""
    if expr is None:
        return None
    return rewrite(
        expr,
        lambda node: found.get(node, node) if isinstance(node, Exists | InQuery | Quantified | ScalarQuery) else node,
    )


def holds(expr: Node, part: Correlated) -> bool:
    """Does the sub-query stand in this expression?"""
    return any(getattr(node, "query", None) == part.part for node in walk(expr))


async def _pairs(
    part: Correlated, outer: Relation, fields: dict[Column, Field], ctx: Context
) -> tuple[str, str | None]:
    """Temporary tables: the pairs that pass with all their columns and values, and the rows with an unknown pair (None: none)."""
    own = set(aliases_in(part.source))
    inside = [c for c in part.columns if c.table in own]
    around = [c for c in part.columns if c.table not in own and c in outer.fields]
    items = tuple(BoundItem(c, c.label, "") for c in inside) or (BoundItem(Number("1"), "__one", "INTEGER"),)
    right, _ = ctx.duck.create(render(query_sql(BoundSelect(items, part.source, where=part.own))))
    on = ctx.duck.expression(part.pairs) if part.pairs is not None else "true"
    left = ", ".join([f"rowid AS {LEFT}", *(quote(c.label) for c in around)])
    name, n = ctx.duck.create(
        f"SELECT l.*, r.* FROM (SELECT {left} FROM {quote(outer.name)}) AS l JOIN {quote(right)} AS r ON {on} "
        f"ORDER BY l.{LEFT}, r.rowid"
    )
    source = ", ".join(dict.fromkeys([outer.source, *sorted(own)]))
    pairs = await ask_pairs(
        Relation(ctx.duck, name, n, fields, source), part.formula, part.stages, "a sub-query as a", ctx
    )
    passing = np.flatnonzero(pairs.truth.yes).astype(np.int64)
    if part.values:
        need(ctx, pairs.relation.calls(part.values, passing), f"a sub-query's values for {len(passing):,} pairs")
    for stage in part.values:
        await pairs.relation.ask(stage, passing, ctx)
    columns = list({c.id: c for stage in (*part.stages, *part.values) for c in stage.columns}.values())
    joined, arrays = pairs.relation.joined(passing, columns)
    values = "".join(f", a.{quote(c.name)}" for c in columns)
    found, _ = ctx.duck.create(f"SELECT r.*{values} FROM {joined} ORDER BY __pos", arrays)
    if not pairs.unknown:
        return found, None
    flags: dict[str, pa.Table] = {"__flags": pairs.flags}
    unknown, _ = ctx.duck.create(
        f"SELECT DISTINCT p.{LEFT} FROM __flags f JOIN {quote(name)} p ON p.rowid = f.__rid WHERE f.__maybe AND NOT f.__yes",
        flags,
    )
    return found, unknown


def _value(
    node: Exists | InQuery | Quantified | ScalarQuery, part: Correlated, passing: str, unknown: str | None
) -> str:
    """SQL of the sub-query's value for one row; of IN without its NOT."""
    same = Binary("=", Column("", LEFT), Column("", ROW))
    over = Bound(_over(part.query, passing, same))

    def inner(query: Query) -> Any:
        return query_sql(over.query, flat_column, flat_virtual) if query == part.part else sub_query(query)

    plain = InQuery(node.operand, node.query) if isinstance(node, InQuery) else node
    value = render(expression(plain, flat_column, flat_virtual, inner))
    if unknown is None:
        return f"({value})"
    open_ = f"EXISTS (SELECT 1 FROM {quote(unknown)} AS __u WHERE __u.{LEFT} = {ROW})"
    if isinstance(node, Quantified | ScalarQuery):
        return f"CASE WHEN {open_} THEN NULL ELSE ({value}) END"
    return f"CASE WHEN ({value}) THEN true WHEN {open_} THEN NULL ELSE ({value}) END"


def _over(query: BoundSelect, passing: str, same: Expr) -> BoundSelect:
    from dataclasses import replace

    return replace(query, source=BoundTable(Table("__p", quote(passing), ()), "__p"), where=same)
