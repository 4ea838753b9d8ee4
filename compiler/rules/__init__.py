"""Rules: rewrites that are always better. One file each, applied in this order, each named after its function.

There is no rule that makes a disjunctive normal form: a formula of any shape is evaluated row by row over masks of the three truth
values (`formula.py`), which settles a row as early as a normal form would and cannot blow up. What a normal form would give to
DuckDB, `formula.implied` gives it.
"""

from __future__ import annotations

from collections.abc import Callable

from uql.base.errors import ConfigError
from uql.compiler import fusions
from uql.compiler.logical import LogicalPlan, with_inputs
from uql.compiler.rules.asked_once import asked_once
from uql.compiler.rules.constants import constants
from uql.compiler.rules.filters_into_subqueries import filters_into_subqueries
from uql.compiler.rules.having_before_groups import having_before_groups
from uql.compiler.rules.limit_before_map import limit_before_map
from uql.compiler.rules.limit_into_subquery import limit_into_subquery
from uql.compiler.rules.semi_join_first import semi_join_first
from uql.compiler.rules.sql_before_model import sql_before_model
from uql.compiler.rules.summaries_last import summaries_last
from uql.compiler.rules.unused_columns import unused_columns
from uql.compiler.valid import check

Rule = Callable[[LogicalPlan], LogicalPlan]
RULES: tuple[Rule, ...] = (
    constants,
    sql_before_model,
    having_before_groups,
    semi_join_first,
    filters_into_subqueries,
    unused_columns,
    asked_once,
    limit_before_map,
    limit_into_subquery,
    summaries_last,
)
# that look at a block as a whole, not at each node
WHOLE: frozenset[Rule] = frozenset({semi_join_first, unused_columns})
# what else can be switched off: aggregates in the place of those over a sub-query, orders and fusions
CHOICES = ("merged", "order_by_rates", "order_while_running", *fusions.NAMES, "cascade")
NAMES = (*(rule.__name__ for rule in RULES), *CHOICES)


def known_names(disabled: tuple[str, ...]) -> tuple[str, ...]:
    """The names, all of rules that exist. Raises ConfigError (UQL105) with the list."""
    for name in disabled:
        if name not in NAMES:
            raise ConfigError(f"there is no rule {name!r} to switch off", help=f"rules: {', '.join(NAMES)}")
    return disabled


def apply(plan: LogicalPlan, disabled: tuple[str, ...] = (), rules: tuple[Rule, ...] = RULES) -> LogicalPlan:
    """The plan after every rule that is not switched off by name; valid, with the same columns, after each.

    Args:
        plan: as built.
        disabled: names of rules.
        rules: in the order in which they are applied.
    Raises PlanError (UQL399) naming the rule that made an invalid plan.
    """
    output = check(plan, "build")
    for rule in rules:
        if rule.__name__ not in disabled:
            before, plan = plan, _everywhere(plan, rule)
            if plan is not before:
                check(plan, rule.__name__, output)
    return plan


def _everywhere(plan: LogicalPlan, rule: Rule) -> LogicalPlan:
    if rule in WHOLE:
        return rule(plan)
    return rule(with_inputs(plan, lambda below: _everywhere(below, rule)))
