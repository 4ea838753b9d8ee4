"""Which of DuckDB's functions are aggregates: to list them takes 20 ms, so a process does it once for a set of extensions, if it must."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from functools import cached_property

import duckdb

from uql.base.sql_text import OWN, literal, quote

_CALLED = re.compile(r'"?(\w+)"?\(')
_NO_AGGREGATE = re.compile(r"\bOVER\b|\bSELECT\b", re.IGNORECASE)  # a window or a sub-query has a value for each row
_LOADED = "SELECT extension_name FROM system.main.duckdb_extensions() WHERE loaded"
_TOO_MANY = ", ".join("1" * 9)  # values for any aggregate function
_known: dict[frozenset[str], tuple[frozenset[str], frozenset[str]]] = {}  # by the extensions that are loaded


class AggregateFunctions(Container[str]):
    """The names of a connection's aggregate functions, lower case; of grouping, which has a value for each group too; of macros over them.

    They are listed when the first name is looked up. Macros are looked up by name: they come and go, and a list of them takes as long
    as one of all functions.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._macros: dict[str, bool] = {}  # by name, those looked up
        self._shadowed: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        aggregates, others = self._built_in
        own = str(name).removeprefix(OWN)
        if own != name:
            return own in aggregates
        if name in aggregates or name in others:
            return name in aggregates
        if str(name) not in self._macros:
            self._macros[str(name)] = False  # of one that calls itself
            self._macros[str(name)] = self._is_macro(str(name))
        return self._macros[str(name)]

    @cached_property
    def _built_in(self) -> tuple[frozenset[str], frozenset[str]]:
        """The built-in aggregates, and the built-in functions that are none."""
        extensions, own = frozenset[str](), self._connection
        if isinstance(own, duckdb.DuckDBPyConnection):  # else it is DuckDB in a child, which never loads one
            own = own.cursor()  # the connection may be in use by now
            try:
                extensions = frozenset(name for (name,) in own.execute(_LOADED).fetchall())
            except duckdb.PermissionException:
                # enable_external_access = false: the folder of extensions cannot be listed
                return _listed(own)
        if extensions not in _known:
            _known[extensions] = _listed(own)
        return _known[extensions]

    def forget_macros(self) -> None:
        """Looks them up anew: they may have changed."""
        self._macros.clear()
        self._shadowed.clear()

    def is_shadowed(self, name: str) -> bool:
        """Does a macro of the user's go before DuckDB's aggregate? DuckDB says it of a call that the aggregate does not take."""
        if name not in self._built_in[0]:
            return False
        if name not in self._shadowed:
            call = literal(f"SELECT {quote(name)}({_TOO_MANY})")  # planned as JSON: an error would end a transaction
            try:
                [[plan]] = self._connection.execute(f"SELECT system.main.json_serialize_plan({call})").fetchall()
            except duckdb.Error:  # in a transaction that an error has ended
                return False
            said = json.loads(plan)
            self._shadowed[name] = not said["error"] or said["error_message"].startswith("Macro ")
        return self._shadowed[name]

    def _is_macro(self, name: str) -> bool:
        sql = (
            "SELECT macro_definition FROM system.main.duckdb_functions()"
            " WHERE function_type = 'macro' AND system.main.lower(function_name) = ?"
        )
        return any(self._aggregates_in(text) for (text,) in self._connection.execute(sql, [name]).fetchall())

    def _aggregates_in(self, definition: str) -> bool:
        called = _CALLED.findall(definition)
        return not _NO_AGGREGATE.search(definition) and any(name.lower() in self for name in called)


def _listed(connection: duckdb.DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """The built-in aggregates, and the built-in functions that are none."""
    sql = (
        "SELECT DISTINCT system.main.lower(function_name), function_type = 'aggregate' FROM system.main.duckdb_functions()"
        " WHERE function_type <> 'macro'"
    )
    functions = connection.execute(sql).fetchall()
    aggregates = frozenset(name for name, is_one in functions if is_one) | {"grouping", "grouping_id"}
    return aggregates, frozenset(name for name, _ in functions) - aggregates
