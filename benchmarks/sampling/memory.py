"""Peak memory of the features of many rows and of a COUNT over them: `python -m uql.benchmarks.sampling.memory`.

Texts are made up: fourteen words each, of 20,000 words whose frequencies fall as those of a language do. A sub-process makes
them and is measured as it goes on, so nothing is scaled from a smaller table.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from uql.features.similarity import with_similarity
from uql.features.table import table_features
from uql.sampling.methods import AGGREGATE

ROWS = 400_000
TARGET_MB = 1_000
WORDS, LENGTH = 20_000, 14
STATUS = Path("/proc/self/status")


def made_up(n: int) -> list[str]:
    """n texts of about 100 characters, none alike."""
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = np.array(["".join(rng.choice(letters, rng.integers(3, 9))) for _ in range(WORDS)])
    texts = []
    for i in range(n):
        drawn = np.minimum((rng.pareto(1.1, LENGTH) * 8).astype(np.int64), WORDS - 1)
        texts.append(f"{i} {' '.join(words[drawn])}")
    return texts


def megabytes(field: str) -> float:
    """A field of this process's status in MB: VmHWM is the most that was ever resident, files read included."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def measured(n: int) -> None:
    """Print, step by step, what is resident and the most that ever was."""
    texts = made_up(n)
    print(f"{n:,} texts: {megabytes('VmRSS'):.0f} MB", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        features = table_features(texts, key="made up", cache_dir=Path(folder))
        shape = f"{features.matrix.shape[1]} columns, {features.matrix.nbytes / 1e6:.0f} MB"
        print(f"features ({shape}): {megabytes('VmRSS'):.0f} MB, at most {megabytes('VmHWM'):.0f} MB", flush=True)
        matrix, prior = with_similarity(features, "it is about ships", ["a ship", "a boat"], ["a dog"])
        rng = np.random.default_rng(0)
        sampler = AGGREGATE["asd"](n, 128, rng=rng, features=matrix, prior=prior)
        while len(rows := sampler.propose(128)):
            sampler.tell(rows, (matrix[rows, 0] > 0.1).astype(np.float64))
        sampler.estimate()
    print(f"a COUNT query: {megabytes('VmRSS'):.0f} MB, at most {megabytes('VmHWM'):.0f} MB", flush=True)
    print(f"most: {megabytes('VmHWM'):.0f}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Measure in a sub-process; 1 where the peak is above the target, 2 where the system does not tell."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.sampling.memory", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args(arguments)
    if not STATUS.exists():
        print("the peak of a process's memory is read from /proc, which is not here", file=sys.stderr)
        return 2
    if given.here:
        measured(given.rows)
        return 0
    command = [sys.executable, "-m", "uql.benchmarks.sampling.memory", "--here", "--rows", str(given.rows)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    *steps, last = done.stdout.splitlines()
    peak = float(last.split()[1])
    print("\n".join(steps))
    print(f"peak resident memory over {given.rows:,} rows: {peak:.0f} MB (at most {TARGET_MB:,})")
    return 0 if peak <= TARGET_MB else 1


if __name__ == "__main__":
    raise SystemExit(main())
