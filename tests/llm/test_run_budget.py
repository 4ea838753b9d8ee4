"""Calls of a run that several processes share: billed at the provider never above the cap, whatever is killed when."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scripted import Scripted, row

from uql.base.settings import Settings
from uql.benchmarks.gate.postgres_server import Server
from uql.llm import limiter
from uql.llm.budget import Reservation
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.providers.base import CallError, Request
from uql.llm.questions import Predicate
from uql.llm.run_budget import RunBudget
from uql.llm.run_record import Run

WORKER = r"""
import asyncio, os, random, sys
sys.path[:0] = sys.argv[1:3]
from scripted import Scripted, row
from uql.base.settings import Settings
from uql.llm import run_lease, run_owner
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.providers.base import CallError, Limits
from uql.llm.questions import Predicate
from uql.llm.run_budget import RunBudget
from uql.llm.run_record import Run
place, bill, cap, seed = sys.argv[3], os.open(sys.argv[4], os.O_WRONLY | os.O_APPEND | os.O_CREAT), int(sys.argv[5]), int(sys.argv[6])
chance = random.Random(seed)

class Paid(Scripted):
    limits = Limits(concurrency=8)
    async def answer(self, request):
        os.write(bill, (request.row.cells[0].value + "\n").encode())  # billed as it arrives
        await asyncio.sleep(0.002)
        if chance.random() < 0.05:
            raise CallError("server", "503")  # billed all the same
        return await super().answer(request)

async def main():
    rows = [row(f"row number {n}") for n in range(400)]
    chance.shuffle(rows)
    with Ledger(place) as ledger:
        budget = RunBudget(ledger, "shared", cap)
        async with Gate.open(Settings(), model=Paid(), ledger=ledger, run=Run("shared"), budget=budget) as gate:
            print("ready", flush=True)
            sys.stdin.readline()
            await gate.ask(Predicate("it is long"), rows)
asyncio.run(main())
"""


def worker(place: str, bill: Path, cap: int, seed: int) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    command = [sys.executable, "-c", WORKER, str(here), str(here.parent), place, str(bill), str(cap), str(seed)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def billed(place: str, folder: Path, seed: int, processes: int) -> tuple[int, int, set[str]]:
    """(cap, calls that the provider counted, rows asked) of a run that loses some of its processes at random moments."""
    chance = random.Random(seed)
    cap, bill = chance.choice([40, 150, 380, 600]), folder / f"bill-{seed}"
    workers = [worker(place, bill, cap, seed * 10 + n) for n in range(processes)]
    for process in workers:
        assert process.stdout is not None and process.stdin is not None and process.stdout.readline() == "ready\n"
    for process in workers:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in chance.sample(workers, chance.randint(0, processes - 1)):
        time.sleep(chance.uniform(0, 0.15))
        os.kill(process.pid, signal.SIGKILL)
    for process in workers:
        process.communicate(timeout=120)
        assert process.returncode in (0, -signal.SIGKILL)
    calls = bill.read_text().splitlines() if bill.exists() else []
    return cap, len(calls), set(calls)


@pytest.mark.thorough
def test_four_processes_never_make_more_calls_than_the_run_may(server: Server, tmp_path: Path) -> None:
    place = server.database()
    cap, calls, _ = billed(place, tmp_path, 3, 4)
    assert calls <= cap
    with Ledger(place) as ledger:
        assert asyncio.run(ledger.reserve("shared", 10**6, 0)) == 0 and calls <= taken(ledger) <= cap


def taken(ledger: Ledger) -> int:
    return int(ledger.work(lambda db: db.execute("SELECT calls FROM reserved").fetchone())[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_sixty_random_runs_bill_no_call_above_their_cap(server: Server, tmp_path: Path, seed: int) -> None:
    place = server.database() if seed % 3 else str(tmp_path / "l.sqlite")
    cap, calls, _ = billed(place, tmp_path, seed, random.Random(seed).randint(1, 4))
    assert calls <= cap


def test_a_dead_process_keeps_what_it_took_and_the_living_get_the_rest(place: str) -> None:
    async def go(ledger: Ledger) -> None:
        dead, living = RunBudget(ledger, "r", 100), RunBudget(ledger, "r", 100)
        assert all([await dead.reserve(Reservation(0, 0.0)) for _ in range(30)])
        tickets = await asyncio.gather(*(living.reserve(Reservation(0, 0.0)) for _ in range(90)))
        assert sum(ticket is not None for ticket in tickets) == 70 and living.exhausted == "calls"
        assert living.calls_left == 0
        living.release(next(ticket for ticket in tickets if ticket is not None))  # it was not sent
        await asyncio.sleep(0.2)
        assert await living.reserve(Reservation(0, 0.0)) is not None
        assert await living.reserve(Reservation(0, 0.0)) is None

    with Ledger(place) as ledger:
        asyncio.run(go(ledger))


def test_several_rows_of_a_request_are_taken_together_or_not(place: str) -> None:
    async def go(ledger: Ledger) -> None:
        budget = RunBudget(ledger, "r", 10)
        assert await budget.reserve(Reservation(0, 0.0, 8)) is not None
        assert await budget.reserve(Reservation(0, 0.0, 8)) is None and budget.calls_left == 2
        assert await budget.reserve(Reservation(0, 0.0, 2)) is not None

    with Ledger(place) as ledger:
        asyncio.run(go(ledger))


def test_a_call_that_is_tried_again_is_taken_again(place: str) -> None:
    def busy(request: object, n: int) -> CallError:
        return CallError("server", "503")

    async def go(ledger: Ledger) -> None:
        model = Scripted(script=busy)
        budget = RunBudget(ledger, "r", 4)
        async with Gate.open(Settings(), model=model, ledger=ledger, run=Run("r"), budget=budget) as gate:
            answers = await gate.ask(Predicate("it is long"), [row("a"), row("b"), row("c")])
        assert len(model.calls) == 4 and len(answers.failures) == 3

    with Ledger(place) as ledger:
        asyncio.run(go(ledger))


def billed_here(seed: int) -> tuple[int, int]:
    """(cap, calls that the provider counted) of a run of several workers in this process, with refusals, late replies and workers that stop."""
    chance = random.Random(seed)
    cap, workers = chance.randint(0, 60), chance.randint(1, 6)
    fault, stopping = chance.choice([0.0, 0.1, 0.5]), chance.randint(0, workers)
    bill: list[str] = []

    def script(request: Request, n: int) -> CallError | None:
        bill.append(request.row.cells[0].value)  # billed as it arrives
        return CallError(chance.choice(["server", "timeout"]), "no") if chance.random() < fault else None

    async def work(ledger: Ledger, n: int) -> None:
        rows = [row(f"row number {i}") for i in range(40)]
        random.Random(f"{seed} {n}").shuffle(rows)
        model = Scripted(script=script, latency_s=chance.choice([0.0, 0.001]), concurrency=chance.choice([1, 4, 16]))
        budget = RunBudget(ledger, "r", cap)
        async with Gate.open(Settings(on_error="null"), model=model, ledger=ledger, run=Run("r"), budget=budget) as g:
            await g.ask(Predicate("it is long"), rows)

    async def go(ledger: Ledger) -> None:
        tasks = [asyncio.create_task(work(ledger, n)) for n in range(workers)]
        for task in chance.sample(tasks, stopping):
            await asyncio.sleep(chance.uniform(0, 0.01))
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with Ledger(":memory:") as ledger:
        asyncio.run(go(ledger))
    return cap, len(bill)


@pytest.mark.parametrize("first", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_random_caps_workers_and_faults_never_overspend(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "FIRST_PAUSE_S", 0.001)
    found = [billed_here(seed) for seed in range(first, 40 if not first else 1000)]
    assert all(calls <= cap for cap, calls in found)
    assert any(calls == cap for cap, calls in found)


def test_tokens_and_money_are_taken_in_slices_that_a_dead_process_keeps(place: str) -> None:
    async def go(ledger: Ledger) -> None:
        dead, living, later = (
            RunBudget(ledger, "r", None, tokens=6400, usd=0.64, sitting=name) for name in ("a", "a", "b")
        )
        tickets = [await dead.reserve(Reservation(150, 0.01)) for _ in range(10)]
        assert None not in tickets and dead.tokens == 1500 and dead.usd == 0.15 and dead.tokens_left == 6400 - 1500
        granted = 0
        while (ticket := await living.reserve(Reservation(150, 0.01))) is not None:
            living.settle(ticket, tokens=150, usd=0.01)
            granted += 1
        assert granted == (64 - 15) * 100 // 150 and living.exhausted == "tokens"
        assert await later.reserve(Reservation(6400, 0.64)) is not None and later.exhausted is None

    with Ledger(place) as ledger:
        asyncio.run(go(ledger))


def test_no_more_slices_are_taken_than_what_is_paid_and_in_flight_needs(place: str) -> None:
    async def go(ledger: Ledger) -> None:
        budget, four = RunBudget(ledger, "r", 100, usd=64.0), asyncio.Semaphore(4)

        async def call() -> None:
            async with four:
                ticket = await budget.reserve(Reservation(10, 1.0))
                assert ticket is not None
                await asyncio.sleep(0.001)
                budget.settle(ticket, tokens=10, usd=0.1)

        await asyncio.gather(*(call() for _ in range(40)))
        assert budget.usd is not None and budget.usd <= 40 * 0.1 + 4 + 1 and budget.exhausted is None

    with Ledger(place) as ledger:
        asyncio.run(go(ledger))
