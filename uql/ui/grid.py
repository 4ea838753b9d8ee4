"""The rows of a result as the grid reads them: a window that is sorted and filtered here, whole cells, statistics of columns, files."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.base.errors import DataError
from uql.base.media_types import MOST_HEAD, UNKNOWN, media_type
from uql.base.printable import printable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from uql.engine.outcome import Outcome

MAX_PAGE = 1_000  # rows in one reply
MAX_CELL = 300  # characters of a cell in the grid; a click reads the whole
MAX_COLUMNS = 50  # whose statistics are in one reply
BINS = 16  # of a histogram
TOP = 5  # most frequent values
SHOWN = ("image/", "audio/", "video/")  # media types that the browser draws; everything else is sent as text
FILES = {"csv": "text/csv", "md": "text/markdown", "parquet": "application/vnd.apache.parquet"}
_NAMED = re.compile(r"\.(?:(png|jpe?g|gif|webp)|(mp3|wav|flac|ogg|opus|m4a)|(mp4|webm|mov))$", re.IGNORECASE)
_COMPARED = re.compile(r"\s*(<=|>=|!=|<|>|=)\s*(.+)", re.DOTALL)
_ORDERED = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|FLOAT|DECIMAL\([\d,]*\)|DATE|TIMESTAMP[\w ]*")


def window(
    outcome: Outcome, offset: int, limit: int, order: Sequence[int] = (), filters: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """A part of the rows: `total` rows that pass the filters, the `numbers` of those sent, and their `rows` as texts, None for NULL.

    Args:
        offset: of the first row, among those that pass.
        limit: rows, at most MAX_PAGE.
        order: columns from 1 on, the first key first, negative for descending; the rows' own order decides between equals.
        filters: by column from 1 on: a part of the text in any case, `> 3` (also < <= >= = !=), `null` or `!null`.
    Raises: DataError (UQL513) for a column that is not there.
    """
    import pyarrow as pa

    offset, limit = max(0, offset), max(0, min(limit, MAX_PAGE))
    data, filters = outcome.table, filters or {}
    if any(not 1 <= column <= data.num_columns for column in (*map(abs, order), *filters)):
        raise DataError(f"the result has {data.num_columns} columns", code="UQL513")
    if order or filters:
        tests, values = [], []
        for column, text in filters.items():
            test, value = _test(f"c{column}", outcome.types[column - 1], text)
            tests.append(test)
            values += value
        where = " AND ".join(tests) or "true"
        keys = "".join(f"c{abs(key)} {'DESC' if key < 0 else 'ASC'} NULLS LAST, " for key in order)
        with _numbered(data) as con:
            matches = con.execute(
                f"SELECT n FROM numbered WHERE {where} ORDER BY {keys}n LIMIT {limit} OFFSET {offset}", values
            )
            numbers = [n for (n,) in matches.fetchall()]
            (total,) = con.execute(f"SELECT count(*) FROM numbered WHERE {where}", values).fetchall()[0]
        part = data.take(pa.array(numbers, pa.int64()))
    else:
        part, total = data.slice(offset, limit), data.num_rows
        numbers = list(range(offset, offset + part.num_rows))
    return {"total": total, "numbers": numbers, "rows": _texts(outcome, part, numbers)}


def media(outcome: Outcome) -> list[str]:
    """(columns,) "image", "audio" or "video" where the first value is one or names one, else ""."""
    kinds = []
    for column, kind in zip(outcome.table.columns, outcome.types, strict=True):
        medium = ""
        if kind in ("BLOB", "VARCHAR"):
            first = next((v for scalar in column.slice(0, 100) if (v := scalar.as_py())), None)
            if isinstance(first, bytes):
                medium = media_type(first).partition("/")[0]
            elif isinstance(first, str) and len(first) < 1_000 and (match := _NAMED.search(first)):
                medium = next(k for k, part in zip(("image", "audio", "video"), match.groups(), strict=True) if part)
        kinds.append(medium if f"{medium}/" in SHOWN else "")
    return kinds


def cell(outcome: Outcome, row: int, column: int, load: Callable[[str, str], object]) -> tuple[bytes, str]:
    """One whole value and its media type: the bytes of an image, a sound or a film, else UTF-8 text; JSON and nested values indented.

    Args:
        row: from 0 on.
        column: from 0 on.
        load: reads the file that a value of a column of media names: path and "image", "audio" or "video" → bytes, or why there are none.
    Raises: DataError (UQL513) where there is no such cell.
    """
    if not (0 <= row < outcome.table.num_rows and 0 <= column < outcome.table.num_columns):
        raise DataError(f"there is no cell {row}, {column}", code="UQL513")
    value: Any = None
    with suppress(OverflowError):  # a date or an interval beyond Python's: it is shown as DuckDB's text
        value = outcome.table.column(column)[row].as_py()
    kind = media(outcome)[column] if isinstance(value, str) else ""
    if kind:
        read = load(value, kind)
        value = read if isinstance(read, bytes) else f"{value}\n\n{getattr(read, 'message', read)}"
    if isinstance(value, bytes):
        mime = media_type(value)
        if mime.startswith(SHOWN):
            return value, mime
        value = f"{'BLOB' if mime == UNKNOWN else mime}, {len(value):,} bytes\n{value[:4_096].hex(' ')}"
    if isinstance(value, str):
        return _indented(value).encode("utf-8", "replace"), "text/plain"
    if isinstance(value, list | dict):
        return json.dumps(value, indent=2, ensure_ascii=False, default=str).encode(), "text/plain"
    (text,) = _texts(outcome, outcome.table.slice(row, 1), [row])[0][column : column + 1]
    return ("NULL" if text is None else text).encode(), "text/plain"


def statistics(outcome: Outcome) -> list[dict[str, Any]]:
    """Of each column, the first MAX_COLUMNS: name, type, `missing` and `distinct` values; `low`, `high` and a histogram, `bins`, of BINS
    equal steps where values are ordered, else the `top` TOP most frequent values."""
    import duckdb

    columns: list[dict[str, Any]] = []
    with _numbered(outcome.table) as con:
        names = zip(outcome.table.column_names[:MAX_COLUMNS], outcome.types[:MAX_COLUMNS], strict=True)
        for number, (name, kind) in enumerate(names, 1):
            c = f"c{number}"
            missing, distinct = con.execute(
                f"SELECT count(*) - count({c}), count(DISTINCT {c}) FROM numbered"
            ).fetchall()[0]
            about: dict[str, Any] = {"name": name, "type": kind, "missing": missing, "distinct": distinct}
            if _ORDERED.fullmatch(kind):
                with suppress(duckdb.Error):  # values whose differences are beyond DOUBLE have no histogram
                    about |= _ordered(con, c, kind)
            elif kind != "BLOB":
                top = f"SELECT left(CAST({c} AS VARCHAR), 60), count(*) AS n FROM numbered WHERE {c} IS NOT NULL GROUP BY 1"
                about["top"] = [
                    [printable(value), n]
                    for value, n in con.execute(f"{top} ORDER BY n DESC, 1 LIMIT {TOP}").fetchall()
                ]
            columns.append(about)
    return columns


def exported(outcome: Outcome, ending: str) -> bytes:
    """All rows as a file, estimates with their bounds. Args: ending: a key of FILES."""
    from uql.show import render

    if ending == "parquet":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            render.write_parquet(outcome.noted(), path, estimates=outcome.estimates)
            return path.read_bytes()
    stream = io.StringIO()
    write = render.write_csv if ending == "csv" else render.write_markdown
    write(outcome.table, stream, estimates=outcome.estimates)
    return stream.getvalue().encode()


@contextmanager
def _numbered(data: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of its own with the rows as `numbered`: n from 0 on, columns c1, c2 …"""
    import numpy as np
    import pyarrow as pa

    from uql.base.arrow_values import duckdb_with

    table = data.rename_columns([f"c{i}" for i in range(1, data.num_columns + 1)])
    with duckdb_with(table.append_column("n", pa.array(np.arange(data.num_rows))), "numbered") as con:
        yield con


def _test(column: str, kind: str, text: str) -> tuple[str, list[str]]:
    """A filter's text as a condition of DuckDB, and the values of its holes."""
    if text.strip().lower() in ("null", "!null"):
        return f"{column} IS {'NOT ' if '!' in text else ''}NULL", []
    compared = _COMPARED.fullmatch(text)
    if compared:
        sign, value = compared.groups()
        return f"{column} {sign} TRY_CAST(? AS {kind if kind != 'BLOB' else 'VARCHAR'})", [value.strip()]
    return f"contains(lower(CAST({column} AS VARCHAR)), lower(?))", [text]


def _ordered(con: duckdb.DuckDBPyConnection, column: str, kind: str) -> dict[str, Any]:
    at = f"epoch({column})" if kind.startswith(("DATE", "TIMESTAMP")) else f"CAST({column} AS DOUBLE)"
    low, high, least, most = con.execute(
        f"SELECT CAST(min({column}) AS VARCHAR), CAST(max({column}) AS VARCHAR), min({at}), max({at})"
        f" FROM numbered WHERE isfinite({at})"
    ).fetchall()[0]
    if least is None:
        return {}
    step = (most - least) / BINS or 1.0
    bins = [0] * BINS
    for position, n in con.execute(
        f"SELECT least({BINS - 1}, floor(({at} - ?) / ?)::INT), count(*) FROM numbered WHERE isfinite({at}) GROUP BY 1",
        [least, step],
    ).fetchall():
        bins[position] = n
    return {"low": low, "high": high, "bins": bins}


def _texts(outcome: Outcome, part: pa.Table, numbers: Sequence[int]) -> list[list[str | None]]:
    """The rows `numbers` as texts, the long ones cut, bytes by their type and size."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from uql.show.render import cells

    for i, (name, kind) in enumerate(zip(part.column_names, outcome.types, strict=True)):
        if kind == "BLOB":
            sizes, heads = pc.binary_length(part.column(i)), pc.binary_slice(part.column(i), 0, MOST_HEAD)
            descriptions = [
                None if size is None else f"{media_type(head)}, {size:,} bytes"
                for size, head in zip(sizes.to_pylist(), heads.to_pylist(), strict=True)
            ]
            part = part.set_column(i, name, pa.array(descriptions, pa.string()))
    return [
        [text if text is None or len(text) <= MAX_CELL else f"{text[:MAX_CELL]}…" for text in row]
        for row in cells(part, numbers, outcome.types, outcome.estimates)
    ]


def _indented(text: str) -> str:
    """JSON with two spaces a level; any other text as it is."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass
    return text
