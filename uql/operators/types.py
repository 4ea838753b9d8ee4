"""Typed values of an answer: a DuckDB type as a JSON schema, as a grammar of the bare value, and the reading of a reply."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from uql.base.duckdb_connections import lock
from uql.base.errors import BindError

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

_INTEGERS = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_MOMENTS = ("timestamp", "timestamp with time zone", "timestamp_s", "timestamp_ms", "timestamp_ns")
KINDS = {  # by DuckDB's name of a type
    **dict.fromkeys(("varchar", "uuid"), "text"),
    **dict.fromkeys((*_INTEGERS, *(f"u{name}" for name in _INTEGERS)), "integer"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(_MOMENTS, "datetime"),
    **dict.fromkeys(("list", "array"), "list"),
    **{name: name for name in ("decimal", "boolean", "date", "time", "interval", "struct", "enum")},
}
LONGEST = 1_000  # characters of a number, a date or another value that is not a text
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}  # of a grammar's literals
_BITS = {"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 127}
TRUTH_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
NULL_WORDS = {"", "null", "none", "n/a", "na", "unknown", "not stated", "not mentioned", "not specified", "nan"}


@dataclass(frozen=True, slots=True)
class Type:
    """A DuckDB type taken apart: `kind` is text, integer, float, decimal, boolean, date, time, datetime, interval, list, struct, enum."""

    kind: str
    name: str
    fields: tuple[tuple[str, Type], ...] = ()  # of a struct; the one of a list has the name ""
    labels: tuple[str, ...] = ()
    width: tuple[int, ...] = ()  # of a decimal: digits, and those after the point


@lru_cache(maxsize=512)
def parse_type(text: str) -> Type:
    """Take a type's text apart, as DuckDB reads it. Raises BindError (UQL205) where it is none that an answer may have.

    >>> parse_type("STRUCT(id VARCHAR, n DOUBLE)[]").kind
    'list'
    """
    import duckdb

    try:
        with _reader().cursor() as duck:
            return _parsed(duck.sqltype(text))
    except (duckdb.Error, KeyError):
        choices = "VARCHAR, BOOLEAN, BIGINT, DOUBLE, DECIMAL(p, s), DATE, TIME, TIMESTAMP, INTERVAL, ENUM(…), STRUCT(…), type[]"
        message = f"an answer cannot have the type {text}"
        raise BindError(message, code="UQL205", help=f"types: {choices}") from None


@cache
def _reader() -> duckdb.DuckDBPyConnection:
    """A DuckDB that reads types, with nothing outside its memory."""
    import duckdb

    connection = duckdb.connect(":memory:")
    lock(connection)
    return connection


def _parsed(type: DuckDBPyType) -> Type:
    kind, name = KINDS[type.id], str(type)
    parts: dict[str, Any] = dict(type.children) if kind in ("list", "struct", "enum", "decimal") else {}
    match kind:
        case "list":
            return Type(kind, name, (("", _parsed(parts["child"])),))
        case "struct":
            return Type(kind, name, tuple((field, _parsed(inner)) for field, inner in parts.items()))
        case "enum":
            return Type(kind, name, labels=tuple(parts["values"]))
    return Type(kind, name, width=tuple(parts.values()))


# ---------------------------------------------------------------------------------------------------------------- schema
def json_schema(kind: Type, *, nullable: bool = True) -> dict[str, Any]:
    """The JSON schema of a value, strict: every property required, no others."""

    def maybe(schema: dict[str, Any]) -> dict[str, Any]:
        return {**schema, "type": [schema["type"], "null"]} if nullable else schema

    match kind.kind:
        case "text":
            return maybe({"type": "string"})
        case "integer":
            return maybe({"type": "integer"})
        case "float" | "decimal":
            return maybe({"type": "number"})
        case "boolean":
            return maybe({"type": "boolean"})
        case "date":
            return maybe({"type": "string", "description": "a date as YYYY-MM-DD"})
        case "time":
            return maybe({"type": "string", "description": "a time as HH:MM:SS"})
        case "datetime":
            return maybe({"type": "string", "description": "a time as YYYY-MM-DD HH:MM:SS"})
        case "interval":
            return maybe({"type": "string", "description": "a duration, as 3 days 4 hours"})
        case "enum":
            labels: list[str | None] = [*kind.labels, None] if nullable else list(kind.labels)
            return {"type": ["string", "null"] if nullable else "string", "enum": labels}
        case "list":
            return maybe({"type": "array", "items": json_schema(kind.fields[0][1], nullable=False)})
    properties = {name: json_schema(inner) for name, inner in kind.fields}
    return maybe(
        {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    )


# --------------------------------------------------------------------------------------------------------------- grammar
def literal(text: str) -> str:
    """A text as a literal of a llama.cpp grammar, whatever it holds: quotes and what is not printable are escaped.

    >>> print(literal('say "yes"\\n'))
    "say \\"yes\\"\\n"
    """
    return f'"{"".join(_escaped(c) for c in text)}"'


def _escaped(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    return c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def grammar(kind: Type) -> str | None:
    """A llama.cpp grammar of the bare value or null; None where the value is a list or struct (then JSON is asked for)."""
    day = '[0-9] [0-9] [0-9] [0-9] "-" [0-1] [0-9] "-" [0-3] [0-9]'
    clock = '[0-2] [0-9] ":" [0-5] [0-9] (":" [0-5] [0-9])?'
    shapes = {
        "text": "[^\\n\\r]{1,300}",
        "integer": '"-"? [0-9]{1,18}',
        "float": '"-"? [0-9]{1,15} ("." [0-9]{1,10})?',
        "decimal": '"-"? [0-9]{1,18} ("." [0-9]{1,10})?',
        "boolean": '"true" | "false"',
        "date": day,
        "time": clock,
        "datetime": f'{day} " " {clock}',
        "interval": '[0-9]{1,6} " " ("second" | "minute" | "hour" | "day" | "week" | "month" | "year") "s"?',
        "enum": " | ".join(literal(label) for label in kind.labels),
    }
    shape = shapes.get(kind.kind)
    return None if shape is None else f'root ::= "null" | {shape}'


# --------------------------------------------------------------------------------------------------------------- reading
def read(value: Any, kind: Type) -> Any:
    """A reply's value in the type, None for null. Raises ValueError saying what was wanted."""
    if value is None or (isinstance(value, str) and kind.kind != "enum" and value.strip().lower() in NULL_WORDS):
        return None
    if isinstance(value, str) and kind.kind not in ("text", "enum") and len(value) > LONGEST:
        raise ValueError(f"a value of type {kind.kind} was wanted, not {len(value):,} characters")
    match kind.kind:
        case "text":
            return value if isinstance(value, str) else _as_text(value)
        case "integer":
            return _integer(value, kind)
        case "float":
            return float(_number(value, kind))
        case "decimal":
            return _decimal(value, kind)
        case "boolean":
            return _boolean(value)
        case "date" | "time" | "datetime":
            return _moment(value, kind)
        case "interval":
            return _interval(value)
        case "enum":
            for label in kind.labels:
                if isinstance(value, str) and value.strip().casefold() == label.casefold():
                    return label
            if isinstance(value, str) and value.strip().lower() in NULL_WORDS:
                return None
            raise ValueError(f"{value!r} is none of {', '.join(kind.labels)}")
        case "list":
            if not isinstance(value, list):
                raise ValueError(f"a list was wanted, not {value!r}")
            return [read(item, kind.fields[0][1]) for item in value]
    if not isinstance(value, dict):
        raise ValueError(f"an object with {', '.join(name for name, _ in kind.fields)} was wanted, not {value!r}")
    struct = {name: read(value.get(name), inner) for name, inner in kind.fields}
    return None if all(part is None for part in struct.values()) else struct


def _as_text(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return str(value)
    raise ValueError(f"a text was wanted, not {value!r}")


def _number(value: Any, kind: Type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"a number was wanted, not {value!r}")
    text = str(value).strip().replace(",", "").replace("_", "")
    text = re.sub(r"^[€$£¥]\s*|\s*[€$£¥%]$", "", text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"a number was wanted, not {value!r}") from None
    if not number.is_finite() or not math.isfinite(float(number)):
        raise ValueError(f"a finite number was wanted, not {value!r}")
    return number


def _integer(value: Any, kind: Type) -> int:
    number = _number(value, kind)
    if number != number.to_integral_value():
        raise ValueError(f"a whole number was wanted, not {value!r}")
    whole = int(number)
    signed = not kind.name.startswith("U")
    bits = _BITS[kind.name.removeprefix("U")] + (not signed)
    if not -(2**bits) * signed <= whole < 2**bits:
        raise ValueError(f"{whole} is beyond the range of {kind.name}")
    return whole


def _decimal(value: Any, kind: Type) -> Decimal:
    number = _number(value, kind)
    digits, scale = kind.width
    rounded = number.quantize(Decimal(1).scaleb(-scale))
    if abs(rounded) >= Decimal(10) ** (digits - scale):
        raise ValueError(f"{number} does not fit DECIMAL({digits},{scale})")
    return rounded


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    truth = TRUTH_WORDS.get(str(value).strip().lower().rstrip("."))
    if truth is None:
        raise ValueError(f"true or false was wanted, not {value!r}")
    return truth


def _moment(value: Any, kind: Type) -> date | time | datetime:
    if not isinstance(value, str):
        raise ValueError(f"a {kind.kind} as text was wanted, not {value!r}")
    text = value.strip()
    try:
        if kind.kind == "time":
            return time.fromisoformat(text)
        if kind.kind == "datetime":
            return datetime.fromisoformat(text)
        return datetime.fromisoformat(text).date()
    except ValueError:
        raise ValueError(f"a {kind.kind} in ISO 8601 was wanted, not {value!r}") from None


_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "month": 2592000, "year": 31536000}


def _interval(value: Any) -> timedelta:
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(second|minute|hour|day|week|month|year)s?", str(value).lower())
    if not parts:
        raise ValueError(f"a duration, as 3 days, was wanted, not {value!r}")
    return timedelta(seconds=sum(float(n) * _UNITS[unit] for n, unit in parts))
