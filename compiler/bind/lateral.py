"""FROM t, unnest(t.list) AS u(item): a row of t for each item of its list; also of range and generate_series over columns.

The table becomes a sub-query that has the item beside its columns; the name u stands for that one column. In the same way
FROM t, unnest(frames(t.clip, every = '1 s')) AS f gives a row for each frame of a video, pages(t.document) for each page of a PDF, and
transcript(t.call) for each utterance in a recording;
there the name f stands for several columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count

from uql.base.errors import BindError
from uql.base.schema import Field, Modality
from uql.compiler.bind.scope import Part, Scope
from uql.compiler.bound import BoundDerived, BoundJoin, BoundSource, BoundTable
from uql.compiler.subqueries import with_leaves
from uql.compiler.syntax import (
    Binary,
    Boolean,
    Call,
    Case,
    Column,
    Derived,
    Expr,
    Join,
    ListExpr,
    Name,
    Named,
    Null,
    Number,
    Quoted,
    Select,
    SelectItem,
    Source,
    String,
    TableFunction,
    When,
)
from uql.compiler.walk import walk

PARTS = {  # the columns of what stands in a file; `error` says why its parts cannot be listed
    "frames": (Field("t", "DOUBLE"), Field("image", "VARCHAR", Modality.IMAGE), Field("error", "VARCHAR")),
    "pages": (
        Field("page", "INTEGER"),
        Field("text", "VARCHAR", Modality.TEXT),
        Field("image", "VARCHAR", Modality.IMAGE, by_name=True),  # a page is read as its text where nothing says more
        Field("error", "VARCHAR"),
    ),
    "transcript": (Field("t", "DOUBLE"), Field("text", "VARCHAR", Modality.TEXT), Field("error", "VARCHAR")),
}
SERIES = frozenset({"range", "generate_series"})  # outside FROM they give a list


@dataclass(frozen=True, slots=True)
class Held(Source):
    """What is bound already, to stand after FROM of a sub-query."""

    part: Part


def list_of(function: TableFunction, scope: Scope) -> Expr | None:
    """The list whose items a function in FROM gives, where it is made of columns or texts; None for constants.

    Raises: UnknownColumnError for a column that a table before it does not have.
    """
    call = function.call
    parts = parts_call(call)
    if parts is not None:
        return parts if any(True for _ in columns_of(parts, scope)) else None
    if call.name not in {"unnest", *SERIES} or (call.name == "unnest" and len(call.args) != 1):
        return None
    items = call.args[0] if call.name == "unnest" else call
    named = any(True for _ in columns_of(items, scope)) or any(isinstance(node, Quoted) for node in walk(items))
    return items if named else None


def sub_query(join: Join, function: TableFunction, items: Expr, left: Part) -> tuple[Derived, str]:
    """The table of the list with an item of it in each row, still to be bound, and the item's name there.

    Args:
        join: the table function on the right, what comes before it on the left.
        function: UNNEST or the like, of a column of the left.
        items: the list whose items become rows.
        left: the bound left side.
    Raises: BindError (UQL212) where the list is of several tables, of one that an outer join fills with NULL, or has a condition.
    """
    scope = Scope(left.relations, left.merged)
    aliases = {column.table for column in columns_of(items, scope)} or {r.of or r.alias for r in left.relations}
    table = _table(left.source, min(aliases)) if len(aliases) == 1 else None
    if table is None:
        raise _wrong(
            function, f"{function.call.name}(…) takes columns of one table, which no outer join fills with NULL"
        )
    always = isinstance(join.on, Boolean) and join.on.value
    if (
        join.kind not in ("INNER", "CROSS", "LEFT")
        or join.using
        or join.natural
        or not (join.kind == "CROSS" or always)
    ):
        message = f"{function.call.name}(…) of a column of the table before it takes a comma, JOIN … ON TRUE or LEFT JOIN … ON TRUE"
        raise _wrong(function, message, "a condition on the items stands in WHERE")
    if join.kind == "LEFT":  # a row without items stays, with NULL
        some = Binary(">", Call("len", (items,)), Number("0"))
        items = Case(None, (When(some, items),), ListExpr((Null(),)))
    mine = [relation for relation in left.relations if (relation.of or relation.alias) == table.alias]
    columns = table.fields
    taken = {f.name.lower() for f in columns}
    name = free_name(name_of(function), taken)
    kept = [SelectItem(Column(table.alias, f.name), f.name) for f in columns]
    item = SelectItem(Call("unnest", (items,), span=function.call.span), name, span=function.span)
    held = Held(Part(table, mine), span=function.span)
    return Derived(Select((*kept, item), held, span=function.span), table.alias, span=function.span), name


def parts_call(call: Call) -> Call | None:
    """The call of DuckDB's function that lists the parts of a file, for frames(…), pages(…) and transcript(…) in FROM; None for others.

    Raises: BindError (UQL212) where the arguments are others.
    """
    inner = call.args[0] if call.name == "unnest" and len(call.args) == 1 else call
    if not isinstance(inner, Call) or inner.name not in PARTS:
        return None
    wanted: dict[str, Expr] = {"every": String("1 s")} if inner.name == "frames" else {}
    files: list[Expr] = []
    for arg in inner.args:
        match arg:
            case Named(name=name, value=value) | Binary(op="=", left=Name(parts=(name,)), right=value) if (
                name in wanted
            ):
                wanted[name] = value
            case _:
                files.append(arg)
    if len(files) != 1:
        form = "frames(clip, every = '1 s')" if wanted else f"{inner.name}(file)"
        message = f"{inner.name}(…) takes one file" + (" and the time between two frames" if wanted else "")
        raise BindError(message, code="UQL212", span=inner.span, help=f"write FROM t, unnest({form}) AS p")
    return Call(f"__uql_{inner.name}", (files[0], *wanted.values()), span=inner.span)


def parts_fields(parts: Call) -> tuple[Field, ...]:
    """The columns of the parts that a call of `parts_call` lists."""
    return PARTS[parts.name.removeprefix("__uql_")]


def opened(part: Part, parts: Call) -> tuple[Derived, tuple[str, ...]]:
    """A table whose last column is a part of a file, with the part's fields in the place of it: to be bound, and their names there."""
    assert isinstance(part.source, BoundDerived)
    of, (*kept, last) = part.source.alias, part.source.fields
    taken = {f.name.lower() for f in kept}
    names: list[str] = []
    for f in parts_fields(parts):
        name = free_name(f.name, taken)
        taken.add(name.lower())
        names.append(name)
    items = [SelectItem(Column(of, f.name), f.name) for f in kept]
    whole = Column(of, last.name)
    items += [
        SelectItem(Call("struct_extract", (whole, String(f.name)), span=parts.span), name, span=parts.span)
        for f, name in zip(parts_fields(parts), names, strict=True)
    ]
    held = Held(part, span=parts.span)
    return Derived(Select(tuple(items), held, span=parts.span), of, span=parts.span), tuple(names)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, numbered where names in lower case have it."""
    return next(n for i in count() if (n := f"{name}_{i}" if i else name).lower() not in taken)


def alone(function: TableFunction, items: Expr) -> Derived:
    """The items of a list of the query around, where nothing stands beside them."""
    item = SelectItem(Call("unnest", (items,), span=function.call.span), name_of(function), span=function.span)
    alias = function.alias or function.call.name
    return Derived(Select((item,), span=function.span), alias, function.columns, span=function.span)


def name_of(function: TableFunction) -> str:
    """What DuckDB calls the item: u(name), else u, else the function."""
    return function.columns[0] if function.columns else function.alias or function.call.name


def put(source: BoundSource, table: BoundDerived) -> BoundSource:
    """FROM with a table in the place of the one of its alias."""
    return with_leaves(source, lambda leaf: table if leaf.alias == table.alias else leaf)


def _table(source: BoundSource, alias: str) -> BoundTable | BoundDerived | None:
    """The table of an alias, where each of its rows stays and none is filled in by a join."""
    match source:
        case BoundJoin(kind="INNER" | "CROSS"):
            return _table(source.left, alias) or _table(source.right, alias)
        case BoundJoin(kind="LEFT" | "SEMI" | "ANTI"):
            return _table(source.left, alias)
        case BoundJoin(kind="RIGHT"):
            return _table(source.right, alias)
        case BoundTable() | BoundDerived() if source.alias == alias:
            return source
    return None


def columns_of(items: Expr, scope: Scope) -> Iterator[Column]:
    """The columns that an expression names."""
    for node in walk(items):
        parts = node.parts if isinstance(node, Name) else (node.text,) if isinstance(node, Quoted) else ()
        found = scope.find(parts, node.span) if parts else None
        if found is None and len(parts) > 1 and scope.relation(parts[0]) is not None:
            raise scope.unknown(parts, node.span)
        if found is not None:
            yield from (n for n in walk(found[0]) if isinstance(n, Column))


def _wrong(function: TableFunction, message: str, help: str = "") -> BindError:
    help = help or "the items of a list, taken apart in a sub-query: FROM (SELECT *, unnest(list) AS item FROM t)"
    return BindError(message, code="UQL212", span=function.span, help=help)
