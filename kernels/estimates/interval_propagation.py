"""Numbers that a sub-query estimated, in the query around it: their intervals go along, and none becomes exact on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf

import pyarrow as pa

from uql.compiler.bound import BoundItem
from uql.compiler.physical import Block
from uql.compiler.subqueries import in_expressions, join_conditions, outer_columns
from uql.compiler.syntax import Call, Column, Expr
from uql.compiler.walk import aggregate_calls, walk
from uql.kernels.base import Context, Stored
from uql.kernels.estimates.exact import exactly, number
from uql.kernels.estimates.monotone_range import (
    MONOTONE,
    between,
    corners,
    has_range,
    holds,
    open_ended,
    replaced,
)
from uql.kernels.estimates.sample_bounds import NUMBER
from uql.kernels.finish import Estimates, Output


@dataclass(slots=True)
class Inner:
    """What the sub-queries of a block have said of their rows."""

    # an estimated number in the expressions around it → its lowest and highest value
    bounds: dict[Expr, tuple[Expr, Expr]] = field(default_factory=dict)
    certain: bool = True  # are their rows those that they would have if every row had been asked?
    exact: bool = True  # was every row asked, of each of them and of the pairs?
    calls: int = 0  # rows asked for their estimates
    unknown: int = 0

    def take(self, stored: Stored) -> None:
        """What one of them has said."""
        self.certain, self.exact = self.certain and stored.certain, self.exact and stored.exact
        self.calls, self.unknown = self.calls + stored.calls, self.unknown + stored.unknown


@dataclass(slots=True)
class _Item:
    """An item that holds estimated numbers, and the items that hold its value at each combination of their ends."""

    at: int
    corners: list[int]  # empty: nothing can be said of its range
    holds: bool = False  # is it made of them as they are? Its corners are its two ends then


def ask_counts(output: Output) -> tuple[int, int]:
    """Rows asked for the estimates of a sub-query, and those of them that gave no answer."""
    listed = [
        e
        for of_column in (output.estimates or {}).values()
        for e in (of_column if isinstance(of_column, list) else [of_column])
    ]
    return max((e.calls for e in listed), default=0), max((e.unknown for e in listed), default=0)


def with_bounds(output: Output, names: Sequence[str]) -> tuple[pa.Table, dict[str, tuple[str, str]]]:
    """The rows of a sub-query under these names, with the ends of the intervals of its estimates behind them; where these stand."""
    table, bounds = output.table, {}
    of = table.column_names
    table = table.rename_columns(list(names))
    for i, (old, new) in enumerate(zip(of, names, strict=True)):
        of_column = (output.estimates or {}).get(old)
        listed = of_column if isinstance(of_column, list) else [of_column] * table.num_rows
        if of_column is None or all(e is not None and (e.exact or e.method == "nothing seen") for e in listed):
            continue
        bounds[new] = (f"__low{i}", f"__high{i}")
        if old in output.ends:
            for name, end in zip(bounds[new], output.ends[old], strict=True):
                table = table.append_column(name, end)
            continue
        number = any(e is not None and e.value is not None for e in listed)
        type = pa.float64() if number else table.schema.field(i).type  # only numbers have an interval
        for name, ends in (
            (f"__low{i}", [e and e.low for e in listed]),
            (f"__high{i}", [e and e.high for e in listed]),
        ):
            table = table.append_column(name, pa.array(ends if number else [None] * len(ends), type=type))
    return table, bounds


def all_rows(block: Block, output: Output) -> bool:
    """Are the rows of a query with groups all that there are, although the numbers in them are estimates?"""
    return block.aggregate.present and output.certain


def of_union(
    left: Output, right: Output, rows: pa.Table, items: Sequence[BoundItem], confidence: float
) -> Estimates | None:
    """The estimates of both sides of a UNION in the order of its rows, whose last columns say side and place.

    Args:
        rows: of the UNION; the last two columns say the side (0, 1) and the place on it, from 1 on.
        confidence: of exact numbers beside estimates.
    """
    estimates: Estimates = {}
    sides = [(int(s), int(p) - 1) for s, p in zip(*(rows.column(i).to_pylist() for i in (-2, -1)), strict=True)]
    for i, item in enumerate(items):
        of = [(side.estimates or {}).get(side.table.column_names[i]) for side in (left, right)]
        if of == [None, None]:
            continue
        values = rows.column(i).to_pylist()
        by_row = []
        for (s, p), value in zip(sides, values, strict=True):
            one = of[s]
            one = one[p] if isinstance(one, list) else one
            by_row.append(one or exactly(value, confidence, 0))
        estimates[item.name] = by_row
    return estimates or None


def extended(block: Block, inner: Inner) -> tuple[Block, list[_Item]]:
    """The block with more items: each that holds estimated numbers, at the ends of their intervals."""
    items, estimate_items = list(block.project.items), []
    for i, item in enumerate(block.project.items):
        leaves = _estimated(item.expr, inner)
        if not leaves:
            continue
        at = len(items)
        one = not (block.project.distinct or block.aggregate.sets or block.scan.join is not None)
        one = one and len(leaves) == len(_estimated(item.expr, inner, queries=False))
        is_number = NUMBER.fullmatch(item.type) and item.expr in leaves
        made_of = one and not is_number and not block.aggregate.keys and holds(item.expr, set(leaves))
        if made_of:
            for end in (0, 1):
                expr = replaced(item.expr, {leaf: inner.bounds[leaf][end] for leaf in leaves})
                items.append(BoundItem(expr, f"__corner{len(items)}", ""))
        elif one and _has_range(block, item, leaves):
            for expr in corners(item.expr, leaves, inner.bounds):
                items.append(BoundItem(expr, f"__corner{len(items)}", "DOUBLE"))
        estimate_items.append(_Item(i, list(range(at, len(items))), made_of))
    if not estimate_items:
        return block, []
    return replace(block, project=replace(block.project, items=tuple(items))), estimate_items


def _estimated(expr: Expr | None, inner: Inner, *, queries: bool = True) -> list[Expr]:
    """The estimated numbers in an expression, and those that its sub-queries read from around them."""
    own = [node for node in walk(expr) if isinstance(node, Expr) and node in inner.bounds]
    below = (c for part in in_expressions(expr) for c in outer_columns(part.query)) if queries else ()
    return [*own, *(c for c in below if c in inner.bounds)]


def with_ends(block: Block, inner: Inner) -> Block:
    """The block that reads the ends of the intervals beside the estimated columns that it reads."""
    if block.scan.join is not None:
        return block
    ends = [end for c in block.scan.columns for end in inner.bounds.get(c, ()) if isinstance(end, Column)]
    return replace(block, scan=replace(block.scan, columns=(*block.scan.columns, *ends))) if ends else block


def _has_range(block: Block, item: BoundItem, leaves: Sequence[Expr]) -> bool:
    """Is the item's range that of its values at the ends of the intervals in it?"""
    if not NUMBER.fullmatch(item.type):
        return False
    return has_range(item.expr, leaves) and all(_may_move(block, item.expr, leaf) for leaf in leaves)


def _may_move(block: Block, expr: Expr, leaf: Expr) -> bool:
    """In a query with groups a column moves only inside an aggregate; a sub-query's value may stand anywhere."""
    if not block.aggregate.present or not isinstance(leaf, Column):
        return True
    return any(
        isinstance(n, Call) and n.name in MONOTONE and any(leaf in walk(arg) for arg in n.args) for n in walk(expr)
    )


def strip_added_columns(
    output: Output, block: Block, estimate_items: Sequence[_Item], inner: Inner, confidence: float
) -> Output:
    """The output with the added columns taken off again, and the intervals of what was estimated below.

    Args:
        estimate_items: the items that hold estimated numbers, and the items added for them.
        inner: what the sub-queries estimated.
    """
    n = len(block.project.items)
    estimates: Estimates = dict(output.estimates or {})
    values, ends = output.table.columns, dict(output.ends)
    for part in estimate_items:
        name, item_type = block.project.items[part.at].name, block.project.items[part.at].type
        own = estimates.get(name)
        if part.holds and all(values[at].to_pylist() == values[part.at].to_pylist() for at in part.corners):
            continue  # what it takes from there is no estimate
        if part.holds and not NUMBER.fullmatch(item_type):
            ends[output.table.column_names[part.at]] = values[part.corners[0]], values[part.corners[1]]
        ends_of = [_ends(output, at, estimates) for at in part.corners]
        by_row = [
            between(
                [number(v), *(end for ends in ends_of for end in ends[row])], confidence, inner.calls, inner.unknown
            )
            for row, v in enumerate(values[part.at].to_pylist())
        ]
        listed = (
            isinstance(own, list)
            if own is not None
            else (block.aggregate.present and bool(block.aggregate.keys)) or len(by_row) != 1
        )
        estimates[name] = by_row if listed else by_row[0]
    if block.aggregate.present and (not inner.certain or chosen_by(block, inner)):
        counts = {i.name for i in block.project.items if isinstance(i.expr, Call) and i.expr.name == "count"}
        for name, of_column in list(estimates.items()):
            estimates[name] = open_ended(of_column, 0.0 if name in counts else -inf)
    names = {item.name for item in block.project.items}
    table: pa.Table = output.table.select(list(range(n)))
    of_items = {name: of_column for name, of_column in estimates.items() if name in names}
    return replace(output, table=table, estimates=of_items or None, ends=ends)


def _ends(output: Output, at: int, estimates: Estimates) -> list[tuple[float | None, ...]]:
    """By row, the value of an added item and the ends of its own interval where it was estimated."""
    values = [number(v) for v in output.table.column(at).to_pylist()]
    own = estimates.get(output.table.column_names[at])
    if own is None:
        return [(v,) for v in values]
    listed = own if isinstance(own, list) else [own] * len(values)
    return [(v, e.low, e.high) for v, e in zip(values, listed, strict=True)]


def note_chosen(block: Block, inner: Inner, ctx: Context) -> None:
    """Says where estimated numbers of a sub-query decide which rows are returned.

    Args:
        block: the query around the sub-query.
        inner: the sub-query's numbers with their intervals.
    """
    cut = [key.expr for key in block.order.keys] if block.order.limit is not None else []
    if chosen_by(block, inner) or any(_estimated(expr, inner) for expr in cut):
        note = "estimates of a sub-query decide which rows there are: others might be returned if all rows were asked"
        ctx.note_once(note, "")


def chosen_by(block: Block, inner: Inner) -> bool:
    """Do estimated numbers decide which rows there are, or in which groups?"""
    exprs = [
        block.scan.where,
        block.aggregate.having,
        block.project.qualify,
        *(key.expr for key in block.aggregate.keys),
    ]
    exprs += [leaf.expr for leaf in block.filter.formula.leaves] if block.filter.formula is not None else []
    exprs += list(join_conditions(block.scan.source))
    exprs += [call.filter for item in block.project.items for call in aggregate_calls(item.expr, MONOTONE | {"count"})]
    return any(_estimated(expr, inner) for expr in exprs)
