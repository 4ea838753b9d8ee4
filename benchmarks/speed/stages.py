"""The engine's own stages, each as a function of the number of rows: what is prepared, and what is timed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import uql

QUERY = """SELECT reason, COUNT(*) AS n, AVG(stars) AS s FROM reviews AS r JOIN movies AS m ON r.movie = m.id
WHERE stars < 3 AND ("the review complains about the plot" OR NOT "the actors are praised") AND year BETWEEN 1990 AND 2020
GROUP BY "the main complaint" AS reason HAVING COUNT(*) > 2 ORDER BY n DESC LIMIT 5 WITH (budget = 256, confidence = 0.95)"""
DIMENSIONS, CALLS = 195, 128
LAKES = Path("build") / "scale"  # of generated rows
COUNT = 'SELECT COUNT(*) FROM reviews WHERE "the review speaks of music"'
LIMIT = 'SELECT id FROM reviews WHERE "the review speaks of a clever ending" LIMIT 10'
SEARCH = LIMIT.removesuffix(" LIMIT 10")
REVIEW = "lpad(CAST(i AS VARCHAR), 8, '0') || ' a review'"  # the text of the i-th
Timed = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Stage:
    """`prepare(n)` gives the function that is timed; `most` is the largest n that it is run with, `reduced` that of the short form."""

    name: str
    what: str
    prepare: Callable[[int], Timed]
    most: int = 1_000_000
    reduced: int = 1_000_000


def _parse(n: int) -> Timed:
    from uql.compiler.parser import parse

    return lambda: parse(QUERY)  # does not depend on n: the row of the table says so


def _plan(n: int) -> Timed:
    import uql

    con = uql.connect(ledger=":memory:", model="local")
    con.sql(f"SELECT i AS id, i % 5 + 1 AS stars, i % 100 AS movie, 'text ' || i AS text FROM range({n}) t(i)").create(
        "reviews"
    )
    con.sql("SELECT i AS id, 1950 + i AS year FROM range(100) t(i)").create("movies")
    text = QUERY.replace("year", "m.year").replace("stars", "r.stars")
    return lambda: con.uql(text)


def _columns(n: int) -> Timed:
    import uql
    from uql.benchmarks.gate.instant import Instant

    con = uql.connect(ledger=":memory:", model=Instant())
    made = ", ".join(f"{i} AS c{i}" if i % 2 else f"'value {i}' AS c{i}" for i in range(n))
    con.execute(f"CREATE TABLE wide AS SELECT 'a text' AS body, {made}")
    return lambda: con.uql('SELECT * FROM wide WHERE "it is nice" USING (body)').fetchall()


def _world(n: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((n, DIMENSIONS), dtype=np.float32)
    matrix /= np.float32(np.sqrt(DIMENSIONS))  # in place: 7.8 GB of ten million rows
    truth = (matrix[:, 0] + 0.05 * rng.standard_normal(n) > 0.12).astype(np.float64)
    return matrix, matrix[:, 0].astype(np.float64), truth


def _sample(n: int) -> Timed:
    from uql.sampling.methods import AGGREGATE

    matrix, prior, truth = _world(n)

    def run() -> object:
        sampler = AGGREGATE["asd"](n, CALLS, rng=np.random.default_rng(1), features=matrix, prior=prior)
        while len(rows := sampler.propose(1000)):
            sampler.tell(rows, truth[rows])
        return sampler.estimate()

    return run


def _update(n: int) -> Timed:
    from uql.sampling.methods import RETRIEVAL

    matrix, prior, truth = _world(n)
    search = RETRIEVAL["asd"](n, n, rng=np.random.default_rng(1), features=matrix, prior=prior, has_examples=True)
    for _ in range(CALLS // 8):
        rows = search.propose(8)
        search.tell(rows, truth[rows])

    def run() -> object:
        rows = search.propose(8)
        search.tell(rows, truth[rows])
        return rows

    return run  # each run has eight labels more than the last: at most 64 more in all


def _join(n: int) -> Timed:
    import duckdb

    import uql
    from uql.benchmarks.gate.instant import Instant

    duck = duckdb.connect()
    duck.execute(
        "CREATE TABLE a AS SELECT i AS id, "
        "'a thing of kind ' || hash(i) % 5000 || ' and make ' || hash(i + 7) % 900 || ', number ' || i AS text "
        f"FROM range({n}) t(i); CREATE TABLE b AS SELECT id, 'new: ' || text AS text FROM a"
    )
    con = uql.attach(duck, model=Instant(), ledger=":memory:")
    text = 'SELECT a.id, b.id FROM a JOIN b ON "the two describe the same thing" LIMIT 10 WITH (fresh = true)'
    return lambda: con.uql(text).fetchall()


def _connected(n: int) -> uql.Connection:
    """A new connection, which has no features yet, to generated rows that it has not seen."""
    import uql
    from uql.benchmarks.scale import Reader, write

    con = uql.connect(model=Reader(), ledger=":memory:", budget=CALLS, examples=False)
    con.execute(f"CREATE VIEW reviews AS FROM read_parquet('{write(LAKES, n)}/reviews/*.parquet')")
    return con


def _first(query: str) -> Callable[[int], Timed]:
    return lambda n: lambda: _connected(n).uql(query).fetchall()


def _next(query: str) -> Callable[[int], Timed]:
    def prepare(n: int) -> Timed:
        con = _connected(n)
        con.uql(query).fetchall()
        seeds = count(1)
        return lambda: con.uql(f"{query} WITH (fresh = true, seed = {next(seeds)})").fetchall()

    return prepare


def _gate(n: int) -> Timed:
    from uql.base.settings import Settings
    from uql.benchmarks.gate.instant import Instant, rows
    from uql.llm.gate import Gate
    from uql.llm.questions import Predicate

    asked = rows(n)

    async def ask() -> object:
        async with Gate.open(Settings(ledger=":memory:"), model=Instant(), calls=None) as gate:
            return await gate.ask(Predicate("it is so"), asked)

    return lambda: asyncio.run(ask())


def _replay(n: int) -> Timed:
    import uql
    from uql.benchmarks.gate.instant import Instant

    LAKES.mkdir(parents=True, exist_ok=True)
    ledger = LAKES / f"replay-{n}.sqlite"
    if not ledger.exists():
        begun = ledger.with_suffix(".begun")
        begun.unlink(missing_ok=True)
        asyncio.run(_keep_answers(begun, n))
        begun.rename(ledger)
    con = uql.connect(ledger=str(ledger), model=Instant())
    con.execute(f"CREATE TABLE reviews AS SELECT i AS id, {REVIEW} AS text FROM range({n}) t(i)")
    query = "SELECT id FROM reviews WHERE \"it is so\" WITH (budget = 'all')"
    return lambda: con.uql(query).arrow()


async def _keep_answers(path: Path, n: int) -> None:
    """A ledger with the answers about n reviews and the calls that they took, as a run would have kept them: by the ledger's own call."""
    import duckdb

    from uql.benchmarks.gate.instant import Instant
    from uql.llm.events import Event
    from uql.llm.ledger import Ledger, key_maker
    from uql.llm.ledger_keys import question_key, row_key
    from uql.llm.ledger_rows import Entry
    from uql.llm.providers.base import Answer
    from uql.llm.questions import Cell, Predicate, Row

    run, model, source, paid = "filled", "instant", "reviews", (50, 1, 5.1e-05)
    with duckdb.connect() as duck, Ledger(path, max_bytes=1 << 40) as ledger:
        head = question_key(Instant(), Predicate("it is so"))
        key = key_maker(ledger.secret, head)
        await ledger.note([head])
        rows = duck.execute(f"SELECT {REVIEW} FROM range({n}) t(i)")
        while texts := [text for (text,) in rows.fetchmany(4_096)]:
            keys = [key(row_key(Row((Cell("text", text),)))) for text in texts]
            answers = [Answer(text[7] in "02468", 0.5, paid=paid) for text in texts]
            entries = [Entry(k, answer, model, source, run) for k, answer in zip(keys, answers, strict=True)]
            call = Event(
                "call", run, ledger.now(), model, "Predicate", "it is so", *paid[:2], 1, paid[2], source=source
            )
            await ledger.put(entries, [call] * len(entries))


STAGES = (
    Stage("parse", "a statement of every clause, text to tree", _parse, 10**7),
    Stage("plan", "the same statement over n rows, text to physical plan", _plan, 10**7),
    Stage("columns", "a row of n columns, one of them asked about, text to result", _columns, 10_000, 10_000),
    Stage("sample", f"a COUNT of {CALLS} calls over n rows of {DIMENSIONS} features", _sample, 10**7),
    Stage("surrogate update", f"one batch of a search with {CALLS} labels over n rows", _update, 10**7),
    Stage(
        "join",
        "a search of 256 calls over n × n pairs, candidates included; beyond 10⁹ pairs these are found by faiss",
        _join,
        most=100_000,
        reduced=1_000,
    ),
    Stage(
        "first COUNT",
        f"COUNT(*) of {CALLS} calls over n short texts, none of them read before",
        _first(COUNT),
        10**7,
        10_000,
    ),
    Stage("next COUNT", "the same with another seed, features kept", _next(COUNT), 10**7, 10_000),
    Stage(
        "first LIMIT",
        f"LIMIT 10 of at most {CALLS} calls over n short texts, none of them read before",
        _first(LIMIT),
        10**7,
        1_000,
    ),
    Stage("next LIMIT", "the same with another seed, features kept", _next(LIMIT), 10**7, 1_000),
    Stage(
        "vectors",
        f"a search of at most {CALLS} calls that makes a vector of each of n short texts",
        _first(SEARCH),
        reduced=1_000,
    ),
    Stage("gate", "n rows asked of a model in this process that answers at once", _gate, reduced=100_000),
    Stage(
        "replay",
        "a statement that was asked of n rows before, answered again from the ledger",
        _replay,
        10**7,
        reduced=1_000,
    ),
)
