"""One virtual column is one question: what the filter has surely asked of a row is not asked again."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.formula import Formula
from uql.compiler.logical import LogicalPlan, SemFilter, SemMap


def asked_once(plan: LogicalPlan) -> LogicalPlan:
    """SemMap(SemFilter(x, c), m) → SemMap(SemFilter(x, c), m without what c answers on every row that passes).

    Safe: a row passes "a" AND "b" only with both answered. Not so "a" OR "b", which may pass with "b" unasked: the map stays.
    """
    if not isinstance(plan, SemMap) or not isinstance(plan.input, SemFilter):
        return plan
    sure = Formula.of(plan.input.condition).sure()
    rest = tuple(column for column in plan.columns if column.id not in sure)
    if rest == plan.columns:
        return plan
    return replace(plan, columns=rest) if rest else plan.input
