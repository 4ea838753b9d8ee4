"""A statement in a thread of its own, with an event loop of its own, so that DuckDB at work holds up no other node.

What it asks of models goes to the gate in the loop of the caller: budget, limits and events stay those of the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from uql.llm.gate import Gate

T = TypeVar("T")
_AWAITED = frozenset({"ask", "asked", "known", "provider"})


class Bridge:
    """The gate as another loop sees it: what is awaited runs in the gate's loop, all else is the gate's own.

    Args:
        gate: of the run.
        home: the loop that it belongs to.
    """

    def __init__(self, gate: Gate, home: asyncio.AbstractEventLoop) -> None:
        self._gate, self._home = gate, home

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._gate, name)
        if name not in _AWAITED:
            return attribute

        async def there(*args: Any, **options: Any) -> Any:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(attribute(*args, **options), self._home))

        return there


async def apart(work: Callable[[Gate], Coroutine[Any, Any, T]], gate: Gate) -> T:
    """The result of `work(gate)`, run in a thread with a loop of its own. Cancelling the wait cancels the work, and waits for its end.

    Raises: what `work` raises.
    """
    home = asyncio.get_running_loop()
    bridge = cast("Gate", Bridge(gate, home))
    inner: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def begun() -> T:
        task = asyncio.ensure_future(work(bridge))
        inner.append((asyncio.get_running_loop(), task))
        return await task

    running: Awaitable[T] = asyncio.ensure_future(asyncio.to_thread(asyncio.run, begun()))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        for loop, task in inner:
            loop.call_soon_threadsafe(task.cancel)
        await asyncio.gather(running, return_exceptions=True)
        raise
