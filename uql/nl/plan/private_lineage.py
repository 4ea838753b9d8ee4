"""Which columns of a result hold what a private column held, whatever a query calls them.

A result column is private where its expression, or that of a sub-query it comes from, names a private column; a count of one is not. What
cannot be followed is taken for private.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from uql.base.errors import BindError, UQLError, UQLSyntaxError
from uql.base.schema import Field
from uql.compiler import syntax
from uql.compiler.parser import parse
from uql.compiler.syntax import Call, CommonTable, Name, Quoted, Select, SelectItem, Source, Star, TableName, Union
from uql.compiler.walk import children, walk
from uql.nl.plan.dag import Node, NodeKind


def marked(node: Node, fields: Sequence[Field], read: Sequence[Field]) -> tuple[Field, ...]:
    """The columns of a node's result, those that hold private values marked so.

    Args:
        read: columns of all that the node may read.
    """
    private = {f.name.lower() for f in read if f.private}
    if not private:
        return tuple(fields)
    private_names = _private_names(node, [f.name for f in fields], private)
    return tuple(replace(f, private=True) if f.name.lower() in private_names else f for f in fields)


def reads_private(kind: NodeKind, body: str, read: Sequence[Field]) -> bool:
    """May a step see private values? Its source names such a column, or takes all columns.

    Args:
        read: columns of all that it may read.
    """
    private = {f.name.lower() for f in read if f.private}
    low = body.lower()
    return bool(private) and (kind is NodeKind.PYTHON or "*" in low or any(name in low for name in private))


def without_values(error: UQLError, kind: NodeKind, body: str, read: Sequence[Field]) -> str:
    """An error in a line, as a model may see it: while a step runs over private columns, its words may hold their values.

    Args:
        read: the columns of all that it reads.
    """
    from uql.nl.ask.plan_checks import error_line

    if isinstance(error, BindError | UQLSyntaxError) or not reads_private(kind, body, read):
        return error_line(error)
    return f"{type(error).__name__} {error.code} while it ran; its words are not shown, as it reads private columns"


def _private_names(node: Node, columns: Sequence[str], private: Collection[str]) -> frozenset[str]:
    """The lower-case names of the result's columns that are private."""
    if node.kind in (NodeKind.UQL, NodeKind.SQL):
        with suppress(UQLError):  # SQL that UQL's grammar does not have is not followed
            return _of_query(parse(node.body), columns, private)
    return frozenset(name.lower() for name in columns)


def _of_query(tree: syntax.Node, columns: Sequence[str], private: Collection[str]) -> frozenset[str]:
    private_names = {name.lower() for name in private}
    nodes = list(walk(tree, queries=True))
    tables = [node for node in nodes if isinstance(node, CommonTable | Source)]
    rows = {name.lower() for node in tables for name in _called(node)}
    whole = any(isinstance(node, Name) and len(node.parts) == 1 and node.parts[0].lower() in rows for node in nodes)
    if whole or any(map(_renames, nodes)) or any(getattr(node, "columns", ()) for node in tables):
        # whole rows, columns chosen or named together, and AS t(a, b): names by places, are not followed
        return frozenset(name.lower() for name in columns)
    selects = [node for node in nodes if isinstance(node, Select)]
    unions = [_branches(node) for node in nodes if isinstance(node, Union)]
    size = -1
    while len(private_names) != size:
        size = len(private_names)
        for select in selects:
            private_names |= {
                item.alias.lower() for item in select.items if item.alias and _names(item.expr, private_names)
            }
        for branches in unions:  # columns of one place are one column, named by the first
            for place, item in enumerate(branches[0].items):
                others = [branch.items[place] for branch in branches if place < len(branch.items)]
                if any(_names(other.expr, private_names) for other in others):
                    name = item.alias or (item.expr.parts[-1] if isinstance(item.expr, Name) else "")
                    private_names.add(name.lower())
    top = tree if isinstance(tree, Select) else None
    items = top.items if top is not None and not any(isinstance(i.expr, Star) for i in top.items) else ()
    private_columns = {name.lower() for name in columns if name.lower() in private_names}
    if len(items) <= len(columns):
        private_columns |= {columns[i].lower() for i, item in enumerate(items) if _names(item.expr, private_names)}
        private_columns -= {columns[i].lower() for i, item in enumerate(items) if _is_clean(item, private_names)}
    for branch in _branches(tree) if isinstance(tree, Union) else ():
        positions = [i for i, item in enumerate(branch.items) if _names(item.expr, private_names)]
        private_columns |= {columns[i].lower() for i in positions if i < len(columns)}
    return frozenset(private_columns)


def _renames(node: syntax.Node) -> bool:
    """May it give columns other names than AS does? A star with RENAME or REPLACE, or of names LIKE a pattern; COLUMNS(…)."""
    match node:
        case Star(replaced=replaced, renamed=renamed):
            return bool(replaced or renamed)
        case syntax.Like(operand=Star()) | Call(name="columns"):
            return True
    return False


def _called(table: syntax.Node) -> tuple[str, ...]:
    """The names by which a statement may call a table, and a row of it."""
    if isinstance(table, CommonTable):
        return (table.name,)
    alias = getattr(table, "alias", None)
    return (alias,) if alias else table.parts[-1:] if isinstance(table, TableName) else ()


def _branches(tree: syntax.Node) -> list[Select]:
    """The queries that a UNION puts under each other."""
    if isinstance(tree, Union):
        return [*_branches(tree.left), *_branches(tree.right)]
    return [tree] if isinstance(tree, Select) else []


def _is_clean(item: SelectItem, private_names: Collection[str]) -> bool:
    """A public value under a private column's name: only where the item is a plain count."""
    return isinstance(item.expr, Call) and item.expr.name.lower() == "count" and not _names(item.expr, private_names)


def _names(tree: syntax.Node, private_names: Collection[str]) -> bool:
    if isinstance(tree, Call) and tree.name.lower() == "count" and tree.over is None:
        return False
    if isinstance(tree, Name):
        return tree.parts[-1].lower() in private_names
    if isinstance(tree, Star):
        return True
    if isinstance(tree, Quoted):
        return any(
            "{" + name + "}" in tree.text.lower() or "." + name + "}" in tree.text.lower() for name in private_names
        ) or (not tree.forced and tree.text.lower() in private_names)
    return any(_names(part, private_names) for part in children(tree, queries=True))
