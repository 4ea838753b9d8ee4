"""Calls a second with a provider in this process and the ledger on disk; then the same rows from the ledger."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Instant, rows
from uql.llm.gate import Gate
from uql.llm.questions import Predicate

TARGET = 2000


async def measure(count: int, folder: Path) -> tuple[float, float, float]:
    """(calls a second, answers of the ledger a second, CPU seconds of a call)."""
    asked, seconds, cpu = rows(count), [], []
    settings = Settings(ledger=str(folder / "ledger.sqlite"))
    for _ in range(2):
        async with Gate.open(settings, model=Instant(), calls=None) as gate:
            began, used = time.monotonic(), time.process_time()
            await gate.ask(Predicate("it is so"), asked)
            seconds.append(time.monotonic() - began)
            cpu.append(time.process_time() - used)
    return count / seconds[0], count / seconds[1], cpu[0] / count


def main(count: int = 20_000) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        paid, known, cpu = asyncio.run(measure(count, Path(folder)))
    print(
        f"in process, ledger on disk: {paid:,.0f} calls/s (target {TARGET:,}), {cpu * 1e6:,.0f} µs of CPU a call; "
        f"from the ledger: {known:,.0f} rows/s"
    )
    return paid >= TARGET
