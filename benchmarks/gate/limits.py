"""How much of an allowed rate is used, and how many calls are refused: 600 requests and 100,000 tokens a minute.

By one gate, and by four that have a connection each to one ledger, as processes of one account have them.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Limited, rows
from uql.llm.gate import Gate
from uql.llm.questions import Predicate

REQUESTS, TOKENS = 600.0, 100_000.0
GATES = (1, 4)


async def measure(seconds: float, call_tokens: int, gates: int, ledger: Path) -> tuple[float, float]:
    """(share of the narrower limit that was used, share of calls refused) over that many seconds."""
    provider = Limited(REQUESTS, TOKENS, call_tokens, latency_s=0.8)
    allowed = min(REQUESTS, TOKENS / call_tokens) / 60
    count = int(allowed * seconds) // gates * gates
    asked = rows(count)

    async def ask(part: int) -> None:
        async with Gate.open(Settings(ledger=str(ledger)), model=provider, calls=None) as gate:
            assert not (await gate.ask(Predicate("it is so"), asked[part::gates])).failures

    began = time.monotonic()
    await asyncio.gather(*map(ask, range(gates)))
    took = time.monotonic() - began - provider.latency_s
    return count / took / allowed, provider.refused / (count + provider.refused)


def main(seconds: float = 90.0) -> bool:
    good = True
    for name, call_tokens in (("600 requests/min", 50), ("100k tokens/min", 500)):
        for gates in GATES:
            with tempfile.TemporaryDirectory() as folder:
                used, refused = asyncio.run(measure(seconds, call_tokens, gates, Path(folder) / "ledger.sqlite"))
            print(
                f"{name}, {gates} at once, {seconds:.0f} s: {used:.1%} used (target 90 %), {refused:.2%} refused (target at most 1 %)"
            )
            good &= used >= 0.9 and refused <= 0.01
    return good
