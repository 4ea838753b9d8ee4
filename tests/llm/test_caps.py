"""Caps around a budget: whatever it allows, and however it is extended, nothing goes beyond them."""

from __future__ import annotations

import asyncio

import pytest

from uql.llm.budget import Budget, Reservation, Share


def capped(own: Budget, *caps: Budget) -> Budget:
    own.caps = caps
    return own


async def spend(budget: Budget, calls: int, usd: float = 0.0) -> int:
    """How many requests of one call were allowed."""
    made = 0
    for _ in range(calls):
        ticket = await budget.reserve(Reservation(tokens=1, usd=usd))
        if ticket is None:
            break
        budget.settle(ticket, tokens=1, usd=usd)
        made += 1
    return made


@pytest.mark.parametrize("calls", [None, 5, 50])
def test_calls_end_at_the_least_cap(calls: int | None) -> None:
    whole = Budget(calls=12)
    first = capped(Budget(calls=calls), Budget(calls=10), whole)
    first.extend(100)
    first.allow(100)
    assert asyncio.run(spend(first, 100)) == 10
    assert first.exhausted == "cap" and first.calls_left == 0
    second = capped(Budget(), Budget(calls=10), whole)
    assert second.calls_left == 2
    assert asyncio.run(spend(Share(second, None), 100)) == 2


def test_usd_in_flight_count_and_what_was_not_sent_is_given_back() -> None:
    cap = Budget(calls=100, usd=1.0)
    own = capped(Budget(usd=50.0), cap)

    async def work() -> None:
        first = await own.reserve(Reservation(tokens=1, usd=0.7))
        assert first is not None
        waiting = asyncio.create_task(own.reserve(Reservation(tokens=1, usd=0.7)))
        await asyncio.sleep(0)
        assert not waiting.done(), "0.7 are in flight, and 0.3 are left"
        own.settle(first, tokens=1, usd=0.2)
        second = await waiting
        assert second is not None and cap.spent_usd == pytest.approx(0.2)
        own.release(second)
        assert cap.spent_calls == own.spent_calls == 1 and cap.calls_left == 99
        assert await own.reserve(Reservation(tokens=1, usd=0.9)) is None
        assert own.exhausted == "cap"

    asyncio.run(work())
