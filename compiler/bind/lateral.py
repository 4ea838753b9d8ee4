"""FROM t, unnest(t.list) AS u(item): a row of t for each item of its list; also of range and generate_series over columns.

The table becomes a sub-query that has the item beside its columns; the name u stands for that one column. In the same way
FROM t, unnest(frames(t.clip, every = '1 s')) AS f gives a row for each frame of a video, pages(t.document) for each page of a PDF, and
transcript(t.call) for each utterance in a recording; there the name f stands for several columns. So does the name of a sub-query that
reads columns of the tables before it (LATERAL): its rows are a list of structs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches

from uql.base.errors import BindError
from uql.base.names import free_name, free_names
from uql.base.schema import Field, Modality
from uql.compiler import syntax as ast
from uql.compiler.bind.scope import Part, Scope
from uql.compiler.bound import BoundDerived, BoundJoin, BoundSource, BoundTable
from uql.compiler.subqueries import with_leaves
from uql.compiler.syntax import Call, Column, Derived, Expr, Join, Name, Select, SelectItem, TableFunction
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
FIELD = "f"  # of the rows of a sub-query, with a number
Table = BoundTable | BoundDerived
SERIES = frozenset({"range", "generate_series"})  # outside FROM they give a list
LISTS = SERIES | {"unnest"}  # a row for each item of a list


@dataclass(frozen=True, slots=True)
class BoundPart(ast.Source):
    """What is bound already, to stand after FROM of a sub-query."""

    part: Part


def list_of(function: TableFunction, scope: Scope) -> Expr | None:
    """The list whose items a function in FROM gives, where it is made of columns or texts; None for constants.

    Raises: UnknownColumnError for a column that a table before it does not have.
    """
    call = function.call
    parts = parts_call(call)
    if parts is not None:
        if any(True for _ in columns_of(parts, scope)):
            return parts
        for text in (node for node in walk(parts) if isinstance(node, ast.Quoted)):
            raise scope.unknown((text.text,), text.span)
        return None
    if call.name not in LISTS or (call.name == "unnest" and len(call.args) != 1):
        return None
    items = call.args[0] if call.name == "unnest" else call
    varies = any(True for _ in columns_of(items, scope)) or any(isinstance(node, ast.Quoted) for node in walk(items))
    return items if varies else None


def sub_query(join: Join, function: TableFunction, items: Expr, left: Part, of: Table) -> tuple[Derived, str]:
    """The table of the list with an item of it in each row, still to be bound, and the item's name there.

    Args:
        join: the table function on the right, what comes before it on the left.
        function: UNNEST or the like, of a column of the left.
        items: the list whose items become rows.
        left: the bound left side.
        of: the table there whose rows have these lists, as `table_of` finds it.
    Raises: BindError (UQL212) where the join is of another kind, or has a condition.
    """
    always = is_true(join.on)
    if (
        join.kind not in ("INNER", "CROSS", "LEFT")
        or join.using
        or join.natural
        or not (join.kind == "CROSS" or always)
    ):
        query = isinstance(items, ast.ScalarQuery)
        what = "a sub-query with columns of a table" if query else f"{function.call.name}(…) of a column of the table"
        ways = "JOIN … ON or LEFT JOIN … ON" if query else "JOIN … ON TRUE or LEFT JOIN … ON TRUE"
        message = f"{what} before it takes a comma, {ways}"
        raise _wrong(function, message, "a condition on its rows stands in WHERE")
    if join.kind == "LEFT":  # a row without items stays, with NULL
        some = ast.Binary(">", Call("array_length", (items,)), ast.Number("0"))  # of a list, and so is a text there
        items = ast.Case(None, (ast.When(some, items),), ast.ListExpr((ast.Null(),)))
    mine = [relation for relation in left.relations if (relation.of or relation.alias) == of.alias]
    columns = of.fields
    names = {f.name.lower() for f in columns}
    name = free_name(name_of(function), names)
    column_items = [SelectItem(Column(of.alias, f.name), f.name) for f in columns]
    item = SelectItem(Call("unnest", (items,), span=function.call.span), name, span=function.span)
    source = BoundPart(Part(of, mine, left.merged), span=function.span)
    return Derived(Select((*column_items, item), source, span=function.span), of.alias, span=function.span), name


def rows_as_list(derived: Derived, fields: tuple[Field, ...], on: Expr | None) -> tuple[TableFunction, Expr]:
    """A sub-query that reads columns before it, as unnest(…) of the list of its rows, structs of FIELD0, FIELD1, …

    Args:
        derived: LATERAL (SELECT …) AS l.
        fields: its columns, under their names.
        on: what the join asks of its rows.
    """
    alias = derived.alias or "subquery"
    source = replace(derived, alias=alias, columns=tuple(f.name for f in fields))
    values = [Name((alias, f.name), span=derived.span) for f in fields]
    where = None if is_true(on) else on
    item = SelectItem(Call("list", (_row(values),), span=derived.span), span=derived.span)
    items = ast.ScalarQuery(Select((item,), source, where, span=derived.span), span=derived.span)
    return _unnest(items, derived), items


def values_as_list(values: TableFunction) -> tuple[TableFunction, Expr, int]:
    """LATERAL (VALUES (t.x), …) in the same way, and the number of its columns."""
    rows = [row.args for row in values.call.args if isinstance(row, Call)]
    items = ast.ListExpr(tuple(map(_row, rows)), span=values.span)
    return _unnest(items, values), items, len(rows[0])


def _unnest(items: Expr, of: Derived | TableFunction) -> TableFunction:
    return TableFunction(Call("unnest", (items,), span=of.span), of.alias, of.columns, span=of.span)


def _row(values: Sequence[Expr]) -> Expr:
    return Call("struct_pack", tuple(ast.Named(f"{FIELD}{i}", value) for i, value in enumerate(values)))


def from_the_left(join: Join) -> Join | None:
    """`a, (b JOIN c ON …)` as `(a, b) JOIN c ON …`, where b may read columns of a; None where it cannot stand so."""
    right = join.right
    if join.kind != "CROSS" or not isinstance(right, Join) or right.kind not in ("INNER", "CROSS", "LEFT"):
        return None
    inner = from_the_left(replace(join, right=right.left)) if isinstance(right.left, Join) else None
    return replace(right, left=inner or replace(join, right=right.left))


def is_true(on: Expr | None) -> bool:
    return isinstance(on, ast.Boolean) and on.value


def parts_call(call: Call) -> Call | None:
    """The call of DuckDB's function that lists the parts of a file, for frames(…), pages(…) and transcript(…) in FROM; None for others.

    Raises: BindError (UQL212) where the arguments are others.
    """
    inner = call.args[0] if call.name == "unnest" and len(call.args) == 1 else call
    if not isinstance(inner, Call) or inner.name not in PARTS:
        return None
    options: dict[str, Expr] = {"every": ast.String("1 s")} if inner.name == "frames" else {}
    files: list[Expr] = []
    for arg in inner.args:
        match arg:
            case ast.Named(name=name, value=value) | ast.Binary(op="=", left=Name(parts=(name,)), right=value) if (
                name in options
            ):
                options[name] = value
            case _:
                files.append(arg)
    if len(files) != 1:
        form = "frames(clip, every = '1 s')" if options else f"{inner.name}(file)"
        message = f"{inner.name}(…) takes one file" + (" and the time between two frames" if options else "")
        raise BindError(message, code="UQL212", span=inner.span, help=f"write FROM t, unnest({form}) AS p")
    return Call(f"__uql_{inner.name}", (files[0], *options.values()), span=inner.span)


def own_function(name: str) -> str | None:
    """How to write the one of these functions whose name is near, for a name that DuckDB does not have; None: none is near."""
    near = get_close_matches(name.lower(), PARTS, 1, 0.6)
    return f"write FROM t, unnest({near[0]}(t.file)) AS p" if near else None


def parts_fields(parts: Call) -> tuple[Field, ...]:
    """The columns of the parts that a call of `parts_call` lists."""
    return PARTS[parts.name.removeprefix("__uql_")]


def expand_part(part: Part, fields: Mapping[str, str], span: ast.Span) -> tuple[Derived, tuple[str, ...]]:
    """A table whose last column is a struct, with its fields in the place of it: to be bound, and their names there.

    Args:
        fields: of the struct, with the names that they have where these are free.
    """
    assert isinstance(part.source, BoundDerived)
    of, (*columns, last) = part.source.alias, part.source.fields
    names = free_names(fields.values(), (f.name for f in columns))
    items = [SelectItem(Column(of, f.name), f.name) for f in columns]
    whole = Column(of, last.name)
    items += [
        SelectItem(Call("struct_extract", (whole, ast.String(field)), span=span), name, span=span)
        for field, name in zip(fields, names, strict=True)
    ]
    return Derived(Select(tuple(items), BoundPart(part, span=span), span=span), of, span=span), names


def all_columns(part: Part) -> tuple[Select, dict[Column, str]]:
    """What stands before a list that reads several of its tables, as one table: to be bound, and the names of the columns there."""
    columns = dict.fromkeys(relation.column(f) for relation in part.relations for f in relation.fields)
    names = dict(zip(columns, free_names(c.name for c in columns), strict=True))
    return Select(tuple(SelectItem(column, name) for column, name in names.items()), BoundPart(part)), names


def list_table(function: TableFunction, items: Expr) -> Derived:
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


def table_of(source: BoundSource, aliases: Set[str]) -> Table | None:
    """The one table of these aliases, where each of its rows stays and none is filled in by a join."""
    match source:
        case BoundJoin(kind="INNER" | "CROSS"):
            return table_of(source.left, aliases) or table_of(source.right, aliases)
        case BoundJoin(kind="LEFT" | "SEMI" | "ANTI"):
            return table_of(source.left, aliases)
        case BoundJoin(kind="RIGHT"):
            return table_of(source.right, aliases)
        case BoundTable() | BoundDerived() if aliases == {source.alias}:
            return source
    return None


def columns_of(items: Expr, scope: Scope) -> Iterator[Column]:
    """The columns that an expression names."""
    for node in walk(items):
        parts = node.parts if isinstance(node, Name) else (node.text,) if isinstance(node, ast.Quoted) else ()
        path = scope.find(parts, node.span) if parts else None
        if path is None and len(parts) > 1 and scope.relation(parts[0]) is not None:
            raise scope.unknown(parts, node.span)
        if path is not None:
            yield from (n for n in walk(path[0]) if isinstance(n, Column))


def _wrong(function: TableFunction, message: str, help: str = "") -> BindError:
    help = help or "the items of a list, taken apart in a sub-query: FROM (SELECT *, unnest(list) AS item FROM t)"
    return BindError(message, code="UQL212", span=function.span, help=help)
