"""k predicates over the same cells: in one request, one after another, or in between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from uql.compiler.physical import Block, Stage
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn

# predicates up to which every way of putting them together is looked at (15 ways); beyond: all together
ALL_PARTITIONS = 4
MOST_WAYS = 60  # of all sets of columns together


def predicates_together(block: Block) -> Iterator[Block]:
    """Every way of putting the questions of WHERE into requests.

    Legal: questions that read the same columns, so that a row looks the same in one request as in two. One request is one call a
    row and shows it once; one after another, later questions are asked only of rows that earlier ones leave open. Fewer calls on
    the one side, fewer words on the other: the price decides.
    """
    by_columns: dict[tuple[tuple[Column, ...], ...], list[VirtualColumn]] = {}
    for stage in block.filter.stages:
        by_columns.setdefault(stage.columns[0].shown, []).extend(stage.columns)
    ways = [list(_partitions(tuple(columns))) for columns in by_columns.values()]
    number = 1
    for one in ways:
        number *= len(one)
    if number > MOST_WAYS:
        ways = [[one[0], one[-1]] if len(one) > 1 else one for one in ways[:5]] + [[one[-1]] for one in ways[5:]]
    ids = [c.id for c in block.filter.columns]
    for chosen in product(*ways):
        parts = [part for way in chosen for part in way]
        parts.sort(key=lambda part: min(ids.index(c.id) for c in part))
        stages = tuple(Stage(part) for part in parts)
        if stages != block.filter.stages:
            yield block.with_requests(stages)


def _partitions(columns: tuple[VirtualColumn, ...]) -> Iterator[tuple[tuple[VirtualColumn, ...], ...]]:
    """The partitions of some columns, from each alone to all together; beyond ALL_PARTITIONS these two."""
    if len(columns) > ALL_PARTITIONS:
        yield tuple((c,) for c in columns)
        yield (columns,)
        return
    if not columns:
        yield ()
        return
    first, rest = columns[0], columns[1:]
    for smaller in _partitions(rest):
        yield ((first,), *smaller)
    for smaller in _partitions(rest):
        for i, part in enumerate(smaller):
            yield (*smaller[:i], (first, *part), *smaller[i + 1 :])
