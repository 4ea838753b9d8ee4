"""A set with a stated precision and recall over a large table of generated rows, in the engine: `python -m uql.benchmarks.promise.large`.

    SELECT id FROM reviews WHERE "the review is positive" WITH (proxy = 'score', precision = 0.9, recall = 0.9, budget = 1000)

The score is that of a cheap model which errs on 3 % of a balanced table (`promise.tables`), another one with each seed; texts say
nothing. Beside it what is plainest with that score: all rows that it takes for a yes, and the threshold that a uniform sample of as
many calls allows.
With `--results FILE` a line is added to the file for each run, and a run that was stopped goes on; `uql.benchmarks.growth` makes the
table of docs/scale.md of benchmarks/promise/large.jsonl.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import duckdb
import numpy as np
import pyarrow as pa
from scipy.stats import beta

import uql
from uql.benchmarks.gate.instant import Instant
from uql.benchmarks.promise.tables import cheap
from uql.benchmarks.runner import lines
from uql.llm.providers.base import Answer, Reply, Request
from uql.sampling.base import Floats, Indices

ROWS, CALLS, SEEDS = 1_000_000, 1_000, 5
SHARES = (0.5, 0.3, 0.1)  # of the rows that match
TARGET, DELTA = 0.9, 0.05
RESULTS = Path(__file__).with_name("large.jsonl")
GRID = 50  # thresholds that are looked at with a uniform sample
METHODS = ("uql", "uniform sample", "the score alone")
QUERY = (
    'SELECT id FROM reviews WHERE "the review is positive" '
    f"WITH (proxy = 'score', precision = {TARGET}, recall = {TARGET}, budget = {CALLS}, seed = {{seed}})"
)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a method.

    Attributes:
        share: of the rows that match.
        calls: of the dear model.
        states: does it say that both targets hold?
        precision, recall: of the rows returned, by the truth; without rows a precision of 0.
        cpu_s: CPU seconds of the statement, the rows in memory; 0 where no engine runs.
    """

    method: str
    rows: int
    share: float
    seed: int
    calls: int
    states: bool
    precision: float
    recall: float
    returned: int
    cpu_s: float

    @property
    def missed(self) -> bool:
        """Does it state targets of which one does not hold?"""
        return self.states and min(self.precision, self.recall) < TARGET


class Labels(Instant):
    """Answers by the truth of the row whose number begins the text."""

    def __init__(self, truth: Floats) -> None:
        super().__init__()
        self.truth, self.calls = truth, 0

    async def answer(self, request: Request) -> Reply:
        self.calls += 1
        yes = self.truth[int(str(request.row.cells[0].value).split()[0])] == 1
        return Reply(tuple(Answer(bool(yes), float(yes)) for _ in request.questions), 50, 1)


def runs(
    rows: int = ROWS, shares: tuple[float, ...] = SHARES, seeds: int = SEEDS, done: Collection[Run] = ()
) -> Iterator[Run]:
    """Each run as soon as it is known.

    Args:
        rows: of the table.
        shares: of the rows that match, one after another.
        seeds: runs of each method; each has a table and a cheap model of its own.
        done: runs that are left out.
    """
    without = {(run.method, run.rows, run.share, run.seed) for run in done}
    for share in shares:
        for seed in range(seeds):
            wanted = [method for method in METHODS if (method, rows, share, seed) not in without]
            if not wanted:
                continue
            rng = np.random.default_rng([seed, round(1000 * share)])
            truth = (rng.random(rows) < share).astype(np.float64)
            score, sample = cheap("good", truth, rng), rng.choice(rows, CALLS, replace=False)
            for method in wanted:
                calls, states, cpu_s = CALLS, False, 0.0
                if method == "uql":
                    found, calls, states, cpu_s = _engine(truth, score, seed)
                elif method == "uniform sample":
                    low = threshold(score, truth[sample], sample)
                    found, states = np.flatnonzero(score >= (1.0 if low is None else low)), low is not None
                else:
                    found, calls = np.flatnonzero(score >= 0.5), 0
                hits = float(truth[found].sum())
                precision, recall = hits / max(len(found), 1), hits / float(truth.sum())
                quality = round(precision, 4), round(recall, 4)
                yield Run(method, rows, share, seed, calls, states, *quality, len(found), round(cpu_s, 1))


def _engine(truth: Floats, score: Floats, seed: int) -> tuple[Indices, int, bool, float]:
    """The rows returned, the calls, whether both targets are stated, and CPU seconds of the statement."""
    model = Labels(truth)
    with duckdb.connect() as duck, uql.attach(duck, model=model, ledger=":memory:", examples=False) as con:
        duck.register("held", pa.table({"id": np.arange(len(truth)), "score": score}))
        duck.execute("CREATE TABLE reviews AS SELECT id, id || ' is the number of a review' AS body, score FROM held")
        duck.unregister("held")
        began = time.process_time()
        result = con.uql(QUERY.format(seed=seed))
        found = result.arrow()["id"].to_numpy()
        return found, model.calls, not result.partial, time.process_time() - began


def threshold(score: Floats, answers: Floats, sample: Indices) -> float | None:
    """The lowest score from which on all rows may be returned, by exact bounds (Clopper–Pearson) on the sample: one bound for the
    precision above it and one for the recall, each at half of δ, over the thresholds of a grid. None: at none of them both hold.

    Args:
        answers: (n,) 1 or 0, of the rows `sample`.
    """
    drawn = score[sample]
    grid = np.unique(np.quantile(score, np.linspace(0, 1, GRID + 2)[1:-1]))
    delta, matches = DELTA / 2 / len(grid), int(answers.sum())
    for low in grid[::-1]:
        above = drawn >= low
        hits = int(answers[above].sum())
        precise, complete = (_least(hits, n, delta) for n in (int(above.sum()), matches))
        if precise >= TARGET and complete >= TARGET:
            return float(low)
    return None


def _least(hits: int, n: int, delta: float) -> float:
    """The lower end of the share of which `hits` of `n` were seen."""
    return float(beta.ppf(delta, hits, n - hits + 1)) if hits else 0.0


def table(found: list[Run]) -> list[tuple[str, ...]]:
    """A row for each method and share: means over the seeds; the least precision and recall of the runs that state both, else of all."""
    rows = []
    for share in dict.fromkeys(run.share for run in found):
        for method in METHODS:
            own = [run for run in found if (run.method, run.share) == (method, share)]
            shown = [run for run in own if run.states] or [run for run in own if run.returned]
            if own:
                calls, cpu_s = (fmean(getattr(run, name) for run in own) for name in ("calls", "cpu_s"))
                stating, missed = (sum(getattr(run, name) for run in own) for name in ("states", "missed"))
                least = (
                    f"{min((getattr(run, name) for run in shown), default=0):.3f}" for name in ("precision", "recall")
                )
                shares = least if shown else ("–", "–")
                line = (
                    f"{100 * share:.0f} %",
                    method,
                    f"{calls:,.0f}",
                    f"{stating} of {len(own)}",
                    str(missed),
                    *shares,
                )
                rows.append((*line, f"{cpu_s:.0f}" if cpu_s else "–"))
    return rows


HEAD = (
    "rows that match",
    "method",
    "dear calls",
    "runs that state both targets",
    "of these, missed",
    "least precision",
    "least recall",
    "CPU s",
)


def read(path: Path = RESULTS) -> list[Run]:
    """The runs of a results file."""
    return [Run(**held) for _, held in lines.read(path)]


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each run; 1 where one of ours misses a target that it states."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.promise.large", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--share", type=float, action="append")
    parser.add_argument("--results", type=Path, help="a file that runs are added to")
    given = parser.parse_args(arguments)
    done = read(given.results) if given.results else []
    found = list(done)
    for run in runs(given.rows, tuple(given.share or SHARES), given.seeds, done):
        found.append(run)
        print(run, flush=True)
        if given.results:
            lines.append(given.results, asdict(run))
    for row in (HEAD, *table(found)):
        print(" | ".join(row))
    return int(any(run.missed for run in found if run.method == "uql"))


if __name__ == "__main__":
    raise SystemExit(main())
