"""What `error = x` will ask, before its pilot: the rows of a sample by the shares of rows that are known, or thought likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uql.compiler.cost import NOTHING, Range, blocks
from uql.compiler.physical import Block, PhysicalPlan, asks
from uql.compiler.syntax import Call
from uql.compiler.walk import is_semantic, walk
from uql.kernels.estimates.error_target import SPARE, pilot_rows, rows_needed

if TYPE_CHECKING:
    from uql.pricing.known import Knowledge

GAIN = 8.0  # times fewer rows than a uniform sample needs, where features tell the answers well
VARIATION = Range(0.1, 0.6, 1.5)  # standard deviation over mean of values that were not looked at
FILTERED = Range(0.05, 0.4, 0.9)  # share of rows that a condition of FILTER or CASE counts
SMALLEST = Range(0.01, 0.1, 1.0)  # share of the rows of the smallest group that a model names
FUNCTIONS = ("count", "sum", "avg", "mean")


def share_asked(plan: PhysicalPlan, knowledge: Knowledge) -> Range | None:
    """The share of the calls for every row that `error = x` makes; None where no error ends a sample: nothing is sampled."""
    asked = [block for block in blocks(plan).values() if asks(block)]
    shares = [_share(block, knowledge) for block in asked]
    if all(share is None for share in shares):
        return None
    whole = [_open_calls(block, knowledge) for block in asked]
    parts = [(share or Range.exactly(1.0)).times(calls) for share, calls in zip(shares, whole, strict=True)]
    return sum(parts, NOTHING).times(1 / sum(whole))


def _share(block: Block, knowledge: Knowledge) -> Range | None:
    """The same of one block."""
    settings = knowledge.settings
    pilot = pilot_rows(settings.error)
    if settings.error is None or pilot is None or settings.exact:
        return None
    if not block.aggregate.present or block.aggregate.sets or block.inner.derived:
        return None
    n, open_calls = knowledge(block).rows.expected, _open_calls(block, knowledge)
    spreads = [_spread(call, block, knowledge) for call in _estimated(block)]
    if n <= pilot or not spreads:
        return None
    most = Range(max(s.low for s in spreads), max(s.expected for s in spreads), max(s.high for s in spreads))
    low, expected, high = (
        rows_needed(s, settings.error, n, settings.confidence) for s in (most.low, most.expected, most.high)
    )
    rows = (max(pilot, low / GAIN), max(pilot, expected), max(pilot, SPARE * high))
    return Range(*(min(m, open_calls) / open_calls for m in rows))  # rows of which the answer is known cost nothing


def _open_calls(block: Block, knowledge: Knowledge) -> float:
    """The calls that asking every row of a block is thought to take."""
    statistics = knowledge(block)
    return max(1.0, statistics.rows.expected if statistics.calls is None else statistics.calls.total.expected)


def _estimated(plan: Block) -> list[Call]:
    """The aggregates of the items that a sample estimates."""
    all_calls = (node for item in plan.project.items for node in walk(item.expr) if isinstance(node, Call))
    calls = [call for call in all_calls if call.name in FUNCTIONS and not call.distinct]
    every = plan.filter.formula is not None or _names_groups(plan)
    return [call for call in calls if every or is_semantic(call)]


def _names_groups(plan: Block) -> bool:
    """Is a row's group an answer?"""
    return any(is_semantic(key.expr) for key in plan.aggregate.keys)


def _spread(call: Call, plan: Block, knowledge: Knowledge) -> Range:
    """Variance of what a row adds over the square of its mean; that of an AVG is of its values alone, over the share that counts."""
    statistics = knowledge(plan)
    share = Range.exactly(1.0)
    if plan.filter.formula is not None and statistics.calls is not None:
        passing = (
            statistics.calls.passing
            if statistics.calls.passing != NOTHING
            else FILTERED.times(statistics.rows.expected)
        )
        share = passing.times(1 / max(statistics.rows.expected, 1.0))
    elif call.filter is not None or (call.name in ("count", "sum") and not _names_groups(plan)):
        share = FILTERED
    if _names_groups(plan):
        share = Range(share.low * SMALLEST.low, share.expected * SMALLEST.expected, share.high * SMALLEST.high)
    elif plan.aggregate.keys:
        codes = None if statistics.site is None else statistics.site.keys
        sizes = (
            np.unique(codes, return_counts=True)[1] / len(codes)
            if codes is not None and len(codes)
            else np.array([0.05])
        )
        share = share.times(float(sizes.min()))

    def one(p: float, variation: float) -> float:
        p = min(max(p, 1e-6), 1.0)
        return variation**2 / p if call.name in ("avg", "mean") else (variation**2 + 1 - p) / p

    varies = VARIATION if call.args and call.name != "count" else NOTHING
    return Range(one(share.high, varies.low), one(share.expected, varies.expected), one(share.low, varies.high))
