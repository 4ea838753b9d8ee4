"""Time and memory of the engine's own stages against rows, with the fitted exponent; compared as ratios with the last release."""

from __future__ import annotations

import gc
import json
import math
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from threadpoolctl import threadpool_limits

from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task
from uql.benchmarks.runner.summary import Summary, cells, number
from uql.benchmarks.speed.stages import STAGES, Stage

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
USUAL = 1_000_000  # rows at most, where --rows does not say so
REPEATS, ENOUGH_S = 5, 3.0  # timings of a stage; fewer where they take longer than this together
WARMED = 100_000  # rows; beyond, a run takes so long that what the first one does besides is nothing
STORED = Path(__file__).parent / "last_release.json"  # {"release": …, "seconds": {"stage, rows": …}}


def tasks(choice: Choice) -> Iterator[Task]:
    """A task for each stage and number of rows."""
    for stage in STAGES:
        limit = stage.reduced if choice.reduced else stage.most
        for size in SIZES:
            query = f"{stage.name}, {size:,}"
            if size <= (choice.rows or USUAL) and choice.wants("uql", stage.name):
                if size > limit:
                    reason = f"not run beyond {limit:,} rows" + (" in the short form" if choice.reduced else "")
                    yield Task("speed", "uql", query, "none", settings={"rows": size}, seeds=1, reason=reason)
                else:
                    yield Task(
                        "speed", "uql", query, "none", partial(measure, stage, size), {"rows": size}, 1, group="speed"
                    )


def measure(stage: Stage, rows: int, seed: int = 0) -> Measured:
    """Median seconds of processor time of some runs, which other work lengthens least; the memory that a run adds, in MB.

    Memory is what Python and NumPy allocate at the most, from a run of its own: tracing makes a run slower.
    """
    timed = stage.prepare(rows)
    times: list[float] = []
    clock: list[float] = []
    with threadpool_limits(1):  # of several threads the processor time is the sum, and depends on the machine
        if rows <= WARMED:
            timed()  # imports, caches
        while len(times) < REPEATS and sum(times) < ENOUGH_S:
            began, busy = time.perf_counter(), time.process_time()
            timed()
            clock.append(time.perf_counter() - began)
            times.append(time.process_time() - busy)
        gc.collect()
        tracemalloc.start()
        timed()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    numbers = {"clock": median(clock), "memory_mb": peak / 2**20, "rows": float(rows)}
    return Measured(None, None, "", seconds=median(times), numbers=numbers)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of log seconds against log rows: 1 where time grows as the rows do. NaN for fewer than two points.

    >>> round(exponent([(10, 1), (100, 10), (1000, 100)]), 6)
    1.0
    """
    if len(points) < 2:
        return math.nan
    x, y = [math.log(rows) for rows, _ in points], [math.log(max(value, 1e-9)) for _, value in points]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread


def stored() -> tuple[str, dict[str, float]]:
    """The release that times are compared with, and its seconds by stage and rows."""
    held = json.loads(STORED.read_text(encoding="utf-8"))
    return str(held["release"]), {str(k): float(v) for k, v in held["seconds"].items()}


def tables(records: Sequence[Record]) -> list[Table]:
    """A row for each stage: time and memory at each number of rows, exponents, and the ratio to the last release."""
    held = {cell[2]: summary for cell, summary in cells(records).items()}
    release, before = stored()
    rows, reasons, ratios = [], [], []
    for stage in STAGES:
        own = {size: held[key] for size in SIZES if (key := f"{stage.name}, {size:,}") in held}
        ran = {size: summary for size, summary in own.items() if not summary.reason}
        if not ran:
            continue
        reasons += [f"{stage.name} at {size:,} rows: {s.reason}" for size, s in own.items() if s.reason]
        shown = [_cell(ran.get(size)) for size in SIZES]
        slope = exponent([(size, s.seconds) for size, s in ran.items()])
        held_mb = [(size, s.mean("memory_mb")) for size, s in ran.items()]
        growth = exponent(held_mb) if max(mb for _, mb in held_mb) >= 1 else math.nan
        change = [s.seconds / before[key] for size, s in ran.items() if (key := f"{stage.name}, {size:,}") in before]
        ratios += change
        ratio = f"{math.exp(sum(map(math.log, change)) / len(change)):.2f}" if change else "–"
        rows.append((stage.name, *shown, number(slope, 2), number(growth, 2), ratio))
    notes = (
        *(f"{stage.name}: {stage.what}" for stage in STAGES),
        "processor time of one thread, median of up to five runs; in brackets the memory that a run adds at the most",
        "exponents: of time and of memory against rows, fitted to the logarithms; they say most where times are well above a "
        "millisecond, and stand for memory only from 1 MB on",
        f"ratio: geometric mean of time over that of {release}, which was measured on another day and perhaps another machine",
        *reasons,
    )
    head = ("stage", *(f"{size:,} rows" for size in SIZES), "exponent of time", "of memory", f"ratio to {release}")
    return [Table("Time and memory of the stages", head, tuple(rows), notes)] if rows else []


def _cell(summary: Summary | None) -> str:
    if summary is None:
        return "–"
    return f"{1000 * summary.seconds:,.1f} ms ({summary.mean('memory_mb'):,.1f} MB)"


def keep(records: Sequence[Record], release: str, path: Path = STORED) -> None:
    """Stores the times of these records as those of a release."""
    seconds = {cell[2]: summary.seconds for cell, summary in cells(records).items() if not summary.reason}
    path.write_text(json.dumps({"release": release, "seconds": seconds}, indent=2) + "\n", encoding="utf-8")


SUITE = Suite(
    "speed",
    "time and memory of parsing, planning, sampling, the surrogate's update and the gate against rows",
    ("uql",),
    ("none",),
    tasks,
    tables,
    cuts=True,
)
