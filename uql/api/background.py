"""A statement in a thread of its own, so that the thread of the user can show how far it is, and end it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from uql.api.result import Result

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


async def run_awaited(begin: Callable[[], Result], cancelled: Callable[[], None]) -> Result:
    """As `run_interruptible`, for `await`: `cancelled` is called where the task is cancelled."""
    import asyncio

    try:
        return await asyncio.to_thread(_run, begin)
    except asyncio.CancelledError:
        cancelled()
        raise


def _run(begin: Callable[[], Result]) -> Result:
    result = begin()
    result.run()
    return result
