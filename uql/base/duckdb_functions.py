"""Which of DuckDB's functions are aggregates: to list them takes 20 ms, so a process does it once for a set of extensions."""

from __future__ import annotations

import re
from collections.abc import Container

import duckdb

_CALLED = re.compile(r'"?(\w+)"?\(')
_NO_AGGREGATE = re.compile(r"\bOVER\b|\bSELECT\b", re.IGNORECASE)  # a window or a sub-query has a value for each row
_known: dict[frozenset[str], tuple[frozenset[str], frozenset[str]]] = {}  # by the extensions that are loaded


class AggregateFunctions(Container[str]):
    """The names of a connection's aggregate functions, lower case; of grouping, which has a value for each group too; of macros over them.

    Macros are looked up by name: they come and go, and a list of them takes as long as one of all functions.

    Args:
        connection: of the session.
        aggregates: the built-in ones.
        others: the built-in functions that are none.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, aggregates: frozenset[str], others: frozenset[str]
    ) -> None:
        self._connection, self._aggregates, self._others = connection, aggregates, others
        self._macros: dict[str, bool] = {}  # by name, those looked up

    def __contains__(self, name: object) -> bool:
        if name in self._aggregates or name in self._others:
            return name in self._aggregates
        if str(name) not in self._macros:
            self._macros[str(name)] = False  # of one that calls itself
            self._macros[str(name)] = self._is_macro(str(name))
        return self._macros[str(name)]

    def forget_macros(self) -> None:
        """Looks them up anew: they may have changed."""
        self._macros.clear()

    def _is_macro(self, name: str) -> bool:
        sql = (
            "SELECT macro_definition FROM duckdb_functions() WHERE function_type = 'macro' AND lower(function_name) = ?"
        )
        return any(self._aggregates_in(text) for (text,) in self._connection.execute(sql, [name]).fetchall())

    def _aggregates_in(self, definition: str) -> bool:
        called = _CALLED.findall(definition)
        return not _NO_AGGREGATE.search(definition) and any(name.lower() in self for name in called)


def aggregate_functions(connection: duckdb.DuckDBPyConnection) -> AggregateFunctions:
    """The aggregate functions of a connection, and the macros that it has now."""
    extensions: frozenset[str] = frozenset()
    if isinstance(connection, duckdb.DuckDBPyConnection):  # else it is DuckDB in a child, which never loads one
        try:
            loaded = connection.execute("SELECT extension_name FROM duckdb_extensions() WHERE loaded").fetchall()
        except duckdb.PermissionException:  # enable_external_access = false: the folder of extensions cannot be listed
            return AggregateFunctions(connection, *_listed(connection))
        extensions = frozenset(name for (name,) in loaded)
    if extensions not in _known:
        _known[extensions] = _listed(connection)
    return AggregateFunctions(connection, *_known[extensions])


def _listed(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """The built-in aggregates, and the built-in functions that are none."""
    sql = (
        "SELECT DISTINCT lower(function_name), function_type = 'aggregate' FROM duckdb_functions()"
        " WHERE function_type <> 'macro'"
    )
    functions = connection.execute(sql).fetchall()
    aggregates = frozenset(name for name, is_one in functions if is_one) | {"grouping", "grouping_id"}
    return aggregates, frozenset(name for name, _ in functions) - aggregates
