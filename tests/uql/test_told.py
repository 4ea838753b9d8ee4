"""What is told of a run: while it runs, at its end, after Ctrl-C, and when its process has died."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import uql
from uql.command.outcome import Code
from uql.command.query import Request, run
from uql.llm.ledger import Ledger
from uql.llm.run_lease import Lease
from uql.session.events import finished
from uql.show.progress import Counts

POSITIVE = 'SELECT id FROM reviews WHERE "the review is positive"'


def opened(**settings: Any) -> uql.Connection:
    con = uql.connect(model="oracle:oracle.toml", ledger="told.sqlite", **settings)
    con.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
    return con


def test_a_run_whose_process_has_died_is_not_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "l.sqlite")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with Ledger(path) as ledger:
        for run in ("gone", "never", "here", "plain"):
            ledger.start_run(run, statement="SELECT 1", model="m", seed=0, details="" if run == "plain" else "{}")
        gone, here = (Lease(ledger, run, lambda: None) for run in ("gone", "here"))
        gone._pid = dead.pid
        gone.take()
        here.take()
        status = {run["run"]: run["status"] for run in ledger.runs()}
        assert status == {"gone": "killed", "never": "killed", "here": "running", "plain": "running"}
        assert ledger.run("gone")["status"] == "killed" and ledger.run("here")["status"] == "running"
        found = uql.connect(ledger=path).uql("SELECT run, status FROM uql_runs()").fetchall()
        assert dict(found) == status
        from uql.cli import main

        assert main(["runs", "gone", "--ledger", path]) == 0
        out = capsys.readouterr().out
        assert "status     killed" in out and "uql resume gone" in out
        here.release()


def test_a_dead_run_that_cannot_be_continued_is_not_running_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of `register_functions`, `calibrate` and `models test` keep no statement: their lease has a suffix."""
    path = str(tmp_path / "l.sqlite")
    with Ledger(path) as ledger:
        for run in ("gone", "here", "old"):
            ledger.start_run(run, statement="DuckDB functions", model="m", seed=0)
        gone, here = (Lease(ledger, f"{run}-0a1b", lambda: None) for run in ("gone", "here"))
        gone._pid = 2**22 + 1  # above what Linux gives
        gone.take()
        here.take()
        ledger.work(lambda db: db.execute("UPDATE runs SET started = started - 3600 WHERE run = 'old'"))
        status = {run["run"]: run["status"] for run in ledger.runs()}
        assert status == {"gone": "killed", "here": "running", "old": "killed"}
        from uql.cli import main

        assert main(["runs", "gone", "--ledger", path]) == 0
        assert "uql resume" not in capsys.readouterr().out
        here.release()
    with Ledger(":memory:") as ledger:
        ledger.start_run("old", statement="SELECT 1", model="m", seed=0)
        ledger.work(lambda db: db.execute("UPDATE runs SET started = started - 3600"))
        assert [run["status"] for run in ledger.runs()] == ["running"], "no other process has it"


def test_a_killed_run_can_still_be_continued(own_world: Path) -> None:
    code = f"""
import os, uql
con = uql.connect(model="oracle:oracle.toml", ledger="told.sqlite", concurrency=1)
con.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
con.on_event(lambda event: os._exit(9) if event.kind == "call" and con.last_run else None)
con.uql({POSITIVE!r}).fetchall()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, env=dict(os.environ)).returncode == 9
    with Ledger("told.sqlite") as ledger:
        (run,) = ledger.runs()
    assert run["status"] == "killed"
    con = opened()
    assert len(con.resume(run["run"]).fetchall()) == 3
    with Ledger("told.sqlite") as ledger:
        assert [r["status"] for r in ledger.runs()] == ["done"]


def test_answers_of_the_ledger_alone_are_no_new_calls(own_world: Path) -> None:
    con = opened()
    heard: list[Any] = []
    con.uql(POSITIVE).fetchall()
    con.on_event(heard.append)
    again = con.uql(POSITIVE)
    again.run()
    assert "0 new calls, 6 from the ledger" in repr(again)
    counts = Counts()
    for event in heard:
        counts.add(event)
    assert counts.line() == "0 new calls, 6 from the ledger"


def test_after_the_end_no_time_is_left() -> None:
    def event(kind: str, **more: Any) -> Any:
        return SimpleNamespace(kind=kind, **more)

    counts = Counts()
    counts.add(event("plan", budget=128, max_cost=None))
    for _ in range(64):
        counts.add(event("call", usd=0.0))
    counts.seconds = 16.0
    assert counts.line().endswith("at most 16 s left")
    counts.add(event("done"))
    assert "left" not in counts.line() and counts.line().startswith("64 calls")
    counts.add(event("call", usd=0.0))
    assert "left" in counts.line()


def test_the_seconds_are_those_of_the_whole_statement(own_world: Path) -> None:
    con = opened()
    con.on_event(lambda event: time.sleep(0.5) if event.kind == "plan" else None)
    result = con.uql(POSITIVE).run()
    assert result.cost.calls == 6 and result.cost.seconds >= 0.5


def test_ctrl_c_in_python_tells_how_the_run_goes_on(own_world: Path) -> None:
    con = opened(concurrency=1)
    con.uql("SELECT count(*) FROM reviews").fetchall()
    calls: list[object] = []

    def stop(event: Any) -> None:
        if event.kind == "call":
            calls.append(event)
            if len(calls) == 2:
                signal.raise_signal(signal.SIGINT)

    ended = con.on_event(stop)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        con.uql(POSITIVE).fetchall()
    ended()
    (note,) = interrupted.value.__notes__
    assert f'con.resume("{con.last_run}")' in note and con.last_run
    assert len(con.resume().fetchall()) == 3


def test_ctrl_c_before_the_first_step_leaves_no_coroutine_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python warns of each coroutine that was never awaited."""

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    async def statement() -> int:
        return 1

    monkeypatch.setattr("asyncio.run", interrupted)
    begun = statement()
    with pytest.raises(KeyboardInterrupt):
        finished(begun)
    assert inspect.getcoroutinestate(begun) == inspect.CORO_CLOSED


@pytest.mark.parametrize(("ledger", "said"), [(":memory:", "no answer is kept"), ("told.sqlite", "uql resume ")])
def test_ctrl_c_on_the_command_line_names_a_run_only_where_it_is_kept(
    own_world: Path, capsys: pytest.CaptureFixture[str], ledger: str, said: str
) -> None:
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger=ledger) as con:
        con.on_event(lambda event: signal.raise_signal(signal.SIGINT) if event.kind == "call" else None)
        request = Request(POSITIVE, progress=False)
        assert run(con, lambda: con.uql(POSITIVE), lambda outcome: None, request) == Code.INTERRUPTED
    err = capsys.readouterr().err
    assert err.startswith("interrupted; ") and said in err and ("resume" in err) is (ledger != ":memory:")


def test_ctrl_c_where_nothing_was_asked_names_no_run(own_world: Path) -> None:
    con = opened()
    con.uql(POSITIVE).fetchall()
    latest = con.last_run
    con.on_event(lambda event: signal.raise_signal(signal.SIGINT) if event.kind == "plan" else None)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        con.uql("SELECT count(*) FROM reviews").fetchall()
    assert not getattr(interrupted.value, "__notes__", []) and con.last_run == latest


@pytest.mark.parametrize(
    ("words", "missing", "message"),
    [
        (["models", "pull"], "xllamacpp", "local models need the package xllamacpp"),
        (["ui"], "uvicorn", "pages of `uql ui` need the package uvicorn"),
        (["shell"], "prompt_toolkit", "interactive shells need the package prompt_toolkit"),
    ],
)
def test_a_missing_extra_is_said_before_anything_is_fetched(
    words: list[str],
    missing: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    own_world: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from uql.base import extras
    from uql.cli import main
    from uql.llm import model_files

    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == missing else object())
    monkeypatch.setattr(model_files, "pull", lambda *_, **__: pytest.fail("it was fetched"))
    assert main(words) == 2
    err = capsys.readouterr().err
    assert message in err and extras.install({"models": "local"}.get(words[0], words[0])) in err
