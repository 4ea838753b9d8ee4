"""Hedging: a request that takes far longer than most is sent a second time, and the first reply counts. Off unless asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def first_of(send: Callable[[], Awaitable[T]], after_s: float, useful: Callable[[T], bool]) -> tuple[T, list[T]]:
    """What `send` gives, sent again where nothing has come after `after_s` seconds.

    Args:
        useful: may this outcome end the other one, which is then cancelled?
    Returns: the first useful outcome, else the last one; and those that came and were not chosen.
    Raises: what `send` raises, once the other one has ended.
    """
    tasks = [asyncio.ensure_future(send())]
    others: list[T] = []
    try:
        done, _ = await asyncio.wait(tasks, timeout=after_s)
        if done:
            return tasks[0].result(), others
        tasks.append(asyncio.ensure_future(send()))
        pending = set(tasks)
        while True:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [task.result() for task in done]
            chosen = next((outcome for outcome in outcomes if useful(outcome)), None if pending else outcomes[-1])
            others += [outcome for outcome in outcomes if outcome is not chosen]
            if chosen is not None:
                return chosen, others
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
