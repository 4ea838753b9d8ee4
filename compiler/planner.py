"""From the logical plan to the physical one: the straight way, one block a SELECT, requests in the order they were written."""

from __future__ import annotations

from collections.abc import Mapping

from uql.compiler.bound import BoundItem, BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.expression_text import describe_source, show
from uql.compiler.formula import Formula, Leaf, conjunction, conjuncts
from uql.compiler.fusions.where_with_limit import where_with_limit
from uql.compiler.join_plans import aliases_in, correlated, first_source, join_plan, push, sources_of
from uql.compiler.logical import (
    Aggregate,
    Distinct,
    Limit,
    LogicalPlan,
    OneInput,
    Project,
    Scan,
    SemAgg,
    SemFilter,
    SemGroup,
    SemJoin,
    SemMap,
    Sort,
    SqlFilter,
    build,
)
from uql.compiler.merge_subqueries import merged
from uql.compiler.physical import Block, Goal, OuterJoin, PhysicalPlan, SqlQuery, UnionPlan, stages
from uql.compiler.rules import apply, known_names
from uql.compiler.subqueries import derived, expressions, in_expressions, is_semantic_query, outer_columns
from uql.compiler.syntax import Column, Expr
from uql.compiler.valid import check_physical
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import columns, virtuals

Made = dict[
    int, tuple[BoundQuery, PhysicalPlan]
]  # plans by the identity of their queries, which are kept so that it stays theirs
Rates = Mapping[str, tuple[int, int]]  # terms by `term_name`: answers seen, and how many of them are true


def plan(query: BoundQuery, disabled_rules: tuple[str, ...] = ()) -> PhysicalPlan:
    """The physical plan of a bound query, its rules applied. In which order its questions are asked, and which of them together,
    is settled by their price, once it is known how many rows there are (`choice.choose`).

    Raises: PlanError (UQL3xx) where no legal plan exists; ConfigError (UQL105) for a rule that does not.
    """
    known_names(disabled_rules)
    return _plan(query, disabled_rules, {})


def _plan(query: BoundQuery, disabled_rules: tuple[str, ...], made: Made) -> PhysicalPlan:
    """The plan of a query, the same object for the same query: what WITH names once is run once."""
    if id(query) not in made:
        made[id(query)] = query, _new_plan(query, disabled_rules, made)
    return made[id(query)][1]


def _new_plan(query: BoundQuery, disabled_rules: tuple[str, ...], made: Made) -> PhysicalPlan:
    if not is_semantic_query(query):
        return SqlQuery(query)
    if isinstance(query, BoundUnion):
        left, right = _plan(query.left, disabled_rules, made), _plan(query.right, disabled_rules, made)
        return UnionPlan(left, right, query.all, query.items, query.order_by, query.limit, query.offset, query.op)
    assert isinstance(query, BoundSelect)
    query = query if "merged" in disabled_rules else merged(query)
    block = _block(apply(build(query), disabled_rules), query, disabled_rules, made)
    for stopping in where_with_limit(block):
        block = stopping
    check_physical(block, "planner")
    return block


def term_name(block: Block, leaf: Leaf) -> str:
    """The name of a term in the statistics: the tables and the term as written."""
    return f"{describe_source(block.source or first_source(block.outer_join))}: {show(leaf.expr)}"


def condition_name(block: Block) -> str:
    """The name of a whole WHERE in the statistics."""
    assert block.formula is not None
    leaves = "; ".join(show(leaf.expr) for leaf in block.formula.leaves)
    source = describe_source(block.source or first_source(block.outer_join))
    return f"{source}: {' '.join(map(str, block.formula.program))} of {leaves}"


def term_rates(block: Block, rates: Rates) -> tuple[float, ...] | None:
    """The pass rate of every term of a block's WHERE, or None where one is unknown."""
    if block.formula is None:
        return None
    found = [rates.get(term_name(block, leaf)) for leaf in block.formula.leaves]
    return tuple((yes + 1) / (n + 2) for n, yes in (f for f in found if f is not None)) if None not in found else None


def _block(top: LogicalPlan, query: BoundSelect, disabled_rules: tuple[str, ...], made: Made) -> Block:
    """Reads the chain of one SELECT from its outermost node down to its source."""
    pushed: list[Expr] = []
    formula: Formula | None = None
    filter_columns: tuple[VirtualColumn, ...] = ()
    groups: tuple[VirtualColumn, ...] = ()
    early: tuple[VirtualColumn, ...] = ()
    late: tuple[VirtualColumn, ...] = ()
    summaries: tuple[VirtualColumn, ...] = ()
    summarised: Expr | None = None
    having: Expr | None = None
    returned_only = False
    items: tuple[BoundItem, ...] = query.items
    node = top
    while not isinstance(node, Scan | SemJoin):
        match node:
            case SemMap():
                has_limit_below = any(isinstance(n, Limit) for n in _chain(node.input))
                late, early = (late + node.columns, early) if has_limit_below else (late, early + node.columns)
            case SemGroup():
                groups = node.columns
            case SemAgg():
                summaries, summarised, returned_only = node.columns, node.only, node.returned_only
            case SemFilter():
                formula = Formula.of(node.condition)
                filter_columns = virtuals(node.condition)
            case SqlFilter():
                pushed.append(node.condition)
            case Project():
                items = node.items
            case Aggregate():
                having = node.having
            case Sort() | Limit() | Distinct():
                pass
        assert isinstance(node, OneInput)
        node = node.input

    scores = tuple(c for c in virtuals(*(key.expr for key in query.order_by)) if c.is_score)

    def inner(below: BoundQuery) -> PhysicalPlan:
        return _plan(below, disabled_rules, made)

    pairs, repeated = correlated(query, inner)
    whole = join_plan(node)
    outer_join = whole if isinstance(whole, OuterJoin) else None
    source = whole if isinstance(whole, BoundSource) else None
    if outer_join is not None:
        outer_join, pushed = push(outer_join, conjuncts(conjunction(pushed)))
    return Block(
        source=source,
        outer_join=outer_join,
        derived=tuple(
            (part.alias, inner(part.query))
            for s in sources_of(whole)
            for part in derived(s)
            if is_semantic_query(part.query)
        ),
        nested=tuple(
            (part, inner(part.query))
            for part in in_expressions(*expressions(query))
            if is_semantic_query(part.query) and not part.correlated
        ),
        pushed=conjunction(pushed),
        columns=_columns(query, aliases_in(whole)),
        formula=formula,
        filter_stages=stages(filter_columns),
        groups=groups,
        row_stages=stages((*groups, *early)),
        late_stages=stages(tuple(c for c in late if c not in early)),
        summaries=summaries,
        items=items,
        keys=query.group_by,
        having=having,
        aggregated=query.aggregated,
        distinct=query.distinct,
        order_by=query.order_by,
        limit=query.limit,
        offset=query.offset,
        goal=_goal(query, formula),
        scores=scores,
        summarised=summarised,
        returned_only=returned_only,
        correlated=pairs,
        repeated=repeated,
        qualify=query.qualify,
        sets=query.sets,
    )


def _chain(node: LogicalPlan) -> list[LogicalPlan]:
    found = [node]
    while isinstance(node, OneInput):
        node = node.input
        found.append(node)
    return found


def _goal(query: BoundSelect, formula: Formula | None) -> Goal:
    if query.aggregated:
        return Goal.ESTIMATE
    return Goal.EVERY if formula is None else Goal.SEARCH


def _columns(query: BoundSelect, visible: list[str]) -> tuple[Column, ...]:
    """Every column of these aliases that the block reads after its candidates are there."""
    parts = list(expressions(query))
    found = dict.fromkeys(columns(*parts))
    for part in in_expressions(*parts):  # columns of this block that a correlated sub-query reads
        if part.correlated:
            found.update(dict.fromkeys(outer_columns(part.query)))
    return tuple(c for c in found if c.table in visible)
