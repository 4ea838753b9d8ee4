"""Which of DuckDB's functions are aggregates: to list them takes 20 ms, so a process does it once for a set of extensions."""

from __future__ import annotations

import duckdb

_known: dict[frozenset[str], frozenset[str]] = {}  # by the extensions that are loaded


def aggregate_functions(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of a connection's aggregate functions, lower case, and of grouping, which has a value for each group too."""
    try:
        loaded = connection.execute("SELECT extension_name FROM duckdb_extensions() WHERE loaded").fetchall()
    except (
        duckdb.PermissionException
    ):  # without access to files DuckDB cannot look at their folder, and no more can be loaded
        loaded = [("locked",)]
    extensions = frozenset(name for (name,) in loaded)
    if extensions not in _known:
        sql = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        _known[extensions] = frozenset(name for (name,) in connection.execute(sql).fetchall()) | {
            "grouping",
            "grouping_id",
        }
    return _known[extensions]
