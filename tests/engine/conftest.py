"""A small world: reviews of films, the labels behind them, and an oracle that answers from the labels."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pytest
from labels import Labels

import uql

ANSWERS = {
    "the review is positive": "sentiment = 'pos'",
    "the review is about the plot": "about = 'plot'",
    "the review is a joke": "joke",
    "the main topic": "about",
    "the topic": "about",
    "the number of stars": "rating",
    "the reviewer's name": "reviewer",
    "how angry the review is": "anger",
    "they agree": "a.sentiment = b.sentiment",
    "the review {b.text} and the review {c.text} agree": "a.sentiment = b.sentiment",
    "the review {a.text} and the review {b.text} agree": "a.sentiment = b.sentiment",
    "the two reviews disagree": "a.sentiment <> b.sentiment",
    "both are about the same thing": "a.about = b.about",
    "the subjects": "CASE WHEN joke THEN [about, 'jokes'] ELSE [about] END",
    "the sentiment": "sentiment",
    "the review of {film} is positive": "sentiment = 'pos'",
}


JOINS = {
    "they agree": '{ attribute = "the sentiment", labels = ["pos", "neg"], matches = "a = b" }',
    "the two reviews disagree": '{ attribute = "the sentiment", labels = ["pos", "neg"], matches = "a <> b" }',
    "both are about the same thing": '{ attribute = "the sentiment", labels = ["pos", "neg"], matches = "a = b" }',
}


@dataclass
class World:
    """Files of data and labels, and connections with the oracle as model."""

    folder: Path
    rows: list[dict[str, Any]]

    def oracle(self, error: float = 0.0, **extra: Any) -> str:
        path = self.folder / f"oracle_{error}.toml"
        lines = ['data = "data.parquet"', 'labels = "labels.parquet"', 'key = "id"', f"error = {error}"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in extra.items()]
        lines.append("[answers]")
        lines += [f"{json.dumps(text)} = {json.dumps(sql)}" for text, sql in ANSWERS.items()]
        lines += ["[examples]"]
        lines += ['"the review is positive" = { yes = ["wonderful acting"], no = ["an awful bore"] }']
        lines += ["[joins]"]
        lines += [f"{json.dumps(text)} = {joined}" for text, joined in JOINS.items()]
        path.write_text("\n".join(lines))
        return f"oracle:{path}"

    def connect(self, error: float = 0.0, **settings: Any) -> uql.Connection:
        con = uql.connect(model=self.oracle(error), ledger=":memory:", **settings)
        con.sql(f"SELECT * FROM '{self.folder}/data.parquet'").create("reviews")
        con.sql(f"SELECT * FROM '{self.folder}/labels.parquet'").create("labels")
        con.sql("SELECT DISTINCT film, length(film) AS letters FROM reviews ORDER BY film").create("films")
        return con

    def truth(self, sql: str) -> list[tuple[Any, ...]]:
        """The answer of plain SQL over `r`: reviews joined with their labels."""
        return self._labelled.cursor().execute(sql).fetchall()

    @cached_property
    def _labelled(self) -> duckdb.DuckDBPyConnection:
        con = duckdb.connect()
        con.sql(
            f"SELECT * FROM '{self.folder}/data.parquet' JOIN '{self.folder}/labels.parquet' USING (id) ORDER BY id"
        ).create("r")
        con.sql("SELECT DISTINCT film, length(film) AS letters FROM r ORDER BY film").create("films")
        return con


def make_world(folder: Path, n: int = 60, seed: int = 0) -> World:
    """n reviews, none alike; every seventh has no text."""
    rng = random.Random(seed)
    names = ["Ada", "Bo", "Cy", "Di"]
    rows = []
    for i in range(n):
        sentiment, about = rng.choice(["pos", "neg"]), rng.choice(["plot", "acting", "music"])
        text = f"Number {i}: what {'a delight' if sentiment == 'pos' else 'a waste'}, above all the {about}, I must say so here"
        rows.append(
            {
                "id": i,
                "film": rng.choice(["Alien", "Brazil", "Casablanca"]),
                "stars": rng.choice([1, 2, 3, 4, 5, None]),
                "text": None if i % 7 == 6 else text,
                "sentiment": sentiment,
                "about": about,
                "joke": rng.random() < 0.1,
                "rating": rng.randint(1, 10),
                "reviewer": rng.choice(names),
                "anger": rng.randint(0, 9),
            }
        )
    data = ["id", "film", "stars", "text"]
    labels = ["id", "sentiment", "about", "joke", "rating", "reviewer", "anger"]
    with duckdb.connect() as con:
        import pyarrow as pa

        con.register("rows", pa.Table.from_pylist(rows))
        con.sql(f"SELECT {', '.join(data)} FROM rows").write_parquet(str(folder / "data.parquet"))
        con.sql(f"SELECT {', '.join(labels)} FROM rows").write_parquet(str(folder / "labels.parquet"))
    return World(folder, rows)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("large"), n=1500, seed=1)


@pytest.fixture
def con(world: World) -> uql.Connection:
    return world.connect(budget="all")


@pytest.fixture(scope="session")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Labels:
    """The world of differential tests; each connection of it has tables and a ledger of its own."""
    return Labels(tmp_path_factory.mktemp("labels"))


@pytest.fixture(scope="session")
def many_labels(tmp_path_factory: pytest.TempPathFactory) -> Labels:
    """The same with more rows than a budget reaches."""
    return Labels(tmp_path_factory.mktemp("many"), n=600, seed=5)


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Labels:
    return Labels(tmp_path_factory.mktemp("most"), n=900, seed=5)


@pytest.fixture(scope="module")
def sql(labels: Labels) -> duckdb.DuckDBPyConnection:
    """DuckDB with the answers as functions."""
    return labels.sql()
