"""Expressions over aggregates that are estimates: their values and ranges, by group."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

import duckdb
import pyarrow as pa

from uql.compiler.physical import Block
from uql.compiler.subqueries import allows_try
from uql.compiler.syntax import Between, Binary, Call, Column, Expr, Unary
from uql.compiler.walk import has_window, rewrite, walk
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.estimates.aggregate import scaled
from uql.kernels.estimates.groups import Groups
from uql.kernels.estimates.monotone_range import corners, lenient, monotone
from uql.sampling.base import Estimate


def of_item(expr: Expr, calls: list[Call], groups: Groups, ctx: Context) -> list[Estimate]:
    """The estimate of an expression over these aggregates, by group.

    Args:
        calls: the aggregates in it, each as often as it stands there.
    Returns: one estimate a group.
    """
    if isinstance(expr, Call) and expr in groups.calls:
        return groups.estimates[expr]
    n = len(groups.estimates[calls[0]])
    only_seen = not groups.exact and any(call in groups.sample_only for call in calls)
    if groups.exact or only_seen:
        values = _result_values(expr, groups, ctx)
        parts = [[groups.estimates[call][g] for call in calls] for g in range(n)]
        return [
            Estimate(v, v, v, ctx.settings.confidence, True, of[0].calls)
            if _is_exact(expr, of, groups)
            else Estimate(v, -inf, inf, ctx.settings.confidence, False, of[0].calls, max(e.unknown for e in of), "seen")
            for v, of in zip(values, parts, strict=True)
        ]
    units: dict[Expr, list[Estimate]] = {}
    once = len(calls) == len(set(calls))
    for quotient, estimates in groups.ratios.items() if once else ():
        if any(node == quotient for node in walk(expr)):
            units[quotient] = estimates
    inside = {c for q in units for c in walk(q) if isinstance(c, Call)}
    units.update({c: groups.estimates[c] for c in calls if c not in inside})
    return _corners(expr, units, n, groups, ctx)


def _result_values(expr: Expr, groups: Groups, ctx: Context) -> list[float | None]:
    """The expression for every group as the result shows it, its aggregates in their own types; None where it is not a number."""
    sql = ctx.duck.expression(expr, {**groups.keys, **groups.calls})
    attempt = "TRY" if allows_try(expr) else ""
    table = ctx.duck.arrow(
        f"SELECT TRY_CAST({attempt}(CAST({sql} AS VARCHAR)) AS DOUBLE) FROM {quote(groups.table)} ORDER BY __g"
    )
    return [None if v is None or v != v else float(v) for v in table.column(0).to_pylist()]


def _corners(expr: Expr, units: dict[Expr, list[Estimate]], n: int, groups: Groups, ctx: Context) -> list[Estimate]:
    """An expression over estimates: its value, and the range over all combinations of their interval ends.

    Open-ended where the expression is not monotone in each estimate, or a divisor may be 0. Conservative: every estimate is at its own
    level.
    """
    steady = all(monotone(expr, unit) for unit in units)
    if steady:
        points = _points(expr, units, n, groups, ctx)
    else:  # a function of whole numbers alone may stand in it: & or printf('%d', …)
        points = [(value,) for value in _result_values(expr, groups, ctx)]
    result = []
    for values, of in zip(points, zip(*units.values(), strict=True), strict=True):
        known = [value for value in values if value is not None]
        # no value at an end, as of a divisor of another sign, or of a number that is too large for the type of a cast
        beyond = values[0] is not None and len(known) < len(values)
        if not steady or beyond or any(map(_open, of)):
            known = [-inf, inf]
        low, high = min(known, default=None), max(known, default=None)
        unknown, exact = max(e.unknown for e in of), _is_exact(expr, of, groups)
        result.append(Estimate(values[0], low, high, of[0].confidence, exact, of[0].calls, unknown, of[0].method))
    return result


def _is_exact(expr: Expr, own: Sequence[Estimate], groups: Groups) -> bool:
    """Is the value of an expression exact in the group that has these aggregates? A window reads those of every group."""
    if has_window(expr):
        return groups.exact and all(e.exact for estimates in groups.estimates.values() for e in estimates)
    return all(e.exact for e in own)


def _open(estimate: Estimate) -> bool:
    return any(end is None or end in (inf, -inf) for end in (estimate.low, estimate.high))


def _points(
    expr: Expr, units: dict[Expr, list[Estimate]], n: int, groups: Groups, ctx: Context
) -> list[tuple[float | None, ...]]:
    """By group, an expression at the estimates of its aggregates (or quotients of them, with their factors), then at their ends."""
    replaced: dict[Expr, str] = dict(groups.keys)
    arrays = {"__g": pa.array(range(n), type=pa.int64()), "one": pa.array([1.0] * n)}
    ends: dict[Expr, tuple[Expr, Expr]] = {}
    for i, (unit, estimates) in enumerate(units.items()):
        top, bottom = (unit, None) if isinstance(unit, Call) else scaled(unit)
        for part in ("value", "low", "high"):
            numbers = [getattr(e, part) for e in estimates]
            finite = [v if v is None or isfinite(v) else None for v in numbers]
            arrays[f"{part}{i}"] = pa.array(finite, type=pa.float64())
        replaced[top] = f"value{i}"
        if bottom is not None:  # of a quotient the aggregate above the line stands for it, the one below is 1
            replaced[bottom] = "one"
        low, high = (_at(unit, top, Column("", f"{end}{i}")) for end in ("low", "high"))
        ends[unit] = low, high
    points = [ctx.duck.expression(lenient(at, replaced), replaced) for at in (expr, *corners(expr, list(units), ends))]
    columns = ", ".join(f"TRY_CAST({sql} AS DOUBLE)" for sql in points)
    table = ctx.duck.arrow(
        f"SELECT {columns} FROM __units JOIN {quote(groups.table)} AS t USING (__g) ORDER BY __g",
        {"__units": pa.table(arrays)},
    )
    values = ([None if v is None or v != v else float(v) for v in column.to_pylist()] for column in table.columns)
    return list(zip(*values, strict=True))


def _at(unit: Expr, top: Expr, column: Column) -> Expr:
    """An aggregate, or a quotient of two, with a column in the place of the aggregate that stands for it."""
    result: Expr = rewrite(unit, lambda node: column if node == top else node)
    return result


# ------------------------------------------------------------------------------------------------------- which groups
COMPARED = ("<", "<=", ">", ">=", "=", "<>", "!=")


def note_open(block: Block, groups: Groups, order: Sequence[int], ctx: Context) -> None:
    """Says of which groups it is open, by the intervals of their estimates, whether HAVING, QUALIFY or LIMIT returns them.

    Args:
        order: the groups returned.
    """
    if groups.exact:
        return
    level = f"({ctx.settings.confidence:.0%})"
    true = set(range(len(next(iter(groups.estimates.values()), ()))))
    if block.aggregate.having is not None:
        true, false = _possible(block.aggregate.having, groups, ctx)
        returned = set(order)
        # what is left out may be so for another reason
        cut = block.order.limit is not None or block.project.qualify is not None
        inside, outside = len(true & false & returned), 0 if cut else len((true & false) - returned)
        parts = [f"{_groups(inside)} returned may not belong there"] if inside else []
        parts += [f"{_groups(outside)} left out may belong there"] if outside else []
        if parts:
            ctx.notes.append(f"HAVING rests on estimates: {', '.join(parts)} {level}")
    if block.project.qualify is not None and _estimated(block.project.qualify, groups):
        ctx.notes.append("QUALIFY rests on estimates: other groups might be returned if all rows were asked")
    near = _as_good(block, groups, order, true, ctx)
    if near:
        ctx.notes.append(f"ORDER BY rests on estimates: {_groups(near)} left out by LIMIT may come first {level}")


def _groups(n: int) -> str:
    return f"{n:,} group{'' if n == 1 else 's'}"


def _estimated(expr: Expr, groups: Groups) -> list[Call]:
    """The aggregates in an expression that are estimates."""
    calls = [n for n in walk(expr) if isinstance(n, Call) and n in groups.calls]
    return [c for c in calls if any(not e.exact for e in groups.estimates[c])]


def _possible(condition: Expr, groups: Groups, ctx: Context) -> tuple[set[int], set[int]]:
    """The groups for which a condition may be true, and those for which it may not be."""
    match condition:
        case Binary(op="AND", left=left, right=right):
            (a, not_a), (b, not_b) = _possible(left, groups, ctx), _possible(right, groups, ctx)
            return a & b, not_a | not_b
        case Binary(op="OR", left=left, right=right):
            (a, not_a), (b, not_b) = _possible(left, groups, ctx), _possible(right, groups, ctx)
            return a | b, not_a & not_b
        case Unary(op="NOT", operand=operand):
            true, false = _possible(operand, groups, ctx)
            return false, true
        case Between(operand=operand, low=low, high=high, negated=False):
            both = Binary("AND", Binary(">=", operand, low), Binary("<=", operand, high))
            return _possible(both, groups, ctx)
        case Binary(op=op, left=left, right=right) if op in COMPARED and _estimated(condition, groups):
            return _compared(op, left, right, groups, ctx)
    sql = ctx.duck.expression(condition, {**groups.keys, **groups.calls})
    try:
        table = ctx.duck.arrow(f"SELECT coalesce({sql}, false) FROM {quote(groups.table)} ORDER BY __g")
    except duckdb.Error:  # it has no value at the estimate of some group
        every_group = set(range(len(next(iter(groups.estimates.values()), ()))))
        return every_group, every_group
    true = {g for g, holds in enumerate(table.column(0).to_pylist()) if holds}
    false = set(range(table.num_rows)) - true
    open_ = {g for call in _estimated(condition, groups) for g, e in enumerate(groups.estimates[call]) if not e.exact}
    return true | open_, false | open_


def _compared(op: str, left: Expr, right: Expr, groups: Groups, ctx: Context) -> tuple[set[int], set[int]]:
    """The same of a comparison, by the intervals of both sides."""
    true, false = set(), set()
    for g, (a, b) in enumerate(zip(_ends(left, groups, ctx), _ends(right, groups, ctx), strict=True)):
        (low, high), (least, most) = a or (-inf, inf), b or (-inf, inf)
        match op:
            case "<" | "<=":
                may = low < most or (op == "<=" and low <= most)
                may_not = high > least or (op == "<" and high >= least)
            case ">" | ">=":
                may = high > least or (op == ">=" and high >= least)
                may_not = low < most or (op == ">" and low <= most)
            case _:
                same = low <= most and least <= high
                fixed = low == high == least == most
                may, may_not = (same, not fixed) if op == "=" else (not fixed, same)
        if may:
            true.add(g)
        if may_not:
            false.add(g)
    return true, false


def _ends(expr: Expr, groups: Groups, ctx: Context) -> list[tuple[float, float] | None]:
    """By group, the ends of an expression's interval; None where nothing is known of them."""
    calls = [n for n in walk(expr) if isinstance(n, Call) and n in groups.calls]
    if calls:
        estimates = of_item(expr, calls, groups, ctx)
        return [None if e.low is None or e.high is None else (e.low, e.high) for e in estimates]
    values = ctx.duck.arrow(
        f"SELECT TRY_CAST({ctx.duck.expression(expr, dict(groups.keys))} AS DOUBLE) FROM {quote(groups.table)} ORDER BY __g"
    )
    return [None if v is None else (float(v), float(v)) for v in values.column(0).to_pylist()]


def _as_good(block: Block, groups: Groups, order: Sequence[int], others: set[int], ctx: Context) -> int:
    """Groups among the others that LIMIT left out, whose interval overlaps that of a group returned in what ORDER BY goes by first."""
    if block.order.limit is None or block.order.offset or not block.order.keys or not order:
        return 0
    key = block.order.keys[0]
    if not _estimated(key.expr, groups):
        return 0
    sign = -1.0 if key.descending else 1.0
    ends = [None if e is None else sorted((sign * e[0], sign * e[1])) for e in _ends(key.expr, groups, ctx)]
    returned = [ends[g] for g in order]
    last = max((inf if e is None else e[1]) for e in returned)
    return sum(1 for g in others - set(order) if (e := ends[g]) is None or e[0] < last)
