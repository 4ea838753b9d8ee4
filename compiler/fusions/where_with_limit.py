"""WHERE + LIMIT: the filter stops as soon as k rows are certain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uql.compiler.physical import Block, Goal
from uql.compiler.syntax import Call
from uql.compiler.walk import is_semantic, walk


def where_with_limit(block: Block) -> Iterator[Block]:
    """The block that stops at the k-th row that passes.

    Legal: nothing between WHERE and LIMIT needs the other rows: no aggregate, no DISTINCT, no window, no ORDER BY on a quoted text.
    With ORDER BY on concrete columns the rows are asked in that order, so the answer is an exact prefix.
    """
    if block.formula is None or block.wanted is None or block.goal is not Goal.SEARCH:
        return
    windows = any(isinstance(n, Call) and n.over for item in block.items for n in walk(item.expr))
    if block.aggregated or block.distinct or windows or any(is_semantic(key.expr) for key in block.order_by):
        return
    yield replace(block, goal=Goal.FIRST)
