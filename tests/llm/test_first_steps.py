"""What a run notes of the keys that it has asked: right as a dict would be, and small."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from hashlib import blake2b

import pytest

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Instant, rows
from uql.llm.first_steps import NEVER, FirstSteps
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.questions import Predicate
from uql.llm.run_record import Run


def _key(n: int) -> bytes:
    return blake2b(n.to_bytes(4), digest_size=20).digest()


def test_each_key_has_the_first_step_in_which_it_was_noted():
    rng, steps, expected = random.Random(1), FirstSteps(), dict[bytes, list[int]]()
    for _ in range(200):
        keys = [_key(rng.randrange(3000)) for _ in range(rng.randrange(60))]
        step = rng.randrange(4)
        steps.note(keys, step)
        for key in keys:
            expected.setdefault(key, []).append(step)
    keys = [_key(n) for n in range(3000)]
    assert steps.of(keys) == [min(expected.get(key, [NEVER])) for key in keys]
    for key, first in zip(keys, steps.of(keys, after=1), strict=True):
        if min(expected.get(key, [NEVER])) > 1:  # else later steps need not be held
            assert first == min(expected.get(key, [NEVER]))


@pytest.mark.thorough
def test_a_run_that_takes_up_paid_answers_keeps_few_bytes_of_each():
    question, n = Predicate("it is so"), 6_000

    async def ask(ledger: Ledger, run: Run, asked: list) -> int:
        async with Gate.open(Settings(), model=Instant(), calls=None, ledger=ledger, run=run) as gate:
            await gate.ask(question, asked[:1])
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            for part in (asked[i : i + 1_000] for i in range(0, n, 1_000)):
                await gate.ask(question, part)
            gc.collect()
            kept = tracemalloc.get_traced_memory()[0] - before
            assert gate.cost.calls + gate.cost.cached == n + 1
            assert gate.budget.spent_calls == n
            return kept

    asked = rows(n, 20)
    with Ledger(":memory:") as ledger:
        asyncio.run(ask(ledger, Run("first"), asked))
        tracemalloc.start()
        try:
            kept = asyncio.run(ask(ledger, Run("again", started=0.0, root="first"), asked))
        finally:
            tracemalloc.stop()
    assert kept < 30 * n, f"{kept / n:.0f} B a key"
