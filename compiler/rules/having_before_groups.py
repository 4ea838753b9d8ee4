"""A condition of HAVING on nothing but the keys of groups is decided before there are groups."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.logical import Aggregate, LogicalPlan, OneInput, Scan, SemJoin, SqlFilter
from uql.compiler.syntax import Call, Column, Exists, Expr, InQuery, ScalarQuery
from uql.compiler.walk import columns, is_semantic, walk


def having_before_groups(plan: LogicalPlan) -> LogicalPlan:
    """Aggregate(x, HAVING film = 'Alien' AND COUNT(*) > 3) → Aggregate(SqlFilter(x, film = 'Alien'), HAVING COUNT(*) > 3).

    Safe: all rows of a group have its keys, so a term over keys alone is true of all of them or of none, and a group without rows
    is none. Terms over aggregates stay after the aggregate, and so does everything where there are no keys, or several sets of them.
    """
    if not isinstance(plan, Aggregate) or plan.having is None or plan.sets:
        return plan
    keys: set[Expr] = {key.expr for key in plan.keys if isinstance(key.expr, Column)}
    early = [term for term in conjuncts(plan.having) if _over_keys(term, keys)]
    condition = conjunction(early)
    if condition is None:
        return plan
    rest = conjunction([term for term in conjuncts(plan.having) if term not in early])
    return replace(plan, input=_at_source(plan.input, condition), having=rest)


def _over_keys(term: Expr, keys: set[Expr]) -> bool:
    used = columns(term)
    asks = any(isinstance(node, Call | Exists | InQuery | ScalarQuery) for node in walk(term))
    return bool(used) and not asks and not is_semantic(term) and set(used) <= keys


def _at_source(plan: LogicalPlan, condition: Expr) -> LogicalPlan:
    """The plan with a concrete condition on the rows of its source."""
    if isinstance(plan, Scan | SemJoin):
        return SqlFilter(plan, condition)
    assert isinstance(plan, OneInput)
    return replace(plan, input=_at_source(plan.input, condition))
