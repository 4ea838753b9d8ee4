"""Means and sums of what a model reads, by groups that DuckDB knows: which of them a query ranks its groups by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uql.compiler.cost import ROWS_A_GROUP
from uql.compiler.syntax import Call, Cast, Expr, Unary
from uql.compiler.walk import MEANS, adds_answers, is_semantic, virtuals
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.estimates.groups import Aggregation
from uql.kernels.estimates.stored_values import number
from uql.kernels.relation import Relation
from uql.kernels.sem_filter import Truth
from uql.sampling.base import Floats
from uql.sampling.by_group import ByGroupSampler, Ranking


@dataclass(frozen=True, slots=True)
class Target:
    """The aggregate whose groups a sample is allotted by, and what the query does with it."""

    call: Call
    ranking: Ranking
    n_groups: int

    @classmethod
    def of(cls, of: Aggregation, calls: Sequence[Call]) -> Target | None:
        """The aggregate that the groups are ordered by, or else the first mean or sum of what a model reads; None where there
        is none, or where a text decides which rows count.

        Args:
            calls: aggregates of which no more is known than what a model says of each row.
        """
        block, codes = of.block, of.codes
        if codes is None or block.filter.formula is not None or block.aggregate.sets or len(np.unique(codes)) < 2:
            return None
        targets: dict[Expr, Call] = {call: call for call in calls if adds_answers(call)}
        for quotient, (top, bottom) in of.quotients.items():
            if top in calls and is_semantic(top) and not is_semantic(bottom):
                targets[quotient] = top
        if not targets:
            return None
        ordered, sign = _bare(block.order.keys[0].expr) if block.order.keys else (None, 1)
        chosen = ordered if ordered in targets else next(iter(targets))
        first = None
        if (
            ordered in targets
            and block.order.limit is not None
            and block.aggregate.having is None
            and block.project.qualify is None
        ):
            first = block.order.limit + block.order.offset
        descending = bool(block.order.keys and block.order.keys[0].descending) != (sign < 0)
        totals = isinstance(chosen, Call) and chosen.name not in MEANS
        return cls(targets[chosen], Ranking(first, descending, totals), len(np.unique(codes)))

    def has_few_rows(self, room: int) -> bool:
        """Are so many rows too few for cells within each group? The sampler of all rows then knows little of each."""
        return room < ROWS_A_GROUP * self.n_groups


@dataclass(frozen=True, slots=True)
class Values:
    """A sampler that learns the value of each row."""

    sampler: ByGroupSampler
    call: Call

    def answers(self, rids: Rids, truth: Truth, relation: Relation, ctx: Context) -> Floats:
        """(n,) what the aggregate reads of these rows, NaN where that is nothing or not known.

        Args:
            rids: (n,) int, rows of the relation.
            truth: not used here.
        """
        del truth  # every row counts
        return read_values(self.call, rids, relation, ctx)


def read_values(call: Call, rids: Rids, relation: Relation, ctx: Context) -> Floats:
    """(n,) what an aggregate reads of these rows, NaN where that is nothing or not known.

    Args:
        rids: (n,) int, rows of the relation.
    """
    joined, arrays = relation.joined(rids, virtuals(call))
    table = ctx.duck.arrow(f"SELECT {number(call, ctx)} AS v FROM {joined} ORDER BY __pos", arrays)
    return np.asarray(table.column(0).to_numpy(zero_copy_only=False), dtype=np.float64)


def _bare(expr: Expr) -> tuple[Expr, int]:
    """An expression without casts and signs, and its sign."""
    sign = 1
    while True:
        match expr:
            case Cast(operand=inner):
                expr = inner
            case Unary(op="-", operand=inner):
                expr, sign = inner, -sign
            case _:
                return expr, sign
