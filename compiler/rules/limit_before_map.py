"""A map whose values neither choose nor order the rows runs on the rows returned only."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.logical import Limit, LogicalPlan, Project, SemMap, Sort
from uql.compiler.walk import needs_every_row, virtuals


def limit_before_map(plan: LogicalPlan) -> LogicalPlan:
    """Project(Limit(Sort(SemMap(x, m)))) → Project(SemMap(Limit(Sort(SemMap(x, sort keys))), the rest)).

    Safe: LIMIT drops rows and changes none. Not where an item is a window, which reads rows that LIMIT drops, or gives several rows.
    """
    if not isinstance(plan, Project) or not isinstance(plan.input, Limit):
        return plan
    limit = plan.input
    sort = limit.input if isinstance(limit.input, Sort) else None
    below = sort.input if sort else limit.input
    keys = [key.expr for key in sort.keys] if sort else []
    if not isinstance(below, SemMap) or needs_every_row(*(item.expr for item in plan.items), *keys):
        return plan
    early = virtuals(*(key.expr for key in sort.keys)) if sort else ()
    late = tuple(c for c in below.columns if c not in early)
    if not late:
        return plan
    inner: LogicalPlan = SemMap(below.input, early) if early else below.input
    if sort:
        inner = replace(sort, input=inner)
    return replace(plan, input=SemMap(replace(limit, input=inner), late))
