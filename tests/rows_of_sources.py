"""Random statements over rows from every kind of source, and a model that answers by the text of the row that it is shown.

In a statement `<good>` is a text about the column `text`, `<good r.text>` one about the column named. DuckDB has a macro `good` that gives
the model's answer to a text, so that the statement over the macros is the truth: each answer has to stand beside its own row.
"""

from __future__ import annotations

import random
import re
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow as pa
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer
from uql.operators.rows import filled

TEXTS = {
    "good": "it is good",
    "joke": "it is a joke",
    "stars": "the number of stars",
    "writer": "the name of the writer",
}
ANSWERS = {"good": "{} % 10 < 4", "joke": "{} % 10 < 3", "stars": "({} % 10)::DOUBLE", "writer": "'w' || {} % 5"}
PAIR = "they agree"
_MARK = re.compile(r"<(\w+)((?: \w+\.\w+)*)>")
CONDITIONS = (
    "<good>",
    "NOT <good>",
    "<good> AND <joke>",
    "<good> OR n = 3",
    "<joke> AND g = 0 AND n > 1",
    "<stars>::DOUBLE > 4",
    "coalesce(<good>, n > 2)",
    "n > 1 AND (<good> OR NOT <joke>)",
    "<joke> OR k IN (SELECT k FROM least)",
)
SETTINGS = {
    "threads": ("1", "2", "8"),
    "preserve_insertion_order": ("true", "true", "false"),
    "default_order": ("asc", "asc", "desc"),
    "default_null_order": ("nulls_last", "nulls_last", "nulls_first"),
}


def number(shown: str) -> int:
    return int(md5(shown.encode()).hexdigest()[:6], 16)


class TextModel(RowModel):
    """Answers by what it is asked and shown, and keeps the texts."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def _one(self, question: Any, row: Any) -> Answer:
        text = filled(question, row) if row.holes else "|".join(str(c.value) for c in row.cells if c.value is not None)
        values = re.findall(r'"([^"]*)"', text) if row.holes else [text]
        self.shown += values
        asked = next(t for t in (*TEXTS.values(), PAIR) if question.text.startswith(t))
        n = number(asked + "|".join(values))
        if asked == TEXTS["stars"]:
            return Answer(float(n % 10))
        if asked == TEXTS["writer"]:
            return Answer(f"w{n % 5}")
        return Answer(n % 10 < (3 if asked == TEXTS["joke"] else 4), 1.0)


class RowsOfSources:
    """The same rows in tables, files and frames, changed on the way, and statements over them. The same seed makes the same ones."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.model = TextModel()
        self.con = uql.connect(folder / "rows.duckdb", model=self.model, ledger=":memory:", budget="all")
        for setting, values in SETTINGS.items():
            self.con.execute(f"SET {setting} = '{rng.choice(values)}'")
        rows: list[dict[str, Any]] = []
        for k in range(rng.choice([1, 5, 60, 300, 1000])):
            own = f"T{k} says {rng.randint(0, 99)}"
            text = rng.choice([own] * 6 + [r["text"] for r in rows[-2:]] + ([None] if rng.random() < 0.3 else []))
            rows.append({"k": k, "g": k % 7, "n": rng.choice([None, 1, 2, 3, 4, 5]), "text": text})
        self.rows = pa.Table.from_pylist(
            rows, schema=pa.schema([("k", "int32"), ("g", "int32"), ("n", "int32"), ("text", "string")])
        )
        self._macros()
        self.sources = self._sources(folder)

    def _macros(self) -> None:
        for name, answer in ANSWERS.items():
            self.con.execute(f"CREATE MACRO {name}(t) AS {answer.format(_number(TEXTS[name], 't'))}")
        both = "t || '|' || u"
        self.con.execute(f"CREATE MACRO agree(t, u) AS {_number(PAIR, both)} % 10 < 4")

    def _sources(self, folder: Path) -> list[str]:
        run, more = self.con.execute, self.rng.random()
        self.con.session.catalog.cursor.register("given", self.rows)
        run("CREATE TABLE base AS FROM given")
        run(
            "CREATE TABLE gaps AS SELECT k, g, n, text || '' AS text FROM given UNION ALL SELECT k + 9000, g, n, 'gone' FROM given ORDER BY hash(k)"
        )
        run("DELETE FROM gaps WHERE k >= 9000 OR k % 5 = 2")
        run("UPDATE gaps SET text = text || ' anew' WHERE k % 3 = 0")
        if more < 0.5:
            run("CHECKPOINT")
        run(f"ATTACH '{folder}/other.duckdb' AS other")
        run("CREATE TABLE other.main.t AS FROM given ORDER BY hash(k + 1)")
        for i in range(3):
            run(f"COPY (FROM given WHERE k % 3 = {i}) TO '{folder}/part{i}.parquet'")
        run(f"COPY given TO '{folder}/by_g' (FORMAT parquet, PARTITION_BY (g))")
        run(f"COPY given TO '{folder}/rows.csv'")
        run("CREATE VIEW last AS FROM gaps ORDER BY k DESC LIMIT 200")
        run("CREATE VIEW least AS FROM gaps ORDER BY n, k LIMIT 100")
        run("CREATE VIEW odd AS SELECT k, g, n, text FROM last WHERE k % 2 = 1")
        run("CREATE MACRO from_on(x) AS TABLE FROM base WHERE k >= x")
        run("CREATE TEMP TABLE temporary AS FROM given ORDER BY k DESC")
        run("CREATE TABLE made (k INT, g INT, n INT, w VARCHAR, text VARCHAR GENERATED ALWAYS AS (w || '!') VIRTUAL)")
        run("INSERT INTO made FROM given")
        run(f"CREATE TABLE wide AS SELECT *, {', '.join(f'k + {i} AS c{i}' for i in range(60))} FROM given")
        return [
            "base", "gaps", "other.main.t", f"'{folder}/part*.parquet'", f"read_parquet('{folder}/by_g/*/*.parquet')",
            f"read_csv('{folder}/rows.csv', types = {{'n': 'INT', 'text': 'VARCHAR'}})", "last", "least", "odd", "from_on(3)", "temporary", "wide",
            "(SELECT k, g, n, text FROM made)", "(SELECT k, g, n, unnest([text, text || '+', NULL]) AS text FROM base)",
            "(SELECT i AS k, i % 7 AS g, i % 4 AS n, 'T' || i AS text FROM range(99) r(i))",
            "(SELECT DISTINCT k, g, n, text FROM gaps)", "(SELECT a.k, b.g, a.n, b.text FROM base a JOIN gaps b ON a.k = b.k)",
            "(SELECT * FROM (VALUES (1, 0, 2, 'T1'), (2, 1, NULL, 'T2'), (2, 1, 1, NULL)) AS v(k, g, n, text))",
        ]  # fmt: skip

    def statement(self) -> tuple[str, str]:
        """A statement with texts, and the same over the macros."""
        a, b = self.rng.choice(self.sources), self.rng.choice(self.sources)
        c, d = self.rng.choice(CONDITIONS), self.rng.choice(CONDITIONS)
        pair = f"FROM {a} AS a {self.rng.choice(('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'))} {b} AS b ON a.k = b.k AND "
        every = f"FROM {a} AS t"
        shape = self.rng.choice((
            f"SELECT k, text, n {every} WHERE {c}",
            f"SELECT k, text, <stars>::DOUBLE AS r, <writer>::VARCHAR AS w {every} WHERE {c}",
            f"SELECT k, text, <good>::BOOLEAN AS p, <joke>::BOOLEAN AS j {every} WHERE n > 2 OR {c}",
            f"SELECT k, text {every} WHERE {c} ORDER BY k, text, n LIMIT 9 OFFSET 1",
            f"SELECT k, text, <stars>::DOUBLE AS r {every} WHERE {c} ORDER BY r DESC, k, text, n LIMIT 9",
            f"SELECT k, text, n, unnest(range(n)) AS i {every} WHERE {c} ORDER BY k, text, n, i LIMIT 9 OFFSET 1",
            f"SELECT DISTINCT unnest(range(n)) AS i, g {every} WHERE {c}",
            f"SELECT g, count(*), sum(k), min(text), max(text) {every} WHERE {c} GROUP BY g",
            f"SELECT <writer>::VARCHAR AS w, count(*), sum(k) {every} GROUP BY ALL",
            f"SELECT DISTINCT ON (g) g, k, text {every} WHERE {c} ORDER BY g, k, text",
            f"SELECT k, text, row_number() OVER (PARTITION BY g ORDER BY k, text, n) AS i {every} WHERE {c}",
            f"SELECT k, text {every} WHERE {c} QUALIFY row_number() OVER (PARTITION BY g ORDER BY k, text, n) = 1",
            f"WITH c AS MATERIALIZED (SELECT * {every} WHERE {c}) SELECT c.k, c.text, d.k FROM c JOIN c AS d ON c.g = d.g AND c.k < d.k",
            f"SELECT k, text FROM (SELECT * {every} WHERE {c}) AS q WHERE {d}",
            f"SELECT k, text {every} WHERE {c} EXCEPT SELECT k, text FROM {b} AS t WHERE {d}",
            f"SELECT a.k, a.text, b.k, b.text {pair}<good a.text>",
            f"SELECT a.k, a.text, b.k, b.text {pair}<agree a.text b.text>",
            f"SELECT a.k, a.text FROM {a} AS a ANTI JOIN {b} AS b ON a.k = b.k AND <joke b.text>",
            f"SELECT a.k, a.text, <writer a.text> AS v, <writer b.text> AS w FROM {a} AS a JOIN {b} AS b ON a.k = b.k WHERE <good b.text>",
            f"SELECT k, text, (SELECT max(u.text) FROM {b} AS u WHERE u.k = t.k AND <good u.text>) AS m {every}",
            f"SELECT t.k, l.c, l.m FROM {a} AS t, LATERAL (SELECT count(*) AS c, max(u.n) AS m FROM {b} AS u WHERE u.k = t.k AND <good u.text>) AS l",
            f"SELECT t.k, t.text, x.u FROM {a} AS t, LATERAL (SELECT u.text AS u FROM {b} AS u WHERE u.k = t.k) AS x WHERE <good x.u>",
        ))  # fmt: skip
        return _MARK.sub(_as_text, shape), _MARK.sub(_as_call, shape)

    def truth(self, sql: str) -> list[tuple[Any, ...]]:
        return self.con.execute(sql).fetchall()

    def texts(self) -> set[str]:
        """All that a row of a source holds."""
        parts = " UNION ALL ".join(f"SELECT text FROM {source} AS t" for source in self.sources)
        return {text for (text,) in self.con.execute(parts).fetchall()}


def _number(text: str, shown: str) -> str:
    return f"('0x' || substr(md5('{text}' || {shown}), 1, 6))::INT"


def _as_text(match: re.Match[str]) -> str:
    holes = "".join(f" {{{column}}}" for column in match[2].split())
    return f'"{TEXTS.get(match[1], PAIR)}{holes}"' + ("" if holes else " USING (text)")


def _as_call(match: re.Match[str]) -> str:
    return f"{match[1]}({', '.join(match[2].split()) or 'text'})"


def sorted_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(float(v) if type(v) in (int, float) else v for v in row) for row in rows), key=repr)
