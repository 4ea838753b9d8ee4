"""A question in flight is waited for: threads and processes that ask the same at once pay for it once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.llm.ledger_sqlite import write_ahead
from uql.llm.providers.base import CallError, Limits, Reply, Request

ROWS = 300
EVERY = 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (exact)'
SOME = 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 60)'


class Slow(HashModel):
    """Counts what it is paid for, in all threads."""

    limits = Limits(concurrency=8)

    def __init__(self, latency_s: float = 0.004, fails: bool = False) -> None:
        super().__init__({"it is so": 0.3})
        self.latency_s, self.fails = latency_s, fails
        self.paid: list[str] = []
        self.held: threading.Event | None = None  # nothing is answered before it is set

    async def answer(self, request: Request) -> Reply:
        self.paid.append(str(request.row.cells[0].value if request.row.cells else "examples"))
        await asyncio.sleep(self.latency_s)
        if self.held is not None:
            await asyncio.to_thread(self.held.wait, 120)
        if self.fails:
            raise CallError("refusal", "no")
        return await super().answer(request)


def connect(folder: Path, model: Any, ledger: str | None = None, rows: int = ROWS) -> uql.Connection:
    con = uql.connect(model=model, ledger=ledger or str(folder / "l.sqlite"))
    con.sql(
        f"CREATE TABLE t AS SELECT range AS id, 'text of number ' || range || ' as it stands here' AS text FROM range({rows})"
    )
    return con


@pytest.mark.parametrize("statement", [EVERY, pytest.param(SOME, marks=pytest.mark.thorough)])
def test_eight_threads_with_one_question_pay_for_it_once(tmp_path: Path, statement: str) -> None:
    alone = Slow(0)
    with connect(tmp_path, alone, str(tmp_path / "alone.sqlite")) as con:
        expected = con.uql(statement).estimates
    model = Slow()
    with connect(tmp_path, model) as con:
        cursors = [con.cursor() for _ in range(8)]
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda c: c.uql(statement).estimates, cursors))
    assert len(model.paid) == len(set(model.paid)) == len(alone.paid)
    for one in found:  # vectors are made in each thread, and their last digits differ
        assert one["n"].value == pytest.approx(expected["n"].value) and one["n"].calls == expected["n"].calls


def test_a_waiter_asks_itself_where_the_owner_got_no_answer(tmp_path: Path) -> None:
    owner, waiter = Slow(0.2, fails=True), Slow(0)
    with connect(tmp_path, owner, rows=8) as one, connect(tmp_path, waiter, rows=8) as two:
        thread = threading.Thread(target=lambda: one.uql(EVERY).fetchall())
        thread.start()
        while not owner.paid:
            time.sleep(0.005)
        result = two.uql('SELECT id FROM t WHERE "it is so" WITH (exact)')
        assert not result.errors and len(waiter.paid) == 8
        thread.join()


def test_waiting_ends_at_max_seconds_and_when_it_is_interrupted(tmp_path: Path) -> None:
    owner, waiter = Slow(0), Slow(0)
    owner.held = threading.Event()
    with connect(tmp_path, owner, rows=8) as one, connect(tmp_path, waiter, rows=8) as two:
        thread = threading.Thread(target=lambda: one.uql(EVERY).fetchall())
        thread.start()
        while not owner.paid:
            time.sleep(0.005)
        assert two.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (exact, max_seconds = 0.3)').partial
        waiting = ThreadPoolExecutor(1).submit(lambda: two.uql(EVERY).partial)
        while not waiting.done():  # an interrupt before it runs is of no statement
            two.interrupt()
            time.sleep(0.02)
        assert waiting.result()
        assert thread.is_alive() and not waiter.paid, "both ended while the owner had no answer"
        owner.held.set()
        thread.join()


@pytest.mark.timeout(60)
def test_an_interrupt_before_the_first_row_is_sent_ends_the_statement_and_no_later_one(tmp_path: Path) -> None:
    model = Slow(0)
    with connect(tmp_path, model, rows=8) as con:
        stop = con.on_event(lambda event: con.interrupt() if event.kind == "plan" else None)
        assert con.uql(EVERY).partial and not model.paid
        stop()
        con.interrupt()  # nothing runs
        assert not con.uql(EVERY).partial and len(model.paid) == 8


def test_a_row_that_fails_is_not_held_longer_than_its_question(tmp_path: Path) -> None:
    with connect(tmp_path, Slow(0, fails=True), rows=8) as con:
        assert len(con.uql(EVERY).errors) == 8
    from uql.llm.ledger import Ledger

    with Ledger(tmp_path / "l.sqlite") as ledger:
        assert ledger.work(lambda db: db.execute("SELECT count(*) FROM claims").fetchone()) == (0,)
        assert ledger.work(lambda db: db.execute("SELECT count(*) FROM leases").fetchone()) == (0,)


PROCESS = r"""
import asyncio, json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import uql
from hash_model import HashModel
from uql.llm.providers.base import Limits
folder = Path(sys.argv[2])

class Paid(HashModel):
    limits = Limits(concurrency=8)
    def __init__(self):
        super().__init__({"it is so": 0.3})
        self.bill = os.open(folder / "bill", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async def answer(self, request):
        os.write(self.bill, (f"{os.getpid()} " + str(request.row.cells[0].value if request.row.cells else "examples") + "\n").encode())
        await asyncio.sleep(0.03)
        return await super().answer(request)

with uql.connect(model=Paid(), ledger=sys.argv[3]) as con:
    con.sql("CREATE TABLE t AS SELECT 'text of number ' || range || ' as it stands here' AS text FROM range(300)")
    print("ready", flush=True)
    sys.stdin.readline()
    n = con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (exact)').estimates["n"]
    print(json.dumps([n.value, n.exact]), flush=True)
"""


def started(folder: Path, ledger: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS, str(Path(__file__).parents[1]), str(folder), ledger]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def bill(folder: Path) -> list[str]:
    file = folder / "bill"
    return [line.partition(" ")[2] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.thorough
@pytest.mark.parametrize("kill", [False, True])
def test_processes_with_one_question_pay_for_it_once_but_for_what_a_killed_one_had_in_flight(
    tmp_path: Path, kill: bool
) -> None:
    pay_once(tmp_path, str(tmp_path / "l.sqlite"), kill)


@pytest.mark.slow
@pytest.mark.parametrize("kill", [False, True])
def test_so_do_processes_that_share_a_server(tmp_path: Path, server: Any, kill: bool) -> None:
    pay_once(tmp_path, server.database(), kill)


def pay_once(tmp_path: Path, ledger: str, kill: bool) -> None:
    processes = [started(tmp_path, ledger) for _ in range(3 if kill else 2)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    if kill:
        while len(bill(tmp_path)) < 60:
            time.sleep(0.005)
        owner = int((tmp_path / "bill").read_text().split()[0])
        os.kill(owner, signal.SIGKILL)
    said = [process.communicate(timeout=60)[0] for process in processes]
    found = [json.loads(text) for text in said if text]
    assert len(found) == 2 and len({str(one) for one in found}) == 1 and found[0][1]
    paid = bill(tmp_path)
    assert len(set(paid)) == ROWS and len(paid) <= ROWS + (8 if kill else 0)


def test_a_ledger_that_another_process_turns_to_write_ahead_logging_is_waited_for(tmp_path: Path) -> None:
    """SQLite's busy timeout does not cover this statement: two processes that open a new ledger at once met it in 3 % of the runs."""

    class Busy(sqlite3.Connection):
        refused = 0

        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql and self.refused < 3:
                self.refused += 1
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise error
            return super().execute(sql, *more)

    db = sqlite3.connect(tmp_path / "l.sqlite", factory=Busy)
    write_ahead(db)
    assert db.refused == 3
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
