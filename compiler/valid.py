"""What a valid plan is, as a table from node to checks; looked at after the plan is built and after every rule.

A check gives the words for what is wrong, or nothing. A plan that fails one is a bug of the rule that made it: the error names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from uql.base.errors import PlanError
from uql.compiler import logical
from uql.compiler.formula import Formula
from uql.compiler.physical import Block, Goal
from uql.compiler.subqueries import aliases
from uql.compiler.syntax import Expr
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import columns, is_semantic, virtuals

Output = tuple[tuple[str, str], ...]  # (name, DuckDB type) of every column of the result
Check = Callable[[Any], str | None]


def check(plan: logical.LogicalPlan, guilty: str, before: Output | None = None) -> Output:
    """The output schema of a logical plan. Raises PlanError (UQL399) naming `guilty` where the plan is not valid or gives other columns.

    Args:
        guilty: the rule or step before, for the message.
        before: the columns that the plan must still give.
    """
    for problem in problems(plan):
        raise _error(guilty, problem)
    now = output(plan)
    if before is not None and now != before:
        raise _error(guilty, f"the result had the columns {_columns(before)} and now has {_columns(now)}")
    return now


def check_physical(block: Block, guilty: str) -> None:
    """Raises PlanError (UQL399) naming `guilty` where the physical plan of a SELECT is not valid."""
    for name, test in PHYSICAL:
        if not test(block):
            raise _error(guilty, f"Block: {name}")


def problems(plan: logical.LogicalPlan) -> Iterator[str]:
    """Everything wrong with a logical plan, from its sources up."""
    for below in plan.inputs:
        yield from problems(below)
    for test in LOGICAL[type(plan)]:
        problem = test(plan)
        if problem is not None:
            yield f"{type(plan).__name__}: {problem}"


def output(plan: logical.LogicalPlan) -> Output:
    """The columns of the result."""
    match plan:
        case logical.Project(items=items) | logical.Aggregate(items=items):
            return tuple((item.name, item.type) for item in items)
    return output(plan.inputs[0]) if plan.inputs else ()


def available_columns(plan: logical.LogicalPlan) -> set[int]:
    """The virtual columns that have a value in every row of a node."""
    ids = set().union(*(available_columns(below) for below in plan.inputs))
    match plan:
        case logical.SemFilter(condition=condition) if is_semantic(condition):
            ids |= Formula.of(condition).sure()
        case (
            logical.SemMap(columns=virtual_columns)
            | logical.SemGroup(columns=virtual_columns)
            | logical.SemAgg(columns=virtual_columns)
        ):
            ids |= {c.id for c in virtual_columns}
    return ids


def scope(plan: logical.LogicalPlan) -> set[str]:
    """The aliases whose columns a node sees."""
    if isinstance(plan, logical.Scan):
        return set(aliases(plan.source))
    return set().union(*(scope(below) for below in plan.inputs))


# --------------------------------------------------------------------------------------------------------------- checks
def _in_scope(get: Callable[[Any], list[Expr | None]]) -> Check:
    def test(plan: logical.LogicalPlan) -> str | None:
        visible = scope(plan)
        for column in columns(*get(plan)):
            if column.table and column.table not in visible:
                return f"{column.label} is not in scope"
        return None

    return test


def _requires_answers(get: Callable[[Any], list[Expr | None]], below: Callable[[Any], logical.LogicalPlan]) -> Check:
    """Every virtual column of these expressions was asked below; those of groups are asked later."""

    def test(plan: logical.LogicalPlan) -> str | None:
        have = available_columns(below(plan))
        for column in virtuals(*get(plan)):
            if not column.of_group and column.id not in have:
                return f'"{column.text}" is used and was not asked'
        return None

    return test


def _concrete(plan: logical.SqlFilter) -> str | None:
    return "holds a quoted text, which DuckDB cannot answer" if is_semantic(plan.condition) else None


def _semantic(plan: logical.SemFilter | logical.SemJoin) -> str | None:
    over = isinstance(plan, logical.SemJoin) and any(isinstance(side, logical.SemJoin) for side in plan.inputs)
    return None if over or is_semantic(plan.condition) else "holds no quoted text: it is DuckDB's"


def _reads(plan: Any) -> str | None:
    virtual_columns = (
        virtuals(plan.condition) if isinstance(plan, logical.SemFilter | logical.SemJoin) else plan.columns
    )
    for column in virtual_columns:
        if not column.reads and not column.holes:
            return f'"{column.text}" reads nothing'
    return None if virtual_columns or isinstance(plan, logical.SemJoin) else "asks nothing"


def _asks(allowed: Callable[[VirtualColumn], bool]) -> Check:
    def test(plan: Any) -> str | None:
        for column in plan.columns:
            if not allowed(column):
                return f'"{column.text}" is a {column.operator.noun}, which is not asked here'
        return None

    return test


def _once(plan: Any) -> str | None:
    have = available_columns(plan.input)
    for column in plan.columns:
        if column.id in have:
            return f'"{column.text}" is asked twice'
    return None


def _over(*types: type[logical.LogicalPlan]) -> Check:
    def test(plan: Any) -> str | None:
        names = " or ".join(t.__name__ for t in types)
        return None if isinstance(plan.input, types) else f"stands over {type(plan.input).__name__}, not {names}"

    return test


def _before_groups(plan: Any) -> str | None:
    """Rows are filtered and asked before they are grouped, projected or made distinct."""
    if isinstance(plan.input, logical.Aggregate | logical.Project | logical.Distinct | logical.SemAgg):
        return f"stands over {type(plan.input).__name__}: its rows are gone"
    return None


def _summaries(plan: logical.Aggregate | logical.Project) -> str | None:
    """What a Project shows of groups was asked; an Aggregate's is asked above it."""
    missing = [c for c in virtuals(*(i.expr for i in plan.items)) if c.of_group]
    return f'"{missing[0].text}" is a summary of groups, and there are none' if missing else None


def _unique(plan: logical.Scan) -> str | None:
    names = list(aliases(plan.source))
    return None if len(set(names)) == len(names) else "two sources have one alias"


def _numbers(plan: logical.Limit) -> str | None:
    return "a number below 0" if (plan.count or 0) < 0 or plan.offset < 0 else None


def _items(plan: Any) -> list[Expr | None]:
    return [item.expr for item in plan.items]


def _condition(plan: Any) -> list[Expr | None]:
    return [plan.condition]


def _keys(plan: logical.Sort) -> list[Expr | None]:
    return [key.expr for key in plan.keys]


def _aggregated(plan: logical.Aggregate) -> list[Expr | None]:
    return [*_items(plan), plan.having, *(key.expr for key in plan.keys)]


LOGICAL: dict[type[logical.LogicalPlan], tuple[Check, ...]] = {
    logical.Scan: (_unique,),
    logical.SqlFilter: (_concrete, _in_scope(_condition), _before_groups),
    logical.SemFilter: (_semantic, _reads, _in_scope(_condition), _before_groups),
    logical.SemJoin: (_semantic, _reads, _in_scope(_condition)),
    # a value may be asked again where a filter has only perhaps asked it
    logical.SemMap: (_reads, _asks(lambda column: column.by_row or column.of_pairs)),
    logical.SemGroup: (_reads, _asks(lambda column: column.names_groups), _once, _before_groups),
    logical.Aggregate: (
        _in_scope(_aggregated),
        _requires_answers(_aggregated, lambda plan: plan.input),
        _before_groups,
    ),
    logical.SemAgg: (_reads, _asks(lambda column: column.of_group), _once, _over(logical.Aggregate)),
    logical.Project: (_in_scope(_items), _requires_answers(_items, lambda plan: plan.input), _summaries),
    logical.Qualify: (_requires_answers(_condition, lambda plan: plan.input),),
    logical.Distinct: (_over(logical.Project, logical.Aggregate, logical.SemAgg, logical.Qualify),),
    logical.Sort: (_requires_answers(_keys, lambda plan: plan.input),),
    logical.Limit: (_numbers,),
}


# ------------------------------------------------------------------------------------------------------------- physical
def _columns_after_filter(block: Block) -> list[VirtualColumn]:
    """What is asked of rows that pass, and of groups."""
    after = (*block.values.stages, *block.values.late)
    return [*(c for stage in after for c in stage.columns), *block.summaries.columns]


def _answered_ids(block: Block) -> set[int]:
    sure = block.filter.formula.sure() if block.filter.formula is not None else frozenset()
    return {c.id for c in _columns_after_filter(block)} | sure


PHYSICAL: tuple[tuple[str, Callable[[Block], bool]], ...] = (
    (
        "a group is named and never asked",
        lambda b: {c.id for c in b.values.groups} <= {c.id for stage in b.values.stages for c in stage.columns},
    ),
    (
        "a question rides that no row needs, or on other cells",
        lambda b: (
            b.filter.riders <= {c.id for c in _columns_after_filter(b)}
            and all(c.shown == s.columns[0].shown for s in b.filter.stages for c in s.riders)
        ),
    ),
    ("a stage asks nothing", lambda b: all(stage.columns for stage in b.requests)),
    (
        "one request shows two sets of columns",
        lambda b: all(c.shown == stage.columns[0].shown for stage in b.requests for c in stage.columns),
    ),
    (
        "rows share a request whose question is another one for each",
        lambda b: all(s.rows == 1 or not any(c.holes for c in (*s.columns, *s.riders)) for s in b.requests),
    ),
    (
        "a text is asked twice",
        lambda b: len({c.id for c in _columns_after_filter(b)}) == len(_columns_after_filter(b)),
    ),
    (
        "the WHERE asks other texts than it holds",
        lambda b: (
            {c.id for c in b.filter.columns}
            == {
                c.id for leaf in (b.filter.formula.leaves if b.filter.formula is not None else ()) for c in leaf.columns
            }
        ),
    ),
    (
        "a text is used and never asked",
        lambda b: {c.id for c in virtuals(*(key.expr for key in b.aggregate.keys), *b.output)} <= _answered_ids(b),
    ),
    ("DuckDB is given a quoted text", lambda b: not is_semantic(b.scan.where)),
    (
        "it stops at a LIMIT that it does not have",
        lambda b: b.filter.goal is not Goal.FIRST or b.order.rows_needed is not None,
    ),
    ("it is estimated and has no aggregate", lambda b: (b.filter.goal is Goal.ESTIMATE) == b.aggregate.present),
    ("both a source and an outer join", lambda b: b.scan.source is None or b.scan.join is None),
    (
        "asked after a LIMIT that is not there",
        lambda b: not b.values.late or b.order.limit is not None or b.order.offset > 0,
    ),
)


def _columns(schema: Output) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in schema) or "none"


def _error(guilty: str, problem: str) -> PlanError:
    return PlanError(
        f"{guilty} made a plan that is not valid: {problem}",
        code="UQL399",
        help=f"this is a bug; without the rule the query runs: SET uql.disabled_rules = '{guilty}'",
    )
