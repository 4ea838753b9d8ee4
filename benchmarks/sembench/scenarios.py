"""SemBench's scenarios whose data is at hand: their tables, their queries, the truth, and an oracle made from the labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from uql.api.connection import Connection

QUERIES = Path(__file__).parent / "queries"
RATING = "how much the reviewer liked the movie, from 1 (not at all) to 5 (very much)"

# A critic's own score on 1 … 5: "3.5/5", "7 of 10", a letter; where there is none, a little above or below the middle.
_RATING_SQL = r"""CASE
  WHEN is_fraction THEN greatest(1, least(5, round(1 + 4 * fraction[1]::DOUBLE / fraction[2]::DOUBLE)))
  WHEN regexp_full_match(score, '[A-D][+-]?') THEN CASE score[1] WHEN 'A' THEN 5 WHEN 'B' THEN 4 WHEN 'C' THEN 3 ELSE 2 END
  WHEN sentiment = 'positive' THEN 4 ELSE 2 END::INTEGER"""
_LABELS_SQL = rf"""SELECT id, sentiment, sentiment = 'positive' AS positive, {_RATING_SQL} AS rating FROM (
  SELECT *, regexp_extract_all(score, '[0-9]*\.?[0-9]+') AS fraction,
    regexp_full_match(score, '\s*[0-9.]+\s*(/|of)\s*[0-9.]+\s*') AS is_fraction FROM read_parquet('{{0}}'))"""


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its text, the true rows, and how an answer is judged ('f1', 'closeness', 'counts', 'spearman', 'adjusted_rand')."""

    name: str
    text: str
    truth: list[tuple[Any, ...]]
    measure: str
    limit: int | None
    oracle: Path
    note: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    queries: tuple[Query, ...]
    fill: Callable[[Connection], None]  # makes the tables


def _table(con: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
    con.sql(sql).write_parquet(str(path))


def write_oracle(
    path: Path, data: Path, labels: Path, key: str, answers: dict[str, str], error: float, joins: Sequence[str] = ()
) -> Path:
    """An oracle file: answers as SQL over the labels, joins as lines of TOML."""
    lines = [f"data = {json.dumps(str(data))}", f"labels = {json.dumps(str(labels))}", f"key = {json.dumps(key)}"]
    lines += [f"error = {error}", "", "[answers]"]
    lines += [f"{json.dumps(text)} = {json.dumps(sql)}" for text, sql in answers.items()]
    lines += ["", "[joins]", *joins]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# --------------------------------------------------------------------------------------------------------------- movie
MEASURES = {"q3": "closeness", "q4": "closeness", "q8": "counts", "q9": "spearman", "q10": "spearman"}
LIMITS = {"q1": 5, "q2": 5, "q5": 10, "q6": 10}


def movie(shared: Path, work: Path, error: float = 0.0) -> Scenario:
    """The ten movie queries over reviews(id, movie, critic, publication, created, text) and movies.

    Args:
        shared: the folder that holds movie_reviews/.
        work: where the labels and the oracle are written.
        error: share of the oracle's answers that are wrong.
    """
    folder = shared / "movie_reviews"
    data, labels = folder / "data.parquet", work / "movie_labels.parquet"
    same, opposite = (
        f"the reviews {{a.text}} and {{b.text}} express {t}" for t in ("the same sentiment", "opposite sentiments")
    )
    with duckdb.connect() as con:
        _table(con, _LABELS_SQL.format(folder / "labels.parquet"), labels)
        con.sql(f"SELECT * FROM '{data}' JOIN '{labels}' USING (id)").create("r")
        truths = {n: con.execute((QUERIES / "movie" / f"q{n}.sql").read_text()).fetchall() for n in range(1, 11)}
    sentiment = 'attribute = "the sentiment of the review", labels = ["positive", "negative"]'
    oracle = write_oracle(
        work / "movie.toml",
        data,
        labels,
        "id",
        {
            "the review is positive": "positive",
            "the sentiment of the review": "sentiment",
            RATING: "rating",
            same: "a.positive = b.positive",
            opposite: "a.positive <> b.positive",
        },
        error,
        [
            f'{json.dumps(same)} = {{ {sentiment}, matches = "a = b" }}',
            f'{json.dumps(opposite)} = {{ {sentiment}, matches = "a <> b" }}',
        ],
    )
    queries = tuple(
        Query(
            f"q{n}",
            (QUERIES / "movie" / f"q{n}.uql").read_text(),
            truths[n],
            MEASURES.get(f"q{n}", "f1"),
            LIMITS.get(f"q{n}"),
            oracle,
        )
        for n in range(1, 11)
    )

    def fill(con: Connection) -> None:
        con.sql(f"SELECT id, movie, critic, publication, created, text FROM '{data}'").create("reviews")
        con.sql(f"SELECT * FROM '{folder / 'movies.parquet'}'").create("movies")

    return Scenario("movie", queries, fill)


# ---------------------------------------------------------------------------------------------------------------- mmqa
GENRES = {"q3a": "a comedy", "q3b": "science fiction", "q3d": "a horror film", "q3f": "a romantic comedy",
          "q3g": "a biographical comedy"}  # fmt: skip
PLACES = {"q6a": "Frankfurt", "q6b": "Germany", "q6c": "Europe"}
UNPUBLISHED = ("q6a",)  # no answer is published, but the text itself names the place: truth is SQL over it
LACKING = {  # of the eleven questions of the scenario
    "q4": "no labels: the genres of each film are not published, nor is the table of films at hand",
    "q5": "no labels: the casts of the films are not published",
    "q7": "no labels: which logos are those of airlines is not published",
}
TABLES = ("ben_piazza", "ben_piazza_texts", "lizzy_caplan_texts", "tampa_international_airport", "ap_warrior", "images")


def mmqa(shared: Path, work: Path, error: float = 0.0) -> Scenario:
    """The MMQA queries that have data and a published answer, and one whose answer stands in the text; labels are those answers.

    Args: as `movie`; `shared` holds sembench_mmqa/.
    """
    folder = shared / "sembench_mmqa"
    with duckdb.connect() as con:
        for name in TABLES:
            con.sql(f"SELECT * FROM '{folder / name}.parquet'").create(name)
        answers = {
            str(key).rpartition("-")[2]: [tuple(row) if isinstance(row, list) else (row,) for row in json.loads(held)]
            for key, held in con.execute(f"SELECT question_id, answer FROM '{folder / 'answers.parquet'}'").fetchall()
        }
        for name in UNPUBLISHED:
            answers[name] = con.execute((QUERIES / "mmqa" / f"{name}.sql").read_text()).fetchall()
        oracles = {
            "q1": _directors(con, answers, work, error),
            "q2": _logos(con, answers, work, error),
            "q3": _genres(con, answers, work, error),
            "q6": _destinations(con, answers, work, error),
        }
    queries = []
    for name in ("q1", "q2a", "q2b", *GENRES, *PLACES):
        text = (QUERIES / "mmqa" / f"{name}.uql").read_text()
        queries.append(Query(name, text, answers[name], "f1", None, oracles[name[:2]]))

    def fill(con: Connection) -> None:
        for table in TABLES:
            con.sql(f"SELECT * FROM '{folder / table}.parquet'").create(table)

    return Scenario("mmqa", tuple(queries), fill)


Rows = dict[str, list[tuple[Any, ...]]]


def _directors(con: duckdb.DuckDBPyConnection, answers: Rows, work: Path, error: float) -> Path:
    data, labels = work / "directors.parquet", work / "directors_labels.parquet"
    _table(con, "SELECT * FROM ben_piazza_texts", data)
    ((name,),) = answers["q1"]
    con.execute("SET VARIABLE director = $1", [name])
    film = "(SELECT Title FROM ben_piazza WHERE Role = 'Bob Whitewood')"
    director = f"CASE WHEN title IN {film} THEN getvariable('director') END"
    _table(con, f"SELECT row_id, {director} AS director FROM ben_piazza_texts", labels)
    known = {"the director of the film described in {t.text}": "director"}
    return write_oracle(work / "directors.toml", data, labels, "row_id", known, error)


def _logos(con: duckdb.DuckDBPyConnection, answers: Rows, work: Path, error: float) -> Path:
    """The pairs of track and image are the oracle's rows: what it is shown of a pair is one of them."""
    data, labels = work / "logos.parquet", work / "logos_labels.parquet"
    pairs = "SELECT DISTINCT Track, image_id, image FROM ap_warrior, images"
    con.sql(f"SELECT row_number() OVER (ORDER BY Track, image_id) AS pair, * FROM ({pairs})").create("pairs")
    _table(con, "SELECT pair, Track, image FROM pairs", data)
    con.execute("CREATE TABLE logos (ID BIGINT, image_id VARCHAR, colour VARCHAR)")
    con.executemany("INSERT INTO logos VALUES ($1, $2, $3)", answers["q2b"])
    _table(
        con,
        "SELECT pair, (Track, image_id) IN (SELECT (Track, image_id) FROM logos JOIN ap_warrior USING (ID)) AS logo, "
        "(SELECT min(colour) FROM logos l WHERE l.image_id = p.image_id) AS colour FROM pairs p",
        labels,
    )
    known = {
        "{i.image} is a logo of the racetrack {w.Track}": "logo",
        "the colour of the logo {i.image}": "colour",
    }
    return write_oracle(work / "logos.toml", data, labels, "pair", known, error)


def _genres(con: duckdb.DuckDBPyConnection, answers: Rows, work: Path, error: float) -> Path:
    data, labels = work / "genres.parquet", work / "genres_labels.parquet"
    _table(con, "SELECT * FROM lizzy_caplan_texts", data)
    con.execute("CREATE TABLE genres (genre VARCHAR, title VARCHAR)")
    con.executemany("INSERT INTO genres VALUES ($1, $2)", [(g, t) for g in GENRES for (t,) in answers[g]])
    flags = ", ".join(f"title IN (SELECT title FROM genres WHERE genre = '{g}') AS {g}" for g in GENRES)
    cast = "title IN (SELECT title FROM genres) OR text ILIKE '%Caplan%'"
    _table(con, f"SELECT row_id, {cast} AS caplan, {flags} FROM lizzy_caplan_texts", labels)
    known = {f"the film described in {{text}} is {words}": g for g, words in GENRES.items()}
    known["Lizzy Caplan plays in the film {title}, described in {text}"] = "caplan"
    return write_oracle(work / "genres.toml", data, labels, "row_id", known, error)


def _destinations(con: duckdb.DuckDBPyConnection, answers: Rows, work: Path, error: float) -> Path:
    """Rows with the destinations of an airline named in the answer have the same label: it is said of the places."""
    data, labels = work / "destinations.parquet", work / "destinations_labels.parquet"
    _table(con, "SELECT * FROM tampa_international_airport", data)
    con.execute("CREATE TABLE named (place VARCHAR, airline VARCHAR)")
    con.executemany("INSERT INTO named VALUES ($1, $2)", [(p, a) for q, p in PLACES.items() for (a,) in answers[q]])
    flags = ", ".join(
        "Destinations IN (SELECT Destinations FROM tampa_international_airport JOIN named ON Airlines = airline "
        f"WHERE Airport IS NULL AND place = '{p}') AS {p.lower()}"
        for p in PLACES.values()
    )
    _table(con, f"SELECT row_id, {flags} FROM tampa_international_airport", labels)
    known = {f"one of these places is in {p}: {{Destinations}}": p.lower() for p in PLACES.values()}
    return write_oracle(work / "destinations.toml", data, labels, "row_id", known, error)


SCENARIOS: dict[str, Callable[[Path, Path, float], Scenario]] = {"movie": movie, "mmqa": mmqa}
