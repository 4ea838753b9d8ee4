"""The calls of a plan, told by worlds: each draws how often every term is true, and asks the rows as DuckDB has them.

A world is as good a guess as another: its selectivities are drawn from what is known of the terms, nothing for one not asked before.
In each, what one block asked is known to the next, rows of equal content are asked once, and rows without content never: as the
ledger and the gate do it. The range of the calls is what the worlds span, but for the lowest of many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from uql.compiler import cost
from uql.compiler.cost import GROUPS, BlockStatistics, Calls, Codes, Quote, Range, Site, blocks, comparisons, examples
from uql.compiler.expression_text import show
from uql.compiler.formula import FALSE, NULL, OPEN, TRUE, Formula, Leaf, Masks
from uql.compiler.orders import IMAGINED, best
from uql.compiler.physical import (
    Block,
    Correlated,
    Goal,
    PhysicalPlan,
    Stage,
    UnionPlan,
    asked_joins,
    asking,
    asks,
    inner_plans,
    stages,
)
from uql.compiler.syntax import Call
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import adds_answers, walk

WORLDS, FEW, MANY_ROWS = 24, 8, 2_000  # worlds; those over more rows than this
MANY = 20  # worlds, of which the lowest does not count
TIMES_OFF = 2.0  # that rates of earlier queries may be wrong
NUMBER_CHARS = 3  # of a row's number in a request for a summary
REOPENED = 0.25  # of the rows of a GROUP BY, at most, that are expected to be in none of the groups named first
FIRST_ROWS = 8  # asked every question, before an order is learned from answers
FIRST_CHUNK = 32  # rows; each further chunk has as many as all before it
LEAST_ROWS = 160  # of which these are a twentieth
MOST_SUMMARIES = 20  # calls that a sample keeps for each summary, at most a quarter of them
MOST_OUTPUTS = 0.5  # different ones a row, from which on SELECT DISTINCT asks every row
TURNS_A_STEP = 4  # after so many rows of a group, that share of them is asked at once
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SimulatedCalls:
    """What the worlds tell of a plan: its price, and the calls of each block by its identity."""

    quote: Quote
    blocks: dict[int, Calls]


def simulate(
    plan: PhysicalPlan, knowledge: Callable[[Block], BlockStatistics], budget: int | None = None
) -> SimulatedCalls | None:
    """The calls of a plan in each world, within a budget that its parts share as they do in a run.

    None where DuckDB cannot show the rows of a block that asks before the run, a search was begun, or an attribute may answer for pairs.

    Args:
        knowledge: what is known of each block.
        budget: calls; None: without limit.
    """
    ordered = blocks(plan)
    statistics = {i: knowledge(block) for i, block in ordered.items()}
    for i, k in statistics.items():
        if (k.site is None and asks(ordered[i])) or k.until is not None or _by_attribute(ordered[i], k):
            return None
    rows = max((k.site.n for k in statistics.values() if k.site is not None), default=0)
    statistics, contents = _numbered(statistics)
    many = WORLDS if rows <= MANY_ROWS else FEW
    worlds = [_World(i, many, statistics, contents, budget) for i in range(many + 1)]
    for world in worlds:
        world.run(plan)
    quotes = [
        sum(
            (cost.block_quote(ordered[i], replace(statistics[i], calls=_calls([one]))) for i, one in w.results.items()),
            cost.FREE,
        )
        for w in worlds
    ]
    whole = Quote(**{part: _range([getattr(q, part).expected for q in quotes]) for part in cost.QUOTE_PARTS})
    return SimulatedCalls(whole, {i: _calls([w.results[i] for w in worlds]) for i in ordered})


def _by_attribute(block: Block, statistics: BlockStatistics) -> bool:
    """May conditions on pairs be decided from an attribute of each row, in place of the pairs?"""
    if not statistics.weighs_pairs:
        all_stages = (*block.filter.stages, *(stage for join in asked_joins(block) for stage in join.stages))
        return any(cost.told_by_rows(stage, statistics) for stage in all_stages)
    budget = statistics.budget
    return budget is not None and statistics.rows.expected > budget >= cost.by_attribute(statistics) > 0


def _numbered(statistics: dict[int, BlockStatistics]) -> tuple[dict[int, BlockStatistics], Codes]:
    """The same with contents numbered from 0, which stands for none, and the contents themselves."""
    sites = [site for k in statistics.values() for site in (k.site, *k.pair_sites) if site is not None]
    none = np.zeros(1, dtype=np.uint64)
    contents = np.unique(np.concatenate([none, *(codes for site in sites for codes in site.cells.values())]))

    def one(site: Site) -> Site:
        cells = {columns: np.searchsorted(contents, codes).astype(np.uint64) for columns, codes in site.cells.items()}
        return replace(site, cells=cells)

    return {
        i: replace(k, site=one(k.site) if k.site is not None else None, pair_sites=tuple(map(one, k.pair_sites)))
        for i, k in statistics.items()
    }, contents


def _range(values: list[float]) -> Range:
    """Expected is the first world's, with the usual selectivities. Of many worlds the lowest is left out, but for one of few calls and
    where all others are alike."""
    least, most = sorted(values)[len(values) // MANY], max(values)
    low = min(values[0], least) if cost.UNSPENT < least < most else min(values)
    return Range(low, values[0], most)


def _calls(outcomes: list[_Block]) -> Calls:
    """Those of a block in all worlds; by stage of those worlds that keep to the plan: others learn a better one while they run."""
    faithful = [f for f in outcomes if f.as_planned] or outcomes
    stages = {stage: _range([f.by_stage.get(stage, 0.0) for f in faithful]) for stage in faithful[0].by_stage}
    parts = ("taxonomies", "summaries", "passing", "comparisons", "examples")
    own = {part: _range([getattr(f, part) for f in faithful]) for part in parts}
    return Calls(stages, **own, whole=_range([f.total for f in outcomes]))


@dataclass(slots=True)
class _Block:
    """The calls of one block in one world."""

    by_stage: dict[Stage, float] = field(default_factory=dict)
    taxonomies: float = 0.0
    summaries: float = 0.0
    passing: float = 0.0
    comparisons: float = 0.0
    examples: float = 0.0
    rows: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # numbers of those that pass
    as_planned: bool = True

    @property
    def total(self) -> float:
        return sum(self.by_stage.values()) + self.taxonomies + self.summaries + self.comparisons + self.examples


class _World:
    """One guess at the answers. The first has the usual selectivities, met exactly."""

    def __init__(
        self,
        number: int,
        worlds: int,
        statistics: Mapping[int, BlockStatistics],
        contents: Codes,
        budget: int | None = None,
    ) -> None:
        self.number, self.worlds, self.statistics, self.contents = number, worlds, statistics, contents
        self.left = inf if budget is None else float(budget)
        self.later = 0  # parts that ask a model and run after this one
        self.for_each_value = False  # is the part run once for each value, with a share of what the others left?
        self.ends_at = inf  # calls with which a search, or a sample, ends
        self.asked_rows: dict[object, Flags] = {}  # by question: (contents,) those asked
        self._draw_cache: dict[object, NDArray[np.float64]] = {}
        self.results: dict[int, _Block] = {}
        self.rng = np.random.default_rng([number, 17])
        for site in (site for k in statistics.values() for site in (k.site, *k.pair_sites) if site is not None):
            for column, rows in site.answered:
                self._note_asked((column,), site.content((column,))[rows])

    def run(self, plan: PhysicalPlan) -> None:
        """Runs a plan, what stands in several places once."""
        if isinstance(plan, UnionPlan):
            self._before(plan.left, asking(plan.right, before=[plan.left]))
            self.run(plan.right)
        elif isinstance(plan, Block) and id(plan) not in self.results:
            below = inner_plans(plan)
            for i, part in enumerate(below):
                around, first = self.for_each_value, len(below) - len(plan.inner.repeated)
                self.for_each_value = around or i >= first
                self._before(part, asking(*below[i + 1 :], before=below[: i + 1]) + asks(plan))
                self.for_each_value = around
            left, outcome = self.left, self._block(plan, self.statistics[id(plan)])
            self.results[id(plan)], self.left = outcome, max(0.0, left - outcome.total)

    def _before(self, plan: PhysicalPlan, parts: int) -> None:
        """Runs a plan while so many parts are still to come."""
        self.later += parts
        self.run(plan)
        self.later -= parts

    def _room(self, block: Block, site: Site, rows: Flags) -> float:
        """The calls that a block may make which asks these rows: its share, where it needs more than are left."""
        asked = (*block.filter.stages, *block.filter.left_over(block.values.stages))
        if sum(_different(site.content(s.columns)[rows]) for s in asked) + len(block.values.groups) <= self.left:
            return self.left
        room = self.left // (1 + self.later)
        if self.for_each_value:  # those whose rows were asked for others leave some of their shares
            room *= (1 + self.chance("shares")) / 2
        kept = min(len(block.summaries.columns) * MOST_SUMMARIES, room // 4)
        return room - kept

    def _drawn(
        self, block: Block, statistics: BlockStatistics, site: Site, rows: Flags, masks: Masks | None, passing: Flags
    ) -> Flags:
        """The rows that a sample or a search asks, where not all fit; those whose answers are known are given to it.

        A sample that features guide has as many rows as fit if each of them is asked everything; others end with the calls.
        """
        own = tuple(s for s in block.filter.left_over(block.values.stages) if not s.of_pairs)
        every, room = (*block.filter.stages, *own), self._room(block, site, rows)
        if sum(np.count_nonzero(self._new(s.columns, site, rows)) for s in every) <= room:
            return rows
        formula, sampled = block.filter.formula, block.aggregate.present
        asked = rows.copy()
        for stage in every:
            asked &= self._all_asked(stage.columns, site)
        known = asked.copy()
        if formula is not None and masks is not None:
            decided = formula.evaluate(self._now(formula, masks, site))
            known = rows & (decided != OPEN)
            for stage in own:
                known &= self._all_asked(stage.columns, site)
        if sampled and block.values.stages:  # what a row that passes holds costs calls: it is given the others
            known = rows & (decided & TRUE == 0) if masks is not None else np.zeros(site.n, dtype=bool)
        open_rows = np.flatnonzero(rows & ~known)
        open_rows = self.rng.permutation(open_rows)
        places = np.arange(1, len(open_rows) + 1) / (len(open_rows) + 1)
        if self.number % 2:  # a sample that features spread has few rows alike
            places += sum(_repeats(site.content(stage.columns)[open_rows]) for stage in every)
        if sampled and self.chance("same draw") > 0.5:  # it draws as an earlier sample did that was asked the same
            shown = np.logical_or.reduce([site.content(stage.columns) != 0 for stage in every])
            places[(asked & shown)[open_rows]] -= len(every) + 1.0
        if not sampled:  # a search meets what it looks for earlier, and ends where what is left may not do for a batch
            places[passing[open_rows]] *= 1 - self.chance("search")
            room = max(0.0, room - self.chance("left") * cost.unspent(room) * (len(every) - 1))
        order = open_rows[np.argsort(places)]
        n = room / max(1, len(every))
        in_rows = sampled and statistics.guided and n >= cost.LEAST_GUIDED and not _by_group(block, site, n)
        in_rows = in_rows and not self.for_each_value
        for _ in range(0 if in_rows else 4):
            drawn = known.copy()
            drawn[order[: round(n)]] = True
            n *= room / max(1.0, self._calls(block, own, site, drawn, masks, passing))
        known[order[: round(n)]] = True
        self.ends_at = inf if in_rows else room
        return known

    def _calls(
        self, block: Block, own: tuple[Stage, ...], site: Site, rows: Flags, masks: Masks | None, passing: Flags
    ) -> float:
        """The calls that asking some rows would take; nothing is known of them from then on."""
        calls: dict[Stage, float] = {}
        before, self.asked_rows = self.asked_rows, dict(self.asked_rows)
        if block.filter.formula is not None and masks is not None:
            self._filter(block.filter.formula, block.filter.stages, masks, site, rows, calls)
        needed = sum(calls.values()) + sum(self.ask(s.columns, (), site, rows & passing) for s in own)
        self.asked_rows = before
        return needed

    def _note_asked(self, columns: Iterable[VirtualColumn], contents: Codes) -> None:
        """The answers to these questions are known of these contents from now on."""
        flags = np.zeros(len(self.contents), dtype=bool)
        flags[contents] = True
        for key in map(_question, columns):
            self.asked_rows[key] = flags | self.asked_rows[key] if key in self.asked_rows else flags

    # ------------------------------------------------------------------------------------------------------------ chance
    def at(self, of: Range, what: object) -> float:
        """A value of a range: the expected one in the first world."""
        u = self.chance(what)
        if u < 0.5:
            return of.low + (of.expected - of.low) * 2 * u
        return of.expected + (of.high - of.expected) * (2 * u - 1)

    def chance(self, what: object) -> float:
        """A number in 0 … 1 for one thing: over the worlds they lie evenly, 0.5 in the first."""
        if self.number == 0:
            return 0.5
        return float(_order(what, self.worlds)[self.number - 1] / (self.worlds - 1))

    def draws(self, codes: Codes, what: object) -> NDArray[np.float64]:
        """(n,) a number in 0 … 1 for each content, in this world."""
        seed = np.uint64(_seed((what, self.number)))
        hashes = cost.mixed(codes, np.full(len(codes), seed, dtype=np.uint64))
        return (hashes >> np.uint64(11)).astype(np.float64) / float(1 << 53)

    def _rate(self, i: int, leaf: Leaf, statistics: BlockStatistics, least: float) -> float:
        if statistics.rates is not None:
            off = TIMES_OFF ** (2 * self.chance(show(leaf.expr)) - 1)
            return min(1.0, float(statistics.rates[i] * off))
        if (share := cost.share_answered(leaf)) is not None:
            return share
        if self.number == 0:
            return cost.usual(i, leaf, statistics)
        share = self.chance(show(leaf.expr))
        if least:  # what is searched for is rare, or nearly all, more often than not
            share = float(np.sin(np.pi / 2 * share) ** 2)
        return least + (1 - 2 * least) * share

    def _answers(self, formula: Formula, site: Site, statistics: BlockStatistics, least: float = 0.0) -> Masks:
        """(leaves, n) what every term is of every row. `least`: the rate at least of a term not asked before."""
        masks: Masks = site.leaves.copy()
        # answers of earlier queries are drawn as whole rows in every other world; those of a pilot, in each
        remembered = statistics.share is None and statistics.rates is not None and self.number % 2
        if statistics.answers is not None and statistics.answers.shape[1] and not remembered:
            sample = statistics.answers[
                :, self.rng.integers(statistics.answers.shape[1], size=statistics.answers.shape[1])
            ]
            picked = sample[:, self.rng.integers(sample.shape[1], size=site.n)]
            for i, leaf in enumerate(formula.leaves):
                if leaf.semantic:
                    picked[i, site.content(leaf.columns) == 0] = NULL
            return np.where(site.leaves == OPEN, picked, masks).astype(np.uint8)
        for i, leaf in enumerate(formula.leaves):
            open_, name = masks[i] == OPEN, show(leaf.expr)
            if not leaf.semantic:  # it waits for answers
                yes = self.draws(np.arange(1, site.n + 1, dtype=np.uint64), (name, i)) < self.chance(name)
                masks[i] = np.where(open_, np.where(yes, TRUE, FALSE), masks[i])
                continue
            content, rate = site.content(leaf.columns), self._rate(i, leaf, statistics, least)
            if (columns := leaf.columns[0].inputs) and all(c.inputs == columns for c in leaf.columns):
                if name not in self._draw_cache:
                    self._draw_cache[name] = self.draws(self.contents, name)
                draws = self._draw_cache[name][content]
            else:  # of several rows of a pair: their contents together are none of those that are numbered
                draws = self.draws(content, name)
            if self.number == 0:  # the rate is met exactly
                numbers, first = np.unique(content, return_index=True)
                some = np.sort(draws[first[numbers != 0]])
                quota = round(rate * len(some))
                rate = some[quota] if quota < len(some) else 1.0
            drawn = np.where(content == 0, NULL, np.where(draws < rate, TRUE, FALSE))
            masks[i] = np.where(open_, drawn, masks[i])
        return masks

    # ------------------------------------------------------------------------------------------------------------ asking
    def ask(
        self, columns: tuple[VirtualColumn, ...], riders: tuple[VirtualColumn, ...], site: Site, rows: Flags
    ) -> float:
        """The calls that a request for each of these rows takes; its answers are known from then on."""
        new = self._new(columns, site, rows)
        self._note_asked((*columns, *riders), np.flatnonzero(new).astype(np.uint64))
        return float(np.count_nonzero(new))

    def _new(self, columns: tuple[VirtualColumn, ...], site: Site, rows: Flags) -> Flags:
        """(contents,) those of these rows of which not all these questions were asked."""
        new = np.zeros(len(self.contents), dtype=bool)
        new[site.content(columns)[rows]] = True
        new[0] = False
        earlier = [self.asked_rows[key] for key in map(_question, columns) if key in self.asked_rows]
        if len(earlier) == len(columns):
            new &= ~np.logical_and.reduce(earlier)
        return new

    def _all_asked(self, columns: tuple[VirtualColumn, ...], site: Site) -> Flags:
        """(n,) the rows of which all these questions were asked, or have nothing to ask."""
        rows = np.ones(site.n, dtype=bool)
        for column in columns:
            content, flags = site.content((column,)), self.asked_rows.get(_question(column))
            rows &= (content == 0) if flags is None else (content == 0) | flags[content]
        return rows

    def _now(self, formula: Formula, masks: Masks, site: Site, *, asked: bool = True) -> Masks:
        """The leaves as far as they are known: by DuckDB, by the ledger, and where `asked` says so by earlier blocks, or by a NULL."""
        now: Masks = np.where(site.leaves == OPEN, OPEN, masks).astype(np.uint8)
        for i, leaf in enumerate(formula.leaves):
            if not leaf.semantic:
                now[i] = masks[i]
            elif asked:
                now[i] = np.where(self._all_asked(leaf.columns, site), masks[i], now[i])
        return now

    def _filter(
        self,
        formula: Formula,
        stages: tuple[Stage, ...],
        masks: Masks,
        site: Site,
        rows: Flags,
        calls: dict[Stage, float],
    ) -> None:
        """Asks the stages in their order, each of the rows that are not decided."""
        several = sum(len(stage.columns) for stage in stages) > 1
        now, ids = self._now(formula, masks, site, asked=several), set[int]()
        for stage in stages:
            own = [j for j, leaf in enumerate(formula.leaves) if any(c in stage.columns for c in leaf.columns)]
            undecided = np.logical_or.reduce(formula.relevant(now)[own], axis=0) & rows
            calls[stage] = calls.get(stage, 0.0) + self.ask(stage.columns, stage.riders, site, undecided)
            ids |= {c.id for c in stage.columns}
            for j in own:
                if all(c.id in ids for c in formula.leaves[j].columns):
                    now[j] = np.where(undecided, masks[j], now[j])

    def _settled(self, block: Block, statistics: BlockStatistics) -> Block:
        """The block as the answers of a pilot have it: by turns as now, and as where most terms are false, or true."""
        way = (None, *statistics.ways)[self.number % (1 + len(statistics.ways))]
        if way is None:
            return block
        return block.with_requests(way.filter.stages, way.values.stages, way.values.late)

    def _every(
        self,
        formula: Formula,
        stages: tuple[Stage, ...],
        masks: Masks,
        site: Site,
        rows: Flags,
        statistics: BlockStatistics,
        outcome: _Block,
    ) -> None:
        """Asks as many of these rows as decide them all. Every other world learns the best order while it runs."""
        if len(stages) > 1 and statistics.learns:
            if (
                self.number
                and rows.sum() >= LEAST_ROWS
                and statistics.rates is None
                and statistics.answers is None
                and not statistics.pilot
            ):
                self._pilot(FIRST_ROWS, stages, site, rows, outcome.by_stage)
            if self.number % 2 and rows.any():
                some = masks[:, rows][:, :IMAGINED]
                order, _ = best(formula, stages, some, [stage.cost for stage in stages])
                stages, outcome.as_planned = tuple(stages[i] for i in order), False
        questions = [_question(column) for stage in stages for column in stage.columns]
        if len(set(questions)) == len(questions):
            self._filter(formula, stages, masks, site, rows, outcome.by_stage)
            return
        # the two sides of a join are asked the same: what one chunk of rows was asked may decide those of the next
        shuffled, start = self.rng.permutation(np.flatnonzero(rows)), 0
        while start < max(1, len(shuffled)):
            chunk = np.zeros(site.n, dtype=bool)
            chunk[shuffled[start : start + max(FIRST_CHUNK, start)]] = True
            self._filter(formula, stages, masks, site, chunk, outcome.by_stage)
            start += max(FIRST_CHUNK, start)

    def _pilot(self, n: int, stages: tuple[Stage, ...], site: Site, rows: Flags, calls: dict[Stage, float]) -> None:
        """Asks every question of a few random rows."""
        some = np.zeros(site.n, dtype=bool)
        some[self.rng.permutation(np.flatnonzero(rows))[:n]] = True
        for stage in stages:
            calls[stage] = self.ask(stage.columns, (), site, some)

    def _block(self, block: Block, statistics: BlockStatistics) -> _Block:
        outcome, site, tag, self.ends_at = _Block(), statistics.site, len(self.results), inf
        if site is None:  # it asks nothing, of rows that are made from answers
            return outcome
        share, partners = self._pairs(block, statistics, outcome)
        for_pairs = outcome.total
        self.left = max(0.0, self.left - for_pairs)
        selectivity = self.at(site.selectivity, tag)
        matched = np.isin(site.rows, partners) if partners is not None and site.rows is not None else None
        if block.scan.join is not None and matched is None:
            match block.scan.join.kind:
                case "INNER" | "CROSS":
                    selectivity *= share
                case "SEMI" | "ANTI":
                    selectivity *= self.chance("one side")
                case _:  # rows of a side that is kept whole stay without a partner
                    selectivity *= share ** self.chance("one side")
        rows = self.draws(np.arange(1, site.n + 1, dtype=np.uint64), tag) < selectivity
        rows &= self._there(site, dict(block.inner.derived))
        if matched is not None and block.scan.join is not None:
            rows &= matched if block.scan.join.kind == "SEMI" else ~matched
        if block.counts_items and block.order.rows_needed is not None:  # lists may be short: then it goes on
            chance, most = self.chance("items"), block.order.rows_needed
            further = max(1.0, site.n / max(1, most)) ** chance if block.project.distinct else 1 + (chance > 0.5)
            most = int(most * further)
            block = replace(block, order=replace(block.order, limit=most, offset=0))
            if block.filter.formula is None:
                rows &= np.cumsum(rows) <= most
        passing, formula = rows, block.filter.formula
        if formula is not None:
            masks = self._answers(
                formula, site, statistics, cost.LEAST_SHARE if block.filter.goal is Goal.FIRST else 0.0
            )
            passing = rows & (formula.evaluate(masks) == TRUE)
            if statistics.pilot and statistics.answers is None:
                apart = stages(block.filter.columns)
                self._pilot(statistics.pilot, apart, site, rows, outcome.by_stage)
                settled = self._settled(block, statistics)
                outcome.as_planned, block = outcome.as_planned and settled is block, settled
            if block.filter.goal is Goal.FIRST and block.order.rows_needed is not None:
                if self.for_each_value and site.keys is not None:  # each has a LIMIT of its own
                    most = block.order.rows_needed * len(np.unique(site.keys[rows]))
                    block = replace(block, order=replace(block.order, limit=most, offset=0))
                passing = self._first(block, statistics, masks, site, rows, passing, outcome.by_stage)
            else:
                every_call = sum(np.count_nonzero(self._new(s.columns, site, rows)) for s in block.filter.stages)
                # a search spends all of a smaller budget
                reaches_all = statistics.budget is None or every_call <= statistics.budget
                if block.stops_at_first and site.keys is not None and reaches_all:
                    known = formula.evaluate(site.leaves) == TRUE
                    rows = self._first_of_each(block, site.keys, rows, passing, known)
                else:
                    rows = self._drawn(block, statistics, site, rows, masks, passing)
                passing = passing & rows
                self._every(formula, block.filter.stages, masks, site, rows, statistics, outcome)
        elif block.aggregate.present and block.values.stages:
            passing = self._drawn(block, statistics, site, rows, None, rows)
        outcome.passing = float(passing.sum())
        outcome.rows = site.rows[passing] if site.rows is not None else outcome.rows
        if any(outcome.by_stage.values()):
            outcome.examples = examples(block, statistics).expected
        self._values(block, statistics, site, passing, outcome)
        if self.ends_at < inf:  # as many rows as that takes, in whichever order they are asked
            share = (self.ends_at + for_pairs) / max(1.0, sum(outcome.by_stage.values()))
            outcome.by_stage = {stage: calls * share for stage, calls in outcome.by_stage.items()}
        return outcome

    def _there(self, site: Site, inner: Mapping[str, PhysicalPlan]) -> Flags:
        """(n,) the rows that the inner queries give."""
        there = np.ones(site.n, dtype=bool)
        for alias, rows in site.after:
            given = [self.results[i].rows for i in own_blocks(inner[alias])]
            there &= (rows == 0) | np.isin(rows, np.concatenate([*given, np.zeros(0, dtype=np.uint64)]))
        return there

    def _pairs(self, block: Block, statistics: BlockStatistics, outcome: _Block) -> tuple[float, Codes | None]:
        """Asks the pairs of each join; the share of the last one's that pass, and the numbers of the rows that these are pairs of."""
        share = 1.0
        partners: Codes | None = None
        for join, site in zip(asked_joins(block), statistics.pair_sites, strict=True):
            inner = dict((*block.inner.derived, *(join.derived if isinstance(join, Correlated) else ())))
            passing = rows = self._there(site, inner)
            if join.formula is not None:
                unseen = replace(statistics, answers=None, rates=None, concrete={})
                masks = self._answers(join.formula, site, unseen)
                self._every(join.formula, join.stages, masks, site, rows, unseen, outcome)
                passing = rows & (join.formula.evaluate(masks) == TRUE)
            for stage in join.values if isinstance(join, Correlated) else ():
                outcome.by_stage[stage] = self.ask(stage.columns, (), site, passing)
            share = float(passing.sum()) / max(1, site.n)
            partners = site.rows[passing] if site.rows is not None else None
        return share, partners

    def _first(
        self,
        block: Block,
        statistics: BlockStatistics,
        masks: Masks,
        site: Site,
        rows: Flags,
        passing: Flags,
        calls: dict[Stage, float],
    ) -> Flags:
        """Asks rows until LIMIT is reached, batch after batch; the rows found."""
        assert block.filter.formula is not None and block.order.rows_needed is not None
        order = np.flatnonzero(rows)
        guided = statistics.guided and not block.order.keys
        if guided or self.number == 0:  # so many pass of those asked first: a search that learns meets them earlier
            passes = passing[order]
            whole = max(1, passes.sum()) / max(1, len(order))
            share = min(1.0, whole) ** (1 - self.chance("search") if guided else 1.0)
            at_random = self.number > 0  # else evenly
            places = np.empty(len(order))
            for rows_alike, rate in ((passes, share), (~passes, max(1e-9, 1 - share))):
                gaps = self.rng.exponential(size=rows_alike.sum()) if at_random else np.ones(rows_alike.sum())
                places[rows_alike] = np.cumsum(gaps) / rate
            order = order[np.argsort(places, kind="stable")]
        known = block.filter.formula.evaluate(site.leaves) == TRUE
        if not block.order.keys:  # it is given the rows that are known to pass
            order = np.concatenate([order[known[order]], order[~known[order]]])
        position, hits, room = 0, 0, self.left
        while hits < block.order.rows_needed and position < len(order) and sum(calls.values()) < room:
            rate = (hits + 1) / (position + 1) if position else 1.0
            size = min(
                int(np.ceil((block.order.rows_needed - hits) / rate)), max(block.order.rows_needed - hits, position)
            )
            batch = order[position : position + int(min(size, max(1, room - sum(calls.values()))))]
            enough = np.flatnonzero(np.cumsum(known[batch]) >= block.order.rows_needed - hits)
            batch = batch[: enough[0] + 1] if len(enough) else batch
            here = np.zeros(site.n, dtype=bool)
            here[batch] = True
            self._filter(block.filter.formula, block.filter.stages, masks, site, here, calls)
            position += len(batch)
            hits += int(passing[batch].sum())
        for stage in block.filter.stages:
            calls.setdefault(stage, 0.0)
        first = np.zeros(site.n, dtype=bool)
        first[order[:position][passing[order[:position]]][: block.order.rows_needed]] = True
        return first

    def _first_of_each(self, block: Block, keys: Codes, rows: Flags, passing: Flags, known: Flags) -> Flags:
        """The rows asked of SELECT DISTINCT: of each group with the same output, until one passes, and to the end of that turn.

        Args:
            known: rows of which the ledger knows that they pass: no other of their group is asked.
        """
        order = self.rng.permutation(np.flatnonzero(rows))
        different, of = np.unique(keys[order], return_inverse=True)
        if len(different) > MOST_OUTPUTS * len(order):
            return rows
        by_group = np.argsort(of, kind="stable")
        rank = np.empty(len(order))
        rank[by_group] = np.arange(len(order)) - np.searchsorted(of[by_group], of[by_group])
        first = np.full(len(different), np.inf)
        hits = passing[order]
        np.minimum.at(first, of[hits], rank[hits])
        first[of[known[order]]] = -1.0
        last = first[of] * (1 + 1 / TURNS_A_STEP)
        if not block.order.keys and block.order.rows_needed is not None:  # that many outputs are enough
            reached = np.sort(first)[min(block.order.rows_needed, len(first)) - 1] if block.order.rows_needed else -1.0
            last = np.minimum(last, reached)
        out = np.zeros(len(rows), dtype=bool)
        out[order[rank <= last]] = True
        return out | (known & rows)

    def _values(self, block: Block, statistics: BlockStatistics, site: Site, passing: Flags, outcome: _Block) -> None:
        """What is asked of the rows that pass, and of those returned."""
        some = passing & (np.cumsum(passing) <= cost.NAMED_FIRST)
        again: dict[int, float] = {}  # rows in none of the groups named first, by column
        for column in block.values.groups:
            content = site.content((column,))
            there = len(np.unique(content[passing & (content != 0)]))
            if not there:
                continue
            outcome.taxonomies += 1.0
            open_ended = column.into is None and self.number
            if open_ended and there > cost.NAMED_AT_ONCE and self.chance((column.text, "many")) > 0.5:
                outcome.taxonomies += round(self.chance((column.text, "named")) * (cost.MOST_NAMINGS - 1))
            if column.into is None and not column.many and self.number and self.chance((column.text, "none")) > 0.5:
                outcome.taxonomies += 1.0
                again[column.id] = round(self.chance((column.text, "rest")) * REOPENED * there)
            if column.id in block.filter.riders:
                outcome.by_stage[Stage((column,))] = float(len(np.unique(content[some & (content != 0)])))
        places = np.cumsum(passing)
        returned = (
            passing
            if block.order.rows_needed is None
            else passing & (places <= block.order.rows_needed) & (places > block.order.offset)
        )
        for phase, rows in ((block.values.stages, passing), (block.values.late, returned)):
            for stage in phase:
                if stage.of_pairs:
                    content = site.content(stage.columns)[rows]
                    things = float(len(np.unique(content[content != 0])))
                    outcome.by_stage[stage] = self.at(
                        cost.pairs_compared(Range.exactly(things), statistics.recall), (stage.columns[0].text, "pairs")
                    )
                    continue
                # what rides is asked apart where WHERE was known
                rest = block.filter.left_over((stage,)) or block.filter.stages[:1]
                calls = self.ask(stage.columns, (), site, rows) + sum(again.get(c.id, 0.0) for c in stage.columns)
                for text, paid in ((c.text, statistics.named_before.get(c.text, 0)) for c in stage.columns):
                    calls -= min(calls, round(paid * max(0.0, 2 * self.chance((text, "names")) - 1)))
                outcome.by_stage[rest[0]] = outcome.by_stage.get(rest[0], 0.0) + calls
        for column in block.summaries.columns:
            outcome.summaries += self._summaries(block, column, statistics, site, passing)
        n = float(passing.sum())
        outcome.comparisons = self.at(comparisons(block, Range.exactly(n)), "cut")

    def _summaries(
        self, block: Block, column: VirtualColumn, statistics: BlockStatistics, site: Site, passing: Flags
    ) -> float:
        content = site.content((column,))
        there = passing & (content != 0)
        if not there.any():
            return 0.0
        length = statistics.sizes.get(Stage((column,)).input_columns, 0.0) + NUMBER_CHARS
        per_request = max(1.0, cost.SUMMARY_CHARS // length)
        if not block.aggregate.keys:
            sizes = np.array([there.sum()])
        elif site.keys is not None:
            sizes = np.unique(site.keys[there], return_counts=True)[1]
        else:
            sizes = np.full(round(self.at(Range(1, GROUPS, 2.5 * GROUPS), "groups")), there.sum() / GROUPS)
        if block.summaries.where is not None:
            sizes = sizes[: round(len(sizes) * self.chance("having") + 0.5)]
        if block.summaries.returned_only and block.order.rows_needed is not None:
            sizes = sizes[: block.order.rows_needed]
        requests = np.ceil(sizes / per_request)
        return float((requests + (requests > 1)).sum())


@lru_cache(maxsize=1024)
def _order(what: object, worlds: int) -> NDArray[np.int64]:
    """(worlds,) a permutation of their numbers for one thing."""
    return np.random.default_rng(_seed(what)).permutation(worlds)


def _seed(what: object) -> int:
    return crc32(repr(what).encode())


def _by_group(block: Block, site: Site, n: float) -> bool:
    """Has a sample of so many rows few of each group, so that it is allotted to them?"""
    if block.filter.formula is not None or site.keys is None or n >= cost.ROWS_A_GROUP * len(np.unique(site.keys)):
        return False
    return any(isinstance(node, Call) and adds_answers(node) for part in block.output for node in walk(part))


def _repeats(contents: Codes) -> NDArray[np.int64]:
    """(n,) how many rows before each show the same."""
    order = np.argsort(contents, kind="stable")
    ranks = np.empty(len(contents), dtype=np.int64)
    ranks[order] = np.arange(len(contents)) - np.searchsorted(contents[order], contents[order])
    return ranks


def _different(contents: Codes) -> int:
    """How many different rows a model is shown; 0 is a row with nothing to show."""
    return int(np.count_nonzero(np.unique(contents)))


def own_blocks(plan: PhysicalPlan) -> tuple[int, ...]:
    """The identities of the blocks whose rows a plan gives."""
    if isinstance(plan, UnionPlan):
        return (*own_blocks(plan.left), *own_blocks(plan.right))
    return (id(plan),) if isinstance(plan, Block) else ()


def _question(column: VirtualColumn) -> object:
    """What makes two questions one to the ledger, beside the row."""
    inputs = column.inputs
    several = len({c.table for c in column.reads}) > 1
    return (column.operator, column.text, column.type, column.labels, column.label_query, column.none_of_these,
            tuple((c.name, c.table if several else "") for c in inputs))  # fmt: skip
