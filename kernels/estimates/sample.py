"""Which rows of a block are asked for its aggregates: all of them where they fit, else a sample that a sampler chooses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.cost import ANSWER_TOKENS, CHARS_PER_TOKEN, request_tokens
from uql.compiler.physical import Block, Stage
from uql.compiler.virtual import VirtualColumn
from uql.kernels import sem_filter, sem_group
from uql.kernels.base import Context, Relation, Rids
from uql.kernels.duck import quote
from uql.kernels.guide import FEWEST_ROWS, Guide, condition_of, guide
from uql.kernels.open_calls import MOST_RECALLED, open_calls
from uql.kernels.sem_filter import CHUNK, Truth
from uql.kernels.units import units_of
from uql.sampling.base import AggregateSampler
from uql.sampling.units import Units, UnitSample

DEFAULT_METHOD = "asd"
PILOT = 256  # rows classified first, on which a taxonomy is completed
LEAST_CLASSES = 24  # calls; below, a sample of groups learns nothing
FIRST_ROWS = (
    2 * sem_group.SHOWN
)  # rows asked at once before their groups are named and ride along with the WHERE of the others
FIRST_LOOK = 64  # rows before the first look of `error = x`
LEAST_PAID = 8  # rows from which on what they cost says what others will
TOKEN_SLACK = 1.1  # of the cost of a row that is asked one thing after another: not all are asked all
LONG = 0.99  # quantile of the rows' lengths that is looked out for
SURE = 2.0  # standard deviations that the rows of a step may cost more than their lengths say on average


@dataclass(slots=True)
class Sampled:
    """The rows asked, in the sampler's order, and what is known of each."""

    sampler: AggregateSampler
    told: Rids
    truth: Truth
    every: bool  # no row was left out

    @property
    def passing(self) -> Rids:
        return self.told[self.truth.yes]


def method_of(ctx: Context) -> str:
    """The sampler's name: the user's, or the engine's choice. Raises ConfigError (UQL105) for one that does not exist."""
    from uql.errors import ConfigError
    from uql.sampling.methods import AGGREGATE, RETRIEVAL

    name = ctx.settings.method or DEFAULT_METHOD
    if name not in {*AGGREGATE, *RETRIEVAL, "attribute"}:  # attribute: of joins
        raise ConfigError(
            f"there is no method {name!r}",
            help=f"for aggregates: {', '.join(sorted(AGGREGATE))}; for rows: {', '.join(sorted(RETRIEVAL))}",
        )
    return name if name in AGGREGATE else DEFAULT_METHOD


async def whole_cost(block: Block, relation: Relation, ctx: Context) -> int:
    """Calls that asking every row takes; of few rows, or of rows that are alike, those that are still to be made."""
    stages = (*block.filter_stages, *block.left_over(after_stages(block)))
    calls = relation.n * len(stages) + len(block.groups)
    if ctx.fits(calls) or block.groups or ctx.settings.max_tokens is not None:
        return calls
    if relation.n > MOST_RECALLED and units_of(block, relation, ctx) is None:
        return calls
    return min(calls, await open_calls(stages, relation, ctx))


async def draw(
    block: Block,
    relation: Relation,
    ctx: Context,
    groups: NDArray[np.int64] | None = None,
    size: NDArray[np.float64] | None = None,
    reached: Callable[[Sampled], bool] | None = None,
) -> Sampled:
    """Asks rows until all are asked or the budget is spent, keeping back what the rows that pass will still need.

    `groups` (N,) are the groups of all rows where DuckDB knows them, `size` (N,) what a SUM weighs each row with.

    Every step is no larger than fits if each of its rows passes, so nothing is ever half asked: a sample has no holes that the
    budget tore. With `error = x`, looks at B = 64, 128, … rows, each at its share of the level, stop the sampling as soon as
    `reached` says that every interval is narrow enough.
    """
    after = after_stages(block)
    taxonomies = len(block.groups)
    per_row, per_passing = len(block.filter_stages), len(block.left_over(after))
    rides = any(column.id in block.riders for column in block.groups)  # once it is named
    left = ctx.calls_left
    n = relation.n
    room = n if left is None else (left - taxonomies) // max(1, per_row + per_passing)
    everything = n * (per_row + per_passing) + taxonomies + (min(n, FIRST_ROWS) if rides else 0)
    if relation.derived:  # conditions on pairs that are answered from their rows
        everything += relation.calls(block.filter_stages) - n * per_row
    units = None if left is None or everything <= left else units_of(block, relation, ctx)
    if units is not None:
        everything = relation.calls((*block.filter_stages, *block.left_over(after))) + taxonomies
        everything += min(len(units), FIRST_ROWS) if rides else 0
    each = _tokens_of_rows(block, after, relation, ctx)
    if each is not None or block.groups:
        units = None
    elif not relation.derived:
        everything = min(everything, await whole_cost(block, relation, ctx))
    paid = None if each is None or ctx.settings.max_tokens is None else int(ctx.settings.max_tokens / each.mean())
    fits = (left is None or everything <= left) and (paid is None or n <= paid)
    by_calls = room
    room = room if paid is None or fits else min(room, _Tokens.first(paid))
    guided = None if fits or room <= 0 else await _guided(block, relation, ctx)
    if guided is not None:
        left = ctx.calls_left  # the example rows cost a call
        by_calls = 0 if left is None else (left - taxonomies) // max(1, per_row + per_passing)
        room = min(room, by_calls)
    tokens = None if each is None or fits else _Tokens(ctx, each, per_row + per_passing > 1)
    alone = left == 0  # budget 0: the ledger alone
    known = None if fits or (after and not alone) else await known_rows(block, relation, ctx, every=alone)
    classes: _Classes | _Shares | None = None if fits or alone else _classes(block, relation, max(0, room), ctx, groups)
    condition = condition_of(block) if guided is not None else None
    looks = ctx.settings.error is not None and reached is not None and not fits and classes is None
    looks = looks and (condition is not None or (not after and per_row > 0))
    look, size_of_look = 1, min(FIRST_LOOK, max(0, room))
    planned = size_of_look if looks else max(0, room)
    if units is not None and known is not None:
        whole = units.whole(known[0])
        known = known[0][whole], known[1].of(whole)
    sampler = (
        classes.sampler
        if classes
        else _sampler(n, planned, fits, ctx, guided, groups, size, known, None if fits else units)
    )
    if classes is None and condition is not None:
        classes = _Shares(sampler, condition)
    if block.formula is None:  # rows that a taxonomy is named from cost nothing: they are chosen from all
        for column in block.groups:
            await sem_group.taxonomy(column, np.arange(n, dtype=np.int64), relation, ctx)
    drawn = _Drawn(sampler, n)
    pending: list[Rids] = []  # rows that pass, with their groups and values not yet asked
    if known is not None:
        drawn.rows.append(known[0])
        drawn.truths.append(known[1])
        pending.append(known[0][known[1].yes])
    if looks:
        sampler.more(size_of_look, look)
    named = all(column.id in relation.labels for column in block.groups)
    while True:
        left = ctx.calls_left
        waiting = sum(len(rows) if units is None else units.count(rows) for rows in pending)
        step = CHUNK
        if left is not None and not fits:
            later = per_passing if named else len(after)
            kept = (0 if named else taxonomies) + later * waiting
            step = min(step, (left - kept) // max(1, per_row + later))
            if not named:  # the taxonomy is completed on the first rows, so that the others are asked once
                step = min(step, max(sem_group.SHOWN, room // 4))
        if tokens is not None:
            step = min(step, room - drawn.asked)
        if rides and not named:
            step = min(step, FIRST_ROWS)
        rids = sampler.propose(step) if step > 0 else np.zeros(0, dtype=np.int64)
        if not len(rids):
            if tokens is not None and not (looks and size_of_look < room):
                grown = min(by_calls, drawn.asked + tokens.rows(drawn.told))
                if grown >= room + 2:
                    room = grown
                    if not looks:
                        sampler.more(room)
                        continue
            if step <= 0 or not looks or reached is None or size_of_look >= room or reached(drawn.sampled()):
                break
            look, size_of_look = look + 1, min(2 * size_of_look, room)
            sampler.more(size_of_look, look)
            continue
        if not fits:
            await ctx.drawn(f"sample of {relation.source}", rids)
        truth = await _truth(block, rids, relation, ctx)
        ended = not truth.complete.all()  # by a limit other than calls: what follows was not drawn
        if ended:
            asked = int(np.argmin(truth.complete))
            rids, truth = rids[:asked], truth.first(asked)
        if classes is not None:  # the sampler learns from the groups: they are asked before it is told
            await classify(after, block, rids[truth.yes], relation, ctx)
            drawn.tell(rids, truth, classes.answers(rids, truth, relation))
            named = True
            if ended:
                break
            continue
        drawn.tell(rids, truth)
        pending.append(rids[truth.yes])
        if after and waiting + len(pending[-1]) >= sem_group.SHOWN:
            await classify(after, block, np.concatenate(pending), relation, ctx)
            pending, named = [], True
        _report(block, sampler, ctx)
        if ended:
            break
    if after and pending:
        await classify(after, block, np.concatenate(pending), relation, ctx)
    return drawn.sampled()


class _Drawn:
    """The rows asked so far."""

    def __init__(self, sampler: AggregateSampler, n: int) -> None:
        self.sampler, self.n = sampler, n
        self.asked = 0  # those known before left out
        self.rows: list[Rids] = []
        self.truths: list[Truth] = []

    def tell(self, rids: Rids, truth: Truth, answers: NDArray[np.float64] | None = None) -> None:
        """The truth of rows in the order they were drawn; `answers`: instead of yes and no."""
        self.sampler.tell(rids, truth.answers if answers is None else answers)
        self.asked += len(rids)
        self.rows.append(rids)
        self.truths.append(truth)

    @property
    def told(self) -> Rids:
        """The rows asked, those known before left out."""
        rows = np.concatenate(self.rows) if self.rows else np.zeros(0, dtype=np.int64)
        return rows[len(rows) - self.asked :]

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

    def __init__(self, ctx: Context, each: NDArray[np.float64], staged: bool) -> None:
        self.ctx, self.each, self.slack = ctx, each, TOKEN_SLACK if staged else 1.0
        self.at_first = ctx.tokens_left or 0

    @staticmethod
    def first(estimated: int) -> int:
        """Rows to begin with, where so many are thought to be paid for."""
        return max(min(estimated, LEAST_PAID), estimated // 2)

    def rows(self, asked: Rids) -> int:
        """More rows that the tokens left pay for almost surely, after those `asked`: m rows take m·mean + 2·sd·√m tokens.

        What is left leaves room for one more request at its upper bound, so the last row has that; a row longer than those
        so far takes more.
        """
        left = self.ctx.tokens_left
        if left is None or len(asked) < LEAST_PAID:
            return 0
        scale = self.slack * (self.at_first - left) / float(self.each[asked].sum())
        longer = float(np.quantile(self.each, LONG)) - float(self.each[asked].max())
        room = left - max(0.0, scale * longer)
        if room < 0 or scale <= 0:
            return 0
        mean, more = scale * float(self.each.mean()), SURE * scale * float(self.each.std())
        return 1 + int(((math.hypot(more, 2 * math.sqrt(mean * room)) - more) / (2 * mean)) ** 2)


@dataclass(slots=True)
class _Classes:
    """A sampler that learns which group a row is in, and the number of each group."""

    sampler: AggregateSampler
    column: VirtualColumn
    codes: dict[Any, int] = field(default_factory=dict)

    def answers(self, rids: Rids, truth: Truth, relation: Relation) -> NDArray[np.float64]:
        """(n,) the number of the row's group, −1 where it does not pass, NaN where that is unknown."""
        found = np.where(truth.no, -1.0, np.nan)
        column = self.column.id
        for i in np.flatnonzero(truth.yes):
            rid = rids[i]
            if relation.asked[column][rid] and not relation.failed[column][rid]:
                found[i] = self.codes.setdefault(relation.values[column][rid], len(self.codes))
        return found


@dataclass(slots=True)
class _Shares:
    """A sampler that learns the condition of FILTER (WHERE "…") where the query has no WHERE."""

    sampler: AggregateSampler
    column: VirtualColumn

    def answers(self, rids: Rids, truth: Truth, relation: Relation) -> NDArray[np.float64]:
        """(n,) whether the condition holds, NaN where that is unknown."""
        column = self.column.id
        known = relation.asked[column][rids] & ~relation.failed[column][rids]
        values = relation.values[column][rids]
        return np.array([float(bool(v)) if k else np.nan for v, k in zip(values, known, strict=True)])


def _classes(
    block: Block, relation: Relation, room: int, ctx: Context, groups: NDArray[np.int64] | None
) -> _Classes | None:
    """The sampler of GROUP BY on one text, where there are features to learn from and enough calls."""
    if len(block.groups) != 1 or block.groups[0].many or ctx.features is None or ctx.settings.method == "uniform":
        return None
    if room < LEAST_CLASSES or relation.n < FEWEST_ROWS:
        return None
    table = ctx.features.of(relation, block.groups[0].reads)
    if table is None:
        return None
    from uql.sampling.groupby import GroupBySampler

    sampler = GroupBySampler(
        relation.n, room, rng=ctx.rng, confidence=ctx.settings.confidence, features=table.matrix, groups=groups
    )
    return _Classes(sampler, block.groups[0])


def _tokens_of_rows(
    block: Block, after: tuple[Stage, ...], relation: Relation, ctx: Context
) -> NDArray[np.float64] | None:
    """(N,) the tokens of every row by its length, each with all that may be asked of it; None without `max_tokens`."""
    if ctx.settings.max_tokens is None or relation.n == 0:
        return None
    each = np.zeros(relation.n)
    for stage in (*block.filter_stages, *after):
        shown = " + ".join(f"coalesce(length(CAST({quote(c.label)} AS VARCHAR)), 0)" for c in stage.reads) or "0"
        table = ctx.duck.arrow(f"SELECT CAST({shown} AS DOUBLE) AS n FROM {quote(relation.name)} ORDER BY rowid")
        chars = np.asarray(table.column(0).to_numpy(zero_copy_only=False), dtype=np.float64)
        fixed = request_tokens(stage, 0.0) + sum(ANSWER_TOKENS[c.kind] for c in stage.columns)
        each += fixed + chars / CHARS_PER_TOKEN
    return np.maximum(each, 1.0)


def after_stages(block: Block) -> tuple[Stage, ...]:
    """What is asked of a row that passes: its groups and its values."""
    return block.row_stages


async def classify(after: tuple[Stage, ...], block: Block, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Writes the taxonomies, then asks the groups and values of these rows."""
    for column in block.groups:
        await sem_group.taxonomy(column, rids, relation, ctx)
    if block.groups and len(rids) > 2 * PILOT:  # rare groups are found on few rows, before all are asked
        pilot = np.sort(ctx.rng.choice(rids, PILOT, replace=False))
        await classify(after, block, pilot, relation, ctx)
    for stage in after:
        usable = tuple(c for c in stage.columns if c not in block.groups or relation.labels.get(c.id))
        if usable:
            for start in range(0, len(rids), CHUNK):
                await relation.ask(replace(stage, columns=usable), rids[start : start + CHUNK], ctx)
    for column in block.groups:
        await sem_group.reopen(column, rids, relation, ctx)


async def _truth(block: Block, rids: Rids, relation: Relation, ctx: Context) -> Truth:
    if block.formula is None:
        yes = np.ones(len(rids), dtype=bool)
        return Truth(yes, ~yes, ~yes)
    return await sem_filter.truth(block.formula, block.filter_stages, rids, relation, ctx)


async def _guided(block: Block, relation: Relation, ctx: Context) -> Guide | None:
    return None if method_of(ctx) == "uniform" else await guide(block, relation, ctx)


def _sampler(
    n: int,
    room: int,
    fits: bool,
    ctx: Context,
    guided: Guide | None,
    groups: NDArray[np.int64] | None,
    size: NDArray[np.float64] | None,
    known: tuple[Rids, Truth] | None = None,
    units: Units | None = None,
) -> AggregateSampler:
    method = "uniform" if fits or guided is None else method_of(ctx)
    budget = n if method == "uniform" else room  # a uniform sample may grow by what cheap rows leave over
    extra: dict[str, Any] = {} if guided is None else {"features": guided.features, "prior": guided.prior}
    if known is not None:
        extra["known"] = (known[0], known[1].answers)
        budget += len(known[0]) if method == "uniform" else 0
    if units is None:
        return _make(method, n, budget, ctx, groups=groups, size=None if fits else size, **extra)
    first, known_of = units.first, extra.pop("known", None)
    extra = {name: None if of_rows is None else of_rows[first] for name, of_rows in extra.items()}
    weight = units.sums(np.ones(n) if size is None else size)

    def make(m: int, **keywords: Any) -> AggregateSampler:
        return _make(method, m, min(budget, m), ctx, size=weight, proportional=True, **extra, **keywords)

    return UnitSample(units, make, known=known_of, groups=groups)


async def known_rows(
    block: Block, relation: Relation, ctx: Context, *, every: bool = False
) -> tuple[Rids, Truth] | None:
    """Rows that the ledger decides: they enter every estimate as what they are, never as a random sample.

    None where there are none, where there is nothing to decide, or (unless `every`) too many rows to look up.
    """
    if block.formula is None or not block.filter_stages or (relation.n > MOST_RECALLED and not every):
        return None
    rids, truth = await sem_filter.recalled(block.formula, block.filter_stages, relation, ctx)
    return (rids, truth) if len(rids) else None


def _make(method: str, n: int, budget: int, ctx: Context, **extra: Any) -> AggregateSampler:
    from uql.sampling.methods import AGGREGATE

    settings = ctx.settings
    return AGGREGATE[method](n, budget, rng=ctx.rng, confidence=settings.confidence, strata=settings.strata, **extra)


def _report(block: Block, sampler: AggregateSampler, ctx: Context) -> None:
    """The estimate so far, for progress."""
    if ctx.on_estimate is None or block.formula is None:
        return
    so_far = sampler.estimate()
    if so_far.value is not None:
        ctx.on_estimate("rows that pass", so_far)
