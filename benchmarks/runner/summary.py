"""Means over seeds, and the table that fits any suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Table

Cell = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Summary:
    """The runs of one cell. Runs without an answer have the quality that their suite gave them: 0."""

    records: tuple[Record, ...]

    @property
    def qualities(self) -> list[float]:
        return [r.quality for r in self.records if r.quality is not None]

    @property
    def measure(self) -> str:
        return next((r.measure for r in self.records if not r.problem and not r.reason), "")

    @property
    def reason(self) -> str:
        return next((r.reason for r in self.records if r.reason), "")

    @property
    def problems(self) -> list[str]:
        return [r.problem for r in self.records if r.problem]

    def mean(self, name: str) -> float:
        """The mean of quality, calls, tokens, seconds, requests or of a number by name; NaN where there is none."""
        values = [v for r in self.records if (v := value_of(r, name)) is not None]
        return fmean(values) if values else float("nan")

    @property
    def seconds(self) -> float:
        return median(r.seconds for r in self.records)

    @property
    def answers(self) -> int:
        """Different answers over the seeds."""
        return len({r.answer_hash for r in self.records})


def value_of(record: Record, name: str) -> float | None:
    """A number of a record by its name; its quality also by the name of its measure."""
    if name in ("quality", record.measure):
        return record.quality
    if name in ("calls", "requests", "cached", "tokens", "input_tokens", "output_tokens", "usd", "seconds"):
        value: float | None = getattr(record, name)
        return value
    return record.numbers.get(name)


def cells(records: Iterable[Record]) -> dict[Cell, Summary]:
    """The runs of each (table, system, query, model), in the order of the file. A task that was run is no longer missing."""
    found: dict[Cell, list[Record]] = {}
    for record in records:
        found.setdefault(record.cell, []).append(record)
    return {cell: Summary(tuple([r for r in held if not r.reason] or held)) for cell, held in found.items()}


def number(value: float, digits: int = 3) -> str:
    """A number for a table: – where there is none.

    >>> number(0.97349), number(1234.5, 0), number(float("nan"))
    ('0.973', '1,234', '–')
    """
    return "–" if value != value else f"{value:,.{digits}f}"


def spread(values: Sequence[float], digits: int = 3, scale: float = 1.0) -> str:
    """Mean ± standard deviation over the seeds; the mean alone where all are equal or there is one.

    >>> spread([0.9, 1.0]), spread([1.0])
    ('0.950 ± 0.071', '1.000')
    """
    if not values:
        return "–"
    mean = f"{scale * fmean(values):.{digits}f}"
    if len(values) < 2 or stdev(values) == 0:
        return mean
    return f"{mean} ± {scale * stdev(values):.{digits}f}"


def table(title: str, records: Sequence[Record], notes: Sequence[str] = ()) -> Table:
    """A line for each query, model and system: quality, calls, tokens, seconds, seeds."""
    rows: list[tuple[str, ...]] = []
    missing: list[str] = []
    for (_, system, query, model), held in sorted(cells(records).items(), key=lambda c: (c[0][2], c[0][3])):
        if held.reason:
            missing.append(f"not run: {system} on {query} with {model}: {held.reason}")
            continue
        rows.append(
            (
                query,
                model,
                system,
                held.measure or "unanswered",
                spread(held.qualities),
                number(held.mean("calls"), 0),
                number(held.mean("tokens"), 0),
                number(held.seconds, 2),
                str(len(held.records)),
                *([f"{len(held.problems)}: {held.problems[0]}"[:120]] if held.problems else [""]),
            )
        )
    head: tuple[str, ...] = (
        "query",
        "model",
        "system",
        "measure",
        "quality",
        "calls",
        "tokens",
        "seconds",
        "seeds",
        "without an answer",
    )
    if not any(row[-1] for row in rows):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return Table(title, head, tuple(rows), (*notes, *missing))
