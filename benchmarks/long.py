"""The long form: `make bench-long` runs it, going on where an earlier run stopped, and writes benchmarks/tables-long.md.

    python -m uql.benchmarks.long [--results build/bench-long] [--page benchmarks/tables-long.md] [--only-page]

200 seeds of every system with each label table, one of the local model, 1,000 trials of each guarantee, stages to a million rows: about
a day on two processors. With --only-page nothing is run: the page says of each table how many seeds it has.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from uql.benchmarks.offline import run
from uql.benchmarks.runner import report
from uql.benchmarks.runner.records import Record, read
from uql.benchmarks.uqe.suite import SUITE as UQE
from uql.benchmarks.uqe.tasks import TABLES

LOCAL = "imdb_positive,abcd_account_access,airdialogue_book,sgd_movies,airdialogue_outcome,abcd_flow"  # asked of the local model
STEPS = (
    ("uqe", ("--models", "labels", "--jobs", "2")),
    ("uqe", ("--models", "labels-5,labels-10", "--jobs", "2")),
    ("uqe", ("--models", "local", "--systems", "uql,uniform,algorithm-1,algorithm-2", "--queries", LOCAL)),
    ("speed", ()),
)
TRIALS = "trials.jsonl"  # of uql.benchmarks.sampling.long
PREFACE = """`make bench-long` made this page; [the short form](tables-short.md) is re-made in ten minutes. The model is a label \
table that is right (`labels`) or errs on 5 or 10 % of the rows: that says nothing of how well a real model judges. `local` is the \
small model on this machine, with 24 calls and one seed: how far its answers are from the labels, and no comparison of systems. Every \
table says how many seeds its cells have: below 200 it is a first look, and a model that is missing was not reached before the run was \
stopped. \
How each number is made stands in the README of its suite's folder in \
`benchmarks/`."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("build/bench-long"))
    parser.add_argument("--page", type=Path, default=Path("benchmarks/tables-long.md"))
    parser.add_argument("--only-page", action="store_true")
    given = parser.parse_args(arguments)
    given.results.mkdir(parents=True, exist_ok=True)
    if not given.only_page:
        for suite, words in STEPS:
            code = run(suite, (*words, "--resume"), given.results / f"{suite}.jsonl", given.results / "work")
            if code:
                return code
        command = [sys.executable, "-m", "uql.benchmarks.sampling.long", "--out", str(given.results / TRIALS)]
        code = subprocess.run([*command, "--seeds", "1000", "--jobs", "2"]).returncode
        if code:
            return code
    given.page.write_text(page(given.results), encoding="utf-8")
    return 0


def page(results: Path) -> str:
    """The page of what a folder of results holds."""
    files = [
        file for suite in dict.fromkeys(suite for suite, _ in STEPS) if (file := results / f"{suite}.jsonl").exists()
    ]
    records = read(files)
    text = report.markdown(records, "Benchmarks, the long form")
    head, _, body = text.partition("\n\n")
    parts = [head, PREFACE, *missing(records), body.rstrip("\n")]
    said = trials(results / TRIALS)
    if said:
        parts.append(said)
    return "\n\n".join(parts) + "\n"


def missing(records: Sequence[Record]) -> list[str]:
    """What the page does not have: suites and tables of which no run was done."""
    there = {(r.suite, r.table) for r in records if not r.reason}
    suites = [suite for suite in dict.fromkeys(suite for suite, _ in STEPS) if suite not in {s for s, _ in there}]
    tables = [table for table in TABLES if table not in UQE.made_of and ("uqe", table) not in there]
    lacking = [f"the suite {suite}" for suite in suites]
    lacking += [f"{', '.join(tables)} of the suite uqe"] if tables and "uqe" not in suites else []
    if not lacking:
        return []
    return [f"Not reached before the run was stopped: {'; '.join(lacking)}. The short form has them with few seeds."]


def trials(file: Path) -> str:
    """What the trials of samples and guarantees say; empty where none were run here: the short page has the last ones."""
    if file.exists():
        command = [sys.executable, "-m", "uql.benchmarks.sampling.long", "--out", str(file), "--page"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        return f"## Sampling: the long form\n\n{said}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
