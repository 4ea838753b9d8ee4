"""Tables that hold estimates, a column x with x_low and x_high: what a query over them may say of its numbers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from uql.compiler.bound import BoundDerived, BoundItem, BoundQuery, BoundSelect, BoundTable
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import estimated_sources, join_conditions, leaves
from uql.compiler.syntax import Call, Column, Expr
from uql.compiler.walk import aggregate_calls, walk
from uql.kernels.estimates.exact import number
from uql.kernels.estimates.monotone_range import between, corners, has_range, open_ended as open_ended

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.kernels.duck import Duck
    from uql.sampling.base import Estimate

    Estimates: TypeAlias = dict[str, Estimate | list[Estimate]]


def ends(query: BoundQuery) -> dict[Column, tuple[Column, Column]]:
    """The columns of FROM that a table holds as estimates, with the columns of their ends."""
    bounds: dict[Column, tuple[Column, Column]] = {}
    for leaf in leaves(query.source) if isinstance(query, BoundSelect) else ():
        if isinstance(leaf, BoundTable) and leaf.table.estimated_by:
            names = [f.name for f in leaf.table.fields]
            for name in names:
                low, high = (end_column(name, end, names) for end in ("low", "high"))
                if low is not None and high is not None:
                    bounds[Column(leaf.alias, name)] = Column(leaf.alias, low), Column(leaf.alias, high)
    return bounds


def end_column(name: str, end: str, columns: Iterable[str]) -> str | None:
    """The column that holds the `low` or `high` end of an estimated column, as `render.with_bounds` names it; None: there is none.

    Args:
        name: of the estimated column.
        end: "low" or "high".
        columns: all of the table.
    """
    by_name = {column.lower(): column for column in columns}
    candidate, last = f"{name}_{end}".lower(), None
    while candidate in by_name:
        last, candidate = by_name[candidate], candidate + "_"
    return last


def of_rows(query: BoundQuery, rows: pa.Table, duck: Duck, confidence: float) -> Estimates:
    """The estimates that the rows of a concrete query show, each within its interval; empty where there are none.

    Args:
        rows: of the query; where running it again gives them in another order, none of their estimates is told.
    """
    bounds = ends(query)
    if not isinstance(query, BoundSelect) or query.aggregated or query.distinct or _chosen_by(query, bounds):
        return {}
    output = {item.expr for item in query.items}
    items, places = list(query.items), dict[int, range]()
    for i, item in enumerate(query.items):
        columns = [n for n in walk(item.expr) if isinstance(n, Column) and n in bounds]
        if columns and has_range(item.expr, columns) and not set(bounds[columns[0]]) <= output:
            corner_expressions = corners(item.expr, columns, {column: bounds[column] for column in columns})
            places[i] = range(len(items), len(items) + len(corner_expressions))
            items += [
                BoundItem(expr, f"__corner{j}", "DOUBLE") for j, expr in zip(places[i], corner_expressions, strict=True)
            ]
    if not places:
        return {}
    table = duck.arrow(query_sql(replace(query, items=tuple(items))))
    estimates: Estimates = {}
    for i, at in places.items():
        if table.column(i).to_pylist() != rows.column(i).to_pylist():
            return {}
        values = zip(*(table.column(j).to_pylist() for j in (i, *at)), strict=True)
        estimates[query.items[i].name] = [between([number(x) for x in v], confidence) for v in values]
    return estimates


def widen_estimates(query: BoundQuery, estimates: Mapping[str, Estimate | list[Estimate]]) -> Estimates:
    """The estimates of a query with texts; one over numbers that a table holds as estimates is open."""
    if not isinstance(query, BoundSelect):
        return dict(estimates)
    columns = set(ends(query))
    inside = {
        leaf.alias for leaf in leaves(query.source) if isinstance(leaf, BoundDerived) and estimated_sources(leaf.query)
    }
    open_names = {item.name for item in query.items if _holds(item.expr, columns, inside)}
    chosen = _chosen_by(query, columns) or any(_holds(e, set(), inside) for e in _choosing(query))
    return {
        name: open_ended(estimate) if chosen or name in open_names else estimate for name, estimate in estimates.items()
    }


def note(query: BoundQuery, aggregates: Container[str]) -> str | None:
    """What stands for the interval of an aggregate over columns that a table holds as estimates."""
    bounds = ends(query)
    for item in query.items if isinstance(query, BoundSelect) and query.aggregated else ():
        for call in aggregate_calls(item.expr, aggregates):
            columns = [n for n in walk(call) if isinstance(n, Column) and n in bounds]
            if columns:
                low, high = (column.name for column in bounds[columns[0]])
                name = columns[0].name
                return f"{name} is an estimate in its table: its interval stands in {low} and {high}, and {call.name}({name}) has none"
    return None


def _choosing(query: BoundSelect) -> list[Expr]:
    """The expressions that decide which rows there are, and in which groups."""
    parts = [query.where, query.having, query.qualify, *(key.expr for key in query.group_by)]
    parts += [call.filter for item in query.items for call in walk(item.expr) if isinstance(call, Call)]
    cut = [key.expr for key in query.order_by] if query.limit is not None or query.offset else []
    return [part for part in (*parts, *join_conditions(query.source), *cut) if part is not None]


def _chosen_by(query: BoundSelect, columns: Iterable[Column]) -> bool:
    return any(_holds(expr, set(columns), set()) for expr in _choosing(query))


def _holds(expr: Expr, columns: set[Column], inside: set[str]) -> bool:
    return any(isinstance(n, Column) and (n in columns or n.table in inside) for n in walk(expr))
