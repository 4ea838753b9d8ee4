"""Virtual columns of a sub-query of FROM that the query does not use are not asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uql.compiler import logical
from uql.compiler.bound import BoundDerived, BoundSelect, BoundSource
from uql.compiler.subqueries import expressions, in_expressions, join_conditions, outer_columns, with_leaves
from uql.compiler.syntax import Column, Expr
from uql.compiler.walk import columns, is_semantic, virtuals


def unused_columns(plan: logical.LogicalPlan) -> logical.LogicalPlan:
    """Project(Scan((SELECT film, "the topic" AS t …) AS d), film) → Project(Scan((SELECT film …) AS d), film).

    Looks at a whole block at once, since any node above may name a column. Safe: a column that no expression names is in no row of
    the result. Not under DISTINCT, where it tells rows apart, nor in a union; a group key stays a key.
    """
    used = set(_used(plan))

    def pruned(leaf: BoundSource) -> BoundSource:
        return _without(leaf, used) if isinstance(leaf, BoundDerived) else leaf

    def visit(node: logical.LogicalPlan) -> logical.LogicalPlan:
        if isinstance(node, logical.Scan):
            source = with_leaves(node.source, pruned) if node.source is not None else None
            return node if source is node.source else replace(node, source=source)
        return logical.with_inputs(node, visit)

    return visit(plan)


def _without(source: BoundDerived, used: set[Column]) -> BoundDerived:
    query = source.query
    if not isinstance(query, BoundSelect) or query.distinct:
        return source
    pairs = list(zip(source.fields, query.items, strict=True))
    remaining = [(f, i) for f, i in pairs if Column(source.alias, f.name) in used or not is_semantic(i.expr)]
    if len(remaining) == len(pairs) or not remaining:
        return source
    items = tuple(item for _, item in remaining)
    inner = replace(query, items=items)
    virtual_columns = virtuals(*expressions(inner))
    summarised = any(c.of_group for c in query.virtuals if c not in virtual_columns)
    if summarised and not query.aggregated:
        return source
    return replace(
        source, query=replace(inner, virtuals=virtual_columns), fields=tuple(field for field, _ in remaining)
    )


def _used(plan: logical.LogicalPlan) -> Iterator[Column]:
    """Every column that an expression of the block names, those of sub-queries in it included."""
    exprs: list[Expr | None] = []
    stack = [plan]
    while stack:
        node = stack.pop()
        stack += node.inputs
        match node:
            case (
                logical.SqlFilter(condition=condition)
                | logical.SemFilter(condition=condition)
                | logical.SemJoin(condition=condition)
                | logical.Qualify(condition=condition)
            ):
                exprs.append(condition)
            case logical.Aggregate(keys=keys, items=items, having=having):
                exprs += [*(k.expr for k in keys), *(i.expr for i in items), having]
            case logical.Project(items=items):
                exprs += [i.expr for i in items]
            case logical.Sort(keys=order):
                exprs += [k.expr for k in order]
            case logical.Scan(source=source):
                exprs += list(join_conditions(source))
    yield from columns(*exprs)
    for part in in_expressions(*exprs):
        yield from outer_columns(part.query)
