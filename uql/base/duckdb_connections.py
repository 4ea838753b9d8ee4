"""What a connection to DuckDB uses now, and connections of UQL's own, which nothing of the user's reaches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import duckdb

_opening = Lock()


@cache
def _private() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})  # others would wait: what runs here has few rows


@contextmanager
def private_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to a DuckDB of the process, for values to be written, typed and parsed: to open one takes 15 ms of CPU time.

    UQL's own SQL alone runs there, and makes nothing but what is temporary: others share the DuckDB.
    """
    import duckdb

    with _opening:
        cursor = _private().cursor()
    try:
        yield cursor
    except (duckdb.InternalException, duckdb.FatalException):
        _private.cache_clear()  # DuckDB has given it up
        raise
    finally:
        cursor.close()


_LOCKED = (
    "SET allow_persistent_secrets = false",
    "SET temp_directory = ''",
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET threads = 2",
)


def lock(connection: duckdb.DuckDBPyConnection, memory: str | None = None) -> None:
    """Takes files, network, extensions and Python's variables from a DuckDB of its own, for good, and limits its memory.

    Args:
        memory: as "512MB"; None: DuckDB's own limit.
    """
    limits = () if memory is None else (f"SET memory_limit = '{memory}'",)
    for setting in (*_LOCKED, *limits, "SET lock_configuration = true"):
        connection.execute(setting)


class CurrentDatabase(NamedTuple):
    """`path` of its file, None: it is in memory; `read_only`: nothing of it may change."""

    path: str | None
    read_only: bool
    name: str


def current_database(connection: duckdb.DuckDBPyConnection) -> CurrentDatabase:
    """The database in which a connection finds names without one: that of USE."""
    sql = (
        "SELECT path, readonly, database_name FROM system.main.duckdb_databases() "
        "WHERE database_name = system.main.current_database()"
    )
    ((path, read_only, name),) = connection.execute(sql).fetchall()
    return CurrentDatabase(path or None, read_only, name)
