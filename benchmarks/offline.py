"""The reduced set, with labels as the model: `make bench-offline`, under ten minutes on two processors, writes docs/benchmarks.md.

    python -m uql.benchmarks.offline [--page docs/benchmarks.md] [--results build/bench]

Results of other engines take hours and gigabytes: those kept in benchmarks/peers/results.jsonl are printed as they are.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from uql.benchmarks.peers.environments import RESULTS as PEERS_RESULTS
from uql.benchmarks.runner import report
from uql.benchmarks.runner.records import Record, read

QUESTIONS = (
    "imdb,abcd_account_access,abcd_flow,airdialogue_book,airdialogue_cancel,airdialogue_outcome,clevr_few_objects"
)
STEPS = (  # suite, arguments; every one with labels as the model
    ("uqe", ("--models", "labels", "--rows", "1500", "--seeds", "5", "--queries", QUESTIONS)),
    ("sembench", ("--models", "labels,labels-10", "--seeds", "1")),
    ("speed", ("--reduced",)),
    ("optimizer", ("--reduced",)),
    ("sampling", ("--reduced",)),
)
PREFACE = """`make bench-offline` made this page. It is the short form: tables of at most 1,500 rows and few seeds, with labels as the \
model, so it shows what the engine does with right (or partly wrong) answers and says nothing of any real model. {seeds} seeds tell \
apart errors that differ by a factor of two, not by a tenth: ratios of errors need 200 (`uql bench run uqe`), coverage of intervals 1,000 \
(`uql bench run guarantees`). Seconds are those of a machine that may have had other work. How each number is made stands in the README \
of its suite's folder in `benchmarks/`; `uql bench run SUITE` is the long form.

{took}"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks.md"))
    parser.add_argument("--results", type=Path, default=Path("build/bench"))
    given = parser.parse_args(arguments)
    shutil.rmtree(given.results, ignore_errors=True)
    given.results.mkdir(parents=True)
    began, files = time.monotonic(), []
    for suite, words in STEPS:
        file = given.results / f"{suite}.jsonl"
        work = ("--work", str(given.results / "work"))
        command = [sys.executable, "-m", "uql.cli", "bench", "run", suite, "--offline", "-o", str(file), *work, *words]
        done = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "2"})
        if done.returncode:
            return done.returncode
        files.append(file)
    minutes = (time.monotonic() - began) / 60
    used = os.times()
    busy = (used.children_user + used.children_system) / 60
    took = f"The run took {minutes:.1f} minutes, with {busy:.1f} minutes of processor time."
    given.page.write_text(page(files, took), encoding="utf-8")
    print(f"{minutes:.1f} minutes: {given.page}", file=sys.stderr)
    return 0


def page(files: list[Path], took: str) -> str:
    """The page of some results files, with the kept results of other engines behind them."""
    records: list[Record] = read(files)
    seeds = max(r.seed for r in records) + 1
    text = report.markdown(records, "Benchmarks")
    head, _, body = text.partition("\n\n")
    parts = [head, PREFACE.format(seeds=seeds, took=took), body.rstrip("\n")]
    if PEERS_RESULTS.exists():
        kept = read(PEERS_RESULTS)
        parts.append("\n\n".join(report.suite_sections(kept)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
