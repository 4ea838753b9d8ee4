"""Progress shows what happens, from events alone, and leaves nothing behind."""

from __future__ import annotations

import io
import threading
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.nl.ask.context import NodeEvent
from uql.sampling.base import Estimate
from uql.show.notebook_cells import JupyterBlock
from uql.show.progress import Counts, Progress, watching


@dataclass
class Event:
    kind: str
    usd: float | None = None
    budget: int | None = None
    max_cost: float | None = None
    column: str = ""
    estimate: Any = None
    rows: int = 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that goes on by `step` seconds each time it is read."""

    def __init__(self, step: float) -> None:
        self.step, self.now = step, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def run(progress: Progress) -> None:
    with progress:
        progress(Event("plan", budget=64, max_cost=1.0))
        for _ in range(30):
            progress(Event("call", usd=0.001))
        progress(Event("cached"))
        progress(Event("failed"))
        progress(Event("estimate", column="n", estimate=Estimate(120, 106, 134)))
        for _ in range(10):
            progress(Event("call", usd=0.001))
        progress(Event("done"))


def test_a_log_gets_a_line_now_and_then_with_the_estimate_so_far() -> None:
    stream = io.StringIO()
    run(Progress(stream=stream, clock=Clock(1.0)))
    lines = stream.getvalue().splitlines()
    assert 3 <= len(lines) <= 5
    assert lines[0] == "$0.0100 of $1.00, 10 of at most 64 calls, 1.0 rows/s, at most 54 s left"
    assert lines[-1].startswith("$0.0370 of $1.00, 37 of at most 64 calls")
    assert lines[-1].endswith("n = 120 ± 14")


def test_a_terminal_gets_one_block_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    threads = threading.active_count()
    run(Progress(stream=stream, clock=Clock(0.2)))
    shown = stream.getvalue()
    assert "of at most 64 calls" in shown
    assert "n = 120 ± 14" in shown
    assert shown.count("\n\n") == 0
    assert threading.active_count() == threads


def test_a_terminal_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("uql.show.progress.TICK_S", 0.01)
    stream, clock = Terminal(), Clock(0.5)
    with Progress(stream=stream, clock=clock) as progress:
        progress(Event("plan", budget=64))
        progress(Event("loading"))
        assert "0 of at most 64 calls, loading the model" in stream.getvalue()
        progress(Event("call"))
        end = time.monotonic() + 20
        while "no answer for 1" not in stream.getvalue():  # no event draws this
            assert time.monotonic() < end
            time.sleep(0.01)
    drawn = stream.getvalue()
    time.sleep(0.05)
    assert stream.getvalue() == drawn and progress._live is None, "nothing is drawn after the end"


def test_what_is_waited_for_stands_in_the_line() -> None:
    counts = Counts()
    counts.add(Event("plan", budget=64))
    counts.seconds = 6.0
    assert counts.line() == "0 of at most 64 calls, no answer yet"
    counts.add(Event("loading"))
    counts.seconds = 7.0
    assert counts.line() == "0 of at most 64 calls, loading the model"
    counts.add(Event("call"))
    counts.seconds = 10.0
    assert "no answer" not in counts.line()
    counts.seconds = 13.0
    assert "no answer for 6 s" in counts.line()
    counts.add(Event("done"))
    assert "no answer" not in counts.line()


def test_a_short_query_and_a_disabled_progress_show_nothing() -> None:
    for progress in (Progress(stream=Terminal(), clock=Clock(0.001)), Progress(stream=Terminal(), enabled=False)):
        run(progress)
        assert progress.stream.getvalue() == ""  # type: ignore[attr-defined]
        assert progress.counts.calls == 40


def test_the_next_statement_begins_anew() -> None:
    progress = Progress(stream=io.StringIO(), clock=Clock(1.0))
    run(progress)
    run(progress)
    assert progress.counts.calls == 40
    assert progress.counts.line().startswith("$0.0400 of $1.00, 40 calls")


def test_no_more_than_five_estimates_are_shown() -> None:
    progress = Progress(stream=io.StringIO())
    for i in range(9):
        progress(Event("estimate", column=f"g{i}", estimate=Estimate(i, i - 1, i + 1)))
    assert len(progress.counts.estimate_lines()) == 6
    assert progress.counts.estimate_lines()[-1] == "… and 4 more"


class Handle:
    """What `display(…, display_id=True)` gives: one place that is written anew."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, shown: Any) -> None:
        self.shown.append(shown.data)


def test_a_notebook_gets_one_place_that_is_written_anew_and_is_empty_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handles: list[Handle] = []

    def display(shown: Any, *, display_id: bool) -> Handle:
        assert display_id
        handles.append(Handle())
        handles[-1].update(shown)
        return handles[-1]

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("uql.show.progress.block_here", JupyterBlock)
    run(Progress(clock=Clock(0.1)))
    (handle,) = handles
    assert len(handle.shown) > 3 and handle.shown[-1] == ""
    assert "3 of at most 64 calls" in handle.shown[0] and "n = 120 ± 14" in handle.shown[-2]


def test_a_line_that_must_be_said_is_said_also_where_nothing_is_shown() -> None:
    stream = io.StringIO()
    with Progress(enabled=False, stream=stream) as progress:
        progress.say("note: rows go to openai\x1b[31m")
    assert stream.getvalue() == "note: rows go to openai\\x1b[31m\n"
    terminal = Terminal()
    with Progress(stream=terminal, clock=Clock(0.5)) as progress:
        for _ in range(3):
            progress(Event("call"))
        progress.say("note: said above the block")
    assert "note: said above the block" in terminal.getvalue()


def test_a_setting_shows_progress_from_python_and_nothing_is_shown_twice(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Any] = []

    def subscribe(listener: Any) -> Any:
        told.append(listener)
        return lambda: told.append("stopped")

    with watching(subscribe, True, False):
        assert len(told) == 1
    assert told[-1] == "stopped"
    for wanted, listened in ((None, False), (False, False), (True, True)):
        told.clear()
        with watching(subscribe, wanted, listened):
            assert not told


def test_rows_that_leave_the_machine_are_said_once_by_the_progress_else_by_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Far(HashModel):
        name, is_local = "far:model", False

    with uql.connect(model=Far(), ledger=":memory:") as con:
        con.sql("CREATE TABLE t AS SELECT 'a text of some length, number ' || range AS text FROM range(3)")
        query = 'SELECT COUNT(*) AS n FROM t WHERE "it is {}"'
        for said in ("so", "long"):
            con.uql(query.format(said)).fetchall()
        said = "far:model is sent text of every row that is asked"
        assert [record.getMessage() for record in caplog.records] == [said]
        stream = io.StringIO()
        with Progress(enabled=False, stream=stream) as progress:
            stop = con.on_event(progress)
            con.uql(query.format("short")).fetchall()
            stop()
        assert stream.getvalue() == f"note: {said}\n" and len(caplog.records) == 1


def test_rows_that_get_their_vectors_are_counted_until_all_have_one():
    from uql.session.events import EmbeddedEvent

    counts = Counts()
    counts.add(EmbeddedEvent(8192, 400_000))
    assert "embedding 400,000 rows: 8,192 done" in counts.line()
    counts.seconds = 20.0
    counts.add(EmbeddedEvent(400_000, 400_000))
    assert "embedding" not in counts.line()
    for counts.seconds in (20.5, 21.0):
        counts.add(Event("call"))
    assert "2.0 rows/s" in counts.line(), "the time that the vectors took says nothing of the pace of calls"


def _steps(progress: Progress) -> None:
    with progress:
        progress(NodeEvent("plan", "writing"))
        progress(NodeEvent("plan", "done", "2 steps"))
        progress(NodeEvent("late", "start", "complaints by shop"))
        progress(NodeEvent("late", "done", "4 rows"))
        progress(NodeEvent("best", "failed", "it gives\nno rows"))


def test_each_step_of_a_question_is_a_line_of_a_log() -> None:
    stream = io.StringIO()
    _steps(Progress(stream=stream, clock=Clock(0.1)))
    assert stream.getvalue().splitlines() == [
        "plan: done, 2 steps",
        "late: done, 4 rows",
        "best: failed: it gives no rows",
    ]


def test_the_steps_of_a_question_stand_in_the_block_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    _steps(Progress(stream=stream, clock=Clock(1.0)))
    assert "plan: writing" in stream.getvalue() and "late: running: complaints by shop" in stream.getvalue()


def test_the_steps_of_a_question_stand_in_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Cell:
        def update(self, html: str) -> None:
            shown.append(html)

        def clear(self) -> None: ...

    monkeypatch.setattr("uql.show.progress.block_here", Cell)
    _steps(Progress(clock=Clock(1.0)))
    assert "plan: done, 2 steps" in shown[-1] and "best: failed: it gives no rows" in shown[-1]
