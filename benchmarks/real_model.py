"""A real model on the suites, in one table: beside labels as the model, and what others published. `kept` prints it.

The runs: `uql bench run SUITE --models local --systems uql` (questions in words: `--systems dag`), and the same with `--models labels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from uql.benchmarks.nl.published import CAESURA_1, M2EX_1, M2EX_2, Published
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Table, is_simulated
from uql.benchmarks.runner.summary import number
from uql.benchmarks.uqe import paper
from uql.sampling.intervals import clopper_pearson

RESULTS = Path(__file__).parent / "real_model.jsonl"
LEVEL = 0.95
HEAD = ("suite", "table", "questions", "measure", "local model", "labels", "published", "calls", "s a question")
NOTES = (
    "the local model is qwen2.5-coder-1.5b in four bits, on processors; where questions are in words it plans, and texts and images "
    "are read from labels",
    "labels: the same with a table of labels as the model, which is always right, so that sampling alone loses something; where questions "
    "are in words, plans written by hand",
    "intervals are Clopper and Pearson's at 95 %, where an answer is right or not; other numbers are means over the questions",
    "published figures are of other models, and where it says so of other questions",
    "seconds are those of a machine that had other work",
    "asked so far: of the suites in words 12 questions each, evenly spread over the file (nine of SemBench's MMQA ones), and of "
    "SemBench's movies the first four; TAT-QA's tables hold figures as they are printed, in texts",
)
Place = tuple[str, str, str]  # suite, table, measure


def _first(cell: str) -> float:
    """The first number of a printed cell: 5.75 of "5.75 ± 3.43 %"."""
    found = re.search(r"\d+(?:\.\d+)?", cell)
    return float(found[0]) if found else float("nan")


def _cell(printed: Published, names: tuple[str, ...], column: str) -> str:
    (row,) = (row for row in printed.rows if row[: printed.names] == names)
    return row[printed.names + printed.columns.index(column)]


def _of_the_paper(figures: paper.Figures, queries: Iterable[str], digits: int, unit: str) -> str:
    held = [_first(figures[query][paper.UQE]) for query in queries if query in figures]
    return f"UQE with claude-3-haiku {number(fmean(held), digits)}{unit} over {len(held)}" if held else "–"


def published(suite: str, table: str, queries: Iterable[str]) -> str:
    """What others reported for a suite, with their model; – where there is nothing."""
    if suite == "uqe":
        figures = {"table 1": (paper.COUNT, 1, " %"), "table 2": (paper.FIND, 3, ""), "table 3": (paper.GROUP, 3, "")}
        return _of_the_paper(figures[table][0], queries, *figures[table][1:]) if table in figures else "–"
    if suite in ("rotowire", "artwork"):
        caesura, m2ex = {"rotowire": ("Rotowire", "RotoWire"), "artwork": ("Artwork", "ArtWork")}[suite]
        plans = _cell(CAESURA_1, (f"{caesura} overall",), "GPT-4 physical")
        answers = _cell(M2EX_1, ("M²EX", "Overall"), f"{m2ex} Accuracy")
        return f"plans by GPT-4 {plans} (CAESURA), answers {answers} (M²EX), of other questions"
    if suite == "ehrxqa":
        return f"M²EX {_cell(M2EX_2, ('M²EX zero-shot',), 'Overall')}, of the true hospital"
    if suite == "sembench":
        return "Palimpzest 0.656, LOTUS 0.609 with Gemini 2.5 Flash, of all 55 questions of five scenarios"
    return "–"


def _share(records: Sequence[Record]) -> str:
    """The mean quality, of errors in hundredths; right of n with its interval where each run is right or not."""
    qualities = [r.quality or 0.0 for r in records if r.quality is not None]
    if not qualities:
        return "–"
    measure = next(r.measure for r in records if r.measure)
    if measure == "relative error":
        return f"{100 * fmean(qualities):.1f} %"
    if measure != "right":
        return number(fmean(qualities))
    right, n = round(sum(qualities)), len(qualities)
    low, high = clopper_pearson(right, n, LEVEL)
    return f"{right} of {n} ({100 * low:.0f}–{100 * high:.0f} %)"


def _places(records: Iterable[Record]) -> Mapping[Place, list[Record]]:
    """The runs of one measure in one table, plans written by hand with the questions that they answer; a run that failed stands
    with the others of its question."""
    measures: dict[tuple[str, str, str], str] = {}
    held = [r for r in records if not r.reason]
    for r in held:
        if r.measure and not r.problem:
            measures.setdefault((r.suite, r.table, r.query), r.measure)
    found: dict[Place, list[Record]] = {}
    for r in held:
        measure = measures.get((r.suite, r.table, r.query), r.measure)
        if measure:
            found.setdefault((r.suite, "questions" if r.table == "plans" else r.table, measure), []).append(r)
    return found


def table(records: Sequence[Record]) -> Table:
    """One line for each suite, table and measure."""
    rows = []
    for (suite, name, measure), runs in _places(records).items():
        own = [r for r in runs if not is_simulated(r.model) and r.model != "none"]
        labelled = [r for r in runs if is_simulated(r.model)]
        if own:
            rows.append((
                suite, name, f"{len({r.query for r in own})}", measure, _share(own), _share(labelled),
                published(suite, name, {r.query for r in own}), number(sum(r.calls for r in own), 0),
                number(fmean(r.seconds for r in own), 0),
            ))  # fmt: skip
    return Table("The local model, suite by suite", HEAD, tuple(rows), NOTES)
