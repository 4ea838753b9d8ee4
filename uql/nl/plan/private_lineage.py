"""Which columns of a result hold what a private column held, whatever a query calls them.

A result column is public where its expression, and those of the sub-queries it comes from, name public columns alone, or count. Any other
is private: what cannot be followed too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace

from uql.base.errors import BindError, UQLError, UQLSyntaxError
from uql.base.schema import Field
from uql.compiler import syntax
from uql.compiler.bind.reading import holes
from uql.compiler.parser import parse
from uql.compiler.syntax import (
    Call,
    CommonTable,
    GroupKey,
    Lambda,
    Name,
    Position,
    Quoted,
    Select,
    SelectItem,
    Source,
    Star,
    TableFunction,
    TableName,
    Union,
)
from uql.compiler.walk import children, walk
from uql.nl.plan.dag import Node, NodeKind

_LEAVES = Name | Quoted | Star | Position


def marked(node: Node, fields: Sequence[Field], read: Sequence[Field]) -> tuple[Field, ...]:
    """The columns of a node's result, those that hold private values marked so.

    Args:
        read: columns of all that the node may read.
    """
    if not any(f.private for f in read):
        return tuple(fields)
    private_names = _private_names(node, [f.name.lower() for f in fields], read)
    return tuple(replace(f, private=True) if f.name.lower() in private_names else f for f in fields)


def reads_private(kind: NodeKind, body: str, read: Sequence[Field]) -> bool:
    """May a step see private values? It names such a column or takes all columns, or it is not known what it takes.

    Args:
        read: columns of all that it may read.
    """
    if kind is not NodeKind.PYTHON:
        with suppress(UQLError):
            tree = parse(body)
            leaves = [node for node in walk(tree, queries=True) if isinstance(node, _LEAVES)]
            names = _Names(tree, read)
            return any(f.private for f in read) and not (names.followed and not any(map(names.may_hold, leaves)))
    return any(f.private for f in read)


def without_values(error: UQLError, kind: NodeKind, body: str, read: Sequence[Field]) -> str:
    """An error in a line, as a model may see it: while a step runs over private columns, its words may hold their values.

    Args:
        error: of the step.
        kind, body: of the step.
        read: the columns of all that it reads.
    """
    from uql.nl.ask.plan_checks import error_line

    if isinstance(error, BindError | UQLSyntaxError) or not reads_private(kind, body, read):
        return error_line(error)
    return f"{type(error).__name__} {error.code} while it ran; its words are not shown, as it reads private columns"


def _private_names(node: Node, columns: Sequence[str], read: Sequence[Field]) -> Collection[str]:
    """Which of the result's columns are private, all in lower case."""
    if node.kind in (NodeKind.UQL, NodeKind.SQL):
        with suppress(UQLError):  # SQL that UQL's grammar does not have is not followed
            tree = parse(node.body)
            names = _Names(tree, read)
            lists = [select.items for select in _branches(tree)]
            if names.followed and any(isinstance(item.expr, Star) for items in lists for item in items):
                return {name for name in columns if name not in names.public}
            if names.followed and lists and all(len(items) == len(columns) for items in lists):
                places = zip(columns, zip(*lists, strict=True), strict=True)
                return {name for name, items in places if any(names.may_hold(item.expr) for item in items)}
    return columns


class _Names:
    """What the names that stand in a query may hold, in lower case, whichever part of it they stand in.

    Attributes:
        public: names of columns without private values; any other name may hold some.
        followed: no column has a name that does not stand in the query, or stands there for another one.
    """

    def __init__(self, tree: syntax.Node, read: Sequence[Field]) -> None:
        """
        Args:
            read: columns of all that the query may read.
        """
        nodes = list(walk(tree, queries=True))
        tables = [node for node in nodes if isinstance(node, CommonTable | Source)]
        named = [node for node in nodes if isinstance(node, SelectItem | GroupKey)]
        unions = [[select.items for select in _branches(node)] for node in nodes if isinstance(node, Union)]
        self._rows = {name.lower() for node in tables for name in _called(node)}
        self._private = {f.name.lower() for f in read if f.private}
        self.public = {f.name.lower() for f in read} | {_name(node) for node in named}
        self.public |= {name.lower() for node in nodes if isinstance(node, Lambda) for name in node.names}
        self.public -= self._private
        size = -1
        while len(self.public) != size:
            size = len(self.public)
            self._private |= {_name(node) for node in named if self.may_hold(node.expr)}
            for lists in unions:  # columns of one place are one column, named by the first
                places = zip(*lists, strict=False)
                self._private |= {_name(p[0]) for p in places if any(self.may_hold(item.expr) for item in p)}
            self.public -= self._private
        lists = [select.items for select in _branches(tree)]
        starred = any(isinstance(item.expr, Star) for items in lists for item in items)
        own = set() if starred else {id(item) for items in lists for item in items}  # their places are known
        self.followed = not (
            any(map(_renames, nodes))
            or any(getattr(node, "columns", ()) for node in tables)
            or any(isinstance(node, TableFunction) and self.may_hold(node.call) for node in tables)
            or any(isinstance(item.expr, Star) for lists in unions for items in lists for item in items)
            or any(isinstance(node, SelectItem) and id(node) not in own and self._is_unnamed(node) for node in named)
        )

    def may_hold(self, tree: syntax.Node) -> bool:
        """May a value of this expression hold something private? A count does not."""
        match tree:
            case Call(name=name, over=None) if name.lower() == "count":
                return False
            case Name(parts=parts):
                known = [part.lower() for part in parts]
                own = known[1:] if known[0] in self._rows else known  # nothing: the whole row
                return not own or own[0] not in self.public or not self._private.isdisjoint(known)
            case Star() | Position():
                return True
            case Quoted(forced=False) if tree.text.lower() in self._private | self._rows:
                return True
            case Quoted() if any(self.may_hold(Name(parts)) for parts in holes(tree)):
                return True
        return any(map(self.may_hold, children(tree, queries=True)))

    def _is_unnamed(self, item: SelectItem) -> bool:
        """Are there private values below a name that DuckDB makes? Those that * takes keep theirs, but not the fields of a struct."""
        if isinstance(item.expr, Star):
            return item.expr.table is not None and item.expr.table.lower() not in self._rows - self._private
        return not _name(item) and self.may_hold(item.expr)


def _name(item: SelectItem | GroupKey) -> str:
    """The name of a column, in lower case; "" where none is written."""
    return (item.alias or (item.expr.parts[-1] if isinstance(item.expr, Name) else "")).lower()


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
