"""Concrete conditions are decided by DuckDB before a model is asked."""

from __future__ import annotations

from uql.compiler.formula import conjunction, conjuncts, implied
from uql.compiler.logical import LogicalPlan, SemFilter, SqlFilter
from uql.compiler.walk import is_semantic


def sql_before_model(plan: LogicalPlan) -> LogicalPlan:
    """SemFilter(x, c AND s) → SemFilter(SqlFilter(x, c), s), and what s implies of concrete columns joins c.

    Safe: a row on which a term of an AND is false or NULL never passes, and `implied` holds on every row that does.
    """
    if not isinstance(plan, SemFilter):
        return plan
    terms = conjuncts(plan.condition)
    semantic = conjunction([term for term in terms if is_semantic(term)])
    below = [term for term in terms if not is_semantic(term)]
    assert semantic is not None
    weaker = implied(semantic)
    if weaker is not None and not (isinstance(plan.input, SqlFilter) and weaker in conjuncts(plan.input.condition)):
        below.append(weaker)
    concrete = conjunction(below)
    if concrete is None:
        return plan
    return SemFilter(SqlFilter(plan.input, concrete), semantic)
