"""What may ride along with a request of WHERE: asked of more rows than need it, in exchange for no second request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from uql.compiler.physical import Block, Stage
from uql.compiler.virtual import VirtualColumn


def carriers(block: Block, column: VirtualColumn) -> Iterator[int]:
    """The positions of the stages of WHERE that can carry a column: they show the same cells and are asked of each row that passes."""
    if block.filter.formula is None:
        return
    sure = block.filter.formula.sure()
    for i, stage in enumerate(block.filter.stages):
        same = all(c.shown == column.shown for c in stage.columns)
        if same and any(c.id in sure for c in stage.columns):
            yield i


def riding(
    block: Block, stages: tuple[Stage, ...], may: Callable[[VirtualColumn], bool]
) -> Iterator[tuple[int, tuple[VirtualColumn, ...]]]:
    """The stages that can ride as a whole, with each position that can carry them: the later, the fewer rows are left.

    Args:
        stages: stages asked after the WHERE.
        may: is this column allowed to ride?
    Returns: (position in the stages of the WHERE, columns).
    """
    for stage in stages:
        columns = tuple(c for c in stage.columns if may(c) and c.id not in block.filter.riders)
        places = [set(carriers(block, c)) for c in columns]
        shared = set.intersection(*places) if places else set()
        if columns == stage.columns:
            yield from ((place, columns) for place in sorted(shared, reverse=True))


def with_rider(block: Block, place: int, columns: tuple[VirtualColumn, ...]) -> Block:
    """The block with columns riding along with one stage of its WHERE.

    Args:
        place: position in the stages of the WHERE.
        columns: asked in the same request.
    """
    stage = block.filter.stages[place]
    changed = replace(stage, riders=(*stage.riders, *columns))
    return block.with_requests((*block.filter.stages[:place], changed, *block.filter.stages[place + 1 :]))
