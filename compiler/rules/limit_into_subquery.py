"""LIMIT over a sub-query of FROM, and nothing else, is a LIMIT in it: it asks no more rows than are returned."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.bound import BoundDerived, BoundQuery, BoundSelect, BoundUnion
from uql.compiler.logical import Limit, LogicalPlan, Scan
from uql.compiler.subqueries import is_semantic_query


def limit_into_subquery(plan: LogicalPlan) -> LogicalPlan:
    """Limit(Scan((q) AS d), k) → Limit(Scan((q LIMIT k) AS d), k), and into both sides of a UNION ALL.

    Safe: with no condition, join, order or group between, the rows returned are the first ones that the sub-query gives, in its order.
    """
    if not isinstance(plan, Limit) or plan.count is None or not isinstance(plan.input, Scan):
        return plan
    source = plan.input.source
    if not isinstance(source, BoundDerived) or not is_semantic_query(source.query):
        return plan
    query = _limited(source.query, plan.count + plan.offset)
    if query is source.query:
        return plan
    return replace(plan, input=replace(plan.input, source=replace(source, query=query)))


def _limited(query: BoundQuery, most: int) -> BoundQuery:
    assert isinstance(query, BoundSelect | BoundUnion)
    has_enough = query.limit is not None and query.limit <= most
    if isinstance(query, BoundUnion) and query.op == "UNION" and query.all and not query.order_by and not has_enough:
        inner = most + query.offset
        return replace(query, left=_limited(query.left, inner), right=_limited(query.right, inner), limit=most)
    return query if has_enough else replace(query, limit=most)
