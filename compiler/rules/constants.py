"""Conditions whose value is known from the text alone are settled before anything is asked."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.formula import folded
from uql.compiler.logical import LogicalPlan, SemFilter, SqlFilter
from uql.compiler.syntax import Boolean
from uql.compiler.walk import is_semantic, rewrite


def constants(plan: LogicalPlan) -> LogicalPlan:
    """Filter(x, 1 = 1 AND c) → Filter(x, c); Filter(x, TRUE) → x; Filter(x, "t" AND FALSE) → SqlFilter(x, FALSE): "t" is never asked.

    Safe in three-valued logic: FALSE settles an AND and TRUE an OR whatever the other side is, NULL and failures included; TRUE in
    an AND and FALSE in an OR change nothing. NULL stays, since it is neither.
    """
    if not isinstance(plan, SemFilter | SqlFilter):
        return plan
    condition = rewrite(plan.condition, folded)
    if condition == Boolean(True):
        return plan.input
    if condition == plan.condition:
        return plan
    if isinstance(plan, SemFilter) and not is_semantic(condition):
        return SqlFilter(plan.input, condition)
    return replace(plan, condition=condition)
