"""A statement while it runs: the events that tell of it beside those of its calls, and how its end is waited for."""

from __future__ import annotations

from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio

    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.sampling.base import Estimate

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """A query begins: what it may spend."""

    budget: int | None
    max_cost: float | None = None
    kind: str = "plan"


@dataclass(frozen=True, slots=True)
class ForetoldEvent:
    """A pilot has foretold what `error = x` takes: so many calls more may be made, and none is made before this is told."""

    calls: int
    kind: str = "foretold"


@dataclass(frozen=True, slots=True)
class EstimateEvent:
    """The estimate so far."""

    column: str
    estimate: Estimate
    kind: str = "estimate"


@dataclass(frozen=True, slots=True)
class EmbeddedEvent:
    """So many of the rows that have no vector yet have one, by which samples are drawn."""

    done: int
    rows: int
    kind: str = "embedded"


@dataclass(frozen=True, slots=True)
class LoadingEvent:
    """A model of this process is about to be loaded."""

    model: str
    kind: str = "loading"


@dataclass(frozen=True, slots=True)
class AnnounceEvent:
    """Rows are about to leave this machine for the first time in a run: where to, which columns, how many rows at most."""

    model: str
    columns: tuple[str, ...]
    rows: int | None  # None: every row that is asked
    kind: str = "announce"

    def text(self) -> str:
        content = ", ".join(self.columns) or "a question"
        most = "every row that is asked" if self.rows is None else f"at most {self.rows:,} rows"
        return f"{self.model} is sent {content} of {most}"


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """A query has ended."""

    kind: str = "done"


class Watcher(Protocol):
    """Who looks at a run from inside, while its tables are there."""

    def begins(self, ctx: Context) -> None: ...

    async def ended(self, output: Output, ctx: Context) -> None: ...


def finished(task: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end, in a thread of its own where this one has a running loop already (a notebook).

    Ctrl-C cancels it, also in that thread; what was in flight is kept before KeyboardInterrupt is raised.
    """
    import asyncio

    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()
    # not the task's result: the handler of Ctrl-C is printed with its task when it is taken away, rows and all
    results: list[T] = []

    async def main() -> None:
        current = asyncio.current_task()
        assert current is not None
        begun.set_result((asyncio.get_running_loop(), current))
        results.append(await task)

    running = main()
    try:
        if asyncio._get_running_loop() is None:
            asyncio.run(running)
            return results[0]
        with ThreadPoolExecutor(1, thread_name_prefix="uql-run") as thread:
            done = thread.submit(lambda: asyncio.run(running))
            try:
                done.result()
                return results[0]
            except KeyboardInterrupt:
                loop, current_task = begun.result()
                loop.call_soon_threadsafe(current_task.cancel)
                raise
    finally:  # Ctrl-C may come before the loop awaits them
        running.close()
        task.close()
