"""Groups that HAVING drops or LIMIT does not return get no summary."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.formula import conjunction, conjuncts, implied
from uql.compiler.logical import Aggregate, Distinct, Limit, LogicalPlan, OneInput, SemAgg, Sort
from uql.compiler.walk import is_semantic, virtuals


def summaries_last(plan: LogicalPlan) -> LogicalPlan:
    """SemAgg(Aggregate(HAVING COUNT(*) > 3 AND "t")) → the same, asking only groups of which COUNT(*) > 3 is true; and under a LIMIT

    whose order and HAVING need no summary, only the groups returned. Safe: a group is returned or not whatever its summary says.
    """
    match plan:
        case SemAgg(input=Aggregate(having=having) as below, only=None) if having is not None:
            terms = [term for term in conjuncts(having) if not is_semantic(term)]
            semantic = conjunction([term for term in conjuncts(having) if is_semantic(term)])
            weaker = implied(semantic) if semantic is not None else None
            only = conjunction([*terms, *([weaker] if weaker is not None else [])])
            return replace(plan, input=below, only=only) if only is not None else plan
        case Limit(input=below) if not plan.offset or plan.count is not None:
            return _returned(plan, below)
    return plan


def _returned(limit: Limit, below: LogicalPlan) -> LogicalPlan:
    sort = below if isinstance(below, Sort) else None
    node = sort.input if sort is not None else below
    if isinstance(node, Distinct) or not isinstance(node, SemAgg) or node.returned_only:
        return limit
    having = node.input.having if isinstance(node.input, Aggregate) else None
    used = virtuals(having, *(key.expr for key in sort.keys) if sort is not None else ())
    if any(column.of_group for column in used):
        return limit
    inner: OneInput = replace(node, returned_only=True)
    return replace(limit, input=replace(sort, input=inner) if sort is not None else inner)
