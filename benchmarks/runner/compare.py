"""Two results files side by side, run by run, and a condition under which the second one fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from uql.benchmarks.runner.condition import Condition
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Table
from uql.benchmarks.runner.summary import number

COST = ("calls", "tokens", "seconds", "usd")
Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The runs that both files have, by suite, table and system (and query, where asked): means before and after."""

    name: str
    runs: int
    before: dict[str, float]
    after: dict[str, float]
    same_answers: int
    measures: tuple[str, ...]


def compared(a: Sequence[Record], b: Sequence[Record], *, per_query: bool = False) -> list[Compared]:
    """Means over the shared runs (same suite, table, system, query, model, seed); what only one file has is left out."""
    before = {r.place[:-1]: r for r in a if not r.reason}
    groups: dict[Key, list[tuple[Record, Record]]] = {}
    for record in b:
        if not record.reason and record.place[:-1] in before:
            key = (record.suite, record.table, record.system, *((record.query, record.model) if per_query else ()))
            groups.setdefault(key, []).append((before[record.place[:-1]], record))
    found = []
    for key, pairs in groups.items():
        measures = {r.measure for pair in pairs for r in pair if r.measure}
        found.append(
            Compared(
                ", ".join(key),
                len(pairs),
                means([first for first, _ in pairs]),
                means([second for _, second in pairs]),
                sum(first.answer_hash == second.answer_hash for first, second in pairs),
                tuple(sorted(measures - {"unanswered"})),
            )
        )
    return found


def means(records: Sequence[Record]) -> dict[str, float]:
    """Means by name: quality, every measure, costs, and the numbers that all records have.

    A run without an answer enters the mean of its table's measure with its quality, 0.
    """
    found: dict[str, float] = {}
    for name in ("calls", "requests", "cached", "input_tokens", "output_tokens", "tokens", "seconds"):
        found[name] = fmean(float(getattr(r, name)) for r in records)
    if all(r.usd is not None for r in records):
        found["usd"] = fmean(r.usd or 0.0 for r in records)
    qualities = [r.quality for r in records if r.quality is not None]
    if qualities:
        found["quality"] = fmean(qualities)
    for measure in {r.measure for r in records if r.measure} - {"unanswered"}:
        held = [r.quality for r in records if r.measure in (measure, "unanswered") and r.quality is not None]
        found[measure] = fmean(held)
    for name in set.intersection(*(set(r.numbers) for r in records)):
        found.setdefault(name, fmean(float(r.numbers[name]) for r in records))
    return found


def table(found: Sequence[Compared]) -> Table:
    """Before, after and change of each measure and of the costs."""
    rows = []
    for each in found:
        for name in (*each.measures, *COST):
            if (
                name not in each.before
                or name not in each.after
                or (name not in each.measures and not each.after[name])
            ):
                continue
            first, second = each.before[name], each.after[name]
            change = f"{second - first:+.4f}" if name in each.measures else f"{second / first:.2f}x" if first else "new"
            digits = 4 if name in each.measures or name == "usd" else 2
            rows.append((each.name, name, number(first, digits), number(second, digits), change, str(each.runs)))
    same = sum(each.same_answers for each in found)
    runs = sum(each.runs for each in found)
    notes = (f"{same:,} of {runs:,} shared runs gave the same answer",)
    return Table("Comparison", ("what", "number", "before", "after", "change", "runs"), tuple(rows), notes)


def failures(found: Sequence[Compared], condition: Condition) -> list[str]:
    """A line for each part that fails the condition."""
    return [
        f"{each.name}: {' and '.join(said)}" for each in found if (said := condition.failing(each.before, each.after))
    ]
