"""What the ledger asks of a database. Its SQL is what SQLite and PostgreSQL both understand, with "?" for values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Rows(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """An open ledger: `uql.llm.ledger_sqlite.SQLite`, `uql.llm.ledger_postgres.Postgres`.

    Attributes:
        format, secret: of the ledger that it holds.
        persistent: does it outlive this process, so that others may see it?
        quick: is a read short enough for the thread of an event loop?
        errors: what its methods raise where it cannot be used.
        busy: the errors that say that others are at it, or that they do not end.
    """

    format: int | None
    secret: bytes
    persistent: bool
    quick: bool
    errors: tuple[type[Exception], ...]
    busy: type[Exception]

    def execute(self, sql: str, values: Sequence[Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Rows: ...

    def by_key(
        self, table: str, items: str, keys: Sequence[bytes], key: str = "key", root: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """What SQL gives of the rows of a table that have one of any number of keys.

        Args:
            items: what is selected; aggregates are of a part of the keys each.
            keys: no two are the same.
            key: the column.
            root: of rows that a run has, the run.
        """

    def run(self, use: Callable[[Any], T], *, atomic: bool = False, begun: bool = False) -> T:
        """What `use` gives.

        Args:
            use: is given this database; it may be called again where the connection was lost.
            atomic: all statements of `use` are one transaction; where it fails nothing is changed.
            begun: `begin_now` has begun it.
        """

    def begin_now(self) -> bool:
        """Begin a transaction in the calling thread; False, at once, where that may take longer than a moment."""

    def lock(self) -> None:
        """Within a transaction: until its end, no other that says the same runs beside it."""

    def now(self) -> float:
        """Seconds since the epoch, by a clock that all users of the ledger share."""

    def size(self) -> int:
        """Bytes that it takes."""

    def shrink(self) -> None:
        """Give the space of deleted rows back."""

    def advice(self, error: Exception) -> str:
        """What to do about one of `errors`."""

    def close(self) -> None: ...


def upsert(table: str, key: str, *columns: str) -> str:
    """The INSERT of a row that replaces the one with its key.

    >>> upsert("claims", "key", "lease")
    'INSERT INTO claims (key, lease) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET lease = excluded.lease'
    """
    names = [*key.split(", "), *columns]
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
    values = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values}) ON CONFLICT ({key}) DO UPDATE SET {changed}"
