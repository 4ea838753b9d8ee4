"""What a model wrote runs in a child process: every blow-up ends within its limits, and the next statement works."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pytest
from nl.blow_ups import statements, tables
from nl.guarded import run_sql

from uql.base.errors import GuardError, UQLError
from uql.base.schema import Field
from uql.base.settings import Settings
from uql.nl.guard import duckdb_process
from uql.nl.guard.duckdb_process import child_duckdb
from uql.nl.guard.guard import MEMORY, sql_runner
from uql.nl.plan import result_schema
from uql.nl.plan.result_schema import Shapes

LIMIT_S = 0.5
SLACK_S = 10.0  # on a busy machine
ALL = statements(18)
SHORT = statements(2)
FIELDS = {"t": [Field("id", "BIGINT"), Field("b", "VARCHAR")], "long": [Field("x", "VARCHAR"), Field("y", "VARCHAR")]}


@pytest.fixture(scope="module")
def given() -> dict[str, pa.Table]:
    duckdb_process._pool.take().end()  # the largest memory of a child is that of its whole life, with larger limits too
    return tables()


@contextmanager
def peak_of_children() -> Iterator[list[int]]:
    """The largest resident memory that a DuckDB child of this process had, in MiB; 0 where /proc is not there."""
    peak, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            for status in Path("/proc").glob("[0-9]*/status"):
                try:
                    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                    command = (status.parent / "cmdline").read_bytes()
                    if int(lines["PPid"]) == os.getpid() and b"duckdb_worker" in command:
                        peak[0] = max(peak[0], int(lines["VmHWM"].split()[0]) // 1024)
                except (OSError, KeyError):  # gone, or has no memory
                    pass

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def blows_up(text: str, given: dict[str, pa.Table]) -> None:
    run_sql("SELECT 1 AS one", {})  # a process is warm
    began = time.monotonic()
    with peak_of_children() as peak, pytest.raises(UQLError):
        run_sql(text, given, timeout_s=LIMIT_S)
    assert time.monotonic() - began < LIMIT_S + SLACK_S
    assert peak[0] < 1.5 * MEMORY
    assert run_sql("SELECT count(*) AS n FROM t", given).to_pylist() == [{"n": given["t"].num_rows}]


def bound_in_time(text: str) -> None:
    """Binding ends in time too, whether it finds columns or not."""
    result_schema._described.cache_clear()
    shapes = Shapes({})
    shapes.of_sql("SELECT 1 AS one")  # a process is warm
    for name, fields in FIELDS.items():
        shapes.add(name, fields)
    for form in (text, f'SELECT t.id FROM t, ({text}) AS q WHERE "the film {{t.b}} is good"'):
        began = time.monotonic()
        with suppress(UQLError):
            shapes.of_uql(form, Settings())
        assert time.monotonic() - began < LIMIT_S + SLACK_S
    assert shapes.of_sql("SELECT id FROM t") == (Field("id", "BIGINT"),)


@pytest.mark.thorough
@pytest.mark.one_in(9)
@pytest.mark.parametrize("text", [text for _, text in SHORT[:45]], ids=[name for name, _ in SHORT[:45]])
def test_a_blow_up_ends_within_its_limits(text: str, given: dict[str, pa.Table]) -> None:
    blows_up(text, given)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_a_statement_is_seen_from_outside(given: dict[str, pa.Table]) -> None:
    with peak_of_children() as peak:
        for _ in range(20):
            run_sql("SELECT count(*) AS n FROM t, t AS u", given)
    assert peak[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for _, text in ALL], ids=[name for name, _ in ALL])
def test_every_blow_up_ends_within_its_limits(text: str, given: dict[str, pa.Table]) -> None:
    blows_up(text, given)


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize("text", [text for _, text in SHORT[:30]], ids=[name for name, _ in SHORT[:30]])
def test_binding_a_blow_up_ends_within_its_limits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_schema, "BOUND_S", LIMIT_S)
    bound_in_time(text)


@pytest.mark.slow
@pytest.mark.parametrize("text", [text for _, text in ALL], ids=[name for name, _ in ALL])
def test_binding_every_blow_up_ends_within_its_limits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_schema, "BOUND_S", LIMIT_S)
    bound_in_time(text)


def test_there_are_at_least_300_blow_ups_and_none_is_there_twice() -> None:
    assert len({text for _, text in ALL}) >= 300


def test_a_type_that_is_too_deep_is_an_error_of_uql(given: dict[str, pa.Table]) -> None:
    deep = "NULL::" + "STRUCT(a " * 90 + "INTEGER" + ")" * 90
    for text in (f"SELECT {deep} AS x", f"SELECT id, {deep} AS x FROM t"):
        with pytest.raises(GuardError):
            run_sql(text, given)


def test_the_child_has_no_environment_no_files_and_no_settings_to_change(tmp_path: Path) -> None:
    import duckdb

    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with child_duckdb(MEMORY, 5.0) as child:
        for text in (
            f"SELECT * FROM read_csv('{secret}')",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            "SET enable_external_access = true",
            "SET memory_limit = '64GB'",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                child.execute(text).fetchall()
        assert child.execute("SELECT 42, 'x'").fetchall() == [(42, "x")]
    assert not (tmp_path / "out.csv").exists()


def test_a_statement_after_a_kill_gets_a_fresh_process(given: dict[str, pa.Table]) -> None:
    with pytest.raises(GuardError, match="longer than") as stopped:
        run_sql(
            "SELECT levenshtein(x, y) FROM (SELECT x || x || x AS x, y || y || y AS y FROM long)", given, timeout_s=0.5
        )
    assert stopped.value.code == "UQL621"
    assert run_sql("SELECT 1 AS one", {}).to_pylist() == [{"one": 1}]


@pytest.mark.thorough
def test_statements_at_the_same_time_do_not_wait_for_each_other(given: dict[str, pa.Table]) -> None:
    ends: list[float] = []

    def slow() -> None:
        with pytest.raises(GuardError):
            run_sql("SELECT levenshtein(x, y) FROM long", given, timeout_s=3.0)
        ends.append(time.monotonic())

    thread = threading.Thread(target=slow)
    with sql_runner([], {}.__getitem__) as quick:
        quick("SELECT 1 AS one")  # its process has started: on a busy machine that takes seconds
        thread.start()
        quick("SELECT 2 AS two")
        done = time.monotonic()
    thread.join()
    assert done < ends[0]


def test_a_process_that_ends_leaves_no_child_behind() -> None:
    script = (
        "import glob, os\n"
        "from uql.nl.guard.guard import sql_runner\n"
        "def status(path):\n"
        "    try:\n"
        "        return open(path).read()\n"
        "    except OSError:  # of a process that has ended meanwhile\n"
        "        return ''\n"
        "with sql_runner([], {}.get) as run:\n"
        "    run('SELECT 1 AS one')\n"
        "print(*[p.split('/')[2] for p in glob.glob('/proc/[0-9]*/status') if f'PPid:\\t{os.getpid()}\\n' in status(p)])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    until = time.monotonic() + 5
    while left := [pid for pid in done.stdout.split() if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


@pytest.mark.slow
def test_a_harmless_statement_costs_little_more_than_in_this_process(given: dict[str, pa.Table]) -> None:
    seconds = []
    for _ in range(200):
        began = time.perf_counter()
        run_sql("SELECT id FROM t WHERE id < 10", {"t": given["t"]})
        seconds.append(time.perf_counter() - began)
    assert statistics.median(seconds) < 0.1  # 30 ms of it are the child's, on a machine with nothing else to do
