"""How much of an allowed rate is used, and how many calls are refused: 600 requests and 100,000 tokens a minute."""

from __future__ import annotations

import asyncio
import time

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Limited, rows
from uql.llm.gate import Gate
from uql.llm.questions import Predicate

REQUESTS, TOKENS = 600.0, 100_000.0


async def measure(seconds: float, call_tokens: int) -> tuple[float, float]:
    """(share of the narrower limit that was used, share of calls refused) over that many seconds."""
    provider = Limited(REQUESTS, TOKENS, call_tokens, latency_s=0.8)
    allowed = min(REQUESTS, TOKENS / call_tokens) / 60
    count = int(allowed * seconds)
    async with Gate.open(Settings(ledger=":memory:"), model=provider, calls=None) as gate:
        began = time.monotonic()
        answers = await gate.ask(Predicate("it is so"), rows(count))
        assert not answers.failures
        took = time.monotonic() - began - provider.latency_s
    return count / took / allowed, provider.refused / (count + provider.refused)


def main(seconds: float = 90.0) -> bool:
    good = True
    for name, call_tokens in (("600 requests/min", 50), ("100k tokens/min", 500)):
        used, refused = asyncio.run(measure(seconds, call_tokens))
        print(f"{name}, {seconds:.0f} s: {used:.1%} used (target 90 %), {refused:.2%} refused (target at most 1 %)")
        good &= used >= 0.9 and refused <= 0.01
    return good
