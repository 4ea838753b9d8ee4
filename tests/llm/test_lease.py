"""A run belongs to one process: another one is told who has it, and may go on where that one has ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.llm import run_owner
from uql.llm.ledger import Ledger
from uql.llm.run_lease import Lease

SITTING = r"""
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import uql
from hash_model import HashModel
from uql.base.errors import UQLError
from uql.llm import run_lease, run_owner
from uql.llm.providers.base import Limits
folder, what, latency, run_lease.BEAT_S, run_owner.DEAD_S = Path(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:])

class Paid(HashModel):
    limits = Limits(concurrency=4)
    def __init__(self):
        super().__init__({"it is so": 0.3})
        self.bill = os.open(folder / "bill", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async def answer(self, request):
        import asyncio
        os.write(self.bill, (f"{os.getpid()} " + str(request.row.cells[0].value if request.row.cells else "examples") + "\n").encode())
        await asyncio.sleep(latency)
        return await super().answer(request)

with uql.connect(folder / f"{what}.duckdb", model=Paid(), ledger=str(folder / "l.sqlite")) as con:
    con.sql("CREATE TABLE t AS SELECT 'text of number ' || range || ' as it stands here' AS text FROM range(400)")
    try:
        if what == "first":
            result = con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 60)')
        else:
            result = con.resume(con.uql("SELECT run FROM uql_runs()").fetchall()[0][0])
        n = result.estimates["n"]
        print(json.dumps({"estimate": [n.value, n.low, n.high], "partial": result.partial, "said": result.warnings}))
    except UQLError as error:
        print(json.dumps({"error": str(error)}))
"""


def sitting(folder: Path, what: str, latency_s: float, beat_s: float = 5.0, dead_s: float = 30.0) -> Any:
    tests = str(Path(__file__).parents[1])
    told = [str(folder), what, str(latency_s), str(beat_s), str(dead_s)]
    return subprocess.Popen([sys.executable, "-c", SITTING, tests, *told], stdout=subprocess.PIPE, text=True)


def said(process: Any) -> dict[str, Any]:
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return dict(json.loads(out))


def bill(folder: Path) -> list[str]:
    file = folder / "bill"
    return file.read_text().splitlines() if file.exists() else []


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.thorough
def test_a_run_under_way_is_refused_to_a_second_process_and_goes_on_there_after_a_kill(tmp_path: Path) -> None:
    model = HashModel({"it is so": 0.3})
    with uql.connect(model=model, ledger=":memory:") as con:
        con.sql("CREATE TABLE t AS SELECT 'text of number ' || range || ' as it stands here' AS text FROM range(400)")
        n = con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 60)').estimates["n"]
    first = sitting(tmp_path, "first", 2.0)
    until(lambda: len(bill(tmp_path)) >= 8)
    refused = said(sitting(tmp_path, "second", 0.0))
    assert "UQL414" in refused["error"] and f"process {first.pid}" in refused["error"]
    assert all(line.startswith(f"{first.pid} ") for line in bill(tmp_path)), "the second paid for nothing"
    first.kill()
    first.wait()
    assert said(sitting(tmp_path, "third", 0.0))["estimate"] == pytest.approx([n.value, n.low, n.high])
    rows = [line.split(" ", 1)[1] for line in bill(tmp_path)]
    assert len(set(rows)) == model.calls and len(rows) - len(set(rows)) <= 4


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal on this system")
def test_a_process_that_slept_too_long_finds_its_run_taken_and_sends_nothing_more(tmp_path: Path) -> None:
    first = sitting(tmp_path, "first", 0.2, 0.05, 0.5)
    until(lambda: len(bill(tmp_path)) >= 8)
    os.kill(first.pid, signal.SIGSTOP)
    time.sleep(0.6)
    second = sitting(tmp_path, "second", 0.2, 0.05, 0.5)
    until(lambda: any(line.startswith(f"{second.pid} ") for line in bill(tmp_path)))
    before = sum(line.startswith(f"{first.pid} ") for line in bill(tmp_path))
    os.kill(first.pid, signal.SIGCONT)
    late = said(first)
    assert late["partial"] and any("taken over" in text for text in late["said"])
    assert sum(line.startswith(f"{first.pid} ") for line in bill(tmp_path)) <= before + 4
    assert not said(second)["partial"]


class Impatient(threading.Event):
    """In the place of a lease's end: its signs of life come a thousand times a second. Those of other tests' leases in this process do not."""

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(0.001)


@pytest.mark.thorough
def test_a_run_that_ends_while_a_sign_of_life_waits_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = []
    with Ledger(":memory:") as ledger:
        lease = Lease(ledger, "r", lambda: lost.append(1))
        lease._ended = Impatient()
        work = ledger.work

        def released_before(use: Callable[[Any], Any], *, atomic: bool = False) -> Any:
            if threading.current_thread() is lease._beating and not lease._ended.is_set():
                assert lease.release()
            return work(use, atomic=atomic)

        monkeypatch.setattr(ledger, "work", released_before)
        lease.take()
        assert lease._beating is not None
        lease._beating.join(60)
    assert lease._ended.is_set() and not lost


def test_a_run_that_another_process_has_taken_is_lost() -> None:
    lost = []
    with Ledger(":memory:") as ledger:
        lease = Lease(ledger, "r", lambda: lost.append(1))
        lease._ended = Impatient()
        lease.take()
        ledger.work(lambda db: db.execute("UPDATE leases SET owner = 'another'").rowcount)
        assert lease._beating is not None
        lease._beating.join(60)
        assert lost and not lease.release()


@pytest.mark.parametrize("ahead_s", [1e9, float("inf"), -31.0])
def test_a_sign_of_life_far_from_now_is_none(ahead_s: float) -> None:
    """Of a clock that was wrong, or of a damaged file: rows that such a run claimed would be waited for without end."""
    here = socket.gethostname()
    with Ledger(":memory:") as ledger:
        Lease(ledger, "r", lambda: None).take()
        assert ledger.work(lambda db: run_owner.holder_of(db, "r", here)) == (here, os.getpid())
        ledger.work(lambda db: db.execute("UPDATE leases SET at = ?", (db.now() + ahead_s,)).rowcount)
        assert ledger.work(lambda db: run_owner.holder_of(db, "r", here)) is None
