"""The tables of the UQE suite: rows, labels, truth from the SQL of queries/, and an oracle over the labels for each model."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from uql.base.errors import ConfigError
from uql.base.extras import install
from uql.benchmarks.datasets import clevr
from uql.benchmarks.runner.suite import MODELS, Choice, is_simulated
from uql.features.embedder import Embedder
from uql.features.images import image_embedder
from uql.features.static import static_embedder
from uql.features.table import table_features

QUERIES = Path(__file__).parent / "queries"
CLEVR_ROWS, CLEVR_SIZE = 2000, (128, 96)  # the paper: 15,000 images of at most 128 × 128 pixels
Flags = NDArray[np.bool_]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Source:
    """One data set: its table's name, what a row shows, which rows belong to it, and how it differs from the paper's."""

    name: str
    table: str
    shown: str  # the column that the model sees
    where: str  # SQL over the labels l
    columns: str  # labels that truth is made of
    differs: str


SOURCES = {
    s.name: s
    for s in (
        Source("imdb", "reviews", "text", "true", "sentiment", "the same 50,000 reviews"),
        Source(
            "airdialogue",
            "dialogues",
            "text",
            "l.paper_mix",
            "status",
            "1,644 dialogues at the paper's shares, not 402,037",
        ),
        Source(
            "abcd",
            "summaries",
            "text",
            "l.flow_silver IS NOT NULL",
            "flow_silver",
            "one-line summaries with silver labels, not the dialogues",
        ),
        Source(
            "clevr",
            "images",
            "image",
            "true",
            "obj_count, spheres",
            f"{CLEVR_ROWS:,} generated images, not CLEVR's 15,000; colours and edges as embeddings",
        ),
        Source("sgd", "dialogues", "text", "true", "first_intent, outcome", "not in the paper: 17,193 dialogues"),
    )
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A question of yes or no: `name` is that of its files in queries/, `example` that of its example rows."""

    name: str
    source: str
    text: str
    example: str = ""

    @property
    def truth_sql(self) -> str:
        return (QUERIES / f"{self.name}.sql").read_text(encoding="utf-8").strip()

    def query(self, kind: str) -> str:
        """The UQL text: `kind` is count or find."""
        return (QUERIES / f"{self.name}.{kind}.uql").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class Grouping:
    """A question of which kind."""

    name: str
    source: str
    text: str

    @property
    def truth_sql(self) -> str:
        return (QUERIES / f"{self.name}.sql").read_text(encoding="utf-8").strip()

    @property
    def query(self) -> str:
        return (QUERIES / f"{self.name}.group.uql").read_text(encoding="utf-8").strip()


CONDITIONS = (
    Condition("imdb_positive", "imdb", "the review is positive", "imdb_pos"),
    Condition("abcd_account_access", "abcd", "the customer has account access issues", "abcd_acct"),
    Condition("abcd_single_item_query", "abcd", "the customer asks a question about a single item", "abcd_item"),
    Condition("airdialogue_book", "airdialogue", "the flight ticket was booked", "air_book"),
    Condition("airdialogue_no_flight", "airdialogue", "no flight was available", "air_noflight"),
    Condition("airdialogue_no_reservation", "airdialogue", "the customer has no valid reservation"),
    Condition("airdialogue_cancel", "airdialogue", "the reservation was cancelled", "air_cancel"),
    Condition("clevr_few_objects", "clevr", "there are fewer than four objects in the image"),
    Condition("clevr_many_spheres", "clevr", "there are more than three spheres in the image"),
    Condition("sgd_movies", "sgd", "the customer wants to find a movie", "sgd_movies"),
    Condition("sgd_failed", "sgd", "the booking or transaction failed", "sgd_failed"),
)
GROUPINGS = (
    Grouping("airdialogue_outcome", "airdialogue", "the outcome of the dialogue"),
    Grouping("abcd_flow", "abcd", "what the customer's request is about"),
    Grouping("sgd_intent", "sgd", "what the customer wants first"),
)


@dataclass(frozen=True, eq=False)
class World:
    """A data set made ready: rows in the order of their id, and where its files are."""

    source: Source
    folder: Path
    ids: tuple[int, ...]
    shown: tuple[Any, ...]  # text or bytes of each row
    dropped: int  # rows left out: equal content, different labels
    duplicates: int  # rows whose content another row has too

    @property
    def n(self) -> int:
        return len(self.ids)

    @property
    def data(self) -> Path:
        return self.folder / "data.parquet"

    @property
    def labels(self) -> Path:
        return self.folder / "labels.parquet"

    def truth(self, condition: Condition) -> Flags:
        """(N,) the labels' answer to a condition."""
        if condition.name not in self._truths:
            self._truths[condition.name] = self._truth(condition)
        return self._truths[condition.name]

    @cached_property
    def _truths(self) -> dict[str, Flags]:
        return {}

    def _truth(self, condition: Condition) -> Flags:
        with duckdb.connect() as con:
            con.sql(f"SELECT * FROM '{self.labels}'").create("labels")
            held = {row[0] for row in con.execute(condition.truth_sql).fetchall()}
        return np.array([i in held for i in self.ids])

    def kinds(self, grouping: Grouping) -> list[str]:
        """(N,) the labels' kind of each row."""
        if grouping.name not in self._groups:
            self._groups[grouping.name] = self._kinds(grouping)
        return self._groups[grouping.name]

    @cached_property
    def _groups(self) -> dict[str, list[str]]:
        return {}

    def _kinds(self, grouping: Grouping) -> list[str]:
        with duckdb.connect() as con:
            con.sql(f"SELECT * FROM '{self.labels}'").create("labels")
            held = dict(con.execute(grouping.truth_sql).fetchall())
        return [str(held[i]) for i in self.ids]

    @cached_property
    def embeddings(self) -> Matrix:
        """(N, d) unit rows: the engine's own first block, static word vectors of texts, colours and edges of pictures.

        Raises: ConfigError (UQL610) where the packages that make them are not installed.
        """
        if self.source.shown == "text":
            found = table_features(list(self.shown), key=self.source.name, cache_dir=self.folder / "vectors")
            if not found.blocks:
                raise lacking_vectors()
            block = found.blocks[0]
            vectors = np.ascontiguousarray(block.vectors[block.index], np.float32)
        else:
            embedder = image_embedder(None)
            if embedder is None:
                raise lacking_vectors()
            vectors = np.ascontiguousarray(embedder.embed(list(self.shown)), np.float32)
        unit: Matrix = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return unit

    def oracle(self, model: str) -> Path:
        """The oracle file of a model of labels: every condition and grouping of this data set is a column of the labels."""
        return self.folder / f"{model}.toml"


def words() -> Embedder:
    """Static word vectors. Raises: ConfigError (UQL610) where the package is not installed."""
    found = static_embedder()
    if found is None:
        raise lacking_vectors()
    return found


def lacking_vectors() -> ConfigError:
    return ConfigError(
        "the UQE suite compares rows by vectors, and the packages that make them are not installed",
        code="UQL610",
        help=install("local,images"),
    )


def examples(data: Path) -> dict[str, dict[str, list[str]]]:
    """The example rows that a model would write, by name; empty where the file beside the data is not there."""
    path = data.parent / "EXAMPLES.toml"
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        return tomllib.load(file)


@lru_cache(maxsize=8)
def world(name: str, choice: Choice) -> World:
    """A data set, made once a process; its vectors and labels stay in the work folder."""
    source = SOURCES[name]
    folder = choice.work / "uqe" / (name if choice.rows is None else f"{name}-{choice.rows}")
    folder.mkdir(parents=True, exist_ok=True)
    origin = choice.data / name
    if name == "clevr":
        origin = choice.work / "uqe" / "clevr-images"
        if not (origin / "labels.parquet").exists():
            clevr.write(origin, CLEVR_ROWS, seed=0, width=CLEVR_SIZE[0], height=CLEVR_SIZE[1])
    limit = "" if choice.rows is None else f"ORDER BY hash(d.id * 7919) LIMIT {choice.rows}"
    with duckdb.connect() as con:
        con.sql(
            f"SELECT d.id, d.{source.shown}, l.* EXCLUDE (id) FROM '{origin}/data.parquet' d "
            f"JOIN '{origin}/labels.parquet' l USING (id) WHERE {source.where} {limit}"
        ).create("held")
        con.execute(
            f"CREATE TABLE clear AS SELECT * FROM held WHERE {source.shown} IN (SELECT {source.shown} FROM held "
            f"GROUP BY 1 HAVING COUNT(DISTINCT ({source.columns})) = 1)"
        )
        (total,) = con.execute("SELECT COUNT(*) FROM held").fetchall()[0]
        (distinct,) = con.execute(f"SELECT COUNT(DISTINCT {source.shown}) FROM clear").fetchall()[0]
        rows = con.execute(f"SELECT id, {source.shown} FROM clear ORDER BY id").fetchall()
        con.sql(f"SELECT id, {source.shown} FROM clear ORDER BY id").write_parquet(str(folder / "data.parquet"))
        con.sql(f"SELECT * EXCLUDE ({source.shown}) FROM clear ORDER BY id").create("labels")
        answers = {}
        for c in CONDITIONS:
            if c.source == name:
                con.execute(f"ALTER TABLE labels ADD COLUMN {c.name} BOOLEAN")
                con.execute(f"UPDATE labels SET {c.name} = id IN ({c.truth_sql})")
                answers[c.text] = c.name
        for g in GROUPINGS:
            if g.source == name:
                con.execute(f"CREATE TABLE of_{g.name} AS {g.truth_sql}")
                con.execute(f"ALTER TABLE labels ADD COLUMN {g.name} VARCHAR")
                con.execute(f"UPDATE labels SET {g.name} = o.label FROM of_{g.name} o WHERE o.id = labels.id")
                answers[g.text] = g.name
        if name == "clevr":
            answers |= {
                "the number of objects in the image": "obj_count",
                "the number of spheres in the image": "spheres",
            }
        con.sql("SELECT * FROM labels ORDER BY id").write_parquet(str(folder / "labels.parquet"))
    for model, error in MODELS.items():
        _write_oracle(folder / f"{model}.toml", answers, error, examples(choice.data), name)
    found = len(rows)
    return World(source, folder, tuple(r[0] for r in rows), tuple(r[1] for r in rows), total - found, found - distinct)


def _write_oracle(
    path: Path, answers: dict[str, str], error: float, known: dict[str, dict[str, list[str]]], name: str
) -> None:
    lines = ['data = "data.parquet"', 'labels = "labels.parquet"', 'key = "id"', f"error = {error}", "", "[answers]"]
    lines += [f"{json.dumps(text)} = {json.dumps(sql)}" for text, sql in answers.items()]
    lines += ["", "[examples]"]
    for c in CONDITIONS:
        if c.source == name and c.example in known:
            yes, no = (json.dumps(known[c.example][side]) for side in ("yes", "no"))
            lines.append(f"{json.dumps(c.text)} = {{ yes = {yes}, no = {no} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def model_name(world: World, model: str) -> str:
    """What the engine calls a model of the suite."""
    return f"oracle:{world.oracle(model)}" if is_simulated(model) else model
