"""The rows of an oracle: found by the content shown, and their labels by SQL."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from uql.base.duckdb_connections import lock
from uql.base.errors import ConfigError, DataError
from uql.base.sql_text import literal, quote
from uql.llm.questions import Row


def _digest(value: str | bytes) -> bytes:
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return hashlib.blake2b(data, digest_size=12).digest()


def rows_of(file: Path, data: str, labels: str, key: str) -> Rows:
    """The rows of an oracle; the latest few are kept for as long as their files stay as they are.

    Args:
        file: of the oracle.
        data, labels: paths of tables, beside the file unless they are absolute.
        key: the column on which they are joined.
    Raises: ConfigError and DataError, naming what is wrong with them.
    """
    return _cached_rows(
        file, data, labels, key, tuple(_stamp(file.parent / Path(p).expanduser()) for p in (data, labels))
    )


@lru_cache(maxsize=4)
def _cached_rows(file: Path, data: str, labels: str, key: str, stamps: tuple[object, ...]) -> Rows:
    return Rows(file, data, labels, key)


def _stamp(path: Path) -> tuple[int, ...]:
    """What changes with a file; nothing for one that is not there."""
    if not path.exists():
        return ()
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


class Rows:
    """Data and labels of an oracle file, joined on its key, and an index from the content of a column to its rows.

    Threads may share it. Arguments: as `rows_of`.
    """

    def __init__(self, file: Path, data: str, labels: str, key: str) -> None:
        import duckdb

        self.file = file
        self._db = duckdb.connect(":memory:")
        for name, path in (("data", data), ("labels", labels)):
            source = Path(path).expanduser()
            source = source if source.is_absolute() else file.parent / source
            if set(path) & set("*?["):
                raise ConfigError(f"{file}: {name} = {path!r} is a pattern", code="UQL402", help="it names one file")
            if not source.exists():
                raise ConfigError(f"{file}: {name} = {path!r}: there is no file {source}", code="UQL402")
            try:
                self._db.execute(f"CREATE TABLE {name}_file AS SELECT * FROM {literal(str(source))}")
            except duckdb.Error as error:
                raise DataError(f"{file}: {source} cannot be read: {error}") from None
            if key.lower() not in [c.lower() for c in self._columns(f"{name}_file")]:
                raise ConfigError(f"{file}: {source} has no column {key!r}", code="UQL402")
        k = quote(key)
        try:
            self._db.execute("CREATE TABLE rows AS SELECT row_number() OVER () - 1 AS __i, * FROM data_file")
            self._db.execute(
                f"CREATE TABLE truth AS SELECT r.__i, l.* FROM rows r LEFT JOIN labels_file l ON r.{k} = l.{k} ORDER BY r.__i"
            )
        except duckdb.Error as error:
            raise DataError(f"{file}: data and labels cannot be joined on {key}: {error}") from None
        self.keys = [row[0] for row in self._db.execute(f"SELECT {k} FROM rows ORDER BY __i").fetchall()]
        twice = self._db.execute(f"SELECT {k} FROM labels_file GROUP BY ALL HAVING COUNT(*) > 1 LIMIT 1").fetchone()
        if twice is not None or self._db.execute("SELECT COUNT(*) FROM truth").fetchone() != (len(self.keys),):
            raise DataError(
                f"{file}: the labels have more than one row of {key} {twice[0] if twice else ''}", code="UQL501"
            )
        lock(self._db)  # what follows is SQL of the file
        self.columns = [name for name in self._columns("rows") if name != "__i"]
        self._index: dict[str, dict[bytes, list[int]]] = {}
        self._lock = Lock()  # of the DuckDB

    def values(self, column: str) -> list[Any]:
        """(N,) a column of the data, in the order of its rows. Raises DataError (UQL502) where there is none of that name."""
        if column not in self.columns:
            raise DataError(
                f"{self.file}: the data have no column {column!r}",
                code="UQL502",
                help=f"columns: {', '.join(self.columns)}",
            )
        with self._lock:
            return [row[0] for row in self._db.execute(f"SELECT {quote(column)} FROM rows ORDER BY __i").fetchall()]

    def content(self, at: int) -> list[tuple[str, str]]:
        """The columns of a row of the data that have a value, and their values as texts; none of bytes."""
        with self._lock:
            kinds = self._db.execute("DESCRIBE rows").fetchall()
            names = [name for name, kind, *_ in kinds if name != "__i" and kind != "BLOB"]
            texts = ", ".join(f"CAST({quote(name)} AS VARCHAR)" for name in names)
            (values,) = self._db.execute(f"SELECT {texts} FROM rows WHERE __i = {at}").fetchall()
        return [(name, value) for name, value in zip(names, values, strict=True) if value is not None]

    def _columns(self, table: str) -> list[str]:
        return [row[0] for row in self._db.execute(f"DESCRIBE {table}").fetchall()]

    def _index_of(self, column: str) -> dict[bytes, list[int]]:
        with self._lock:
            if column not in self._index:
                self._index[column] = self._indexed(column)
            return self._index[column]

    def _indexed(self, column: str) -> dict[bytes, list[int]]:
        name = quote(column)
        kinds = self._db.execute(f"SELECT DISTINCT typeof({name}) FROM rows LIMIT 1").fetchall()
        value = name if not kinds or kinds[0][0] in ("VARCHAR", "BLOB") else f"CAST({name} AS VARCHAR)"
        index: dict[bytes, list[int]] = {}
        for i, content in self._db.execute(f"SELECT __i, {value} FROM rows ORDER BY __i").fetchall():
            if content is not None:
                index.setdefault(_digest(content), []).append(i)
        return index

    def find(self, row: Row) -> list[int]:
        """The rows whose content is that of the cells and holes shown. Raises DataError where there is none."""
        values = [(cell.name, cell.value) for cell in row.cells if cell.value is not None]
        values += [(name.rpartition(".")[2], value) for name, value in row.holes]
        column_of = {column.lower(): column for column in self.columns}
        matches: set[int] | None = None
        for name, value in values:
            column = column_of.get(name.lower())
            searched = [column] if column else self.columns  # a column under another name is found by its value
            hits = {i for c in searched for i in self._index_of(c).get(_digest(value), ())}
            matches = hits if matches is None else matches & hits
        if not matches:
            text = next((repr(str(value)[:60]) for _, value in values), "a row of NULLs")
            raise DataError(
                f"{self.file}: the row shown ({text}) is not in the oracle's data",
                code="UQL502",
                help=f"rows are found by what the model is shown of {', '.join(self.columns)}",
            )
        return sorted(matches)

    def evaluate(self, sql: str) -> list[Any]:
        """An expression over the labels, for each row of the data."""
        return [row[0] for row in self._run(f"SELECT ({sql}) FROM truth ORDER BY __i", sql)]

    def evaluate_pairs(self, sql: str, pairs: list[tuple[int, int]]) -> list[Any]:
        """An expression over the labels a and b of two rows, for each pair."""
        if not pairs:
            return []
        values = ",".join(f"({n},{i},{j})" for n, (i, j) in enumerate(pairs))
        return [
            row[0]
            for row in self._run(
                f"SELECT ({sql}) FROM (VALUES {values}) p(n, i, j) JOIN truth a ON a.__i = p.i JOIN truth b ON b.__i = p.j "
                "ORDER BY p.n",
                sql,
            )
        ]

    def matching(self, labels: list[str], sql: str) -> list[list[str]]:
        """The pairs of labels a and b for which an expression over them is true."""
        values = ",".join(f"({literal(label)})" for label in labels)
        pairs = self._run(f"SELECT a, b FROM (VALUES {values}) x(a), (VALUES {values}) y(b) WHERE ({sql})", sql)
        return [[str(a), str(b)] for a, b in pairs]

    def _run(self, statement: str, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            statements = duckdb.extract_statements(statement)
            if [s.type for s in statements] != [duckdb.StatementType.SELECT]:
                raise ConfigError(
                    f"{self.file}: the answer {sql!r} is not SQL over the labels: it is more than one expression",
                    code="UQL402",
                )
            with self._lock:
                return self._db.execute(statements[0]).fetchall()
        except (duckdb.Error, ValueError) as error:  # ValueError: a kind of statement that the client has no name for
            raise ConfigError(
                f"{self.file}: the answer {sql!r} is not SQL over the labels: {error}", code="UQL402"
            ) from None
