"""sem_order: graded scores for all rows, then comparisons of two among those around the cut of LIMIT.

n rows cost n scores; LIMIT k costs at most n / 2 + O(k log n) comparisons, fewer where few rows lie at the cut. Each is asked in both
positions: where these disagree the rows are tied, and tied rows stay in the order of their scores, then of their places. Rows whose
scores lie further apart than MARGIN are not compared.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uql.compiler.physical import Block
from uql.compiler.syntax import OrderKey
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.kernels import finish
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.llm.questions import Compare, Row

MARGIN = 1.0  # levels of ten
TIE = 0.5  # levels below the cut from which a row may still come in
LEAST_EXTRA = 8  # rows below the cut that may be compared with those above it, at least
CALLS = 2  # of a comparison: both positions


def leading(block: Block) -> VirtualColumn | None:
    """The text that rows are ordered by before all else; None where there is none."""
    first = block.order.keys[0].expr if block.order.keys else None
    return first.column if isinstance(first, Virtual) and first.column.is_score else None


async def chosen(block: Block, passing: Rids, columns: list[VirtualColumn], relation: Relation, ctx: Context) -> Rids:
    """The rows that ORDER BY and LIMIT leave, in that order. A note says where the order is by scores alone.

    Args:
        passing: (n,) int, the rows that meet the WHERE.
        columns: the texts that ORDER BY reads, asked already.
    """
    column = leading(block)
    if column is None or len(passing) < 2:
        return finish.chosen(block, passing, columns, relation, ctx)
    k = block.order.rows_needed
    note = f'"{column.text}": the order is by scores alone'
    if k is None or block.order.limit is None or column.holes or not 0 < k < len(passing):
        ctx.notes.append(note)
        return finish.chosen(block, passing, columns, relation, ctx)
    extra = max(k, LEAST_EXTRA, len(passing) // 2)
    longer = replace(block, order=replace(block.order, limit=k + extra, offset=0))
    ranked = finish.chosen(longer, passing, columns, relation, ctx)
    scores, key = relation[column].values, block.order.keys[0]
    unknown = [int(r) for r in ranked[:k] if scores[r] is None] if key.nulls == "FIRST" else []
    if len(unknown) == k:
        return ranked[block.order.offset : k]
    cut = scores[ranked[k - 1]]
    if cut is None:  # fewer than k rows have a score
        ctx.notes.append(note)
        return ranked[block.order.offset : k]
    near = [r for i, r in enumerate(ranked) if scores[r] is not None and (i < k or abs(scores[r] - cut) <= TIE)]
    if not ctx.purse.fits(CALLS):
        ctx.notes.append(f"{note}: the budget leaves no comparison")
        return ranked[block.order.offset : k]
    contest = _Contest(column, key, near, relation, ctx)
    best = [*unknown, *await contest.best(k - len(unknown))]
    if contest.ended:
        ctx.notes.append(f'"{column.text}": {contest.compared} comparisons were made, then the budget ended')
    return np.array(best[block.order.offset : k], dtype=np.int64)


class _Contest:
    """Comparisons among candidate rows, which come in the order of their scores."""

    def __init__(
        self, column: VirtualColumn, key: OrderKey, candidates: list[int], relation: Relation, ctx: Context
    ) -> None:
        self.column, self.descending, self.candidates, self.ctx = column, key.descending, candidates, ctx
        self.scores, self.source = relation[column].values, relation.source
        rows = relation.rows(np.array(candidates, dtype=np.int64), [column])
        self.rows = dict(zip(candidates, rows, strict=True))
        self.compared, self.ended = 0, False

    async def best(self, k: int) -> list[int]:
        """The first k, by insertion into a sorted list: one comparison a row where the scores were right, log k where not."""
        ranked: list[int] = []
        for row in self.candidates:
            place = len(ranked)
            if ranked and await self._before(row, ranked[-1]):
                low, high = 0, len(ranked) - 1
                while low < high:
                    middle = (low + high) // 2
                    if await self._before(row, ranked[middle]):
                        high = middle
                    else:
                        low = middle + 1
                place = low
            ranked.insert(place, row)
            del ranked[k:]
        return ranked

    async def _before(self, row: int, other: int) -> bool:
        """Does `row` come before `other`, which has the better or an equal score?"""
        if abs(self.scores[row] - self.scores[other]) > MARGIN or self.rows[row] == self.rows[other]:
            return False
        if self.ended or not self.ctx.purse.fits(CALLS):
            self.ended = True
            return False
        self.compared += 1
        one, two = self.rows[row], self.rows[other]
        question = Compare(self.column.text)
        (answers,) = await self.ctx.ask([question], [pair_of(one, two), pair_of(two, one)], self.source)
        first, second = answers.values
        if (first, second) == ("a", "b"):
            return self.descending
        return (first, second) == ("b", "a") and not self.descending


def pair_of(a: Row, b: Row) -> Row:
    """Two rows as one, their cells told apart by the tables "a" and "b"."""
    return Row(
        tuple(replace(cell, table=name) for name, row in (("a", a), ("b", b)) for cell in row.cells),
    )
