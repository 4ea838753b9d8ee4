"""Time of the test's own: an event loop in which seconds pass at once where everybody waits for them. No thread may be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Its `time` stands still while anything can run, and goes to the next timer where nothing can."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if timers and not self._ready:
            self._now = max(self._now, min(timers))
        super()._run_once()


def simulated(task: Coroutine[Any, Any, T]) -> T:
    """What the coroutine gives, run in simulated time: `asyncio.get_running_loop().time()`."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(task)
