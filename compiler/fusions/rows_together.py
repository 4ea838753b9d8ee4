"""Several rows in one request: what a request says beside its row is said once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from uql.compiler.physical import Block, Stage
from uql.compiler.syntax import Column


def rows_together(block: Block, rows: int, unshared: Set[Column]) -> Iterator[Block]:
    """The block whose questions are put to `rows` rows at once, wherever that is legal.

    Legal: the model takes several rows (`rows` says how many), the question is the same for each (no value of the row in a hole of it,
    no labels of its own), and what is shown is text of a length that leaves room for others: no column of `unshared`. Each row stays a
    call, and one whose answer cannot be read is asked again alone. Rows beside each other may colour each other's answers, so it is
    done where the user says so, or where it saves enough.

    Args:
        rows: in one request; fewer than 2: never.
        unshared: columns whose text is too long to share a request.
    """
    if rows < 2:
        return

    def put(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        return tuple(replace(s, rows=rows) if _may(s, unshared) else s for s in stages)

    changed = block.with_requests(put(block.filter.stages), put(block.values.stages), put(block.values.late))
    if changed != block:
        yield changed


def _may(stage: Stage, unshared: Set[Column]) -> bool:
    columns = (*stage.columns, *stage.riders)
    same = all(not c.of_group and not c.of_pairs and not c.holes and c.label_query is None for c in columns)
    return same and bool(stage.reads) and not any(c in unshared for c in stage.input_columns)
