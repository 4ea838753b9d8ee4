"""sem_agg: what is said of a whole group, by a hierarchical summary: chunks that fit the context are mapped, then reduced."""

from __future__ import annotations

import json

import numpy as np

from uql.compiler.virtual import VirtualColumn
from uql.errors import BudgetError
from uql.kernels.base import Context, Relation, Rids
from uql.llm.questions import Cell, Row, Write

CHARS = 8_000  # of rows in one request: about 2,000 tokens
FANOUT = 8  # partial answers in one reducing request
_BOOLEAN = json.dumps({"type": "boolean"})


def calls_needed(lengths: list[int]) -> int:
    """Requests for one group whose rows have these lengths in characters."""
    chunks = max(1, len(_chunks(lengths)))
    total = chunks
    while chunks > 1:
        chunks = -(-chunks // FANOUT)
        total += chunks
    return total


def _chunks(lengths: list[int]) -> list[tuple[int, int]]:
    """Runs of rows whose lengths add up to at most CHARS; a longer row is a run of its own."""
    runs, start, size = [], 0, 0
    for i, length in enumerate(lengths):
        if i > start and size + length > CHARS:
            runs.append((start, i))
            start, size = i, 0
        size += length
    if start < len(lengths):
        runs.append((start, len(lengths)))
    return runs


async def summaries(
    columns: tuple[VirtualColumn, ...], members: list[Rids], relation: Relation, ctx: Context
) -> dict[VirtualColumn, list[object]]:
    """One answer for each column and group. Raises BudgetError (UQL401) before anything is sent where it does not fit."""
    plan: list[tuple[VirtualColumn, int, list[Row]]] = []
    calls = 0
    for column in columns:
        for g, rids in enumerate(members):
            rows = [row for row in relation.rows(np.sort(rids), [column]) if not row.is_null]
            plan.append((column, g, rows))
            calls += calls_needed([_length(row) for row in rows]) if rows else 0
    if not ctx.fits(calls):
        raise BudgetError(
            f"summaries of {len(members):,} groups need {calls:,} calls and the budget leaves {ctx.calls_left:,}",
            help=f"WITH (budget = …) with {calls} more calls, HAVING or WHERE for fewer groups, or WITH (budget = 'all')",
        )
    found: dict[VirtualColumn, list[object]] = {column: [None] * len(members) for column in columns}
    for column, g, rows in plan:
        if rows:
            found[column][g] = await _summary(column, rows, ctx)
    return found


def _length(row: Row) -> int:
    return sum(len(cell.value) if isinstance(cell.value, str) else 1000 for cell in row.cells)


async def _summary(column: VirtualColumn, rows: list[Row], ctx: Context) -> object:
    schema = _BOOLEAN if column.type == "BOOLEAN" else None
    runs = _chunks([_length(row) for row in rows])
    last = len(runs) == 1
    parts = [await _ask(column, rows[a:b], "summary", schema if last else None, ctx) for a, b in runs]
    while len(parts) > 1:
        groups = [parts[i : i + FANOUT] for i in range(0, len(parts), FANOUT)]
        last = len(groups) == 1
        shown = [[Row((Cell("part", str(p)),)) for p in group if p is not None] for group in groups]
        parts = [await _ask(column, rows, "reduce", schema if last else None, ctx) for rows in shown]
    return parts[0]


async def _ask(column: VirtualColumn, rows: list[Row], stage: str, schema: str | None, ctx: Context) -> object:
    return await ctx.write(
        Write(
            column.text,
            task="summary",
            schema=schema,
            shown=tuple(rows),
            parameters=(("stage", stage),),
            max_tokens=300,
        )
    )
