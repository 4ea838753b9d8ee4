"""Fusions: what may be asked together. One file each, priced against asking apart, and chosen only where it is cheaper.

A fusion is a function from a block to the other blocks that it makes possible; all of them give the same rows. The conditions
under which it is legal stand in its docstring. `compiler/choice.py` prices what they offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from uql.compiler.fusions.group_with_where import group_with_where
from uql.compiler.fusions.predicates_together import predicates_together
from uql.compiler.fusions.rows_together import rows_together
from uql.compiler.fusions.select_with_group import select_with_group
from uql.compiler.fusions.select_with_where import select_with_where
from uql.compiler.fusions.videos_whole import videos_whole
from uql.compiler.fusions.where_with_limit import where_with_limit
from uql.compiler.physical import Block, Goal, Stage

Fusion = Callable[[Block], Iterator[Block]]
FUSIONS: tuple[Fusion, ...] = (
    where_with_limit,
    select_with_group,
    predicates_together,
    group_with_where,
    select_with_where,
)
# the last two look at settings and columns too
NAMES = (*(fusion.__name__ for fusion in FUSIONS), videos_whole.__name__, rows_together.__name__)


def apart(block: Block) -> Block:
    """The block with every question a request of its own, and no stop at LIMIT: what the fusions start from."""

    def each(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(Stage((column,)) for stage in stages for column in stage.columns)

    goal = Goal.SEARCH if block.filter.goal is Goal.FIRST else block.filter.goal
    block = block.with_requests(each(block.filter.stages), each(block.values.stages), each(block.values.late))
    return replace(block, filter=replace(block.filter, goal=goal))
