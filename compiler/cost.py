"""What a plan will cost, on one page: calls and tokens, each low, expected and high. No model is asked."""

from __future__ import annotations

from dataclasses import dataclass

from uql.compiler.physical import Block, Goal, Stage
from uql.compiler.virtual import Kind

CHARS_PER_TOKEN = 4.0
PROMPT_TOKENS = 40  # of a request, without the row and the questions
ANSWER_TOKENS = {Kind.CONDITION: 1, Kind.SCORE: 1, Kind.CHOICE: 4, Kind.GROUP: 4, Kind.EXTRACT: 8, Kind.SUMMARY: 150}
TAXONOMY_ROWS, TAXONOMY_TOKENS = 24, 150
SELECTIVITY = (0.0, 1 / 3, 1.0)  # of a condition that nobody has asked yet


@dataclass(frozen=True, slots=True)
class Range:
    """A number that is not known yet.

    >>> Range(1, 2, 3) + Range(1, 1, 1)
    Range(low=2, expected=3, high=4)
    """

    low: float
    expected: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def times(self, factor: float) -> Range:
        return Range(self.low * factor, self.expected * factor, self.high * factor)

    def capped(self, most: float | None) -> Range:
        if most is None:
            return self
        return Range(min(self.low, most), min(self.expected, most), min(self.high, most))


NOTHING = Range(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Quote:
    """The price of a query before it runs."""

    calls: Range
    input_tokens: Range
    output_tokens: Range
    usd: Range | None = None  # None: the price of the model is not known
    seconds: Range | None = None

    def __add__(self, other: Quote) -> Quote:
        return Quote(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


FREE = Quote(NOTHING, NOTHING, NOTHING)


def block_quote(
    block: Block,
    candidates: int,
    budget: int | None,
    chars: dict[Stage, float],
    selectivity: tuple[float, float, float] = SELECTIVITY,
) -> Quote:
    """The price of one block.

    Args:
        candidates: rows that DuckDB leaves for the model.
        budget: calls at most; None: no limit.
        chars: mean characters of a row as each stage shows it.
        selectivity: low, expected and high share of the rows that pass; by default nothing is known of it.
    """
    n = float(candidates)
    share = Range(*selectivity) if block.formula is not None else Range(1, 1, 1)
    calls: dict[Stage, Range] = {}
    asked = Range(n, n, n)
    if block.goal is Goal.FIRST and block.wanted is not None:
        k = min(n, block.wanted)
        low, expected, high = (max(s, 1 / max(n, 1.0)) for s in selectivity)
        asked = Range(min(n, k / high), min(n, k / expected), min(n, k / low))
    for i, stage in enumerate(block.filter_stages):
        calls[stage] = asked if i == 0 else Range(0, asked.expected * selectivity[1] ** i, asked.high)
    passing = Range(asked.low * share.low, asked.expected * share.expected, asked.high * share.high)
    if block.goal is Goal.FIRST and block.wanted is not None:
        passing = Range(0, min(n, block.wanted), min(n, block.wanted))
    returned = passing if block.limit is None else passing.capped(block.wanted)
    for stage in block.row_stages:
        calls[stage] = passing
    for stage in block.late_stages:
        calls[stage] = returned
    total, tokens_in, tokens_out = NOTHING, NOTHING, NOTHING
    for stage, count in calls.items():
        total += count
        questions = sum(len(c.text) for c in stage.columns) / CHARS_PER_TOKEN
        row = PROMPT_TOKENS + questions + chars.get(stage, 0.0) / CHARS_PER_TOKEN
        tokens_in += count.times(row)
        tokens_out += count.times(sum(ANSWER_TOKENS[c.kind] for c in stage.columns))
    for column in block.groups:
        stage = Stage((column,))
        row = chars.get(stage, 0.0) / CHARS_PER_TOKEN
        total += Range(1, 1, 1) + passing
        tokens_in += passing.times(PROMPT_TOKENS + row) + Range(1, 1, 1).times(TAXONOMY_ROWS * row + PROMPT_TOKENS)
        tokens_out += passing.times(ANSWER_TOKENS[Kind.GROUP]) + Range(1, 1, 1).times(TAXONOMY_TOKENS)
    if block.summaries:
        per_column = len(block.summaries)
        total += Range(per_column, per_column * (3 if block.keys else 1), per_column * max(1.0, passing.high))
    limited = total.capped(budget)
    shrink = [limited.low / total.low if total.low else 1.0]
    shrink += [limited.expected / total.expected if total.expected else 1.0]
    shrink += [limited.high / total.high if total.high else 1.0]

    def scaled(tokens: Range) -> Range:
        return Range(tokens.low * shrink[0], tokens.expected * shrink[1], tokens.high * shrink[2])

    return Quote(limited, scaled(tokens_in), scaled(tokens_out))
