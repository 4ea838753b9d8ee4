"""A statement in a thread of its own, so that the thread of the user can show how far it is, and end it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor

from uql.api.result import Result
from uql.session.session import CANCELLED, Session

TICK_S = 0.1


def run_interruptible(
    begin: Callable[[], Result], interrupted: Callable[[], None], tick: Callable[[], None] = lambda: None
) -> Result:
    """The result of a statement, which has run.

    Args:
        begin: gives the result; in the other thread.
        interrupted: called at each Ctrl-C: `con.interrupt` ends the run and keeps what was answered. What it raises is raised at once,
            and the run goes on without anybody waiting for it.
        tick: called every TICK_S seconds while it runs.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="uql-background")
    try:
        running = thread.submit(_run, begin)
        while True:
            try:
                return running.result(TICK_S)
            except TimeoutError:
                if running.done():
                    raise
                tick()
            except KeyboardInterrupt:
                interrupted()
    finally:
        thread.shutdown(wait=False)


async def run_awaited(begin: Callable[[], Result], session: Session) -> Result:
    """As `run_interruptible`, for `await`: where the task is cancelled, the statement is ended, or does not begin."""
    import asyncio

    cancelled = threading.Event()

    def run() -> Result:
        CANCELLED.set(cancelled)
        if cancelled.is_set():
            raise CancelledError
        return _run(begin)

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        session.interrupt(cancelled)
        raise


def _run(begin: Callable[[], Result]) -> Result:
    result = begin()
    result.run()
    return result
