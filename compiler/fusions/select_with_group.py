"""SELECT + GROUP BY, and several values: what is asked of the same row of the same columns, in one request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uql.compiler.physical import Block, stages


def select_with_group(block: Block) -> Iterator[Block]:
    """The groups and values of a row that passes, in one request for each set of columns read.

    Legal: they read the same columns and are asked of the same rows, those that pass; the taxonomy is there before any of them.
    """
    row = stages(tuple(c for stage in block.row_stages for c in stage.columns))
    late = stages(tuple(c for stage in block.late_stages for c in stage.columns))
    if row != block.row_stages or late != block.late_stages:
        yield replace(block, row_stages=row, late_stages=late)
