"""WHERE + SELECT: the values of a row in the request that decides whether it passes."""

from __future__ import annotations

from collections.abc import Iterator

from uql.compiler.fusions.riders import riding, with_rider
from uql.compiler.physical import Block
from uql.compiler.virtual import VirtualColumn

MOST_WAYS = 2  # of letting one value ride, beside which others are tried


def select_with_where(block: Block) -> Iterator[Block]:
    """The block with the values of SELECT riding along with its WHERE.

    Legal: the value reads the columns that a question of WHERE reads, which is asked of each row that passes; nobody sees the values
    of the other rows, nor their failures. It pays where many rows pass, or where calls are what is scarce.
    """
    ways = [block]
    for stage in (*block.values.stages, *block.values.late):
        more = [with_rider(way, place, columns) for way in ways for place, columns in riding(way, (stage,), _is_value)]
        yield from more
        ways += more[:MOST_WAYS]


def _is_value(column: VirtualColumn) -> bool:
    return column.by_row and not column.attempt and column.label_query is None
