"""The engine: the one place that knows every stage. A bound statement goes in; rows, estimates and what it cost come out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundItem,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundSource,
    BoundTable,
    BoundUnion,
)
from uql.compiler.formula import OPEN, TRUE, Formula, Masks
from uql.compiler.physical import Block, Goal, PhysicalPlan, SqlQuery, UnionPlan
from uql.compiler.planner import term_name, with_sources
from uql.compiler.sql import query_sql, render
from uql.compiler.subqueries import derived, expressions, in_expressions
from uql.compiler.syntax import Column, Expr, Number, OrderKey
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import aggregate_calls, with_queries
from uql.kernels import sem_agg, sem_filter, sem_join
from uql.kernels.aggregate import Groups, aggregate, exactly
from uql.kernels.base import Context, Relation
from uql.kernels.duck import quote
from uql.kernels.finish import Estimates, Output, castable, groups, limit, order_by, rename
from uql.kernels.select import select
from uql.schema import Field, Table

if TYPE_CHECKING:
    import pyarrow as pa


async def execute(plan: PhysicalPlan, ctx: Context) -> Output:
    """Runs a physical plan. Every error of the user's has its place in the text."""
    if isinstance(plan, SqlQuery):
        return _concrete(plan.query, ctx)
    if isinstance(plan, UnionPlan):
        return await _union(plan, ctx)
    assert isinstance(plan, Block)
    return await _block(plan, ctx)


def _concrete(query: BoundQuery, ctx: Context) -> Output:
    """A query with nothing semantic in it: DuckDB's own; its aggregates are exact."""
    table = ctx.duck.arrow(render(query_sql(query)))
    table = rename(table, query.items)
    estimates: Estimates = {}
    if isinstance(query, BoundSelect) and query.aggregated:
        level = ctx.settings.confidence
        for i, item in enumerate(query.items):
            if aggregate_calls(item.expr, ctx.duck.aggregates):
                values = [exactly(v, level, 0) for v in table.column(i).to_pylist()]
                if query.group_by:
                    estimates[item.name] = values
                elif values:
                    estimates[item.name] = values[0]
    return Output(table, None, estimates or None)


async def _union(plan: UnionPlan, ctx: Context) -> Output:
    left, right = await execute(plan.left, ctx), await execute(plan.right, ctx)
    names = [f"c{i}" for i in range(len(plan.items))]
    tables = {"__left": left.table.rename_columns(names), "__right": right.table.rename_columns(names)}
    columns = ", ".join(
        f"CAST({n} AS {item.type}) AS {n}" if castable(item.type) else n
        for n, item in zip(names, plan.items, strict=True)
    )
    both = (
        f"SELECT {columns}, 0 AS __s, row_number() OVER () AS __p FROM __left UNION ALL "
        f"SELECT {columns}, 1, row_number() OVER () FROM __right"
    )
    if not plan.all:
        listed = ", ".join(names)
        both = f"SELECT {listed}, min(__s) AS __s, min(__p) AS __p FROM ({both}) GROUP BY {listed}"
    by_name: dict[Expr, str] = {Column("", item.name): f"c{i}" for i, item in reversed(list(enumerate(plan.items)))}
    keys = order_by(plan.order_by, ctx.duck, "__s, __p", by_name)
    sql = f"SELECT {', '.join(names)} FROM ({both}) ORDER BY {keys}" + limit(plan.limit, plan.offset)
    return Output(rename(ctx.duck.arrow(sql, tables), plan.items))


async def _block(block: Block, ctx: Context) -> Output:
    block = await _run_inner(block, ctx)
    relation = await _candidates(block, ctx)
    await _labels(block, relation, ctx)
    names = {leaf.expr: term_name(block, leaf) for leaf in block.formula.leaves} if block.formula is not None else {}
    relation.seen.update({expr: ctx.rates[name] for expr, name in names.items() if name in ctx.rates})
    try:
        return await _rows(block, relation, ctx)
    finally:
        ctx.rates.update({name: relation.seen[expr] for expr, name in names.items() if expr in relation.seen})


async def _rows(block: Block, relation: Relation, ctx: Context) -> Output:
    if not block.aggregated:
        return await select(block, relation, ctx)
    found = await aggregate(block, relation, ctx)
    if block.summaries:
        await _summaries(block, found, relation, ctx)
    return groups(block, found, ctx)


# ------------------------------------------------------------------------------------------------- queries in the block
async def _run_inner(block: Block, ctx: Context) -> Block:
    """The block with its semantic sub-queries run and replaced by the temporary tables that hold their rows."""
    change: dict[str, BoundSource] = {}
    for alias, plan in block.derived:
        output = await execute(plan, ctx)
        change[alias] = BoundTable(_stored(output.table, alias, ctx), alias)
    source, outer = block.source, block.outer_join
    if change:
        source = with_sources(source, change) if source is not None else None
        if outer is not None:
            outer = replace(outer, left=with_sources(outer.left, change), right=with_sources(outer.right, change))
    block = replace(block, source=source, outer_join=outer, derived=())
    if not block.nested:
        return block
    swap: dict[int, Bound] = {}
    for part, plan in block.nested:
        output = await execute(plan, ctx)
        table = _stored(output.table, "sub", ctx)
        items = tuple(BoundItem(Column("sub", f.name), f.name, f.type) for f in table.fields)
        swap[id(part)] = Bound(BoundSelect(items, BoundTable(table, "sub")))

    def changed(expr: Expr | None) -> Any:
        return None if expr is None else with_queries(expr, swap)

    formula = block.formula
    if formula is not None:
        formula = Formula(tuple(replace(leaf, expr=changed(leaf.expr)) for leaf in formula.leaves), formula.program)
    return replace(
        block,
        nested=(),
        pushed=changed(block.pushed),
        formula=formula,
        items=tuple(replace(i, expr=changed(i.expr)) for i in block.items),
        keys=tuple(replace(k, expr=changed(k.expr)) for k in block.keys),
        having=changed(block.having),
        order_by=tuple(replace(k, expr=changed(k.expr)) for k in block.order_by),
    )


def _stored(table: pa.Table, alias: str, ctx: Context) -> Table:
    """The rows of a sub-query as a temporary table. Column names that repeat get a number."""
    names: list[str] = []
    for name in table.column_names:
        names.append(name if name not in names else f"{name}_{len(names)}")
    name, n = ctx.duck.create("SELECT * FROM __rows", {"__rows": table.rename_columns(names)})
    described = ctx.duck.arrow(f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{name}'")
    types = dict(zip(described.column(0).to_pylist(), described.column(1).to_pylist(), strict=True))
    return Table(alias, quote(name), tuple(Field(c, types[c]) for c in names), n)


async def _candidates(block: Block, ctx: Context) -> Relation:
    """The rows that DuckDB leaves for the model, materialised: one SQL text."""
    fields = fields_of(block)
    if block.outer_join is not None:
        joined = await sem_join.outer_join(block.outer_join, block.columns, fields, ctx)
        where = f" WHERE {ctx.duck.expression(block.pushed)}" if block.pushed is not None else ""
        name, n = ctx.duck.create(f"SELECT * FROM {quote(joined)}{where} ORDER BY rowid")
        return Relation(ctx.duck, name, n, fields, f"{block.outer_join.kind} join")
    items = tuple(BoundItem(c, c.label, "") for c in block.columns) or (BoundItem(Number("1"), "__one", "INTEGER"),)
    keys: tuple[OrderKey, ...] = ()
    if block.goal is Goal.FIRST:  # asked in this order up to the k-th certain yes
        keys = block.order_by
    sql = render(query_sql(BoundSelect(items, block.source, where=block.pushed, order_by=keys)))
    name, n = ctx.duck.create(sql)
    tables = (leaf.table.name if isinstance(leaf, BoundTable) else leaf.alias for leaf in _leaves(block.source))
    return Relation(ctx.duck, name, n, fields, ", ".join(dict.fromkeys(tables)))


def fields_of(block: Block) -> dict[Column, Field]:
    """The columns that a block may read, by alias and name."""
    sources = (block.outer_join.left, block.outer_join.right) if block.outer_join else (block.source,)
    found: dict[Column, Field] = {}
    for source in sources:
        for leaf in _leaves(source):
            fields = leaf.table.fields if isinstance(leaf, BoundTable) else leaf.fields
            found.update({Column(leaf.alias, f.name): f for f in fields})
    return found


def _leaves(source: BoundSource | None) -> list[BoundTable | BoundDerived]:
    if isinstance(source, BoundJoin):
        return _leaves(source.left) + _leaves(source.right)
    return [source] if isinstance(source, BoundTable | BoundDerived) else []


async def _labels(block: Block, relation: Relation, ctx: Context) -> None:
    """The labels of `"…" IN (SELECT name FROM t)`, from the table."""
    for column in _virtuals(block):
        if column.label_query is None:
            continue
        assert isinstance(column.label_query, Bound)
        rows = ctx.duck.arrow(render(query_sql(column.label_query.query))).column(0).to_pylist()
        labels = tuple(dict.fromkeys(str(r) for r in rows if r is not None))
        relation.labels[column.id] = tuple(dict.fromkeys((*column.labels, *labels)))


def _virtuals(block: Block) -> list[VirtualColumn]:
    stages = (*block.filter_stages, *block.row_stages, *block.late_stages)
    return [*(c for stage in stages for c in stage.columns), *block.groups, *block.summaries]


async def _summaries(block: Block, found: Groups, relation: Relation, ctx: Context) -> None:
    """Adds the answers about whole groups to the table of groups."""
    import pyarrow as pa

    answers = await sem_agg.summaries(block.summaries, found.members, relation, ctx)
    data: dict[str, Any] = {"__g": pa.array(range(len(found.members)), type=pa.int64())}
    casts = []
    for column, values in answers.items():
        data[column.name] = pa.array([None if v is None else str(v) for v in values], type=pa.string())
        casts.append(f"TRY_CAST(s.{quote(column.name)} AS {column.type}) AS {quote(column.name)}")
    if any(len(rids) for rids in found.members) and not found.exact:
        ctx.notes.append("summaries were written from the rows asked, not from all rows of a group")
    found.table, _ = ctx.duck.create(
        f"SELECT t.*, {', '.join(casts)} FROM {quote(found.table)} t JOIN __summaries s USING (__g)",
        {"__summaries": pa.table(data)},
    )


@dataclass(frozen=True, slots=True)
class Pilot:
    """Answers to every question of a WHERE for some random candidates: (leaves, m), and the bounds of the share that passes."""

    answers: Masks
    share: tuple[float, float]
    rows: int
    passed: int


async def pilot(block: Block, ctx: Context, n: int) -> Pilot:
    """Pays for every question of the WHERE for n random candidate rows of a block, its inner queries run first.

    The answers are in the ledger: the query that follows does not pay for them again.
    """
    from uql.sampling.intervals import clopper_pearson

    block = await _run_inner(block, ctx)
    relation = await _candidates(block, ctx)
    await _labels(block, relation, ctx)
    assert block.formula is not None
    rids = np.sort(ctx.rng.choice(relation.n, min(n, relation.n), replace=False)).astype(np.int64)
    masks = await sem_filter.answers(block.formula, block.filter_stages, rids, relation, ctx)
    masks = masks[:, ~(masks == OPEN).any(axis=0)]  # what the budget did not reach
    rows = masks.shape[1]
    passed = int((block.formula.evaluate(masks) == TRUE).sum())
    for leaf, answered in zip(block.formula.leaves, masks, strict=True):
        ctx.rates[term_name(block, leaf)] = (rows, int((answered == TRUE).sum()))
    share = clopper_pearson(passed, rows, ctx.settings.confidence) if rows else (0.0, 1.0)
    return Pilot(masks, share, rows, passed)


def has_estimates(query: BoundQuery) -> list[str]:
    """The estimates that the tables of a query were made from (by TO)."""
    found: list[str] = []
    if isinstance(query, BoundUnion):
        return has_estimates(query.left) + has_estimates(query.right)
    assert isinstance(query, BoundSelect)
    for leaf in _leaves(query.source):
        if isinstance(leaf, BoundTable) and leaf.table.estimated_by:
            found.append(f"{leaf.table.name} ({leaf.table.estimated_by})")
    for part in derived(query.source):
        found += has_estimates(part.query)
    for bound in in_expressions(*expressions(query)):
        found += has_estimates(bound.query)
    return found
