"""sem_agg: a text about a whole group, by a hierarchical summary: chunks that fit the context are mapped, then reduced."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from uql.base.errors import BudgetError
from uql.base.sql_text import literal
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.kernels.sem_classify import label_queries
from uql.llm.questions import NONE, Cell, Row, Summary
from uql.operators.types import json_schema, parse_type

CHARS = 8_000  # of rows in one request: about 2,000 tokens
FANOUT = 8  # partial answers in one reducing request


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


@dataclass(frozen=True, slots=True)
class Summaries:
    """The answers about groups: of each column one a group. `exact`: was each written from all rows of its group?"""

    answers: dict[VirtualColumn, list[object]]
    exact: bool


async def summaries(
    columns: tuple[VirtualColumn, ...], members: list[Rids], relation: Relation, ctx: Context
) -> Summaries:
    """One answer for each column and group, from its rows in the order of their content, so that their order in the table means nothing.

    Each row carries its number among the candidates, so that a summary can cite it. Where the calls do not fit in the budget, each
    group is summarised from as many random rows as do, and a note says so. Raises BudgetError (UQL401) where not even one call a
    group fits.

    Args:
        members: (groups,) the rows of each group.
    """
    label_queries(columns, relation)
    plan: list[tuple[VirtualColumn, int, list[Row]]] = []
    everyone = np.concatenate([np.zeros(0, dtype=np.int64), *members])
    for column in columns:
        shown = iter(relation.rows(everyone, [column]))  # read at once: there may be thousands of groups
        for g, rids in enumerate(members):
            numbered = zip(rids, islice(shown, len(rids)), strict=True)
            rows = [_numbered(int(rid), row) for rid, row in numbered if not row.is_null]
            if rows:
                plan.append((column, g, sorted(rows, key=_content)))
    calls = sum(calls_needed([_length(row) for row in rows]) for _, _, rows in plan)
    left = ctx.purse.remaining
    exact = left is None or calls <= left
    if left is not None and not exact:
        if left < len(plan):
            raise BudgetError(
                f"summaries of {len(members):,} groups need {calls:,} calls and the budget leaves {left:,}",
                help=f"WITH (budget = {ctx.purse.budget.spent_calls + calls}) or more, or HAVING or WHERE for fewer groups; "
                "answers so far are kept",
            )
        share = left // len(plan)
        thinned = [(column, g, _thinned(rows, share, ctx)) for column, g, rows in plan]
        fewer = sum(len(a[2]) < len(b[2]) for a, b in zip(thinned, plan, strict=True))
        plan = thinned
        ctx.notes.append(
            f"{fewer} of {len(plan)} summaries were written from random rows of their groups: all would need {calls:,} calls"
        )
    answers: dict[VirtualColumn, list[object]] = {column: [None] * len(members) for column in columns}
    for column, g, rows in plan:
        given = replace(column, labels=relation.labels(column))
        answers[column][g] = await _summary(given, rows, relation.source, ctx)
    return Summaries(answers, exact)


def _numbered(rid: int, row: Row) -> Row:
    return Row((Cell("row", str(rid)), *row.cells), row.holes)


def _content(row: Row) -> tuple[str, ...]:
    return tuple(str(cell.value) for cell in row.cells[1:])


def _thinned(rows: list[Row], calls: int, ctx: Context) -> list[Row]:
    """As many random rows as that many calls can read, in their order."""
    n_rows = len(rows)
    order = ctx.rng.permutation(len(rows))
    while n_rows > 1 and calls_needed([_length(rows[i]) for i in sorted(order[:n_rows])]) > calls:
        n_rows = max(1, n_rows * 3 // 4)
    return [rows[i] for i in sorted(order[:n_rows])]


def _length(row: Row) -> int:
    return sum(len(cell.value) if isinstance(cell.value, str) else 1000 for cell in row.cells)


async def _summary(column: VirtualColumn, rows: list[Row], source: str, ctx: Context) -> object:
    type = _type(column)
    schema = None if type == "VARCHAR" else json.dumps(json_schema(parse_type(type), nullable=False))
    if schema:  # nothing is cited
        rows = [replace(row, cells=row.cells[1:]) for row in rows]
    runs = _chunks([_length(row) for row in rows])
    last = len(runs) == 1
    parts = [await _ask(column, rows[a:b], "summary", schema if last else None, source, ctx) for a, b in runs]
    while len(parts) > 1:
        groups = [parts[i : i + FANOUT] for i in range(0, len(parts), FANOUT)]
        last = len(groups) == 1
        inputs = [[Row((Cell("part", str(p)),)) for p in group if p is not None] for group in groups]
        parts = [await _ask(column, rows, "reduce", schema if last else None, source, ctx) for rows in inputs]
    return parts[0]


def _type(column: VirtualColumn) -> str:
    """The type in which a group is answered: yes or no, one of labels, or else words, which are cast afterwards."""
    if not column.labels:
        return "BOOLEAN" if column.type == "BOOLEAN" else "VARCHAR"
    options = dict.fromkeys((*column.labels, *([NONE] if column.none_of_these else [])))
    return f"ENUM({', '.join(map(literal, options))})"


async def _ask(
    column: VirtualColumn, rows: list[Row], stage: str, schema: str | None, source: str, ctx: Context
) -> object:
    type = _type(column)
    return await ctx.write(
        Summary(
            column.text,
            schema=schema,
            shown=tuple(rows),
            parameters=(("stage", stage), *((("type", type),) if type != "VARCHAR" else ())),
            max_tokens=300,
        ),
        source=source,
    )
