"""What a plan will cost, on one page: calls, tokens, USD and seconds, each low, expected and high. No model is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import log2, sqrt
from operator import sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import Formula, Leaf, Masks
from uql.compiler.orders import asked_shares, distinct_share, imagined, passes
from uql.compiler.pair_attribute import attribute_comparison
from uql.compiler.physical import (
    Block,
    Correlated,
    Goal,
    PhysicalPlan,
    Stage,
    UnionPlan,
    asked_joins,
    inner_plans,
    stages,
)
from uql.compiler.syntax import Column, IsNull
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.operators import COMPARE, SUMMARY, WRITE, Operator

BYTES_PER_TOKEN = 4.0  # of a text in UTF-8: characters tell little of scripts other than the Latin one
MEDIA_BYTES = 1200.0  # that an image or a sound counts for: about 300 tokens
PROMPT_TOKENS = 40  # of a request to a model of which nothing is known, without the row and the questions
FORM_TOKENS = 5  # of an answer in JSON, beside its value
ROW_TOKENS, ROW_ANSWER_TOKENS = 6, 4  # of the tag of each of several rows, and of its place in the list of answers
SHARED_SECONDS = 0.25  # of a request's seconds that each further row in it takes: it is read and written, not sent
TAXONOMY_ROWS = 24
SUMMARY_CHARS = 8_000  # of rows in one request for a summary
SUMMARY_ROWS = 20  # rows of a group in one request for a summary
SHARE_AT_THE_CUT = 0.1  # of the rows, with the score of the last one that LIMIT lets in
GROUPS = 8  # expected where their number is not known
SELECTIVITY = 1 / 3  # of a condition not asked before
LEAST_SHARE = 0.055  # of the rows that pass it, for the most rows that a search under LIMIT is said to ask
ROWS_A_GROUP = 32  # from which on each of four waves of a sample has four cells of two rows in a group
LEAST_GUIDED = 16  # rows of a sample that features guide; the spread of fewer pairs of like rows says too little
UNSPENT = 8  # calls at most that a search or a sample leaves of its budget: less than a batch
UNSPENT_SHARE = 0.1  # of the budget, where that is fewer
TOKENS_OFF = 1.5  # that the tokens of a text, told by its length, may be wrong
RESERVED = 2  # calls that a limit of tokens or USD leaves unpaid: each is reserved at its upper bound
ROUNDED = 0.01  # of a share that was counted: by so much may imagined rows miss it
TIMES_OFF = 2.0  # that rates of earlier queries may be wrong
NAMED = 5  # calls at most that name the values of an attribute
ATTRIBUTE_CHECKS = 64  # pairs asked outright, to see whether an attribute decides a condition on pairs
Codes = NDArray[np.uint64]  # a number for what a row shows the model; 0 where that is nothing
NAMED_AT_ONCE = 8  # groups in the first request for names
MOST_NAMINGS = 7.0  # requests for names before rows are asked, where there are many groups, and for near-duplicates
NEIGHBOURS = 8  # of each row, near in meaning, that DISTINCT ON a text compares it with
PROOF = 3.0  # times as many, where a recall is to be proved
NAMED_FIRST = 24  # rows whose groups are asked apart from their WHERE: the taxonomy is made from them


@dataclass(frozen=True, slots=True)
class Range:
    """A number that is not known yet.

    >>> Range(1, 2, 3) + Range(1, 1, 1)
    Range(low=2, expected=3, high=4)
    """

    low: float
    expected: float
    high: float

    @classmethod
    def exactly(cls, n: float) -> Range:
        return cls(n, n, n)

    @classmethod
    def of(cls, function: Callable[..., float], *ranges: Range) -> Range:
        """A function of numbers that are not known yet, at their low ends, as expected, and at their high ends."""
        ends = ((r.low for r in ranges), (r.expected for r in ranges), (r.high for r in ranges))
        return cls(*(function(*end) for end in ends))

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range(self.low * other.low, self.expected * other.expected, self.high * other.high)

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.expected * factor, self.high * factor)

    def capped(self, most: float | None) -> Range:
        return self if most is None else Range.of(lambda n: min(n, most), self)


NOTHING = Range(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a token costs: in USD where the price is known, else beside an input token. An answer's costs about four times as much."""

    input: float = 1.0
    output: float = 4.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a model answers: requests in flight, seconds of a request, and what its provider allows a minute."""

    concurrency: int = 8
    seconds_a_call: Range = Range(0.2, 1.0, 5.0)
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def seconds(self, requests: Range, tokens: Range, calls: Range | None = None) -> Range:
        """Of so many requests: the latency of those in flight together, or the rate that is allowed, whichever takes longer.

        Args:
            requests: sent.
            tokens: in and out, of all of them.
            calls: rows that they carry, where some carry several.
        Returns: seconds.

        >>> Pace(10, Range.exactly(2.0), requests_per_minute=60).seconds(Range.exactly(100), Range.exactly(0))
        Range(low=100.0, expected=100.0, high=100.0)
        """

        def one(n: float, t: float, each: float, rows: float) -> float:
            longer = 1 + SHARED_SECONDS * (max(1.0, rows / n) - 1) if n else 1.0
            waits = [max(n, 1.0 if n else 0.0) * each * longer / max(1, min(self.concurrency, n))]
            if self.requests_per_minute:
                waits.append(60.0 * n / self.requests_per_minute)
            if self.tokens_per_minute:
                waits.append(60.0 * t / self.tokens_per_minute)
            return max(waits)

        return Range.of(one, requests, tokens, self.seconds_a_call, calls or requests)


@dataclass(frozen=True, slots=True)
class Quote:
    """The price of a query before it runs."""

    calls: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None = None  # None: the price of the model is not known
    seconds: Range | None = None
    every: Range = NOTHING  # calls that asking every row would need, whatever the budget
    shared: Range = NOTHING  # calls that need no request of their own: rows that share one
    embedded: Range = NOTHING  # tokens of the rows' vectors, where an embedder of a vendor makes them

    @property
    def requests(self) -> Range:
        """HTTP requests."""
        return Range.of(sub, self.calls, self.shared)

    def __add__(self, other: Quote) -> Quote:
        return Quote(**{part: getattr(self, part) + getattr(other, part) for part in QUOTE_PARTS})

    def weight(self, unit: Unit) -> float:
        """What the tokens expected cost, in units of one input token (or in USD)."""
        return self.input_tokens.expected * unit.input + self.output_tokens.expected * unit.output

    def timed(self, pace: Pace) -> Quote:
        """The same with the seconds that it takes."""
        tokens = self.input_tokens + self.output_tokens
        return replace(self, seconds=pace.seconds(self.requests, tokens, self.calls))

    def priced(self, usd_per_input_token: float, usd_per_output_token: float) -> Quote:
        usd = self.input_tokens.times(usd_per_input_token) + self.output_tokens.times(usd_per_output_token)
        return replace(self, usd=usd)

    def beside(self, calls: Range) -> Quote:
        """The same with more calls of the mean size, which count in no budget."""
        share = calls.times(1 / self.calls.expected) if self.calls.expected else NOTHING
        more = {n: getattr(self, n) + share.times(getattr(self, n).expected) for n in ("input_tokens", "output_tokens")}
        return replace(self, calls=self.calls + calls, **more)

    def sampled(self, share: Range) -> Quote:
        """The same where a share of the rows is asked."""
        parts = {name: getattr(self, name) * share for name in ("calls", "input_tokens", "output_tokens", "shared")}
        return replace(self, **parts)

    def within(self, budget: int | None, spent: Range | None = None, parts: int = 1) -> Quote:
        """The same with at most `budget` calls; tokens shrink as calls do.

        Args:
            budget: calls; None: without limit.
            spent: what the parts make that share it, where that is known; None: all of it.
            parts: how many ask a model, each of which may leave a little of its share.
        """
        if budget is None or self.calls.high <= budget:
            return self
        calls = (spent or self.calls).capped(budget)
        calls = Range(round(calls.low), round(calls.expected), round(calls.high)) if spent else calls
        most = calls.low if spent else budget
        left = unspent(most) if parts == 1 else parts * UNSPENT
        return self._of_calls(replace(calls, low=min(calls.low, max(0, int(most - left)))))

    def paid_by(self, tokens: float | None, usd: float | None) -> Quote:
        """The same with the calls that a limit of tokens, or of USD, pays for.

        How many tokens a text has is an estimate: they may be TOKENS_OFF times as many, or as few.
        """
        calls = self.calls
        for limit, used in ((tokens, self.input_tokens + self.output_tokens), (usd, self.usd)):
            if limit is not None and used is not None and used.expected > 0 and self.calls.expected > 0:
                most = limit * self.calls.expected / used.expected
                calls = Range.of(
                    min, calls, Range(max(0.0, most / TOKENS_OFF - RESERVED), max(0.0, most - 1), most * TOKENS_OFF)
                )
        return self if calls == self.calls else self._of_calls(calls)

    def after(self, paid: int, beside: int, whole: Quote, *, any_rows: bool) -> Quote:
        """What is left of it where an earlier run paid for so many calls.

        Args:
            beside: calls among them that are not about a row: they answer for none where each row is asked.
            whole: the same where the ledger holds no answer.
            any_rows: LIMIT takes any rows: it goes on with those that the earlier run drew, whatever was answered since.
        """
        capped = whole.calls.high < whole.every.high
        if not capped and whole.calls.low < whole.calls.high and self.calls != whole.calls:
            # it may end before the last row: what the ledger answers says more than a number of calls
            most = whole.calls.high - paid
            wider = any_rows and most > self.calls.high
            return whole._of_calls(Range(self.calls.low, self.calls.expected, most)) if wider else self
        low, expected = max(0.0, whole.calls.low - paid), max(0.0, whole.calls.expected - paid)
        high = max(0.0, whole.calls.high - paid + (0 if capped else beside))
        return self._of_calls(Range.of(min, self.calls, Range(low, expected, high)))

    def _of_calls(self, calls: Range) -> Quote:
        """The same with fewer calls of the same size."""
        share = Range.of(lambda fits, whole: fits / whole if whole else 1.0, calls, self.calls)

        def shrunk(part: Range | None) -> Any:
            if part is None or not part.high:
                return part
            parts = part * share
            ends = (parts.low, parts.expected, parts.high)
            return Range(min(ends), parts.expected, max(ends))

        names = ("input_tokens", "output_tokens", "shared", "usd", "seconds")
        return replace(self, calls=calls, **{name: shrunk(getattr(self, name)) for name in names})


def unspent(room: float) -> float:
    """Calls at most that a search, or a sample, leaves of those that it may make."""
    return min(UNSPENT, UNSPENT_SHARE * room)


QUOTE_PARTS = ("calls", "input_tokens", "output_tokens", "every", "shared")  # that add up
FREE = Quote(NOTHING, NOTHING, NOTHING, usd=NOTHING, seconds=NOTHING)
Reads = tuple[Column, ...]  # of a stage
Tokens = tuple[Range, Range]  # in, out


def mixed(a: Codes, b: Codes) -> Codes:
    """A number for each pair of numbers, evenly spread (splitmix64); 0 for two zeros."""
    with np.errstate(over="ignore"):
        x = a * np.uint64(0x9E3779B97F4A7C15) + b
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Site:
    """Rows that may be asked, as DuckDB has them before the run.

    Attributes:
        n: how many.
        cells: (n,) what they show, by the columns shown.
        leaves: (leaves, n) terms that DuckDB or the ledger decides; OPEN where they cannot.
        keys: (n,) their group, where DuckDB can tell it.
        selectivity: the share of them that is there when the model is asked: terms that wait for other answers leave it.
        after: inner queries by alias, whose rows these are: (n,) the number of the row there, 0 where it is there for sure.
        rows: (n,) their own numbers, by which a query around knows them; equal ones read the same.
        hidden: columns whose values the model makes, NULL here.
        table: in which they stand in this order, where some of their questions were asked before; "" where none was.
        answered: questions that were asked of some of them before: (n,) those that the ledger answers.
    """

    n: int
    cells: Mapping[tuple[Column, ...], Codes]
    leaves: Masks
    keys: Codes | None = None
    selectivity: Range = Range(1.0, 1.0, 1.0)
    after: tuple[tuple[str, Codes], ...] = ()
    rows: Codes | None = None
    hidden: frozenset[Column] = frozenset()
    table: str = ""
    answered: tuple[tuple[VirtualColumn, NDArray[np.bool_]], ...] = ()

    def content(self, columns: tuple[VirtualColumn, ...]) -> Codes:
        """(n,) what the rows show to a request with these questions."""
        inputs = tuple(dict.fromkeys(c for column in columns for c in column.inputs))
        if inputs in self.cells:
            return self.cells[inputs]
        codes = np.zeros(self.n, dtype=np.uint64)
        for column in columns:
            codes = mixed(codes, self.content((column,))) if len(columns) > 1 else codes
        return codes


# of a request that puts these questions about so many rows
PromptTokens = Callable[[tuple[VirtualColumn, ...], int], float]


def utf8_bytes(text: str) -> int:
    """The length of a text in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def plain_prompt_tokens(columns: tuple[VirtualColumn, ...], rows: int) -> float:
    """Tokens of a request beside its rows, where nothing is known of the model's form."""
    texts = sum(utf8_bytes(text) for c in columns for text in (c.text, *c.labels))
    return PROMPT_TOKENS + texts / BYTES_PER_TOKEN + (rows * ROW_TOKENS if rows > 1 else 0)


@dataclass(frozen=True, slots=True)
class BlockStatistics:
    """What is known of a block before it runs."""

    rows: Range  # candidates that DuckDB leaves for the model
    sizes: Mapping[Reads, float] = field(default_factory=dict)  # mean bytes of a row as these columns show it
    pairs: tuple[Range, ...] = ()  # of each join that is asked, in the order of `asked_joins`
    answers: Masks | None = None  # (leaves, m) of the WHERE for the rows of a pilot
    share: tuple[float, float] | None = None  # low and high share of rows that pass, from the pilot
    until: Range | None = None  # rows that a search which learns asks until LIMIT is reached, told from the pilot
    rates: tuple[float, ...] | None = None  # share of true answers a leaf, from earlier queries
    copies: Mapping[Reads, float] = field(default_factory=dict)  # rows that show these columns alike, on the average
    frames: Mapping[Column, float] = field(default_factory=dict)  # of a video, on the average over some rows
    watched: frozenset[Column] = frozenset()  # videos that the model takes as files
    output: Mapping[str, float] = field(default_factory=dict)  # tokens of an answer by text, from earlier queries
    unshared_columns: frozenset[Column] = frozenset()  # columns whose rows share no request: media, long texts
    prompt: PromptTokens = plain_prompt_tokens
    form: float = 0.0  # tokens of a reply around each answer
    guided: bool = False  # a search has features of the rows to learn from
    first_stage: int | None = None  # random rows that an aggregate's sample is drawn from; None: from all
    examples: bool = False  # it asks for example rows first
    # share of rows for which a leaf that DuckDB decides is true
    concrete: Mapping[int, float] = field(default_factory=dict)
    pair_sides: tuple[float, ...] = ()  # distinct rows of each side of pairs
    site: Site | None = None  # the candidates as DuckDB has them; None: they come from answers
    pair_sites: tuple[Site, ...] = ()  # of each join that is asked
    calls: Calls | None = None  # told by worlds
    learns: bool = True  # the order of the requests of a WHERE is learned while it runs
    pilot: int = 0  # random rows that are asked every question first, by whose answers the plan is settled
    ways: tuple[Block, ...] = ()  # in which they may settle it
    weighs_pairs: bool = True  # the model can: else a comparison by its words is decided from the attribute it names
    recall: float | None = None  # of the settings
    # calls paid for groups by a text, under names not known
    named_before: Mapping[str, int] = field(default_factory=dict)
    # calls that may be made: beyond them a condition on pairs is decided from an attribute of each row
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a block by what they are for, and the rows that pass its WHERE."""

    by_stage: dict[Stage, Range]
    taxonomies: Range
    summaries: Range
    passing: Range
    comparisons: Range  # calls that compare two rows
    examples: Range = field(default_factory=lambda: NOTHING)  # calls for example rows, which guide a search
    whole: Range | None = None  # where it is not that of the parts together: they do not have their most at once

    @property
    def total(self) -> Range:
        return self.whole or sum(
            self.by_stage.values(), self.taxonomies + self.summaries + self.comparisons + self.examples
        )


def model_answers(formula: Formula, statistics: BlockStatistics) -> Masks:
    """Answers to try orders and prices on: the pilot's, else independent terms at their rates, else at what is usual."""
    if statistics.answers is not None and statistics.answers.shape[1]:
        return statistics.answers
    return imagined(statistics.rates or [usual(i, leaf, statistics) for i, leaf in enumerate(formula.leaves)])


def share_answered(leaf: Leaf) -> float | None:
    """The share of rows that have an answer for which a term is true, where no answer matters: a condition that is asked is never NULL."""
    term = leaf.expr
    if isinstance(term, IsNull) and isinstance(term.operand, Virtual) and term.operand.column.is_condition:
        return float(term.negated)
    return None


def usual(i: int, leaf: Leaf, statistics: BlockStatistics) -> float:
    """The share of rows for which a term is true that was not asked before: SELECTIVITY; DuckDB's count where that decides it.

    Of pairs: between SELECTIVITY and one partner for each row of the larger side, the geometric mean.

    Args:
        i: position of the term in the formula.
        leaf: the term.
    """
    if i in statistics.concrete:
        return statistics.concrete[i]
    if statistics.pair_sides and any(c.is_pair_condition for c in leaf.columns):
        return sqrt(SELECTIVITY / max(1.0, min(statistics.pair_sides)))
    return SELECTIVITY


def calls_of(block: Block, statistics: BlockStatistics) -> Calls:
    """How many rows each stage of a block is asked of, if nothing limits them."""
    if statistics.calls is not None:
        return statistics.calls
    by_stage: dict[Stage, Range] = {}
    for join, pairs in zip(asked_joins(block), statistics.pairs, strict=True):
        passing = pairs
        if join.formula is not None:
            unseen = replace(statistics, answers=None, rates=None)
            of_pairs = _filter(join.formula, join.stages, pairs, unseen)
            by_stage.update({s: replace(n, low=0.0) if told_by_rows(s, statistics) else n for s, n in of_pairs.items()})
            passing = Range(0, pairs.expected * passes(join.formula, model_answers(join.formula, unseen)), pairs.high)
        if isinstance(join, Correlated):
            by_stage.update(dict.fromkeys(join.values, passing))
    rows, share = statistics.rows, Range.exactly(1)
    if block.filter.formula is not None:
        answers = model_answers(block.filter.formula, statistics)
        expected = passes(block.filter.formula, answers)
        informed = statistics.answers is not None and statistics.share is not None
        low, high = (0.0, 1.0) if statistics.rates is None else (expected / TIMES_OFF, min(1.0, expected * TIMES_OFF))
        least = LEAST_SHARE if statistics.rates is None and not informed else 0.0
        if informed and statistics.share is not None:
            low, high = statistics.share
        share = Range(min(low, expected), expected, max(high, expected))
        if block.filter.goal is Goal.FIRST and block.order.rows_needed is not None:
            rows = statistics.until or _until(
                block.order.rows_needed,
                rows,
                replace(share, low=max(share.low, least)),
                statistics.guided and not block.order.keys,
            )
        by_stage.update(_filter(block.filter.formula, block.filter.stages, rows, statistics))
        if block.filter.goal is Goal.SEARCH:
            by_stage.update(_by_attribute(by_stage, statistics))
        rows_asked = NAMED + sum(statistics.pair_sides)  # and the pairs too, where the model names no values
        for compared in by_words(block, statistics):
            pairs = by_stage[compared]
            few = min(rows_asked, NAMED + 2 * pairs.expected) if block.filter.goal is Goal.FIRST else rows_asked
            by_stage[compared] = Range(0.0, few, rows_asked + pairs.high)
    passing = rows * share
    returned = passing
    if block.order.rows_needed is not None:
        returned = passing.capped(block.order.rows_needed)
        if block.counts_items and block.project.distinct:  # how many are equal is not known
            passing = Range(returned.low, min(2 * returned.expected, passing.expected), passing.high)
        elif block.filter.goal is Goal.FIRST or block.counts_items:
            passing = returned
    for stage in block.filter.left_over(block.values.stages):
        once = _once(passing, rows, stage, statistics)
        by_stage[stage] = pairs_compared(once, statistics.recall) if stage.of_pairs else once
    first = [c for c in block.values.groups if c.id in block.filter.riders]
    for stage in stages(tuple(first)):  # of the first rows, before there is a taxonomy
        by_stage[stage] = passing.capped(NAMED_FIRST)
    for stage in block.filter.left_over(block.values.late):
        by_stage[stage] = returned
    # up to the first frame that says yes
    for stage in [s for s in by_stage if not s.whole and any(c in statistics.frames for c in s.input_columns)]:
        frames = max(1.0, *(statistics.frames.get(c, 1.0) for c in stage.input_columns))
        n = by_stage[stage]
        by_stage[stage] = Range(n.low, n.expected * (1 + (frames - 1) * (1 - share.expected)), n.high * frames)
    least = 0.0 if passing.low < 1 else 1.0
    namings = [
        1.0 if c.into is not None or passing.high <= NAMED_AT_ONCE else MOST_NAMINGS for c in block.values.groups
    ]
    taxonomies = Range(least * len(namings), 1.0 * len(namings), sum(namings))
    summaries = NOTHING
    if block.summaries.columns:
        groups = passing.capped(GROUPS) if block.aggregate.keys else Range.exactly(1)
        most = max(1.0, passing.high)
        if block.summaries.returned_only and block.order.rows_needed is not None:
            groups = groups.capped(block.order.rows_needed)
        each = Range(groups.low, max(groups.expected, passing.expected / SUMMARY_ROWS), most)
        summaries = each.times(len(block.summaries.columns))
    return Calls(by_stage, taxonomies, summaries, passing, comparisons(block, passing), examples(block, statistics))


def examples(block: Block, statistics: BlockStatistics) -> Range:
    """Calls for example rows."""
    return Range.exactly(1) if statistics.examples and _has_examples(block) else NOTHING


def _has_examples(block: Block) -> bool:
    """Does a search for the first k rows ask for example rows before? Of one plain condition, or NOT of one, over the rows of one table."""
    only = block.filter.stages[0].columns if len(block.filter.stages) == 1 else ()
    plain = len(only) == 1 and only[0].is_condition and not only[0].is_pair_condition
    assert block.filter.formula is None or block.filter.formula.leaves
    return (
        block.filter.goal is Goal.FIRST
        and plain
        and not block.order.keys
        and block.filter.formula is not None
        and block.filter.formula.program in ((0,), (0, "NOT"))
    )


def comparisons(block: Block, passing: Range) -> Range:
    """Of ORDER BY "…" LIMIT k: two calls for each pair of rows compared around the cut, each row inserted among the first k."""
    k = block.order.rows_needed
    first = block.order.keys[0].expr if block.order.keys else None
    if (
        k is None
        or not k
        or block.aggregate.present
        or block.project.distinct
        or block.needs_every_row
        or not isinstance(first, Virtual)
        or not first.column.is_score
    ):
        return NOTHING

    def calls(n: float, share: float) -> float:
        return 0.0 if n <= k else 2 * (min(n, k + share * n) + k * log2(k + 1))

    return Range(0.0, calls(passing.expected, SHARE_AT_THE_CUT), calls(passing.high, 0.5))


def pairs_compared(rows: Range, recall: float | None = None) -> Range:
    """Calls of DISTINCT ON a text, for so many distinct rows: their pairs near in meaning, one a row at least, where all are the same, and
    two more a row at most, as a check. With a recall also those further apart, as far as its proof takes it."""

    def pairs(n: float, each: float) -> float:
        return min(n * (n - 1) / 2, n * each) if n > 1 else 0.0

    least, nearest = pairs(rows.low, 1.0), 0.7 * NEIGHBOURS
    expected, most = (nearest, NEIGHBOURS + 2) if recall is None else (PROOF * nearest, rows.high)
    return Range(least, max(least, pairs(rows.expected, expected)), pairs(rows.high, most))


def quote(plan: PhysicalPlan, knowledge: Callable[[Block], BlockStatistics]) -> Quote:
    """The price of a whole plan, if no budget limits it: that of its blocks together, one that stands in several places once."""
    return sum((block_quote(block, knowledge(block)) for block in blocks(plan).values()), FREE)


def blocks(plan: PhysicalPlan) -> dict[int, Block]:
    """The blocks of a plan by their identity."""
    match plan:
        case UnionPlan(left=left, right=right):
            return blocks(left) | blocks(right)
        case Block():
            by_id = {id(plan): plan}
            for below in inner_plans(plan):
                by_id |= blocks(below)
            return by_id
    return {}


def block_quote(block: Block, statistics: BlockStatistics) -> Quote:
    """The price of one block."""
    calls = calls_of(block, statistics)
    shared = sum((count.times(1 - 1 / stage.rows) for stage, count in calls.by_stage.items()), NOTHING)
    parts = [stage_tokens(stage, count, statistics) for stage, count in calls.by_stage.items()]
    parts += [
        written_tokens(calls.taxonomies, TAXONOMY_ROWS, WRITE, statistics),
        written_tokens(calls.comparisons, 2, COMPARE, statistics),
        written_tokens(calls.summaries, SUMMARY_ROWS, SUMMARY, statistics),
    ]
    tokens_in, tokens_out = (sum(side, NOTHING) for side in zip(*parts, strict=True))
    return Quote(calls.total, tokens_in, tokens_out, every=calls.total, shared=shared)


def stage_tokens(stage: Stage, calls: Range, statistics: BlockStatistics) -> Tokens:
    """Input and output tokens of so many rows of a stage.

    Args:
        stage: what is asked.
        calls: rows that are asked.
        statistics: lengths of the texts, and what a prompt takes.
    """
    frames = sum(statistics.frames.get(c, 0.0) for c in stage.input_columns) if stage.whole else 0.0
    shown = (
        statistics.sizes.get(stage.input_columns, 0.0) * (2 if stage.of_pairs else 1)
        + max(0.0, frames - 1) * MEDIA_BYTES
    )
    return calls.times(request_tokens(stage, shown, statistics.prompt)), calls.times(answer_tokens(stage, statistics))


def written_tokens(calls: Range, rows: int, operator: Operator, statistics: BlockStatistics) -> Tokens:
    """Input and output tokens of requests that show several rows: a taxonomy, a comparison, a summary.

    Args:
        calls: so many of them.
        rows: in each.
        operator: that the model answers.
        statistics: for the length of a row.
    """
    mean = max(statistics.sizes.values(), default=0.0) / BYTES_PER_TOKEN
    return calls.times(PROMPT_TOKENS + rows * mean), calls.times(operator.answer_tokens)


def request_tokens(stage: Stage, shown: float, prompt: PromptTokens) -> float:
    """Input tokens of one row of a stage.

    Args:
        shown: bytes of the row, as it is shown.
        prompt: tokens of a request beside its rows.
    """
    return prompt((*stage.columns, *stage.riders), stage.rows) / stage.rows + shown / BYTES_PER_TOKEN


def _is_word(stage: Stage) -> bool:
    """Is it one condition of one row, which models elsewhere answer by the bare word true or false?"""
    return stage.rows == 1 and not stage.riders and len(stage.columns) == 1 and stage.columns[0].is_condition


def answer_tokens(stage: Stage, statistics: BlockStatistics) -> float:
    """Output tokens of one row of a stage: as earlier answers to a text had them, else by its operator."""

    form = 0.0 if _is_word(stage) else statistics.form

    def one(column: VirtualColumn) -> float:
        return statistics.output.get(column.text, column.operator.answer_tokens + form)

    return sum(one(c) for c in (*stage.columns, *stage.riders)) + (ROW_ANSWER_TOKENS if stage.rows > 1 else 0)


def rows_out(block: Block, statistics: BlockStatistics) -> Range:
    """How many rows a block gives to the query around it."""
    passing = calls_of(block, statistics).passing
    if not block.aggregate.present:
        return passing.capped(block.order.rows_needed)
    groups = groups_of(block, passing)
    return groups.capped(block.order.rows_needed) if block.aggregate.keys else groups


def groups_of(block: Block, passing: Range) -> Range:
    """How many groups the rows that pass the WHERE of a block have."""
    if not block.aggregate.keys:
        return Range.exactly(1)
    return Range(min(1.0, passing.low), min(float(GROUPS), passing.expected), passing.high)


def _filter(
    formula: Formula, stages: tuple[Stage, ...], rows: Range, statistics: BlockStatistics
) -> dict[Stage, Range]:
    copies = [statistics.copies.get(stage.input_columns, 1.0) for stage in stages]
    shares = asked_shares(formula, stages, model_answers(formula, statistics), copies)
    concrete = [i for i, leaf in enumerate(formula.leaves) if not leaf.semantic]
    by_stage = {}
    for i, (stage, share) in enumerate(zip(stages, shares, strict=True)):
        low, high = (rows.low / copies[i] if i == 0 and not concrete else 0.0), rows.high / copies[i]
        if i == 0 and len(concrete) == 1 and concrete[0] in statistics.concrete:  # it alone decides who is asked first
            low, high = rows.low * share * (1 - ROUNDED), min(high, rows.high * share * (1 + ROUNDED))
        by_stage[stage] = Range(low, rows.expected * share, high)
    return by_stage


def by_words(block: Block, statistics: BlockStatistics) -> tuple[Stage, ...]:
    """The stages with comparisons of two texts that this model answers from the attribute that they name."""
    return tuple(s for s in block.filter.stages if told_by_rows(s, statistics)) if statistics.pair_sides else ()


def told_by_rows(stage: Stage, statistics: BlockStatistics) -> bool:
    """Does this model answer a comparison among these from the attribute of each row that it names?"""
    return not statistics.weighs_pairs and any(c.is_condition and attribute_comparison(c.text) for c in stage.columns)


def by_attribute(statistics: BlockStatistics) -> float:
    """Calls of a condition on pairs that is decided from an attribute of each row; 0 where there is none."""
    return 1 + sum(statistics.pair_sides) + ATTRIBUTE_CHECKS if statistics.pair_sides else 0.0


def _by_attribute(by_stage: Mapping[Stage, Range], statistics: BlockStatistics) -> dict[Stage, Range]:
    """Calls of conditions on pairs that do not fit in the budget, where one attribute of each row decides them."""
    expected = by_attribute(statistics)
    if not expected or statistics.budget is None:
        return {}
    replacements = {}
    for stage, calls in by_stage.items():
        pairs = any(c.is_pair_condition for c in stage.columns)
        if pairs and calls.expected > statistics.budget >= expected:
            replacements[stage] = Range(1 + ATTRIBUTE_CHECKS / 2, expected, max(calls.high, expected))
    return replacements


def _once(passing: Range, rows: Range, stage: Stage, statistics: BlockStatistics) -> Range:
    """The distinct rows among those asked, as a stage shows them."""
    copies = statistics.copies.get(stage.input_columns, 1.0)
    if copies <= 1.0:
        return passing

    def one(n: float, of: float) -> float:
        return of * distinct_share(n / of, copies) if of > 0 else 0.0

    return Range(
        one(passing.low, rows.high),
        one(passing.expected, max(rows.expected, passing.expected)),
        one(passing.high, rows.high),
    )


def _until(k: int, rows: Range, share: Range, guided: bool) -> Range:
    """Rows asked until k of them pass: by chance k / share; a search that learns needs fewer, never less than k.

    Expected of such a search is the geometric mean of both; on labelled texts chance is 1.8 to 3.2 times too high.
    """

    def rows_to_ask(n: float, s: float) -> float:
        return min(n, k / s) if s > 0 else n

    expected = rows_to_ask(rows.expected, sqrt(share.expected) if guided else share.expected)
    return Range(rows_to_ask(rows.low, 1.0 if guided else share.high), expected, rows_to_ask(rows.high, share.low))
