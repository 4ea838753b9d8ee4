"""Expressions over aggregates that are estimates: their values and ranges, by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import inf

import duckdb
import pyarrow as pa

from uql.compiler.physical import Block
from uql.compiler.subqueries import allows_try
from uql.compiler.syntax import Between, Binary, Call, Cast, Expr, Query, Unary
from uql.compiler.walk import walk, with_children
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.estimates.aggregate import scaled
from uql.kernels.estimates.groups import Groups
from uql.kernels.estimates.monotone_range import divisors, monotone
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
            if all(e.exact for e in of)
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
    names = list(units)
    steady = all(monotone(expr, unit) for unit in names)
    values_of: dict[Expr, list[float | None]] = {u: [e.value for e in units[u]] for u in names}
    parts = divisors(expr, units) if steady else []
    divided = [_evaluate(part, names, values_of, groups, ctx) for part in parts]
    if steady:
        center = _evaluate(expr, names, values_of, groups, ctx)
    else:  # a function of whole numbers alone may stand in it: & or printf('%d', …)
        center = _result_values(expr, groups, ctx)
    lows, highs = list(center), list(center)
    open_ = [not steady or any(_open(units[u][g]) for u in names) for g in range(n)]
    for corner in product((False, True), repeat=len(names)) if steady else ():
        at: dict[Expr, list[float | None]] = {
            u: [e.high if up else e.low for e in units[u]] for u, up in zip(names, corner, strict=True)
        }
        values = _evaluate(expr, names, at, groups, ctx)
        for part, before in zip(parts, divided, strict=True):
            for g, (a, b) in enumerate(zip(_evaluate(part, names, at, groups, ctx), before, strict=True)):
                open_[g] |= a is None or b is None or (a > 0) != (b > 0)
        for g, value in enumerate(values):
            if value is None and center[g] is not None:  # such as a number that is too large for the type of a cast
                open_[g] = True
            elif value is not None:
                low, high = lows[g], highs[g]
                lows[g] = value if low is None else min(low, value)
                highs[g] = value if high is None else max(high, value)
    result = []
    for g in range(n):
        first = units[names[0]][g]
        unknown = max(units[u][g].unknown for u in names)
        exact = all(units[u][g].exact for u in names)
        low = float("-inf") if open_[g] else lows[g]
        high = float("inf") if open_[g] else highs[g]
        result.append(Estimate(center[g], low, high, first.confidence, exact, first.calls, unknown, first.method))
    return result


def _open(estimate: Estimate) -> bool:
    ends = (estimate.low, estimate.high)
    return any(e is None or e in (float("inf"), float("-inf")) for e in ends)


def _evaluate(
    expr: Expr,
    names: Sequence[Expr],
    values: dict[Expr, list[float | None]],
    groups: Groups,
    ctx: Context,
) -> list[float | None]:
    """The expression for every group, with its aggregates (or quotients of them, with their factors) at given values."""
    n = len(next(iter(values.values())))
    replaced: dict[Expr, str] = dict(groups.keys)
    arrays = {"__g": pa.array(range(n), type=pa.int64())}
    for i, unit in enumerate(names):
        numbers = [v if v is None or abs(v) != float("inf") else None for v in values[unit]]
        arrays[f"u{i}"] = pa.array(numbers, type=pa.float64())
        if isinstance(unit, Call):
            replaced[unit] = f"u{i}"
        else:  # a quotient: the aggregate above the line stands for it, the one below is 1
            top, bottom = scaled(unit)
            arrays[f"one{i}"] = pa.array([1.0] * n, type=pa.float64())
            replaced[top], replaced[bottom] = f"u{i}", f"one{i}"

    def lenient(node: Expr) -> Expr:
        if node in replaced or isinstance(node, Query):
            return node
        below = with_children(node, lenient)
        return replace(below, lenient=True) if isinstance(below, Cast) else below

    sql = ctx.duck.expression(lenient(expr), replaced)
    table = ctx.duck.arrow(
        f"SELECT TRY_CAST({sql} AS DOUBLE) AS v FROM __units JOIN {quote(groups.table)} AS t USING (__g) ORDER BY __g",
        {"__units": pa.table(arrays)},
    )
    return [None if v is None or v != v else float(v) for v in table.column(0).to_pylist()]


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
