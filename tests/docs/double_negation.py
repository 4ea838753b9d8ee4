"""NOT NOT c is c: the rule of docs/extending.md."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.logical import LogicalPlan, SemFilter, SqlFilter
from uql.compiler.syntax import Expr, Unary
from uql.compiler.walk import rewrite


def double_negation(plan: LogicalPlan) -> LogicalPlan:
    """Filter(x, NOT NOT c) → Filter(x, c). Safe in three-valued logic: NOT NULL is NULL."""
    if not isinstance(plan, SemFilter | SqlFilter):
        return plan
    condition = rewrite(plan.condition, simpler)
    return plan if condition == plan.condition else replace(plan, condition=condition)  # the same object: nothing to do


def simpler(expr: Expr) -> Expr:
    match expr:
        case Unary(op="NOT", operand=Unary(op="NOT", operand=inner)):
            return inner
    return expr
