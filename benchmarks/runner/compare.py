"""Two results files side by side, run by run, and a condition under which the second one fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from uql.base.errors import ConfigError
from uql.benchmarks.runner.condition import Condition
from uql.benchmarks.runner.records import LOWER_IS_BETTER, Record
from uql.benchmarks.runner.suite import Table
from uql.benchmarks.runner.summary import number

COST = ("calls", "tokens", "seconds", "usd")
COUNTS = ("calls", "requests", "cached", "input_tokens", "output_tokens")
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


def shared(a: Sequence[Record], b: Sequence[Record]) -> list[tuple[Record, Record]]:
    """The runs that both have: same suite, table, system, query, model and seed, and same settings.

    Where the settings were changed between the files, the one run that each of them has of all else is taken.
    """
    first, second = ({r.place: r for r in held if not r.reason} for held in (a, b))
    one, two = (
        _only({place: r for place, r in held.items() if place not in other})
        for held, other in ((first, second), (second, first))
    )
    return [(first[place], r) for place, r in second.items() if place in first] + [
        (one[key], r) for key, r in two.items() if key in one
    ]


def _only(held: Mapping[Key, Record]) -> dict[Key, Record]:
    """The records of which there is one but for its settings."""
    found: dict[Key, list[Record]] = {}
    for place, record in held.items():
        found.setdefault(place[:-1], []).append(record)
    return {key: records[0] for key, records in found.items() if len(records) == 1}


def compared(a: Sequence[Record], b: Sequence[Record], *, per_query: bool = False) -> list[Compared]:
    """Means over the shared runs; what only one file has is left out."""
    groups: dict[Key, list[tuple[Record, Record]]] = {}
    for before, record in shared(a, b):
        key = (record.suite, record.table, record.system, *((record.query, record.model) if per_query else ()))
        groups.setdefault(key, []).append((before, record))
    found = []
    for key, pairs in groups.items():
        measures = {r.measure for pair in pairs for r in pair if r.measure} - {"unanswered"}
        found.append(
            Compared(
                ", ".join(key),
                len(pairs),
                means([first for first, _ in pairs], measures),
                means([second for _, second in pairs], measures),
                sum(first.answer_hash == second.answer_hash for first, second in pairs),
                tuple(sorted(measures)),
            )
        )
    return found


def means(records: Sequence[Record], measures: Collection[str]) -> dict[str, float]:
    """Means by name: quality, the measures that either file has, costs, and the numbers that all records have.

    A run without an answer enters the mean of its table's measure with its quality, the worst one.
    """
    found: dict[str, float] = {}
    for name in (*COUNTS, "tokens", "seconds"):
        found[name] = fmean(float(getattr(r, name)) for r in records)
    if all(r.usd is not None for r in records):
        found["usd"] = fmean(r.usd or 0.0 for r in records)
    qualities = [r.quality for r in records if r.quality is not None]
    if qualities:
        found["quality"] = fmean(qualities)
    for measure in measures:
        held = [r.quality for r in records if r.measure in (measure, "unanswered") and r.quality is not None]
        if held:
            found[measure] = fmean(held)
    for name in set.intersection(*(set(r.numbers) for r in records)):
        found.setdefault(name, fmean(float(r.numbers[name]) for r in records))
    return found


def unshared(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """A line where one file has runs that the other has not: nothing is said of those."""
    both = len(shared(a, b))
    alone = [sum(not r.reason for r in held) - both for held in (a, b)]
    return [
        f"{n:,} runs are only in the {which} file" for n, which in zip(alone, ("first", "second"), strict=True) if n
    ]


def changed(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """A line for each setting that is not the same in the runs that are compared."""
    found: dict[str, int] = {}
    for first, second in shared(a, b):
        for name in sorted({*first.settings, *second.settings}):
            one, two = first.settings.get(name, "none"), second.settings.get(name, "none")
            if one != two:
                said = f"{name} {one} in the first file and {two} in the second"
                found[said] = found.get(said, 0) + 1
    return [f"other settings in {n:,} runs: {said}" for said, n in found.items()]


def unequal(a: Sequence[Record], b: Sequence[Record], names: Sequence[str]) -> list[str]:
    """A line for each run in which one of these counts is not the same, and for what only one file has.

    Raises: ConfigError (UQL402) where a name is none of `COUNTS`.
    """
    if unknown := sorted({*names} - {*COUNTS}):
        raise ConfigError(f"--same: no count {unknown[0]!r}", code="UQL402", help=f"counts: {', '.join(COUNTS)}")
    found = unshared(a, b) if names else []
    for first, second in shared(a, b):
        moved = [
            f"{name} {getattr(first, name):,}, then {getattr(second, name):,}"
            for name in names
            if getattr(first, name) != getattr(second, name)
        ]
        if moved:
            found.append(f"{', '.join(second.place[:5])}, seed {second.seed}: {', '.join(moved)}")
    return found


def elsewhere(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    """A line for each library, and for Python and the machine, that is another one in the second file: numbers are rounded otherwise there,
    and a sample has other rows."""
    found = set()
    for first, second in shared(a, b):
        for name in sorted({*first.versions, *second.versions} - {"uql", "source"}):
            one, two = first.versions.get(name, "none"), second.versions.get(name, "none")
            found |= {f"{name}: {one}, then {two}"} if one != two else set()
    return sorted(found)


def table(found: Sequence[Compared], notes: Sequence[str] = ()) -> Table:
    """Before, after and change of each measure and of the costs."""
    rows = []
    for each in found:
        for name in (*each.measures, *COST):
            if (
                name not in each.before
                or name not in each.after
                or (name not in each.measures and not each.before[name] and not each.after[name])
            ):
                continue
            first, second = each.before[name], each.after[name]
            change = f"{second - first:+.4f}" if name in each.measures else f"{second / first:.2f}x" if first else "new"
            digits = 2 if name in ("calls", "tokens") else 4
            rows.append((each.name, name, number(first, digits), number(second, digits), change, str(each.runs)))
    same = sum(each.same_answers for each in found)
    runs = sum(each.runs for each in found)
    lower = sorted(LOWER_IS_BETTER & {measure for each in found for measure in each.measures})
    said = [f"{same:,} of {runs:,} shared runs gave the same answer", *notes]
    said += [f"{', '.join(lower)}: lower is better"] if lower else []
    return Table("Comparison", ("what", "number", "before", "after", "change", "runs"), tuple(rows), tuple(said))


def failures(found: Sequence[Compared], condition: Condition) -> list[str]:
    """A line for each part that fails the condition.

    Raises: ConfigError (UQL402) where it names a number that none of the runs has: it could never fail.
    """
    known = sorted({name for each in found for name in (*each.before, *each.after)})
    unknown = condition.names - {name.casefold() for name in known}
    if unknown:
        raise ConfigError(
            f"--fail-if: no run has a number {min(unknown)!r}", code="UQL402", help=f"numbers: {', '.join(known)}"
        )
    return [
        f"{each.name}: {' and '.join(said)}" for each in found if (said := condition.failing(each.before, each.after))
    ]
