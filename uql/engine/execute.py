"""The engine: the one place that knows every stage. A bound statement goes in; rows, estimates and what it cost come out."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from uql.base.schema import Field, Table
from uql.compiler.bound import Bound, BoundItem, BoundQuery, BoundSelect, BoundSource, BoundTable
from uql.compiler.cost import Range, blocks
from uql.compiler.formula import OPEN, TRUE, Formula, Masks, conjunction, conjuncts
from uql.compiler.join_plans import fields_of, sources_of, with_sources
from uql.compiler.orders import learned
from uql.compiler.physical import (
    Block,
    Correlated,
    Goal,
    PerValue,
    PhysicalPlan,
    SemFilter,
    SqlQuery,
    SubQueries,
    UnionPlan,
    asking,
    asks,
)
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import derived, fields_in, in_expressions
from uql.compiler.syntax import (
    Boolean,
    Call,
    Case,
    Column,
    Exists,
    Expr,
    InQuery,
    Number,
    OrderKey,
    Position,
    Quantified,
    ScalarQuery,
    Unary,
    When,
)
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import aggregate_calls, rewrite, with_queries
from uql.engine import plain_sql as concrete, sharded
from uql.engine.pilot import after_pilot
from uql.engine.user_views import UserViews
from uql.kernels import (
    answer_types,
    correlated,
    descriptions,
    examples,
    pair_pool,
    proxy,
    row_order,
    sem_agg,
    sem_classify,
    sem_filter,
    sem_join,
    video_moments,
)
from uql.kernels.answers import RowError
from uql.kernels.asking import misfits
from uql.kernels.base import Context, Memory, Stored
from uql.kernels.duck import Duck, collated, content_sql, quote, typed_columns
from uql.kernels.estimates import interval_propagation as carried
from uql.kernels.estimates.aggregate import aggregate
from uql.kernels.estimates.groups import Groups
from uql.kernels.estimates.sample_bounds import ESTIMATED, is_bound
from uql.kernels.finish import Output, cast, groups, limit, order_by, rename, returned
from uql.kernels.limit_forecast import begun
from uql.kernels.relation import Relation, to_arrow, typed_answer
from uql.kernels.select import select
from uql.kernels.sem_group import MOST_GROUPS
from uql.sampling.intervals import clopper_pearson

MANY_CALLS = 10**9  # more than a budget has


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
    with ctx.duck.users_orders():
        table, estimates = concrete.rows(query, ctx.duck, ctx.settings.confidence)
    return Output(table, None, estimates or None)


async def _union(plan: UnionPlan, ctx: Context) -> Output:
    with ctx.purse.others_to_come(asking(plan.right, before=[plan.left])):
        left = await execute(plan.left, ctx)
    right = await execute(plan.right, ctx)
    names = [f"c{i}" for i in range(len(plan.items))]
    tables = {"__left": left.table.rename_columns(names), "__right": right.table.rename_columns(names)}
    sides = [
        ", ".join(
            f"{collated(cast(field.name, item.type), field)} AS {field.name}"
            for field, item in zip(table.schema, plan.items, strict=True)
        )
        for table in tables.values()
    ]
    listed = ", ".join(names)
    both = (
        f"SELECT {sides[0]}, 0 AS __s, system.main.row_number() OVER () AS __p FROM __left UNION ALL "
        f"SELECT {sides[1]}, 1, system.main.row_number() OVER () FROM __right"
    )
    if plan.op == "UNION":
        if not plan.all:
            both = f"SELECT {listed}, system.main.min(__s) AS __s, system.main.min(__p) AS __p FROM ({both}) GROUP BY {listed}"
    else:  # the n-th of equal rows on the left has its partner in the n-th on the right; without ALL any is one
        if plan.op == "EXCEPT" and not (left.exact and right.exact):
            ctx.notes.append(
                "EXCEPT took out the rows that its second query found: others may stand here that it would take out"
            )
        counted = [
            f"SELECT *, system.main.row_number() OVER (PARTITION BY {listed} ORDER BY __p) AS __k FROM ({both}) WHERE __s = {side}"
            for side in (0, 1)
        ]
        same = " AND ".join(f"l.{n} IS NOT DISTINCT FROM r.{n}" for n in (*names, *(["__k"] if plan.all else [])))
        how = "SEMI" if plan.op == "INTERSECT" else "ANTI"
        once = "" if plan.all else " WHERE l.__k = 1"
        both = f"SELECT l.* FROM ({counted[0]}) AS l {how} JOIN ({counted[1]}) AS r ON {same}{once}"
    by_name: dict[Expr, str] = {Column("", item.name): f"c{i}" for i, item in reversed(list(enumerate(plan.items)))}
    by_name |= {Position(str(i + 1)): f"c{i}" for i in range(len(plan.items))}
    keys = order_by(plan.order.keys, ctx.duck, "__s, __p", by_name)
    place = ", __s, __p" if plan.op == "UNION" else ""
    sql = f"SELECT {listed}{place} FROM ({both}) ORDER BY {keys}" + limit(plan.order.limit, plan.order.offset)
    table = ctx.duck.output(sql, tables)
    estimates = carried.of_union(left, right, table, plan.items, ctx.settings.confidence) if place else None
    return Output(
        rename(table, plan.items),
        None,
        estimates,
        certain=left.certain and right.certain,
        exact=left.exact and right.exact,
    )


async def _block(block: Block, ctx: Context) -> Output:
    original = block
    block, relation, inner = await _prepared(block, ctx)
    errors = len(ctx.errors)
    extended, more = carried.extended(block, inner)
    output = await _answer_block(extended, original, relation, ctx)
    answered = output.exact and len(ctx.errors) == errors
    output.certain = inner.certain and (answered or carried.all_rows(block, output))
    output.exact = output.exact and inner.exact
    carried.note_chosen(block, inner, ctx)
    return carried.strip_added_columns(output, block, more, inner, ctx.settings.confidence)


async def _answer_block(block: Block, original: Block, relation: Relation, ctx: Context) -> Output:
    """The rows of a block whose inner queries are answered; `original` is the block before they were."""
    ctx.begin_steps()
    formula, memory = block.filter.formula, ctx.memory
    if formula is None or memory is None:
        return await _rows(await after_pilot(block, original, relation, ctx), relation, ctx)
    leaf_terms = zip(formula.leaves, block.filter.terms, strict=True)
    relation.filters.terms.update({leaf.expr: memory.rates[name] for leaf, name in leaf_terms if name in memory.rates})
    try:
        return await _rows(await after_pilot(block, original, relation, ctx), relation, ctx)
    finally:
        _remember(block.filter, formula, relation, memory)


def _remember(filter: SemFilter, formula: Formula, relation: Relation, memory: Memory) -> None:
    """Keeps how often the terms of WHERE were true, of all rows, also where only rows that earlier terms left were asked."""
    masks = relation.filters.of(formula).profile
    if masks is None or not masks.shape[1]:
        return
    memory.keep(filter.name, masks)
    shares = (learned(masks) == TRUE).mean(axis=1)
    for leaf, name, share in zip(formula.leaves, filter.terms, shares, strict=True):
        n, _ = relation.filters.terms.get(leaf.expr, (0, 0))
        if n:
            memory.rates[name] = (n, round(n * float(share)))


async def _rows(block: Block, relation: Relation, ctx: Context) -> Output:
    stages = (*block.filter.stages, *block.filter.left_over(block.values.stages))
    needed = 0 if block.filter.goal is Goal.FIRST else relation.n * len(stages) + len(block.values.groups)
    if not ctx.purse.fits(needed):  # rows without text are not asked, equal ones once
        needed = min(needed, relation.calls(stages) + len(block.values.groups))
    with ctx.purse.sharing(needed):
        if not block.aggregate.present:
            output = await select(block, relation, ctx)
        else:
            summaries = len(block.summaries.columns) * MOST_GROUPS
            with ctx.purse.keeping(0 if ctx.purse.fits(needed) else summaries):
                grouping = await aggregate(block, relation, ctx)
            exact = await _summaries(block, grouping, relation, ctx) if block.summaries.columns else True
            output = groups(block, grouping, ctx)
            output.exact = output.exact and exact
    answer_types.warn(block, relation, ctx)
    output.relation = relation
    output.exact = output.exact and not relation.doubtful
    return output


# ------------------------------------------------------------------------------------------------- queries in the block
async def _prepared(block: Block, ctx: Context) -> tuple[Block, Relation, carried.Inner]:
    """The block with all queries in it answered, its candidate rows with the labels they are put to, and what the inner ones estimated."""
    answered = block.inner.derived or block.inner.nested or any(part.derived for part in block.inner.correlated)
    block, inner = await _run_inner(block, ctx)
    ctx.begin_steps()
    block = carried.with_ends(block, inner)
    queries = in_expressions(*(e for e in block.expressions if e is not None))
    if (block.inner.correlated or any(True for _ in queries)) and ctx.duck.orders_differ:
        views = UserViews(ctx.duck)
        pairs = tuple(replace(part, pairs=views.read(part.pairs)) for part in block.inner.correlated)
        block = _with_expressions(replace(block, inner=replace(block.inner, correlated=pairs)), views.read)
    terms = conjuncts(block.scan.where)
    parts: list[Correlated | PerValue] = [*block.inner.correlated, *block.inner.repeated]
    later = [t for t in terms if any(correlated.holds(t, part) for part in parts)]
    pushed = conjunction([t for t in terms if t not in later])
    scan = replace(block.scan, where=pushed)
    relation, exact = await _candidates(replace(block, scan=scan), ctx, compared=not answered)
    certain = exact

    async def run(plan: PhysicalPlan) -> tuple[Output, bool]:
        before = dict(ctx.stored)
        try:
            output = await execute(plan if ctx.plans is None else ctx.plans.chosen(plan)[0], ctx)
            return output, _left_open(plan, output)
        finally:
            ctx.stored = before

    for part in parts:
        exprs = [e for e in block.expressions if e is not None] + later
        if isinstance(part, PerValue):
            calls = _calls_to_share(part.plan, ctx)
            valued = await correlated.run_for_each(part, exprs, relation, run, calls, inner.bounds, ctx)
        else:
            fields = {**relation.fields, **fields_in(part.source)}
            valued = await correlated.answer_subquery(part, exprs, relation, fields, inner.bounds, ctx)
        relation = Relation(ctx.duck, valued.table, relation.n, relation.fields, relation.source)
        block = _without_part(block, valued.replacements, ctx)
        later = [correlated.replaced(t, valued.replacements) for t in later]
        exact, certain = exact and valued.exact, certain and valued.certain
        inner.bounds |= valued.bounds
        inner.calls, inner.unknown = inner.calls + valued.calls, inner.unknown + valued.unknown
    condition = conjunction(later)
    if condition is not None:
        where = ctx.duck.expression(condition)
        name, n = ctx.duck.create(f"SELECT * FROM {quote(relation.name)} WHERE {where} ORDER BY rowid")
        relation = Relation(ctx.duck, name, n, relation.fields, relation.source)
    sem_classify.label_queries(_virtuals(block), relation)
    await descriptions.take(_virtuals(block), relation, ctx)
    examples.take(_virtuals(block), relation, ctx)
    await video_moments.take(block.requests, relation, ctx, block)
    inner.certain, inner.exact = inner.certain and certain, inner.exact and exact
    return replace(block, inner=SubQueries()), relation, inner


def _calls_to_share(plan: PhysicalPlan, ctx: Context) -> int:
    """Calls for all candidates, those alike once, of a plan that can do with a sample; more than any budget where these depend on answers;
    0 for others."""
    calls = 0
    for block in blocks(plan).values():
        if not asks(block):
            continue
        aggregates = [call for expr in block.output for call in aggregate_calls(expr, ctx.duck.aggregates)]
        if (
            not aggregates
            or block.aggregate.sets
            or any(c.name not in ESTIMATED and not is_bound(c) for c in aggregates)
        ):
            return 0
        if block.scan.join is not None or block.inner != SubQueries():
            calls += MANY_CALLS
        else:
            candidates = candidates_sql(block)
            for stage in block.requests:  # a row that stands beside several values is asked once
                read = ", ".join(
                    quote(c.label) for c in dict.fromkeys(c for column in stage.columns for c in column.inputs)
                )
                calls += int(
                    ctx.duck.scalar(f"SELECT system.main.count(DISTINCT system.main.hash({read})) FROM ({candidates})")
                )
    return calls


def _without_part(block: Block, replacements: dict[Expr, Expr], ctx: Context) -> Block:
    """The block with the columns that stand for a sub-query in its expressions over rows, and over groups."""
    keys = [key.expr for key in block.aggregate.keys]

    def of_rows(expr: Any) -> Any:
        return correlated.replaced(expr, replacements)

    def of_groups(expr: Any) -> Any:
        return correlated.replaced_in_groups(expr, replacements, keys, ctx.duck.aggregates)

    return _with_expressions(block, of_rows, of_groups if block.aggregate.present else of_rows)


def _with_expressions(
    block: Block, change: Callable[[Any], Any], of_groups: Callable[[Any], Any] | None = None
) -> Block:
    """The block with its expressions changed, those over groups by `of_groups`."""
    formula, last = block.filter.formula, of_groups or change
    if formula is not None:
        formula = Formula(tuple(replace(leaf, expr=change(leaf.expr)) for leaf in formula.leaves), formula.program)
    keys = tuple(replace(k, expr=change(k.expr)) for k in block.aggregate.keys)
    items = tuple(replace(i, expr=last(i.expr)) for i in block.project.items)
    return replace(
        block,
        filter=replace(block.filter, formula=formula),
        aggregate=replace(block.aggregate, keys=keys, having=last(block.aggregate.having)),
        project=replace(block.project, items=items, qualify=last(block.project.qualify)),
        order=replace(block.order, keys=tuple(replace(k, expr=last(k.expr)) for k in block.order.keys)),
    )


async def _run_inner(block: Block, ctx: Context) -> tuple[Block, carried.Inner]:
    """The block with its semantic sub-queries run and replaced by the temporary tables that hold their rows."""
    inner = carried.Inner()
    later = [plan for _, plan in block.inner.derived] + [p for part in block.inner.correlated for _, p in part.derived]
    later += [plan for _, plan in block.inner.nested]
    own, begun = int(asks(block)), list[PhysicalPlan]()

    async def run(plan: PhysicalPlan, alias: str, fields: tuple[Field, ...]) -> Table:
        later.remove(plan)
        begun.append(plan)
        with ctx.purse.others_to_come(asking(*later, before=begun) + own):
            stored = await _run_once(plan, alias, ctx, fields)
        inner.take(stored)
        for name, (low, high) in stored.bounds.items():
            inner.bounds[Column(alias, name)] = Column(alias, low), Column(alias, high)
        return stored.table

    change: dict[str, BoundSource] = {}
    fields = {d.alias: d.fields for s in sources_of(block.scan.join or block.scan.source) for d in derived(s)}
    for alias, plan in block.inner.derived:
        change[alias] = BoundTable(await run(plan, alias, fields[alias]), alias)
    if change:
        source, join = (with_sources(side, change) for side in (block.scan.source, block.scan.join))
        block = replace(block, scan=replace(block.scan, source=source, join=join))
    pairs = []
    for paired in block.inner.correlated:
        sources: dict[str, BoundSource] = {}
        inside = {d.alias: d.fields for d in derived(paired.source)}
        for alias, plan in paired.derived:
            sources[alias] = BoundTable(await run(plan, alias, inside[alias]), alias)
        pairs.append(replace(paired, source=with_sources(paired.source, sources), derived=()))
    block = replace(block, inner=replace(block.inner, derived=(), correlated=tuple(pairs)))
    if not block.inner.nested:
        return block, inner
    swap: dict[int, Bound] = {}
    unsettled: set[int] = set()
    for part, plan in block.inner.nested:
        later.remove(plan)
        begun.append(plan)
        with ctx.purse.others_to_come(asking(*later, before=begun) + own):
            output = await execute(plan, ctx)
        stored = _stored(output, "sub", ctx, types=[item.type for item in part.query.items])
        inner.take(stored)
        swap[id(part)] = _selected(stored.table, [f.name for f in stored.table.fields])
        if _left_open(plan, output):
            unsettled.add(id(swap[id(part)]))
        for low, high in stored.bounds.values():  # as a value it has one column
            ends = (ScalarQuery(_selected(stored.table, [end])) for end in (low, high))
            inner.bounds[ScalarQuery(swap[id(part)])] = (next(ends), next(ends))

    def changed(expr: Expr | None) -> Any:
        if expr is None:
            return None
        return rewrite(with_queries(expr, swap), lambda node: _where_found(node, unsettled))

    scan = replace(block.scan, where=changed(block.scan.where))
    return _with_expressions(replace(block, scan=scan, inner=replace(block.inner, nested=())), changed), inner


def _left_open(plan: PhysicalPlan, output: Output) -> bool:
    """Did a search end before every row was asked that might be found?"""
    doubtful = output.relation is not None and output.relation.doubtful
    return not (output.certain or doubtful) and _searches(plan)


def _searches(plan: PhysicalPlan) -> bool:
    """Are the rows that it finds some of those that it would find if every row had been asked?"""
    if isinstance(plan, UnionPlan):
        return plan.op != "EXCEPT" and _searches(plan.left) and _searches(plan.right)
    if isinstance(plan, Block):
        return not plan.aggregate.present and all(_searches(below) for _, below in plan.inner.derived)
    return True


def _where_found(node: Any, unsettled: Container[int]) -> Any:
    """EXISTS, IN and ANY of a search that left rows open are true where it found a row, NOT IN and ALL false; else they are NULL.

    Args:
        unsettled: `id` of the sub-queries that are such searches.
    """
    if not isinstance(node, Exists | InQuery | Quantified) or id(node.query) not in unsettled:
        return node
    if isinstance(node, Quantified) and node.word == "ARRAY":
        return node
    denies = node.negated if isinstance(node, InQuery) else isinstance(node, Quantified) and node.word == "ALL"
    return Case(None, (When(Unary("NOT", node) if denies else node, Boolean(not denies)),))


def _selected(table: Table, names: list[str]) -> Bound:
    """SELECT these columns FROM a temporary table."""
    types = {f.name: f.type for f in table.fields}
    items = tuple(BoundItem(Column("sub", name), name, types.get(name, "DOUBLE")) for name in names)
    return Bound(BoundSelect(items, BoundTable(table, "sub")))


async def _run_once(plan: PhysicalPlan, alias: str, ctx: Context, fields: tuple[Field, ...]) -> Stored:
    """The rows of a sub-query of FROM as a temporary table. One that stands in several places, as WITH names it, is run once."""
    key = (id(plan), tuple(f.name for f in fields))
    if key not in ctx.stored:
        ctx.stored[key] = plan, _stored(await execute(plan, ctx), alias, ctx, fields)
    entry = ctx.stored[key][1]
    return replace(entry, table=replace(entry.table, name=alias))


def _stored(
    output: Output, alias: str, ctx: Context, fields: tuple[Field, ...] = (), types: Sequence[str] = ()
) -> Stored:
    """The rows of a sub-query as a temporary table, under the names and in the types of `fields`; without them in `types`, and names that
    repeat get a number.
    """
    names = [f.name for f in fields]
    for name in output.table.column_names if not fields else ():
        names.append(name if name not in names else f"{name}_{len(names)}")
    table, bounds = carried.with_bounds(output, names)
    kinds = types or [f.type for f in fields]
    sql = f"SELECT {typed_columns(table, kinds)} FROM __rows"
    temporary, n = ctx.duck.create(sql, {"__rows": table})
    described = ctx.duck.arrow(
        f"SELECT column_name, data_type FROM system.main.duckdb_columns() WHERE table_name = '{temporary}'"
    )
    type_of = dict(zip(described.column(0).to_pylist(), described.column(1).to_pylist(), strict=True))
    fields_by_name = {f.name: f for f in fields}
    return Stored(
        Table(
            alias,
            quote(temporary),
            tuple(replace(fields_by_name.get(c, Field(c, "")), type=type_of[c]) for c in names),
            n,
        ),
        bounds,
        output.certain,
        output.exact,
        *carried.ask_counts(output),
    )


async def _candidates(block: Block, ctx: Context, *, compared: bool) -> tuple[Relation, bool]:
    """The rows that DuckDB leaves for the model, materialised, and whether they are exact: no pair of a join has no answer.

    Args:
        compared: may they not be others when the run is resumed? Those that follow from answers may.
    """
    fields = fields_of(block)
    if block.scan.join is not None:
        if ctx.settings.proxy is not None:
            ctx.warnings.append("proxy cannot guide a search over an outer join or a join by a text: it was not used")
        joined = await sem_join.outer_join(block.scan.join, block.scan.columns, fields, ctx)
        where = f" WHERE {ctx.duck.expression(block.scan.where)}" if block.scan.where is not None else ""
        name, n = ctx.duck.create(f"SELECT * FROM {quote(joined.table)}{where} ORDER BY rowid")
        return Relation(ctx.duck, name, n, fields, block.scan.tables), joined.exact
    guided = ctx.settings.proxy if block.filter.stages or block.values.stages else None
    sides = pair_pool.large_sides(block, ctx.duck)
    relation = pair_pool.pooled(sides, block, fields, ctx) if sides is not None else None
    if relation is not None and guided is not None:
        ctx.warnings.append("proxy cannot guide a search among the pairs of two large tables: it was not used")
    table = sharded.table_of(block, ctx.duck) if relation is None and guided is None else None
    if relation is None:
        sharded.check_few(block, ctx)
        if table is not None:
            relation = sharded.candidates(block, table, candidates_sql, fields, ctx)
    if relation is None:
        with ctx.duck.users_orders():
            if guided is not None:
                name, n = proxy.create(settled_sql(block, ctx.duck, guided), guided, ctx.duck)
            else:
                name, n = ctx.duck.create(settled_sql(block, ctx.duck))
        relation = Relation(ctx.duck, name, n, fields, block.scan.tables)
    if compared and ctx.draws is not None and ctx.draws.persistent:
        if sides is not None:
            content = pair_pool.content(sides, ctx.duck)
        elif table is not None:
            content = table.content
        else:
            content = int(ctx.duck.scalar(content_sql(f"SELECT r, rowid AS n FROM {quote(relation.name)} AS r")) or 0)
        await ctx.draws.candidates(relation.source, content)
    return relation, True


def settled_sql(block: Block, duck: Duck, score: str | None = None) -> str:
    """`candidates_sql` in the same order each time: by a hash of the rows where DuckDB's order may vary.

    Args:
        duck: that runs it.
        score: the user's of each row, one more item.
    """
    sql = candidates_sql(block, score)
    source, subqueries = block.scan.source, in_expressions(block.scan.where)
    if isinstance(source, BoundTable) and source.table.has_rowid and not any(True for _ in subqueries):
        rows = source.table.row_count
        if rows is not None and rows <= row_order.MANY:
            return sql  # DuckDB need not be asked
    by_keys = block.filter.goal is Goal.FIRST and bool(block.order.keys)
    return candidates_sql(block, score, settled=True) if row_order.varies(sql, duck, by_keys=by_keys) else sql


def candidates_sql(block: Block, score: str | None = None, *, settled: bool = False) -> str:
    """The rows that DuckDB leaves for the model, as SQL text.

    Args:
        score: the user's of each row, one more item.
        settled: the last key of their order is a hash of the row.
    Raises: ConfigError (UQL105) for a score that is no SQL.
    """
    items = tuple(BoundItem(c, c.label, "") for c in block.scan.columns) or (
        BoundItem(Number("1"), "__one", "INTEGER"),
    )
    keys: tuple[OrderKey, ...] = ()
    if block.filter.goal is Goal.FIRST:  # asked in this order up to the k-th certain yes
        keys = block.order.keys
    if settled and block.scan.columns:
        keys += (OrderKey(Call("system.main.hash", block.scan.columns)),)
    guided = score is not None and (block.filter.stages or block.values.stages)
    more = proxy.item(score) if guided and score is not None else ""
    return query_sql(BoundSelect(items, block.scan.source, where=block.scan.where, order_by=keys), more=more)


def _virtuals(block: Block) -> list[VirtualColumn]:
    return [*(c for stage in block.requests for c in stage.columns), *block.values.groups, *block.summaries.columns]


async def _summaries(block: Block, grouping: Groups, relation: Relation, ctx: Context) -> bool:
    """Adds the answers about whole groups to the table of groups; False where some were written from a part of their rows."""
    output_groups = returned(block, grouping, ctx)
    members = [rids if g in output_groups else rids[:0] for g, rids in enumerate(grouping.members)]
    summaries = await sem_agg.summaries(block.summaries.columns, members, relation, ctx)
    data: dict[str, Any] = {"__g": pa.array(range(len(grouping.members)), type=pa.int64())}
    casts, exact = [], summaries.exact
    for column, values in summaries.answers.items():
        for i in misfits(column, np.array(values, dtype=object), relation):
            message = f"{str(values[i])[:80]!r} is {'none of the labels' if relation.labels(column) else f'not {column.type}'}"
            ctx.errors.append(RowError(-1, column.text, "wrong_type", message, str(values[i])[:200]))
            values[i], exact = None, False
        data[column.name] = to_arrow(np.array(values, dtype=object))
        casts.append(typed_answer(column))
    if any(len(rids) for rids in grouping.members) and not grouping.exact:
        ctx.notes.append("summaries were written from the rows asked, not from all rows of a group")
    grouping.table, _ = ctx.duck.create(
        f"SELECT t.*, {', '.join(casts)} FROM {quote(grouping.table)} t JOIN __summaries s USING (__g)",
        {"__summaries": pa.table(data)},
    )
    return exact


@dataclass(frozen=True, slots=True)
class Pilot:
    """Answers to every question of a WHERE for some candidates: (leaves, m), and the bounds of the share that passes.

    They are random rows, or under LIMIT the first ones of the search; `until`: the rows that this search will ask in all, `copies`: how
    many of its rows are one call, by the columns shown.
    """

    answers: Masks
    share: tuple[float, float]
    rows: int
    passed: int
    until: Range | None = None
    copies: Mapping[tuple[Column, ...], float] = field(default_factory=dict)


async def pilot(block: Block, ctx: Context, n: int) -> Pilot:
    """Pays for every question of the WHERE for n candidate rows of a block, its inner queries run first.

    Random rows; where LIMIT stops the query, those that it would ask first. The answers are in the ledger: the query that follows
    does not pay for them again.

    Args:
        block: with a WHERE that asks a model.
        n: rows asked at most.
    """
    block, relation, _ = await _prepared(block, ctx)
    assert block.filter.formula is not None
    until, copies = None, {}
    if block.filter.goal is Goal.FIRST and block.order.rows_needed:
        search = await begun(block.order.rows_needed, min(n, relation.n), block, relation, ctx)
        masks, until, copies = search.answers, search.until, search.copies
    else:
        every = relation.random_rows()
        rids = np.sort(ctx.rng.choice(every, min(n, len(every)), replace=False)).astype(np.int64)
        masks = await sem_filter.answers(block.filter, rids, relation, ctx)
    masks = masks[:, ~(masks == OPEN).any(axis=0)]  # as far as the budget reached
    rows = masks.shape[1]
    result = block.filter.formula.evaluate(masks)
    passed = int((result == TRUE).sum())
    if ctx.memory is not None:
        for name, answered in zip(block.filter.terms, masks, strict=True):
            ctx.memory.rates[name] = (rows, int((answered == TRUE).sum()))
        ctx.memory.keep(block.filter.name, masks)
    share = clopper_pearson(passed, rows, ctx.settings.confidence) if rows else (0.0, 1.0)
    return Pilot(masks, share, rows, passed, until, copies)
