"""A folder of Parquet files as tables, and the share of each table that one of several processes reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import duckdb

from uql.base.errors import DataError
from uql.base.sql_text import first_line, quote
from uql.sources.files import file_literal

FOOTER = 8  # bytes at the end of a Parquet file: the length of what describes its rows, and a mark


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table of one Parquet file or more; its rows are numbered in the order of the files.

    Attributes:
        name: of the sub-folder, or of the file without its ending.
        files: paths, sorted.
        rows: of each file.
        content: a hash of what the files' footers say: of names, types, sizes, and least and greatest values.
        columns: SQL of the columns, with the types that the first file gives them in DuckDB: a share may begin with another.
        states: when each file was last written, in ns since the epoch, and its bytes.
    """

    name: str
    files: tuple[str, ...]
    rows: tuple[int, ...]
    content: int
    columns: str = "*"
    states: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        """Rows of all files."""
        return sum(self.rows)

    def check_unchanged(self) -> None:
        """Raises: DataError (UQL503) where a file was written since the connection was opened: runs are known by what was there then."""
        for file, state in zip(self.files, self.states, strict=False):
            if not Path(file).exists() or _state(file) != state:
                raise DataError(
                    f"the file {file} was changed since the connection was opened",
                    code="UQL503",
                    help="open the connection anew: rows that did not change keep their answers",
                )

    def share(self, shard: int, shards: int) -> str:
        """SQL of the rows that one of several shards reads: a run of rows, as many as another's but for one.

        >>> LakeTable("t", ("a.parquet", "b.parquet"), (4, 4), 0, "i::INTEGER AS i").share(0, 2)
        "SELECT i::INTEGER AS i FROM system.main.read_parquet(['a.parquet'])"
        >>> LakeTable("t", ("a.parquet",), (4,), 0, "i::INTEGER AS i").share(1, 2)
        "SELECT i::INTEGER AS i FROM system.main.read_parquet(['a.parquet'], file_row_number = true) WHERE file_row_number BETWEEN 2 AND 3"
        """
        start, stop = (self.total * i // shards for i in (shard, shard + 1))
        parts: list[str] = []
        whole: list[str] = []
        first = 0
        for file, rows in zip(self.files, self.rows, strict=True):
            begin, end = max(0, start - first), min(rows, stop - first)
            first += rows
            if begin >= end:
                continue
            if end - begin == rows:
                whole.append(file)
            else:
                parts += [reading(whole, self.columns)] if whole else []
                whole = []
                numbered = reading([file], self.columns, ", file_row_number = true")
                parts.append(f"{numbered} WHERE file_row_number BETWEEN {begin} AND {end - 1}")
        parts += [reading(whole, self.columns)] if whole else []
        return " UNION ALL ".join(parts) or f"{reading(self.files, self.columns)} LIMIT 0"


def reading(files: Sequence[str], columns: str = "*", options: str = "") -> str:
    """SQL that reads Parquet files, in this order.

    Args:
        columns: SQL of what is read of each row.
        options: of read_parquet, after a comma.
    """
    return f"SELECT {columns} FROM system.main.read_parquet([{', '.join(map(file_literal, files))}]{options})"


def view(name: str, sql: str) -> str:
    """SQL that makes a view."""
    return f"CREATE OR REPLACE VIEW {name} AS {sql}"


def tables_of(folder: Path, duck: duckdb.DuckDBPyConnection) -> tuple[LakeTable, ...]:
    """The tables of a folder: each Parquet file in it, and each sub-folder with Parquet files at any depth.

    Raises: DataError (UQL501) where there are none, (UQL503) where one cannot be read.
    """
    files_by_table: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.name.startswith((".", "_")):
            continue
        if path.is_dir():
            files_by_table[path.name] = [str(file) for file in sorted(path.rglob("*.parquet"))]
        elif path.suffix == ".parquet":
            files_by_table[path.stem] = [str(path)]
    if not any(files_by_table.values()):
        raise DataError(
            f"the folder {folder} holds no Parquet files",
            code="UQL501",
            help="each Parquet file is a table, and each sub-folder of Parquet files: COPY t TO 'lake/t.parquet'",
        )
    return tuple(_table(name, files, duck) for name, files in files_by_table.items() if files)


def _table(name: str, files: list[str], duck: duckdb.DuckDBPyConnection) -> LakeTable:
    listed = ", ".join(map(file_literal, files))
    try:
        rows = dict(
            duck.execute(f"SELECT file_name, num_rows FROM system.main.parquet_file_metadata([{listed}])").fetchall()
        )
        duck.execute(view(quote(name), reading(files)))
        described = duck.execute(f"DESCRIBE {reading(files)}").fetchall()
        in_first = duck.execute(f"DESCRIBE {reading(files[:1], options=', hive_partitioning = false')}").fetchall()
        lower_names = "system.main.list(system.main.lower(name))"
        names_sql = f"SELECT file_name, {lower_names} FROM system.main.parquet_schema([{listed}]) GROUP BY file_name"
        names = dict(duck.execute(names_sql).fetchall())
    except duckdb.Error as error:
        raise DataError(
            f"the Parquet files of {name} cannot be read: {first_line(error)}",
            code="UQL503",
            help="take a file that is none out of the folder, or begin its name with _ or a dot",
        ) from error
    for file in files:
        missing = [column for column, *_ in in_first if column.lower() not in names[file]]
        if missing:
            raise DataError(
                f"the file {file} has no column {missing[0]}, which {files[0]} has",
                code="UQL503",
                help=f"files of one table have the columns of its first: COPY (FROM read_parquet('{name}/**/*.parquet', "
                f"union_by_name = true)) TO '{name}.parquet' makes one of them, with NULL where a column is missing",
            )
    content = blake2b(digest_size=8)
    for file in files:
        content.update(_footer(Path(file)))
    columns = ", ".join(f"CAST({quote(column)} AS {type_}) AS {quote(column)}" for column, type_, *_ in described)
    numbers, states = tuple(rows[file] for file in files), tuple(map(_state, files))
    return LakeTable(name, tuple(files), numbers, int.from_bytes(content.digest(), "big"), columns, states)


def _state(file: str) -> tuple[int, int]:
    status = Path(file).stat()
    return status.st_mtime_ns, status.st_size


def _footer(file: Path) -> bytes:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(size - FOOTER)
        length = int.from_bytes(opened.read(4), "little")
        opened.seek(max(0, size - FOOTER - length))
        return opened.read(length)
