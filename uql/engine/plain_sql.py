"""A query with nothing semantic in it is DuckDB's own: no plan, no kernel and no model is needed for it.

This path imports neither the planner nor the kernels, so that a plain query starts at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uql.base.names import free_names
from uql.compiler.bound import BoundQuery, BoundSelect
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import estimated_sources
from uql.compiler.walk import aggregate_calls
from uql.engine.outcome import Outcome
from uql.kernels.duck import Duck
from uql.llm.run_record import Cost

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.compiler.bound import BoundStatement
    from uql.sampling.base import Estimate


def outcome(bound: BoundStatement, duck: Duck, confidence: float, called: Sequence[str] = ()) -> Outcome:
    """The rows of a plain statement. Raises duckdb.Error.

    Args:
        bound: a statement without a text for a model.
        duck: it runs there.
        confidence: of the stored estimates that it reads, in (0, 1).
        called: what of them the macros that it calls read, as `based_on` lists it.
    """
    table, estimates = rows(bound.query, duck, confidence, bound.sql)
    based_on = list(dict.fromkeys([*estimated_sources(bound.query), *called]))
    notes: list[str] = []
    if based_on:
        from uql.engine import stored_estimates
        from uql.kernels.estimates.monotone_range import open_ended

        estimates = {name: open_ended(estimate) for name, estimate in estimates.items()}
        estimates |= stored_estimates.of_rows(bound.query, table, duck, confidence)
        note = stored_estimates.note(bound.query, duck.aggregates)
        notes += [note] if note else []
    return Outcome(
        table,
        [item.type for item in bound.query.items],
        estimates,
        [],
        Cost(),
        list(bound.warnings),
        notes,
        based_on,
        not based_on,
    )


def rows(
    query: BoundQuery, duck: Duck, confidence: float, sql: str | None = None
) -> tuple[pa.Table, dict[str, Estimate | list[Estimate]]]:
    """The rows of a concrete query, by its own text where there is one, and its aggregates as exact estimates. Raises duckdb.Error.

    Args:
        query: without a text for a model.
        confidence: that the exact estimates name.
        sql: its text for DuckDB; None: written from the query.
    """
    table = duck.output(query_sql(query)) if sql is None else duck.arrow(sql)
    table = table.select(list(range(len(query.items)))).rename_columns([item.name for item in query.items])
    aggregated = isinstance(query, BoundSelect) and query.aggregated
    positions = [i for i, item in enumerate(query.items) if aggregated and aggregate_calls(item.expr, duck.aggregates)]
    return table, exact_estimates(table, positions, isinstance(query, BoundSelect) and bool(query.group_by), confidence)


def exact_estimates(
    table: pa.Table, columns: list[int], grouped: bool, confidence: float
) -> dict[str, Estimate | list[Estimate]]:
    """The values of columns that are calculated from aggregates, as exact estimates.

    Args:
        columns: their places in it.
        grouped: has each group a row? Then there is a list of them.
        confidence: that they name.
    """
    estimates: dict[str, Estimate | list[Estimate]] = {}
    if columns:
        from uql.kernels.estimates.exact import exactly, numbers

        names = free_names(table.column_names)
        for i in columns:
            values = [exactly(v, confidence, 0) for v in numbers(table.column(i))]
            if grouped or values:
                estimates[names[i]] = values if grouped else values[0]
    return estimates
