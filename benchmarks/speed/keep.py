"""Stores the times of a results file as those of a release: `python -m uql.benchmarks.speed.keep results.jsonl VERSION`."""

from __future__ import annotations

import sys
from pathlib import Path

from uql.benchmarks.runner.records import read
from uql.benchmarks.speed.suite import keep


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m uql.benchmarks.speed.keep results.jsonl VERSION", file=sys.stderr)
        return 2
    keep([r for r in read(Path(arguments[0])) if r.suite == "speed"], arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
