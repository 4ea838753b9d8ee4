"""Takes everything outside its memory from a DuckDB of UQL's own: SQL that the user did not write runs in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

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
