"""Values of Arrow as Python's, as DuckDB gives them: INTERVAL is a timedelta, MAP a dict, HUGEINT an int, UUID a UUID, ROW a tuple."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Context
from typing import TYPE_CHECKING, Any

from uql.base.duckdb_connections import private_cursor
from uql.base.errors import DataError
from uql.base.sql_text import first_line, literal, quote

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_AS_DECIMAL = ("decimal128(38, 0)", "DECIMAL(38,0)")  # a HUGEINT in Arrow, and as DuckDB reads that back
MOST_DIGITS = 38  # of a DECIMAL
EXACTLY = Context(prec=MOST_DIGITS + 1)
# types of which Arrow keeps less, or only DuckDB's own bytes; strings and names are passed over
_TEXTS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(\b(?:BIT|BITSTRING|UHUGEINT|TIMETZ|TIME WITH TIME ZONE)\b)""")
_VARIANT = {
    "ARROW:extension:name": "arrow.parquet.variant",
    "ARROW:extension:metadata": "",
}  # of a field, not of its values
# types that Arrow has no name for
_OF_DUCKDB = re.compile(r"\b(?:U?HUGEINT|UUID|TIMETZ|TIME WITH TIME ZONE|TUPLE|BIGNUM|VARIANT)\b")


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
    if kind.upper() == "HUGEINT":
        return [None if value is None else int(value) for value in column.to_pylist()]
    return cells_of(column) if _is_arrows(column.type) and not _OF_DUCKDB.search(kind) else _by_duckdb(column, kind)


def cells_of(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, whatever its DuckDB type. A date or time that Python cannot hold is a text, 'infinity' its last date."""
    try:
        values: list[Any] = column.to_pylist()
        return values
    except (OverflowError, ValueError):
        return _by_duckdb(column, "")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows by the names of their columns, with values as `cells_of` gives them."""
    try:
        values: list[dict[str, Any]] = table.to_pylist()
        return values
    except (OverflowError, ValueError):
        columns = [cells_of(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_arrows(type: pa.DataType) -> bool:
    """Does Arrow make the values of a type that DuckDB would make?"""
    import pyarrow.types as of

    if of.is_list(type):
        return _is_arrows(type.value_type)
    if of.is_struct(type):
        return all(f.name and _is_arrows(f.type) for f in type)  # a ROW without names is a tuple
    nanoseconds = of.is_timestamp(type) and type.unit == "ns"
    return not (nanoseconds or of.is_time(type) or of.is_interval(type) or of.is_nested(type))


def _by_duckdb(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """As `python_values`, by DuckDB: a date or time beyond Python's is a text, 'infinity' the last date of Python."""
    import pyarrow as pa

    zone = re.search(r"tz=([^]]+)", str(column.type))
    is_cast = _OF_DUCKDB.search(kind) or _AS_DECIMAL[1] in kind
    value = f"CAST(value AS {kind})" if is_cast else "value"
    field = pa.field("value", column.type, metadata=_VARIANT if kind == "VARIANT" else None)
    with duckdb_with(pa.table([column], schema=pa.schema([field])), "rows") as con:
        if zone is not None:
            con.execute(f"SET TimeZone = {literal(zone[1])}")
        try:
            return [one for (one,) in con.execute(f"SELECT {value} FROM rows").fetchall()]
        except OverflowError as error:
            raise DataError(
                f"a value of the type {kind} is longer than Python can hold",
                code="UQL509",
                help="cast it in the query: CAST(x AS VARCHAR)",
            ) from error


@contextmanager
def duckdb_with(table: pa.Table, name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the process's own DuckDB with the rows of a table.

    HUGEINT, for which Arrow has a DECIMAL of 38 digits, is HUGEINT again: its least value as such a DECIMAL breaks DuckDB.

    Args:
        name: of the rows in DuckDB.
    Raises: DataError (UQL509) for what DuckDB cannot do with the values.
    """
    import duckdb

    huge = {field.name for field in table.schema if _AS_DECIMAL[0] in str(field.type)}
    try:
        with private_cursor() as con:
            con.register(f"{name}_arrow" if huge else name, table)
            if huge:
                rows = con.table(f"{name}_arrow")
                columns = [
                    f"CAST({quote(column)} AS {str(kind).replace(_AS_DECIMAL[1], 'HUGEINT')}) AS {quote(column)}"
                    if column in huge
                    else quote(column)
                    for column, kind in zip(rows.columns, rows.types, strict=True)
                ]
                con.execute(f"CREATE TEMP VIEW {name} AS SELECT {', '.join(columns)} FROM {name}_arrow")
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
            values = python_values(table.column(i), "INTERVAL")
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
