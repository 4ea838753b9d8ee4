"""Rows that a person judged, in a table of the user's: what share of a model's yes and no is right.

The table has the columns that the condition reads, by their names, and a BOOLEAN column `answer`. It is named by `audit = 'table'`; that
of `examples = 'table'` is read likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from uql.base.errors import BudgetError, DataError
from uql.base.settings import CALLS_AGGREGATE
from uql.compiler.physical import Block, Stage
from uql.compiler.syntax import Call, Column
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import virtuals
from uql.kernels import asking, sem_filter
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.relation import Relation
from uql.sampling.calibration import Calibration, calibration
from uql.sampling.model_errors import Audit

UNMEASURED = (
    "the model's own errors are not included: `uql calibrate` measures them, `audit = 'table'` corrects for them"
)


def user_labels(
    name: str,
    setting: str,
    columns: Sequence[Column],
    relation: Relation,
    ctx: Context,
    *,
    answer: str = "CAST(answer AS BOOLEAN)",
    only: str = "",
) -> tuple[Relation, NDArray[Any]]:
    """The rows of the user's table as a relation with these columns, and (m,) its answers; rows without one are left
    out. Raises DataError (UQL504) where the table or a column is not there.

    Args:
        answer: SQL of the answer.  only: a condition in SQL.
    """
    table = ".".join(quote(part) for part in name.split("."))
    select_list = ", ".join(f"{quote(c.name)} AS {quote(c.label)}" for c in columns)
    try:
        temp_table, n = ctx.duck.create(
            f"SELECT {select_list}, {answer} AS __answer FROM {table} WHERE answer IS NOT NULL"
            + (f" AND {only}" if only else "")
        )
        labels = ctx.duck.arrow(f"SELECT __answer FROM {quote(temp_table)} ORDER BY rowid").column(0).to_pylist()
    except duckdb.Error as error:
        column_names = ", ".join(dict.fromkeys(c.name for c in columns))
        raise DataError(
            f"{setting} = '{name}' is not a table of judged rows: {str(error).splitlines()[0]}",
            code="UQL504",
            help=f"it needs the columns {column_names} and a {'BOOLEAN ' if 'BOOLEAN' in answer else ''}column answer",
        ) from error
    return Relation(ctx.duck, temp_table, n, dict(relation.fields), name), np.array(
        labels, dtype=bool if "BOOLEAN" in answer else object
    )


def columns_read(block: Block) -> tuple[Column, ...]:
    """The columns that the conditions of a WHERE show the model."""
    return tuple(dict.fromkeys(c for v in block.filter.columns for c in v.inputs))


def _beside_budget(calls: int, rows: Relation, ctx: Context) -> AbstractContextManager[None]:
    """Within it so many calls more may be made. Raises BudgetError (UQL401) where the budget is 0: then nothing may be asked."""
    if ctx.gate.calls_left == 0 and calls:
        raise BudgetError(
            f"the model's answers about the {rows.n:,} rows of audit = '{rows.source}' are {calls:,} calls, which do not count "
            "in the budget, but a budget of 0 leaves no row to estimate from; nothing was sent",
            help=f"WITH (budget = {CALLS_AGGREGATE}) gives an estimate",
        )
    return ctx.purse.beside(calls)


async def audit(block: Block, condition: VirtualColumn | None, relation: Relation, ctx: Context) -> Audit | None:
    """How the model's answers to `condition`, or to the WHERE where it is None, compare with the judged rows.

    None without `audit`, or where the model says nothing. A call a row, beside the budget. Raises BudgetError (UQL401)
    where nothing may be asked.

    Args:
        block: its WHERE is compared where `condition` is None.
        condition: one yes/no text.
    """
    name = ctx.settings.audit
    if name is None or (condition is None and block.filter.formula is None):
        return None
    stages = block.filter.stages if condition is None else (Stage((condition,)),)
    columns = columns_read(block) if condition is None else condition.inputs
    rows, truth = user_labels(name, "audit", columns, relation, ctx)
    rids: Rids = np.arange(rows.n, dtype=np.int64)
    if condition is None:
        with _beside_budget(rows.calls(stages), rows, ctx):
            model_truth = await sem_filter.truth(block.filter, rids, rows, ctx)
        positive, has_answer = model_truth.yes, model_truth.yes | model_truth.no
    else:
        with _beside_budget(rows.calls(stages), rows, ctx):
            await asking.ask(stages[0], rids, rows, ctx)
        answers = rows[condition]
        has_answer = answers.asked_mask & ~answers.failed
        positive = has_answer & (answers.values == True)  # noqa: E712 - an array of objects
    yes, no = has_answer & truth, has_answer & ~truth
    judged = Audit(int(yes.sum()), int((positive & yes).sum()), int(no.sum()), int((positive & no).sum()))
    if condition is not None or relation.pool is not None:
        return judged
    number, row = rows.matches(relation, columns)
    is_yes = truth[number]
    return replace(judged, matches=((number[is_yes], row[is_yes]), (number[~is_yes], row[~is_yes])))


async def note_errors(block: Block, calls: Sequence[Call], relation: Relation, ctx: Context) -> None:
    """Says once that numbers rest on answers of a model whose errors were not measured; not where DuckDB alone makes them.

    Args:
        block: its WHERE and group keys count as well.
        calls: the aggregates of the result.
    """
    if not relation.n:
        return
    columns = dict.fromkeys(block.filter.columns)
    columns |= dict.fromkeys(virtuals(*calls, *(key.expr for key in block.aggregate.keys)))
    for column in columns:
        if (await ctx.gate.audited(relation.question(column)))[1] is None:
            ctx.note_once(UNMEASURED, "")
            return


async def audited_probabilities(column: VirtualColumn, relation: Relation, ctx: Context) -> Calibration:
    """How the model's probabilities of a condition compare with the judged rows, which must be drawn at random.

    Args:
        column: a condition; the table of `audit` has the columns that it reads.
    Raises: BudgetError (UQL401) where nothing may be asked.
    """
    name = ctx.settings.audit
    assert name is not None
    rows, truth = user_labels(name, "audit", column.inputs, relation, ctx)
    stage, rids = Stage((column,)), np.arange(rows.n, dtype=np.int64)
    with _beside_budget(rows.calls((stage,)), rows, ctx):
        await asking.ask(stage, rids, rows, ctx)
    p = rows[column].probabilities.astype(np.float64)
    has_value = ~np.isnan(p)
    return calibration(p[has_value], truth[has_value].astype(np.float64), ctx.settings.confidence)
