"""The logical plan: what has to be computed, not how. Frozen nodes; each is its children and its expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from uql.compiler.bound import BoundItem, BoundJoin, BoundSelect, BoundSource
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.joins import LEFT_KEPT, RIGHT_KEPT, asks, inner_terms, is_inner, without_semantic_on
from uql.compiler.subqueries import join_conditions
from uql.compiler.syntax import Expr, OrderKey
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import is_semantic, virtuals


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """Base of all nodes."""

    @property
    def inputs(self) -> tuple[LogicalPlan, ...]:
        return tuple(getattr(self, name) for name in ("input", "left", "right") if hasattr(self, name))


@dataclass(frozen=True, slots=True)
class OneInput(LogicalPlan):
    input: LogicalPlan


P = TypeVar("P", bound=LogicalPlan)


def with_inputs(plan: P, each: Callable[[LogicalPlan], LogicalPlan]) -> P:
    """The node with every plan below as `each` has it; the same object where none changes."""
    names = ("input",) if isinstance(plan, OneInput) else ("left", "right") if plan.inputs else ()
    below = dict(zip(names, map(each, plan.inputs), strict=True))
    changed = {name: now for name, now in below.items() if now is not getattr(plan, name)}
    return replace(plan, **changed) if changed else plan


@dataclass(frozen=True, slots=True)
class Scan(LogicalPlan):
    """The rows of the FROM clause, joined by DuckDB; `source` is None for a SELECT without FROM."""

    source: BoundSource | None


@dataclass(frozen=True, slots=True)
class SqlFilter(OneInput):
    """Keep the rows for which DuckDB says that `condition` is true."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class SemFilter(OneInput):
    """Keep the rows for which `condition`, which holds virtual columns, is true."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class SemJoin(LogicalPlan):
    """An outer, SEMI or ANTI join on a condition that holds virtual columns, or a join over one (other INNER ones are SemFilters)."""

    kind: str
    left: LogicalPlan
    right: LogicalPlan
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class SemMap(OneInput):
    """Ask values of virtual columns for every row."""

    columns: tuple[VirtualColumn, ...]


@dataclass(frozen=True, slots=True)
class SemGroup(OneInput):
    """Find a taxonomy from the rows, then say of each row which of its groups it is in."""

    columns: tuple[VirtualColumn, ...]


@dataclass(frozen=True, slots=True)
class Aggregate(OneInput):
    """One row a group: keys, then items over aggregates; `having` keeps groups."""

    keys: tuple[BoundItem, ...]
    items: tuple[BoundItem, ...]
    having: Expr | None = None
    sets: tuple[tuple[int, ...], ...] = ()  # of keys, where groups are made by several sets of them


@dataclass(frozen=True, slots=True)
class Qualify(OneInput):
    """Keep the rows, or groups, for which a condition over windows is true."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class SemAgg(OneInput):
    """Ask what is a summary of each group; `only`: of those for which it is true; `returned_only`: of those that LIMIT returns."""

    columns: tuple[VirtualColumn, ...]
    only: Expr | None = None
    returned_only: bool = False


@dataclass(frozen=True, slots=True)
class Project(OneInput):
    items: tuple[BoundItem, ...]


@dataclass(frozen=True, slots=True)
class Distinct(OneInput):
    pass


@dataclass(frozen=True, slots=True)
class Sort(OneInput):
    keys: tuple[OrderKey, ...]


@dataclass(frozen=True, slots=True)
class Limit(OneInput):
    count: int | None
    offset: int = 0


def build(query: BoundSelect) -> LogicalPlan:
    """The plan of a SELECT as it is written: nothing moved, nothing merged."""
    plan, conditions = _source(query.source)
    if query.where is not None:
        conditions = [*conditions, *conjuncts(query.where)]
    condition = conjunction(conditions)
    if condition is not None:
        plan = SemFilter(plan, condition) if is_semantic(condition) else SqlFilter(plan, condition)
    if query.aggregated:
        keys = virtuals(*(key.expr for key in query.group_by))
        groups = tuple(c for c in keys if c.names_groups)
        orders = tuple(key.expr for key in query.order_by)
        used = virtuals(*(item.expr for item in query.items), query.having, query.qualify, *orders)
        maps = tuple(c for c in (*keys, *used) if c.by_row)
        maps = tuple(dict.fromkeys(maps))
        if groups:
            plan = SemGroup(plan, groups)
        if maps:
            plan = SemMap(plan, maps)
        plan = Aggregate(plan, query.group_by, query.items, query.having, query.sets)
        summaries = tuple(c for c in used if c.of_group)
        if summaries:
            plan = SemAgg(plan, summaries)
        if query.qualify is not None:
            plan = Qualify(plan, query.qualify)
    else:
        columns = virtuals(*(i.expr for i in query.items), query.qualify, *(key.expr for key in query.order_by))
        if columns:
            plan = SemMap(plan, columns)
        if query.qualify is not None:
            plan = Qualify(plan, query.qualify)
        if not query.distinct:  # projection last, so that ORDER BY sees every column
            return Project(_ordered(plan, query), query.items)
        plan = Project(plan, query.items)
    return _ordered(Distinct(plan) if query.distinct else plan, query)


def _ordered(plan: LogicalPlan, query: BoundSelect) -> LogicalPlan:
    if query.order_by:
        plan = Sort(plan, query.order_by)
    if query.limit is not None or query.offset:
        plan = Limit(plan, query.limit, query.offset)
    return plan


def _source(source: BoundSource | None) -> tuple[LogicalPlan, list[Expr]]:
    """The plan of a FROM clause, and the semantic terms of its inner joins, which are conditions like those of WHERE."""
    if not asks(source):
        plain, terms = without_semantic_on(source)
        return Scan(plain), terms
    assert isinstance(source, BoundJoin)
    left, terms = _source(source.left) if source.kind in LEFT_KEPT else (_joined(source.left), [])
    right, more = _source(source.right) if source.kind in RIGHT_KEPT else (_joined(source.right), [])
    on, own = inner_terms(source.on) if is_inner(source) else (source.on, [])
    return SemJoin(source.kind, left, right, on), [*terms, *more, *own]


def _joined(source: BoundSource) -> LogicalPlan:
    """The plan of one side of a join that no term may leave: every join on a text is asked where it stands."""
    if not isinstance(source, BoundJoin) or not any(is_semantic(on) for on in join_conditions(source)):
        return Scan(source)
    return SemJoin(source.kind, _joined(source.left), _joined(source.right), source.on)
