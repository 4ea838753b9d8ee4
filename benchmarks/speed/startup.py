"""How long the start takes: `python -m uql.benchmarks.speed.startup` prints medians of fresh processes.

Wanted: `import uql` under 0.3 s, `uql --version` under 0.15 s over `python -c pass`, `uql -c` under 0.6 s.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

REPEATS = 10


def median_s(command: list[str], repeats: int = REPEATS) -> float:
    """Median wall-clock seconds of a command; its first run, which fills the caches, is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> int:
    beside = Path(sysconfig.get_path("scripts")) / "uql"
    uql = str(beside) if beside.exists() else shutil.which("uql")
    if uql is None:
        print("the command uql is not installed", file=sys.stderr)
        return 2
    bare = median_s([sys.executable, "-c", "pass"])
    lines = [
        ("python -c pass", bare, None),
        ("python -c 'import uql'", median_s([sys.executable, "-c", "import uql"]), 0.3),
        ("uql --version", median_s([uql, "--version"]), 0.15),
        ("uql -c 'SELECT 1'", median_s([uql, "-c", "SELECT 1"]), 0.6),
    ]
    print(f"{'command':<26}{'s':>8}{'over bare':>12}{'wanted over bare':>20}")
    for name, seconds, wanted in lines:
        limit = f"{wanted:.2f}" if wanted is not None else ""
        print(f"{name:<26}{seconds:>8.3f}{seconds - bare:>12.3f}{limit:>20}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
