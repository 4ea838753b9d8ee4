"""A small lake, and connections over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
from hash_model import HashModel

import uql

ROWS = 3_000


def write(folder: Path, rows: int = ROWS, files: int = 3) -> Path:
    """A lake of one table in several files, and one of a single file."""
    (folder / "reviews").mkdir(parents=True)
    duck = duckdb.connect()
    for i in range(files):
        first, last = rows * i // files, rows * (i + 1) // files
        duck.execute(
            f"COPY (SELECT i AS id, i % 2 AS kind, 1 + i % 5 AS stars, 10.0 + i % 7 AS price, "
            f"'Review ' || i || ' of a film with ' || (i * 7919 % 500) AS body FROM range({first}, {last}) t(i)) "
            f"TO '{folder}/reviews/part{i}.parquet'"
        )
    duck.execute(f"COPY (SELECT 'Film ' || i AS title, i AS id FROM range(50) t(i)) TO '{folder}/films.parquet'")
    return folder


def opened(lake: Path, cluster: str | None, shards: int | None = None, **settings: Any) -> uql.Connection:
    settings = {"ledger": ":memory:", "seed": 1, "budget": 128, **settings}
    model = settings.pop("model", HashModel({"the review is positive": 0.3}))
    if cluster is not None:
        return uql.connect(lake, cluster=cluster, shards=shards, model=model, **settings)
    con = uql.connect(model=model, **settings)
    con.execute(f"CREATE VIEW reviews AS FROM read_parquet('{lake}/reviews/*.parquet')")
    return con
