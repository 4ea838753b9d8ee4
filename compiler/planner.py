"""From the logical plan to the physical one: the straight way, one block a SELECT, requests in the order they were written."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler import logical, physical
from uql.compiler.bound import BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.expression_text import describe_source, show
from uql.compiler.formula import Formula, conjunction, conjuncts
from uql.compiler.fusions import where_with_limit
from uql.compiler.join_plans import aliases_in, correlated, join_plan, push, sources_of
from uql.compiler.merge_subqueries import merged
from uql.compiler.physical import Block, Goal, Order, OuterJoin, PhysicalPlan, SqlQuery, UnionPlan, stages
from uql.compiler.rules import apply, known_names
from uql.compiler.subqueries import derived, expressions, in_expressions, is_semantic_query, outer_columns
from uql.compiler.syntax import Column, Expr
from uql.compiler.unnest_subqueries import items_as_rows
from uql.compiler.valid import check_physical
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import columns, virtuals

# plans by the identity of their queries, which are kept so that it stays theirs
Plans = dict[int, tuple[BoundQuery, PhysicalPlan]]


def plan(query: BoundQuery, disabled_rules: tuple[str, ...] = ()) -> PhysicalPlan:
    """The physical plan of a bound query, its rules applied. In which order its questions are asked, and which of them together,
    is settled by their price, once it is known how many rows there are (`choice.choose`).

    Raises: PlanError (UQL3xx) where no legal plan exists; ConfigError (UQL105) for a rule that does not.
    """
    known_names(disabled_rules)
    return _plan(query, disabled_rules, {})


def _plan(query: BoundQuery, disabled_rules: tuple[str, ...], plans: Plans) -> PhysicalPlan:
    """The plan of a query, the same object for the same query: what WITH names once is run once."""
    if id(query) not in plans:
        plans[id(query)] = query, _new_plan(query, disabled_rules, plans)
    return plans[id(query)][1]


def _new_plan(query: BoundQuery, disabled_rules: tuple[str, ...], plans: Plans) -> PhysicalPlan:
    if not is_semantic_query(query):
        return SqlQuery(query)
    if isinstance(query, BoundUnion):
        left, right = _plan(query.left, disabled_rules, plans), _plan(query.right, disabled_rules, plans)
        return UnionPlan(left, right, query.all, query.items, _order(query), query.op)
    assert isinstance(query, BoundSelect)
    query = items_as_rows(query if "merged" in disabled_rules else merged(query))
    block = _block(apply(logical.build(query), disabled_rules), query, disabled_rules, plans)
    for stopping in where_with_limit(block):
        block = stopping
    check_physical(block, "planner")
    return block


def _block(top: logical.LogicalPlan, query: BoundSelect, disabled_rules: tuple[str, ...], plans: Plans) -> Block:
    """Reads the chain of one SELECT from its outermost node down to its source."""

    def inner(below: BoundQuery) -> PhysicalPlan:
        return _plan(below, disabled_rules, plans)

    pushed: list[Expr] = []
    semantic_terms: list[Expr] = []
    filter = physical.SemFilter(None, (), _goal(query, None))
    groups: tuple[VirtualColumn, ...] = ()
    early: tuple[VirtualColumn, ...] = ()
    late: tuple[VirtualColumn, ...] = ()
    aggregate = physical.Aggregate(query.aggregated, query.group_by, query.sets)
    summaries = physical.Summaries()
    project = physical.Project(query.items, query.distinct, query.qualify)
    node = top
    while not isinstance(node, logical.Scan | logical.SemJoin):
        match node:
            case logical.SemMap():
                has_limit_below = any(isinstance(n, logical.Limit) for n in _chain(node.input))
                late, early = (late + node.columns, early) if has_limit_below else (late, early + node.columns)
            case logical.SemGroup():
                groups = node.columns
            case logical.SemAgg():
                summaries = physical.Summaries(node.columns, node.only, node.returned_only)
            case logical.SemFilter():
                semantic_terms.append(node.condition)
                formula = Formula.of(node.condition)
                filter = physical.SemFilter(formula, stages(virtuals(node.condition)), _goal(query, formula))
            case logical.SqlFilter():
                pushed.append(node.condition)
            case logical.Project():
                project = replace(project, items=node.items)
            case logical.Aggregate():
                aggregate = replace(aggregate, having=node.having)
        assert isinstance(node, logical.OneInput)
        node = node.input

    values = physical.Values(groups, stages((*groups, *early)), stages(tuple(c for c in late if c not in early)))
    whole = join_plan(node)
    filter = _named(filter, whole)
    settled = replace(query, where=conjunction([*semantic_terms, *pushed]), having=aggregate.having)
    columns = _columns(replace(query, where=settled.where), aliases_in(whole))
    if isinstance(whole, OuterJoin):
        join, pushed = push(whole, conjuncts(conjunction(pushed)))
        scan = physical.Scan(None, join, conjunction(pushed), columns)
    else:
        scan = physical.Scan(whole, None, conjunction(pushed), columns)
    derived_plans = tuple(
        (part.alias, inner(part.query))
        for s in sources_of(whole)
        for part in derived(s)
        if is_semantic_query(part.query)
    )
    nested = tuple(
        (part, inner(part.query))
        for part in in_expressions(*expressions(settled))
        if is_semantic_query(part.query) and not part.correlated
    )
    below = physical.SubQueries(derived_plans, nested, *correlated(settled, inner))
    return Block(scan, below, filter, values, aggregate, summaries, project, _order(query))


def _named(filter: physical.SemFilter, whole: BoundSource | OuterJoin | None) -> physical.SemFilter:
    """The filter with the names of its terms in the statistics: the tables, and the term as written."""
    if filter.formula is None:
        return filter
    source = describe_source(next(iter(sources_of(whole)), None))
    terms = [show(leaf.expr) for leaf in filter.formula.leaves]
    name = f"{source}: {' '.join(map(str, filter.formula.program))} of {'; '.join(terms)}"
    return replace(filter, terms=tuple(f"{source}: {term}" for term in terms), name=name)


def _order(query: BoundSelect | BoundUnion) -> Order:
    return Order(query.order_by, query.limit, query.offset)


def _chain(node: logical.LogicalPlan) -> list[logical.LogicalPlan]:
    nodes = [node]
    while isinstance(node, logical.OneInput):
        node = node.input
        nodes.append(node)
    return nodes


def _goal(query: BoundSelect, formula: Formula | None) -> Goal:
    if query.aggregated:
        return Goal.ESTIMATE
    return Goal.EVERY if formula is None else Goal.SEARCH


def _columns(query: BoundSelect, visible: list[str]) -> tuple[Column, ...]:
    """Every column of these aliases that the block reads after its candidates are there."""
    parts = list(expressions(query))
    reads = dict.fromkeys(columns(*parts))
    for part in in_expressions(*parts):  # columns of this block that a correlated sub-query reads
        if part.correlated:
            reads.update(dict.fromkeys(outer_columns(part.query)))
    return tuple(c for c in reads if c.table in visible)
