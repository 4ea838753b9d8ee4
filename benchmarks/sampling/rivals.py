"""COUNT beside what was published in 2026: `python -m uql.benchmarks.sampling.rivals [--results FILE] [--seeds 20]`.

For each predicate: the error of each method at equal calls, then the calls that a rival needs for the error that the engine has with the
first budget, by the line through the logarithms of its errors. Errors are given as the methods estimate, and clipped to what the answers
allow: at least the rows that said yes, at most all rows less those that said no. A run without an answer counts as a failure and in no
error. With `--results FILE` a line is added to the file for each predicate and method, and a run that was stopped goes on; rivals.jsonl is
such a file, of which `uql.benchmarks.kept` makes the page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, data_folder, predicates, texts
from uql.benchmarks.promise.tables import Dear
from uql.benchmarks.runner import lines
from uql.benchmarks.sampling.aggregates import HARD, rms
from uql.benchmarks.sampling.rival_methods import RIVALS
from uql.benchmarks.sampling.worlds import World, samplers, world
from uql.llm import questions
from uql.llm.questions import Cell, Row

RESULTS = Path(__file__).with_name("rivals.jsonl")
BUDGETS = (128, 256, 512, 1024)
SEEDS = 20
ROWS = 10_000  # random ones of a larger table
OURS = "uql"
FEWEST = 16  # calls to which those for an error are clipped
LETTERS = 4  # of a token
PROMPTS = 500  # rows whose prompts are measured
AT_MOST_FAILED = 0.5  # share of runs without an answer above which a method has none


@dataclass(frozen=True, slots=True)
class RivalRow:
    """One predicate and method.

    Attributes:
        rows: of the table.
        tokens: of the prompt of a call, its mean.
        errors: (B,) root mean square relative error by budget, of the runs with an answer; None where there is none.
        clipped_errors: (B,) the same of estimates clipped to what the answers allow.
        failures: (B,) share of the runs without an answer.
    """

    predicate: str
    rows: int
    method: str
    seeds: int
    tokens: float
    budgets: tuple[int, ...]
    errors: tuple[float | None, ...]
    clipped_errors: tuple[float | None, ...]
    failures: tuple[float, ...]

    def calls_for(self, error: float, *, clipped: bool = False) -> float | None:
        """Calls for that error, by the line through the logarithms of the errors, however far it leads; None where most runs fail, or the
        error does not fall."""
        errors = self.clipped_errors if clipped else self.errors
        points = [
            (b, e)
            for b, e, f in zip(self.budgets, errors, self.failures, strict=True)
            if e is not None and e > 0 and f <= AT_MOST_FAILED
        ]
        if len(points) < 2:
            return None
        slope, at = np.polyfit(np.log([b for b, _ in points]), np.log([e for _, e in points]), 1)
        if slope >= 0:
            return float(points[0][0]) if points[0][1] <= error else None
        with np.errstate(over="ignore"):  # a line that hardly falls leads beyond all numbers
            return float(np.exp((np.log(error) - at) / slope))

    def bounded(self, calls: float | None) -> float:
        """Those calls between FEWEST and every row; every row where the method has none to give."""
        return float(self.rows) if calls is None else float(np.clip(calls, FEWEST, self.rows))


def rival_rows(
    predicate: Predicate, seeds: int, budgets: Sequence[int] = BUDGETS, without: frozenset[str] = frozenset()
) -> Iterator[RivalRow]:
    """A row for each method, the engine's own and UQE's strata first.

    Args:
        seeds: runs of each budget.
        without: methods that are left out.
    """
    w = world(predicate, False, ROWS)
    tokens = prompt_tokens(w)
    for method in (OURS, "uqe", *RIVALS):
        if method in without:
            continue
        own = tuple(budgets[:1] if method == OURS else budgets)
        runs = [[run_once(w, method, budget, seed) for seed in range(seeds)] for budget in own]
        errors, clipped, failures = zip(*(errors_of(each, float(w.truth.sum())) for each in runs), strict=True)
        yield RivalRow(predicate.name, w.n, method, seeds, tokens, own, errors, clipped, failures)


@dataclass(frozen=True, slots=True)
class Run:
    """An estimate, None where the statement fails; and the least and most that the answers allow."""

    value: float | None
    least: float
    most: float


def run_once(w: World, method: str, budget: int, seed: int) -> Run:
    """One run of a method. The engine's estimate is clipped where the answers are 0 or 1; where they may be less than 0, it is not."""
    if method in RIVALS:
        ask = Dear(w.truth)
        value = RIVALS[method](w, ask, budget, np.random.default_rng([seed, 3]), seed)
        asked, yes = len(ask.asked), len(ask.matches())
    else:
        ((_, sampler),) = samplers(w, budget, [seed], ("asd" if method == OURS else method,))
        value = sampler.total(sampler.answers, (-1.0, 1.0)).value
        asked, yes = len(sampler.answers), int(np.nansum(sampler.answers))
    return Run(value, yes, w.n - (asked - yes))


def errors_of(runs: Sequence[Run], total: float) -> tuple[float | None, float | None, float]:
    """Relative error of the runs with an answer, the same clipped, and the share of those without."""
    values = [run.value for run in runs if run.value is not None]
    failures = 1 - len(values) / len(runs)
    if not values:
        return None, None, failures
    errors = [value / total - 1 for value in values]
    clipped = [min(max(run.value, run.least), run.most) / total - 1 for run in runs if run.value is not None]
    return rms(errors), rms(clipped), failures


def prompt_tokens(w: World) -> float:
    """Tokens of what is sent to ask a row, a token being four letters; the mean of random rows."""
    shown = texts(w.predicate.data)
    question = questions.Predicate(w.predicate.condition)
    words = question.operator.words.single_prompt
    assert words is not None
    lengths = []
    for row in np.random.default_rng(0).permutation(w.n)[:PROMPTS]:
        prompt = words(question, Row((Cell("text", shown[w.rows[row]]),)))
        lengths.append(len(prompt.system) + len(prompt.user))
    return float(np.mean(lengths)) / LETTERS


def read(path: Path = RESULTS) -> list[RivalRow]:
    """The rows of a results file."""
    return [_row(values) for _, values in lines.read(path)]


def _row(values: dict[str, Any]) -> RivalRow:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return RivalRow(**fields)


def main(arguments: list[str] | None = None) -> int:
    """Measure what the results file does not have; 2 where the data is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m uql.benchmarks.sampling.rivals", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )  # fmt: skip
    parser.add_argument("--results", type=Path, help="a file that lines are added to")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--predicate", action="append", help="one by name; may be given several times")
    given = parser.parse_args(arguments)
    try:
        data_folder()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [p for p in predicates() if p.name in given.predicate] if given.predicate else predicates()[:HARD]
    done = read(given.results) if given.results else []
    held = {(row.predicate, row.method) for row in done if row.seeds == given.seeds}
    with lines.alone(given.results) if given.results else nullcontext():
        for predicate in chosen:
            known = frozenset(method for name, method in held if name == predicate.name)
            for row in rival_rows(predicate, given.seeds, without=known):
                if given.results:
                    lines.append(given.results, asdict(row))
                errors = " ".join("–" if e is None else f"{e:.3f}" for e in row.errors)
                print(f"{row.predicate:<14}{row.method:<16}{errors}  failed {np.mean(row.failures):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
