"""`*` with EXCLUDE, REPLACE and RENAME, COLUMNS(…), and unnest(…) of a struct: the columns that they stand for."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import TypeGuard

from uql.base.errors import BindError
from uql.base.schema import Field
from uql.base.sql_text import OWN
from uql.compiler import syntax as ast
from uql.compiler.bind.parameters import type_name
from uql.compiler.bind.scope import Relation, Scope
from uql.compiler.bind.statement import Statement
from uql.compiler.sql import expression
from uql.compiler.syntax import (
    Call,
    Column,
    Expr,
    ListExpr,
    Name,
    Named,
    Number,
    SelectItem,
    Span,
    Star,
    String,
    TypeName,
)
from uql.compiler.walk import rewrite, walk

MOST_NESTED = 1_000  # structs in one another that unnest(…, recursive := true) takes apart


def starred(star: Star, scope: Scope) -> list[SelectItem]:
    """The columns that `*` or `t.*` stands for: without those it excludes, computed anew, under other names."""
    if not scope.relations:
        raise BindError("* needs a FROM", code="UQL212", span=star.span)
    columns = _columns(star, scope)
    of_tables = [_of_table(parts, columns, scope, star.span) for parts in star.exclude if len(parts) > 1]
    columns = _columns(star, scope, of_tables) if of_tables else columns
    names = {name.lower() for name, _ in columns}
    changed = [item.alias or "" for item in star.replaced] + [old for old, _ in star.renamed]
    excluded = [parts[0] for parts in star.exclude if len(parts) == 1]
    for name in (*excluded, *changed):
        if name.lower() not in names:
            raise scope.unknown((name,), star.span)
    left_out = {name.lower() for name in excluded}
    replacements = {(item.alias or "").lower(): item for item in star.replaced}
    other = {old.lower(): new for old, new in star.renamed}
    items = []
    for name, item in columns:
        low = name.lower()
        if low in left_out:
            continue
        item = replace(replacements[low], alias=name) if low in replacements else item
        items.append(replace(item, alias=other[low]) if low in other else item)
    return items


def _of_table(parts: tuple[str, ...], columns: list[tuple[str, SelectItem]], scope: Scope, span: Span) -> Expr:
    """The column t.x that a star leaves out. Raises: UnknownColumnError (UQL202) where the star does not stand for it."""
    found = scope.find(parts, span)
    hidden = [column for merged in scope.merged for column in merged.hidden]
    if found is None or found[0] not in [*(item.expr for _, item in columns), *hidden]:
        raise scope.unknown(parts, span)
    return found[0]


def column_at(position: ast.Position, scope: Scope) -> Expr:
    """#2: the second column of what * stands for. Raises: BindError (UQL202)."""
    columns = [item.expr for _, item in _columns(Star(span=position.span), scope)]
    if not 1 <= int(position.text) <= len(columns):
        help = f"the FROM clause has {len(columns)} columns" if columns else "this query has no FROM"
        place = position.span
        message = f"column #{position.text} does not exist"
        raise BindError(message, code="UQL202", span=place, help=help)
    return columns[int(position.text) - 1]


def _columns(star: Star, scope: Scope, left_out: Collection[Expr] = ()) -> list[tuple[str, SelectItem]]:
    if star.table is not None:
        relation = scope.relation(star.table)
        if relation is None:
            return _fields_of(star.table, star.span, scope)
        return [_whole(relation, f, star.span) for f in relation.fields if relation.column(f) not in left_out]
    columns: list[tuple[str, SelectItem]] = []
    hidden = {column: merged for merged in scope.merged for column in merged.hidden}
    merged_names: set[str] = set()
    for relation in scope.relations:
        for f in relation.fields:
            column = relation.column(f)
            merged = hidden.get(column)
            if column in left_out:
                continue
            if merged is None or any(other in left_out for other in merged.hidden):
                columns.append(_whole(relation, f, star.span))
            elif merged.name not in merged_names:
                merged_names.add(merged.name)
                columns.append((merged.name, SelectItem(replace(merged.value, span=star.span), merged.name)))
    return columns


def _fields_of(name: str, span: Span, scope: Scope) -> list[tuple[str, SelectItem]]:
    """`s.*` of a column of structs: its fields. Raises: UnknownColumnError where there is no such table or column."""
    column = scope.find((name,), span)
    field = scope.field_of(column[0]) if column is not None and isinstance(column[0], Column) else None
    if column is None or field is None or not field.type.startswith("STRUCT(") or field.type.endswith("]"):
        raise scope.unknown((name, "*"), span)
    parts = _parts_of(column[0], type_name(field.type, span), span)
    return [(name, SelectItem(part, name)) for name, part, _ in parts]


def _parts_of(struct: Expr, type: TypeName, span: Span) -> list[tuple[str, Expr, TypeName | None]]:
    """Name, value and type of each field of a value that is a struct."""
    fields = [(name or "", of) for name, of in type.fields]
    return [(name, Call("struct_extract", (struct, String(name)), span=span), of) for name, of in fields]


def with_fields(item: SelectItem, scope: Scope) -> list[SelectItem] | None:
    """The fields that the item unnest(…) of a struct stands for, one column each; None where it is anything else.

    Args:
        item: still to be bound: of a struct as it is written, {'a': x, …}, or of a column of structs.
    """
    call = item.expr
    if not isinstance(call, Call) or call.name != "unnest" or not call.args:
        return None
    depth = 1
    for option in call.args[1:]:
        match option:
            case Named(name="recursive", value=ast.Boolean(value=True)):
                depth = MOST_NESTED
            case Named(name="max_depth", value=ast.Number(text=text)) if text.isdigit():
                depth = int(text)
            case _:
                return None
    fields = _unnested(call.args[0], None, scope, depth)
    return None if fields is None else [SelectItem(value, name, span=item.span) for name, value in fields]


def _unnested(value: Expr, type: TypeName | None, scope: Scope, depth: int) -> list[tuple[str, Expr]] | None:
    """The fields of a struct, and to a depth those of the structs in it; None where it is no struct, or holds lists to unnest."""
    if isinstance(value, ast.Name) and (column := scope.find(value.parts, value.span)) is not None:
        field = scope.field_of(column[0]) if isinstance(column[0], Column) else None
        type = type_name(field.type, value.span) if field is not None else None
        for inner in column[1]:
            type = next((of for name, of in type.fields if name == inner), None) if type is not None else None
    parts: list[tuple[str, Expr, TypeName | None]]
    match value:
        case Call(name="struct_pack", args=(_, *_) as args) if all(isinstance(arg, Named) for arg in args):
            parts = [(arg.name, arg.value, None) for arg in args if isinstance(arg, Named)]
        case _ if type is not None and type.name == "STRUCT" and not type.dims:
            parts = _parts_of(value, type, value.span)
        case _:
            return None
    fields: list[tuple[str, Expr]] = []
    for name, part, of in parts:
        if depth > 1 and (isinstance(part, ListExpr) or (of is not None and of.dims)):
            return None
        inside = _unnested(part, of, scope, depth - 1) if depth > 1 else None
        fields += [(name, part)] if inside is None else inside
    return fields


def _whole(relation: Relation, field: Field, span: Span) -> tuple[str, SelectItem]:
    column = relation.column(field, span)
    return field.name, SelectItem(column, None if column.name == field.name else field.name)


def with_columns(item: SelectItem, scope: Scope, statement: Statement) -> list[SelectItem]:
    """The items that an item with COLUMNS(…) stands for, one a column; the item itself where there is none in it.

    Args:
        item: still to be bound.
        scope: whose columns COLUMNS(…) may choose.
        statement: answers what DuckDB has to say of a lambda.
    Raises: BindError (UQL212) where the item has several COLUMNS(…).
    """
    if isinstance(item.expr, ast.Like) and isinstance(item.expr.operand, Star):
        tested, star = Name(("name",)), item.expr.operand
        condition = ast.Lambda(tested.parts, replace(item.expr, operand=tested))
        columns = _chosen(Call("columns", (star,)), scope, statement)
        return _renamed(item, _that_pass(condition, columns, item.span, statement), statement)
    if scope.find(("columns",), item.span) is not None:
        return [item]
    item = replace(item, expr=rewrite(item.expr, lambda node: _unpacked(node, scope, statement)))
    calls: set[Call] = {n for n in walk(item.expr) if _is_columns(n)}
    if not calls:
        return [item]
    if len(calls) > 1:
        raise _wrong(item.span, "one item takes one COLUMNS(…)")
    (call,) = calls
    chosen = []
    for name, column in _chosen(call, scope, statement):
        value = column.expr
        expr = rewrite(item.expr, lambda node, value=value: value if node == call else node)  # type: ignore[misc]
        chosen.append((name, replace(column, expr=expr)))
    pattern = call.args[0].value if isinstance(call.args[0], String) else ""
    return _renamed(item, chosen, statement, pattern)


def _renamed(
    item: SelectItem, chosen: list[tuple[str, SelectItem]], statement: Statement, pattern: str = ""
) -> list[SelectItem]:
    r"""The columns that an item stands for under the name it gives them, in which \0 is a column's name and \1 the first group of
    the pattern by which it was chosen. DuckDB reads patterns, in time linear in the name."""

    def part(at: re.Match[str], name: str) -> str:
        if at[1] == "0":
            return name
        group = expression(Call("regexp_extract", (String(name), String(pattern), Number(at[1]))))
        return str(statement.catalog.value(f"SELECT {group}"))

    alias = item.alias
    return [
        SelectItem(
            column.expr,
            column.alias or name if alias is None else re.sub(r"\\(\d)", lambda at, name=name: part(at, name), alias),  # type: ignore[misc]
            span=item.span,
        )
        for name, column in chosen
    ]


def _is_columns(node: object) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.name == "columns" and len(node.args) == 1


def _unpacked(node: object, scope: Scope, statement: Statement) -> object:
    """A call or a list with the columns that each *COLUMNS(…) in it stands for."""
    if not isinstance(node, Call | ListExpr | ast.InList):
        return node
    args: list[Expr] = []
    for arg in node.args if isinstance(node, Call) else node.items:
        call = arg.operand if isinstance(arg, ast.Unary) and arg.op == "*" else None
        if not _is_columns(call):
            args.append(arg)
            continue
        for name, column in _chosen(call, scope, statement):
            named = isinstance(node, Call) and node.name == "struct_pack"
            args.append(Named(name, column.expr) if named else column.expr)
    return replace(node, args=tuple(args)) if isinstance(node, Call) else replace(node, items=tuple(args))


def _chosen(call: Call, scope: Scope, statement: Statement) -> list[tuple[str, SelectItem]]:
    """The columns that the argument of COLUMNS names: a star, a pattern, a list of names, a lambda over names."""
    (argument,) = call.args
    if isinstance(argument, Star):
        return [(item.alias or _name(item.expr), item) for item in starred(argument, scope)]
    columns = _columns(Star(span=call.span), scope)
    match argument:
        case String():
            of_column = Name(("name",))
            matches = ast.Lambda(of_column.parts, Call(f"{OWN}regexp_matches", (of_column, argument)))
            return _that_pass(matches, columns, call.span, statement)
        case ListExpr(items=items) if all(isinstance(i, String) for i in items):
            there, names = {name.lower() for name, _ in columns}, [i.value for i in items if isinstance(i, String)]
            for name in names:
                if name.lower() not in there:
                    raise scope.unknown((name,), call.span)
            wanted = {name.lower() for name in names}
            selection = [(name, item) for name, item in columns if name.lower() in wanted]
        case ast.Lambda(names=(_,)):
            return _that_pass(argument, columns, call.span, statement)
        case _:
            raise _wrong(call.span, "COLUMNS takes *, a pattern, a list of names, or a lambda over names")
    return _some(selection, columns, call.span)


def _that_pass(
    condition: ast.Lambda, columns: list[tuple[str, SelectItem]], span: Span, statement: Statement
) -> list[tuple[str, SelectItem]]:
    """The columns for whose names a lambda holds, as DuckDB says."""
    sql = expression(Call(f"{OWN}list_transform", (ListExpr(tuple(String(name) for name, _ in columns)), condition)))
    try:
        flags = statement.catalog.value(f"SELECT {sql}")
    except statement.types.error as error:
        raise _wrong(span, f"COLUMNS: {str(error).splitlines()[0]}") from None
    passed = [pair for pair, flag in zip(columns, flags, strict=True) if flag] if isinstance(flags, list) else []
    return _some(passed, columns, span)


def _some(
    chosen: list[tuple[str, SelectItem]], columns: list[tuple[str, SelectItem]], span: Span
) -> list[tuple[str, SelectItem]]:
    if not chosen:
        raise _wrong(span, f"COLUMNS(…) names none of the columns {', '.join(name for name, _ in columns)}")
    return chosen


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Column) else ""


def _wrong(span: Span, message: str) -> BindError:
    return BindError(message, code="UQL212", span=span)
