"""The tables of a folder of files, a DuckDB database or a DuckLake, and the share of each that one of several processes reads."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b, file_digest
from itertools import accumulate
from pathlib import Path

import duckdb

from uql.base.errors import DataError
from uql.base.sql_text import first_line, literal, quote
from uql.base.user_folder import user_folder
from uql.features.store import FOLDER
from uql.sources.files import READERS, file_literal, reader

FOOTER = 8  # bytes at the end of a Parquet file: the length of what describes its rows, and a mark
PARQUET = "read_parquet"
DUCKLAKE = "ducklake:"  # begins the address of one
DATABASE = "__uql_lake"  # the name under which a database is attached, which no list shows


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table of a lake; its rows are numbered in the order in which DuckDB reads them on one thread.

    Attributes:
        name: of the sub-folder, of the file without its ending, or of the table of a database.
        files: paths, sorted.
        rows: of each file; of a table that is not of Parquet files, of all of it.
        content: a hash: of Parquet files of what their footers say (of names, types, sizes, and least and greatest values), of other
            files of their bytes, of a table of a database of the state that was opened.
        columns: SQL of the columns, with the types that the first file gives them in DuckDB: a share may begin with another.
        states: when each file was last written, in ns since the epoch, and its bytes.
        scan: what stands in FROM for a table that is not of Parquet files.
        order: ORDER BY of a scan whose rows come in another order each time; "" where they come in one.
    """

    name: str
    files: tuple[str, ...]
    rows: tuple[int, ...]
    content: int
    columns: str = "*"
    states: tuple[tuple[int, int], ...] = ()
    scan: str = ""
    order: str = ""

    @property
    def total(self) -> int:
        """Rows of all files."""
        return sum(self.rows)

    @property
    def whole(self) -> str:
        """SQL of all its rows."""
        return f"SELECT * FROM {self.scan}" if self.scan else reading(self.files)

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

        It is one scan: the parts of a UNION ALL may come in any order (DuckDB 1.4). DuckDB skips most of what lies before OFFSET.

        >>> LakeTable("t", ("a.parquet", "b.parquet"), (4, 4), 0, "i::INTEGER AS i").share(0, 2)
        "SELECT i::INTEGER AS i FROM system.main.read_parquet(['a.parquet']) LIMIT 4 OFFSET 0"
        >>> LakeTable("t", (), (5,), 0, scan="lake.main.t").share(1, 2)
        'SELECT * FROM lake.main.t LIMIT 3 OFFSET 2'
        """
        start, stop = (self.total * i // shards for i in (shard, shard + 1))
        if self.scan:
            return f"{self.whole}{self.order} LIMIT {stop - start} OFFSET {start}"
        ends = list(accumulate(self.rows))
        first, last = bisect_right(ends, start), bisect_left(ends, stop)  # the files in which the run begins and ends
        files = self.files[first : last + 1] or self.files[:1]
        skipped = ends[first - 1] if first else 0
        return f"{reading(files, self.columns)} LIMIT {stop - start} OFFSET {start - skipped}"


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


@dataclass(frozen=True, slots=True)
class Lake:
    """What a connection with a cluster is opened over.

    Attributes:
        place: the path beside which vectors are kept: its own, or in the user's folder where it has none.
        tables: of it.
        setup: SQL that makes the tables known to a connection of DuckDB.
    """

    place: Path
    tables: tuple[LakeTable, ...]
    setup: tuple[str, ...] = ()

    @property
    def vectors(self) -> Path:
        """The folder in which shards keep what they embedded."""
        return self.place.with_name(f"{self.place.name}{FOLDER}") / "shards"


def open_lake(path: str | Path, duck: duckdb.DuckDBPyConnection) -> Lake:
    """The lake at a path, whose tables become views of `duck`.

    Args:
        path: of a folder, of a file that DuckDB reads, of a DuckDB database, or "ducklake:" and where the DuckLake has its catalog.
    Raises: DataError (UQL501) where there are no tables, (UQL503) where one cannot be read.
    """
    address = str(path)
    if address.startswith(DUCKLAKE):
        return _ducklake(address, duck)
    place = Path(path).expanduser().resolve()
    if not place.exists():
        raise DataError(f"there is no folder and no file {place}", code="UQL501")
    if place.is_dir() or reader(place.name):
        return Lake(place, tables_of(place, duck))
    files = [str(file) for file in (place, place.with_name(f"{place.name}.wal")) if file.exists()]
    setup = f"ATTACH {literal(str(place))} AS {DATABASE} (READ_ONLY)"
    _attach(setup, str(place), duck)
    return Lake(place, _of_database(str(place), files, str([*map(_state, files)]), duck), (setup,))


def _ducklake(address: str, duck: duckdb.DuckDBPyConnection) -> Lake:
    """The newest snapshot of a DuckLake: what is written after it, no shard sees."""
    local = Path(address.removeprefix(DUCKLAKE))
    place = local.resolve() if local.is_file() else user_folder() / f"ducklake-{_hash(address.encode()):x}"
    attach = f"ATTACH {literal(address)} AS {DATABASE} (READ_ONLY"
    _attach(f"{attach})", address, duck)
    ((snapshot,),) = duck.execute(
        f"SELECT system.main.max(snapshot_id) FROM system.main.ducklake_snapshots({literal(DATABASE)})"
    ).fetchall()
    duck.execute(f"DETACH {DATABASE}")
    setup = f"{attach}, SNAPSHOT_VERSION {snapshot})"
    _attach(setup, address, duck)
    tables = _of_database(address, (), str(snapshot), duck)
    return Lake(place, tuple(replace(table, order=" ORDER BY rowid") for table in tables), (setup,))


def _of_database(
    place: str, files: Sequence[str], state: str, duck: duckdb.DuckDBPyConnection
) -> tuple[LakeTable, ...]:
    """The tables of the main schema of the database that is attached.

    Args:
        place: its path or address.
        files: whose change makes it another.
        state: equal where its tables are.
    """
    sql = "SELECT table_name FROM system.main.duckdb_tables() WHERE schema_name = 'main' AND database_name = "
    names = sorted(name for (name,) in duck.execute(sql + literal(DATABASE)).fetchall())
    if not names:
        raise DataError(f"{place} has no tables in its schema main", code="UQL501")
    return tuple(
        _scanned(name, f"{DATABASE}.main.{quote(name)}", files, f"{place}\0{state}\0{name}".encode(), duck)
        for name in names
    )


def _attach(sql: str, place: str, duck: duckdb.DuckDBPyConnection) -> None:
    try:
        duck.execute(sql)
    except duckdb.Error as error:
        raise DataError(f"{place} cannot be opened: {first_line(error)}", code="UQL503") from error


def tables_of(folder: Path, duck: duckdb.DuckDBPyConnection) -> tuple[LakeTable, ...]:
    """The tables of a folder: each file in it that DuckDB reads, and each sub-folder with such files at any depth.

    Files whose name, or whose folder's, begins with a dot or _ are none of it, nor are others beside the Parquet files of a sub-folder.

    Args:
        folder: or one file.
    Raises: DataError (UQL501) where there are none, (UQL503) where one cannot be read, or two have one name.
    """
    files_by_table: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else [folder]:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        within = folder if folder.is_dir() else folder.parent
        named = [file for file in found if not any(part[0] in "._" for part in file.relative_to(within).parts)]
        files = [str(file) for file in named if reader(file.name) and file.is_file()]
        name = path.name if path.is_dir() else Path(path.name.removesuffix(".gz").removesuffix(".zst")).stem
        if name in files_by_table and files:
            raise DataError(
                f"{path} and {files_by_table[name][0]} would both be the table {name}",
                code="UQL503",
                help="rename one of them: a table has the name of its folder, or that of its file without the ending",
            )
        if files:
            files_by_table[name] = [file for file in files if reader(file) == PARQUET] or files
    if not files_by_table:
        raise DataError(
            f"{folder} holds no Parquet files, and no others that can be read",
            code="UQL501",
            help="each file is a table, and each sub-folder of files: COPY t TO 'lake/t.parquet'. Formats: "
            + ", ".join(sorted(READERS)),
        )
    return tuple(_of_files(name, files, duck) for name, files in files_by_table.items())


def _of_files(name: str, files: list[str], duck: duckdb.DuckDBPyConnection) -> LakeTable:
    functions = {reader(file) for file in files}
    if len(functions) > 1:
        raise DataError(
            f"the files of {name} have several formats", code="UQL503", help="one table has files of one format"
        )
    function = functions.pop()
    try:
        if function == PARQUET:
            return _of_parquet(name, files, duck)
        scan = f"system.main.{function}([{', '.join(map(file_literal, files))}])"
        return _scanned(name, scan, files, b"".join(map(_digest, files)), duck)
    except duckdb.Error as error:
        kind = "Parquet files" if function == PARQUET else "files"
        raise DataError(
            f"the {kind} of {name} cannot be read: {first_line(error)}",
            code="UQL503",
            help="take a file that is none out of the folder, or begin its name with _ or a dot",
        ) from error


def _of_parquet(name: str, files: list[str], duck: duckdb.DuckDBPyConnection) -> LakeTable:
    listed = ", ".join(map(file_literal, files))
    rows = dict(
        duck.execute(f"SELECT file_name, num_rows FROM system.main.parquet_file_metadata([{listed}])").fetchall()
    )
    duck.execute(view(quote(name), reading(files)))
    described = duck.execute(f"DESCRIBE {reading(files)}").fetchall()
    in_first = duck.execute(f"DESCRIBE {reading(files[:1], options=', hive_partitioning = false')}").fetchall()
    lower_names = "system.main.list(system.main.lower(name))"
    names_sql = f"SELECT file_name, {lower_names} FROM system.main.parquet_schema([{listed}]) GROUP BY file_name"
    names = dict(duck.execute(names_sql).fetchall())
    for file in files:
        missing = [column for column, *_ in in_first if column.lower() not in names[file]]
        if missing:
            raise DataError(
                f"the file {file} has no column {missing[0]}, which {files[0]} has",
                code="UQL503",
                help=f"files of one table have the columns of its first: COPY (FROM read_parquet('{name}/**/*.parquet', "
                f"union_by_name = true)) TO '{name}.parquet' makes one of them, with NULL where a column is missing",
            )
    content = _hash(b"".join(_footer(Path(file)) for file in files))
    columns = ", ".join(f"CAST({quote(column)} AS {type_}) AS {quote(column)}" for column, type_, *_ in described)
    numbers, states = tuple(rows[file] for file in files), tuple(map(_state, files))
    return LakeTable(name, tuple(files), numbers, content, columns, states)


def _scanned(name: str, scan: str, files: Sequence[str], content: bytes, duck: duckdb.DuckDBPyConnection) -> LakeTable:
    """A table that DuckDB reads as a whole.

    Args:
        scan: what stands for it in FROM.
        files: whose change makes it another table.
        content: equal where its rows are.
    """
    rows = duck.execute(f"SELECT system.main.count(*) FROM {scan}").fetchall()[0][0]
    table = LakeTable(name, tuple(files), (rows,), _hash(content), states=tuple(map(_state, files)), scan=scan)
    duck.execute(view(quote(name), table.whole))
    return table


def _state(file: str) -> tuple[int, int]:
    status = Path(file).stat()
    return status.st_mtime_ns, status.st_size


def _hash(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "big")


def _digest(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return file_digest(opened, blake2b).digest()


def _footer(file: Path) -> bytes:
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        opened.seek(size - FOOTER)
        length = int.from_bytes(opened.read(4), "little")
        opened.seek(max(0, size - FOOTER - length))
        return opened.read(length)
