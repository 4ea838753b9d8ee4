"""A plan as a person reads it: the tree, how each quoted text was read, the columns sent, and the price."""

from __future__ import annotations

from collections.abc import Callable

from uql.compiler.bound import BoundStatement
from uql.compiler.cost import FREE, Quote, Range
from uql.compiler.physical import Block, Goal, OuterJoin, PhysicalPlan, SqlQuery, Stage, UnionPlan
from uql.compiler.shown import describe_source, show
from uql.compiler.virtual import VirtualColumn

Price = Callable[[Block], Quote]


def explain(statement: BoundStatement, plan: PhysicalPlan, price: Price, budget: int | None) -> str:
    """The text of EXPLAIN. `price` gives the quote of a block; no model is asked."""
    lines = [*_plan(plan, 0)]
    readings = [r for r in statement.readings if r.read_as != "identifier"]
    if readings:
        lines += ["", "How the quoted texts were read:"]
        lines += [f'  "{r.text}": {r.read_as}{" " + r.detail if r.detail else ""}' for r in readings]
    quote = total(plan, price)
    lines += ["", *quote_lines(quote)]
    lines.append(f"Budget: {'all rows' if budget is None else f'{budget:,} calls'}")
    lines += [f"Warning: {w}" for w in statement.warnings]
    return "\n".join(lines)


def total(plan: PhysicalPlan, price: Price) -> Quote:
    """The price of a whole plan: that of its blocks together."""
    match plan:
        case UnionPlan(left=left, right=right):
            return total(left, price) + total(right, price)
        case Block():
            quote = price(plan)
            for _, below in (*plan.derived, *plan.nested):
                quote = quote + total(below, price)
            return quote
    return FREE


def quote_lines(quote: Quote) -> list[str]:
    return [
        f"Calls: {_range(quote.calls)}",
        f"Input tokens: {_range(quote.input_tokens)}; output tokens: {_range(quote.output_tokens)}",
        f"USD: {_range(quote.usd, 4) if quote.usd else 'unknown'}",
    ]


def _range(r: Range, places: int = 0) -> str:
    low, expected, high = (f"{x:,.{places}f}" for x in (r.low, r.expected, r.high))
    return low if low == high else f"{expected} ({low}–{high})"


def _plan(plan: PhysicalPlan, depth: int) -> list[str]:
    pad = "  " * depth
    match plan:
        case SqlQuery():
            return [f"{pad}DuckDB"]
        case UnionPlan(left=left, right=right, all=all_):
            return [f"{pad}{'UnionAll' if all_ else 'Union'}", *_plan(left, depth + 1), *_plan(right, depth + 1)]
        case Block():
            return _block(plan, depth)
    return []


def _block(block: Block, depth: int) -> list[str]:
    steps: list[str] = []
    if block.limit is not None or block.offset:
        steps.append(
            f"Limit {block.limit if block.limit is not None else 'all'}"
            + (f" offset {block.offset}" if block.offset else "")
        )
    if block.late_stages:
        steps += [f"SemMap {_stage(s)}  (rows returned only)" for s in block.late_stages]
    if block.order_by:
        keys = ", ".join(
            show(k.expr) + (" DESC (highest first)" if k.descending else " (lowest first)") for k in block.order_by
        )
        steps.append(f"Sort {keys}")
    if block.distinct:
        steps.append("Distinct")
    if block.having is not None:
        steps.append(f"Having {show(block.having)}")
    if block.summaries:
        steps.append("SemAgg " + ", ".join(f'"{c.text}"' for c in block.summaries))
    if block.aggregated:
        by = f" BY {', '.join(k.name for k in block.keys)}" if block.keys else ""
        steps.append(f"Aggregate {', '.join(i.name for i in block.items)}{by}  (a sample will do, with an interval)")
    steps += [f"SemMap {_stage(s)}" for s in block.row_stages]
    steps += [f'SemGroup "{c.text}"{_into(c)}  reads={_reads(c)}' for c in block.groups]
    if block.formula is not None:
        how = {Goal.FIRST: f"  (stops at {block.wanted} rows)", Goal.SEARCH: ""}.get(block.goal, "")
        steps += [f"SemFilter {_stage(s)}{how}" for s in block.filter_stages]
    lines = [f"{'  ' * (depth + i)}{step}" for i, step in enumerate(steps)]
    inner = depth + len(steps)
    pad = "  " * inner
    if isinstance(block.outer_join, OuterJoin):
        join = block.outer_join
        lines.append(
            f"{pad}SemJoin {join.kind} {describe_source(join.left)}, {describe_source(join.right)} "
            + "; ".join(_stage(s) for s in join.stages)
        )
    else:
        where = f" WHERE {show(block.pushed)}" if block.pushed is not None else ""
        lines.append(f"{pad}DuckDB {describe_source(block.source)}{where}")
    for alias, plan in block.derived:
        lines += [f"{pad}  {alias}:", *_plan(plan, inner + 2)]
    for _, plan in block.nested:
        lines += [f"{pad}  sub-query:", *_plan(plan, inner + 2)]
    return lines


def _stage(stage: Stage) -> str:
    texts = ", ".join(f'"{c.text}" {c.kind}{"" if c.type == "BOOLEAN" else ":" + c.type}' for c in stage.columns)
    one = "one request a row, " if len(stage.columns) > 1 else ""
    return f"{texts}  {one}reads={_reads(*stage.columns)}"


def _reads(*columns: VirtualColumn) -> str:
    return ", ".join(dict.fromkeys(c.label for v in columns for c in (*v.reads, *v.holes)))


def _into(column: VirtualColumn) -> str:
    return (f" INTO {column.into}" if column.into else "") + (" MANY" if column.many else "")
