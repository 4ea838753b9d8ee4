"""Parameters: `$name` replaced by constants before anything else is bound, so that no query is made by string formatting."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import chain
from typing import Any

from uql.base.errors import BindError, UQLSyntaxError
from uql.base.names import suggestion
from uql.base.settings import NAMES
from uql.compiler import syntax as ast
from uql.compiler.lexer import tokenize
from uql.compiler.syntax import Cast, Parameter, Select, Span, String, TypedLiteral, TypeName
from uql.compiler.virtual import SemText
from uql.compiler.walk import walk, with_children

GROUPINGS = ("rollup", "cube", "grouping_sets", "row")


def substitute(node: Any, values: Mapping[str, object]) -> Any:
    """The tree with every parameter replaced by its value. Raises: BindError (UQL210) on a missing, unused or odd one."""
    used: set[str] = set()
    result = _replaced(node, values, used)
    refuse_unused(values, used)
    return result


def names(statement: ast.Statement | str) -> set[str]:
    """The parameters that a statement names; of a text that is not UQL, as the lexer reads it.

    >>> sorted(names("PIVOT (FROM t WHERE day = $day) ON $key"))
    ['day', 'key']
    """
    if not isinstance(statement, str):
        return {node.name for node in walk(statement, queries=True) if isinstance(node, Parameter)}
    try:
        return {str(token.value) for token in tokenize(statement) if token.type == "PARAMETER"}
    except UQLSyntaxError:
        return set()


def refuse_unused(values: Mapping[str, object], used: set[str]) -> None:
    """Raises BindError (UQL210) where a value has no parameter."""
    unused = sorted(set(values) - used)
    if unused:
        raise BindError(
            f"the query has no parameter ${unused[0]}",
            code="UQL210",
            help=_elsewhere(unused[0], used),
        )


def _elsewhere(name: str, used: set[str]) -> str:
    """Where a value belongs whose parameter is not in the statement."""
    if name in NAMES:
        return (
            f"{name} is a setting: write WITH ({name} = …) at the end of the statement, or with con.settings({name}=…):"
        )
    if used:
        return f"{suggestion(name, used)}its parameters: {', '.join(sorted(used))}"
    return (
        f"write ${name} outside of quotes, where the value belongs; "
        'a text for the model that holds a value is itself one: WHERE $what, with what=uql.sem(f"…")'
    )


def _replaced(node: Any, values: Mapping[str, object], used: set[str]) -> Any:
    if isinstance(node, Parameter):
        if node.name not in values:
            raise BindError(
                f"no value for the parameter ${node.name}",
                code="UQL210",
                span=node.span,
                help=suggestion(node.name, values) + _way(node.name),
            )
        used.add(node.name)
        return constant(values[node.name], node.name, node.span)
    if isinstance(node, Select | ast.Union):
        _check_keys(node, values)
    result = with_children(node, lambda below: _replaced(below, values, used))
    if isinstance(node, ast.InList):  # IN ($list): the list's items are the list
        items = (
            new.items if isinstance(old, Parameter) and isinstance(new, ast.ListExpr) else (new,)
            for old, new in zip(node.items, result.items, strict=True)
        )
        return replace(result, items=tuple(chain.from_iterable(items)))
    return result


def parameter_keys(query: Select | ast.Union) -> Iterator[tuple[str, Parameter]]:
    """The parameters that are keys by themselves, also in ROLLUP and the like, each with its clause."""
    keys = [("ORDER BY", key.expr) for key in query.order_by]
    if isinstance(query, Select):
        keys += [("GROUP BY", key.expr) for key in query.group_by] + [("DISTINCT ON", key) for key in query.distinct_on]
    for clause, key in keys:
        if isinstance(key, ast.Call) and key.name in GROUPINGS:
            keys += [(clause, arg) for arg in key.args]
        if isinstance(key, Parameter):
            yield clause, key


def _check_keys(query: Select | ast.Union, values: Mapping[str, object]) -> None:
    """A parameter that is a key by itself would be a constant, or be taken for the place of an item. Raises: BindError (UQL210)."""
    for clause, key in parameter_keys(query):
        if key.name in values and not isinstance(values[key.name], SemText):
            raise BindError(
                f"{clause} ${key.name}: the value of a parameter is a constant, not a column or a position",
                code="UQL210",
                span=key.span,
                help='write the column, or its place; a text for the model is a value uql.sem("…")',
            )


def constant(value: object, name: str, span: Span) -> ast.Expr:
    """A Python value as an expression. Raises: BindError (UQL210) when UQL has no constant for it.

    Args:
        name: of the parameter, for the message.
    """
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():  # a numpy scalar
        value = item()
    elif isinstance(value, bytearray | memoryview):
        value = bytes(value)
    elif callable(getattr(value, "tolist", None)):  # an array, a series
        value = value.tolist()  # type: ignore[attr-defined]
    elif type(value).__name__ in ("NAType", "NaTType"):  # pandas' words for NULL
        value = None
    match value:
        case None:
            return ast.Null(span=span)
        case bool():
            return ast.Boolean(value, span=span)
        case int():
            return _signed(str(abs(value)), value < 0, span)
        case float():
            if not math.isfinite(value):
                return Cast(String(str(value), span=span), TypeName("DOUBLE"), span=span)
            digits = repr(abs(value))  # without an exponent it would be a DECIMAL
            return _signed(digits if "e" in digits else f"{digits}e0", math.copysign(1, value) < 0, span)
        case Decimal():
            if not value.is_finite():
                raise _odd(value, name, span)
            return _signed(format(abs(value), "f"), value < 0, span)
        case str():
            try:
                value.encode()
            except UnicodeEncodeError:  # half of a surrogate pair
                raise _odd(value, name, span) from None
            return String(value, span=span)
        case dt.datetime():
            kind = "TIMESTAMPTZ" if value.tzinfo is not None else "TIMESTAMP"
            return TypedLiteral(kind, value.isoformat(sep=" "), span=span)
        case dt.date():
            return TypedLiteral("DATE", value.isoformat(), span=span)
        case dt.time():
            return TypedLiteral("TIME" if value.tzinfo is None else "TIMETZ", value.isoformat(), span=span)
        case dt.timedelta():
            micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
            return TypedLiteral("INTERVAL", f"{micros} microseconds", span=span)
        case uuid.UUID():
            return Cast(String(str(value), span=span), TypeName("UUID"), span=span)
        case bytes():
            text = "".join(f"\\x{byte:02X}" for byte in value)
            return Cast(String(text, span=span), TypeName("BLOB"), span=span)
        case list() | tuple():
            return ast.ListExpr(tuple(constant(part, name, span) for part in value), span=span)
        case dict() if value and all(isinstance(key, str) for key in value):  # a STRUCT, as in DuckDB
            parts = tuple(ast.Named(key, constant(part, name, span)) for key, part in value.items())
            return ast.Call("struct_pack", parts, span=span)
        case SemText():
            quoted = ast.Quoted(value.text, forced=True, span=span)
            return quoted if value.type is None else Cast(quoted, type_name(value.type, span), span=span)
    raise _odd(value, name, span)


def type_name(text: str, span: Span) -> TypeName:
    """A type as written by the user of `uql.sem`. Raises: BindError (UQL210) when it is none."""
    from uql.compiler.parser import parse

    try:
        tree = parse(f"SELECT CAST(NULL AS {text})")
    except UQLSyntaxError as error:
        raise _no_type(text, span) from error
    match tree:
        case Select(items=(item,), source=None, where=None, group_by=(), order_by=(), limit=None, to=None):
            if isinstance(item.expr, Cast) and item.alias is None:
                return item.expr.type
    raise _no_type(text, span)


def _no_type(text: str, span: Span) -> BindError:
    help = "types are VARCHAR, DOUBLE, DATE, ENUM('a','b'), STRUCT(a VARCHAR), VARCHAR[] …"
    return BindError(f"{text!r} is not a type", code="UQL210", span=span, help=help)


def _signed(digits: str, negative: bool, span: Span) -> ast.Expr:
    number = ast.Number(digits, span=span)
    return ast.Unary("-", number, span=span) if negative else number


def _odd(value: object, name: str, span: Span) -> BindError:
    return BindError(
        f"the parameter ${name} is a {type(value).__name__} ({value!r:.60}), which is not a constant of UQL",
        code="UQL210",
        span=span,
        help="parameters are numbers, texts, bytes, dates, times, None, lists and dicts of these, and uql.sem(…)",
    )


def _way(name: str) -> str:
    argument = f"{name}=…" if name.isidentifier() else f'{{"{name}": …}}'
    return f"give it: con.uql(…, {argument}), or --var '{name}=…' on the command line"
