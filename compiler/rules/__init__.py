"""Rules: rewrites that are always better. One file each, applied in this order, each named after its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from uql.compiler.logical import LogicalPlan, OneInput, SemJoin, Union
from uql.compiler.rules.limit_before_map import limit_before_map
from uql.compiler.rules.sql_before_model import sql_before_model

Rule = Callable[[LogicalPlan], LogicalPlan]
RULES: tuple[Rule, ...] = (sql_before_model, limit_before_map)


def apply(plan: LogicalPlan, disabled: tuple[str, ...] = ()) -> LogicalPlan:
    """The plan after every rule that is not switched off by name."""
    for rule in RULES:
        if rule.__name__ not in disabled:
            plan = _everywhere(plan, rule)
    return plan


def _everywhere(plan: LogicalPlan, rule: Rule) -> LogicalPlan:
    if isinstance(plan, OneInput):
        below = _everywhere(plan.input, rule)
        plan = plan if below is plan.input else replace(plan, input=below)
    elif isinstance(plan, Union | SemJoin):
        left, right = _everywhere(plan.left, rule), _everywhere(plan.right, rule)
        if left is not plan.left or right is not plan.right:
            plan = replace(plan, left=left, right=right)
    return rule(plan)
