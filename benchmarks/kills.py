"""Processes of a run are killed (SIGKILL) at random moments: does the run resume, and are no more calls billed than its cap?

    python -m uql.benchmarks.kills [--times 25] [--what driver shard gate postgres] [--results kills.jsonl]

The run asks about every row of a lake of Parquet files and writes a file a shard: COPY … TO 'folder', on a Ray cluster of two nodes of
one core on this machine, the ledger in a PostgreSQL server. The provider counts each call as it arrives, in a file that all processes
append to. Who is killed:

    driver    the process that gave the statement; another process resumes the run
    shard     the process of a shard, with its gate; Ray starts it again
    gate      one of three processes that ask the same rows under one cap; Ray runs its task again
    postgres  the server of the ledger, which is started again

--without-ray: shards are in the driver's process, and a new process takes the place of a gate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path

import duckdb

import uql
from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Instant, rows
from uql.benchmarks.gate.postgres_server import Server
from uql.benchmarks.scale import two_nodes
from uql.cluster.cluster import PROCESS
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.providers.base import Limits, Reply, Request
from uql.llm.questions import Predicate
from uql.llm.run_budget import RunBudget
from uql.llm.run_record import Run

ROWS, SPARE = 150, 80  # rows of the lake; calls of the cap beside one a row
IN_FLIGHT, LATENCY_S = 8, 0.05  # requests of a process at once, and how long each takes
GATES, SHARDS = 3, 2
GATE_CPUS = 0.5  # of the cluster's two
MOST_TWICE = IN_FLIGHT * SHARDS  # calls that may be in flight as a process dies
PATIENCE_S = 600.0
COPY = (
    """COPY (SELECT id, "it is so"::VARCHAR AS so FROM reviews WITH (budget = {cap})) TO '{folder}' (FORMAT parquet)"""
)


class Billed(Instant):
    """Writes the process and the row of each call to a file before it answers."""

    def __init__(self, bill: Path) -> None:
        super().__init__(Limits(concurrency=IN_FLIGHT))
        self.bill = bill

    async def answer(self, request: Request) -> Reply:
        line = f"{os.getpid()} {str(request.row.cells[0].value)[:8]}\n"
        with self.bill.open("a") as bill:
            bill.write(line)
        await asyncio.sleep(LATENCY_S)
        return await super().answer(request)


def billed(bill: Path) -> list[tuple[int, str]]:
    """Process and row of each call that the provider counted."""
    lines = bill.read_text().splitlines() if bill.exists() else []
    return [(int(process), row) for process, _, row in (line.partition(" ") for line in lines)]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the runs take place: a folder, the server of the ledger, the address of a Ray cluster or PROCESS."""

    folder: Path
    server: Server
    address: str

    def new(self) -> Place:
        """The same with a folder of its own, and a lake in it."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "lake").mkdir()
        texts = "rpad(lpad(i::VARCHAR, 8, '0') || ' ', 60, 'x')"
        lake = f"COPY (SELECT i AS id, {texts} AS body FROM range({ROWS}) t(i)) TO '{folder}/lake/reviews.parquet'"
        with duckdb.connect(config={"threads": 1}) as duck:
            duck.execute(lake)
        return Place(folder, self.server, self.address)

    @property
    def bill(self) -> Path:
        return self.folder / "bill"


@dataclass(frozen=True, slots=True)
class KilledRun:
    """How a run went of which a process was killed.

    Attributes:
        calls: that the provider counted.
        answered: rows that have an answer at the end.
    """

    calls: int
    answered: int


# ------------------------------------------------------------------------------------------------ processes that are killed
def drive(folder: str, ledger: str, address: str, run: str) -> None:
    """Gives the statement; `run`: a run to be resumed instead, "" for a new one."""
    place = Path(folder)
    con = uql.connect(place / "lake", cluster=address, shards=SHARDS, model=Billed(place / "bill"), ledger=ledger)
    if run:
        con.resume(run)
    else:
        con.uql(COPY.format(cap=ROWS + SPARE, folder=place / "out"))
    con.close()


def gate(folder: str, ledger: str) -> None:
    """One gate of a run that several processes share."""
    asyncio.run(_ask(folder, ledger))


def gates_on_ray(folder: str, ledger: str, address: str) -> None:
    """The gates as tasks of Ray, which runs that of a killed process again."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="error")
    task = ray.remote(num_cpus=GATE_CPUS, max_retries=-1)(gate)
    ray.get([task.remote(folder, ledger) for _ in range(GATES)])


async def _ask(folder: str, ledger: str) -> None:
    with Ledger(ledger) as opened:
        budget = RunBudget(opened, "shared", ROWS + SPARE)
        model = Billed(Path(folder) / "bill")
        async with Gate.open(
            Settings(), model=model, ledger=opened, run=Run("shared", part=True), budget=budget
        ) as opened_gate:
            await opened_gate.ask(Predicate("it is so"), rows(ROWS))


def started(work: Callable[..., None], *arguments: str) -> SpawnProcess:
    """A process that does some work. It is no copy of this one: Ray has threads here, whose locks a copy would wait for."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    return process


@contextmanager
def running(work: Callable[..., None], *arguments: str) -> Iterator[SpawnProcess]:
    """A process, which ends by itself or is killed."""
    process = started(work, *arguments)
    try:
        yield process
        process.join(PATIENCE_S)
    finally:
        process.kill()
        process.join()


def driver(place: Place, ledger: str, run: str = "") -> AbstractContextManager[SpawnProcess]:
    return running(drive, str(place.folder), ledger, place.address, run)


def when_billed(place: Place, chance: random.Random) -> None:
    """Waits for a random moment of the run."""
    calls, until = chance.randint(1, ROWS - 30), time.monotonic() + PATIENCE_S
    while len(billed(place.bill)) < calls:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(billed(place.bill))} calls after {PATIENCE_S:.0f} s")
        time.sleep(0.02)


def written(place: Place) -> int:
    """Rows of the files that have an answer."""
    files = place.folder / "out" / "*.parquet"
    if not list((place.folder / "out").glob("*.parquet")):
        return 0
    sql = f"SELECT count(DISTINCT id) FROM read_parquet('{files}') WHERE so IS NOT NULL"
    with duckdb.connect(config={"threads": 1}) as duck:
        return int(duck.execute(sql).fetchall()[0][0])


# ---------------------------------------------------------------------------------------------------------- who is killed
def kill_one(place: Place, chance: random.Random, but: SpawnProcess) -> None:
    """Kills a process that has made calls, but for the driver."""
    os.kill(chance.choice(sorted({p for p, _ in billed(place.bill)} - {but.pid})), signal.SIGKILL)


def kill_driver(place: Place, chance: random.Random) -> KilledRun:
    ledger = place.server.database()
    with driver(place, ledger) as process:
        when_billed(place, chance)
        process.kill()
    with Ledger(ledger) as opened:
        (run,) = (run["run"] for run in opened.runs())
    with driver(place, ledger, run):
        pass
    return KilledRun(len(billed(place.bill)), written(place))


def kill_shard(place: Place, chance: random.Random) -> KilledRun:
    with driver(place, place.server.database()) as process:
        when_billed(place, chance)
        kill_one(place, chance, but=process)
    return KilledRun(len(billed(place.bill)), written(place))


def kill_postgres(place: Place, chance: random.Random) -> KilledRun:
    with driver(place, place.server.database()):
        when_billed(place, chance)
        place.server.kill()
        time.sleep(chance.uniform(0.0, 1.0))
        place.server.up_again()
    return KilledRun(len(billed(place.bill)), written(place))


def kill_gate(place: Place, chance: random.Random) -> KilledRun:
    ledger = place.server.database()
    Ledger(ledger).close()
    arguments = str(place.folder), ledger
    if place.address != PROCESS:
        with running(gates_on_ray, *arguments, place.address) as process:
            when_billed(place, chance)
            kill_one(place, chance, but=process)
    else:
        with ExitStack() as closing:
            gates = [closing.enter_context(running(gate, *arguments)) for _ in range(GATES)]
            when_billed(place, chance)
            chance.choice(gates).kill()
            closing.enter_context(running(gate, *arguments))
    with Ledger(ledger) as opened:
        return KilledRun(len(billed(place.bill)), opened.stats().answers)


KILLS: dict[str, Callable[[Place, random.Random], KilledRun]] = {
    "driver": kill_driver,
    "shard": kill_shard,
    "gate": kill_gate,
    "postgres": kill_postgres,
}


def measure(what: str, times: int, place: Place) -> dict[str, int]:
    """Runs of which a process was killed, each in a place of its own: how many ended with all answers, how many within the cap, and how
    many calls were made twice at most."""
    runs = []
    for n in range(times):
        own = place.new()
        runs.append(KILLS[what](own, random.Random(f"{what} {n}")))
        print(f"{what} {n}: {runs[-1]}", file=sys.stderr, flush=True)
        shutil.rmtree(own.folder)
    return {
        "times": times,
        "whole": sum(run.answered == ROWS for run in runs),
        "within": sum(run.calls <= ROWS + SPARE for run in runs),
        "twice": max(run.calls for run in runs) - ROWS,
    }


@contextmanager
def places(with_ray: bool) -> Iterator[Place]:
    """A new folder, a server, and with Ray a cluster."""
    with ExitStack() as closing:
        folder = closing.enter_context(tempfile.TemporaryDirectory())
        server = Server.start()  # a process that is killed loses nothing that the system has
        closing.callback(server.stop)
        yield Place(Path(folder), server, closing.enter_context(two_nodes()).address if with_ray else PROCESS)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--what", nargs="+", choices=list(KILLS))
    parser.add_argument(
        "--without-ray", action="store_true", help="shards are in the driver's process, and none is killed"
    )
    parser.add_argument("--results", type=Path, help="lines of JSON, for python -m uql.benchmarks.growth")
    given = parser.parse_args(arguments)
    what = [who for who in given.what or KILLS if not (given.without_ray and who == "shard")]
    good = True
    with places(not given.without_ray) as place:
        for who in what:
            result = measure(who, given.times, place)
            line = {"kill": who, "with_ray": place.address != PROCESS, "rows": ROWS, "cap": ROWS + SPARE, **result}
            print(json.dumps(line), flush=True)
            if given.results is not None:  # a file of its own: what Ray says of a killed process is on stdout too
                with given.results.open("a", encoding="utf-8") as results:
                    results.write(json.dumps(line) + "\n")
            good = good and result["whole"] == result["within"] == given.times and result["twice"] <= MOST_TWICE
    return 0 if good else 1


if __name__ == "__main__":
    from uql.benchmarks import kills  # under a name by which Ray's processes find its classes

    sys.exit(kills.main())
