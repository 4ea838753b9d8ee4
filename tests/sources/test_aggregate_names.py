"""The aggregate functions of a DuckDB, kept for each set of extensions."""

from __future__ import annotations

import duckdb
import pytest

from uql.base import aggregate_names as module
from uql.base.aggregate_names import aggregate_names


@pytest.mark.parametrize(
    "closed", [None, "SET enable_external_access = false", "SET disabled_filesystems = 'LocalFileSystem'"]
)
def test_they_are_those_that_duckdb_lists(closed, monkeypatch):
    monkeypatch.setattr(module, "_KNOWN", {})
    asked = []
    with duckdb.connect() as con:
        if closed:
            con.execute(closed)

        def rows(sql):
            asked.append(sql)
            return con.execute(sql).fetchall()

        sql = "SELECT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'"
        listed = {name for (name,) in con.execute(sql).fetchall()}
        assert aggregate_names(rows) == listed | {"grouping", "grouping_id"}
        first = len(asked)
        assert aggregate_names(rows) == aggregate_names(rows)
        if not closed:  # the long list is asked for once
            assert sum("duckdb_functions" in sql for sql in asked) == 1 and first == 3
