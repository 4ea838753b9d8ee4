"""The logical plan as indented lines, for tests and for the pages that show it."""

from __future__ import annotations

from collections.abc import Iterator

from uql.compiler.bound import BoundQuery, BoundSelect, BoundUnion
from uql.compiler.expression_text import describe_source, show
from uql.compiler.logical import (
    Aggregate,
    Limit,
    LogicalPlan,
    Project,
    Qualify,
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
from uql.compiler.subqueries import derived, is_semantic_query
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import virtuals


def tree(plan: LogicalPlan, depth: int = 0) -> Iterator[str]:
    """The plan as indented lines, outermost first; semantic sub-queries of FROM under their Scan, as they are written."""
    yield "  " * depth + _line(plan)
    for part in derived(plan.source) if isinstance(plan, Scan) else ():
        if is_semantic_query(part.query):
            yield "  " * (depth + 1) + f"Derived {part.alias}"
            yield from _query(part.query, depth + 2)
    for below in plan.inputs:
        yield from tree(below, depth + 1)


def _query(query: BoundQuery, depth: int) -> Iterator[str]:
    """A query as it is written."""
    if isinstance(query, BoundUnion):
        if query.limit is not None or query.offset:
            yield "  " * depth + f"Limit {'all' if query.limit is None else query.limit}"
            depth += 1
        yield "  " * depth + query.op.title() + ("All" if query.all else "")
        yield from _query(query.left, depth + 1)
        yield from _query(query.right, depth + 1)
        return
    assert isinstance(query, BoundSelect)
    yield from tree(build(query), depth)


def _reads(columns: tuple[VirtualColumn, ...]) -> str:
    names = dict.fromkeys(c.label for column in columns for c in column.inputs)
    return f"  reads={', '.join(names)}" if names else ""


def _line(plan: LogicalPlan) -> str:
    """A node as one printed line."""
    match plan:
        case Scan(source=None):
            return "OneRow"
        case Scan(source=source):
            words = describe_source(source)
        case SqlFilter(condition=condition) | Qualify(condition=condition):
            words = show(condition)
        case SemFilter(condition=condition):
            words = show(condition) + _reads(virtuals(condition))
        case SemJoin(kind=kind, condition=condition):
            words = kind + (f" ON {show(condition)}" if condition is not None else "") + _reads(virtuals(condition))
        case SemMap(columns=columns):
            words = ", ".join(f'"{c.text}" {c.operator.noun}:{c.type}' for c in columns) + _reads(columns)
        case SemGroup(columns=columns):
            words = ", ".join(_group(c) for c in columns) + _reads(columns)
        case Aggregate():
            words = _aggregate(plan)
        case SemAgg(columns=columns, only=only):
            which = f" of groups where {show(only)}" if only is not None else ""
            which += " of the groups returned" if plan.returned_only else ""
            words = ", ".join(f'"{c.text}" {c.type}' for c in columns) + which + _reads(columns)
        case Project(items=items):
            words = ", ".join(item.name for item in items)
        case Sort(keys=keys):
            words = ", ".join(show(key.expr) + (" DESC" if key.descending else "") for key in keys)
        case Limit(count=count, offset=offset):
            words = ("all" if count is None else str(count)) + (f" offset {offset}" if offset else "")
        case _:
            words = ""
    return f"{type(plan).__name__} {words}".rstrip()


def _group(column: VirtualColumn) -> str:
    into = f" INTO {column.into}" if column.into else ""
    return f'"{column.text}"{into}{" MANY" if column.many else ""}'


def _aggregate(plan: Aggregate) -> str:
    names = [key.name for key in plan.keys]
    by = [f"({', '.join(names[i] for i in one)})" for one in plan.sets] or names
    having = f" HAVING {show(plan.having)}" if plan.having is not None else ""
    return ", ".join(show(item.expr) for item in plan.items) + (f" BY {', '.join(by)}" if by else "") + having
