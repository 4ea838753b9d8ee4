"""A soak: statements of all kinds, one after the other, while the provider fails, the disk fills up, memory runs out, runs are interrupted
and killed.

After each statement every invariant is checked: it ends in rows or in an error of UQL; no call beyond its budget; calls counted as they
were made; a value is the model's own or NULL, and each NULL is listed; the ledger can be read; no descriptor is left open; memory stays
flat. `make soak` runs 2,000 statements; `make test` some dozens.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import scipy.special  # noqa: F401 - OpenBLAS waits for ever where it is loaded without memory
from hash_model import HashModel
from test_disk_full import full_after, resource

import uql
from uql.llm.ledger import Ledger
from uql.llm.providers.base import CallError, Reply, Request

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux lists them")
STATEMENTS = int(os.environ.get("UQL_SOAK", "0"))
KINDS = ["timeout", "rate_limit", "server", "connection", "truncated", "wrong_type", "refusal", "empty", "bad_request"]
FAULTS = 0.2  # of all calls
ROWS = 40
SLACK_MB = 60  # of memory: caches of a fixed size


class Faulty(HashModel):
    """A fifth of its calls fails, in any way; `calls` counts those that came."""

    def __init__(self, seed: int) -> None:
        super().__init__({"it is so": 0.4})
        self.draw, self.faults = random.Random(seed), FAULTS

    async def answer(self, request: Request) -> Reply:
        if self.draw.random() < self.faults:
            self.calls += 1
            raise CallError(self.draw.choice(KINDS), "injected")
        return await super().answer(request)


TROUBLES = {"none": 5, "interrupt": 1, "full disk": 1, "little memory": 1, "little for DuckDB": 1, "calm": 2}
QUERIES = {  # a statement, and what its budget is
    "SELECT id, \"it is so\"::BOOLEAN AS v FROM notes WHERE id < {k} ORDER BY id": "all",
    "SELECT id, \"the number\"::BIGINT AS v FROM notes WHERE id % 3 = {k} % 3 ORDER BY id": "all",
    "SELECT id, \"the kind\" IN ('a', 'b') AS v FROM notes WHERE id > {k} ORDER BY id": "all",
    "SELECT COUNT(*) AS v FROM notes WHERE \"it is so\" WITH (budget = 20)": 20,
    "SELECT COUNT(*) AS v FROM notes WHERE \"it is {k} so\" WITH (budget = 15, fresh = true)": 15,
    "SELECT AVG(\"the price\"::DOUBLE) AS v FROM notes WITH (budget = 12)": 12,
    "SELECT id FROM notes WHERE \"it is nice\" LIMIT {k} WITH (budget = 25)": 25,
    "SELECT id FROM notes WHERE \"it is nice\" AND id > {k} ORDER BY \"how nice\" DESC LIMIT 3": 256,
    "SELECT g, COUNT(*) AS v FROM notes GROUP BY \"the kind\" AS g WITH (budget = 64)": 64,
    "SELECT side, \"what they say\" AS v FROM notes GROUP BY side": 256,
    "SELECT count(*) FROM notes AS a JOIN notes AS b ON \"{{a.text}} and {{b.text}} agree\" WHERE a.id < 4 AND b.id < 4": 256,
    "CREATE OR REPLACE TABLE copied AS SELECT id, \"it is so\"::BOOLEAN AS v FROM notes WHERE id < {k}": 256,
    "SELECT id, \"it is so\"::BOOLEAN AS v FROM notes LIMIT {k} TO kept_{k}": 256,
    "EXPLAIN SELECT id FROM notes WHERE \"it is so {k}\"": 0,
    "SELECT id + {k} AS v FROM notes": 0,
    "SELECT count(*) AS v FROM (SELECT DISTINCT repeat('x', {k}0) || range FROM range({k}000))": 0,
    "SELECT v, list(repeat('x', 1000) || id) AS l FROM (SELECT range AS id, range % 100 AS v FROM range({k}00)) GROUP BY v": 0,
    "SELECT id, text || repeat('x', {k}000) AS long FROM notes WHERE \"it is so\" ORDER BY long WITH (budget = 'all')": ROWS * 8,
    "SELECT * FROM uql_runs() LIMIT {k}": 0,
    "SELECT * FROM uql_errors() LIMIT {k}": 0,
    "SELECT nothing FROM notes": 0,
    "SELECT id FROM notes WHERE": 0,
}  # fmt: skip


def memory_mb() -> float:
    """Resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def little_memory(bytes: int) -> Iterator[None]:
    """This process gets no more than so many bytes beyond what it has: an allocation ends as where memory has run out."""
    has = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (has + bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def little_for_duckdb(con: uql.Connection, bytes: int) -> Iterator[None]:
    """DuckDB gets no more than so many bytes beyond what it holds, and no disk in their place."""
    (held,) = con.execute("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()").fetchall()[0]
    con.execute(f"SET memory_limit = '{held + bytes + 1_000_000} bytes'")
    try:
        yield
    finally:
        con.execute("RESET memory_limit")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


class Soak:
    """One folder with a database and a ledger, and what happened so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.draw, self.model = folder, random.Random(seed), Faulty(seed)
        self.ledger = folder / "l.sqlite"
        self.ended: Counter[str] = Counter()
        self.truths: dict[str, dict[int, Any]] = {}
        self.clean = self.opened(HashModel({"it is so": 0.4}), ":memory:")
        self.con = self.opened(self.model, str(self.ledger))

    def opened(self, model: HashModel, ledger: str) -> uql.Connection:
        con = uql.connect(model=model, ledger=ledger, on_error="null")
        con.execute("SET temp_directory = ''")
        con.execute(
            "CREATE TABLE notes AS SELECT range AS id, range % 2 AS side, 'text number ' || range AS text "
            f"FROM range({ROWS})"
        )
        return con

    def truth(self, statement: str) -> dict[int, Any]:
        """What the model says where nothing fails."""
        if statement not in self.truths:
            self.truths[statement] = dict(self.clean.uql(statement).fetchall())
        return self.truths[statement]

    def journal(self) -> int:
        """Bytes of the file to which the ledger's next transaction is added."""
        path = self.ledger.with_name(self.ledger.name + "-wal")
        return path.stat().st_size if path.exists() else 0

    def step(self) -> None:
        """One statement under one trouble, and the checks."""
        form, budget = self.draw.choice(list(QUERIES.items()))
        statement = form.format(k=self.draw.randrange(1, 30))
        if budget == "all":
            statement += " WITH (budget = 'all')"
        trouble = self.draw.choices(list(TROUBLES), list(TROUBLES.values()))[0]
        self.model.faults = 0.0 if trouble == "calm" else FAULTS
        before = self.model.calls
        timer = threading.Timer(self.draw.random() * 0.3, self.con.interrupt)
        if trouble == "full disk":
            shortage = full_after(self.draw.randrange(self.journal() + 20_000))
        elif trouble == "little memory":
            shortage = little_memory(int(16e6 * 2 ** self.draw.uniform(-4, 4)))
        elif trouble == "little for DuckDB":
            shortage = little_for_duckdb(self.con, int(4e6 * 2 ** self.draw.uniform(-4, 4)))
        else:
            shortage = nullcontext()
        try:
            if trouble == "interrupt":
                timer.start()
            with shortage:
                result = self.con.uql(statement)
                rows = result.fetchall()
        except uql.UQLError as error:
            self.ended[f"{trouble}: {error.code}"] += 1
            assert error.message, statement
        else:
            self.ended[f"{trouble}: {'partial' if result.partial else 'rows'}"] += 1
            self.check(statement, budget, result, rows, self.model.calls - before)
        finally:
            if timer.ident is not None:
                timer.join()
        limit = ROWS * 8 if budget == "all" else budget
        assert self.model.calls - before <= limit, f"{statement}: {self.model.calls - before} calls of {limit}"

    def check(self, statement: str, budget: Any, result: uql.Result, rows: list[Any], made: int) -> None:
        """What a result says is so."""
        assert result.cost.calls >= made or not budget, statement
        if budget != "all":
            return
        truth, missing = self.truth(statement), [key for key, value in rows if value is None]
        for key, value in rows:
            assert value is None or value == truth[key], f"{statement}: {key} is {value!r}, not {truth[key]!r}"
        unlisted = [key for key in missing if truth[key] is not None]
        assert len(unlisted) <= len(result.errors) or result.partial, f"{statement}: NULL and not listed"
        assert set(truth) == {key for key, _ in rows} or result.partial

    def killed(self) -> None:
        """A process that runs a statement on the same ledger is killed at some moment."""
        process = subprocess.Popen([sys.executable, "-c", VICTIM, str(self.ledger), str(Path(__file__).parents[1])])
        time.sleep(0.3 + self.draw.random() * 2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.ended["killed"] += 1

    def whole(self) -> None:
        """The ledger's file is sound."""
        with Ledger(self.ledger) as ledger:
            assert ledger.work(lambda db: db.execute("PRAGMA quick_check").fetchone()) == ("ok",)
            assert not ledger.damaged
            calls = ledger.calls()
        own = [c for c in calls if c["kind"] == "call" and c["model"] == self.model.name]
        assert len(own) <= self.model.calls, "not counting those of the processes that were killed"

    def close(self) -> None:
        self.con.close()
        self.clean.close()


VICTIM = r"""
import sys
sys.path.append(sys.argv[2])
import uql
import scipy.special  # noqa: F401 - OpenBLAS waits for ever where it is loaded without memory
from hash_model import HashModel
model = HashModel()
model.name = "of a victim"
with uql.connect(model=model, ledger=sys.argv[1], budget="all") as con:
    con.execute("CREATE TABLE notes AS SELECT range AS id, 'another text ' || range AS text FROM range(300)")
    for n in range(100):
        con.uql(f'SELECT id, "it is so {n}"::BOOLEAN AS v FROM notes').fetchall()
"""


def soak(folder: Path, statements: int, seed: int, kill_every: int) -> Counter[str]:
    """Runs so many statements. Returns how they ended."""
    run = Soak(folder, seed)
    try:
        warm = min(100, statements // 2)
        files = most = 0
        for n in range(statements):
            run.step()
            if n == warm:
                files, most = descriptors(), int(memory_mb()) + SLACK_MB
            if n > warm:
                assert descriptors() <= files + 3, f"{descriptors()} open files after {n} statements, {files} before"
            if n > warm and n % 25 == 0:
                assert memory_mb() <= most, f"{memory_mb():.0f} MB after {n} statements, {most} MB are allowed"
                run.whole()
            if n % kill_every == kill_every - 1:
                run.killed()
        run.whole()
    finally:
        run.close()
    return run.ended


def test_statements_of_all_kinds_under_faults_keep_every_invariant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TROUBLES, "little memory", 0)  # it would be that of the tests beside it, too
    ended = soak(tmp_path, 50, 3, 40)
    assert sum(n for how, n in ended.items() if how.endswith("rows")) >= 15 and ended["killed"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not STATEMENTS, reason="run by make soak")
def test_soak(tmp_path: Path) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    ended = soak(tmp_path, STATEMENTS, seed, 100)
    print(dict(sorted(ended.items())))
