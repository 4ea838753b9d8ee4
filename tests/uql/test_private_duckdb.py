"""The DuckDB of the process, in which values are written and parsed: opened once, and its users do not see each other."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import uql
from uql.base import duckdb_connections
from uql.base.arrow_values import duckdb_with
from uql.base.duckdb_connections import private_cursor
from uql.base.errors import DataError

SETTINGS = "SELECT current_setting('TimeZone'), current_setting('disabled_optimizers')"


def test_values_are_shown_and_parsed_without_another_duckdb(monkeypatch: pytest.MonkeyPatch) -> None:
    with uql.connect(ledger=":memory:") as con:
        con.execute("CREATE TABLE t AS SELECT 1::HUGEINT AS n, uuid() AS id, 'a' AS name")
        rows = con.uql("SELECT * FROM t")
        rows.fetchall()
        with private_cursor():  # open from here on
            opened: list[Any] = []
            connect = duckdb.connect
            monkeypatch.setattr(
                duckdb, "connect", lambda *given, **more: opened.append(given) or connect(*given, **more)
            )
            rows.show()
            assert rows.fetchall()[0][0] == 1
            assert opened == []


def test_what_one_makes_and_sets_there_is_its_own() -> None:
    table = pa.table({"a": [1]})
    with duckdb_with(table, "rows") as one, duckdb_with(pa.table({"a": [2]}), "rows") as other:
        before = other.execute(SETTINGS).fetchall()
        one.execute("SET TimeZone = 'Asia/Tokyo'")
        one.execute("PRAGMA disable_optimizer")
        assert one.execute("SELECT a FROM rows").fetchall() == [(1,)]
        assert other.execute("SELECT a FROM rows").fetchall() == [(2,)]
        assert other.execute(SETTINGS).fetchall() == before
    with private_cursor() as later:
        assert later.execute(SETTINGS).fetchall() == before
        assert later.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
        with pytest.raises(duckdb.CatalogException):
            later.execute("FROM rows")


def test_it_is_opened_anew_where_a_value_has_broken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with private_cursor():
        pass
    opened: list[Any] = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *given, **more: opened.append(given) or connect(*given, **more))
    with pytest.raises(DataError, match="cannot be shown"), duckdb_with(pa.table({"a": [1]}), "rows"):
        raise duckdb.FatalException("the database has been invalidated")
    assert opened == []
    for _ in range(2):
        with private_cursor() as after:
            assert after.execute("SELECT 1").fetchall() == [(1,)]
    assert len(opened) == 1


def test_it_starts_no_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")  # what DuckDB takes for the number of cores
    duckdb_connections._private.cache_clear()
    with private_cursor() as cursor:
        assert cursor.execute("SELECT current_setting('threads')").fetchall() == [(1,)]
