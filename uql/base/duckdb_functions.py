"""Which of DuckDB's functions are aggregates: to list them takes 20 ms, so a process does it once for a set of extensions."""

from __future__ import annotations

import duckdb

_known: dict[frozenset[str], frozenset[str]] = {}  # by the extensions that are loaded


def aggregate_functions(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of a connection's aggregate functions, lower case, and of grouping, which has a value for each group too."""
    extensions: frozenset[str] = frozenset()
    if isinstance(connection, duckdb.DuckDBPyConnection):  # else it is DuckDB in a child, which never loads one
        try:
            loaded = connection.execute("SELECT extension_name FROM duckdb_extensions() WHERE loaded").fetchall()
        except duckdb.PermissionException:  # enable_external_access = false: the folder of extensions cannot be listed
            return _listed(connection)
        extensions = frozenset(name for (name,) in loaded)
    if extensions not in _known:
        _known[extensions] = _listed(connection)
    return _known[extensions]


def _listed(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    sql = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
    return frozenset(name for (name,) in connection.execute(sql).fetchall()) | {"grouping", "grouping_id"}
