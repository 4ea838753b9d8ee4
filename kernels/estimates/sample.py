"""Which rows of a block are asked for its aggregates: all of them where they fit, else a sample that a sampler chooses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uql.base.errors import BudgetError, ConfigError
from uql.base.extras import need
from uql.compiler.cost import BYTES_PER_TOKEN, LEAST_GUIDED, plain_prompt_tokens, request_tokens
from uql.compiler.physical import Block, Stage
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import virtuals
from uql.kernels import answer_types, asking, sem_filter, sem_group
from uql.kernels.answers import Rids
from uql.kernels.asking import MOST_RECALLED, open_calls
from uql.kernels.base import Context
from uql.kernels.distinct_rows import units_of
from uql.kernels.duck import quote
from uql.kernels.estimates.by_group import Target, Values, read_values
from uql.kernels.estimates.error_target import SPARE, pilot_rows, rows_foretold
from uql.kernels.relation import Pool, Relation
from uql.kernels.sampling_inputs import FEWEST_ROWS, Guide, condition_of, guide
from uql.kernels.sem_filter import CHUNK, Truth
from uql.sampling.base import AggregateSampler, Flags, Floats, Indices
from uql.sampling.by_group import ByGroupSampler
from uql.sampling.distinct_rows import Units, UnitSample
from uql.sampling.groupby import GroupBySampler
from uql.sampling.methods import AGGREGATE, RETRIEVAL
from uql.sampling.pairs import PairSampler
from uql.sampling.two_stage import TwoStageSample, first_stage

MOST_SPREAD = 1e-3  # relative variance that a first stage may add to the sum of all rows
LEAST_OF_GROUP = 256  # rows of a first stage
CLUSTERED = ("uqe", "stratified")  # their strata and scores come from packages that no default path needs
DEFAULT_METHOD = "asd"
PILOT = 256  # rows classified first, on which a taxonomy is completed
LEAST_CLASSES = 24  # calls; below, a sample of groups learns nothing
REOPENED = 3  # calls that are kept for rows in no group: a name, a check that it is new, and a row to ask again
# rows asked at once before their groups are named and ride along with the WHERE of the others
FIRST_ROWS = 2 * sem_group.SHOWN
# of the rows that the pilot foretells are asked before their number is foretold again: it learns as it goes
CAUTIOUS = 0.6
GROWTH = (1.03, 2.0)  # times as many rows at least and at most, from one look to the next
# times as many rows at least, from one estimate that is shown to the next: each looks at all rows asked
TOLD_AGAIN = 1.25
LEAST_STEP = 16  # rows; where an earlier run had fewer, its sample is not gone on with: its rows are known ones
LEAST_PAID = 8  # rows from which on what they cost says what others will
TOKEN_SLACK = 1.1  # of the cost of a row that is asked one thing after another: not all are asked all
LONG = 0.99  # quantile of the rows' lengths that is looked out for
SURE = 2.0  # standard deviations that the rows of a step may cost more than their lengths say on average


@dataclass(slots=True)
class Sampled:
    """The rows asked, in the sampler's order, and what is known of each."""

    sampler: AggregateSampler
    labelled: Rids
    truth: Truth
    every: bool  # no row was left out

    @property
    def passing(self) -> Rids:
        return self.labelled[self.truth.yes]


def method_of(ctx: Context) -> str:
    """The sampler's name: the user's, or the engine's choice.

    Raises: ConfigError (UQL105) for one that does not exist, (UQL610) for one whose packages are missing.
    """
    name = ctx.settings.method or DEFAULT_METHOD
    if name not in {*AGGREGATE, *RETRIEVAL, "attribute"}:  # attribute: of joins
        raise ConfigError(
            f"there is no method {name!r}",
            help=f"for aggregates: {', '.join(sorted(AGGREGATE))}; for rows: {', '.join(sorted(RETRIEVAL))}",
        )
    if name in CLUSTERED:
        need(f"the methods {' and '.join(map(repr, CLUSTERED))}", "uqe", "faiss", "sklearn")
    return name if name in AGGREGATE else DEFAULT_METHOD


async def whole_cost(block: Block, relation: Relation, ctx: Context) -> int:
    """Calls that asking every row takes; of few rows, or of rows that are alike, those that are still to be made.

    Args:
        block: its WHERE and what its aggregates read are counted.
    """
    stages = (*block.filter.stages, *block.filter.left_over(block.values.stages))
    calls = relation.total * len(stages) + len(block.values.groups)
    if relation.pool is not None or relation.stage is not None:
        return calls
    if ctx.purse.fits(calls) or block.values.groups or ctx.settings.max_tokens is not None:
        return calls
    if relation.n > MOST_RECALLED and units_of(block, relation, ctx) is None:
        return calls
    return min(calls, await open_calls_of(block, relation, ctx))


async def open_calls_of(block: Block, relation: Relation, ctx: Context) -> int:
    """Calls that asking every row still takes; of few rows with what the ledger knows, and what rides along with WHERE is asked apart of
    rows of which WHERE is known.

    Args:
        block: its WHERE, and its values of the rows that pass.
    """
    where, after, late = block.filter, block.values.stages, block.values.late
    returned = min(relation.n, block.order.limit or 0)
    after_limit = returned * len(where.left_over(late))
    if relation.n > MOST_RECALLED or relation.derives:
        return after_limit + await open_calls((*where.stages, *where.left_over(after)), relation, ctx)
    if where.formula is None:
        return after_limit + await open_calls(after, relation, ctx)
    await open_calls((*after, *late), relation, ctx)  # takes what the ledger knows
    decided, truth = await sem_filter.recalled(where, relation, ctx)
    rest = np.setdiff1d(np.arange(relation.n, dtype=np.int64), decided)
    passing = decided[truth.yes]
    calls = after_limit + relation.calls(after, passing)
    calls += min(returned, relation.calls(where.riding(late), passing))
    calls += relation.calls((*where.stages, *where.left_over(after)), rest)
    for stage in where.stages:
        known = rest[np.logical_and.reduce([relation[c].asked_mask[rest] for c in stage.columns])]
        calls += relation.calls([Stage((column,)) for column in stage.riders], known)
    return calls


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a sample is drawn for.

    Attributes:
        groups: (N,) the groups of all rows, where DuckDB knows them.
        sizes: (G,) the rows of each group, of the table where the relation is a first stage of it.
        size: (N,) what a SUM weighs each row with.
        excess: how many times as wide as `error = x` allows the widest interval of the rows so far is.
        target: the aggregate by which rows are allotted to groups.
        report: tells the estimates so far; None: the share that passes is told.
    """

    groups: Indices | None = None
    sizes: Indices | None = None
    size: Floats | None = None
    excess: Callable[[Sampled], float] | None = None
    target: Target | None = None
    report: Callable[[Sampled], None] | None = None


async def draw(block: Block, relation: Relation, ctx: Context, purpose: Purpose | None = None) -> Sampled:
    """As `_draw`, with what people answered since the draws that are taken up in the place of what the model had answered.

    Args:
        block: its WHERE and what its aggregates read are asked.
        purpose: what the rows are drawn for: groups, stored numbers, a wanted width; None: the share that passes.
    Raises: BudgetError (UQL401) where the budget leaves no sample.
    """
    with ctx.as_drawn():
        sampled = await _draw(block, relation, ctx, purpose or Purpose())
    if not asking.overrule(relation, ctx) or block.filter.formula is None:
        return sampled
    truth = await sem_filter.truth(block.filter, sampled.labelled, relation, ctx)
    truth = replace(truth, unknown=truth.unknown | ~truth.complete)
    rids = sampled.labelled[truth.yes]
    await classify(block.values.stages, block, rids, relation, ctx, sampled=not sampled.every)
    return replace(sampled, truth=truth)


async def _draw(
    block: Block, relation: Relation, ctx: Context, purpose: Purpose, small: Sampled | None = None
) -> Sampled:
    """Asks rows until all are asked or the budget is spent, keeping back what the rows that pass will still need.

    A run that goes on with the draws of one with fewer calls draws those first, and then more: `ctx.purse.remaining_in_step`.

    Every step is no larger than fits if each of its rows passes, so nothing is ever half asked: a sample has no holes that the
    budget tore. `excess` is how many times as wide as `error = x` allows the widest interval is. Then a pilot foretells how many
    rows it takes, more than half of them foretell it better, and the sampling ends as soon as the intervals are narrow enough.
    `small` is what a run with too few calls to go on with drew.
    Raises BudgetError (UQL401) where no budget is given and the rows foretold cost more than `confirm_over`.
    """
    groups, size, excess, target = purpose.groups, purpose.size, purpose.excess, purpose.target
    after = block.values.stages
    taxonomies = len(block.values.groups)
    per_row, per_passing = len(block.filter.stages), len(block.filter.left_over(after))
    rides = any(column.id in block.filter.riders for column in block.values.groups)  # once it is named
    left = ctx.purse.remaining
    n = relation.n if relation.stage is None else relation.total
    everything = n * (per_row + per_passing) + taxonomies + (min(n, FIRST_ROWS) if rides else 0)
    if relation.derives:  # conditions on pairs that are answered from their rows
        everything += relation.calls(block.filter.stages) - n * per_row
    by_group = method_of(ctx) == DEFAULT_METHOD and ctx.settings.error is None
    if relation.pool is not None or relation.stage is not None:
        target = None
    if target is not None:
        few = target.has_few_rows(_room(left, n, taxonomies, per_row + per_passing))
        if not ctx.fact("few rows a group", lambda: by_group and few):
            target = None
    units = None
    if left is not None and everything > left and target is None:
        units = units_of(block, relation, ctx)
    if units is not None:
        everything = relation.calls((*block.filter.stages, *block.filter.left_over(after))) + taxonomies
        everything += min(len(units), FIRST_ROWS) if rides else 0
    each = _tokens_of_rows(block, after, relation, ctx)
    if each is not None or block.values.groups:
        units = None
    elif not relation.derives:
        whole = await whole_cost(block, relation, ctx)
        everything = whole if units is not None else min(everything, whole)
    paid = None if each is None or ctx.settings.max_tokens is None else int(ctx.settings.max_tokens / each.mean())
    fits = (left is None or everything <= left) and (paid is None or n <= paid)
    fits = fits and relation.pool is None and relation.stage is None
    pilot = pilot_rows(ctx.settings.error)
    watched = excess is not None and pilot is not None and n > pilot and not ctx.settings.exact
    watched = watched and per_row + len(after) > 0
    fits = fits and not watched
    if watched and pilot is not None and left is not None and _free_to_grow(ctx):
        ctx.purse.allow(pilot * (per_row + per_passing) + taxonomies * (1 + REOPENED))
    if fits:
        await ctx.draw_earlier(everything, lambda: _draw(block, relation, ctx, purpose))
    room = _room(ctx.purse.remaining_in_step, n, taxonomies, per_row + per_passing)
    while not fits and room < LEAST_STEP and relation.pool is None and ctx.purse.has_next_step:
        with ctx.purse.until(ctx.purse.budget.step):
            small = await _draw(block, relation, ctx, purpose, small)
        ctx.next_step()
        room = _room(ctx.purse.remaining_in_step, n, taxonomies, per_row + per_passing)
    by_calls = room
    room = room if paid is None or fits else min(room, _Tokens.first(paid))
    unguided = fits or room < LEAST_GUIDED or target is not None or relation.pool is not None
    features_of_all = unguided or units is not None or watched  # `error = x` may take more rows than a first stage has
    stage: tuple[Rids, Relation] | None
    if relation.stage is not None:
        stage = np.arange(relation.n, dtype=np.int64), relation
    else:
        stage = None if features_of_all else _first_stage(room, relation, size, groups, ctx)
    among = relation if stage is None else stage[1]  # the rows that have features
    guided = None if unguided else await guide(block, among, ctx)
    if guided is not None:
        # the example rows cost a call
        by_calls = _room(ctx.purse.remaining_in_step, n, taxonomies, per_row + per_passing)
        room = min(room, by_calls)
    tokens = None if each is None or fits else _Tokens(ctx, each, per_row + per_passing > 1)
    ledger_only = left == 0  # budget 0: the ledger alone
    ledger_rows = None
    if not fits and stage is None:
        if small is not None and after:
            ledger_rows = small.labelled, small.truth
        elif ledger_only or not after or ctx.fact("rows known to fail", lambda: True):
            ledger_rows = await known_rows(block, relation, ctx, every=ledger_only)
        if ledger_rows is not None and small is None and after and not ledger_only:
            # a row that is known to pass may still cost calls for its values: it is drawn as others are
            ledger_rows = _of_rows(ledger_rows, ledger_rows[1].no)
    own_size = size if stage is None or size is None else size[stage[0]]
    own_groups = groups if stage is None or groups is None else groups[stage[0]]
    size_of_look = min(pilot or 0, max(0, room))
    planned = size_of_look if watched else max(0, room)
    classes: _Classes | _Shares | Values | None = None
    if not fits and not ledger_only and relation.pool is None:
        classes = _values(target, relation, planned, ctx, groups, ledger_rows) or _classes(
            block, among, planned, ctx, own_groups, ledger_rows
        )
    condition = condition_of(block) if guided is not None else None
    if units is not None and ledger_rows is not None:
        ledger_rows = _of_rows(ledger_rows, units.whole(ledger_rows[0]))
    sampler = (
        classes.sampler
        if classes
        else of_pool(relation.pool, planned, ctx, groups)
        if relation.pool is not None
        else _sampler(among.n, planned, fits, ctx, guided, own_groups, own_size, ledger_rows, None if fits else units)
    )
    if stage is not None:
        sampler = TwoStageSample(n, stage[0], sampler, own_groups, purpose.sizes)
        if isinstance(classes, _Classes):
            classes.sampler = sampler
    if classes is None and condition is not None:
        classes = _Shares(sampler, condition)
    if block.filter.formula is None:  # rows that a taxonomy is named from cost nothing: they are chosen from all
        for column in block.values.groups:
            await sem_group.taxonomy(column, np.arange(relation.n, dtype=np.int64), relation, ctx, sampled=not fits)
    state = _SampleState(sampler, n)
    pending: list[Rids] = []  # rows that pass, with their groups and values not yet asked
    if ledger_rows is not None:
        state.rows.append(ledger_rows[0])
        state.truths.append(ledger_rows[1])
        if small is None and after:
            pending.append(ledger_rows[0][ledger_rows[1].yes])
    if watched:
        sampler.more(size_of_look)
    forecast = 0  # rows that the intervals take, by the pilot
    read = [column for stage in (*block.filter.stages, *after) for column in stage.columns]
    every = relation.in_parts(sampler.propose(n), read) if fits else None
    has_names = all(relation[column].prompt.labels is not None for column in block.values.groups)
    reopened = 0 if fits else REOPENED * sum(not sem_group.stays(column, ctx) for column in block.values.groups)
    while True:
        left = ctx.purse.remaining if fits else ctx.purse.remaining_in_step
        if isinstance(classes, _Classes) and left is not None and tokens is None and has_names:
            calls = max(0, left - reopened)
            classes.plan(min(calls, (size_of_look - state.n_asked) * (per_row + per_passing)) if watched else calls)
        elif isinstance(classes, Values) and left is not None and tokens is None:
            sampler.more(state.n_asked + left // max(1, per_passing))
        waiting = sum(len(rows) if units is None else units.count(rows) for rows in pending)
        step = CHUNK if every is None else n
        if left is not None and not fits:
            later = per_passing if has_names else len(after)
            reserve = (0 if has_names else taxonomies) + later * waiting + reopened
            step = min(step, (left - reserve) // max(1, per_row + later))
            if not has_names:  # the taxonomy is completed on the first rows, so that the others are asked once
                step = min(step, max(sem_group.SHOWN, room // 4))
        if tokens is not None:
            step = min(step, room - state.n_asked)
        if rides and not has_names:
            step = min(step, FIRST_ROWS)
        rids = (every or sampler.propose)(step) if step > 0 else np.zeros(0, dtype=np.int64)
        if not len(rids):
            if tokens is not None and not (watched and size_of_look < room):
                grown = min(by_calls, state.n_asked + tokens.rows(state.labelled))
                if grown >= room + 2:
                    room = grown
                    if not watched:
                        sampler.more(room)
                        continue
            if watched and excess is not None and step > 0:
                if pending:  # what the rows that pass hold, as far as it is not asked yet
                    await classify(after, block, np.concatenate(pending), relation, ctx, sampled=True)
                    pending = []
                times = excess(state.sampled())
                if times <= 1:
                    break
                needed = rows_foretold(times, state.n_asked, n)
                if not forecast:
                    forecast = needed
                    if _free_to_grow(ctx):
                        room = _granted(needed, state.n_asked, n, per_row + per_passing, ctx)
                    needed = int(CAUTIOUS * needed)
                least, most = (math.ceil(growth * state.n_asked) for growth in GROWTH)
                size_of_look = min(max(needed, least), most, room)
                if size_of_look >= state.n_asked + 2:
                    sampler.more(size_of_look)
                    continue
            if fits or not ctx.next_step():
                break
            n_units = state.n_asked if units is None else units.count(state.labelled)
            reserve = (0 if has_names else taxonomies) + (per_passing if has_names else len(after)) * waiting
            grown = _room(ctx.purse.remaining_in_step, n, reserve, per_row + (per_passing if has_names else len(after)))
            room = by_calls = n_units + max(0, grown)
            if watched:
                size_of_look = min(max(size_of_look, math.ceil(GROWTH[0] * state.n_asked)), room)
            if watched or guided is not None or classes is not None:  # a uniform sample ends with the calls
                sampler.more(size_of_look if watched else room)
            continue
        if not fits:
            await ctx.log_draw(f"sample of {relation.source}", rids)
        truth = await sem_filter.truth(block.filter, rids, relation, ctx)
        ended = not truth.complete.all()  # by a limit other than calls: what follows was not drawn
        if ended:
            n_complete = int(np.argmin(truth.complete))
            rids, truth = rids[:n_complete], truth.first(n_complete)
        if classes is not None:  # the sampler learns from the groups: they are asked before it is told
            await classify(after, block, rids[truth.yes], relation, ctx, sampled=not fits)
            state.tell(rids, truth, classes.answers(rids, truth, relation, ctx))
            has_names = True
            if purpose.report is not None:
                _report(block, state, purpose, ctx)
            if ended:
                break
            continue
        state.tell(rids, truth)
        if after:
            pending.append(rids[truth.yes])
            if waiting + len(pending[-1]) >= sem_group.SHOWN:
                await classify(after, block, np.concatenate(pending), relation, ctx, sampled=not fits)
                pending, has_names = [], True
        if not pending:
            _report(block, state, purpose, ctx)
        if ended:
            break
    if pending:
        await classify(after, block, np.concatenate(pending), relation, ctx, sampled=not fits)
    return state.sampled()


def _first_stage(
    room: int,
    relation: Relation,
    size: Floats | None,
    groups: Indices | None,
    ctx: Context,
) -> tuple[Rids, Relation] | None:
    """The rows of a first stage and the relation of them, where features of all rows would be far more than the calls need.

    None where the table is too small, no features are made, or a first stage could lack what counts: a few rows that hold much of a
    sum, or a small group.

    Args:
        room: rows that may be asked.
        size: (N,) what a SUM weighs each row with.
        groups: (N,) the groups of all rows, where DuckDB knows them.
    """
    n = first_stage(relation.n, room)
    if n is None or ctx.features is None or method_of(ctx) != DEFAULT_METHOD or ctx.settings.proxy is not None:
        return None
    if size is not None:
        weight = np.abs(np.nan_to_num(size))
        if relation.n * float((weight**2).sum()) > MOST_SPREAD * n * float(weight.sum()) ** 2:
            return None
    if groups is not None and int(np.bincount(groups).min()) * n < LEAST_OF_GROUP * relation.n:
        return None
    ctx.notes.append(
        f"{n:,} random rows stand for {relation.n:,}: features are made of these, and the interval covers that too"
    )
    return ctx.features.first_stage(relation, n)


def _of_rows(known: tuple[Rids, Truth], chosen: Indices | Flags) -> tuple[Rids, Truth] | None:
    """Some of the rows that are known, with their truth; None where there are none."""
    rids = known[0][chosen]
    return (rids, known[1].of(chosen)) if len(rids) else None


def _room(left: int | None, n: int, reserve: int, each: int) -> int:
    """The rows that calls pay for, at `each` calls a row, less a `reserve` for something else."""
    return n if left is None else (left - reserve) // max(1, each)


def _free_to_grow(ctx: Context) -> bool:
    """May `error = x` make the calls that it takes: is no budget given?"""
    return ctx.settings.budget is None and ctx.settings.max_tokens is None


def _granted(needed: int, n_asked: int, n: int, calls_of_row: int, ctx: Context) -> int:
    """The rows that may be asked where no budget is given: half more than the pilot foretells.

    Raises: BudgetError (UQL401) with the need, where their price, which `max_cost` bounds, is above `confirm_over`.
    """
    rows = min(n, int(SPARE * needed))
    calls, limit = (rows - n_asked) * calls_of_row, ctx.settings.confirm_over
    usd, error, most = calls * ctx.purse.usd_a_call, ctx.settings.error, ctx.settings.max_cost
    if limit is not None and min(usd, usd if most is None else most) > limit:
        about = (needed - n_asked) * calls_of_row
        raise BudgetError(
            f"error = {error:g} takes about {about:,} calls more, at most {calls:,}, up to ${usd:.2f}: more than "
            f"confirm_over = ${limit:g}; the answers of the {n_asked:,} rows asked are kept",
            help=f"WITH (error = {error:g}, budget = {calls}) allows them, or SET uql.confirm_over, or a larger error",
        )
    ctx.purse.allow(calls)
    if ctx.on_budget is not None:
        ctx.on_budget(calls)
    return rows


class _SampleState:
    """The rows asked so far."""

    def __init__(self, sampler: AggregateSampler, n: int) -> None:
        self.sampler, self.n = sampler, n
        self.n_asked = 0  # those known before left out
        self.n_reported = 0  # of which the latest estimate that was shown is
        self.rows: list[Rids] = []
        self.truths: list[Truth] = []

    def tell(self, rids: Rids, truth: Truth, answers: Floats | None = None) -> None:
        """The truth of rows in the order they were drawn; `answers`: instead of yes and no."""
        self.sampler.tell(rids, truth.answers if answers is None else answers)
        self.n_asked += len(rids)
        self.rows.append(rids)
        self.truths.append(truth)

    @property
    def labelled(self) -> Rids:
        """The rows asked, those known before left out."""
        rows = np.concatenate(self.rows) if self.rows else np.zeros(0, dtype=np.int64)
        return rows[len(rows) - self.n_asked :]

    def sampled(self) -> Sampled:
        rows = np.concatenate(self.rows) if self.rows else np.zeros(0, dtype=np.int64)
        flags = [
            np.concatenate([getattr(t, f) for t in self.truths]) if self.truths else np.zeros(0, bool)
            for f in ("yes", "no", "unknown")
        ]
        return Sampled(self.sampler, rows, Truth(*flags), len(rows) == self.n)


class _Tokens:
    """How many rows `max_tokens` pays for: at first half of what their lengths say, then what the rows asked so far teach.

    Args:
        each: (N,) tokens of every row, about.
        staged: whether rows are asked one thing after another.
    """

    def __init__(self, ctx: Context, each: Floats, staged: bool) -> None:
        self.ctx, self.each, self.slack = ctx, each, TOKEN_SLACK if staged else 1.0
        self.at_first = ctx.purse.tokens_left or 0

    @staticmethod
    def first(estimated: int) -> int:
        """Rows to begin with, where so many are thought to be paid for."""
        return max(min(estimated, LEAST_PAID), estimated // 2)

    def rows(self, rids: Rids) -> int:
        """More rows that the tokens left pay for almost surely, after `rids`: m rows take m·mean + 2·sd·√m tokens.

        What is left leaves room for one more request at its upper bound, so the last row has that; a row longer than those
        so far takes more.
        """
        left = self.ctx.purse.tokens_left
        if left is None or len(rids) < LEAST_PAID:
            return 0
        scale = self.slack * (self.at_first - left) / float(self.each[rids].sum())
        longer = float(np.quantile(self.each, LONG)) - float(self.each[rids].max())
        room = left - max(0.0, scale * longer)
        if room < 0 or scale <= 0:
            return 0
        mean, more = scale * float(self.each.mean()), SURE * scale * float(self.each.std())
        return 1 + int(((math.hypot(more, 2 * math.sqrt(mean * room)) - more) / (2 * mean)) ** 2)


@dataclass(slots=True)
class _Classes:
    """A sampler that learns which group a row is in, and the number of each group."""

    sampler: GroupBySampler | TwoStageSample
    column: VirtualColumn
    codes: dict[Any, int] = field(default_factory=dict)
    before: tuple[int, int] | None = None  # rows told and calls left at the last look

    def plan(self, left: int) -> None:
        """Fits the waves to come to the calls left. A row of theirs costs what one before it did, with the groups that were
        named and the rows that were asked again since the last look."""
        n_rows = len(self.sampler.labelled)
        if self.before is not None and n_rows > self.before[0]:
            spent = self.before[1] - left
            self.sampler.replan(int(left * (n_rows - self.before[0]) / spent) if spent > 0 else left)
        self.before = n_rows, left

    def answers(self, rids: Rids, truth: Truth, relation: Relation, ctx: Context) -> Floats:
        """(n,) the number of the row's group, −1 where it does not pass, NaN where that is unknown."""
        return _numbers(self.column, self.codes, rids, truth, relation)


def _numbers(column: VirtualColumn, codes: dict[Any, int], rids: Rids, truth: Truth, relation: Relation) -> Floats:
    """(n,) the numbers of groups by `codes`, which is added to; −1 where a row does not pass, NaN where that is unknown."""
    numbers = np.where(truth.no, -1.0, np.nan)
    column_answers = relation[column]
    for i in np.flatnonzero(truth.yes):
        rid = rids[i]
        if column_answers.asked_mask[rid] and not column_answers.failed[rid]:
            numbers[i] = codes.setdefault(column_answers.values[rid], len(codes))
    return numbers


@dataclass(slots=True)
class _Shares:
    """A sampler that learns the condition of FILTER (WHERE "…") where the query has no WHERE."""

    sampler: AggregateSampler
    column: VirtualColumn

    def answers(self, rids: Rids, truth: Truth, relation: Relation, ctx: Context) -> Floats:
        """(n,) whether the condition holds, NaN where that is unknown."""
        column_answers = relation[self.column]
        has_answer = column_answers.asked_mask[rids] & ~column_answers.failed[rids]
        values = column_answers.values[rids]
        return np.array([float(bool(v)) if k else np.nan for v, k in zip(values, has_answer, strict=True)])


def _classes(
    block: Block,
    relation: Relation,
    room: int,
    ctx: Context,
    groups: Indices | None,
    known: tuple[Rids, Truth] | None,
) -> _Classes | None:
    """The sampler of GROUP BY on one text, where there are features to learn from and enough calls; `known`: rows asked before."""
    if (
        len(block.values.groups) != 1
        or block.values.groups[0].many
        or ctx.features is None
        or ctx.settings.method == "uniform"
    ):
        return None
    if room < LEAST_CLASSES or relation.n < FEWEST_ROWS:
        return None
    table = ctx.features.of(relation, block.values.groups[0].reads)
    if table is None:
        return None
    column, codes = block.values.groups[0], dict[Any, int]()
    sampler = GroupBySampler(
        relation.n,
        room,
        rng=ctx.rng,
        confidence=ctx.settings.confidence,
        features=table.matrix,
        groups=groups,
        known=None if known is None else (known[0], _numbers(column, codes, *known, relation)),
    )
    return _Classes(sampler, column, codes)


def _values(
    target: Target | None,
    relation: Relation,
    room: int,
    ctx: Context,
    groups: Indices | None,
    known: tuple[Rids, Truth] | None,
) -> Values | None:
    """The sampler of means and sums by groups that DuckDB knows; `known`: rows asked before."""
    if target is None or groups is None:
        return None
    reads = tuple(dict.fromkeys(c for column in virtuals(target.call) for c in column.reads))
    table = None if ctx.features is None or relation.n < FEWEST_ROWS else ctx.features.of(relation, reads)
    sampler = ByGroupSampler(
        relation.n,
        room,
        rng=ctx.rng,
        confidence=ctx.settings.confidence,
        features=None if table is None else table.matrix,
        groups=groups,
        ranking=target.ranking,
        known=None if known is None else (known[0], read_values(target.call, known[0], relation, ctx)),
    )
    return Values(sampler, target.call)


def _tokens_of_rows(block: Block, after: tuple[Stage, ...], relation: Relation, ctx: Context) -> Floats | None:
    """(N,) the tokens of every row by its length, each with all that may be asked of it; None without `max_tokens`."""
    if ctx.settings.max_tokens is None or relation.n == 0:
        return None
    each = np.zeros(relation.n)
    for stage in (*block.filter.stages, *after):
        length = (
            " + ".join(f"coalesce(system.main.strlen(CAST({quote(c.label)} AS VARCHAR)), 0)" for c in stage.reads)
            or "0"
        )
        fixed = request_tokens(stage, 0.0, plain_prompt_tokens) + sum(c.operator.answer_tokens for c in stage.columns)
        each += fixed + relation.each(f"CAST({length} AS DOUBLE)") / BYTES_PER_TOKEN
    return np.maximum(each, 1.0)


async def classify(
    after: tuple[Stage, ...], block: Block, rids: Rids, relation: Relation, ctx: Context, *, sampled: bool
) -> None:
    """Writes the taxonomies, then asks the groups and values of these rows, of which each stands for others where they are
    `sampled`.

    Args:
        after: the requests of rows that pass.
        rids: (n,) the rows.
        sampled: each stands for others, so one in no group re-opens the taxonomy.
    """
    for column in block.values.groups:
        await sem_group.taxonomy(column, rids, relation, ctx, sampled=sampled)
    if block.values.groups and len(rids) > 2 * PILOT:  # rare groups are found on few rows, before all are asked
        pilot = np.sort(ctx.rng.choice(rids, PILOT, replace=False))
        await classify(after, block, pilot, relation, ctx, sampled=sampled)
    for stage in after:
        usable = tuple(c for c in stage.columns if c not in block.values.groups or relation[c].prompt.labels)
        if usable:
            first = answer_types.first_rows(usable, rids, relation)
            for part in (rids[:first], *(rids[start : start + CHUNK] for start in range(first, len(rids), CHUNK))):
                await asking.ask(replace(stage, columns=usable), part, relation, ctx)
                answer_types.refuse_words(usable, relation, ctx)
    for column in block.values.groups:
        await sem_group.reopen(column, rids, relation, ctx, sampled=sampled)


def _sampler(
    n: int,
    room: int,
    fits: bool,
    ctx: Context,
    guided: Guide | None,
    groups: Indices | None,
    size: Floats | None,
    ledger_rows: tuple[Rids, Truth] | None = None,
    units: Units | None = None,
) -> AggregateSampler:
    method = "uniform" if fits or guided is None else method_of(ctx)
    own = guided if guided is None or units is None else guided.of_units(units)
    extra: dict[str, Any] = {} if own is None else {"features": own.features, "prior": own.prior}
    if ledger_rows is not None:
        extra["known"] = (ledger_rows[0], ledger_rows[1].answers)
    sampler: AggregateSampler
    if units is None:
        sampler = _make(method, n, room, ctx, groups=groups, size=None if fits else size, **extra)
    else:
        ledger_answers = extra.pop("known", None)
        weight = units.sums(np.ones(n) if size is None else size)

        def make(m: int, **keywords: Any) -> AggregateSampler:
            return _make(method, m, min(room, m), ctx, size=weight, **extra, **keywords)

        sampler = UnitSample(units, make, known=ledger_answers, groups=groups)
    if method == "uniform":
        sampler.more(n)  # it may grow by what cheap rows leave over
    return sampler


def of_pool(pool: Pool, room: int, ctx: Context, groups: Indices | None = None) -> AggregateSampler:
    """The sample of a pool of pairs, for estimates over all that it stands for.

    Args:
        room: pairs that may be asked.
        groups: (pairs,) the group of each pair of the pool; None: no groups.
    """
    strata, sizes = pool.strata, pool.sizes
    return PairSampler(
        len(strata),
        room,
        rng=ctx.rng,
        confidence=ctx.settings.confidence,
        strata=strata,
        sizes=sizes,
        groups=groups,
    )


async def known_rows(
    block: Block, relation: Relation, ctx: Context, *, every: bool = False
) -> tuple[Rids, Truth] | None:
    """Rows that the ledger decides: they enter every estimate as what they are, never as a random sample.

    None where there are none, where there is nothing to decide, or (unless `every`) too many rows to look up; of pairs of which a pool
    stands for more, those that are asked are answered from there.

    Args:
        block: its WHERE is what the ledger decides.
        every: looks up any number of rows.
    Returns: the (n,) row ids, and their truth.
    """
    if (
        relation.pool is not None
        or block.filter.formula is None
        or not block.filter.stages
        or (relation.n > MOST_RECALLED and not every)
    ):
        return None
    rids, truth = await sem_filter.recalled(block.filter, relation, ctx)
    return (rids, truth) if len(rids) else None


def _make(method: str, n: int, budget: int, ctx: Context, **extra: Any) -> AggregateSampler:
    settings = ctx.settings
    return AGGREGATE[method](n, budget, rng=ctx.rng, confidence=settings.confidence, strata=settings.strata, **extra)


def _report(block: Block, state: _SampleState, purpose: Purpose, ctx: Context) -> None:
    """The estimates so far, for who watches the run."""
    if ctx.on_estimate is None or state.n_asked < TOLD_AGAIN * state.n_reported:
        return
    state.n_reported = state.n_asked
    if purpose.report is not None:
        purpose.report(state.sampled())
    elif block.filter.formula is not None:
        so_far = state.sampler.estimate()
        if so_far.value is not None:
            ctx.on_estimate("rows that pass", so_far)
