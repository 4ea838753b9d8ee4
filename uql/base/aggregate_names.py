"""The aggregate functions of a DuckDB. To list them takes 16 ms, so they are kept for each set of loaded extensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = list[tuple[Any, ...]]
_KNOWN: dict[frozenset[str], frozenset[str]] = {}


def aggregate_names(rows: Callable[[str], Rows]) -> frozenset[str]:
    """The names in lower case, and those of grouping, which has a value for each group too.

    Args:
        rows: runs a query on the connection.
    """
    closed = "SELECT NOT current_setting('enable_external_access') OR current_setting('disabled_filesystems') <> ''"
    if rows(closed)[0][0]:  # a list of the extensions would look at their files
        return _listed(rows)
    loaded = frozenset(
        name for (name,) in rows("SELECT extension_name FROM system.main.duckdb_extensions() WHERE loaded")
    )
    if loaded not in _KNOWN:
        _KNOWN[loaded] = _listed(rows)
    return _KNOWN[loaded]


def _listed(rows: Callable[[str], Rows]) -> frozenset[str]:
    found = rows("SELECT DISTINCT function_name FROM system.main.duckdb_functions() WHERE function_type = 'aggregate'")
    return frozenset(str(name).lower() for (name,) in found) | {"grouping", "grouping_id"}
