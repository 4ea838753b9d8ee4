"""A run draws the same rows with any number of BLAS threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWS = """
import json, random, sys
import pyarrow as pa
import uql
sys.path.append(sys.argv[1])
from paid_model import Paid

rng = random.Random(1)
words = [stem + end for stem in ("cat", "river", "train", "cake", "storm", "letter") for end in ("", "s", "ed", "ish", "less", "ly")]
texts = [" ".join(rng.choices(words, k=12)) for _ in range(1_500)]
rows = pa.table({"id": range(1_500), "v": [i % 17 for i in range(1_500)], "text": texts})
for statement in (
    'SELECT COUNT(*) AS n FROM t WHERE "it is so"',
    'SELECT id FROM t WHERE "it is so"',
    'SELECT kind, COUNT(*) AS n FROM t GROUP BY "the kind" AS kind ORDER BY kind',
):
    model = Paid()
    with uql.connect(model=model, ledger=":memory:", budget=160, seed=3) as con:
        con.register("t", rows)
        found = con.uql(statement).fetchall()
    print(json.dumps([found, sorted(map(repr, model.paid))]))
"""


def _draws(threads: int) -> list[object]:
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    tests = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", DRAWS, tests], env=env, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.thorough
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor is one thread")
def test_one_and_two_threads_draw_the_same_rows() -> None:
    one = _draws(1)
    assert len(one) == 3 and all(one)
    assert _draws(2) == one
