"""`uql.sem("…")`: a quoted text as a value, so that no query is made by string formatting."""

from __future__ import annotations

import datetime as dt
import types
import typing
import uuid
from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union

from uql.base.errors import BindError
from uql.base.sql_text import literal, quote
from uql.compiler.virtual import SemText

_NAMES: dict[Any, str] = {
    str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", bytes: "BLOB", Decimal: "DECIMAL(18,3)",
    dt.date: "DATE", dt.datetime: "TIMESTAMP", dt.time: "TIME", dt.timedelta: "INTERVAL", uuid.UUID: "UUID",
}  # fmt: skip


def sem(text: str, type: Any = None) -> SemText:
    """A quoted text as a parameter or in a query made by calls.

    `con.uql("SELECT * FROM t WHERE $crit", crit=uql.sem("asked to cancel"))`,
    `con.table("t").select(year=uql.sem("the year", int))`.

    Args:
        text: the text, with holes {column} if it needs them.
        type: of its value: a Python type (str, int, float, bool, date, list[str], Literal["a", "b"], an Enum, a dataclass), a list
            of labels or the name of a DuckDB type; None: what its place asks for.
    Raises: BindError where the text is empty or no text, or the type has no counterpart in DuckDB.

    >>> from typing import Literal
    >>> sem("the year", int).type, sem("the mood", Literal["good", "bad"]).type, sem("the names", list[str]).type
    ('BIGINT', "ENUM('good', 'bad')", 'VARCHAR[]')
    """
    return SemText(text, None if type is None else duckdb_type(type))


def duckdb_type(kind: Any) -> str:
    """The DuckDB type of a Python type. Raises: BindError (UQL210).

    >>> from dataclasses import make_dataclass
    >>> duckdb_type(make_dataclass("Person", [("name", str), ("age", int | None)]))
    'STRUCT("name" VARCHAR, "age" BIGINT)'
    """
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list | tuple) and kind and all(isinstance(label, str) for label in kind):
        return _enum(kind)
    if isinstance(kind, Hashable) and kind in _NAMES:
        return _NAMES[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _enum(args)
    if origin in (list, tuple, set) and args:
        return f"{duckdb_type(args[0])}[]"
    if origin in (Union, types.UnionType):  # int | None: every value may be NULL
        alternatives = [arg for arg in args if arg is not types.NoneType]
        if len(alternatives) == 1:
            return duckdb_type(alternatives[0])
    if isinstance(kind, type):
        if issubclass(kind, Enum):
            return _enum([member.value for member in kind])
        hints = typing.get_type_hints(kind)
        names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(hints)
        if names:
            parts = [f"{quote(name)} {duckdb_type(hints[name])}" for name in names]
            return f"STRUCT({', '.join(parts)})"
    raise BindError(
        f"{kind!r} has no counterpart in DuckDB",
        code="UQL210",
        help="types are str, int, float, bool, date, datetime, list[…], Literal['a', 'b'], an Enum, a dataclass or a text: 'DECIMAL(10,2)'",
    )


def _enum(labels: Any) -> str:
    return f"ENUM({', '.join(literal(str(label)) for label in labels)})"
