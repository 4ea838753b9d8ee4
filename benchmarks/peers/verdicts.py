"""Who is better at what: for each other engine the questions on which this one wins, draws and loses, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import variance

from uql.benchmarks.runner.suite import Table
from uql.benchmarks.runner.summary import Cell, Summary

ERRORS = 2.0  # standard errors of a difference below which two qualities are taken as equal
HEAD = ("beside", "better", "as good, fewer calls", "as good, as many calls", "as good, more calls", "worse")
NOTES = (
    "better and worse: the means differ by more than two standard errors where there are several seeds, and at all where there are not",
)


def verdict(mine: Summary, other: Summary) -> str:
    """The column of a question, of two engines' runs of it."""
    gap = mine.mean("quality") - other.mean("quality")
    noise = ERRORS * (_of_mean(mine.qualities) + _of_mean(other.qualities)) ** 0.5
    if abs(gap) > max(noise, 1e-9):
        return "better" if gap > 0 else "worse"
    calls = mine.mean("calls") - other.mean("calls")
    return "as good, as many calls" if calls == 0 else f"as good, {'fewer' if calls < 0 else 'more'} calls"


def _of_mean(values: list[float]) -> float:
    """The variance of a mean; 0 of one value."""
    return variance(values) / len(values) if len(values) > 1 else 0.0


def by_engine(summaries: Mapping[Cell, Summary], ours: str, without: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Other engine → column → questions that both were asked.

    Args:
        summaries: the runs of one scenario and model.
        ours: the system that is compared with the others.
        without: systems that are not compared.
    """
    own = {cell[2]: summary for cell, summary in summaries.items() if cell[1] == ours and not summary.reason}
    verdicts: dict[str, dict[str, list[str]]] = {}
    for (_, system, query, _), summary in summaries.items():
        if system not in without and query in own and not summary.reason:
            columns = verdicts.setdefault(system, {name: [] for name in HEAD[1:]})
            columns[verdict(own[query], summary)].append(query)
    return verdicts


def table(title: str, summaries: Mapping[Cell, Summary], ours: str, without: Iterable[str]) -> Table:
    """A line for each other engine; arguments as of `by_engine`."""
    rows = [
        (system, *(", ".join(columns[name]) or "–" for name in HEAD[1:]))
        for system, columns in by_engine(summaries, ours, tuple(without)).items()
    ]
    return Table(title, HEAD, tuple(rows), NOTES)
