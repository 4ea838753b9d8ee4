"""The last DuckDB SQL text of a block: projection, HAVING, DISTINCT, ORDER BY and LIMIT over rows, or over groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from uql.base.schema import Field
from uql.base.sql_text import first_line
from uql.compiler.bound import BoundItem
from uql.compiler.physical import Block
from uql.compiler.sql import is_literal
from uql.compiler.subqueries import allows_try
from uql.compiler.syntax import Call, Column, Expr, Node, OrderKey
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import children, rewrite, walk
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import Duck, quote
from uql.kernels.estimates.expression_ranges import note_open, of_item
from uql.kernels.estimates.groups import Groups
from uql.kernels.relation import Relation
from uql.sampling.base import Estimate

AT_ONCE = 1 << 18  # rows whose output is made at once: bounds what is in memory beside it
Estimates = dict[str, Estimate | list[Estimate]]


@dataclass(slots=True)
class Output:
    """What a block gives: rows in their order, where they came from, and the estimates of its columns."""

    table: pa.Table
    rids: Rids | None = None  # candidate row behind each output row, where there is one
    estimates: Estimates | None = None
    relation: Relation | None = None  # the candidate rows, while the run lasts
    # of groups: the candidate rows behind each output row, where known
    members: list[Rids] = field(default_factory=list)
    certain: bool = True  # are these the rows that there would be if every row had been asked?
    exact: bool = True  # are no numbers estimates, and was nothing left out, here and in the queries below?
    unverified: Rids | None = None  # candidate rows returned unasked (precision = …)
    # of a column of lists or structs with estimates in them: the same with their low, and their high ends
    ends: dict[str, tuple[pa.ChunkedArray, pa.ChunkedArray]] = field(default_factory=dict)


def order_by(keys: Sequence[OrderKey], duck: Duck, last: str, replaced: dict[Expr, str] | None = None) -> str:
    """ORDER BY terms, NULLs last unless said otherwise; `last` settles ties, so that equal runs give equal rows.

    Args:
        last: SQL of what settles ties.
        replaced: columns that stand for whole expressions.
    """
    terms = [
        f"{duck.expression(k.expr, replaced)} {'DESC' if k.descending else 'ASC'} NULLS {k.nulls or 'LAST'}"
        for k in keys
        if not is_literal(k.expr, replaced or {})  # DuckDB would take it for the place of an item
    ]
    return ", ".join([*terms, last])


def limit(count: int | None, offset: int) -> str:
    return (f" LIMIT {count}" if count is not None else "") + (f" OFFSET {offset}" if offset else "")


def typed_items(
    items: Sequence[BoundItem],
    duck: Duck,
    replaced: dict[Expr, str] | None = None,
    fields: Mapping[Column, Field] | None = None,
) -> list[str]:
    """SELECT items in their bound types, named i0, i1 … (the user's names may repeat).

    Args:
        replaced: columns that stand for whole expressions; NULL where an estimate is too large for the type.
        fields: the columns of the relation: one that has its type already is not cast, which takes time where there are thousands.
    """
    field_of = fields or {}
    return [
        f"{'TRY_CAST' if replaced and item.expr in replaced else 'CAST'}({duck.expression(item.expr, replaced)} AS {item.type}) AS i{n}"
        if castable(item.type)
        and not (isinstance(item.expr, Column) and (field := field_of.get(item.expr)) and field.type == item.type)
        else f"{duck.expression(item.expr, replaced)} AS i{n}"
        for n, item in enumerate(items)
    ]


def castable(type: str) -> bool:
    return type.upper().strip('"') not in ("", "NULL", "UNKNOWN", "ANY")


def cast(sql: str, type: str) -> str:
    """SQL of a value in a type; as it is where that is no type to cast to."""
    return f"CAST({sql} AS {type})" if castable(type) else sql


def null_columns(names: Sequence[str], types: Sequence[str]) -> str:
    """What selects a NULL of each type, under these names: rows of the shape of a result, before there are any."""
    return ", ".join(f"{cast('NULL', t)} AS {quote(n)}" for n, t in zip(names, types, strict=True))


def rename(table: pa.Table, items: Sequence[BoundItem]) -> pa.Table:
    return table.select(list(range(len(items)))).rename_columns([item.name for item in items])


# ---------------------------------------------------------------------------------------------------------------- rows
def chosen(block: Block, passing: Rids, columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> Rids:
    """The rows that ORDER BY and LIMIT leave, in that order, before the late columns are asked.

    Args:
        passing: (n,) int, the rows that meet the WHERE.
        columns: the texts that ORDER BY reads, asked already.
    """
    start, count = block.order.offset, block.order.limit
    if not block.order.keys:
        return passing[start : None if count is None else start + count]
    joined, arrays = relation.joined(passing, columns)
    keys = order_by(block.order.keys, ctx.duck, "__pos")
    return _last(ctx.duck.arrow(f"SELECT __rid FROM {joined} ORDER BY {keys}{limit(count, start)}", arrays))


def whole(block: Block, passing: Rids, columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> Output:
    """The output of a block without aggregates whose rows depend on each other: windows, QUALIFY and unnest come before LIMIT.

    Args:
        passing: (n,) int, the rows that meet the WHERE.
        columns: the texts that the output reads, asked already.
    """
    joined, arrays = relation.joined(passing, columns)
    table = ctx.duck.output(_selected(block, joined, {}, "__pos", ctx), arrays)
    if block.project.distinct:
        return Output(rename(table, block.project.items))
    return Output(rename(table, block.project.items), passing[_last(table)])


def _selected(block: Block, source: str, replaced: dict[Expr, str], last: str, ctx: Context) -> str:
    """The SELECT of the items of a block and `last`, which settles ties, over its rows, or over its groups.

    Args:
        replaced: of groups: their columns for keys, aggregates, or whole items.
    """
    distinct, keys = block.project.distinct, block.order.keys
    names = ", ".join(f"i{n}" for n in range(len(block.project.items)))
    by_name: dict[Expr, str] = {}
    if distinct or not replaced:  # groups are ordered by their estimates as they were before the cast
        by_name = {item.expr: f"i{n}" for n, item in enumerate(block.project.items)}
    others = {key.expr: f"o{n}" for n, key in enumerate(keys) if key.expr not in by_name}
    computed = [f"{ctx.duck.expression(expr, replaced)} AS {name}" for expr, name in others.items()]
    having = block.aggregate.having
    where = f" WHERE {ctx.duck.expression(having, replaced)}" if having is not None else ""
    inner = ", ".join([*typed_items(block.project.items, ctx.duck, replaced), last, *computed])
    inner = f"SELECT {inner} FROM {source}{where}{_qualify(block, ctx, replaced, last)}"
    if distinct:  # ordered by what the first of the equal rows is ordered by, as DuckDB does
        firsts = "".join(f", system.main.first({name} ORDER BY {last}) AS {name}" for name in others.values())
        inner = f"SELECT {names}, system.main.min({last}) AS {last}{firsts} FROM ({inner}) GROUP BY {names}"
    ordered = order_by(keys, ctx.duck, last, {**by_name, **others})
    return f"SELECT {names}, {last} FROM ({inner}) ORDER BY {ordered}{limit(block.order.limit, block.order.offset)}"


def _last(table: pa.Table) -> Rids:
    """The numbers in the last column of rows, after their items."""
    return np.asarray(table.column(table.num_columns - 1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _qualify(block: Block, ctx: Context, replaced: dict[Expr, str], last: str) -> str:
    """QUALIFY; equal rows in a window's order are taken in the order of `last`, so that equal runs give equal rows."""
    if block.project.qualify is None:
        return ""

    def settled(node: Any) -> Any:
        if isinstance(node, Call) and node.over is not None and node.name == "row_number":
            place = OrderKey(Column("", last))
            return replace(node, over=replace(node.over, order_by=(*node.over.order_by, place)))
        return node

    return f" QUALIFY {ctx.duck.expression(rewrite(block.project.qualify, settled), replaced)}"


def rows(block: Block, rids: Rids, columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> Output:
    """The output of a block without aggregates, from the rows chosen, which are in their order already.

    Args:
        rids: (n,) int, the rows of the output.
        columns: the texts that the output reads, asked already.
    """
    items = typed_items(block.project.items, ctx.duck, fields=relation.fields)
    if items == [f"{quote(column.label)} AS i{n}" for n, column in enumerate(block.scan.columns)]:
        items = ["r.*"]  # all of thousands of columns: a third less time than by their names
    starts = range(0, max(1, len(rids)), AT_ONCE)
    parts = (relation.joined(rids[start : start + AT_ONCE], columns) for start in starts)
    table = pa.concat_tables([relation.in_order([*items, "__rid"], *part) for part in parts])
    return Output(rename(table, block.project.items), _last(table))


# -------------------------------------------------------------------------------------------------------------- groups
def returned(block: Block, block_groups: Groups, ctx: Context) -> set[int]:
    """The groups whose summaries are needed: those that the concrete terms of HAVING leave, and LIMIT returns where it can be told.

    Args:
        block_groups: the groups, in a table of DuckDB.
    Returns: group numbers, the `__g` of that table.
    """
    replaced: dict[Expr, str] = dict(block_groups.keys)
    replaced.update(block_groups.calls)
    where = (
        f" WHERE {ctx.duck.expression(block.summaries.where, replaced)}" if block.summaries.where is not None else ""
    )
    cut = ""
    if block.summaries.returned_only:
        cut = f" ORDER BY {order_by(block.order.keys, ctx.duck, '__g', replaced)}{limit(block.order.limit, block.order.offset)}"
    table = ctx.duck.arrow(f"SELECT __g FROM {quote(block_groups.table)}{where}{cut}")
    return {int(g) for g in table.column(0).to_pylist()}


def groups(block: Block, block_groups: Groups, ctx: Context) -> Output:
    """The output of a block with aggregates.

    Args:
        block_groups: the groups, in a table of DuckDB, with their estimates.
    """
    replaced: dict[Expr, str] = {**block_groups.keys, **block_groups.calls}
    try:
        table = ctx.duck.output(_selected(block, quote(block_groups.table), replaced, "__g", ctx))
    except duckdb.Error as error:
        expressions = dict.fromkeys(part for expr in block.output for part in _calculated(expr, block_groups))
        if block_groups.exact or not expressions:
            raise
        tried = {expr: f"__t{n}" for n, expr in enumerate(expressions)}
        values = [f"TRY({ctx.duck.expression(expr, replaced)}) AS {name}" for expr, name in tried.items()]
        source = f"(SELECT {', '.join(['*', *values])} FROM {quote(block_groups.table)})"
        table = ctx.duck.output(_selected(block, source, {**replaced, **tried}, "__g", ctx))
        ctx.warnings.append(f"NULL where an expression has no value at the estimate: {first_line(error)}")
    order = [int(g) for g in _last(table)]
    note_open(block, block_groups, order, ctx)
    estimates = _estimates(block, block_groups, order, ctx)
    table = _with_ratios(table, block, block_groups, estimates)
    members = [block_groups.members[g] for g in order] if block_groups.members else []
    chosen_groups = (
        block.aggregate.having is not None or block.project.qualify is not None or block.order.limit is not None
    )
    certain = block_groups.exact or (block_groups.every and not chosen_groups)
    return Output(rename(table, block.project.items), None, estimates, None, members, certain, block_groups.exact)


def _calculated(node: Node | None, block_groups: Groups) -> Iterator[Expr]:
    """What is calculated with estimates in an expression, group by group: its largest parts in which TRY may be used."""
    if node is None or node in block_groups.keys or node in block_groups.calls:
        return
    if isinstance(node, Expr) and allows_try(node):
        if any(part in block_groups.calls for part in walk(node)):
            yield node
        return
    for child in children(node):
        yield from _calculated(child, block_groups)


def _with_ratios(table: pa.Table, block: Block, block_groups: Groups, estimates: Estimates) -> pa.Table:
    """The rows with the estimate of a quotient, which is not the quotient of the estimates, where it stands."""
    for i, item in enumerate(block.project.items):
        of = estimates.get(item.name)
        if of is None or not pa.types.is_floating(table.schema.field(i).type):
            continue
        if not block_groups.exact and any(
            node in block_groups.ratios for node in walk(item.expr) if isinstance(node, Expr)
        ):
            values = [e.value for e in (of if isinstance(of, list) else [of])]
            table = table.set_column(i, table.column_names[i], pa.array(values, type=pa.float64()))
    return table


def _estimates(block: Block, block_groups: Groups, order: list[int], ctx: Context) -> Estimates:
    """For each column that holds an aggregate, its estimate, or one a row where grouped."""
    result: Estimates = {}
    for item in block.project.items:
        calls = [n for n in walk(item.expr) if isinstance(n, Call) and n in block_groups.calls]
        if not calls or any(isinstance(n, Call) and n.name == "unnest" for n in walk(item.expr)):
            continue
        by_group = of_item(item.expr, calls, block_groups, ctx)
        values = [by_group[g] for g in order]
        if item.type == "HUGEINT" and any(abs(e.value or 0) >= 2**127 for e in values):
            ctx.warnings.append(
                f"{item.name} is NULL where it is too large for HUGEINT: sum numbers that are cast to DOUBLE"
            )
        if block.aggregate.keys:
            result[item.name] = values
        elif values:
            result[item.name] = values[0]
    return result
