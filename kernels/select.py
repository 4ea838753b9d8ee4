"""Rows chosen by a semantic WHERE: every candidate is asked where they fit in the budget, the first k where LIMIT allows, else a search."""

from __future__ import annotations

import numpy as np

from uql.compiler.physical import Block, Goal, Stage, stages
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import is_semantic
from uql.errors import BudgetError
from uql.kernels import sem_filter
from uql.kernels.base import Context, Relation, Rids, need
from uql.kernels.finish import Output, chosen, rows
from uql.kernels.sem_filter import CHUNK


async def select(block: Block, relation: Relation, ctx: Context) -> Output:
    """The output rows of a block without aggregates."""
    every = np.arange(relation.n, dtype=np.int64)
    passing = every if block.formula is None else await _passing(block, every, relation, ctx)
    early = [c for stage in block.row_stages for c in stage.columns]
    filter_columns = [c for stage in block.filter_stages for c in stage.columns]
    if block.row_stages:
        unknown_rows = _unasked(passing, block.row_stages, relation)
        if block.formula is None:
            need(ctx, unknown_rows, f"{_texts(early)} for {len(passing):,} rows")
        await ask_all(block.row_stages, passing, relation, ctx)
        passing = dropped(passing, early, relation, ctx)
    known = [*filter_columns, *early]
    if block.distinct:
        return rows(block, passing, known, relation, ctx)
    rids = chosen(block, passing, known, relation, ctx)
    if block.late_stages:
        late = [c for stage in block.late_stages for c in stage.columns]
        need(ctx, len(rids) * len(block.late_stages), f"{_texts(late)} for the {len(rids):,} rows returned")
        await ask_all(block.late_stages, rids, relation, ctx)
        rids, known = dropped(rids, late, relation, ctx), [*known, *late]
    return rows(block, rids, known, relation, ctx)


async def ask_all(wanted: tuple[Stage, ...], rids: Rids, relation: Relation, ctx: Context) -> None:
    """Asks every stage of these rows, a chunk at a time."""
    for start in range(0, len(rids), CHUNK):
        for stage in wanted:
            await relation.ask(stage, rids[start : start + CHUNK], ctx)
    left_out = sum(int((~relation.asked[c.id][rids]).sum()) for stage in wanted for c in stage.columns[:1])
    if left_out and len(rids):
        ctx.partial = True
        ctx.notes.append(f"the budget ended: {left_out:,} values were not asked and are NULL")


def dropped(rids: Rids, columns: list[VirtualColumn], relation: Relation, ctx: Context) -> Rids:
    """The rows without those that failed, under on_error = 'drop'."""
    if ctx.settings.on_error != "drop" or not columns or not len(rids):
        return rids
    failed = np.logical_or.reduce([relation.failed[c.id][rids] for c in columns])
    if failed.any():
        ctx.notes.append(f"{int(failed.sum()):,} rows without an answer were dropped (on_error = 'drop')")
    return rids[~failed]


def _unasked(rids: Rids, wanted: tuple[Stage, ...], relation: Relation) -> int:
    total = 0
    for stage in wanted:
        missing = np.zeros(len(rids), dtype=bool)
        for column in stage.columns:
            relation.know(column)
            missing |= ~relation.asked[column.id][rids]
        total += int(missing.sum())
    return total


def _texts(columns: list[VirtualColumn]) -> str:
    return ", ".join(f'"{c.text}"' for c in columns)


async def _passing(block: Block, rids: Rids, relation: Relation, ctx: Context) -> Rids:
    assert block.formula is not None
    per_row, per_passing = len(block.filter_stages), len(block.row_stages)
    if block.goal is Goal.FIRST and block.wanted is not None:
        return await _first(block, block.wanted, rids, relation, ctx)
    left = ctx.calls_left
    n = len(rids)
    if left is None or n * (per_row + per_passing) <= left:
        truth = await sem_filter.every(block.formula, block.filter_stages, rids, relation, ctx)
        return _stated(truth, rids, n, ctx)
    columns = [c for stage in (*block.filter_stages, *block.row_stages) for c in stage.columns]
    fused = stages(tuple(columns))
    if n * len(fused) <= left:  # one request for WHERE and SELECT: it costs no second call a row
        await ask_all(fused, rids, relation, ctx)
        truth = await sem_filter.every(block.formula, block.filter_stages, rids, relation, ctx)
        return _stated(truth, rids, n, ctx)
    if per_passing and any(is_semantic(k.expr) for k in block.order_by):
        raise BudgetError(
            f"ORDER BY a quoted text needs the value of each of {n:,} rows, and the budget leaves {left:,} calls; "
            "nothing was sent",
            help=f"WITH (budget = {n * (per_row + per_passing)}) or WITH (budget = 'all')",
        )
    return await _search(block, rids, relation, ctx)


async def _first(block: Block, k: int, rids: Rids, relation: Relation, ctx: Context) -> Rids:
    """Rows up to the k-th that passes; without ORDER BY in the order that a search thinks best."""
    assert block.formula is not None
    reserved = k * (len(block.late_stages) + len(block.row_stages))
    if reserved:
        need(ctx, reserved + len(block.filter_stages), f"the {k} rows of LIMIT with their values")
    order = rids if block.order_by else search_order(block, relation, ctx, k)
    found, ended, unknown = await sem_filter.first(
        k, block.formula, block.filter_stages, order, relation, ctx, reserved
    )
    if not ended:
        ctx.exact = False
        ctx.partial = True
        ctx.notes.append(f"first {len(found)} of {k}: the budget ended")
    if unknown:
        ctx.exact = False
        ctx.notes.append(f"{unknown:,} rows gave no answer and are not among the rows returned")
    return found


def search_order(block: Block, relation: Relation, ctx: Context, k: int) -> Rids:
    return np.arange(relation.n, dtype=np.int64)


def _stated(truth: sem_filter.Truth, rids: Rids, n: int, ctx: Context) -> Rids:
    unknown, unasked = int(truth.unknown.sum()), n - int(truth.complete.sum())
    if unknown:
        ctx.exact = False
        ctx.notes.append(f"{unknown:,} of {n:,} rows gave no answer and are not among the rows returned")
    if unasked:
        ctx.exact, ctx.partial = False, True
        ctx.notes.append(f"{unasked:,} of {n:,} rows were not asked: the budget ended")
    return rids[truth.yes]


async def _search(block: Block, rids: Rids, relation: Relation, ctx: Context) -> Rids:
    """As many of the rows that pass as the budget finds, and a statement of how many there may be."""
    from uql.kernels.sample import draw

    sampled = await draw(block, relation, ctx)
    estimate = sampled.sampler.estimate()
    found = np.sort(sampled.passing)
    ctx.exact = sampled.every and not sampled.truth.unknown.any()
    if not ctx.exact:
        level = f"{ctx.settings.confidence:.0%}"
        about = "?" if estimate.value is None else f"{estimate.value:,.0f}"
        ctx.notes.append(
            f"found {len(found):,} of about {about} rows that pass ({level}: {estimate.low:,.0f}–{estimate.high:,.0f}); "
            f"{len(sampled.told):,} of {relation.n:,} rows were asked"
        )
    return found
