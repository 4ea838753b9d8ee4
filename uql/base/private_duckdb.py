"""A DuckDB of this process's own, for values to be written, typed and parsed: to open one each time takes 15 ms of CPU time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import duckdb

_opening = Lock()


@cache
def _private() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})  # others would wait: what runs here has few rows


@contextmanager
def private_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to it. UQL's own SQL alone runs there, and makes nothing but what is temporary: others share the DuckDB."""
    with _opening:
        cursor = _private().cursor()
    try:
        yield cursor
    except (duckdb.InternalException, duckdb.FatalException):
        _private.cache_clear()  # DuckDB has given it up
        raise
    finally:
        cursor.close()
