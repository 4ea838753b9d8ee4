"""Whether the language can say it: the plans written by hand, run with a reader of the labels, against the references.

`python -m uql.benchmarks.nl plans [suite …]`
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import uql
from uql.base.errors import UQLError
from uql.benchmarks.nl import plans, worlds
from uql.benchmarks.nl.references import Reference, equal, references, within_labels

SUITES = ("rotowire", "countries_flags", "artwork")


@dataclass(frozen=True, slots=True)
class Row:
    """One plan, run once.

    Attributes:
        question, words: its id and text.
        modalities: table, text, image.
        tables: base tables that the plan reads.
        plot: it draws.
        basis: what the answer was compared with (`references.within_labels`).
        right: equal to that; None: nobody can be right, for the label that decides is not there.
        published: equal to the published answer, which rests on labels that are not there too.
        calls, nodes, seconds: of the run.
        problem: why it failed.
    """

    question: str
    words: str
    modalities: tuple[str, ...]
    tables: int
    plot: bool
    basis: str
    right: bool | None
    published: bool
    calls: int
    nodes: int
    seconds: float
    problem: str = ""


def run(suite: str, shared: Path, *, only: Collection[str] | None = None) -> list[Row]:
    """Runs the plans of a suite, each with a reader of its own questions and an empty ledger.

    Args:
        suite: of SUITES.
        shared: the data folder.
        only: ids of questions; None: all.
    """
    known = {r.id: r for r in references(shared, suite)}
    judged = within_labels(shared, suite, list(known.values()))
    wanted = [fixture for fixture in plans.read(suite) if only is None or fixture.id in only]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        open_worlds: dict[str, uql.Connection] = {}
        for fixture in wanted:
            place = worlds.place_of(suite, fixture.id)
            if place not in open_worlds:
                open_worlds[place] = _connection(suite, shared, Path(folder), place)
            rows.append(_row(fixture, open_worlds[place], known[fixture.id], *judged[fixture.id]))
        for con in open_worlds.values():
            con.close()
    return rows


def _connection(suite: str, shared: Path, folder: Path, place: str) -> uql.Connection:
    work = folder / place
    work.mkdir()
    world = worlds.world(suite, place, shared, work)
    con = uql.connect(model=f"oracle:{world.oracle}", ledger=":memory:", budget="all")
    world.fill(con)
    return con


def _row(fixture: plans.Fixture, con: uql.Connection, published: Reference, reference: Reference, basis: str) -> Row:
    began = time.perf_counter()
    right, as_published, calls, problem = False, False, 0, ""
    try:
        done = plans.run(fixture, con)
        calls = done.calls
        drawn = not fixture.plots or bool(done.plots) or not any(t.num_rows for t in done.tables)
        right = drawn and equal(done.tables, reference)
        as_published = drawn and equal(done.tables, published)
    except UQLError as error:
        problem = str(error).splitlines()[0]
    return Row(
        fixture.id,
        fixture.question,
        published.modalities,
        len(plans.base_tables(fixture)),
        fixture.plots,
        basis,
        None if basis == "no label" else right,
        as_published,
        calls,
        len(fixture.plan.nodes),
        time.perf_counter() - began,
        problem,
    )


def report(suite: str, rows: list[Row]) -> str:
    """The table of a suite: how many answers are right, by modality, and which are not."""
    judged = [row for row in rows if row.right is not None]
    right = sum(bool(row.right) for row in judged)
    published = sum(row.published for row in rows)
    lines = [
        f"{suite}: {len(rows)} plans; {right} of {len(judged)} answers equal the reference ({right / max(1, len(judged)):.1%})",
    ]
    if any(row.basis != "published" for row in rows):
        words = "equal the published answers, which rest on labels that are not there too"
        lines.append(f"  {published} of {len(rows)} {words}")
    groups = {
        "tables only": [r for r in judged if set(r.modalities) <= {"table"}],
        "text": [r for r in judged if "text" in r.modalities],
        "images": [r for r in judged if "image" in r.modalities],
        "two tables or more": [r for r in judged if r.tables > 1],
        "plots": [r for r in judged if r.plot],
    }
    for basis in sorted({r.basis for r in rows}):
        groups[f"compared: {basis}"] = [r for r in rows if r.basis == basis and r.right is not None]
    for name, held in groups.items():
        if held:
            calls = sum(r.calls for r in held) / len(held)
            lines.append(
                f"  {name:<42} {sum(bool(r.right) for r in held):>4} of {len(held):<4} {calls:>8,.0f} calls a plan"
            )
    unjudged = [r for r in rows if r.right is None]
    if unjudged:
        lines.append(f"  not judged, the label that decides is not there: {', '.join(r.question for r in unjudged)}")
    lines += [f"  wrong: {r.question} {r.words} {r.problem}" for r in judged if not r.right]
    return "\n".join(lines)
