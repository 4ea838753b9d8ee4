"""Folders and files as tables: pictures, sounds, documents and texts one row a file, SQLite databases one table a table."""

from __future__ import annotations

import codecs
import glob
import logging
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.base.errors import DataError
from uql.base.printable import printable
from uql.base.sql_text import first_line, literal, quote
from uql.sources.files import ENDINGS, READERS, file_literal, file_sql, reader

if TYPE_CHECKING:
    import duckdb

log = logging.getLogger("uql")

FORMATS = {  # of files by whatever name
    "csv": "system.main.read_csv([{}])",
    "json": "system.main.read_json([{}])",
    "jsonl": "system.main.read_json([{}], format = 'newline_delimited')",
    "parquet": "system.main.read_parquet([{}])",
}
LOOKED_AT = 1_000  # texts whose first bytes are read when they become a table
HEAD = 65_536  # bytes
BATCH = 10_000  # rows of SQLite that are held at once


def register(
    connection: duckdb.DuckDBPyConnection, name: str, source: object, type: str | None = None
) -> tuple[str, ...]:
    """Makes files or a data frame a table of the session, as `Connection.register` says.

    Args:
        source: as `Connection.register` says.
        type: None: what the endings say.
    Raises: DataError (UQL503) where they cannot be read.
    """
    import duckdb

    from uql.sources.frames import as_table

    try:
        if isinstance(source, str | Path):
            return register_files(connection, name, source, type)
        table = as_table(name, source)
        connection.register(name, table)
    except duckdb.Error as error:
        raise DataError(f"{name}: {first_line(error)}", code="UQL503") from error
    return (name,)


def unregister(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Takes back what `register` made under this name; tables and views of the database are left."""
    connection.unregister(name)
    rows = connection.execute(
        "SELECT table_type FROM information_schema.tables WHERE table_catalog = 'temp' AND table_name = ?", [name]
    ).fetchall()
    for (kind,) in rows:
        what = "VIEW" if kind == "VIEW" else "TABLE"
        connection.execute(f"DROP {what} IF EXISTS temp.{quote(name)}")


def register_files(
    connection: duckdb.DuckDBPyConnection, name: str, path: str | Path, type: str | None = None
) -> tuple[str, ...]:
    """Makes a folder, a file or a glob a table of the session.

    Args:
        connection: the session that shall see it.
        name: of the table. A SQLite database of several tables gives `name_table` for each.
        type: image, audio, video, document, text, sqlite, table (CSV, JSON, Parquet by their endings), or csv, json, jsonl, parquet
            whatever the files are called; None: what the endings say.
    Returns: the names of the tables. Files are read when a query needs them, except those of SQLite. A text that is not UTF-8 is NULL, with
        the reason in the column `error`.
    Raises: DataError: UQL501 nothing there, UQL503 nothing of a known type, UQL505 an unknown type.
    """
    if type is not None and type not in (*ENDINGS, *FORMATS):
        type = type.lower().removesuffix("s")  # images
    if type is not None and type not in (*ENDINGS, *FORMATS):
        types = ", ".join((*ENDINGS, *FORMATS))
        raise DataError(f"there is no type {type!r} of files", code="UQL505", help=f"types: {types}")
    files = list_files(path)
    if not files:
        raise DataError(f"{path}: there is no such file, and no folder with files", code="UQL501")
    if type in FORMATS:
        listed = ", ".join(map(file_literal, files))
        _view(connection, name, f"SELECT * FROM {FORMATS[type].format(listed)}", None, "")
        return (name,)
    kind = type or kind_of(files)
    if kind is None:
        listing = "; ".join(f"{what}: {' '.join(endings)}" for what, endings in ENDINGS.items())
        raise DataError(f"{path}: no file of a known type", code="UQL503", help=f"give type = …, or endings: {listing}")
    if kind == "sqlite":
        return tuple(table for file in files for table in _sqlite(connection, name, file))
    if kind == "table":
        chosen = [file for file in files if reader(str(file))]
        if not chosen:
            raise DataError(f"{path}: no CSV, JSON or Parquet file", code="UQL503")
        _tell_left_out(name, kind, files, chosen)
        body = " UNION ALL BY NAME ".join(f"SELECT * FROM {file_sql(glob.escape(str(file)))}" for file in chosen)
        _view(connection, name, body, None, "")
        return (name,)
    chosen = [file for file in files if file.suffix.lower() in _endings(kind)] if type is None else files
    _tell_left_out(name, kind, files, chosen)
    folder = Path(path) if Path(path).is_dir() else None
    paths = ", ".join(map(file_literal, chosen))
    begin = len(str(folder)) + 2 if folder is not None else 1
    file_column = (
        f"filename[{begin}:] AS file" if folder is not None else "system.main.parse_filename(filename) AS file"
    )
    value = f"content AS {kind}"
    if kind == "text":
        _tell_not_utf8(name, chosen[:LOOKED_AT])
        text = "TRY(system.main.decode(content))"
        value = f"{text} AS text, CASE WHEN {text} IS NULL THEN 'it is not UTF-8' END AS error"
    _view(
        connection,
        name,
        f"SELECT {file_column}, {value} FROM system.main.read_blob([{paths}]) ORDER BY filename",
        kind,
        kind,
    )
    return (name,)


def list_files(path: str | Path) -> list[Path]:
    """The files of a folder (with those below it), of a glob, or the file itself; sorted, hidden ones left out.

    Links that lead out of the folder are left out too, with a warning: whoever sent the folder chose where they lead.
    """
    where = Path(path).expanduser()
    if where.is_dir():
        inside: list[Path] = []
        outside: list[Path] = []
        for file in where.rglob("*"):
            (inside if not file.is_symlink() or _leads_into(file, where) else outside).append(file)
        if outside:
            log.warning(
                "%d links in %s lead out of it and were left out, as %s; a glob takes them: %s",
                len(outside), where, printable(outside[0].name), where / "**" / "*",
            )  # fmt: skip
        listed: Iterator[Path] = iter(inside)
    elif where.exists() or not glob.has_magic(str(where)):
        listed = iter([where])
    else:
        listed = (Path(name) for name in glob.glob(str(where), recursive=True))
    return sorted(file for file in listed if file.is_file() and not file.name.startswith("."))


def _leads_into(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # it leads to itself
        return False


def kind_of(files: Sequence[Path]) -> str | None:
    """What most of the files are by their endings, None where no ending is known. Beside a document a text is a document too.

    >>> kind_of([Path("a.png"), Path("b.JPG"), Path("notes.txt")])
    'image'
    >>> kind_of([Path("a.pdf"), Path("b.txt"), Path("c.txt")])
    'document'
    """
    kinds = [kind for file in files for kind, endings in ENDINGS.items() if file.suffix.lower() in endings]
    kinds += ["table" for file in files if reader(str(file)) and file.suffix.lower() not in READERS]
    if "document" in kinds:
        kinds = ["document" if kind == "text" else kind for kind in kinds]
    return max(ENDINGS, key=kinds.count) if kinds else None


def _endings(kind: str) -> tuple[str, ...]:
    return ENDINGS[kind] + (ENDINGS["text"] if kind == "document" else ())


def _tell_left_out(name: str, kind: str, files: Sequence[Path], chosen: Sequence[Path]) -> None:
    """A warning of the log where files are of another kind than the table's."""
    left = Counter(file.suffix.lower() or "no ending" for file in set(files).difference(chosen))
    if left:
        what = printable(", ".join(f"{ending} {count:,}" for ending, count in left.most_common(5)))
        log.warning(
            "%s holds the files of the kind %s; %d of %d were left out: %s; type = … chooses the kind",
            name, kind, left.total(), len(files), what,
        )  # fmt: skip


def _tell_not_utf8(name: str, files: Sequence[Path]) -> None:
    """A warning of the log where texts are in another encoding: their rows have no text."""
    others = [file for file in files if not _begins_as_utf8(file)]
    if others:
        log.warning(
            "%s: %s of %s are not UTF-8, as %s: their text is NULL; convert them: iconv -f latin1 -t utf-8 FILE",
            name, f"{len(others):,}", f"{len(files):,} texts", printable(others[0].name),
        )  # fmt: skip


def _begins_as_utf8(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            codecs.getincrementaldecoder("utf-8")().decode(opened.read(HEAD))
    except UnicodeDecodeError:
        return False
    except OSError:  # DuckDB says why, when a query reads it
        return True
    return True


def _view(connection: duckdb.DuckDBPyConnection, name: str, body: str, column: str | None, comment: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {quote(name)} AS {body}")
    if column is not None:
        connection.execute(f"COMMENT ON COLUMN {quote(name)}.{quote(column)} IS {literal(comment)}")


def _sqlite(connection: duckdb.DuckDBPyConnection, name: str, file: Path) -> Iterator[str]:
    """The tables of a SQLite database, copied: DuckDB's own reader of it is an extension that would have to be fetched."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source:
            listed = source.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            tables = [str(table) for (table,) in listed]
            for table in tables:
                table_name = name if len(tables) == 1 else f"{name}_{table}"
                _copied(connection, table_name, source.execute(f"SELECT * FROM {quote(table)}"))
                yield table_name
    except sqlite3.Error as error:
        raise DataError(f"{file} cannot be read as a SQLite database: {error}", code="UQL503") from error
    if not tables:
        raise DataError(f"{file} holds no table", code="UQL503")


def _copied(connection: duckdb.DuckDBPyConnection, name: str, rows: sqlite3.Cursor) -> None:
    """SQLite's values have types of their own, not its columns: a column of numbers is one, any other is text or bytes."""
    import pyarrow as pa

    columns = [str(column[0]) for column in rows.description]
    all_rows: list[tuple[Any, ...]] = []
    while batch := rows.fetchmany(BATCH):
        all_rows += batch
    values = zip(*all_rows, strict=True) if all_rows else [() for _ in columns]
    arrow = pa.table({column: _array(list(v)) for column, v in zip(columns, values, strict=True)})
    connection.register("__sqlite", arrow)
    try:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {quote(name)} AS SELECT * FROM __sqlite")
    finally:
        connection.unregister("__sqlite")


def _array(values: list[Any]) -> Any:
    import pyarrow as pa

    kinds = {type(v) for v in values if v is not None}
    if not kinds:
        return pa.array(values, type=pa.string())
    if len(kinds) == 1 or kinds == {int, float}:
        return pa.array([float(v) if v is not None and kinds == {int, float} else v for v in values])
    return pa.array(
        [v.decode("utf-8", "replace") if isinstance(v, bytes) else None if v is None else str(v) for v in values]
    )
