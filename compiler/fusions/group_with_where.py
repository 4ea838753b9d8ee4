"""GROUP BY + WHERE: one sample, one proposal, and from the taxonomy on one request a row for both."""

from __future__ import annotations

from collections.abc import Iterator

from uql.compiler.fusions.riders import riding, with_rider
from uql.compiler.physical import Block
from uql.compiler.virtual import VirtualColumn


def group_with_where(block: Block) -> Iterator[Block]:
    """The block whose groups (and the values asked with them) ride along with its WHERE as soon as they are named.

    Legal: WHERE is before GROUP BY, and the taxonomy comes from rows that pass. So the first rows are asked the WHERE alone, until
    enough have passed to name the groups; the rows of all samples are proposed once, for both. The group reads the columns of a
    question of WHERE that is asked of each row that passes. Not for MANY, and not for several taxonomies over different columns.
    """
    if len(block.values.groups) != 1 or block.values.groups[0].many:
        return
    group = block.values.groups[0]

    def may(column: VirtualColumn) -> bool:
        return not column.attempt and column.label_query is None

    for place, columns in riding(block, block.values.stages, may):
        if group in columns:
            yield with_rider(block, place, columns)
