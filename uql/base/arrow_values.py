"""Values of Arrow as Python's, as DuckDB gives them: INTERVAL is a timedelta, MAP a dict, HUGEINT an int, UUID a UUID, ROW a tuple."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import time, timedelta
from decimal import Context
from typing import TYPE_CHECKING, Any

from uql.base.errors import DataError
from uql.base.sql_text import first_line, quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

HUGE = ("HUGEINT", "UHUGEINT")
_AS_DECIMAL = ("decimal128(38, 0)", "DECIMAL(38,0)")  # a HUGEINT in Arrow, and as DuckDB reads that back
MOST_DIGITS = 38  # of a DECIMAL
EXACTLY = Context(prec=MOST_DIGITS + 1)
DAYS_A_MONTH = 30  # of DuckDB's, where an INTERVAL becomes a timedelta
Change = Callable[[Any], Any]
# types of which Arrow keeps less, or only DuckDB's own bytes; strings and names are passed over
_TEXTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(\b(?:BIT|BITSTRING|UHUGEINT|TIMETZ|TIME WITH TIME ZONE)\b)""")


def arrow_of(rows: duckdb.DuckDBPyRelation) -> pa.Table:
    """The rows of a relation, with texts in the place of values that Arrow cannot hold: bits, offsets of times, 2^127 and more."""
    kinds = [str(kind) for kind in rows.types]
    texts = [_TEXTS.sub(lambda part: "VARCHAR" if part[1] else part[0], kind) for kind in kinds]
    if texts == kinds:
        return rows.to_arrow_table()
    parts = (
        f"#{i} AS {quote(name)}" if text == kind else f"CAST(#{i} AS {text}) AS {quote(name)}"
        for i, (name, kind, text) in enumerate(zip(rows.columns, kinds, texts, strict=True), start=1)
    )
    return rows.project(", ".join(parts)).to_arrow_table()


def python_values(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """The values of a column.

    Args:
        kind: its DuckDB type, which says what Arrow does not: HUGEINT, UUID, a ROW without names.
    Raises: DataError (UQL509) on an interval that Python cannot hold. Dates that it cannot hold are DuckDB's texts of them.
    """
    change = _change(column.type, kind)
    try:
        values: list[Any] = _with_whole_days(column).to_pylist()
        return values if change is None else [None if value is None else change(value) for value in values]
    except OverflowError:
        return _beyond_python(column, kind)


def _beyond_python(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """As `python_values`, by DuckDB: a date beyond Python's is a text, 'infinity' the last date of Python."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as con:
        con.register("beyond", pa.table({"value": column}))
        try:
            return [value for (value,) in con.execute("FROM beyond").fetchall()]
        except OverflowError as error:
            raise DataError(
                f"a value of the type {kind} is longer than Python can hold",
                code="UQL509",
                help="cast it in the query: CAST(x AS VARCHAR)",
            ) from error


@contextmanager
def duckdb_with(table: pa.Table, name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB in memory of its own with the rows of a table.

    HUGEINT, for which Arrow has a DECIMAL of 38 digits, is HUGEINT again: its least value as such a DECIMAL breaks DuckDB.

    Args:
        name: of the rows in DuckDB.
    Raises: DataError (UQL509) for what DuckDB cannot do with the values.
    """
    import duckdb

    with duckdb.connect(":memory:") as con:
        huge = {field.name for field in table.schema if _AS_DECIMAL[0] in str(field.type)}
        con.register(f"{name}_arrow" if huge else name, table)
        if huge:
            rows = con.table(f"{name}_arrow")
            columns = [
                f"CAST({quote(column)} AS {str(kind).replace(_AS_DECIMAL[1], 'HUGEINT')}) AS {quote(column)}"
                if column in huge
                else quote(column)
                for column, kind in zip(rows.columns, rows.types, strict=True)
            ]
            con.execute(f"CREATE VIEW {name} AS SELECT {', '.join(columns)} FROM {name}_arrow")
        try:
            yield con
        except (duckdb.InternalException, duckdb.FatalException, duckdb.OutOfRangeException) as error:
            raise DataError(
                f"a value of the result cannot be shown: {first_line(error)}",
                code="UQL509",
                help="cast it in the query: CAST(x AS DOUBLE)",
            ) from error


def holds_least(column: pa.ChunkedArray) -> bool:
    """Does a DECIMAL of 38 digits hold -2^127, as Arrow has HUGEINT's least value?"""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_decimal128(column.type) or column.type.precision != MOST_DIGITS:
        return False
    least = pc.min(column).as_py()
    return least is not None and least.scaleb(column.type.scale, EXACTLY) == -(2**127)


def durations(table: pa.Table) -> pa.Table:
    """The table with INTERVAL columns as durations in microseconds: pandas and polars have no other."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if field.type == pa.month_day_nano_interval():
            values = [None if v is None else _timedelta(v) for v in table.column(i).to_pylist()]
            table = table.set_column(i, field.name, pa.array(values, type=pa.duration("us")))
    return table


def for_pandas(table: pa.Table) -> pa.Table:
    """The table so that pandas makes of it the types that DuckDB's data frames have."""
    import pyarrow as pa

    table = durations(table)
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, column.cast(pa.float64()))
        elif pa.types.is_date(field.type):
            with suppress(pa.ArrowInvalid):  # 'infinity' is not a moment: such a column stays one of dates
                table = table.set_column(i, field.name, column.cast(pa.timestamp("us")))
        elif pa.types.is_time64(field.type) and "24:00:00" in (values := python_values(column, "TIME")):
            texts = [None if value is None else str(value) for value in values]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))  # pandas' times end before it
    return table


def _change(type: pa.DataType, kind: str) -> Change | None:
    """What makes a value of Arrow one of Python; None where it is one."""
    import pyarrow.types as of

    low = kind.upper()
    if of.is_time64(type):
        a_second = 10**9 if type.unit == "ns" else 10**6
        return lambda number: _time(number * 10**6 // a_second)
    if of.is_interval(type):
        return _timedelta
    if of.is_timestamp(type) and type.unit == "ns":
        return _datetime
    if low in HUGE:
        return int
    if of.is_string(type) and low == "UUID":
        return uuid.UUID
    if of.is_string(type) and low == "UHUGEINT":
        return int
    if of.is_string(type) and low in ("TIMETZ", "TIME WITH TIME ZONE"):
        return _time_with_offset
    kinds = _inner_kinds(type, kind)
    if of.is_map(type):
        key, item = _change(type.key_type, kinds[0]), _change(type.item_type, kinds[1])
        return lambda pairs: {_with(key, k): _with(item, v) for k, v in pairs}
    if of.is_list(type) or of.is_fixed_size_list(type):
        inner = _change(type.value_type, kinds[0])
        whole: Change = tuple if of.is_fixed_size_list(type) else list
        if inner is None:
            return tuple if of.is_fixed_size_list(type) else None
        return lambda items: whole(_with(inner, item) for item in items)
    if of.is_struct(type):
        inside = {f.name: _change(f.type, inner_kind) for f, inner_kind in zip(type, kinds, strict=True)}
        nameless = low.startswith(("TUPLE(", "STRUCT(")) and "ELEMENT1" not in low and "element1" in inside
        if nameless:
            return lambda row: tuple(_with(inside[name], value) for name, value in row.items())
        if any(inside.values()):
            return lambda row: {name: _with(inside[name], value) for name, value in row.items()}
    return None


def _inner_kinds(type: pa.DataType, kind: str) -> list[str]:
    """The DuckDB types within a nested one, in the order of Arrow's; "" where they are not known."""
    import duckdb

    size = 2 if kind.upper().startswith("MAP(") else type.num_fields
    kinds: list[str] = []
    if size and kind.endswith((")", "]")):
        with suppress(duckdb.Error):
            kinds = [str(inner) for _, inner in duckdb.sqltype(kind).children][:size]
    return kinds if len(kinds) == size else [""] * max(size, 2)


def _time_with_offset(text: str) -> time | str:
    """A time of day with its offset; 24:00:00 is beyond Python's, and a text, as DuckDB has it."""
    try:
        return time.fromisoformat(text)
    except ValueError:
        return text


def _with_whole_days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with numbers in the place of times: Arrow would give 24:00:00 as 00:00:00."""
    numbers = _numbers(column.type)
    return column if numbers == column.type else column.cast(numbers)


def _numbers(type: pa.DataType) -> pa.DataType:
    """The type with BIGINT in the place of TIME."""
    import pyarrow as pa
    import pyarrow.types as of

    if of.is_time64(type):
        return pa.int64()
    if of.is_map(type):
        return pa.map_(_numbers(type.key_type), _numbers(type.item_type))
    if of.is_fixed_size_list(type):
        return pa.list_(_numbers(type.value_type), type.list_size)
    if of.is_list(type):
        return pa.list_(_numbers(type.value_type))
    return pa.struct([f.with_type(_numbers(f.type)) for f in type]) if of.is_struct(type) else type


def _time(microseconds: int) -> time | str:
    """A time of day; 24:00:00 is beyond Python's, and a text, as DuckDB has it."""
    seconds, rest = divmod(microseconds, 10**6)
    if seconds >= 86_400:
        return "24:00:00"
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest)


def _with(change: Change | None, value: Any) -> Any:
    return value if change is None or value is None else change(value)


def _datetime(value: Any) -> Any:
    """A moment without its nanoseconds: where pandas is there, Arrow gives them as pandas' own."""
    whole = getattr(value, "to_pydatetime", None)
    return value if whole is None else whole(warn=False)


def _timedelta(value: Any) -> timedelta:
    """An interval of months, days and nanoseconds, a month of 30 days."""
    months, days, nanoseconds = value
    return timedelta(days=DAYS_A_MONTH * months + days, microseconds=nanoseconds // 1000)
