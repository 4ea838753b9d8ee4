"""Tables of a folder of Parquet files, read by one process and by shards on a cluster of two nodes of one core each, on this machine.

    python -m uql.benchmarks.scale sizes [--rows 100000 1000000] [--shards 1 2 4] [--lake build/scale]
    python -m uql.benchmarks.scale faults [--runs 100]

Rows are generated: short texts of a few words, and a model in this process that answers at once by the words of a row. `sizes` prints a
line for each system: CPU seconds of all its processes and seconds by the clock, the largest memory of a process, and what the shards sent.
`faults` takes a node away at a random moment of each run, and counts the calls at the provider.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

import uql
from uql.benchmarks.gate.instant import Instant
from uql.llm.providers.base import Answer, Reply, Request

WORDS = ("plot", "actor", "scene", "music", "camera", "ending", "pace", "costume", "humour", "light", "story", "cast")
JUDGED = ("slow", "bright", "dull", "clever", "loud", "gentle", "bold", "weak", "rich", "flat")
FILES = 8
BUDGET = 128
SEEDS = 3
COUNT = 'SELECT COUNT(*) AS n FROM reviews WHERE "the review speaks of music" WITH (seed = {seed})'
SEARCH = 'SELECT id FROM reviews WHERE "the review speaks of a clever ending" LIMIT 10'
MOST_ALONE = 100_000
ALONE, PROCESS = "engine alone", "one process"


class Reader(Instant):
    """Says yes where a row holds every word of a question that is a word of the generated texts; counts its calls."""

    def __init__(self, wait_s: float = 0.0) -> None:
        super().__init__()
        self.calls, self.wait_s = 0, wait_s

    async def answer(self, request: Request) -> Reply:
        import asyncio

        self.calls += 1
        if self.wait_s:
            await asyncio.sleep(self.wait_s)
        text = str(request.row.cells[0].value)
        said = [[word for word in q.text.split() if word in (*WORDS, *JUDGED)] for q in request.questions]
        return Reply(tuple(Answer(all(word in text for word in words), 0.9) for words in said), 50, 1)


def write(folder: Path, rows: int) -> Path:
    """A lake of one table, `reviews`, of so many rows; what is there stays."""
    lake = folder / f"rows-{rows}"
    if not lake.exists():
        part = lake.with_name(f"{lake.name}.part{os.getpid()}")  # has its name once all files are there
        (part / "reviews").mkdir(parents=True)
        duck = duckdb.connect(config={"threads": 1})
        duck.execute("SET enable_progress_bar = false")
        one = " || ' ' || ".join(
            f"{list(values)!r}[1 + (hash(i * {k + 3}) % {len(values)})::INT]"
            for k, values in enumerate((("the", "a", "this"), JUDGED, WORDS, ("and", "with", "but"), JUDGED, WORDS))
        )
        for k in range(FILES):
            numbers = f"range({rows * k // FILES}, {rows * (k + 1) // FILES}) t(i)"
            duck.execute(
                f"COPY (SELECT i AS id, 1 + (hash(i) % 5)::INT AS stars, 'review ' || i || ': ' || {one} AS body FROM {numbers}) "
                f"TO '{part}/reviews/{k}.parquet'"
            )
        part.replace(lake)
    return lake


# ---------------------------------------------------------------------------------------------------------------- sizes
def opened(lake: Path, system: str, address: str, model: Reader, method: str | None = None) -> uql.Connection:
    """A connection of a system to a lake.

    Args:
        system: ALONE, PROCESS, or a number of shards.
        address: of a Ray cluster.
        model: that answers.
        method: of samples; None: the engine's choice.
    """
    cluster, shards = {ALONE: (None, None), PROCESS: ("process", None)}.get(system) or (address, int(system))
    con = uql.connect(
        None if cluster is None else lake,
        cluster=cluster,
        shards=shards,
        model=model,
        ledger=":memory:",
        budget=BUDGET,
        examples=False,
        method=method,
    )
    if cluster is None:
        con.execute(f"CREATE VIEW reviews AS FROM read_parquet('{lake}/reviews/*.parquet')")
    return con


def measure(lake: Path, system: str, address: str, searches: bool) -> dict[str, Any]:
    """One system over one lake, in this process: to be called in a process of its own.

    Args:
        system: ALONE, PROCESS, or a number of shards.
        address: of a Ray cluster.
        searches: is LIMIT measured too? It needs a vector of each row.
    """
    con = opened(lake, system, address, Reader())
    cluster = con.session.cluster

    def used() -> float:
        """CPU seconds of this process and the shards."""
        return time.process_time() + (sum(cpu for cpu, _ in cluster.usage()) if cluster and system != PROCESS else 0.0)

    found: dict[str, Any] = {"system": system, "answers": []}
    steps = [("count", COUNT.format(seed=1)), *((f"count{seed}", COUNT.format(seed=seed)) for seed in (2, 3))]
    if searches:
        steps += [("build", SEARCH), ("search", SEARCH + " WITH (seed = 9)")]
    for name, query in steps:
        before, began = used(), time.monotonic()
        result = con.uql(query)
        rows = result.fetchall()
        found[name] = {"cpu": used() - before, "seconds": time.monotonic() - began}
        if name.startswith("count"):
            estimate: Any = result.estimates["n"]
            found["answers"].append([rows[0][0], estimate.low, estimate.high])
        else:
            found["found"] = len(rows)
    found["driver_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if cluster is not None:
        found["traffic"] = [cluster.traffic.bytes, cluster.traffic.messages, cluster.traffic.largest]
        found["shard_mb"] = max(peak for _, peak in cluster.usage()) / 2**20
    con.close()
    return found


def sizes(rows: Sequence[int], shards: Sequence[int], folder: Path, most: int, results: Path | None) -> bool:
    """Prints the table; are the answers of all systems over one lake equal?

    Args:
        rows: of each lake.
        shards: numbers of shards.
        folder: of the lakes.
        most: rows of a lake in which LIMIT is measured; the engine alone is measured up to MOST_ALONE rows.
        results: gets a line for each system, for uql.benchmarks.growth.
    """
    equal = True
    print(
        "| rows | system | first COUNT, CPU s (s) | next COUNT | build | LIMIT search | driver MB | shard MB | sent MB | largest KB |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with two_nodes() as cluster:
        for n in rows:
            lake, answers = write(folder, n), []
            for system in (ALONE, PROCESS, *map(str, shards)):
                for made in lake.parent.glob(f"{lake.name}.uql-features/**/*"):  # each system builds its own
                    if made.is_file():
                        made.unlink()
                if system == ALONE and n > MOST_ALONE:
                    continue
                searches = ["--search"] if n <= most else []
                command = [
                    sys.executable,
                    "-m",
                    "uql.benchmarks.scale",
                    "one",
                    str(lake),
                    system,
                    cluster.address,
                    *searches,
                ]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                if done.returncode:
                    print(f"| {n:,} | {system} | ended with {done.returncode} |", flush=True)
                    continue
                found = json.loads(done.stdout)
                answers.append(found["answers"])
                steps = [found.get(step) for step in ("count", "count2", "build", "search")]
                first, following, build, search = (f"{s['cpu']:.1f} ({s['seconds']:.1f})" if s else "–" for s in steps)
                sent, _, largest = found.get("traffic", (0, 0, 0))
                name = system if system in (ALONE, PROCESS) else f"{system} shard{'s' * (system != '1')}"
                if results is not None:
                    cpu = {step: s["cpu"] for step in ("count", "count2", "build", "search") if (s := found.get(step))}
                    line = {
                        "rows": n,
                        "system": name,
                        **cpu,
                        "driver_mb": found["driver_mb"],
                        "shard_mb": found.get("shard_mb"),
                    }
                    with results.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(line) + "\n")
                memory = f"{found['driver_mb']:.0f} | {found.get('shard_mb', 0):.0f}"
                print(
                    f"| {n:,} | {name} | {first} | {following} | {build} | {search} | {memory} | {sent / 1e6:.1f} "
                    f"| {largest / 1024:.0f} |",
                    flush=True,
                )
            equal = equal and all(one == answers[0] for one in answers)
            print(f"rows {n:,}: {answers[0][0]}; three seeds equal in {len(answers)} systems: {equal}", file=sys.stderr)
    return equal


NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80_000_000}
NOTICED = {  # how soon Ray takes a node for lost; its workers are as important as other processes
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "worker_niceness": 0,
}


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A Ray cluster of two nodes of one core."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    head = {**NODE, "include_dashboard": False, "_system_config": NOTICED}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(**NODE)
    try:
        yield cluster
    finally:
        cluster.shutdown()


# --------------------------------------------------------------------------------------------------------------- faults
def faults(runs: int, folder: Path) -> bool:
    """Takes a node away at a random moment of each run and puts another in its place; is each run's answer that of an unbroken one, and
    were no more calls made than the budget allows?"""
    lake, expected = write(folder, 100_000), list[Any]()
    right = within = 0
    longest = 0.0
    with two_nodes() as cluster:
        worker = next(iter(cluster.worker_nodes))
        for run in range(-SEEDS, runs):
            seed, model = run % SEEDS, Reader(wait_s=0.05)
            con = opened(lake, "2", cluster.address, model, "uniform")
            began, moment = time.monotonic(), random.Random(run).uniform(0.0, 2.5)
            lost = threading.Timer(moment, cluster.remove_node, [worker], {"allow_graceful": False})
            if run >= 0:
                lost.start()
            queries = (COUNT.format(seed=seed), COUNT.format(seed=SEEDS).replace("AS n", "AS m"))
            answer = [con.uql(query).fetchall() for query in queries]
            con.close()
            if run < 0:
                expected.append(answer)
                continue
            longest = max(longest, time.monotonic() - began)
            lost.join()
            worker = cluster.add_node(**NODE)
            right += answer == expected[seed]
            within += model.calls <= len(queries) * BUDGET
    print(
        f"{runs} runs, each with a node lost at a random moment: the unbroken run's answers in {right}, "
        f"calls at the provider within the budget in {within}; the longest took {longest:.1f} s"
    )
    return right == within == runs


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    by_size, by_fault, one = modes.add_parser("sizes"), modes.add_parser("faults"), modes.add_parser("one")
    by_size.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    by_size.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    by_size.add_argument("--most", type=int, default=1_000_000, help="rows up to which LIMIT is measured")
    by_fault.add_argument("--runs", type=int, default=100)
    by_size.add_argument("--results", type=Path, help="lines of JSON, for python -m uql.benchmarks.growth")
    for part in (by_size, by_fault):
        part.add_argument("--lake", type=Path, default=Path("build/scale"))
    for name in ("lake", "system", "address"):
        one.add_argument(name)
    one.add_argument("--search", action="store_true")
    given = parser.parse_args(arguments)
    if given.mode == "one":
        print(json.dumps(measure(Path(given.lake), given.system, given.address, given.search)))
        return 0
    if given.mode == "sizes":
        return 0 if sizes(given.rows, given.shards, given.lake, given.most, given.results) else 1
    return 0 if faults(given.runs, given.lake) else 1


if __name__ == "__main__":
    sys.exit(main())
