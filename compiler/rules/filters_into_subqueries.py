"""Concrete conditions on a sub-query of FROM are decided inside it, before its rows are asked."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.bound import BoundSource
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.logical import LogicalPlan, Scan, SqlFilter
from uql.compiler.rules.inside import changed, is_plain, reachable, with_condition
from uql.compiler.syntax import Expr
from uql.compiler.walk import columns


def filters_into_subqueries(plan: LogicalPlan) -> LogicalPlan:
    """SqlFilter(Scan((q) AS d), d.film = 'Alien') → Scan((q WHERE film = 'Alien') AS d), through CTEs and both sides of a UNION.

    Safe: a row of the sub-query that the condition drops is never seen outside; `inside.py` says where it may go in.
    """
    if not isinstance(plan, SqlFilter) or not isinstance(plan.input, Scan) or plan.input.source is None:
        return plan
    source: BoundSource = plan.input.source
    outside: list[Expr] = []
    for term in conjuncts(plan.condition):
        narrower = _pushed(source, term)
        if narrower is None:
            outside.append(term)
        else:
            source = narrower
    if source is plan.input.source:
        return plan
    rest = conjunction(outside)
    scan = replace(plan.input, source=source)
    return scan if rest is None else replace(plan, input=scan, condition=rest)


def _pushed(source: BoundSource, term: Expr) -> BoundSource | None:
    tables = {column.table for column in columns(term)}
    if len(tables) != 1 or not is_plain(term):
        return None
    (alias,) = tables
    derived = reachable(source).get(alias)
    if derived is None:
        return None
    query = with_condition(derived.query, alias, [f.name for f in derived.fields], term)
    return None if query is None else changed(source, alias, lambda part: replace(part, query=query))
