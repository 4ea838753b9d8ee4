"""A statement while it runs: what it has cost and estimated so far, as `for moment in r.stream()`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event
from typing import Any

from uql.sampling.base import Estimate
from uql.session.prepared import PreparedStatement
from uql.session.session import CANCELLED, Session
from uql.show.progress import REFRESH_S, Counts


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a statement is.

    Attributes:
        calls: made so far.
        cached: rows that the ledger answered.
        failed: rows given up.
        usd: paid so far, as far as the model has a price.
        estimates: by column, each with its interval; while the statement runs those of aggregates without GROUP BY. Under
            GROUP BY, and in a search, "rows that pass" where that is estimated.
        done: the statement has run, and `estimates` are those of its result.
    """

    calls: int
    cached: int
    failed: int
    usd: float
    estimates: dict[str, Estimate | list[Estimate]]
    done: bool = False


class Stream:
    """The moments of a statement that begins to run when the first one is asked for, in a thread of its own.

    A moment comes with every new estimate, and otherwise at most every 0.1 s; the last one is `done`. To leave the loop, or to close
    it, ends the statement as `con.interrupt()` does: what was answered is kept, and its result says that it is partial.

    Args:
        statement: of the result.
        session: whose events tell of it; None: only the last moment comes.
    """

    def __init__(self, statement: PreparedStatement, session: Session | None) -> None:
        self._statement, self._session = statement, session

    def __iter__(self) -> Iterator[Moment]:
        moments: SimpleQueue[Moment | None] = SimpleQueue()  # None: the statement has ended
        stop = None if self._session is None else self._session.on_event(_Listener(moments.put))
        left = Event()  # nobody reads the moments any more
        thread = ThreadPoolExecutor(1, thread_name_prefix="uql-stream", initializer=CANCELLED.set, initargs=(left,))
        running = thread.submit(self._statement.run)
        running.add_done_callback(lambda _: moments.put(None))
        thread.shutdown(wait=False)
        try:
            while True:
                try:
                    moment = moments.get()
                except KeyboardInterrupt:
                    if self._session is None:
                        raise
                    self._session.interrupt()  # what was answered is kept, and the result says that it is partial
                    continue
                if moment is None:
                    break
                yield moment
        finally:
            if stop is not None:
                stop()
            if self._session is not None and not running.done():
                self._session.interrupt(left)
        outcome = running.result()
        cost = outcome.cost
        yield Moment(cost.calls, cost.cached, cost.failed, cost.usd or 0.0, dict(outcome.estimates), done=True)

    async def __aiter__(self) -> AsyncIterator[Moment]:
        import asyncio

        moments = iter(self)
        while (moment := await asyncio.to_thread(next, moments, None)) is not None:
            yield moment


class _Listener:
    """Hears the events of a run and tells its moments."""

    def __init__(self, tell: Callable[[Moment], None]) -> None:
        self._tell, self._counts, self._last_report_s = tell, Counts(), time.monotonic()

    def __call__(self, event: Any) -> None:
        if event.kind == "plan":
            self._counts = Counts()
        counts, now = self._counts, time.monotonic()
        counts.add(event)
        if event.kind == "estimate" or (event.kind in ("call", "cached") and now - self._last_report_s >= REFRESH_S):
            self._last_report_s = now
            self._tell(Moment(counts.calls, counts.cached, counts.failed, counts.usd, dict(counts.estimates)))
