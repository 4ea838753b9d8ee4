"""Peak memory of a run that streams rows through the gate in batches, a filter and a map: 10,000 and 1,000,000 rows of 200 bytes."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from uql.base.settings import Settings
from uql.benchmarks.gate.instant import Instant
from uql.llm.gate import Gate
from uql.llm.questions import Cell, Extract, Predicate, Row

TARGET_MB = 50
BATCH = 4096


async def stream(count: int, folder: Path) -> int:
    """Asks `count` rows, a batch at a time; the number of yes."""
    yes = 0
    async with Gate.open(Settings(ledger=str(folder / "l.sqlite")), model=Instant(), calls=None) as gate:
        for start in range(0, count, BATCH):
            batch = [Row((Cell("text", f"{n:08} ".ljust(200, "x")),)) for n in range(start, min(start + BATCH, count))]
            so, values = await gate.ask([Predicate("it is so"), Extract("the value")], batch)
            yes += sum(so.values)
            assert values.values[0] == f"value {start:08}"
    return yes


def peak_mb(count: int) -> float:
    """Peak resident memory of a process that streams `count` rows, in MB."""
    done = subprocess.run(
        [sys.executable, "-m", "uql.benchmarks.gate.memory", str(count)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main(large: int = 1_000_000) -> bool:
    small, big = peak_mb(10_000), peak_mb(large)
    print(
        f"peak memory: {small:.0f} MB for 10,000 rows, {big:.0f} MB for {large:,}: {big - small:+.0f} MB (target below {TARGET_MB})"
    )
    return big - small < TARGET_MB


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(stream(int(sys.argv[1]), Path(made)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
