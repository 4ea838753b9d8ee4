"""From the logical plan to the physical one: the straight way, one block a SELECT, requests in the order they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uql.compiler.bound import BoundItem, BoundJoin, BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.formula import Formula, Leaf, Masks, conjunction, conjuncts
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
from uql.compiler.orders import best, imagined
from uql.compiler.physical import Block, Goal, OuterJoin, PhysicalPlan, SqlQuery, UnionPlan, stages
from uql.compiler.rules import apply, known_names
from uql.compiler.shown import describe_source, show
from uql.compiler.subqueries import aliases, derived, expressions, in_expressions, is_semantic_query, join_conditions
from uql.compiler.syntax import Call, Column, Expr
from uql.compiler.valid import check_physical
from uql.compiler.virtual import Kind, VirtualColumn
from uql.compiler.walk import columns, is_semantic, virtuals, walk
from uql.errors import PlanError

Rates = Mapping[str, tuple[int, int]]  # terms by `term_name`: answers seen, and how many of them are true
_NONE: Rates = {}


def plan(query: BoundQuery, disabled_rules: tuple[str, ...] = (), rates: Rates = _NONE) -> PhysicalPlan:
    """The physical plan of a bound query. `rates`: of terms that earlier queries asked; they order the stages of a filter.

    Raises: PlanError (UQL3xx) where no legal plan exists; ConfigError (UQL105) for a rule that does not.
    """
    known_names(disabled_rules)
    if not is_semantic_query(query):
        return SqlQuery(query)
    if isinstance(query, BoundUnion):
        left, right = plan(query.left, disabled_rules, rates), plan(query.right, disabled_rules, rates)
        return UnionPlan(left, right, query.all, query.items, query.order_by, query.limit, query.offset)
    assert isinstance(query, BoundSelect)
    block = _block(apply(build(query), disabled_rules), query, disabled_rules, rates)
    if "order_by_rates" not in disabled_rules:
        block = ordered(block, rates)
    check_physical(block, "planner")
    return block


def term_name(block: Block, leaf: Leaf) -> str:
    """The name of a term in the statistics: the tables and the term as written."""
    source = block.source or (block.outer_join.left if block.outer_join is not None else None)
    return f"{describe_source(source)}: {show(leaf.expr)}"


def term_rates(block: Block, rates: Rates) -> tuple[float, ...] | None:
    """The pass rate of every term of a block's WHERE, or None where one is unknown."""
    if block.formula is None:
        return None
    found = [rates.get(term_name(block, leaf)) for leaf in block.formula.leaves]
    return tuple((yes + 1) / (n + 2) for n, yes in (f for f in found if f is not None)) if None not in found else None


def ordered(block: Block, rates: Rates = _NONE, answers: Masks | None = None) -> Block:
    """The block with the stages of its filter in the cheapest order, by a pilot's answers or by known rates; else as written.

    Questions about the same cells stay one request: asked one after another they would be at least as many calls.
    """
    if block.formula is None or len(block.filter_stages) < 2:
        return block
    if answers is None:
        known = term_rates(block, rates)
        if known is None:
            return block
        answers = imagined(block.formula, known)
    order, _ = best(block.formula, block.filter_stages, answers, [1.0] * len(block.filter_stages))
    return replace(block, filter_stages=tuple(block.filter_stages[i] for i in order))


def _block(top: LogicalPlan, query: BoundSelect, disabled_rules: tuple[str, ...], rates: Rates) -> Block:
    """Reads the chain of one SELECT from its outermost node down to its source."""
    pushed: list[Expr] = []
    formula: Formula | None = None
    filter_columns: tuple[VirtualColumn, ...] = ()
    groups: tuple[VirtualColumn, ...] = ()
    early: tuple[VirtualColumn, ...] = ()
    late: tuple[VirtualColumn, ...] = ()
    summaries: tuple[VirtualColumn, ...] = ()
    items: tuple[BoundItem, ...] = query.items
    below_limit, limited = top, False
    node = top
    while not isinstance(node, Scan | SemJoin):
        match node:
            case Limit():
                limited, below_limit = True, node.input
            case SemMap():
                has_limit_below = any(isinstance(n, Limit) for n in _chain(node.input))
                late, early = (late + node.columns, early) if has_limit_below else (late, early + node.columns)
            case SemGroup():
                groups = node.columns
            case SemAgg():
                summaries = node.columns
            case SemFilter():
                formula = Formula.of(node.condition)
                filter_columns = virtuals(node.condition)
            case SqlFilter():
                pushed.append(node.condition)
            case Project():
                items = node.items
            case Sort() | Distinct() | Aggregate():
                pass
        assert isinstance(node, OneInput)
        node = node.input

    scores = tuple(c for c in virtuals(*(key.expr for key in query.order_by)) if c.kind is Kind.SCORE)
    source, outer_join = _source(node)
    nested = tuple(
        (part, plan(part.query, disabled_rules, rates))
        for part in in_expressions(*expressions(query))
        if is_semantic_query(part.query)
    )
    for part, _ in nested:
        if part.correlated:
            raise PlanError(
                "a sub-query with a quoted text in it cannot read columns of the query around it",
                code="UQL303",
                help="write it as a JOIN, or take the outer column out of the sub-query",
            )
    whole = outer_join or source
    sources = (outer_join.left, outer_join.right) if outer_join else (source,)
    return Block(
        source=source,
        outer_join=outer_join,
        derived=tuple(
            (part.alias, plan(part.query, disabled_rules, rates))
            for s in sources
            for part in derived(s)
            if is_semantic_query(part.query)
        ),
        nested=nested,
        pushed=conjunction(pushed),
        columns=_columns(query, whole),
        formula=formula,
        filter_stages=stages(filter_columns),
        groups=groups,
        row_stages=stages(early),
        late_stages=stages(tuple(c for c in late if c not in early)),
        summaries=summaries,
        items=items,
        keys=query.group_by,
        having=query.having,
        aggregated=query.aggregated,
        distinct=query.distinct,
        order_by=query.order_by,
        limit=query.limit,
        offset=query.offset,
        goal=_goal(query, formula, below_limit if limited else None),
        scores=scores,
    )


def _chain(node: LogicalPlan) -> list[LogicalPlan]:
    found = [node]
    while isinstance(node, OneInput):
        node = node.input
        found.append(node)
    return found


def _goal(query: BoundSelect, formula: Formula | None, below_limit: LogicalPlan | None) -> Goal:
    if query.aggregated:
        return Goal.ESTIMATE
    if formula is None:
        return Goal.EVERY
    windows = any(isinstance(n, Call) and n.over for item in query.items for n in walk(item.expr))
    sort_is_concrete = not any(is_semantic(key.expr) for key in query.order_by)
    if below_limit is not None and not query.distinct and not windows and sort_is_concrete:
        return Goal.FIRST
    return Goal.SEARCH


def _columns(query: BoundSelect, source: BoundSource | OuterJoin | None) -> tuple[Column, ...]:
    """Every column that the block reads after its candidates are there."""
    parts = list(expressions(query))
    if isinstance(source, OuterJoin):
        parts += [leaf.expr for leaf in source.formula.leaves]
    found = dict.fromkeys(columns(*parts))
    for part in in_expressions(*parts):  # columns of this block that a correlated sub-query reads
        if part.correlated and isinstance(part.query, BoundSelect):
            found.update(dict.fromkeys(columns(*expressions(part.query))))
    aliases = set(_aliases(source))
    return tuple(c for c in found if c.table in aliases)


def _aliases(source: BoundSource | OuterJoin | None) -> list[str]:
    if isinstance(source, OuterJoin):
        return [*aliases(source.left), *aliases(source.right)]
    return list(aliases(source))


def _source(node: LogicalPlan) -> tuple[BoundSource | None, OuterJoin | None]:
    if isinstance(node, Scan):
        source = node.source
        for on in join_conditions(source):
            if is_semantic(on):
                raise PlanError(
                    "a RIGHT or FULL JOIN, or a join inside another, cannot have a quoted text in ON",
                    code="UQL301",
                    start=on.span.start,
                    end=on.span.end,
                    help="INNER, LEFT, SEMI and ANTI JOIN can, as the outermost join",
                )
        return source, None
    assert isinstance(node, SemJoin)
    left, right = node.left, node.right
    if not isinstance(left, Scan) or not isinstance(right, Scan) or left.source is None or right.source is None:
        raise PlanError(
            f"{node.kind} JOIN on a quoted text needs plain tables on both sides",
            code="UQL302",
            start=node.condition.span.start,
            end=node.condition.span.end,
            help="put the inner join into a sub-query in FROM",
        )
    terms = conjuncts(node.condition)
    condition = conjunction([t for t in terms if is_semantic(t)])
    assert condition is not None
    pairs = conjunction([t for t in terms if not is_semantic(t)])
    wanted = virtuals(condition)
    return None, OuterJoin(node.kind, left.source, right.source, pairs, Formula.of(condition), stages(wanted))


def with_sources(source: BoundSource, change: dict[str, BoundSource]) -> BoundSource:
    """The FROM clause with the sources of these aliases replaced."""
    if isinstance(source, BoundJoin):
        return replace(source, left=with_sources(source.left, change), right=with_sources(source.right, change))
    alias = getattr(source, "alias", None)
    return change.get(alias, source) if isinstance(alias, str) else source
