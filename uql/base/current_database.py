"""The database that a connection uses now, and where its file is."""

from __future__ import annotations

from typing import NamedTuple

import duckdb


class CurrentDatabase(NamedTuple):
    """`path` of its file, None: it is in memory; `read_only`: nothing of it may change."""

    path: str | None
    read_only: bool


def current_database(connection: duckdb.DuckDBPyConnection) -> CurrentDatabase:
    """The database in which a connection finds names without one: that of USE."""
    sql = (
        "SELECT path, readonly FROM system.main.duckdb_databases() WHERE database_name = system.main.current_database()"
    )
    ((path, read_only),) = connection.execute(sql).fetchall()
    return CurrentDatabase(path or None, read_only)
