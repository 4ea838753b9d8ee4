"""The reduced set, with labels as the model: `make bench-offline`, under ten minutes on two processors, writes benchmarks/tables-short.md.

    python -m uql.benchmarks.offline [--page benchmarks/tables-short.md] [--results build/bench]

It leaves out other engines, rivals, real models and samples with hundreds of seeds: benchmarks/tables-kept.md has those that are kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from uql.benchmarks.runner import report
from uql.benchmarks.runner.records import read

QUESTIONS = (
    "imdb,abcd_account_access,abcd_flow,airdialogue_book,airdialogue_cancel,airdialogue_outcome,clevr_few_objects"
)
SEEDS = 5
STEPS = (  # suite, arguments; every one with labels as the model
    ("uqe", ("--models", "labels", "--rows", "1500", "--seeds", str(SEEDS), "--queries", QUESTIONS, "--jobs", "2")),
    ("sembench", ("--models", "labels,labels-10", "--seeds", "1")),
    ("speed", ("--reduced",)),  # alone: the other processor is for the system
    ("optimizer", ("--reduced",)),
    ("sampling", ("--reduced", "--jobs", "2")),
)
WORK = "work"  # folder of label tables and vectors
LONG, KEPT = "tables-long.md", "tables-kept.md"
PREFACE = """`make bench-offline` made this page. It is the short form: tables of at most 1,500 rows and few seeds, with labels as the \
model, so it shows what the engine does with right (or partly wrong) answers and says nothing of any real model. {seeds} seeds tell \
apart errors that differ by a factor of two, not by a tenth: ratios of errors need 200, coverage of intervals and guarantees 1,000, \
which [the long form]({long}) has. Left out: other engines, methods of others, real models, for which there are [kept results]({kept}). \
Seconds are those of a machine that may have had other work. How each number is made stands in \
the README of its suite's folder in `benchmarks/`, how all of it is run in `benchmarks/README.md`.

{took}"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=Path("benchmarks/tables-short.md"))
    parser.add_argument("--results", type=Path, default=Path("build/bench"))
    given = parser.parse_args(arguments)
    given.results.mkdir(parents=True, exist_ok=True)
    clear(given.results)
    began, files, times = time.monotonic(), [], []
    for suite, words in STEPS:
        file, step = given.results / f"{suite}.jsonl", time.monotonic()
        code = run(suite, words, file, given.results / WORK)
        if code:
            return code
        times.append(f"{suite} {time.monotonic() - step:.0f} s")
        files.append(file)
    minutes = (time.monotonic() - began) / 60
    used = os.times()
    busy = (used.children_user + used.children_system) / 60
    took = f"The run took {minutes:.1f} minutes on {os.cpu_count()} processors ({', '.join(times)}), {busy:.1f} of a processor."
    given.page.write_text(page(files, took), encoding="utf-8")
    print(f"{minutes:.1f} minutes: {given.page}", file=sys.stderr)
    return 0


def clear(results: Path) -> None:
    """Takes away what an earlier run left in a folder, and nothing else that is in it."""
    for suite, _ in STEPS:
        (results / f"{suite}.jsonl").unlink(missing_ok=True)
    shutil.rmtree(results / WORK, ignore_errors=True)


def run(suite: str, words: Sequence[str], file: Path, work: Path) -> int:
    """One suite in a process of its own; its exit code."""
    command = [
        sys.executable,
        "-m",
        "uql.cli",
        "bench",
        "run",
        suite,
        "--offline",
        "-o",
        str(file),
        "--work",
        str(work),
    ]
    return subprocess.run([*command, *words]).returncode


def page(files: Sequence[Path], took: str) -> str:
    """The page of some results files."""
    text = report.markdown(read(files), "Benchmarks")
    head, _, body = text.partition("\n\n")
    parts = [head, PREFACE.format(seeds=SEEDS, long=LONG, kept=KEPT, took=took), body.rstrip("\n")]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
