"""JEVDB on SemBench's movie and MMQA questions. Runs in JEVDB's own environment; one JSON line in, one out.

A decision model writes no text, so MMQA Q1 (the name of a director) cannot be asked of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ["JEV_API_KEY"] = "none"  # read when the extension is loaded

import jevdb
from sembench_names import FILM, GENRES, PLACES

POSITIVE = "jev_holds('the review is positive', text)"
SENTIMENT = "jev_choose('the sentiment of the review, positive or negative', text, ['positive', 'negative'])"
LEVELS = "['1', '2', '3', '4', '5']"  # jev_score counts them from 0
RATING = f"1 + jev_score('how much the reviewer liked the movie, from 1 (not at all) to 5 (very much)', text, {LEVELS})"
PAIRS = (
    "SELECT a.movie, a.id, b.id FROM reviews a JOIN reviews b ON a.movie = b.movie AND a.id <> b.id "
    "AND jev_holds('the reviews left and right express {how}', a.text, b.text) WHERE a.movie = '{film}'"
)
QUERIES = {
    "movie_q1": f"SELECT id FROM reviews WHERE {POSITIVE} LIMIT 5",
    "movie_q2": f"SELECT id FROM reviews WHERE movie = 'taken_3' AND {POSITIVE} LIMIT 5",
    "movie_q3": f"SELECT count(*) FROM reviews WHERE movie = 'taken_3' AND {POSITIVE}",
    "movie_q4": f"SELECT avg({POSITIVE}::INTEGER) FROM reviews WHERE movie = 'taken_3'",
    "movie_q5": PAIRS.format(film=FILM, how="the same sentiment") + " LIMIT 10",
    "movie_q6": PAIRS.format(film=FILM, how="opposite sentiments") + " LIMIT 10",
    "movie_q7": PAIRS.format(film=FILM, how="opposite sentiments"),
    "movie_q8": f"SELECT {SENTIMENT} AS kind, count(*) FROM reviews WHERE movie = 'taken_3' GROUP BY kind",
    "movie_q9": f"SELECT id, {RATING} FROM reviews WHERE movie = '{FILM}'",
    "movie_q10": f"SELECT movie, avg({RATING}) FROM reviews GROUP BY movie",
}
CAST = "jev_holds('Lizzy Caplan plays in the film title, described in text', {'title': title, 'text': text})"
QUERIES |= {
    f"mmqa_{name}": f"SELECT DISTINCT title FROM (SELECT title, text FROM lizzy_caplan_texts WHERE {CAST}) "
    f"WHERE jev_holds('the film described in text is {genre}', text)"
    for name, genre in GENRES.items()
}
QUERIES |= {
    f"mmqa_{name}": "SELECT DISTINCT Airlines FROM tampa_international_airport WHERE Airport IS NULL "
    f"AND jev_holds('one of these places is in {place}', Destinations)"
    for name, place in PLACES.items()
}


def main() -> None:
    start = json.loads(sys.stdin.readline())
    con = jevdb.connect()
    for name, file in start["tables"].items():
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM read_json_auto('{file}')")
    for line in sys.stdin:
        task = json.loads(line)
        con.execute(f"SET jevdb_endpoint = '{task['url']}/'")
        print(json.dumps(answer(con, task["query"]), default=str), flush=True)


def answer(con: Any, query: str) -> dict[str, Any]:
    if query not in QUERIES:
        return {"problem": "a decision model writes no text"}
    began = time.perf_counter()
    rows = [list(row) for row in con.execute(QUERIES[query]).fetchall()]
    return {"rows": rows, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    main()
