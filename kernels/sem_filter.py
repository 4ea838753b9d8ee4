"""sem_filter: is the condition true of a row? Asked as rarely as three-valued logic, LIMIT and the budget allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, NULL, OPEN, TRUE, UNKNOWN, Formula, Leaf, Masks, decided
from uql.compiler.physical import Stage
from uql.compiler.syntax import Virtual
from uql.compiler.virtual import Kind
from uql.kernels.base import Context, Relation, Rids

CHUNK = 4096  # rows whose requests are made at once: bounds what is in memory


@dataclass(frozen=True, slots=True)
class Truth:
    """(n,) flags of the rows asked, in their order; a row with none of them was not asked to the end."""

    yes: NDArray[np.bool_]
    no: NDArray[np.bool_]
    unknown: NDArray[np.bool_]

    @property
    def answers(self) -> NDArray[np.float64]:
        """1 where the row passes, 0 where not, NaN where that is unknown."""
        return np.where(self.yes, 1.0, np.where(self.no, 0.0, np.nan))

    @property
    def complete(self) -> NDArray[np.bool_]:
        return self.yes | self.no | self.unknown


async def truth(formula: Formula, stages: tuple[Stage, ...], rids: Rids, relation: Relation, ctx: Context) -> Truth:
    """Evaluates the formula on these rows, stage after stage; a row that is decided is asked nothing more."""
    masks = _start(formula, rids, relation, ctx)
    for stage in stages:
        open_ = np.flatnonzero(~decided(formula.evaluate(masks)))
        if not len(open_):
            break
        await relation.ask(stage, rids[open_], ctx)
        _read(formula, masks, rids, relation, ctx)
    return _truth(formula, masks, rids, relation)


async def recalled(formula: Formula, stages: tuple[Stage, ...], relation: Relation, ctx: Context) -> tuple[Rids, Truth]:
    """The rows that the ledger's answers decide, at no call, and what they decide."""
    rids = np.arange(relation.n, dtype=np.int64)
    masks = _start(formula, rids, relation, ctx)
    for stage in stages:
        await relation.recall(stage, rids, ctx)
    _read(formula, masks, rids, relation, ctx)
    truth = _truth(formula, masks, rids, relation)
    done = truth.complete
    return rids[done], Truth(truth.yes[done], truth.no[done], truth.unknown[done])


def _truth(formula: Formula, masks: Masks, rids: Rids, relation: Relation) -> Truth:
    result = formula.evaluate(masks)
    yes, no = result == TRUE, result & TRUE == 0
    attempted = np.ones(len(rids), dtype=bool)
    for leaf in formula.leaves:
        for column in leaf.columns:
            relation.know(column)
            attempted &= relation.asked[column.id][rids]
    return Truth(yes, no, ~yes & ~no & attempted)


async def answers(formula: Formula, stages: tuple[Stage, ...], rids: Rids, relation: Relation, ctx: Context) -> Masks:
    """(leaves, n) the answers to every question of the formula about these rows, whether or not they are needed."""
    masks = _start(formula, rids, relation, ctx)
    for stage in stages:
        await relation.ask(stage, rids, ctx)
    _read(formula, masks, rids, relation, ctx)
    return masks


def _start(formula: Formula, rids: Rids, relation: Relation, ctx: Context) -> Masks:
    """What DuckDB alone knows of these rows."""
    masks: Masks = np.full((len(formula.leaves), len(rids)), OPEN, dtype=np.uint8)
    for i, leaf in enumerate(formula.leaves):
        if not leaf.semantic:
            masks[i] = _concrete(leaf, rids, relation, ctx)
    return masks


def _concrete(leaf: Leaf, rids: Rids, relation: Relation, ctx: Context) -> Masks:
    if not len(rids):
        return np.zeros(0, dtype=np.uint8)
    values = relation.evaluate([leaf.expr], rids, (), ctx).column(0).to_pylist()
    return np.array([NULL if v is None else TRUE if v else FALSE for v in values], dtype=np.uint8)


def _read(formula: Formula, masks: Masks, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Fills the masks of the leaves whose virtual columns have been asked."""
    for i, leaf in enumerate(formula.leaves):
        if not leaf.semantic:
            continue
        for column in leaf.columns:
            relation.know(column)
        known = np.logical_and.reduce([relation.asked[c.id][rids] for c in leaf.columns])
        todo = np.flatnonzero(known & (masks[i] == OPEN))
        if not len(todo):
            continue
        failed = np.logical_or.reduce([relation.failed[c.id][rids[todo]] for c in leaf.columns])
        masks[i][todo[failed]] = UNKNOWN
        fine = todo[~failed]
        if not len(fine):
            continue
        only = leaf.expr.column if isinstance(leaf.expr, Virtual) else None
        if only is not None and only.kind is Kind.CONDITION:
            values = list(relation.values[only.id][rids[fine]])
        else:
            values = relation.evaluate([leaf.expr], rids[fine], leaf.columns, ctx).column(0).to_pylist()
        masks[i][fine] = [NULL if v is None else TRUE if v else FALSE for v in values]


async def every(formula: Formula, stages: tuple[Stage, ...], rids: Rids, relation: Relation, ctx: Context) -> Truth:
    """The truth of all these rows, a chunk at a time."""
    parts = []
    for start in range(0, len(rids), CHUNK):
        parts.append(await truth(formula, stages, rids[start : start + CHUNK], relation, ctx))
    if not parts:
        return await truth(formula, stages, rids, relation, ctx)
    return Truth(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("yes", "no", "unknown")))


async def first(
    k: int,
    formula: Formula,
    stages: tuple[Stage, ...],
    rids: Rids,
    relation: Relation,
    ctx: Context,
    reserved: int = 0,
) -> tuple[Rids, bool, int]:
    """The first k of these rows that pass, in their order: an exact prefix. `reserved` calls are kept for what follows.

    Returns: their ids; whether the search ended for want of rows or of k rather than of budget; how many rows were unknown.
    Each batch is as large as the rows still wanted at the pass rate seen so far, at most doubling what was asked: few are asked in vain.
    """
    found: list[int] = []
    position, passed, unknown = 0, 0, 0
    while len(found) < k and position < len(rids):
        rate = (passed + 1) / (position + 1) if position else 1.0
        size = min(int(np.ceil((k - len(found)) / min(1.0, rate))), max(k - len(found), position))
        left = ctx.calls_left
        if left is not None:
            size = min(size, (left - reserved) // max(1, len(stages)))
            if size <= 0:  # what the ledger knows costs nothing; what it does not, ends the search below
                size = 1
        batch = rids[position : position + min(size, CHUNK)]
        result = await truth(formula, stages, batch, relation, ctx)
        complete = int(np.argmin(result.complete)) if not result.complete.all() else len(batch)
        found += [int(r) for r in batch[:complete][result.yes[:complete]]]
        passed += int(result.yes[:complete].sum())
        unknown += int(result.unknown[:complete].sum())
        position += complete
        if complete < len(batch):  # the budget ended here
            return np.array(found[:k], dtype=np.int64), False, unknown
    return np.array(found[:k], dtype=np.int64), True, unknown
