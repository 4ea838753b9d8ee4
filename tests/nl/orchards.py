"""Orchards, the reports of visits and photos, with labels: the tables of `plans/orchards.uql`, and a model that plans by replaying them."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa

from uql.benchmarks.nl import plans
from uql.benchmarks.nl.worlds import stand_in
from uql.benchmarks.sembench.scenarios import write_oracle

PLANS = plans.read_file(Path(__file__).parent / "plans" / "orchards.uql")
ORCHARDS, VISITS = 120, 160
ANSWERS = {
    "the report praises the fruit": "praised",
    "the report says that the harvest is late": "late",
    "the tons of fruit that the report tells, according to {report}": "tons",
    "the photo shows a ladder": "ladder",
}


def world(folder: Path) -> tuple[dict[str, pa.Table], Path, duckdb.DuckDBPyConnection]:
    """The tables, the oracle's file, and a database of the tables and the labels of each visit."""
    rng = random.Random(5)
    regions = ("North", "South", "East", "West")
    orchards = [
        {
            "id": n,
            "name": f"Orchard {n:03}",
            "region": rng.choice(regions),
            "planted": rng.randint(1930, 2015),
            "hectares": rng.randint(10, 99) / 2,
        }
        for n in range(1, ORCHARDS + 1)
    ]
    ladders = {o["id"]: rng.random() < 0.6 for o in orchards}
    visits, labels = [], []
    for n in range(1, VISITS + 1):
        orchard, day = rng.randint(1, ORCHARDS), f"2024-{rng.randint(1, 8):02}-{rng.randint(1, 28):02}"
        held = {"praised": rng.random() < 0.55, "late": rng.random() < 0.5, "tons": rng.randint(1, 40)}
        words = f"Visit {n}. {'Splendid' if held['praised'] else 'Plain'} apples, about {held['tons']} tons"
        report = f"{words}, {'weeks behind' if held['late'] else 'on time'}."
        visits.append({"id": n, "orchard_id": orchard, "day": day, "report": report})
        labels.append({"key": f"v{n}", "orchard_id": orchard, "day": day, **held, "ladder": ladders[orchard]})
    photos = [{"orchard_id": n, "photo": stand_in(f"orchard {n}")} for n in ladders]
    tables = {name: pa.Table.from_pylist(rows) for name, rows in (("orchards", orchards), ("photos", photos))}
    with duckdb.connect() as con:
        con.register("v", pa.Table.from_pylist(visits))
        made = con.sql("SELECT * REPLACE (CAST(day AS DATE) AS day) FROM v").to_arrow_table()
    tables["visits"] = made
    data = [{"key": f"v{v['id']}", "report": v["report"], "photo": None} for v in visits]
    data += [{"key": f"p{p['orchard_id']}", "report": None, "photo": p["photo"]} for p in photos]
    known = [{k: v for k, v in row.items() if k not in ("orchard_id", "day", "ladder")} for row in labels]
    known = [{**row, "ladder": None} for row in known]
    known += [
        {"key": f"p{n}", "praised": None, "late": None, "tons": None, "ladder": shown} for n, shown in ladders.items()
    ]
    db = duckdb.connect()
    ladder_rows = [{"orchard_id": n, "ladder": shown} for n, shown in ladders.items()]
    for name, rows in (("data", data), ("known", known)):
        db.register("given", pa.Table.from_pylist(rows))
        db.sql("SELECT * FROM given").write_parquet(str(folder / f"{name}.parquet"))
    for name, table in {
        **tables,
        "labels": pa.Table.from_pylist(labels),
        "labels_of_photos": pa.Table.from_pylist(ladder_rows),
    }.items():
        db.register("given", table)
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    db.execute("ALTER TABLE labels ALTER day TYPE DATE")
    oracle = write_oracle(folder / "o.toml", folder / "data.parquet", folder / "known.parquet", "key", ANSWERS, 0.0)
    return tables, oracle, db
