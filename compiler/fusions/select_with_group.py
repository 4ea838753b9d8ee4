"""SELECT + GROUP BY, and several values: what is asked of the same row of the same columns, in one request."""

from __future__ import annotations

from collections.abc import Iterator

from uql.compiler.physical import Block, stages


def select_with_group(block: Block) -> Iterator[Block]:
    """The groups and values of a row that passes, in one request for each set of columns read.

    Legal: they read the same columns and are asked of the same rows, those that pass; the taxonomy is there before any of them.
    """
    row = stages(tuple(c for stage in block.values.stages for c in stage.columns))
    late = stages(tuple(c for stage in block.values.late for c in stage.columns))
    if row != block.values.stages or late != block.values.late:
        yield block.with_requests(values=row, late=late)
