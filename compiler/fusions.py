"""Fusions: what may be asked together. Each is priced against asking apart, and chosen only where it is cheaper.

A fusion is a function from a block to the other blocks that it makes possible; all of them give the same rows. The conditions
under which it is legal stand in its docstring. `compiler/choice.py` prices what they offer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from itertools import product

from uql.compiler.physical import Block, Goal, Stage, stages
from uql.compiler.subqueries import in_expressions, is_semantic_query
from uql.compiler.syntax import Column
from uql.compiler.virtual import Moment, VirtualColumn
from uql.compiler.walk import is_semantic, walk

# predicates up to which every way of putting them together is looked at (15 ways); beyond: all together
ALL_PARTITIONS = 4
MOST_WAYS = 60  # of all sets of columns together
VALUE_WAYS = 2  # of letting one value ride, beside which others are tried


def apart(block: Block) -> Block:
    """The block with every question a request of its own, and no stop at LIMIT: what the fusions start from."""

    def each(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(Stage((column,)) for stage in stages for column in stage.columns)

    goal = Goal.SEARCH if block.filter.goal is Goal.FIRST else block.filter.goal
    block = block.with_requests(each(block.filter.stages), each(block.values.stages), each(block.values.late))
    return replace(block, filter=replace(block.filter, goal=goal))


def where_with_limit(block: Block) -> Iterator[Block]:
    """The block that stops at the k-th row that passes.

    Legal: nothing between WHERE and LIMIT needs the other rows: no aggregate, no DISTINCT, no window, no QUALIFY, no ORDER BY
    on a quoted text, nor on one in a sub-query that reads the row. The items of lists that the model makes are counted afterwards:
    the block is asked for more rows where they are few.
    With ORDER BY on concrete columns the rows are asked in that order, so the answer is an exact prefix.
    """
    if block.filter.formula is None or block.order.rows_needed is None or block.filter.goal is not Goal.SEARCH:
        return
    keys = [key.expr for key in block.order.keys]
    ordered = any(map(is_semantic, keys)) or any(
        below.correlated and is_semantic_query(below.query) for below in in_expressions(*keys)
    )
    dependent = block.needs_every_row and not block.counts_items
    if block.aggregate.present or block.project.distinct or dependent or ordered:
        return
    yield replace(block, filter=replace(block.filter, goal=Goal.FIRST))


def select_with_group(block: Block) -> Iterator[Block]:
    """The groups and values of a row that passes, in one request for each set of columns read.

    Legal: they read the same columns and are asked of the same rows, those that pass; the taxonomy is there before any of them.
    """
    row = stages(tuple(c for stage in block.values.stages for c in stage.columns))
    late = stages(tuple(c for stage in block.values.late for c in stage.columns))
    if row != block.values.stages or late != block.values.late:
        yield block.with_requests(values=row, late=late)


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


def select_with_where(block: Block) -> Iterator[Block]:
    """The block with the values of SELECT riding along with its WHERE.

    Legal: the value reads the columns that a question of WHERE reads, which is asked of each row that passes; nobody sees the values
    of the other rows, nor their failures. It pays where many rows pass, or where calls are what is scarce.
    """
    ways = [block]
    for stage in (*block.values.stages, *block.values.late):
        more = [with_rider(way, place, columns) for way in ways for place, columns in riding(way, (stage,), _is_value)]
        yield from more
        ways += more[:VALUE_WAYS]


def _is_value(column: VirtualColumn) -> bool:
    return column.by_row and not column.attempt and column.label_query is None


def videos_whole(block: Block, watched: Set[Column]) -> Iterator[Block]:
    """The block whose conditions on videos are put to the files, wherever that is legal.

    Legal: the model takes videos (`watched` names the columns that it takes), and no moment is asked for, which a frame alone tells. A
    file that is too large to be sent is searched frame by frame all the same. Frames are asked until one says yes: a clip where that
    comes early costs less by frames.
    """
    if not watched or any(isinstance(node, Moment) for expr in block.expressions for node in walk(expr)):
        return
    yield from _changed(block, lambda s: replace(s, whole=True) if any(c in watched for c in s.input_columns) else s)


def rows_together(block: Block, rows: int, unshared: Set[Column], apart: bool = False) -> Iterator[Block]:
    """The block whose questions are put to `rows` rows at once, wherever that is legal.

    Legal: the model takes several rows (`rows` says how many), the question is the same for each (no value of the row in a hole of it,
    no labels of its own), and what is shown is text of a length that leaves room for others: no column of `unshared`. Each row stays a
    call, and one whose answer cannot be read is asked again alone. Rows beside each other may colour each other's answers, so it is
    done where the user says so, or where it saves enough.

    Args:
        rows: in one request; fewer than 2: never.
        unshared: columns whose text is too long to share a request.
        apart: the model answers each row as a decision of its own.
    """
    if rows >= 2:
        yield from _changed(block, lambda s: replace(s, rows=rows, apart=apart) if _may_share(s, unshared) else s)


def _may_share(stage: Stage, unshared: Set[Column]) -> bool:
    columns = (*stage.columns, *stage.riders)
    same = all(not c.of_group and not c.of_pairs and not c.holes and c.label_query is None for c in columns)
    return same and bool(stage.reads) and not any(c in unshared for c in stage.input_columns)


def _changed(block: Block, change: Callable[[Stage], Stage]) -> Iterator[Block]:
    """The block with each of its stages changed, where that is another one."""
    filter, values = block.filter.stages, block.values
    changed = block.with_requests(*(tuple(map(change, stages)) for stages in (filter, values.stages, values.late)))
    if changed != block:
        yield changed


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


Fusion = Callable[[Block], Iterator[Block]]
FUSIONS: tuple[Fusion, ...] = (
    where_with_limit,
    select_with_group,
    predicates_together,
    group_with_where,
    select_with_where,
)
# the other two look at settings and columns too
NAMES = (*(fusion.__name__ for fusion in FUSIONS), videos_whole.__name__, rows_together.__name__)
