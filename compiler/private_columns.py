"""Which columns of a query hold what a private column held, whatever the query calls them.

A column is public where its expression, and those of the sub-queries that it comes from, name public columns alone, or count. Any other is
private: what cannot be followed too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from uql.base.errors import UQLError
from uql.base.schema import Field
from uql.compiler import syntax
from uql.compiler.bind.reading import holes, spellings
from uql.compiler.parser import parse
from uql.compiler.statement_targets import READ_BY_NAME
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

_RECURSIVE = re.compile(r"\bWITH\s+RECURSIVE\b", re.IGNORECASE)  # it is followed as if it were none
_LEAVES = Name | Quoted | Star | Position


def private_columns(text: str, columns: Sequence[str], read: Sequence[Field]) -> Collection[str]:
    """Which of the columns of a query are private, in lower case.

    Args:
        text: the query.
        columns: the names of all of its columns.
        read: columns of all that it may read.
    """
    lower = [name.lower() for name in columns]
    if not any(f.private for f in read):
        return ()
    with suppress(UQLError):  # SQL that UQL's grammar does not have is not followed
        tree = parse(_RECURSIVE.sub("WITH", text))
        names = _Names(tree, read)
        lists = [select.items for select in _branches(tree)]
        if names.followed and any(isinstance(item.expr, Star) for items in lists for item in items):
            return {name for name in lower if name not in names.public}
        if names.followed and lists and all(len(items) == len(lower) for items in lists):
            places = zip(lower, zip(*lists, strict=True), strict=True)
            return {name for name, items in places if any(names.may_hold(item.expr) for item in items)}
    return lower


def may_read_private(text: str, read: Sequence[Field]) -> bool:
    """May a query see private values? It names such a column or takes all columns, or it is not known what it takes.

    Args:
        read: columns of all that it may read.
    """
    with suppress(UQLError):
        tree = parse(text)
        names = _Names(tree, read)
        return any(f.private for f in read) and not (names.followed and not any(map(names.may_hold, _leaves(tree))))
    return any(f.private for f in read)


def _leaves(tree: syntax.Node) -> Iterator[syntax.Node]:
    """What names columns; the star of COUNT(*) takes none."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _LEAVES):
            yield node
        counts = isinstance(node, Call) and node.name == "count"
        waiting += [child for child in children(node, queries=True) if not (counts and isinstance(child, Star))]


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
            or any(isinstance(node, TableFunction) and (_unknown(node) or self.may_hold(node.call)) for node in tables)
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
                table = next((at for at, part in enumerate(known, 1) if part in self._rows), 0)
                own = known[table:]  # nothing: the whole row
                return not own or own[0] not in self.public or not self._private.isdisjoint(known)
            case Star() | Position():
                return True
            case Quoted(forced=False) if tree.text.lower() in self._private | self._rows:
                return True
            case Quoted() if any(self._hole_may_hold(parts) for parts in holes(tree)):
                return True
        return any(map(self.may_hold, children(tree, queries=True)))

    def _hole_may_hold(self, parts: tuple[str, ...]) -> bool:
        return self.may_hold(Name(parts)) or any(names[-1].lower() in self._private for names in spellings(parts))

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


def _unknown(function: TableFunction) -> bool:
    """May a function give values of tables under any name?"""
    name = function.call.name.rpartition(".")[-1]
    return name in READ_BY_NAME and name != "query_table"


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
