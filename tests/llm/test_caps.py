"""Caps around a budget: whatever it allows, and however it is extended, nothing goes beyond them."""

from __future__ import annotations

import asyncio
import random

import pytest
from scripted import Scripted, row

from uql.base.settings import Settings
from uql.llm.budget import Budget, Reservation, Share
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.providers.base import CallError, Request
from uql.llm.questions import Predicate


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


def billed(seed: int) -> tuple[int, int]:
    """(cap, calls that the provider counted) of a run of several parts at once, with refusals, late replies and parts that stop."""
    chance = random.Random(seed)
    cap, parts = chance.randint(0, 60), chance.randint(1, 6)
    fault, stopping = chance.choice([0.0, 0.1, 0.5]), chance.randint(0, parts)
    bill: list[str] = []

    def script(request: Request, n: int) -> CallError | None:
        bill.append(request.row.cells[0].value)  # billed as it arrives
        return CallError(chance.choice(["server", "timeout"]), "no") if chance.random() < fault else None

    async def work(part: Gate, n: int) -> None:
        rows = [row(f"row number {i}") for i in range(40)]
        random.Random(f"{seed} {n}").shuffle(rows)
        await part.ask(Predicate("it is long"), rows)

    async def go(ledger: Ledger) -> None:
        model = Scripted(script=script, latency_s=chance.choice([0.0, 0.001]), concurrency=chance.choice([1, 4, 16]))
        async with Gate.open(Settings(on_error="null"), model=model, ledger=ledger, calls=cap) as gate:
            await gate.provider()
            tasks = [asyncio.create_task(work(gate.part(), n)) for n in range(parts)]
            for task in chance.sample(tasks, stopping):
                await asyncio.sleep(chance.uniform(0, 0.01))
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    with Ledger(":memory:") as ledger:
        asyncio.run(go(ledger))
    return cap, len(bill)


@pytest.mark.parametrize("first", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_random_caps_parts_and_faults_never_overspend(first: int) -> None:
    runs = [billed(seed) for seed in range(first, 40 if not first else 1000)]
    assert all(calls <= cap for cap, calls in runs)
    assert any(calls == cap for cap, calls in runs)
