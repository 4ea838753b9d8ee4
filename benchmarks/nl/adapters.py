"""LOTUS, DSPy and LlamaIndex, each in an environment of its own, on the judged questions; and routers trained on what they made of them.

    uql adapters install lotus (dspy, llamaindex)
    python -m uql.benchmarks.nl.adapters run | report

`run` asks every adapter each question of the open halves of `judged_plain` and `judged_reading` with the tables that its reference
names as sources. They ask the witness (witness.py) over OpenAI's protocol, through the endpoint of the gate as in a session, but each
adapter's worker stays for all questions. `report` trains routers on one half of the questions and judges them on the other.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import uql
from uql.base.errors import QuestionError
from uql.benchmarks.nl import judged, plain_columns
from uql.benchmarks.nl.replay_server import served
from uql.benchmarks.nl.witness import Known, Rows, Witness, in_words
from uql.nl.adapters import APART, open_adapter
from uql.nl.adapters.process import ProcessAdapter, environment
from uql.nl.guard.guard import tables_named
from uql.nl.plan.dag import Operator
from uql.nl.routers.collect import Training, collect
from uql.nl.routers.ml import MLRouter
from uql.nl.routers.stat import StatRouter
from uql.nl.routers.traces import MODALITIES, Trace

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.features.embedder import Embedder
    from uql.nl.adapters.base import Adapter

TRACES = Path(__file__).parent / "adapter_traces.jsonl"  # of the last run of all
SETS = ("judged_reading", "judged_plain")
READ_IN = {
    "players_to_games": ("reports", "game_id"),
    "teams_to_games": ("reports", "game_id"),
}  # whose labels a text gives
OPERATORS = {"table": Operator.TABLE, "text": Operator.TEXT, "image": Operator.IMAGE}
WAIT_S = 300.0  # for one answer of a worker, its imports included
LONGEST = 60  # characters of an answer that are kept
DRAWS = 10_000  # of the bootstrap
MEASURES = ("f1", "hit", "coverage", "semantic_hit", "calls", "tokens", "seconds", "answer")
Matrix = np.ndarray[Any, np.dtype[np.float64]]


# -------------------------------------------------------------------------------------------------------------- workers
@dataclass(slots=True)
class Worker:
    """The process of an adapter, kept for all sub-queries; one that ends is started anew for the next."""

    command: Sequence[str]
    home: Path
    process: subprocess.Popen[bytes] | None = None

    def ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The reply to one order. Raises QuestionError (UQL640) where the worker ends or says nothing within `WAIT_S`."""
        process = self._there()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline() if select.select([process.stdout], [], [], WAIT_S)[0] else b""
        except BrokenPipeError:
            line = b""
        if not line:
            self.stop()
            said = (self.home / "log").read_text("utf-8", "replace").strip().splitlines()
            raise QuestionError(f"the worker ended: {said[-1][:300] if said else 'without a word'}", code="UQL640")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _there(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            self.home.mkdir(parents=True, exist_ok=True)
            with (self.home / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=self.home,
                    env=environment(self.home),
                )
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@dataclass(frozen=True, slots=True)
class Resident(ProcessAdapter):
    """An adapter whose worker stays."""

    worker: Worker = field(default_factory=lambda: Worker((), Path()))

    async def _spoken(self, order: dict[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self.worker.ask, order)


@contextmanager
def opened(names: Sequence[str]) -> Iterator[dict[str, Adapter]]:
    """The adapters of these names, those of other environments with workers that stay. Raises ConfigError (UQL642)."""
    made: dict[str, Adapter] = {}
    workers: list[Worker] = []
    try:
        for name in names:
            adapter = open_adapter(name)
            if isinstance(adapter, ProcessAdapter):
                workers.append(Worker(adapter.command, adapter.home))
                adapter = Resident(name, adapter.command, adapter.operators, adapter.home, worker=workers[-1])
            made[name] = adapter
        yield made
    finally:
        for worker in workers:
            worker.stop()


# --------------------------------------------------------------------------------------------------------------- traces
@dataclass(frozen=True, slots=True)
class Place:
    """Tables that are asked of, those of the reference, and the comments of both."""

    tables: Mapping[str, pa.Table]
    truths: Mapping[str, pa.Table]
    comments: Callable[[uql.Connection], None]


def place_of(asked: plain_columns.Asked, shared: Path, work: Path) -> Place:
    """Where a question is asked."""
    if asked.source == "labels":
        found = judged.PLACES[asked.schema](shared, work)
        return Place(found.world.tables, found.truths, found.world.fill)
    with plain_columns.truths(asked, shared, work) as database:
        names = [name for (name,) in database.sql("SELECT table_name FROM duckdb_tables()").fetchall()]
        tables = {name: database.sql(f'SELECT * FROM "{name}"').to_arrow_table() for name in names}

    def fill(connection: uql.Connection) -> None:
        for name, table in tables.items():
            connection.register(name, table)

    return Place(tables, tables, fill)


def rows_of(place: Place) -> dict[str, Rows]:
    """The tables as the witness reads them."""
    rows = {name: Rows(place.tables[name], place.truths[name]) for name in place.tables if name not in READ_IN}
    for name in place.tables.keys() - rows:
        other, key = READ_IN[name]
        rows[name] = Rows(place.tables[name], place.truths[name], (rows[other], key))
    return rows


def training_of(asked: plain_columns.Asked, place: Place) -> Training:
    """A question as a sub-query. Its sources are the tables that the reference names, with the texts of their labels, its answer is what
    the reference gives.
    """
    named = {name.lower() for name in tables_named(asked.sql)}
    named |= {READ_IN[name][0] for name in place.tables if name in READ_IN and name.lower() in named}
    sources = tuple(name for name in place.tables if name.lower() in named)
    labelled = [name for name in sources if place.truths[name].num_columns > place.tables[name].num_columns]
    pictured = any(str(field.type) == "binary" for name in labelled for field in place.tables[name].schema)
    modality = "image" if pictured else "text" if labelled else "table"
    import duckdb

    with duckdb.connect() as database:
        for name, table in place.truths.items():
            database.register(name, table)
        rows = database.execute(asked.sql).fetchall()
    return Training(asked.text, in_words(rows), OPERATORS[modality], modality, sources)


def run(
    shared: Path,
    names: Sequence[str],
    *,
    limit: int | None = None,
    done: Sequence[Row] = (),
    tell: Callable[[Row], None] = lambda row: None,
) -> None:
    """Asks each adapter the questions that it was not asked yet.

    Args:
        shared: the data folder.
        names: of adapters.
        limit: questions of a database at most.
        done: rows of earlier runs.
        tell: is told each row as it is made.
    """
    earlier = {(row.id, name) for row in done for name in row.by}
    asked = [one for name in SETS for one in plain_columns.questions(name, "open")]
    witness = Witness()
    with tempfile.TemporaryDirectory() as work, served(witness) as address, opened(names) as adapters:
        model = f"{address}/v1#replay"
        for _, group in groupby(asked, key=lambda one: one.schema):
            ones = list(group)[:limit]
            place = place_of(ones[0], shared, Path(work))
            rows = rows_of(place)
            with uql.connect(model=model, ledger=":memory:", budget="all") as connection:
                place.comments(connection)
                for one in ones:
                    training = training_of(one, place)
                    wanted = {n: a for n, a in adapters.items() if (one.id, n) not in earlier}
                    witness.known = {one.text: Known(one.sql, {name: rows[name] for name in training.sources})}
                    found = collect(connection.session, [training], wanted, planner=model)
                    if found:
                        tell(row_of(one.id, training.answer, found))


@dataclass(frozen=True, slots=True)
class Row:
    """What adapters made of one question: `MEASURES` of each by its name."""

    id: str
    subquery: str
    operator: str
    modality: str
    answer: str
    by: Mapping[str, Sequence[Any]]

    def traces(self) -> list[Trace]:
        """As routers learn from them."""
        known = (self.subquery, self.operator, self.modality)
        return [Trace(*known, name, **dict(zip(MEASURES, held, strict=True))) for name, held in self.by.items()]


def row_of(id: str, answer: str, traces: Sequence[Trace]) -> Row:
    """The traces of one question as a row, numbers and answers shortened."""
    by = {}
    for trace in traces:
        held = [getattr(trace, name) for name in MEASURES]
        by[trace.adapter] = [
            round(v, 3) if isinstance(v, float) else v[:LONGEST] if isinstance(v, str) else v for v in held
        ]
    first = traces[0]
    return Row(id, first.subquery, first.operator, first.modality, answer[:LONGEST], by)


def read(path: Path) -> list[Row]:
    """The rows of a file, those of one question together."""
    found: dict[str, Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = Row(**json.loads(line))
        known = found.get(row.id)
        found[row.id] = row if known is None else Row(**(asdict(known) | {"by": {**known.by, **row.by}}))
    return list(found.values())


def write(path: Path, rows: Sequence[Row], *, mode: str = "a") -> None:
    """Adds rows to a file, one a line."""
    with path.open(mode, encoding="utf-8") as stream:
        stream.writelines(json.dumps(asdict(row), ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


# -------------------------------------------------------------------------------------------------------------- judging
def halves(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Of each modality the half whose SHA-256 comes first, and the other."""
    parts: tuple[list[Row], list[Row]] = ([], [])
    for modality in MODALITIES:
        mine = sorted(
            (row for row in rows if row.modality == modality), key=lambda row: hashlib.sha256(row.id.encode()).digest()
        )
        for part, cut in zip(parts, (mine[: len(mine) // 2], mine[len(mine) // 2 :]), strict=True):
            part += cut
    return parts


@dataclass(frozen=True, slots=True)
class Judged:
    """Ways to choose an adapter, on questions that no router learned from.

    Attributes:
        rows: the questions.
        quality: way → (n,) the quality of what it chose; a way is an adapter, "StatRouter", "MLRouter" or "best of each".
        chosen: (n,) adapters that MLRouter chose.
        best: the adapter that was best where the routers learned.
        trained: sub-queries that they learned from.
    """

    rows: Sequence[Row]
    quality: Mapping[str, Matrix]
    chosen: Sequence[str]
    best: str
    trained: int


def judge(train: Sequence[Row], held: Sequence[Row], names: Sequence[str], embedder: Embedder) -> Judged:
    """Trains the routers on some questions and lets them choose on others.

    Args:
        train, held: questions that all these adapters were asked.
        names: of the adapters.
        embedder: of MLRouter.
    """
    traces = [trace for row in train for trace in row.traces() if trace.adapter in names]
    stat, ml = StatRouter.fit(traces), MLRouter.fit(traces, embedder)
    means = {name: statistics.mean(t.quality for t in traces if t.adapter == name) for name in names}
    made = [{trace.adapter: trace.quality for trace in row.traces()} for row in held]
    asked = [(row.subquery, Operator(row.operator)) for row in held]
    chosen = [
        ml.rank(text, operator, names, row.modality)[0] for (text, operator), row in zip(asked, held, strict=True)
    ]
    ways = {
        **{name: [name] * len(held) for name in names},
        "StatRouter": [stat.rank(text, operator, names)[0] for text, operator in asked],
        "MLRouter": chosen,
        "best of each": [max(names, key=lambda name: one[name]) for one in made],
    }
    quality = {way: np.array([one[name] for one, name in zip(made, picks, strict=True)]) for way, picks in ways.items()}
    return Judged(held, quality, chosen, max(names, key=lambda name: means[name]), len(train))


def interval(differences: Matrix, *, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of a mean, by bootstrap over questions.

    >>> interval(np.ones(9))
    (1.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    means = differences[rng.integers(0, len(differences), (DRAWS, len(differences)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def report(rows: Sequence[Row], embedder: Embedder) -> str:
    """The table of the held-out half, and the margins of the routers over the best single adapter, of either half."""
    names = [name for name in (*APART, "single_model") if any(name in row.by for row in rows)]
    whole = [row for row in rows if set(names) <= set(row.by)]
    one, two = halves(whole)
    held = judge(one, two, names, embedder)
    swapped = judge(two, one, names, embedder)
    counts = {m: sum(row.modality == m for row in held.rows) for m in MODALITIES}
    lines = [
        f"{len(whole)} sub-queries, {held.trained} to learn from, {len(held.rows)} held out",
        "",
        f"| held out | all {len(held.rows)} | {' | '.join(f'{m} {n}' for m, n in counts.items())} | tokens | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for way, quality in held.quality.items():
        parts = [
            np.mean([q for q, row in zip(quality, held.rows, strict=True) if row.modality == m] or [np.nan])
            for m in counts
        ]
        took = [dict(zip(MEASURES, row.by[way], strict=True)) for row in held.rows] if way in names else []
        spent = (
            f"{statistics.mean(t['tokens'] for t in took):,.0f} | {statistics.median(t['seconds'] for t in took):.2f}"
            if took
            else " | "
        )
        lines.append(f"| {way} | {quality.mean():.3f} | {' | '.join(f'{part:.3f}' for part in parts)} | {spent} |")
    picked = ", ".join(f"{name} {held.chosen.count(name)}" for name in names)
    lines += [
        "",
        f"MLRouter chose: {picked}",
        "",
        "| margin over the best single adapter | StatRouter | MLRouter |",
        "|---|---|---|",
    ]
    both = Judged(
        [*held.rows, *swapped.rows],
        {way: np.concatenate([held.quality[way], swapped.quality[way]]) for way in held.quality},
        (),
        "",
        0,
    )
    for about, found in (("held-out half", held), ("halves swapped", swapped), ("both, each held out once", both)):
        top = max(names, key=lambda name: found.quality[name].mean())
        cells = []
        for way in ("StatRouter", "MLRouter"):
            margin = found.quality[way] - found.quality[top]
            low, high = interval(margin)
            cells.append(f"{margin.mean():+.3f} [{low:+.3f}, {high:+.3f}]")
        learned = f"; {found.best} where the routers learned" if found.best else ""
        lines.append(f"| {about} (best there: {top}{learned}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Asks, and prints the table. Exit code 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="uql.benchmarks.nl.adapters", description=__doc__)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument(
        "--adapter", action="append", choices=(*APART, "single_model"), help="several times for several"
    )
    parser.add_argument("--limit", type=int, help="questions of a database at most")
    parser.add_argument("--rows", type=Path, default=TRACES, help="where the traces are kept; none is made twice")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    given = parser.parse_args(arguments)
    if given.what == "run":
        shared = given.data.resolve()
        if not (shared / "nvbench").is_dir():
            print(f"no data in {shared}: set UQL_DATA or --data", file=sys.stderr)
            return 2

        def tell(row: Row) -> None:
            write(given.rows, [row])
            qualities = ", ".join(f"{trace.adapter} {trace.quality:.2f}" for trace in row.traces())
            print(f"{row.id} ({row.modality}): {qualities}", flush=True)

        names = given.adapter or [*APART, "single_model"]
        run(shared, names, limit=given.limit, done=read(given.rows), tell=tell)
        write(given.rows, read(given.rows), mode="w")
    from uql.nl.routers import embedder_of

    print(report(read(given.rows), embedder_of(None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
