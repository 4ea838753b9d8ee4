"""Four processes that share a run and its ledger: answers settled a second (claimed, reserved under the run's cap, asked, kept), then
the same rows from the ledger in one process. The ledger is that of $UQL_LEDGER where it is a server, else a new file."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import time

from uql.base.postgres_url import is_postgres, without_password
from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Instant, rows
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.questions import Predicate
from uql.llm.run_budget import RunBudget
from uql.llm.run_record import Run

TARGET = 1500
PROCESSES = 4


async def settle(place: str, run: str, part: slice, count: int) -> None:
    """One process: asks a part of the rows, when it is told to."""
    with Ledger(place) as ledger:
        budget = RunBudget(ledger, run, count)
        async with Gate.open(Settings(), model=Instant(), ledger=ledger, run=Run(run), budget=budget) as gate:
            await gate.provider()
            asked = rows(count)[part]
            print("ready", flush=True)
            sys.stdin.readline()
            answers = await gate.ask(Predicate(f"it is so in {run}"), asked)
            assert not answers.failures
            print("done", flush=True)


def measure(place: str, count: int) -> tuple[float, float]:
    """(answers settled a second by all processes together, rows a second from the ledger)."""
    run = secrets.token_hex(4)
    command = [sys.executable, "-m", "uql.benchmarks.gate.shared", run]
    environment = {**os.environ, "UQL_LEDGER": place}
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen([*command, str(n), str(count)], stdin=pipe, stdout=pipe, text=True, env=environment)
        for n in range(PROCESSES)
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    began = time.monotonic()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "done\n"
    settled = count / (time.monotonic() - began)
    assert [worker.wait() for worker in workers] == [0] * PROCESSES
    return settled, asyncio.run(replay(place, run, count))


async def replay(place: str, run: str, count: int) -> float:
    """Rows a second that the ledger answers."""
    asked = rows(count)
    async with Gate.open(Settings(ledger=place), model=Instant(), calls=0) as gate:
        await gate.provider()
        began = time.monotonic()
        answers = await gate.ask(Predicate(f"it is so in {run}"), asked)
        assert not answers.failures
        return count / (time.monotonic() - began)


def main(count: int = 20_000) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        given = os.environ.get("UQL_LEDGER")
        place = given if given and is_postgres(given) else f"{folder}/ledger.sqlite"
        settled, known = measure(place, count)
    print(
        f"{PROCESSES} processes, ledger {without_password(place)}: {settled:,.0f} answers settled/s (target {TARGET:,}); "
        f"from the ledger: {known:,.0f} rows/s"
    )
    return settled >= TARGET


if __name__ == "__main__":
    run, part, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    asyncio.run(settle(os.environ["UQL_LEDGER"], run, slice(part, None, PROCESSES), count))
