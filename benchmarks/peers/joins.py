"""Two joins of a size that an engine can be asked pair by pair, many times: reviews of one sentiment, and questions with their matter.

reviews         12 × 12 reviews of a film: the pairs that express the same sentiment
reviews_count   how many there are
intents         12 questions to a bank × 12 matters by name: the matter that each question is about
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from uql.api.connection import Connection
from uql.benchmarks.sembench.scenarios import Query, Scenario, write_oracle
from uql.benchmarks.sembench.suite import FILM

REVIEWS, QUESTIONS, MATTERS = 12, 12, 12  # rows of a side
SAME = "the reviews {a.text} and {b.text} express the same sentiment"
ABOUT = "the question {a.text} is about {b.text}"
SENTIMENT, MATTER = "the sentiment of the review", "the matter of the question"
TABLES = ("left_reviews", "right_reviews", "questions", "matters")
_REVIEWS_SQL = """SELECT row_number() OVER (ORDER BY hash(text)) AS id, text, kind FROM (
  SELECT text, any_value(sentiment) AS kind FROM '{0}/data.parquet' JOIN '{0}/labels.parquet' USING (id)
  WHERE movie = '{1}' AND length(text) > 40 GROUP BY text) QUALIFY id <= {2}"""
_MATTERS_SQL = """SELECT intent, replace(intent, '_', ' ') AS text FROM (SELECT DISTINCT intent FROM '{0}/labels.parquet')
  ORDER BY hash(intent) LIMIT {1}"""
_QUESTIONS_SQL = """SELECT text, intent FROM '{0}/data.parquet' d JOIN '{0}/labels.parquet' USING (id)
  WHERE intent IN (SELECT intent FROM m) AND NOT EXISTS (FROM m WHERE contains(lower(d.text), m.text))
  QUALIFY row_number() OVER (PARTITION BY intent ORDER BY hash(d.text)) <= {1}"""


def joins(shared: Path, work: Path, error: float = 0.0) -> Scenario:
    """The questions, their truth, and an oracle for each join.

    Args:
        shared: the folder that holds movie_reviews/ and banking77/.
        work: where tables, labels and oracles are written.
        error: share of the oracle's answers that are wrong.
    """
    with duckdb.connect() as con:
        con.sql(_REVIEWS_SQL.format(shared / "movie_reviews", FILM, 2 * REVIEWS)).create("reviews")
        con.sql(_MATTERS_SQL.format(shared / "banking77", MATTERS)).create("m")
        con.sql(_QUESTIONS_SQL.format(shared / "banking77", QUESTIONS // MATTERS)).create("q")
        con.sql(
            f"SELECT row_number() OVER (ORDER BY text) AS id, text, intent AS kind FROM q UNION ALL SELECT {QUESTIONS} + "
            "row_number() OVER (ORDER BY text), text, intent FROM m"
        ).create("bank")
        sides = {
            "left_reviews": f"SELECT id, text FROM reviews WHERE id <= {REVIEWS} ORDER BY id",
            "right_reviews": f"SELECT id, text FROM reviews WHERE id > {REVIEWS} ORDER BY id",
            "questions": f"SELECT id, text FROM bank WHERE id <= {QUESTIONS} ORDER BY id",
            "matters": f"SELECT id, text FROM bank WHERE id > {QUESTIONS} ORDER BY id",
        }
        for name, sql in sides.items():
            con.sql(sql).write_parquet(str(work / f"{name}.parquet"))
        same = con.execute(_pairs("reviews", REVIEWS)).fetchall()
        about = con.execute(_pairs("bank", QUESTIONS)).fetchall()
        names = [name for (name,) in con.execute("SELECT text FROM m ORDER BY text").fetchall()]
        for name in ("reviews", "bank"):
            con.sql(f"SELECT id, text FROM {name}").write_parquet(str(work / f"{name}_data.parquet"))
            con.sql(f"SELECT id, replace(kind, '_', ' ') AS kind FROM {name}").write_parquet(
                str(work / f"{name}_labels.parquet")
            )
    reviews = _oracle(work, "reviews", SAME, SENTIMENT, ["negative", "positive"], error)
    bank = _oracle(work, "bank", ABOUT, MATTER, names, error)
    from_reviews = f'FROM left_reviews AS a JOIN right_reviews AS b ON "{SAME}"'
    queries = (
        Query("reviews", f"SELECT a.id, b.id {from_reviews}", same, "f1", None, reviews),
        Query("count", f"SELECT COUNT(*) {from_reviews}", [(len(same),)], "closeness", None, reviews),
        Query(
            "intents", f'SELECT a.id, b.id FROM questions AS a JOIN matters AS b ON "{ABOUT}"', about, "f1", None, bank
        ),
    )

    def fill(con: Connection) -> None:
        for name in TABLES:
            con.sql(f"SELECT * FROM '{work / name}.parquet'").create(name)

    return Scenario("joins", queries, fill)


def _pairs(table: str, left: int) -> str:
    """The pairs of equal kind, of rows of the left side with others."""
    return f"SELECT a.id, b.id FROM {table} a JOIN {table} b ON a.kind = b.kind WHERE a.id <= {left} AND b.id > {left}"


def _oracle(work: Path, name: str, condition: str, attribute: str, labels: list[str], error: float) -> Path:
    """The labels as a model: of pairs, and of the attribute that decides them."""
    rule = f'{{ attribute = {json.dumps(attribute)}, labels = {json.dumps(labels)}, matches = "a = b" }}'
    return write_oracle(
        work / f"{name}.toml",
        work / f"{name}_data.parquet",
        work / f"{name}_labels.parquet",
        "id",
        {condition: "a.kind = b.kind", attribute: "kind"},
        error,
        [f"{json.dumps(condition)} = {rule}"],
    )
