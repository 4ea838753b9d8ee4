"""The plan that runs: of all legal orders and fusions of a block, the cheapest by the cost model.

Fusions are put on one after another, each beside going without it; of the ways to ask WHERE only the cheapest few go on, each in the
best order of its requests (dynamic programming over sets, `orders.best`). What is priced is the whole block, so a fusion that
makes WHERE dearer wins where it saves more elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from uql.base.errors import PlanError
from uql.compiler.cost import BlockStatistics, Quote, Unit, answer_tokens, block_quote, model_answers, request_tokens
from uql.compiler.formula import Masks
from uql.compiler.fusions import (
    FUSIONS,
    Fusion,
    apart,
    group_with_where,
    predicates_together,
    rows_together,
    select_with_where,
    videos_whole,
)
from uql.compiler.orders import best, cost_of
from uql.compiler.physical import Block, Goal, PhysicalPlan, Stage
from uql.compiler.valid import check_physical
from uql.compiler.virtual import VirtualColumn

RIDING = (group_with_where, select_with_where)
KEPT = 3  # ways to ask WHERE that go on to the fusions after it
LEAST_GAIN = 0.05  # of the cost, for which the written order is left while nothing is known of the terms
RATES = (0.05, 0.9)  # at which the choice is tried, to see whether it depends on selectivities
MUCH_DEARER = 2.0  # times the price, from which on that is what EXPLAIN says
SHOWN = 5  # alternatives that EXPLAIN lists
# of the price, for which rows share requests where the engine chooses: rows may colour each other's answers
LEAST_SAVED = 0.2


@dataclass(frozen=True, slots=True)
class Terms:
    """What a choice depends on besides the block: prices, the calls that may be made, and what is switched off."""

    unit: Unit
    budget: int | None = None
    disabled: tuple[str, ...] = ()
    in_usd: bool = False  # `unit` is in USD
    rows: int = 1  # that share a request, wherever they may
    rows_by_price: bool = False  # only where that saves LEAST_SAVED
    rows_measured: bool = True  # else a way in which they do is priced, and not taken
    rows_apart: bool = False  # rows of one request are decisions of their own, whose answers have probabilities


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to run a block, and why it was taken or not."""

    what: str
    quote: Quote
    chosen: bool
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    block: Block
    alternatives: tuple[Alternative, ...]  # the chosen one first; empty where there is only one way


class Plans(Protocol):
    """What was known before a run, and the plans chosen by it."""

    def chosen(self, written: PhysicalPlan) -> tuple[PhysicalPlan, tuple[Alternative, ...]]:
        """The plan that runs, and what else there was to choose from."""
        ...

    def pilot(self, written: Block, rows: int) -> int:
        """The rows of a block's `rows` whose answers settle how it is run; 0 where it does not depend on them."""
        ...

    def settled(self, block: Block, written: Block, rows: int, answers: Masks | None) -> Block:
        """The block as it is run after a pilot.

        Args:
            block: with its inner queries answered.
            written: before they were.
            rows: its candidates.
            answers: (leaves, m) of its WHERE, from the rows asked so far.
        """
        ...


def choose(block: Block, statistics: BlockStatistics, terms: Terms) -> Choice:
    """The cheapest way to run a block, and the others. Raises PlanError (UQL399) naming the fusion that made an invalid block.

    Args:
        statistics: what is known of the block's rows, conditions and prices.
        terms: what the user weighs: calls, time, dollars, and what is switched off.
    """
    priced = _priced(block, statistics, terms)
    priced.sort(key=lambda p: _key(p[0], p[1], terms))
    try:
        check_physical(priced[0][0], "the choice")
    except PlanError:
        _priced(block, statistics, terms, checked=True)
        raise
    return Choice(priced[0][0], _listed(priced, statistics, terms))


def has_ways(block: Block) -> bool:
    """Is there anything to choose but the rows of a request?"""
    separate = apart(block)
    return (
        block.filter.goal is Goal.FIRST
        or len(separate.filter.stages) + len(separate.values.stages) + len(separate.values.late) > 1
    )


def ways_by_rates(block: Block, statistics: BlockStatistics, terms: Terms) -> tuple[Block, ...]:
    """The ways to which other selectivities of terms not asked before may lead; none where they are all one.

    Args:
        statistics: with answers or rates of its own there are no such ways.
        terms: as in `choose`.
    """
    if block.filter.formula is None or statistics.answers is not None or statistics.rates is not None:
        return ()
    leaves = len(block.filter.formula.leaves)
    ways = tuple(choose(block, replace(statistics, rates=(rate,) * leaves), terms).block for rate in RATES)
    return ways if len({_shape(way) for way in ways}) > 1 else ()


def _shape(block: Block) -> tuple[object, ...]:
    """What is asked together, whatever the order."""
    stages = frozenset(
        (frozenset(c.id for c in s.columns), frozenset(c.id for c in s.riders)) for s in block.filter.stages
    )
    return (stages, tuple(tuple(c.id for c in s.columns) for s in block.filter.left_over(block.values.stages)))


# --------------------------------------------------------------------------------------------------------- enumeration
def _priced(
    block: Block, statistics: BlockStatistics, terms: Terms, *, checked: bool = False
) -> list[tuple[Block, Quote]]:
    """All ways with their prices. `checked`: each is looked at as soon as a fusion has made it."""

    def apply_fusion(fusion: Fusion, way: Block) -> list[Block]:
        candidates = list(fusion(way))
        for block in candidates if checked else ():
            check_physical(block, fusion.__name__)
        return candidates

    ways = [apart(block)]
    for fusion in FUSIONS:
        if fusion.__name__ in terms.disabled:
            continue
        if fusion in RIDING:
            base = _fused(ways)
            ways += [ordered(candidate, statistics, terms) for way in base for candidate in apply_fusion(fusion, way)]
            continue
        more = [candidate for way in ways for candidate in apply_fusion(fusion, way)]
        ways += more
        if fusion is predicates_together:
            ways = _cheapest([ordered(way, statistics, terms) for way in ways], statistics, terms)
    if videos_whole.__name__ not in terms.disabled:
        ways += [candidate for way in ways for candidate in videos_whole(way, statistics.watched)]
    if rows_together.__name__ not in terms.disabled:
        shares = partial(rows_together, rows=terms.rows, unshared=statistics.unshared_columns, apart=terms.rows_apart)
        ways += [candidate for way in ways for candidate in shares(way)]
    return [(way, block_quote(way, statistics)) for way in (_with_costs(way, statistics, terms) for way in ways)]


def _fused(ways: list[Block]) -> list[Block]:
    """The ways that ask least often of a row that passes: what rides, rides from there. The cheapest KEPT of them."""
    fewest = min(
        len(way.filter.left_over(way.values.stages)) + len(way.filter.left_over(way.values.late))
        for way in ways
        if not way.filter.riders
    )
    bases = [w for w in ways if w.filter.riders or len(w.values.stages) + len(w.values.late) == fewest]
    return bases[: KEPT + 1]


def _cheapest(ways: list[Block], statistics: BlockStatistics, terms: Terms) -> list[Block]:
    """The cheapest KEPT ways, and both ends: all apart, all together."""
    most, least = max(len(w.filter.stages) for w in ways), min(len(w.filter.stages) for w in ways)
    ranked = sorted(ways, key=lambda w: _key(w, block_quote(w, statistics), terms))
    cheapest = ranked[:KEPT]
    cheapest += [w for w in ranked[KEPT:] if len(w.filter.stages) in (most, least)]
    return cheapest


def ordered(block: Block, statistics: BlockStatistics, terms: Terms) -> Block:
    """The block with the requests of its WHERE in the cheapest order.

    Args:
        statistics: the selectivities, and the copies of each request.
        terms: as in `choose`; "order_by_rates" may be switched off.
    """
    block = _with_costs(block, statistics, terms)
    stages = block.filter.stages
    if block.filter.formula is None or len(stages) < 2 or "order_by_rates" in terms.disabled:
        return block
    answers = model_answers(block.filter.formula, statistics)
    costs, copies = [s.cost for s in stages], [statistics.copies.get(s.input_columns, 1.0) for s in stages]
    order, cost = best(block.filter.formula, stages, answers, costs, copies)
    if statistics.answers is None and statistics.rates is None:
        written_cost = cost_of(block.filter.formula, stages, answers, costs, range(len(stages)), copies)
        if cost > (1 - LEAST_GAIN) * written_cost:
            return block
    return block.with_requests(tuple(stages[i] for i in order))


def _with_costs(block: Block, statistics: BlockStatistics, terms: Terms) -> Block:
    """The block with the cost of a request of each stage of WHERE: 1 for the cheapest."""
    if not block.filter.stages:
        return block
    weights = [_weight(stage, statistics, terms.unit) for stage in block.filter.stages]
    least = min(weights)
    stages = tuple(replace(s, cost=w / least) for s, w in zip(block.filter.stages, weights, strict=True))
    return block.with_requests(stages)


def _weight(stage: Stage, statistics: BlockStatistics, unit: Unit) -> float:
    tokens = request_tokens(stage, statistics.sizes.get(stage.input_columns, 0.0), statistics.prompt)
    return tokens * unit.input + answer_tokens(stage, statistics) * unit.output


def _fits(block: Block, quote: Quote, terms: Terms) -> bool:
    """Within the budget: for sure, or as expected where a LIMIT stops it."""
    return (
        terms.budget is None
        or (quote.calls.expected if block.filter.goal is Goal.FIRST else quote.calls.high) <= terms.budget
    )


def _key(block: Block, quote: Quote, terms: Terms) -> tuple[float, float, float, float]:
    """What fits in the budget first, by its price; then what needs the fewest calls. Rows share requests where the user says so, and
    by themselves only where that was measured."""
    unshared = float(terms.rows > 1 and not terms.rows_by_price and not _shares(block))
    weight = quote.weight(terms.unit)
    if terms.rows_by_price and _shares(block):
        weight /= 1 - LEAST_SAVED
        unshared = float(not terms.rows_measured)
    if _fits(block, quote, terms):
        return unshared, 0.0, weight, quote.calls.expected
    return unshared, 1.0, quote.calls.expected, weight


def _shares(block: Block) -> bool:
    """Do rows share requests?"""
    return any(s.rows > 1 for s in block.requests)


def _sends_whole(block: Block) -> bool:
    """Are videos sent as files?"""
    return any(s.whole for s in block.requests)


# ------------------------------------------------------------------------------------------------------------- in words
def _listed(priced: list[tuple[Block, Quote]], statistics: BlockStatistics, terms: Terms) -> tuple[Alternative, ...]:
    """The chosen way and the best of each other kind, in words."""
    kinds: dict[tuple[object, ...], tuple[Block, Quote]] = {}
    for block, quote in priced:
        kinds.setdefault((*_shape(block), block.filter.goal, _shares(block), _sends_whole(block)), (block, quote))
    chosen = priced[0][0]
    alternatives = [Alternative(describe(b), q, b is chosen, _why((b, q), priced[0], terms)) for b, q in kinds.values()]
    apart_at = next((i for i, (block, _) in enumerate(kinds.values()) if not _shares(block)), 0)
    alternatives = alternatives[:SHOWN] + ([alternatives[apart_at]] if apart_at >= SHOWN else [])
    written_way = _written_order(chosen)
    if written_way is not None:
        quote = block_quote(written_way, statistics)
        why = _why((written_way, quote), priced[0], terms)
        alternatives.insert(1, Alternative(f"as written: {describe(written_way)}", quote, False, why))
    return tuple(alternatives) if len(alternatives) > 1 else ()


def _written_order(block: Block) -> Block | None:
    """The same requests in the order in which they were written, where that is another one."""
    stages = tuple(sorted(block.filter.stages, key=lambda s: min(c.id for c in s.columns)))
    return block.with_requests(stages) if stages != block.filter.stages else None


def describe(block: Block) -> str:
    """What is asked together and in which order, in a line."""
    steps = [
        _texts(stage.columns) + (f" with {_texts(stage.riders)}" if stage.riders else "")
        for stage in block.filter.stages
    ]
    steps += [_texts(stage.columns) for stage in block.filter.left_over(block.values.stages)]
    late = [f"{_texts(stage.columns)} of the rows returned" for stage in block.filter.left_over(block.values.late)]
    stop = (
        [f"stop at {block.order.rows_needed:,} rows"]
        if block.filter.goal is Goal.FIRST and block.order.rows_needed is not None
        else []
    )
    most = max((s.rows for s in block.requests), default=1)
    suffix = (", videos whole" if _sends_whole(block) else "") + (f", {most} rows a request" if most > 1 else "")
    return ", then ".join([*steps, *stop, *late]) + suffix


def _texts(columns: Iterable[VirtualColumn]) -> str:
    return " + ".join(f'"{c.text}"' for c in columns)


def _why(priced: tuple[Block, Quote], chosen: tuple[Block, Quote], terms: Terms) -> str:
    """Why a way was not taken, beside the one that was."""
    quote, least = priced[1], chosen[1]
    if quote is least:
        by_setting = _shares(chosen[0]) and not terms.rows_by_price
        return "chosen: the cheapest" + (f" with {_shared_rows(terms)}" if by_setting else "")
    if _shares(chosen[0]) and not _shares(priced[0]) and not terms.rows_by_price:
        return _shared_rows(terms)
    mine, best_weight = quote.weight(terms.unit), least.weight(terms.unit)
    if terms.rows_by_price and _shares(priced[0]) and mine < best_weight:
        saved = 1 - mine / best_weight
        if saved < LEAST_SAVED:
            return f"saves {saved:.0%}, less than the {LEAST_SAVED:.0%} for which rows share requests"
        return f"saves {saved:.0%}; taken where uql eval … --packed {terms.rows} found that answers stay the same"
    fits = _fits(*chosen, terms)
    if fits and not _fits(*priced, terms):
        return f"may need {quote.calls.high:,.0f} calls, more than the budget"
    if not fits:
        more = quote.calls.expected - least.calls.expected
        return f"{more:,.0f} calls more, and calls are scarce" if more >= 1 else "as many calls, more tokens"
    if best_weight <= 0 or mine / best_weight < 1.0005:
        return "costs the same"
    unit = "USD" if terms.in_usd else "tokens"
    if mine >= MUCH_DEARER * best_weight:
        return f"{mine / best_weight:.1f} times as much in {unit}"
    return f"{mine / best_weight - 1:.0%} dearer in {unit}"


def _shared_rows(terms: Terms) -> str:
    """Why rows share requests whatever it costs."""
    return f"{terms.rows} decisions a request" if terms.rows_apart else f"rows_per_request = {terms.rows}"
