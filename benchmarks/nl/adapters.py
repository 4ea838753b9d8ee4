"""LOTUS, DSPy and LlamaIndex, each in an environment of its own, on the judged questions; and routers trained on what they made of them.

    uql adapters install lotus (dspy, llamaindex)
    python -m uql.benchmarks.nl.adapters run | report

`run` asks every adapter each question of the open halves of `judged_plain` and `judged_reading`, and of three suites with plans by hand,
with the tables that it needs as sources. They ask the witness (witness.py) over OpenAI's protocol, through the endpoint of the gate as
in a session, but each adapter's worker stays for all questions. `report` trains routers on one half of the questions and judges them on the
other.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import uql
from uql.base.errors import QuestionError, UQLError
from uql.benchmarks.nl import judged, plain_columns, plans, suites, worlds
from uql.benchmarks.nl.judged import Place
from uql.benchmarks.nl.references import equal
from uql.benchmarks.nl.replay_server import served
from uql.benchmarks.nl.traces import operator_of
from uql.benchmarks.nl.witness import Known, Rows, Witness, answer, in_words
from uql.benchmarks.nl.worlds import World
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
HERE = ("single_model",)  # of this process; `uql` and `structgpt` need statements, which the witness does not write
SETS = ("judged_reading", "judged_plain")
SUITES = {
    "countries_flags": ("countries", "all"),
    "artwork": ("artwork", "all"),
    "rotowire": ("rotowire", "few"),
}  # plans by hand → suite, place
_REPORTS = ("reports", "game_id")
READ_IN = {"players_to_games": _REPORTS, "teams_to_games": _REPORTS}  # tables whose labels the text of another gives
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
                adapter = Resident(name, adapter.command, adapter.home, worker=workers[-1])
            made[name] = adapter
        yield made
    finally:
        for worker in workers:
            worker.stop()


# --------------------------------------------------------------------------------------------------------------- traces
def place_of(asked: plain_columns.Asked, shared: Path, work: Path) -> Place:
    """Where a question is asked."""
    if asked.source == "labels":
        return judged.PLACES[asked.schema](shared, work)
    with plain_columns.truths(asked, shared, work) as database:
        names = [name for (name,) in database.sql("SELECT table_name FROM duckdb_tables()").fetchall()]
        tables = {name: database.sql(f'SELECT * FROM "{name}"').to_arrow_table() for name in names}
        return Place(World(asked.schema, tables, Path(), {}), tables)


def rows_of(place: Place) -> dict[str, Rows]:
    """The tables as the witness reads them."""
    rows = {name: Rows(table, place.truths[name]) for name, table in place.world.tables.items()}
    for name, (other, key) in READ_IN.items():
        if name in rows and rows[name].labels:
            rows[name].read_in = (rows[other], key)
    return rows


@dataclass(frozen=True, slots=True)
class Part:
    """A question as a sub-query, and what the witness knows of it."""

    id: str
    training: Training
    known: Known


def part_of(asked: plain_columns.Asked, place: Place, rows: Mapping[str, Rows]) -> Part:
    """A question of the judged sets. Its sources are the tables that the reference names, with the texts of their labels."""
    named = {name.lower() for name in tables_named(asked.sql)}
    named |= {READ_IN[name][0] for name in rows if name in READ_IN and name.lower() in named}
    sources = {name: rows[name] for name in place.world.tables if name.lower() in named}
    labelled = [name for name, held in sources.items() if held.labels]
    pictured = any(str(field.type) == "binary" for name in labelled for field in place.world.tables[name].schema)
    modality = "image" if pictured else "text" if labelled else "table"
    wanted = answer(asked.sql, place.truths)
    training = Training(asked.text, wanted, OPERATORS[modality], modality, tuple(sources))
    return Part(asked.id, training, Known(asked.sql, sources))


def solved(fixture: plans.Fixture, world: World, tables: Mapping[str, pa.Table]) -> tuple[pa.Table, ...]:
    """What a plan by hand gives over tables, read from the labels; nothing where it cannot be run over them."""
    with uql.connect(model=f"oracle:{world.oracle}", ledger=":memory:", budget="all") as connection:
        replace(world, tables=tables).fill(connection)
        try:
            return plans.run(fixture, connection).tables
        except UQLError:
            return ()


def told(tables: Sequence[pa.Table]) -> str:
    """The rows of tables in words."""
    return "; ".join(in_words([tuple(row.values()) for row in table.to_pylist()]) for table in tables)


def planned(asked: suites.Asked, fixture: plans.Fixture, world: World, rows: Mapping[str, Rows]) -> Part | None:
    """A question of a suite, answered by its plan; None where that does not equal the reference."""
    sources = {name: rows[name] for name in world.tables if name.lower() in asked.needed}
    wanted = solved(fixture, world, world.tables)
    if not wanted or not equal(wanted, asked.reference):
        return None
    operator, modality = operator_of(asked)
    training = Training(asked.words, told(wanted), operator, modality, tuple(sources))
    none = {name: table.schema.empty_table() for name, table in world.tables.items()}
    return Part(asked.id, training, Known("", sources, lambda seen: told(solved(fixture, world, {**none, **seen}))))


def parts(shared: Path, work: Path) -> Iterator[tuple[World, list[Part]]]:
    """The questions by the tables that they are asked of: of the judged sets, then of the suites with plans by hand."""
    judged_ones = [one for name in SETS for one in plain_columns.questions(name, "open")]
    for _, group in groupby(judged_ones, key=attrgetter("schema")):
        ones = list(group)
        place = place_of(ones[0], shared, work)
        rows = rows_of(place)
        yield place.world, [part_of(one, place, rows) for one in ones]
    for name, (suite, where) in SUITES.items():
        fixtures = {fixture.id: fixture for fixture in plans.read(name)}
        few = [one for one in suites.SUITES[suite].questions(shared) if one.place == where]
        (work / suite).mkdir()
        world = worlds.world(name, where, shared, work / suite)
        rows = rows_of(Place(world, world.tables))
        made = [planned(one, fixtures[one.id], world, rows) for one in few]
        yield world, [part for part in made if part is not None]


def run(
    shared: Path,
    names: Sequence[str],
    *,
    done: Sequence[Row] = (),
    tell: Callable[[Row], None] = lambda row: None,
) -> None:
    """Asks each adapter the questions that it was not asked yet.

    Args:
        shared: the data folder.
        names: of adapters.
        done: rows of earlier runs.
        tell: is told each row as it is made.
    """
    earlier = {(row.id, name) for row in done for name in row.by}
    witness = Witness()
    with tempfile.TemporaryDirectory() as work, served(witness) as address, opened(names) as adapters:
        model = f"{address}/v1#replay"
        for world, asked in parts(shared, Path(work)):
            with uql.connect(model=model, ledger=":memory:", budget="all") as connection:
                world.fill(connection)
                for part in filter(lambda part: part.training.answer, asked):  # an empty answer has no words to judge
                    wanted = {n: a for n, a in adapters.items() if (part.id, n) not in earlier}
                    witness.known = {part.training.subquery: part.known}
                    found = collect(connection.session, [part.training], wanted, planner=model)
                    if found:
                        tell(row_of(part.id, part.training.answer, found))


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

    def quality(self) -> dict[str, float]:
        """Of each adapter."""
        return {trace.adapter: trace.quality for trace in self.traces()}


def row_of(id: str, answer: str, traces: Sequence[Trace]) -> Row:
    """The traces of one question as a row, numbers and answers shortened."""

    def short(value: Any) -> Any:
        return value[:LONGEST] if isinstance(value, str) else round(value, 3)

    by = {trace.adapter: [short(getattr(trace, name)) for name in MEASURES] for trace in traces}
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


def judge(train: Sequence[Row], held: Sequence[Row], names: Sequence[str], embedder: Embedder) -> dict[str, list[str]]:
    """The adapters that each way to choose takes for the held questions: always one, a router, the best of each.

    Args:
        train, held: questions that all these adapters were asked.
        names: of the adapters.
        embedder: of MLRouter.
    """
    traces = [trace for row in train for trace in row.traces() if trace.adapter in names]
    stat, ml = StatRouter.fit(traces), MLRouter.fit(traces, embedder)
    return {
        **{name: [name] * len(held) for name in names},
        "StatRouter": [stat.rank(row.subquery, Operator(row.operator), names)[0] for row in held],
        "MLRouter": [ml.rank(row.subquery, Operator(row.operator), names, row.modality)[0] for row in held],
        "best of each": [max(names, key=row.quality().__getitem__) for row in held],
    }


def reached(ways: Mapping[str, Sequence[str]], held: Sequence[Row]) -> dict[str, Matrix]:
    """(n,) the quality of what each way took."""
    made = [row.quality() for row in held]
    return {way: np.array([one[name] for one, name in zip(made, taken, strict=True)]) for way, taken in ways.items()}


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
    """The tables of the adapters apart, and of these with those of this process."""
    asked = [name for name in (*APART, *HERE) if any(name in row.by for row in rows)]
    apart = [name for name in asked if name in APART]
    lines = dict.fromkeys(tuple(names) for names in (apart, asked) if len(names) > 1)
    return "\n\n".join(table(rows, names, embedder) for names in lines)


def table(rows: Sequence[Row], names: Sequence[str], embedder: Embedder) -> str:
    """The held-out half by ways to choose, and the margins of the routers over the best single adapter, of either half.

    Args:
        rows: of the questions; those that were asked of all these adapters count.
        names: of adapters.
        embedder: of MLRouter.
    """
    one, two = halves([row for row in rows if set(names) <= set(row.by)])
    ways = judge(one, two, names, embedder)
    held, swapped = reached(ways, two), reached(judge(two, one, names, embedder), one)
    of = {m: np.array([row.modality == m for row in two]) for m in MODALITIES if any(row.modality == m for row in two)}
    counts = " | ".join(f"{m} {mine.sum()}" for m, mine in of.items())
    lines = [
        f"{', '.join(names)}: {len(one)} sub-queries to learn from, {len(two)} held out",
        "",
        f"| of those held out | all {len(two)} | {counts} | tokens | median s |",
        f"|---|---|---|---|{'---|' * len(of)}",
    ]
    for way, quality in held.items():
        took = [dict(zip(MEASURES, row.by[name], strict=True)) for row, name in zip(two, ways[way], strict=True)]
        means = [f"{part.mean():.3f}" for part in (quality, *(quality[mine] for mine in of.values()))]
        spent = f"{np.mean([t['tokens'] for t in took]):,.0f} | {np.median([t['seconds'] for t in took]):.2f}"
        lines.append(f"| {way} | {' | '.join(means)} | {spent} |")
    chosen = ", ".join(f"{name} {ways['MLRouter'].count(name)}" for name in names)
    lines += ["", f"MLRouter chose: {chosen}", "", "| margin over | StatRouter | MLRouter |", "|---|---|---|"]
    both = {way: np.concatenate([held[way], swapped[way]]) for way in held}
    for about, by in (("held-out half", held), ("halves swapped", swapped), ("both", both)):
        best = max((float(by[name].mean()), name) for name in names)[1]
        margins = [by[way] - by[best] for way in ("StatRouter", "MLRouter")]
        cells = ["{:+.3f} [{:+.3f}, {:+.3f}]".format(margin.mean(), *interval(margin)) for margin in margins]
        lines.append(f"| {best}, {about} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Asks, and prints the table. Exit code 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="uql.benchmarks.nl.adapters", description=__doc__)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("--adapter", action="append", choices=(*APART, *HERE), help="several times for several")
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

        names = given.adapter or [*APART, *HERE]
        run(shared, names, done=read(given.rows), tell=tell)
        write(given.rows, read(given.rows), mode="w")
    from uql.nl.routers import embedder_of

    print(report(read(given.rows), embedder_of(None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
