"""A world for differential tests: the same statement runs as UQL over an oracle, and as SQL over the labels behind it.

In a statement `<pos>` is a text for the model that reads the column `text`; `<pos r.text>` reads the column named. In SQL both are
functions that look the label up, NULL for a NULL. `!` before a statement: the order of its rows counts. Behind `###` stands the SQL
where it is not the statement itself.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import uql

SAID = {  # name → the text, its answer as SQL over the labels, the type of the answer
    "pos": ("the review is positive", "sentiment = 'pos'", "BOOLEAN"),
    "plot": ("the review is about the plot", "about = 'plot'", "BOOLEAN"),
    "joke": ("the review is a joke", "joke", "BOOLEAN"),
    "topic": ("the main topic", "about", "VARCHAR"),
    "name": ("the reviewer's name", "reviewer", "VARCHAR"),
    "rating": ("the number of stars", "rating", "DOUBLE"),
    "anger": ("how angry the review is", "anger", "DOUBLE"),
    "written": ("the day it was written", "strftime(written, '%Y-%m-%d')", "VARCHAR"),
    "tags": ("the subjects", "CASE WHEN joke THEN [about, 'jokes'] ELSE [about] END", "VARCHAR[]"),
}
OF_PAIRS = {
    "agree": ("they agree", "a.sentiment = b.sentiment"),
    "same": ("both are about the same thing", "a.about = b.about"),
}
TABLES = (
    "CREATE TABLE reviews AS SELECT id, film, stars, text, day::DATE AS day, [film, 'x' || stars] AS tags,"
    " {'a': id, 'b': film} AS meta FROM source ORDER BY id",
    "CREATE TABLE films AS SELECT DISTINCT film, length(film) AS letters FROM reviews UNION ALL SELECT 'Dune', 4 ORDER BY 1",
    "CREATE TABLE nothing AS SELECT * FROM reviews WHERE false",
    "CREATE TABLE one AS SELECT * FROM reviews WHERE id = 2",
    "CREATE VIEW good AS SELECT * FROM reviews WHERE stars >= 3",
    'CREATE TABLE "odd names" AS SELECT id AS "the id", text AS "the text", stars AS "select", film AS "group" FROM reviews',
    "CREATE TABLE quiet AS SELECT id, NULL::VARCHAR AS text FROM range(3) t(id)",
)
ALIASES = "abcfmprtvx"
_MARK = re.compile(r"<(\w+)(?: (\w+\.\w+|\w+))?(?: (\w+\.\w+))?>")


class Labels:
    """Reviews with NULLs, repeated texts and ties, the labels behind them, and both ways to ask about them."""

    def __init__(self, folder: Path, n: int = 40, seed: int = 3) -> None:
        self.folder = folder
        rng = random.Random(seed)
        rows: list[dict[str, Any]] = []
        for i in range(n):
            mood, about = rng.choice(["pos", "neg"]), rng.choice(["plot", "acting", "music"])
            words = "a delight" if mood == "pos" else "a waste"
            rows.append(
                {
                    "id": i,
                    "film": rng.choice(["Alien", "Brazil", "Casablanca"]),
                    "stars": rng.choice([1, 2, 3, 4, 5, None]),
                    "text": None
                    if i % 7 == 6
                    else f"Number {i}: what {words}, above all the {about}, I must say so here",
                    "day": f"2024-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
                    "sentiment": mood,
                    "about": about,
                    "joke": rng.random() < 0.15,
                    "rating": rng.randint(1, 10),
                    "reviewer": rng.choice(["Ada", "Bo", "Cy", "Di"]),
                    "anger": rng.randint(0, 9),
                    "written": f"2023-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}",
                }
            )
        for i in (3, 9, 9, 20):  # the same text more than once
            rows.append({**rows[i], "id": len(rows), "film": rng.choice(["Alien", "Brazil"])})
        self.rows = rows
        self.by_text = {row["text"]: row for row in reversed(rows) if row["text"] is not None}
        with duckdb.connect() as con:
            con.register("texts", pa.Table.from_pylist(list(self.by_text.values())))
            con.sql("SELECT id, text FROM texts").write_parquet(str(folder / "data.parquet"))
            labels = "sentiment, about, joke, rating, reviewer, anger, written::DATE AS written"
            con.sql(f"SELECT id, {labels} FROM texts").write_parquet(str(folder / "labels.parquet"))
            self.values = {
                name: dict(con.sql(f"SELECT text, {sql} FROM (SELECT text, {labels} FROM texts)").fetchall())
                for name, (_, sql, _) in SAID.items()
            }
        answers = {}
        for text, sql, _ in SAID.values():
            holes = ["", *(f" {{{alias}.text}}" for alias in ALIASES), " {text}"]
            answers.update({text + hole: sql for hole in holes})
        for text, sql in OF_PAIRS.values():
            answers[text] = sql
            answers.update({f"{text} {{{x}.text}} {{{y}.text}}": sql for x in ALIASES for y in ALIASES if x != y})
        lines = ['data = "data.parquet"', 'labels = "labels.parquet"', 'key = "id"', "error = 0.0", "[answers]"]
        lines += [f"{json.dumps(text)} = {json.dumps(sql)}" for text, sql in answers.items()]
        (folder / "oracle.toml").write_text("\n".join(lines))

    def _tables(self) -> duckdb.DuckDBPyConnection:
        con = duckdb.connect()
        con.execute("SET threads = 1")
        con.register("source", pa.Table.from_pylist(self.rows))
        for statement in TABLES:
            con.execute(statement)
        con.execute("COMMENT ON COLUMN quiet.text IS 'text'")
        return con

    def uql(self, **settings: Any) -> uql.Connection:
        """A connection with the oracle as its model."""
        model = f"oracle:{self.folder / 'oracle.toml'}"
        return uql.attach(self._tables(), model=model, ledger=":memory:", **settings)

    @cached_property
    def truth(self) -> duckdb.DuckDBPyConnection:
        """The connection of `sql` for tests that only read."""
        return self.sql()

    def sql(self) -> duckdb.DuckDBPyConnection:
        """A connection on which `pos(text)`, `agree(a.text, b.text)` … are functions that give the label."""
        con = self._tables()

        def of_one(values: dict[str, Any]) -> Callable[[str], Any]:
            return lambda text: values[text]

        def of_two(column: str) -> Callable[[str, str], bool]:
            return lambda x, y: bool(self.by_text[x][column] == self.by_text[y][column])

        for name, (_, _, type) in SAID.items():
            con.create_function(name, of_one(self.values[name]), ["VARCHAR"], type)
        for name, column in (("agree", "sentiment"), ("same", "about")):
            con.create_function(name, of_two(column), ["VARCHAR", "VARCHAR"], "BOOLEAN")
        return con


def both(statement: str) -> tuple[str, str, bool]:
    """The UQL and the SQL of a statement, and whether the order of its rows counts."""
    one, _, other = statement.lstrip("!").partition("###")
    return (
        _MARK.sub(_as_text, one).strip(),
        _MARK.sub(_as_call, other.strip() or one).strip(),
        statement.startswith("!"),
    )


def _as_text(match: re.Match[str]) -> str:
    name, *columns = match.groups()
    text = SAID[name][0] if name in SAID else OF_PAIRS[name][0]
    return '"' + text + "".join(f" {{{column}}}" for column in columns if column) + '"'


def _as_call(match: re.Match[str]) -> str:
    name, first, second = match.groups()
    if name in OF_PAIRS:
        return f"{name}({first or 'a.text'}, {second or 'b.text'})"
    return f"{name}({first or 'text'})"


def plain(value: Any) -> Any:
    """A value so that equal ones compare equal: numbers as floats, lists and structs as tuples."""
    from decimal import Decimal

    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        return round(float(value), 6) if value == value else "NaN"
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, plain(item)) for key, item in value.items())
    return value
