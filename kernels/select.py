"""Rows chosen by a semantic WHERE: every candidate is asked where they fit in the budget, the first k where LIMIT allows, else a search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from uql.base.errors import BudgetError
from uql.compiler.physical import Block, Goal, Stage
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import is_semantic
from uql.kernels import asking, first_of_each, sem_dedupe, sem_filter, sem_order
from uql.kernels.answers import Rids
from uql.kernels.asking import open_calls
from uql.kernels.base import Context
from uql.kernels.cheap_scores import CheapScores, cheap_scores
from uql.kernels.distinct_rows import units_of
from uql.kernels.estimates.sample import draw, known_rows, open_calls_of
from uql.kernels.finish import Output, rows, whole
from uql.kernels.kept_proxy import StatedSet, fitted
from uql.kernels.limit_by_confidence import further, surer, unasked
from uql.kernels.pair_conditions.attribute import by_attribute, prefer, preferred
from uql.kernels.relation import Pool, Relation
from uql.kernels.sampling_inputs import FEWEST_ROWS, Guide, guide, row_inputs, with_proxy
from uql.kernels.sem_filter import CHUNK
from uql.sampling.base import AggregateSampler, Estimate, Flags, Floats, RetrievalSampler
from uql.sampling.distinct_rows import Units, UnitSample, UnitSearch
from uql.sampling.methods import AGGREGATE, RETRIEVAL
from uql.sampling.promise import PromiseSearch
from uql.sampling.recall import RecallSearch
from uql.sampling.two_stage import FirstStageSearch, first_stage
from uql.sampling.unverified import UnverifiedSearch

BATCH = 8  # rows between two looks of a search: more learn less from each other
TOTAL = 0.125  # share of the calls of a search that finds nothing more that go to the number of rows that pass
LEAST_AUDIT = 16  # rows at least from which the number of rows not found is estimated
DEFAULT_SEARCH = "learned"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows that a WHERE chooses.

    Attributes:
        rids: in the order in which they are returned.
        exact: was every row asked and answered, as far as that can change the rows?
        unverified: rows among them that were not asked.
    """

    rids: Rids
    exact: bool
    unverified: Rids | None = None


async def select(block: Block, relation: Relation, ctx: Context) -> Output:
    """The output rows of a block without aggregates.

    Args:
        block: without aggregates; its rows are those of the relation.
    Raises: BudgetError (UQL401) where the budget does not reach an answer.
    """
    if block.counts_items:
        return await _first_items(block, relation, ctx)
    every = np.arange(relation.n, dtype=np.int64)
    chosen = Chosen(every, True) if block.filter.formula is None else await _passing(block, every, relation, ctx)
    output = await _with_values(block, chosen.rids, relation, ctx)
    output.exact, output.unverified = output.exact and chosen.exact, chosen.unverified
    return output


async def _first_items(block: Block, relation: Relation, ctx: Context) -> Output:
    """What LIMIT counts once it is answered, items of lists or different rows: of as many rows as are needed, then of twice as many …"""
    every = np.arange(relation.n, dtype=np.int64)
    count, notes = block.order.rows_needed or 0, len(ctx.notes)
    each = len(block.filter.stages) + len(block.filter.left_over(block.values.stages))
    while True:
        part = replace(block, order=replace(block.order, limit=count, offset=0))
        if block.filter.formula is None:
            chosen = Chosen(await sem_order.chosen(part, every, [], relation, ctx), True)
        else:
            chosen = await _passing(part, every, relation, ctx)
        output = await _with_values(block, chosen.rids, relation, ctx)
        output.exact = output.exact and chosen.exact
        if output.table.num_rows == block.order.limit or len(chosen.rids) < count:
            return output
        room = ctx.room(0, each)
        further = 2 * count if room is None else min(2 * count, room + (count if block.filter.formula is None else 0))
        if further <= count:
            ctx.partial, output.exact = True, False
            ctx.notes.append(f"first {output.table.num_rows} of {block.order.limit}: the budget ended")
            return output
        count = further
        del ctx.notes[notes:]


async def _with_values(block: Block, passing: Rids, relation: Relation, ctx: Context) -> Output:
    """The output of the rows that pass: their values are asked, of those alone that ORDER BY and LIMIT return where that will do."""
    early = [c for stage in block.values.stages for c in stage.columns]
    values = tuple(stage for stage in block.values.stages if not stage.of_pairs)
    exact = True
    if values:
        cut = block.order.limit is None and not (block.project.distinct or block.needs_every_row)
        cut = cut and not any(is_semantic(key.expr) for key in block.order.keys)
        less = "add LIMIT" if cut else "fewer rows by plain conditions"
        passing, exact = await _reached(values, passing, block, relation, ctx, less)
        await ask_all(values, passing, relation, ctx)
        passing = dropped(passing, early, relation, ctx)
    for stage in block.values.stages:
        if stage.of_pairs:
            exact = await sem_dedupe.cluster(stage.columns[0], passing, relation, ctx) and exact
    columns = [*block.filter.columns, *early]
    if block.project.distinct or block.needs_every_row:
        return replace(whole(block, passing, columns, relation, ctx), exact=exact)
    rids = await sem_order.chosen(block, passing, columns, relation, ctx)
    if block.values.late:
        late = [c for stage in block.values.late for c in stage.columns]
        less = "add LIMIT" if block.order.limit is None else "a smaller LIMIT"
        rids, every = await _reached(block.values.late, rids, block, relation, ctx, less, in_order=True)
        exact = exact and every
        await ask_all(block.values.late, rids, relation, ctx)
        rids, columns = dropped(rids, late, relation, ctx), [*columns, *late]
    return replace(rows(block, rids, columns, relation, ctx), exact=exact)


async def _reached(
    stages: tuple[Stage, ...],
    rids: Rids,
    block: Block,
    relation: Relation,
    ctx: Context,
    less: str,
    *,
    in_order: bool = False,
) -> tuple[Rids, bool]:
    """Of these rows those whose values the budget reaches, and whether they are all; a note says how many are left out.

    Args:
        stages: of the values.
        less: what would take fewer calls.
        in_order: a row is left out with those behind it.
    Raises: BudgetError (UQL401) where each row is needed, or no text chose the rows and nothing was paid for by now.
    """
    if ctx.purse.fits(_unasked(rids, stages, relation)):
        return rids, True
    calls = await open_calls(stages, relation, ctx, rids)
    if ctx.purse.fits(calls):
        return rids, True
    columns = [column for stage in stages for column in stage.columns]
    is_each_needed = block.needs_every_row or ctx.settings.recall is not None
    is_each_needed = is_each_needed or (not in_order and any(is_semantic(k.expr) for k in block.order.keys))
    if is_each_needed or (block.filter.formula is None and not ctx.purse.budget.spent_calls):
        rows = f"the {len(rids):,} rows returned" if in_order else f"{len(rids):,} rows"
        ctx.purse.need(calls, f"{_texts(columns)} for {rows}", less, columns[0].span)
    fits = asking.fitting(stages, rids, relation, ctx)
    if in_order:
        fits = np.logical_and.accumulate(fits)
    ctx.partial = True
    ctx.notes.append(f"{int((~fits).sum()):,} more rows: the budget has no calls for {_texts(columns)} of them")
    return rids[fits], False


async def ask_all(stages: tuple[Stage, ...], rids: Rids, relation: Relation, ctx: Context) -> None:
    """Asks every stage of these rows, a chunk at a time.

    Args:
        stages: the stages, in the order in which they are asked.
        rids: (n,) int, rows of the relation.
    """
    for start in range(0, len(rids), CHUNK):
        for stage in stages:
            await asking.ask(stage, rids[start : start + CHUNK], relation, ctx)
    left_out = sum(int((~relation[c].asked_mask[rids]).sum()) for stage in stages for c in stage.columns[:1])
    if left_out and len(rids):
        ctx.partial = True
        ctx.notes.append(f"the budget ended: {left_out:,} values were not asked and are NULL")


def dropped(rids: Rids, columns: list[VirtualColumn], relation: Relation, ctx: Context) -> Rids:
    """The rows without those that failed, under on_error = 'drop'.

    Args:
        rids: (n,) int, rows of the relation.
        columns: a failure of any of them drops the row.
    """
    if ctx.settings.on_error != "drop" or not columns or not len(rids):
        return rids
    failed: Flags = np.logical_or.reduce([relation[c].failed[rids] for c in columns])
    if failed.any():
        ctx.notes.append(f"{int(failed.sum()):,} rows without an answer were dropped (on_error = 'drop')")
    return rids[~failed]


def _unasked(rids: Rids, stages: tuple[Stage, ...], relation: Relation) -> int:
    total = 0
    for stage in stages:
        missing = np.zeros(len(rids), dtype=bool)
        for column in stage.columns:
            missing |= ~relation[column].asked_mask[rids]
        total += int(missing.sum())
    return total


def _texts(columns: list[VirtualColumn]) -> str:
    return ", ".join(f'"{c.text}"' for c in columns)


async def _passing(block: Block, rids: Rids, relation: Relation, ctx: Context) -> Chosen:
    per_row, per_passing = len(block.filter.stages), len(block.filter.left_over(block.values.stages))
    if block.filter.goal is Goal.FIRST and block.order.rows_needed is not None:
        return await _first(block, block.order.rows_needed, rids, relation, ctx)
    n = len(rids)
    await prefer(block.filter.columns, relation, ctx)
    left = ctx.purse.remaining
    if (ctx.settings.recall is not None and relation.pool is None) or ctx.settings.precision is not None:
        promised = await _promised(block, relation, ctx)
        if promised is not None:
            return promised
    everything = n * (per_row + per_passing) + min(n, block.order.limit or 0) * len(block.values.late)
    if relation.pool is None and (left is None or everything <= left):
        await ctx.draw_earlier(everything, lambda: _passing(block, rids, relation, ctx))
        return await _every(block, rids, relation, ctx)
    for column in block.filter.columns:
        if not await preferred(column, ctx):
            await by_attribute(column, relation, ctx)
    stages = (*block.filter.stages, *block.filter.left_over(block.values.stages))
    calls = relation.total * len(stages)
    if relation.pool is None:
        calls = await open_calls_of(block, relation, ctx)
    if calls <= (ctx.purse.remaining or 0):
        await ctx.draw_earlier(calls, lambda: _passing(block, rids, relation, ctx))
        return await _every(block, rids, relation, ctx)
    if block.has_window:
        raise BudgetError(
            f"a window or QUALIFY looks at every row that passes: {calls:,} calls, and the budget leaves {left:,}; nothing was sent",
            help=f"WITH (budget = {calls}) or WITH (budget = 'all'), or fewer rows by plain conditions",
        )
    if block.values.stages and any(is_semantic(k.expr) for k in block.order.keys):
        raise BudgetError(
            f"ORDER BY a quoted text needs the value of each of {n:,} rows: {calls:,} calls, and the budget leaves {left:,}; "
            "nothing was sent",
            help=f"WITH (budget = {calls}) or WITH (budget = 'all')",
        )
    chosen = await _search(block, relation, ctx)
    if ctx.settings.recall is not None and not chosen.exact:  # without word vectors nothing is promised
        ctx.partial = True
        why = "the budget ended" if relation.pool is None else "not all pairs are candidates"
        ctx.notes.append(f"the recall of {ctx.settings.recall:.0%} asked for is not certain: {why}")
    return chosen


async def _every(block: Block, rids: Rids, relation: Relation, ctx: Context) -> Chosen:
    groups = first_of_each.groups_of(block, relation, ctx)
    if groups is None:
        truth = await sem_filter.every(block.filter, rids, relation, ctx)
    else:
        await _take_corrections(block, relation, ctx)
        truth = await first_of_each.every(block, groups, relation, ctx)
    return _passing_rows(truth, rids, relation, ctx)


async def _take_corrections(block: Block, relation: Relation, ctx: Context) -> None:
    """Of the rows that the ledger decides: what people said since a run that is repeated, where no draw depends on it."""
    if any(ctx.gate.people.knows(relation.question(c)) for c in block.filter.columns):
        await known_rows(block, relation, ctx)
        asking.overrule(relation, ctx)


async def _first(block: Block, k: int, rids: Rids, relation: Relation, ctx: Context) -> Chosen:
    """Rows up to the k-th that passes: in the order of ORDER BY, else as a search finds them."""
    relation.filters.stops = True
    await prefer(block.filter.columns, relation, ctx)
    reserved = k * (len(block.filter.left_over(block.values.late)) + len(block.filter.left_over(block.values.stages)))
    if reserved:
        calls = reserved + len(block.filter.stages)
        ctx.purse.need(calls, f"the {k} rows of LIMIT with their values", "a smaller LIMIT")
    if k == 0:
        return Chosen(rids[:0], True)
    await _take_corrections(block, relation, ctx)
    riding = block.filter.riding((*block.values.stages, *block.values.late))
    search = None if block.order.keys else await limit_search(k + further(k), block, relation, ctx)
    if search is not None:
        sampler, searched = search.sampler, Searched.of(search.known_rows)
        owed = await open_calls(riding, relation, ctx, np.array(searched.matches[:k], dtype=np.int64))
        if len(searched.matches) >= k:
            ctx.purse.need(owed, f"the {k} rows of LIMIT with their values", "a smaller LIMIT")
        reserved += owed
        await _learn(block, sampler, searched, relation, ctx, rows_needed=k, reserved=reserved)
        if search.guide is None and searched.ended and len(searched.matches) < k:  # the other rows have more
            first_rows = searched.labelled, await sem_filter.truth(block.filter, searched.labelled, relation, ctx)
            search = await limit_search(k + further(k), block, relation, ctx, first_rows)
            assert search is not None
            sampler, searched = search.sampler, Searched.of(search.known_rows)
            await _learn(block, sampler, searched, relation, ctx, rows_needed=k, reserved=reserved)
        matches = np.sort(np.array(searched.matches[:k], dtype=np.int64))
        ended, unknown = searched.ended, searched.labelled[np.isnan(searched.answers)]
        surest = await surer(k, block, relation, ctx, sampler.propose, sampler.tell, reserved) if ended else None
    else:
        any_rows = not block.order.keys  # any k rows will do
        known = await known_rows(block, relation, ctx) if any_rows else None
        if known is not None:  # those that pass at no call come first
            free = known[0][known[1].yes]
            rids = np.concatenate([free, rids[~np.isin(rids, free)]])
        matches, ended, unknown = await sem_filter.first(k, block.filter, rids, relation, ctx, reserved, riding)
        matches = np.sort(matches) if any_rows else matches
        chosen = ended and any_rows
        surest = await surer(k, block, relation, ctx, unasked(block, relation), None, reserved) if chosen else None
    matches = matches if surest is None else surest
    pool = relation.pool if len(matches) < k else None  # fewer than wanted: what it left out may have them
    _note_pool(pool, ctx)
    left_out = pool is not None or (relation.stage is not None and len(matches) < k)
    ctx.partial = ctx.partial or left_out
    if ended and relation.stage is not None and len(matches) < k:
        ctx.notes.append(
            f"candidates were {relation.n:,} of {relation.total:,} rows: others may pass, and were not asked"
        )
    if not ended:
        ctx.partial = True
        ctx.notes.append(f"first {len(matches)} of {k}: the budget ended")
    _note_unanswered(unknown, relation, ctx)
    return Chosen(matches, ended and not len(unknown) and not left_out)


@dataclass(frozen=True, slots=True)
class LimitSearch:
    """A search for any rows that pass.

    Attributes:
        sampler: that proposes them.
        known_rows: rows that the ledger decides, which it was given.
        guide: of all rows; None: it looks among the random rows of a first stage alone.
    """

    sampler: RetrievalSampler
    known_rows: tuple[Rids, sem_filter.Truth] | None
    guide: Guide | None


async def limit_search(
    limit: int,
    block: Block,
    relation: Relation,
    ctx: Context,
    first_rows: tuple[Rids, sem_filter.Truth] | None = None,
) -> LimitSearch | None:
    """The search for any rows that pass, of a large table among a first stage of random rows; None where nothing guides it.

    Args:
        limit: rows that pass, that may be wanted.
        block: without ORDER BY.
        first_rows: the rows of a first stage that were asked: the search goes on among all rows.
    """
    stage = None if first_rows is not None else _search_stage(block, relation, ctx)
    if stage is None:
        guided = await guide(block, relation, ctx)
        if guided is None:
            return None
        labels = first_rows if first_rows is not None else await known_rows(block, relation, ctx)
        return LimitSearch(retrieval(relation.n, relation.n, guided, ctx, limit=limit, known=labels), labels, guided)
    rows, among = stage
    guided = await guide(block, among, ctx)
    if guided is None:
        return None
    own, labels = await known_rows(block, among, ctx), None
    if own is not None:
        labels = rows[own[0]], await sem_filter.truth(block.filter, rows[own[0]], relation, ctx)
    search = retrieval(among.n, among.n, guided, ctx, limit=limit, known=own)
    return LimitSearch(FirstStageSearch(rows, search), labels, None)


def _search_stage(block: Block, relation: Relation, ctx: Context) -> tuple[Rids, Relation] | None:
    """The first stage of a search; None where the table is small, or the features of all its rows were there before."""
    n = first_stage(relation.n, 0)
    if n is None or ctx.features is None or relation.pool is not None or ctx.settings.proxy is not None:
        return None
    columns = block.filter.columns
    reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
    if any(c.is_pair_condition for c in columns) or ctx.features.at_hand(relation, reads, ctx.fact) is not None:
        return None
    return ctx.features.first_stage(relation, n)


def _passing_rows(truth: sem_filter.Truth, rids: Rids, relation: Relation, ctx: Context) -> Chosen:
    """The rows that pass, of those asked; notes say how many gave no answer or were not asked."""
    n, unasked = len(rids), int((~truth.complete).sum())
    _note_unanswered(rids[truth.unknown], relation, ctx, f" of {n:,}")
    if unasked:
        ctx.partial = True
        ctx.notes.append(f"{unasked:,} of {n:,} rows were not asked: the budget ended")
    return Chosen(rids[truth.yes], not truth.unknown.any() and not unasked)


def _note_unanswered(rids: Rids, relation: Relation, ctx: Context, of: str = "") -> None:
    """Says how many of these rows gave no answer; clips that are not settled have a note of their own."""
    open_ = [
        answers.origin.moments.left_open[rids]
        for answers in relation.answers.values()
        if answers.origin.moments is not None
    ]
    unanswered = len(rids) - int(np.logical_or.reduce(open_).sum() if open_ else 0)
    if unanswered:
        ctx.notes.append(f"{unanswered:,}{of} rows gave no answer and are not among the rows returned")


async def _search(block: Block, relation: Relation, ctx: Context) -> Chosen:
    with ctx.as_drawn():
        matches, asked_rids, exact = await _searched(block, relation, ctx)
    return await _overruled(Chosen(matches, exact), asked_rids, block, relation, ctx)


async def _overruled(chosen: Chosen, asked_rids: Rids, block: Block, relation: Relation, ctx: Context) -> Chosen:
    """The rows that a search chose, with what people answered since, where it is taken up, in the place of what the model had answered."""
    if not asking.overrule(relation, ctx):
        return chosen
    truth = await sem_filter.truth(block.filter, asked_rids, relation, ctx)
    unasked = asked_rids[:0] if chosen.unverified is None else chosen.unverified
    return Chosen(np.union1d(asked_rids[truth.yes], unasked), chosen.exact, chosen.unverified)


async def _searched(block: Block, relation: Relation, ctx: Context) -> tuple[Rids, Rids, bool]:
    """As many of the rows that pass as the budget finds, the rows asked, and whether these are all; a note says how many may pass.

    With features, the calls go to the rows that a surrogate learned from the answers thinks likeliest. `total` is the share of
    them that a sample of the rows left over gets, from which their number is estimated; where it is not set, an eighth once as
    many calls found nothing. A query with LIMIT or a recall asks for no number.
    """
    guided = await guide(block, relation, ctx)
    if guided is None:
        sampled = await draw(block, relation, ctx)
        exact = sampled.every and not sampled.truth.unknown.any()
        if not exact or relation.derives:
            _note_found(len(sampled.passing), sampled.sampler.estimate(), len(sampled.labelled), relation.total, ctx)
        _note_pool(relation.pool, ctx)
        return np.sort(sampled.passing), sampled.labelled, exact
    per_row, per_passing = len(block.filter.stages), len(block.filter.left_over(block.values.stages))
    labels = await known_rows(block, relation, ctx)
    units = units_of(block, relation, ctx)
    if units is not None and labels is not None:
        whole = units.whole(labels[0])
        labels = labels[0][whole], labels[1].of(whole)
    sampler = retrieval(relation.n, ctx.purse.remaining_in_step or 0, guided, ctx, known=labels, units=units)
    searched = Searched.of(labels)
    while True:  # once, but where it goes on with the search of a run that had fewer calls
        audit = _audit_rows(block, ctx.purse.remaining_in_step or 0, ctx) if relation.pool is None else 0
        reserved = audit * (per_row + per_passing)
        await _learn(block, sampler, searched, relation, ctx, reserved=reserved, units=units, stepwise=True)
        if audit and ctx.settings.total is None and (searched.answers[-audit:] == 1.0).any():
            audit = 0  # calls still find rows: they are worth more than a number
            await _learn(block, sampler, searched, relation, ctx, units=units, stepwise=True)
        rest = None
        if audit:
            rest = audit_of(relation.n, audit, guided, ctx, (searched.labelled, searched.answers), units)
            await _audit(block, rest, sampler, searched, relation, ctx)
        if not ctx.next_step():
            break
        sampler.more(relation.n)
    if rest is None:
        _note_search(searched, relation, ctx)
        _note_pool(relation.pool, ctx)
    else:
        _note_found(len(searched.matches), rest.estimate(), len(searched.labelled), relation.n, ctx)
    return np.sort(np.array(searched.matches, dtype=np.int64)), searched.labelled, False


async def _audit(
    block: Block,
    rest: AggregateSampler,
    sampler: RetrievalSampler,
    searched: Searched,
    relation: Relation,
    ctx: Context,
) -> None:
    """Asks a sample of the rows that a search left over; what it finds belongs to the search."""
    while len(more := rest.propose(CHUNK)):
        await ctx.log_draw(f"audit of {relation.source}", more)
        truth = await sem_filter.truth(block.filter, more, relation, ctx)
        if not truth.complete.all():
            break
        rest.tell(more, truth.answers)
        sampler.learn(more, truth.answers)
        searched.add(more, truth)


async def _promised(block: Block, relation: Relation, ctx: Context) -> Chosen | None:
    """A search to a stated recall or precision, or to both; None where nothing guides it.

    With `models = [small, large]` the score of the small one guides it, and the large one alone says which rows pass. The result
    says what holds: the target, or the weaker statement that the budget allowed.
    """
    with ctx.as_drawn():
        cheap = await cheap_scores(block, relation, ctx) if relation.n >= FEWEST_ROWS else None
        guided = await guide(block, relation, ctx)
    if cheap is not None:
        guided = with_proxy(guided, cheap.score)
    if guided is None:
        return None
    cascade, ctx.cascade = ctx.cascade, None
    try:
        with ctx.as_drawn():
            if ctx.settings.recall is not None and ctx.settings.precision is not None:
                chosen, asked_rids = await _both(block, guided, cheap, relation, ctx)
            else:
                chosen, asked_rids = await _one_target(block, guided, relation, ctx)
        return await _overruled(chosen, asked_rids, block, relation, ctx)
    finally:
        ctx.cascade = cascade


async def _both(
    block: Block, guided: Guide, cheap: CheapScores | None, relation: Relation, ctx: Context
) -> tuple[Chosen, Rids]:
    """Rows with the precision and the recall of the settings, and those asked; rows equal to one that was asked are known by it."""
    settings, per_row = ctx.settings, max(1, len(block.filter.stages))
    assert settings.recall is not None and settings.precision is not None
    inputs = row_inputs(block, relation, cheap, ctx) if ctx.keeps_proxy else None
    proxy = ctx.stated.proxy if ctx.stated is not None and inputs is not None else None
    labels, left = await known_rows(block, relation, ctx), ctx.purse.remaining
    search = PromiseSearch(
        relation.n,
        relation.n if left is None else left // per_row,
        rng=ctx.rng,
        features=guided.features,
        prior=guided.prior,
        chance=proxy.chance(inputs) if proxy is not None and inputs is not None else None,
        recall=settings.recall,
        precision=settings.precision,
        confidence=settings.confidence,
        known=as_known(labels),
    )
    searched, units = Searched.of(labels), units_of(block, relation, ctx)

    async def take_equal() -> None:
        if units is not None and search.parts:
            is_labelled = np.isin(np.arange(relation.n), search.labelled)
            equal = np.flatnonzero(np.isin(units.of, units.of[is_labelled]) & ~is_labelled)
            truth = await sem_filter.truth(block.filter, equal, relation, ctx)
            search.learn(equal, truth.answers)
            searched.add(equal, truth)

    await _learn(block, search, searched, relation, ctx, most=CHUNK, after_each=take_equal)
    _note_promise(search, searched, cheap, per_row, relation, ctx)
    if search.met and ctx.keeps_proxy:
        if inputs is not None and not search.has_earlier:
            proxy = fitted(inputs, searched.labelled, searched.answers)
        targets = settings.precision, settings.recall, settings.confidence
        ctx.stated = StatedSet(*targets, relation.n, len(searched.labelled), proxy)
    return Chosen(search.returned(), searched.asked_all(relation.n), search.unverified()), searched.labelled


def _note_promise(
    search: PromiseSearch,
    searched: Searched,
    cheap: CheapScores | None,
    per_row: int,
    relation: Relation,
    ctx: Context,
) -> None:
    """The statement that holds of the rows returned; where it is not the one asked for, what that would take."""
    settings, (precision, recall) = ctx.settings, search.holds()
    returned, unasked = len(search.returned()), len(search.unverified())
    small, large = ctx.settings.models or ("", "")
    by = f" of {large}" if large else ""
    if search.met:
        says = f"precision ≥ {settings.precision:.0%} and recall ≥ {settings.recall:.0%}, both at {settings.confidence:.0%}"
    else:
        ctx.partial, calls = True, search.would_take() * per_row
        says = (
            f"precision ≥ {settings.precision:.0%} and recall ≥ {settings.recall:.0%} cannot be stated with these calls: what holds at "
            f"{settings.confidence:.0%} is precision ≥ {precision:.0%} and recall ≥ {recall:.0%}; about {calls:,} calls{by} in all would "
            f"do: WITH (budget = {calls})"
        )
    rows = f"{returned:,} rows, {unasked:,} of them not asked; {len(searched.labelled):,} of {relation.n:,} rows were asked{by}"
    kept = "; the score kept with the table chose which" if search.has_earlier else ""
    ctx.notes.append(f"{says}; {rows}" + (f", all were scored by {small}" if cheap is not None else "") + kept)
    if search.surprise is not None:
        hits, expected = search.surprise
        ctx.notes.append(
            f"these rows are of another kind than those before: {hits:,} random ones are not what the kept score says, about "
            f"{expected:.1f} were expected; it was fitted anew"
        )
    if searched.unknown:
        ctx.notes.append(
            f"{searched.unknown:,} rows gave no answer: they are not among the rows returned, and count as matches that were missed"
        )
    if cheap is not None and cheap.unanswered:
        ctx.notes.append(f"{cheap.unanswered:,} rows have no score: {small} gave no answer")


async def _one_target(block: Block, guided: Guide, relation: Relation, ctx: Context) -> tuple[Chosen, Rids]:
    """A search to a stated recall, or one that adds rows unasked at a stated precision; and the rows asked."""
    left = ctx.purse.remaining_in_step
    room = relation.n if left is None else left // max(1, len(block.filter.stages))
    settings = ctx.settings
    labels = await known_rows(block, relation, ctx)
    shared: dict[str, Any] = {"rng": ctx.rng, "features": guided.features, "prior": guided.prior}
    shared |= {"confidence": settings.confidence, "known": as_known(labels)}
    level = f"{settings.confidence:.0%}"
    if settings.recall is not None:
        search = RecallSearch(relation.n, room, recall=settings.recall, has_examples=guided.has_examples, **shared)
        search.more(relation.n)
        searched = await _learn(block, search, Searched.of(labels), relation, ctx)
        holds = search.guaranteed
        words = "as asked" if search.met else f"less than the {settings.recall:.0%} asked for: the budget ended"
        ctx.notes.append(
            f"found {len(searched.matches):,} rows; recall ≥ {holds:.0%} at {level}, {words}; "
            f"{len(searched.labelled):,} of {relation.n:,} rows were asked"
        )
        ctx.partial = ctx.partial or not search.met
        matches = np.sort(np.array(searched.matches, dtype=np.int64))
        return Chosen(matches, searched.asked_all(relation.n)), searched.labelled
    assert settings.precision is not None
    adds = UnverifiedSearch(relation.n, room, precision=settings.precision, **shared)
    searched = await _learn(block, adds, Searched.of(labels), relation, ctx)
    extra = adds.unverified()
    ctx.notes.append(
        f"{len(searched.matches):,} rows were asked and pass; {len(extra):,} more were not asked: "
        f"at least {settings.precision:.0%} of these pass ({level})"
        if len(extra)
        else f"{len(searched.matches):,} rows were asked and pass; no others could be added at a precision of "
        f"{settings.precision:.0%} ({level})"
    )
    rids = np.unique(np.concatenate([np.array(searched.matches, dtype=np.int64), extra]))
    return Chosen(rids, searched.asked_all(relation.n), extra), searched.labelled


def _note_found(n_matches: int, total: Estimate, n_asked: int, n: int, ctx: Context) -> None:
    about = "?" if total.value is None else f"{total.value:,.0f}"
    low = "?" if total.low is None else f"{total.low:,.0f}"
    high = "?" if total.high is None else f"{total.high:,.0f}"
    ctx.notes.append(
        f"found {n_matches:,} of about {about} rows that pass ({ctx.settings.confidence:.0%}: {low}–{high}); "
        f"{n_asked:,} of {n:,} rows were asked"
    )


def _note_search(searched: Searched, relation: Relation, ctx: Context) -> None:
    """Says that more rows may pass, where some were not asked, and what would tell how many."""
    if len(searched.labelled) == relation.total:
        return
    more = "WITH (total = 0.125) gives an eighth of the calls to their number"
    if relation.pool is not None:
        more = "COUNT(*) estimates their number"
    ctx.notes.append(
        f"found {len(searched.matches):,} rows that pass; {len(searched.labelled):,} of {relation.total:,} rows were asked, and more may "
        f"pass: {more}"
    )


def _note_pool(pool: Pool | None, ctx: Context) -> None:
    """Says which pairs a search looked at."""
    if pool is None:
        return
    near = f"the {pool.near:,} nearest in meaning and " if pool.near else ""
    ctx.notes.append(
        f"candidates were {near}{len(pool.left) - pool.near:,} random ones of {pool.total:,} pairs: pairs that match and are not near in "
        "meaning may be missed; an equality beside the text leaves fewer pairs"
    )


def _audit_rows(block: Block, remaining: int, ctx: Context) -> int:
    """Rows that a search with `remaining` calls asks for the number of rows that pass, at the end."""
    share, per_row = ctx.settings.total, len(block.filter.stages)
    if share == 0 or block.order.limit is not None or ctx.settings.recall is not None:
        return 0
    rows = int(remaining * (TOTAL if share is None else share)) // per_row
    return rows if share is not None or rows >= LEAST_AUDIT else 0


# ------------------------------------------------------------------------------------------------------------- searching
@dataclass(slots=True)
class Searched:
    """What a search has asked: rows and answers in order, those found in order, and how it ended."""

    rows: list[Rids]
    truths: list[Floats]
    matches: list[int]
    unknown: int = 0
    ended: bool = False  # it found what was wanted, or ran out of rows; False: the budget ended it

    @classmethod
    def of(cls, labels: tuple[Rids, sem_filter.Truth] | None) -> Searched:
        """Before anything is asked: with the rows that the ledger decides."""
        searched = cls([np.zeros(0, dtype=np.int64)], [np.zeros(0)], [])
        if labels is not None:
            searched.add(*labels)
        return searched

    def add(self, rids: Rids, truth: sem_filter.Truth) -> None:
        """Rows with their answers; those that the budget did not reach are left out."""
        done = truth.complete
        self.rows.append(rids[done])
        self.truths.append(truth.answers[done])
        self.matches += [int(r) for r in rids[truth.yes]]
        self.unknown += int(truth.unknown.sum())

    @property
    def labelled(self) -> Rids:
        """The rows that have an answer."""
        return np.concatenate(self.rows)

    @property
    def answers(self) -> Floats:
        """The answers in the order of `labelled`: 1, 0, or NaN."""
        return np.concatenate(self.truths)

    def asked_all(self, n: int) -> bool:
        """Was each of n rows asked and answered?"""
        return len(self.labelled) == n and not self.unknown


def audit_of(
    n: int, budget: int, guided: Guide, ctx: Context, labels: tuple[Rids, Floats], units: Units | None
) -> AggregateSampler:
    """The sample of the rows that a search left over.

    Args:
        n: rows in all.
        budget: rows that it asks at most.
        labels: rows that were asked, and their answers: 1, 0, NaN.
        units: of the rows, each asked once; None: rows are asked one by one.
    """

    def make(m: int, **keywords: Any) -> AggregateSampler:
        return AGGREGATE["asd"](m, min(budget, m), rng=ctx.rng, confidence=ctx.settings.confidence, **keywords)

    if units is None:
        return make(n, features=guided.features, prior=guided.prior, known=labels)
    own, size = guided.of_units(units), units.sizes.astype(np.float64)
    return UnitSample(units, make, known=labels, features=own.features, prior=own.prior, size=size)


def as_known(labels: tuple[Rids, sem_filter.Truth] | None) -> tuple[Rids, Floats] | None:
    """Rows that the ledger decides and their answers, as samplers take them."""
    return None if labels is None else (labels[0], labels[1].answers)


def batch_size(rows_needed: int, n_matches: int, n_asked: int) -> int:
    """Rows that a search for so many asks next: few in vain, at most BATCH.

    Args:
        rows_needed, n_matches: rows that pass.
        n_asked: rows so far.
    """
    rate = (n_matches + 1) / (n_asked + 1)
    return min(BATCH, max(1, int(np.ceil((rows_needed - n_matches) / rate))))


def retrieval(
    n: int,
    budget: int,
    guided: Guide,
    ctx: Context,
    limit: int | None = None,
    known: tuple[Rids, sem_filter.Truth] | None = None,
    rng: np.random.Generator | None = None,
    units: Units | None = None,
) -> RetrievalSampler:
    """The search of the settings.

    Args:
        n: rows in all.
        budget: rows that it asks at most.
        limit: rows that pass, that are wanted; None: all.
        known: rows that the ledger decides, and how.
        rng: in place of the run's.
        units: of the rows, each asked once.
    """
    name = ctx.settings.method if ctx.settings.method in RETRIEVAL else DEFAULT_SEARCH
    shared: dict[str, Any] = {
        "rng": rng or ctx.rng,
        "limit": limit,
        "has_examples": guided.has_examples,
        "explore": ctx.settings.explore or 0.0,
    }
    if units is None:
        rows: dict[str, Any] = {"features": guided.features, "prior": guided.prior, "known": as_known(known)}
        return RETRIEVAL[name](n, budget, **rows, **shared)
    own = guided.of_units(units)

    def make(m: int, **keywords: Any) -> RetrievalSampler:
        return RETRIEVAL[name](m, min(budget, m), **keywords, **shared)

    return UnitSearch(units, make, known=as_known(known), features=own.features, prior=own.prior)


async def _learn(
    block: Block,
    sampler: RetrievalSampler,
    searched: Searched,
    relation: Relation,
    ctx: Context,
    *,
    rows_needed: int | None = None,
    reserved: int = 0,
    units: Units | None = None,
    stepwise: bool = False,
    most: int = BATCH,
    after_each: Callable[[], Awaitable[None]] | None = None,
) -> Searched:
    """Asks what the sampler proposes until it has enough, or the budget less what is reserved is spent; adds to `searched`.

    Args:
        searched: what is known already, which the sampler was given.
        units: those of the sampler.
        stepwise: of the budget no more is spent than its step leaves.
        most: rows between two looks.
        after_each: what is done once their answers are told.
    """
    n_asked, n_known = 0, len(searched.matches)
    per_row = len(block.filter.stages)
    per_passing = 0 if rows_needed else len(block.filter.left_over(block.values.stages))
    if not rows_needed and block.values.stages:  # of rows that the ledger decides nothing rode along
        reserved += relation.calls(block.values.stages, np.array(searched.matches, dtype=np.int64))
    searched.ended = False
    while True:
        size, matches = most, searched.matches
        if rows_needed is not None and len(matches) >= rows_needed:
            searched.ended = True
            break
        if rows_needed is not None:
            size = batch_size(rows_needed, len(matches), n_asked)
        found = np.array(matches[n_known:], dtype=np.int64) if units is not None and per_passing else None
        passing = len(matches) - n_known if found is None or units is None else units.count(found)
        kept, each = reserved + per_passing * passing, per_row + per_passing
        with ctx.purse.until(ctx.purse.budget.step) if stepwise else nullcontext():
            room = ctx.room(kept, each)
        size = size if room is None else min(size, room)
        if size <= 0:
            break
        rids = sampler.propose(size)
        if not len(rids):
            searched.ended = True
            break
        await ctx.log_draw(f"search of {relation.source}", rids)
        truth = await sem_filter.truth(block.filter, rids, relation, ctx)
        done = truth.complete
        sampler.tell(rids, np.where(done, truth.answers, np.nan))
        searched.add(rids, truth)
        n_asked += int(done.sum())
        if not done.all():
            break
        if after_each is not None:
            await after_each()
    return searched
