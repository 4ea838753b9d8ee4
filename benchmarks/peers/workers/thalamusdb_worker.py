"""ThalamusDB on SemBench's movie and MMQA questions. Runs in ThalamusDB's own environment; one JSON line in, one out.

Its language has NLfilter and NLjoin in WHERE and no value that a model reads, so movie Q9 and Q10 and MMQA Q1 cannot be asked of it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from sembench_names import FILM, GENRES, PLACES
from tdb.data.relational import Database
from tdb.execution.constraints import Constraints
from tdb.execution.engine import ExecutionEngine
from tdb.queries.query import Query

POSITIVE = "NLfilter(reviews.text, 'the review is positive')"
SAME = "NLjoin(a.text, b.text, 'the reviews {} and {} express the same sentiment')"
OPPOSITE = "NLjoin(a.text, b.text, 'the reviews {} and {} express opposite sentiments')"
PAIRS = (
    "SELECT a.movie, a.id, b.id FROM reviews AS a, reviews AS b "
    "WHERE a.movie = '{film}' AND b.movie = '{film}' AND a.id <> b.id AND {join}"
)
QUERIES = {
    "movie_q1": f"SELECT reviews.id FROM reviews WHERE {POSITIVE} LIMIT 5",
    "movie_q2": f"SELECT reviews.id FROM reviews WHERE reviews.movie = 'taken_3' AND {POSITIVE} LIMIT 5",
    "movie_q3": f"SELECT COUNT(*) FROM reviews WHERE reviews.movie = 'taken_3' AND {POSITIVE}",
    "movie_q4": f"SELECT COUNT(*) FROM reviews WHERE reviews.movie = 'taken_3' AND {POSITIVE}",
    "movie_q5": PAIRS.format(film=FILM, join=SAME) + " LIMIT 10",
    "movie_q6": PAIRS.format(film=FILM, join=OPPOSITE) + " LIMIT 10",
    "movie_q7": PAIRS.format(film=FILM, join=OPPOSITE),
    "movie_q8": f"SELECT COUNT(*) FROM reviews WHERE reviews.movie = 'taken_3' AND {POSITIVE}",
}
CAST = "NLfilter(lizzy_caplan_texts.text, 'Lizzy Caplan plays in the film title, described in text')"
QUERIES |= {
    f"mmqa_{name}": "SELECT lizzy_caplan_texts.title FROM lizzy_caplan_texts "
    f"WHERE {CAST} AND NLfilter(lizzy_caplan_texts.text, 'the film described in text is {genre}')"
    for name, genre in GENRES.items()
}
QUERIES |= {
    f"mmqa_{name}": "SELECT tampa_international_airport.Airlines FROM tampa_international_airport WHERE "
    "tampa_international_airport.Airport IS NULL AND "
    f"NLfilter(tampa_international_airport.Destinations, 'one of these places is in {place}')"
    for name, place in PLACES.items()
}
UNLIMITED = {"max_calls": 100_000, "max_tokens": 100_000_000, "max_seconds": 3600}  # limits that stop no query
SETTINGS: dict[str, dict[str, float]] = {
    "default": {},
    "recommended": {**UNLIMITED},
    "bounded": {**UNLIMITED, "max_error": 0.1},  # it stops where its bounds of an aggregate are so near each other
}


def main() -> None:
    start = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.duckdb"
        with duckdb.connect(str(path)) as con:
            for name, file in start["tables"].items():
                con.execute(f"CREATE TABLE {name} AS SELECT * FROM read_json_auto('{file}')")
        database = Database(str(path))
        for line in sys.stdin:
            task = json.loads(line)
            models = Path(folder) / "models.json"
            kwargs = {"model": "openai/oracle", "api_base": task["url"], "api_key": "none", "temperature": 0}
            one = {"modalities": ["text"], "priority": 10, "kwargs": {"filter": kwargs, "join": kwargs}}
            models.write_text(json.dumps({"models": [one]}))
            said = run(database, str(models), task["query"], SETTINGS[task["setting"]])
            print(json.dumps(said, default=str), flush=True)


def run(database: Database, models: str, name: str, limits: dict[str, float]) -> dict[str, object]:
    if name not in QUERIES:
        return {"problem": "the language has no value that a model reads"}
    began = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        query = Query(database, QUERIES[name])
        frame, _ = ExecutionEngine(database, 20, models).run(query, Constraints(**limits))
        rows = [list(row) for row in frame.itertuples(index=False)]
        if name in ("movie_q4", "movie_q8"):
            ((total,),) = database.execute2list("SELECT COUNT(*) FROM reviews WHERE movie = 'taken_3'")
            yes = float(rows[0][0])
            rows = [[yes / total]] if name == "movie_q4" else [["positive", yes], ["negative", total - yes]]
    return {"rows": rows, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
