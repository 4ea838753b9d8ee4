"""Progress shows what happens, from events alone, and leaves nothing behind."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from uql.progress import Progress
from uql.sampling.base import Estimate


@dataclass
class Event:
    kind: str
    usd: float | None = None
    budget: int | None = None
    max_cost: float | None = None
    column: str = ""
    estimate: Any = None


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
    assert lines[0] == "10 of 64 calls, 1.0 rows/s, $0.0100 of $1.00, 54 s left"
    assert lines[-1].startswith("37 of 64 calls")
    assert lines[-1].endswith("n = 120 ± 14")


def test_a_terminal_gets_one_block_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    threads = threading.active_count()
    run(Progress(stream=stream, clock=Clock(0.2)))
    shown = stream.getvalue()
    assert "of 64 calls" in shown
    assert "n = 120 ± 14" in shown
    assert shown.count("\n\n") == 0
    assert threading.active_count() == threads


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
    assert progress.counts.line().startswith("40 of 64 calls")


def test_no_more_than_five_estimates_are_shown() -> None:
    progress = Progress(stream=io.StringIO())
    for i in range(9):
        progress(Event("estimate", column=f"g{i}", estimate=Estimate(i, i - 1, i + 1)))
    assert len(progress.counts.estimate_lines()) == 6
    assert progress.counts.estimate_lines()[-1] == "… and 4 more"
