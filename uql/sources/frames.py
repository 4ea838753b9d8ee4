"""Data frames of the caller as DuckDB tables: registered under private names, on the catalog's own cursor."""

from __future__ import annotations

import re
import sys
from collections import ChainMap
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.arrow_values import holds_least
from uql.base.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MADE_BY = "uql: estimates of"  # among what is noted of a frame; begins the name under which a relation reads estimates
_NAMED_IN_RELATION = re.compile(f'"{MADE_BY} ((?:[^"]|"")*)"')


class Frames:
    """The frames registered so far; the same object keeps its name, another object under the same name replaces it.

    A data frame may have been changed in place since the last statement, and a relation's rows are those of the tables behind it:
    both are registered anew for each look.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursor = cursor
        self._cache: dict[str, tuple[object, str]] = {}
        self._count = 0

    def register(self, name: str, frame: object) -> str:
        """The private table name of a pandas or polars frame, a pyarrow table or a relation of DuckDB's, registered if it is not yet.

        Raises: DataError (UQL504) when the object is not a table, or DuckDB cannot read it.
        """
        entry = self._cache.get(name)
        same = entry is not None and entry[0] is frame
        if entry is not None and same and not _may_change(frame):
            return entry[1]
        private = entry[1] if entry is not None and same else f"__uql_frame_{self._count}"
        self._count += 1
        try:
            table = as_table(name, frame)
            _refuse_least(table)
            self._cursor.register(private, table)
        except duckdb.TransactionException:  # an error has ended it
            raise
        except _UNREADABLE as error:
            raise self._unreadable(name, frame, error) from error
        if entry is not None and not same:
            self._cursor.unregister(entry[1])
        self._cache[name] = (frame, private)
        return private

    def _unreadable(self, name: str, frame: Any, error: Exception) -> DataError:
        """The error of a frame that DuckDB cannot read, with the columns that are at fault, each tried alone."""
        faulty: list[str] = []
        names = [str(column) for column in getattr(frame, "column_names", getattr(frame, "columns", ()))]
        for i, column in enumerate(names):
            one = frame.iloc[:, [i]] if hasattr(frame, "iloc") else frame.select([i if _is_arrow(frame) else column])
            try:
                table = as_table(name, one)
                _refuse_least(table)
                self._cursor.register("__uql_column", table)
                self._cursor.unregister("__uql_column")
            except _UNREADABLE as why:
                faulty.append(column)
                error = why
        of = f", column {', '.join(faulty)}" if faulty else ""
        way = f"cast {faulty[0]} to another type, or leave it out" if faulty else "hand over a pyarrow Table"
        return DataError(f"{name}{of} cannot be read as a table: {error}", code="UQL504", help=way)


_UNREADABLE = (duckdb.Error, ValueError, TypeError, NotImplementedError)  # pyarrow's errors are some of these


def visible(frame: FrameType | None) -> Mapping[str, Any]:
    """The names that the caller can see, for data frames in FROM."""
    if frame is None:
        return {}
    return ChainMap(dict(frame.f_locals), frame.f_globals)


def is_frame(value: object) -> bool:
    """Is it something that may stand after FROM? Looks at modules already imported, so nothing is imported for it."""
    return any(isinstance(value, kind) for kind in _kinds())


def marked(table: pa.Table, made_by: str) -> pa.Table:
    """An Arrow table that says of which statement its estimates, or its part of the rows, are."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), MADE_BY: made_by})


def made_by(frame: Any) -> str | None:
    """The statement that put estimates, or a part of the rows, into a result, or into a frame made of one; None: no statement is named.

    A pandas frame keeps it in `attrs`, a polars frame itself, an Arrow table in its metadata, a relation in the name of what it reads.
    What else is made of the first three may lose it.
    """
    if not getattr(frame, "exact", True):
        return str(getattr(frame, "text", ""))
    if isinstance(frame, duckdb.DuckDBPyRelation):
        name = _NAMED_IN_RELATION.search(frame.sql_query())
        return None if name is None else name[1].replace('""', '"')
    if type(frame).__module__.startswith("polars"):
        of_frame: str | None = vars(frame).get(MADE_BY)
        return of_frame
    in_arrow = type(frame).__module__.partition(".")[0] == "pyarrow"
    noted = (getattr(frame.schema, "metadata", None) if in_arrow else getattr(frame, "attrs", None)) or {}
    words = noted.get(MADE_BY) or noted.get(MADE_BY.encode())
    return words.decode() if isinstance(words, bytes) else words


def as_table(name: str, frame: Any) -> Any:
    """What DuckDB can register: pandas and pyarrow as they are, polars and relations as Arrow, a lazy frame collected."""
    if not is_frame(frame):
        raise DataError(
            f"{name} is a {type(frame).__name__}, not a table",
            code="UQL504",
            help="FROM takes results of queries, relations, pandas and polars data frames, pyarrow tables and record batches; "
            "pandas.DataFrame(…) makes one of a list or a dict, .read_all() of a reader",
        )
    polars = sys.modules.get("polars")
    if polars is not None:
        if isinstance(frame, polars.LazyFrame):
            frame = frame.collect()
        if isinstance(frame, polars.DataFrame):
            if polars.Object in frame.dtypes:  # they would be read as their addresses
                raise TypeError("a column of Python objects has no type")
            return frame.to_arrow()
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.to_arrow_table()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _with_texts(frame)
    if hasattr(frame, "estimates"):  # a result of UQL's
        return frame.arrow()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(frame, arrow.RecordBatch):
        return arrow.Table.from_batches([frame])
    return frame


def _refuse_least(table: Any) -> None:
    """Raises ValueError for -2^127 in a DECIMAL, as Arrow has HUGEINT's least value: DuckDB fails on its text, and its database with it."""
    if not _is_arrow(table):
        return
    if any(map(holds_least, table.columns)):
        raise ValueError("it holds -2^127, which is beyond the 38 digits of a DECIMAL")


def _is_arrow(frame: object) -> bool:
    return type(frame).__module__.startswith("pyarrow")


def _may_change(frame: object) -> bool:
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return True
    return any(
        (loaded := sys.modules.get(module)) is not None and isinstance(frame, loaded.DataFrame)
        for module in ("pandas", "polars")
    )


def _with_texts(frame: Any) -> Any:
    """A pandas frame with its columns of objects that are all missing as texts: DuckDB would take them for numbers.

    Of a frame without rows `[]` is float64: where no column has another type than that, they are objects, which have none.
    """
    kinds = [dtype.kind for dtype in frame.dtypes]
    if not len(frame):
        return frame.astype(object) if set(kinds) == {"f"} else frame
    missing = [i for i, kind in enumerate(kinds) if kind == "O" and frame.iloc[:, i].first_valid_index() is None]
    if not missing:
        return frame
    copy = frame.copy(deep=False)
    for i in missing:
        copy.isetitem(i, copy.iloc[:, i].astype("string"))
    return copy


def _kinds() -> tuple[type, ...]:
    types: list[type] = [duckdb.DuckDBPyRelation]
    for module, names in (
        ("pandas", ("DataFrame",)),
        ("polars", ("DataFrame", "LazyFrame")),
        ("pyarrow", ("Table", "RecordBatch")),
        ("uql.api.result", ("Result",)),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None:
            types += [getattr(loaded, name) for name in names if hasattr(loaded, name)]
    return tuple(types)
