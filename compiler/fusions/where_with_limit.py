"""WHERE + LIMIT: the filter stops as soon as k rows are certain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uql.compiler.physical import Block, Goal
from uql.compiler.subqueries import in_expressions, is_semantic_query
from uql.compiler.walk import is_semantic


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
