"""Walking and rewriting expressions: children by dataclass field, so that a new node needs no code here."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import fields, replace
from functools import cache
from typing import Any

from uql.compiler.syntax import Call, Column, Expr, Node, Query
from uql.compiler.virtual import Virtual, VirtualColumn

_NO_NODE = frozenset({"str", "int", "bool", "float", "str | None", "int | None"})  # annotations of fields without nodes
DRAWN = frozenset(
    {"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval"}
)  # functions that give another value at each row
VOLATILE = DRAWN | {
    "now",
    "current_timestamp",
    "setseed",
}  # the same, and those that give another one in the next statement
MEANS = frozenset({"avg", "mean"})
ROWS_FROM_ONE = frozenset({"unnest", "generate_subscripts"})  # functions that give several rows for one


def children(node: Node, queries: bool = False) -> Iterator[Node]:
    """The nodes directly below, in the order they were written; sub-queries only where `queries` says so."""
    kind: Any = type(node)
    for name in _names(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            if queries or not isinstance(value, Query):
                yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, Node):
                    if queries or not isinstance(item, Query):
                        yield item
                elif isinstance(item, tuple):  # the fields of a STRUCT
                    yield from (part for part in item if isinstance(part, Node))


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "span" and f.type not in _NO_NODE)


def walk(node: Node | None, queries: bool = False) -> Iterator[Node]:
    """The node and everything below it, depth first; sub-queries only where `queries` says so. Iterative, so depth is not limited."""
    stack = [node] if node is not None else []
    while stack:
        top = stack.pop()
        yield top
        kind: Any = type(top)
        if _names(kind):
            stack.extend(reversed(list(children(top, queries))))


def with_children(node: Any, each: Callable[[Any], Any]) -> Any:
    """The node with every node directly below as `each` has it, sub-queries too; the same object where none changes."""
    updates: dict[str, Any] = {}
    kind: Any = type(node)
    for name in _names(kind):
        value = new = getattr(node, name)
        if isinstance(value, Node):
            new = each(value)
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            items = tuple(each(item) if isinstance(item, Node) else item for item in value)
            new = items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if new is not value:
            updates[name] = new
    return replace(node, **updates) if updates else node


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with `change` applied bottom-up to every node but sub-queries; unchanged nodes stay the same objects."""
    return change(with_children(node, lambda below: below if isinstance(below, Query) else rewrite(below, change)))


def with_queries(node: Any, swap: dict[int, Any]) -> Any:
    """The tree with sub-queries (by identity) replaced."""
    return with_children(
        node,
        lambda below: swap.get(id(below), below) if isinstance(below, Query) else with_queries(below, swap),
    )


def virtuals(*nodes: Expr | None) -> tuple[VirtualColumn, ...]:
    """The virtual columns that the expressions hold, each once, in order of appearance."""
    by_id: dict[int, VirtualColumn] = {}
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Virtual):
                by_id.setdefault(part.column.id, part.column)
    return tuple(by_id.values())


def columns(*nodes: Expr | None) -> tuple[Column, ...]:
    """The real columns that the expressions need, those read by their virtual columns included, each once."""
    unique: dict[Column, None] = {}
    for node in nodes:
        for part in walk(node):
            if isinstance(part, Column):
                unique[part] = None
            elif isinstance(part, Virtual):
                unique.update(dict.fromkeys((*part.column.reads, *part.column.holes)))
    return tuple(unique)


def has_window(*nodes: Expr | None) -> bool:
    """Does an expression look at other rows?"""
    return any(isinstance(part, Call) and part.over is not None for node in nodes for part in walk(node))


def needs_every_row(*nodes: Expr | None) -> bool:
    """Does an expression look at other rows (a window) or give several rows for one (unnest)? Then LIMIT comes after it."""
    calls = (part for node in nodes for part in walk(node) if isinstance(part, Call))
    return has_window(*nodes) or any(call.name in ROWS_FROM_ONE for call in calls)


def is_semantic(node: Expr | None) -> bool:
    return any(isinstance(part, Virtual) for part in walk(node))


def adds_answers(call: Call) -> bool:
    """Is it a mean or a sum of what a model reads from each row?"""
    return call.name in (*MEANS, "sum") and not call.distinct and len(call.args) == 1 and is_semantic(call.args[0])


def aggregate_calls(node: Expr | None, names: Container[str]) -> tuple[Call, ...]:
    """The outermost aggregate calls in an expression, each once; a call with OVER is a window, not an aggregate."""
    calls: dict[Call, None] = {}

    def visit(part: Node) -> None:
        if isinstance(part, Call) and part.over is None and part.name in names:
            calls[part] = None
            return
        for child in children(part):
            visit(child)

    if node is not None:
        visit(node)
    return tuple(calls)
