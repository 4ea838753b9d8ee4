"""A small database of farms and inspectors' notes, and what discovery finds in it."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.sources.catalog import Catalog


def database() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE farms (id INTEGER, name VARCHAR, county VARCHAR, crops VARCHAR, opened DATE, acres DOUBLE, phone VARCHAR)"
    )
    con.execute(
        "INSERT INTO farms SELECT i, 'Farm ' || i, ['Devon', 'Kent'][1 + i % 2], ['oats', 'rye', 'oats rye', 'rye, oats'][1 + i % 4], "
        "DATE '1900-01-01' + INTERVAL (i) YEAR, i * 10, '0' || i FROM range(40) t(i)"
    )
    con.execute("COMMENT ON COLUMN farms.phone IS 'private'")
    con.execute("CREATE TABLE notes (farm_id INTEGER, note VARCHAR)")
    con.execute(
        "INSERT INTO notes SELECT i % 30, 'The inspector walked over the fields for a whole long morning ' || i FROM range(80) t(i)"
    )
    return con


def scope_of(question: str = "") -> Scope:
    return discover(question, Catalog(database()), None)


def near(word: str, others: Sequence[str]) -> list[float]:
    """Words are alike when they begin alike."""
    return [float(word[:4] == other[:4]) for other in others]
