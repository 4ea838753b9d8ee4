"""sem_filter: is the condition true of a row? Asked as rarely as three-valued logic, LIMIT and the budget allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import OPEN, TRUE, UNKNOWN, Formula, Leaf, Masks, masks_of
from uql.compiler.orders import best, learned
from uql.compiler.physical import SemFilter, Stage
from uql.compiler.syntax import Cast, TypeName
from uql.compiler.virtual import Virtual
from uql.kernels import asking
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.sampling.base import Flags, Floats

CHUNK = 4096  # rows whose requests are made at once, at most, where what is asked next depends on the answers
# rows that are asked everything before an order is chosen, where they are at most this share
PILOT, PILOT_SHARE = (8, 0.05)
# rows between two looks at the order, at first; each look waits for twice as many rows as the last one
FIRST_BATCH = 32
LEAST_SEEN = 8  # answers to a term before its pass rate is used
MOST_KEPT = 20_000  # rows whose answers an order is learned from, the latest ones
GROWN = 1.5  # times as many answers, before the order is looked at again


@dataclass(frozen=True, slots=True)
class Truth:
    """(n,) flags of the rows asked, in their order; a row with none of them was not asked to the end."""

    yes: Flags
    no: Flags
    unknown: Flags

    @property
    def answers(self) -> Floats:
        """1 where the row passes, 0 where not, NaN where that is unknown."""
        return np.where(self.yes, 1.0, np.where(self.no, 0.0, np.nan))

    @property
    def complete(self) -> Flags:
        return self.yes | self.no | self.unknown

    def of(self, rows: NDArray[Any]) -> Truth:
        """That of some of the rows, by place or by flag."""
        return Truth(self.yes[rows], self.no[rows], self.unknown[rows])

    def first(self, n: int) -> Truth:
        """That of the first n rows."""
        return Truth(self.yes[:n], self.no[:n], self.unknown[:n])


async def truth(where: SemFilter, rids: Rids, relation: Relation, ctx: Context) -> Truth:
    """Evaluates the formula on these rows, stage after stage; a row that is decided is asked nothing more.

    Args:
        where: without a formula every row passes.
        rids: (n,) the rows.
    """
    formula, stages = where.formula, where.stages
    if formula is None:
        yes = np.ones(len(rids), dtype=bool)
        return Truth(yes, ~yes, ~yes)
    masks = _start(formula, rids, relation)
    common = order_now(formula, stages, relation, ctx)
    # one answer may decide a row, also of questions that travel together
    if sum(len(stage.columns) for stage in stages) > 1:
        await _note_ledger(stages, relation, ctx)
        await _take_known(formula, [stages[i] for i in common], masks, rids, relation, ctx)
    for i in common:
        is_open = _open(formula, stages[i], masks)
        if is_open.any():
            await asking.ask(stages[i], rids[is_open], relation, ctx)
            _read(formula, masks, rids, relation)
    _remember(formula, masks, rids, relation)
    return _truth(formula, masks)


def _learns(stages: tuple[Stage, ...], ctx: Context) -> bool:
    """Is there an order to be learned?"""
    return len(stages) > 1 and "order_while_running" not in ctx.settings.disabled_rules


def _open(formula: Formula, stage: Stage, masks: Masks) -> Flags:
    """(n,) the rows whose fate still depends on what this stage asks."""
    own = [j for j, leaf in enumerate(formula.leaves) if any(c in stage.columns for c in leaf.columns)]
    still: Flags = np.logical_or.reduce(formula.relevant(masks)[own], axis=0)
    return still


async def _note_ledger(stages: tuple[Stage, ...], relation: Relation, ctx: Context) -> None:
    """Notes which questions were asked before this run, before it asks them itself."""
    for column in (c for stage in stages for c in stage.columns):
        await asking.in_ledger(column, relation, ctx)


async def _take_known(
    formula: Formula, stages: Sequence[Stage], masks: Masks, rids: Rids, relation: Relation, ctx: Context
) -> None:
    """Takes what is known of these rows at no call, stage after stage: what earlier queries paid for, in another order maybe, and NULL
    where there is nothing to ask. Either may decide a row. It depends on nothing that differs where the statement is given again."""
    for stage in stages:
        if stage is stages[0] and len(stage.columns) == 1:
            continue  # it is asked at once
        unasked = np.logical_or.reduce([~relation[c].asked_mask[rids] for c in stage.columns])
        positions = np.flatnonzero(np.logical_and(unasked, _open(formula, stage, masks)))
        if len(positions):
            await asking.recall(stage, rids[positions], relation, ctx, again=True)
            _read(formula, masks, rids, relation)


def order_now(formula: Formula, stages: tuple[Stage, ...], relation: Relation, ctx: Context) -> Sequence[int]:
    """The order in which the stages are asked: the cheapest by the answers to rows so far, else as planned.

    Terms may depend on each other, and rows asked in part count too (`orders.learned`). Nothing is changed before each term has
    LEAST_SEEN answers. No order changes an answer; it is looked at again when half as many answers have come in.

    Args:
        stages: the requests of the WHERE, as planned.
    Returns: positions in `stages`.
    """
    planned = range(len(stages))
    if not _learns(stages, ctx):
        return planned
    counts = [relation.filters.terms.get(leaf.expr, (0, 0)) for leaf in formula.leaves]
    state = relation.filters.of(formula)
    profile = state.profile
    if profile is None or any(n < LEAST_SEEN for n, _ in counts):
        return planned
    total = sum(n for n, _ in counts)
    made_at, order = state.order
    if len(order) != len(stages) or total >= GROWN * made_at:
        order, _ = best(formula, stages, learned(profile), [stage.cost for stage in stages])
        state.order = (total, order)
    return order


async def recalled(where: SemFilter, relation: Relation, ctx: Context) -> tuple[Rids, Truth]:
    """The rows that the ledger's answers decide, at no call, and what they decide.

    Args:
        where: with a formula.
    Returns: the (n,) row ids, and their truth.
    """
    rids = np.arange(relation.n, dtype=np.int64)
    truth = await _recalled_truth(where, rids, relation, ctx)
    done = truth.complete
    return rids[done], truth.of(done)


async def _recalled_truth(where: SemFilter, rids: Rids, relation: Relation, ctx: Context) -> Truth:
    """What the ledger's answers decide of these rows; those that would take a call are not complete."""
    formula, stages = where.formula, where.stages
    assert formula is not None
    masks = _start(formula, rids, relation)
    for stage in stages:
        await asking.recall(stage, rids, relation, ctx)
    _read(formula, masks, rids, relation)
    return _truth(formula, masks)


def _truth(formula: Formula, masks: Masks) -> Truth:
    """What the answers so far decide; unknown where nothing that still matters is left to ask."""
    result = formula.evaluate(masks)
    yes, no = result == TRUE, result & TRUE == 0
    unasked = (formula.relevant(masks) & (masks == OPEN)).any(axis=0)  # the budget ended before it
    return Truth(yes, no, ~yes & ~no & ~unasked)


async def answers(where: SemFilter, rids: Rids, relation: Relation, ctx: Context) -> Masks:
    """(leaves, n) the answers to every question of the formula about these n rows, whether or not they are needed.

    Args:
        where: with a formula.
        rids: (n,) int, rows of the relation.
    """
    formula, stages = where.formula, where.stages
    assert formula is not None
    masks = _start(formula, rids, relation)
    if _learns(stages, ctx):
        await _note_ledger(stages, relation, ctx)
    for stage in stages:
        await asking.ask(stage, rids, relation, ctx)
    _read(formula, masks, rids, relation)
    _remember(formula, masks, rids, relation)
    return masks


def _remember(formula: Formula, masks: Masks, rids: Rids, relation: Relation) -> None:
    """Keeps what was answered of these rows, from which orders are learned."""
    state = relation.filters.of(formula)
    before = state.profile
    state.profile = masks if before is None else np.concatenate([before, masks], axis=1)[:, -MOST_KEPT:]


async def _pilot(where: SemFilter, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Asks everything of a few random rows, so that each term has answers from which a first order can be chosen.

    None where there is nothing to order, where the terms are known already (from earlier queries or rows), or where it would be
    more than PILOT_SHARE of the rows.
    """
    leaves = where.formula.leaves if where.formula is not None else ()
    enough = all(relation.filters.terms.get(leaf.expr, (0, 0))[0] >= LEAST_SEEN for leaf in leaves)
    if enough or not _learns(where.stages, ctx):
        return
    if len(rids) * PILOT_SHARE < PILOT:
        return
    chosen = np.sort(np.random.default_rng([ctx.settings.seed, len(rids)]).choice(rids, PILOT, replace=False))
    await answers(where, chosen, relation, ctx)


def _start(formula: Formula, rids: Rids, relation: Relation) -> Masks:
    """What DuckDB alone knows of these rows."""
    masks: Masks = np.full((len(formula.leaves), len(rids)), OPEN, dtype=np.uint8)
    for i, leaf in enumerate(formula.leaves):
        if not leaf.semantic:
            masks[i] = truth_of(leaf, rids, relation)
            _count(leaf, masks[i], relation)
    return masks


def _count(leaf: Leaf, masks: Masks, relation: Relation) -> None:
    """Adds to the pass rate of a term."""
    n, yes = relation.filters.terms.get(leaf.expr, (0, 0))
    relation.filters.terms[leaf.expr] = (n + len(masks), yes + int((masks == TRUE).sum()))


def truth_of(leaf: Leaf, rids: Rids, relation: Relation) -> Masks:
    """(n,) the truth of a term by DuckDB, whose cast to BOOLEAN says what is true of another type.

    Args:
        leaf: whose texts, if any, were asked of these rows.
        rids: (n,) int, rows of the relation.
    """
    if not len(rids):
        return np.zeros(0, dtype=np.uint8)
    condition = Cast(leaf.expr, TypeName("BOOLEAN"), span=leaf.expr.span)
    return masks_of(relation.evaluate([condition], rids, leaf.columns).column(0).to_pylist())


def _read(formula: Formula, masks: Masks, rids: Rids, relation: Relation) -> None:
    """Fills the masks of the leaves whose virtual columns have been asked."""
    for i, leaf in enumerate(formula.leaves):
        if not leaf.semantic:
            continue
        asked_mask = np.logical_and.reduce([relation[c].asked_mask[rids] for c in leaf.columns])
        pending = np.flatnonzero(asked_mask & (masks[i] == OPEN))
        if not len(pending):
            continue
        failed = np.logical_or.reduce([relation[c].failed[rids[pending]] for c in leaf.columns])
        masks[i][pending[failed]] = UNKNOWN
        fine = pending[~failed]
        if not len(fine):
            continue
        only = leaf.expr.column if isinstance(leaf.expr, Virtual) else None
        if only is not None and only.is_condition:
            masks[i][fine] = masks_of(relation[only].values[rids[fine]])
        else:
            masks[i][fine] = truth_of(leaf, rids[fine], relation)
        _count(leaf, masks[i][fine], relation)


async def every(where: SemFilter, rids: Rids, relation: Relation, ctx: Context) -> Truth:
    """The truth of all these n rows, a chunk at a time.

    Args:
        where: all rows pass where it has no formula.
        rids: (n,) int, rows of the relation.
    """
    if not len(rids) or where.formula is None:
        return await truth(where, rids, relation, ctx)
    await _pilot(where, rids, relation, ctx)
    learns = _learns(where.stages, ctx)
    order: Rids | None = None
    if learns:  # the first rows stand for all the others only where they are random
        order = np.random.default_rng([ctx.settings.seed, len(rids), 1]).permutation(len(rids)).astype(np.int64)
    part = relation.in_parts(
        rids if order is None else rids[order], [column for stage in where.stages for column in stage.columns]
    )
    flags = np.zeros((3, len(rids)), dtype=bool)
    start = 0
    while len(rows := part(max(FIRST_BATCH, start) if learns else len(rids))):
        found = await truth(where, rows, relation, ctx)
        stretch = slice(start, start + len(rows))
        flags[:, stretch if order is None else order[stretch]] = found.yes, found.no, found.unknown
        start += len(rows)
    return Truth(*flags)


async def first(
    k: int,
    where: SemFilter,
    rids: Rids,
    relation: Relation,
    ctx: Context,
    reserved: int = 0,
    riding: tuple[Stage, ...] = (),
) -> tuple[Rids, bool, Rids]:
    """The first k of these rows that pass, in their order: an exact prefix.

    Args:
        rids: (n,) the rows, in the order in which they are asked.
        reserved: calls that are kept for what follows.
        riding: values that rode along with WHERE; of rows that the ledger decides they take calls, which are kept too.
    Returns: their ids; whether the search ended for want of rows or of k rather than of budget; the rows that were unknown.
    Each batch is as large as the rows still wanted at the pass rate seen so far, at most doubling what was asked: few are asked in vain.
    Behind one that cost nothing (NULLs, equal rows, what the ledger knows) the next has twice as many rows, if it takes no more calls.
    """
    matches: list[int] = []
    unknown: list[Rids] = [rids[:0]]
    position, passed, free, owed = 0, 0, 0, 0
    each = max(len(where.stages), len(riding))
    while len(matches) < k and position < len(rids):
        rate = (passed + 1) / (position + 1) if position else 1.0
        size = min(int(np.ceil((k - len(matches)) / min(1.0, rate))), max(k - len(matches), position))
        room, left = ctx.room(reserved + owed, each), ctx.purse.remaining
        if room is not None:
            size = max(1, min(size, room))
        wide = rids[position : position + min(2 * free, CHUNK)]
        if len(wide) <= size or relation.calls(where.stages, wide) > size:
            wide = rids[position : position + min(size, CHUNK)]
        known = await _recalled_truth(where, wide, relation, ctx)
        enough = np.flatnonzero(np.cumsum(known.yes) >= k - len(matches))
        batch = wide[: enough[0] + 1] if len(enough) else wide  # rows behind those that suffice are not asked
        free = len(batch)
        # what the ledger knows costs nothing; what it does not, ends the search where no calls are left for it
        result = known.first(len(batch)) if room == 0 else await truth(where, batch, relation, ctx)
        if left is None or ctx.purse.remaining != left:
            free = 0
        complete = int(np.argmin(result.complete)) if not result.complete.all() else len(batch)
        matches += [int(r) for r in batch[:complete][result.yes[:complete]]]
        passed += int(result.yes[:complete].sum())
        unknown.append(batch[:complete][result.unknown[:complete]])
        position += complete
        ended = complete == len(batch)
        if riding:
            found = np.array(matches[:k], dtype=np.int64)
            owed = await asking.open_calls(riding, relation, ctx, found)
            if not ctx.purse.fits(reserved + owed):
                fits = asking.fitting(riding, found, relation, ctx, reserved)
                matches, ended = found[: int(np.argmin(fits))].tolist(), False
        if not ended:  # the budget ended here
            return np.array(matches[:k], dtype=np.int64), False, np.concatenate(unknown)
    return np.array(matches[:k], dtype=np.int64), True, np.concatenate(unknown)
