"""Sub-queries with quoted texts that read columns of the query around them: EXISTS, IN and values, one for each row.

The sub-query's rows are paired with the rows around it by its concrete terms, the pairs are asked, and those that pass are a table.
Over this table the sub-query holds nothing semantic any more: DuckDB answers it for every row, with the meaning it has in SQL. One that
is more than a filter over pairs (a UNION, texts said of groups, outer joins on texts, sub-queries in it) is run for each value around it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from uql.base.errors import BudgetError
from uql.base.schema import Field, Table
from uql.compiler import syntax as ast
from uql.compiler.bound import Bound, BoundItem, BoundSelect, BoundTable
from uql.compiler.join_plans import aliases_in
from uql.compiler.physical import Correlated, PerValue, PhysicalPlan, SemFilter
from uql.compiler.sql import expression, flat_column, flat_virtual, query_sql
from uql.compiler.syntax import Binary, Call, Column, Exists, Expr, InQuery, Node, Quantified, Query, ScalarQuery
from uql.compiler.walk import is_semantic, rewrite, walk, with_children
from uql.kernels import asking
from uql.kernels.base import Context
from uql.kernels.duck import collated, quote, sub_query
from uql.kernels.estimates.interval_propagation import ask_counts, with_bounds
from uql.kernels.estimates.monotone_range import corners, has_range
from uql.kernels.finish import Output, cast
from uql.kernels.relation import Relation
from uql.kernels.sem_join import ask_pairs

Bounds = dict[Expr, tuple[Expr, Expr]]  # an estimated number → what its low and its high end are
MOST_RUNS = 2_000  # of a sub-query that is run for each value
ROW, LEFT = "__row", "__l"  # the row around the sub-query, and the same among its pairs


@dataclass(frozen=True, slots=True)
class Valued:
    """The candidate rows with the values of a sub-query as columns.

    Attributes:
        table: the temporary table of the rows, in their order.
        replacements: what stands for the sub-query in the expressions around it.
        exact: was every pair, or every row of each run, asked and answered?
        certain: are the rows of each run those that there would be if every row had been asked?
    """

    table: str
    replacements: dict[Expr, Expr]
    exact: bool
    certain: bool
    # of what stands for the sub-query, and the sub-query itself, where it gives estimates: the columns of the ends of their intervals
    bounds: Bounds = field(default_factory=dict)
    calls: int = 0  # rows asked for its estimates
    unknown: int = 0  # of these, that gave no answer


async def answer_subquery(
    part: Correlated, exprs: Sequence[Expr], outer: Relation, fields: dict[Column, Field], bounds: Bounds, ctx: Context
) -> Valued:
    """The candidate rows with the values of a sub-query as columns, and what stands for the sub-query in their expressions.

    A row with a pair whose answer is unknown has the value NULL, unless another pair settles it; a note says how many pairs there are.

    Args:
        exprs: the expressions of the block, in which the sub-query stands.
        outer: the candidate rows.
        fields: of the columns around the sub-query and of its own.
        bounds: the ends of those columns that are estimates.
    Raises: BudgetError (UQL401) where the pairs do not fit.
    """
    passing, unknown, exact = await _pairs(part, outer, fields, bounds, ctx)
    item = part.query.items[0]
    estimated = [c for c in dict.fromkeys(walk(item.expr)) if isinstance(c, Column) and c in bounds]
    at_ends = corners(item.expr, estimated, bounds) if len(estimated) == 1 and has_range(item.expr, estimated) else []
    ends = [replace(part.query, items=(replace(item, expr=expr, type=""),)) for expr in at_ends]
    chosen = [c for c in part.columns if c in bounds and (c not in estimated or not ends)]
    answers = _Answers(part.part, part.query, passing, unknown, tuple(ends), doubtful=bool(chosen))
    table, swap, own_bounds = _valued(answers, exprs, outer, ctx)
    return Valued(table, swap, exact, exact, own_bounds)


async def run_for_each(
    part: PerValue,
    exprs: Sequence[Expr],
    outer: Relation,
    run: Callable[[PhysicalPlan], Awaitable[tuple[Output, bool]]],
    calls: int,
    bounds: Bounds,
    ctx: Context,
) -> Valued:
    """The same for a sub-query that is run once for each distinct row of the columns that it reads. Unknown are those of a search that
    the budget ended.

    Args:
        run: runs a plan, from its start. Did it end before every row was asked that it might have found?
        calls: that all runs together make at most, where each can do with its share of the budget.
        bounds: the ends of the columns around it that are estimates.
    Raises: BudgetError (UQL401) where there are more than MOST_RUNS such rows, or the budget ends before the last of them.
    """
    read = ", ".join(f"system.main.first({quote(c.label)} ORDER BY rowid) AS {quote(c.label)}" for c in part.columns)
    keys = [_letter_by_letter(quote(c.label), outer.fields[c].type) for c in part.columns]
    values, n = ctx.duck.create(
        f"SELECT {read} FROM {quote(outer.name)} GROUP BY {', '.join(keys)} ORDER BY system.main.min(rowid)"
    )
    if n > MOST_RUNS:
        raise BudgetError(
            f"a sub-query would be run for each of {n:,} values of {', '.join(c.label for c in part.columns)}, {MOST_RUNS:,} at most",
            span=part.part.span,
            help="write it as a JOIN, or leave fewer rows by plain conditions",
        )
    tables: dict[frozenset[str], list[pa.Table]] = {}  # by the columns that are estimates
    estimated: dict[str, tuple[str, str]] = {}  # these columns, and where their ends stand
    left_open: list[int] = []
    items = part.part.query.items
    names = [f"c{i}" for i in range(len(items))]
    asked = unknown_rows = 0
    before, exact, certain, paid = len(ctx.notes), True, True, ctx.gate.cost.calls
    fits = ctx.purse.fits(calls)
    for k in range(n):
        for alias, view in part.views:
            columns = ", ".join(f"{quote(c.label)} AS {quote(c.name)}" for c in part.columns if c.table == alias)
            ctx.duck.view(view, f"SELECT {columns} FROM {quote(values)} WHERE rowid = {k}")
        try:
            with nullcontext() if fits else ctx.purse.share(n - k - 1):
                output, is_open = await run(part.each)
        except BudgetError as error:
            if ctx.gate.cost.calls == paid:  # nothing was sent
                raise
            raise BudgetError(
                f"the sub-query is run for each of {n:,} values of {', '.join(c.label for c in part.columns)}, "
                f"and the budget ended at the {k + 1:,}. of them",
                span=part.part.span,
                help="what was answered is kept; WITH (budget = 'all') asks for the others",
            ) from error
        exact, certain = exact and output.exact, certain and output.certain
        left_open += [k] if is_open else []
        table, bounded = with_bounds(output, names)
        estimated |= bounded
        calls_of, unknown_of = ask_counts(output)
        asked, unknown_rows = asked + calls_of, unknown_rows + unknown_of
        table = table.append_column("__k", pa.array([k] * table.num_rows, type=pa.int64()))
        table = table.append_column("__p", pa.array(range(table.num_rows), type=pa.int64()))
        tables.setdefault(frozenset(bounded), []).append(table)
    ctx.notes[before:] = dict.fromkeys(ctx.notes[before:])
    same = " AND ".join(f"v.{key} IS NOT DISTINCT FROM o.{key}" for key in keys)
    results = {
        f"__results{j}": pa.concat_tables(some, promote_options="permissive") for j, some in enumerate(tables.values())
    }
    sources = []
    for (name, rows), estimates in zip(results.items(), tables, strict=True):
        typed = [
            f"{collated(cast(c, item.type), rows.schema.field(c))} AS {c}" for c, item in zip(names, items, strict=True)
        ]
        for c, ends in estimated.items():  # the value of a run that asked every row is both of its ends
            typed += [f"{end if c in estimates else c} AS {end}" for end in ends]
        sources.append(f"SELECT {', '.join(typed)}, __k, __p FROM {name}")
    given = ", ".join(f"r.{c}" for c in (*names, *(end for ends in estimated.values() for end in ends)))
    if sources:
        sql = (
            f"SELECT o.rowid AS {LEFT}, {given} FROM {quote(outer.name)} AS o JOIN {quote(values)} AS v ON {same} "
            f"JOIN ({' UNION ALL '.join(sources)}) AS r ON r.__k = v.rowid ORDER BY o.rowid, r.__p"
        )
        passing, _ = ctx.duck.create(sql, results)
    else:
        listed = ", ".join(f"{cast('NULL', item.type)} AS {c}" for c, item in zip(names, items, strict=True))
        passing, _ = ctx.duck.create(f"SELECT CAST(0 AS BIGINT) AS {LEFT}, {listed} WHERE false")
    unknown = None
    if left_open:
        among = f"{quote(outer.name)} AS o JOIN {quote(values)} AS v ON {same} AND v.rowid IN ({', '.join(map(str, left_open))})"
        unknown, _ = ctx.duck.create(f"SELECT o.rowid AS {LEFT} FROM {among}")
    query = BoundSelect(tuple(BoundItem(Column("", c), c, item.type) for c, item in zip(names, items, strict=True)))
    at_ends = tuple(BoundSelect((BoundItem(Column("", end), end, ""),)) for end in estimated.get("c0", ()))
    doubtful = any(c in bounds for c in part.columns)
    answers = _Answers(part.part, query, passing, unknown, at_ends, doubtful)
    rows_table, swap, own_bounds = _valued(answers, exprs, outer, ctx)
    return Valued(rows_table, swap, exact, certain, own_bounds, asked, unknown_rows)


def _letter_by_letter(name: str, type: str) -> str:
    """SQL of a column that is compared as it is written, whatever its collation."""
    return f'{name} COLLATE "BINARY"' if type == "VARCHAR" else name


@dataclass(frozen=True, slots=True)
class _Answers:
    """A sub-query over the table of what was found for it: LEFT is the row around it."""

    part: Bound
    query: BoundSelect
    passing: str
    unknown: str | None  # the table of rows for which a pair is unknown
    ends: tuple[BoundSelect, ...] = ()  # its value at both ends of the interval, where that is an estimate
    doubtful: bool = False  # does it depend on estimates in another way?


def _valued(
    answers: _Answers, exprs: Sequence[Expr], outer: Relation, ctx: Context
) -> tuple[str, dict[Expr, Expr], Bounds]:
    """The candidate rows with the sub-query's values, what stands for it, and the ends of what that is where it is estimated. A sub-query
    behind a quoted text stays one.
    """
    swap: dict[Expr, Expr] = {}
    bounds: Bounds = {}
    columns: list[str] = []
    suffix = answers.passing.removeprefix("__uql_")
    for node in dict.fromkeys(n for e in exprs for n in walk(e) if getattr(n, "query", None) == answers.part):
        assert isinstance(node, Exists | InQuery | Quantified | ScalarQuery)
        if is_semantic(getattr(node, "operand", None)):
            swap[node] = _later(node, answers, f"__row_{suffix}", outer, ctx)
            continue
        name = f"__sub{len(columns)}_{suffix}"
        columns.append(f"{_value(node, answers)} AS {quote(name)}")
        value: Expr = Column("", name)
        if isinstance(node, ScalarQuery) and answers.ends and not answers.doubtful:
            at_ends = [f"{name}_{end}" for end in ("low", "high")]
            for end, query in zip(at_ends, answers.ends, strict=True):
                columns.append(f"{_value(node, replace(answers, query=query))} AS {quote(end)}")
            bounds[value] = bounds[node] = Column("", at_ends[0]), Column("", at_ends[1])
        elif answers.doubtful or (answers.ends and not isinstance(node, Exists)):
            bounds[value] = bounds[node] = ast.Null(), ast.Null()
        swap[node] = ast.Unary("NOT", value) if isinstance(node, InQuery) and node.negated else value
    rows = f"(SELECT rowid AS {ROW}, * FROM {quote(outer.name)})"
    columns.append(f"{ROW} AS {quote(f'__row_{suffix}')}")
    table, _ = ctx.duck.create(f"SELECT * EXCLUDE ({ROW}), {', '.join(columns)} FROM {rows} AS __t ORDER BY {ROW}")
    return table, swap, bounds


def _later(node: Any, answers: _Answers, row: str, outer: Relation, ctx: Context) -> Expr:
    """The same node over a table of the sub-query's rows: its operand is known when the model has answered."""
    over = _over(answers.query, answers.passing, Binary("=", Column("", LEFT), Column("", ROW)))
    inner = query_sql(over, flat_column, flat_virtual, below=sub_query)
    rows = f"(SELECT rowid AS {ROW} FROM {quote(outer.name)})"
    names = ", ".join(f"c{i}" for i in range(len(answers.query.items)))
    table, _ = ctx.duck.create(f"SELECT __t.{ROW} AS {LEFT}, q.* FROM {rows} AS __t, LATERAL ({inner}) AS q({names})")
    items = tuple(BoundItem(Column("", f"c{i}"), f"c{i}", item.type) for i, item in enumerate(answers.query.items))
    same = Binary("=", Column("", LEFT), Column("", row))
    value: Expr = replace(node, query=Bound(_over(BoundSelect(items), table, same)))
    if answers.unknown is None:
        return value
    one = BoundItem(ast.Number("1"), "one", "INTEGER")
    open_ = Exists(Bound(_over(BoundSelect((one,)), answers.unknown, same)))
    return ast.Case(None, (ast.When(open_, ast.Null()),), value)


def replaced_in_groups(expr: Any, columns: dict[Expr, Expr], keys: Sequence[Expr], aggregates: Container[str]) -> Any:
    """The same for an expression over groups: a value that all rows of a group share stands as that of any of them.

    Args:
        columns: the columns that stand for sub-queries.
        aggregates: the names of DuckDB's aggregate functions.
    """
    if expr is None:
        return None
    if expr in keys or (isinstance(expr, Call) and expr.over is None and expr.name in aggregates):
        return replaced(expr, columns)
    if expr in columns:
        return rewrite(
            columns[expr], lambda n: Call("system.main.any_value", (n,)) if isinstance(n, Column) and not n.table else n
        )
    return with_children(
        expr, lambda below: below if isinstance(below, Query) else replaced_in_groups(below, columns, keys, aggregates)
    )


def replaced(expr: Any, columns: dict[Expr, Expr]) -> Any:
    """The expression with the columns that stand for its sub-queries."""
    if expr is None:
        return None
    return rewrite(
        expr,
        lambda node: columns.get(node, node) if isinstance(node, Exists | InQuery | Quantified | ScalarQuery) else node,
    )


def holds(expr: Node, part: Correlated | PerValue) -> bool:
    """Does the sub-query stand in this expression?"""
    return any(getattr(node, "query", None) == part.part for node in walk(expr))


async def _pairs(
    part: Correlated, outer: Relation, fields: dict[Column, Field], bounds: Bounds, ctx: Context
) -> tuple[str, str | None, bool]:
    """Temporary tables: the pairs that pass with all their columns and values, and the rows with an unknown pair (None: none).
    Third: is every pair answered?"""
    own = set(aliases_in(part.source))
    inside = [c for c in part.columns if c.table in own]
    inside += [end for c in inside for end in bounds.get(c, ()) if isinstance(end, Column)]
    there = set(ctx.duck.columns(outer.name))
    around = [c for c in part.columns if c.table not in own and c.label in there]
    items = tuple(BoundItem(c, c.label, "") for c in inside) or (BoundItem(ast.Number("1"), "__one", "INTEGER"),)
    with ctx.duck.users_orders():
        right, _ = ctx.duck.create(query_sql(BoundSelect(items, part.source, where=part.own)))
    on = ctx.duck.expression(part.pairs) if part.pairs is not None else "true"
    left = ", ".join([f"rowid AS {LEFT}", *(quote(c.label) for c in around)])
    name, n = ctx.duck.create(
        f"SELECT l.*, r.* FROM (SELECT {left} FROM {quote(outer.name)}) AS l JOIN {quote(right)} AS r ON {on} "
        f"ORDER BY l.{LEFT}, r.rowid"
    )
    source = ", ".join(dict.fromkeys([outer.source, *sorted(own)]))
    try:
        pairs = await ask_pairs(
            Relation(ctx.duck, name, n, fields, source), SemFilter(part.formula, part.stages), "a sub-query as a", ctx
        )
    except BudgetError as error:  # a value for each row is not estimated; counts of groups of pairs are
        if any(isinstance(n, Call) and n.name == "count" for item in part.query.items for n in walk(item.expr)):
            error.help = f"{error.help}; counts by row can be estimated as SELECT a.id, count(*) FROM a JOIN b ON … GROUP BY a.id"
        raise
    passing = np.flatnonzero(pairs.truth.yes).astype(np.int64)
    if part.values:
        calls = pairs.relation.calls(part.values, passing)
        less = "fewer pairs by an equality beside the text"
        ctx.purse.need(calls, f"a sub-query's values for {len(passing):,} pairs", less)
    for stage in part.values:
        await asking.ask(stage, passing, pairs.relation, ctx)
    columns = list({c.id: c for stage in (*part.stages, *part.values) for c in stage.columns}.values())
    joined, arrays = pairs.relation.joined(passing, columns)
    values = "".join(f", a.{quote(c.name)}" for c in (*columns, *pairs.relation.moments(columns)))
    table, _ = ctx.duck.create(f"SELECT r.*{values} FROM {joined} ORDER BY __pos", arrays)
    if not pairs.unknown:
        return table, None, pairs.exact
    flags: dict[str, pa.Table] = {"__flags": pairs.flags}
    unknown, _ = ctx.duck.create(
        f"SELECT DISTINCT p.{LEFT} FROM __flags f JOIN {quote(name)} p ON p.rowid = f.__rid WHERE f.__maybe AND NOT f.__yes",
        flags,
    )
    return table, unknown, pairs.exact


def _value(node: Exists | InQuery | Quantified | ScalarQuery, answers: _Answers) -> str:
    """SQL of the sub-query's value for one row; of IN without its NOT."""
    same = Binary("=", Column("", LEFT), Column("", ROW))
    over = _over(answers.query, answers.passing, same)

    def inner(query: Query) -> Any:
        return (
            query_sql(over, flat_column, flat_virtual, below=sub_query) if query == answers.part else sub_query(query)
        )

    plain = InQuery(node.operand, node.query) if isinstance(node, InQuery) else node
    value = expression(plain, flat_column, flat_virtual, inner)
    if answers.unknown is None:
        return f"({value})"
    open_ = f"EXISTS (SELECT 1 FROM {quote(answers.unknown)} AS __u WHERE __u.{LEFT} = {ROW})"
    if isinstance(node, Quantified | ScalarQuery):
        return f"CASE WHEN {open_} THEN NULL ELSE ({value}) END"
    return f"CASE WHEN ({value}) THEN true WHEN {open_} THEN NULL ELSE ({value}) END"


def _over(query: BoundSelect, passing: str, same: Expr) -> BoundSelect:
    return replace(query, source=BoundTable(Table("__p", quote(passing), ()), "__p"), where=same)
