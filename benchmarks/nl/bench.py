"""The suites of questions as `uql bench run NAME` runs them: a task for each system and question."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from uql.benchmarks.nl import ehrxqa, handwritten, plainest, plans, report, routing, systems
from uql.benchmarks.nl.suites import SUITES, Asked
from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task, is_simulated

PLANS, ONE_STATEMENT, ROUTER, PLAINEST = "plans", "one-statement", "ml-router", "plainest"
_FIXTURES = {"rotowire": "rotowire", "countries": "countries_flags", "artwork": "artwork"}  # suite → its file of plans
_FOLDERS = {  # suite → the folder of its data, where it has another name
    "countries": "countries_flags",
    "sembench-mmqa": "sembench_mmqa",
    "ehrxqa": "ehrxqa_templates",
    "mmqa-routing": "mmqa",
    "m2qa": "m2qa_bench",
}
_OWN = {"ehrxqa": [ONE_STATEMENT], "tatqa": [PLAINEST], "finmmr": [PLAINEST]}  # suite → what needs no model that plans
FEW = 12  # questions of the short form


@cache
def _questions(name: str, shared: Path) -> tuple[Asked, ...]:
    return tuple(SUITES[name].questions(shared))


def suite(name: str) -> Suite:
    """A suite of `uql.benchmarks.nl.suites` for the runner. Raises KeyError where there is none."""
    found = SUITES[name]
    own = [PLANS] if name in _FIXTURES else [ROUTER] if found.absent else _OWN.get(name, [])
    return Suite(
        name,
        found.about,
        (*own, *systems.SYSTEMS),
        ("labels",),
        lambda choice: _tasks(name, choice, own),
        lambda records: _tables(name, records),
        needs=(_FOLDERS.get(name, name),),
    )


def _tasks(name: str, choice: Choice, own: Sequence[str]) -> Iterator[Task]:
    models = choice.models or ("labels",)
    for system in own:
        yield from _own(name, system, choice)
    questions = list(_questions(name, choice.data))
    if choice.reduced:
        questions = questions[:: max(1, len(questions) // FEW)]
    for system in systems.SYSTEMS:
        for model in models:
            why = systems.reason(name, system, None if is_simulated(model) else model)
            if not why and systems.takes_router(system):
                why = "needs a router: python -m uql.benchmarks.nl ask --router"
            wanted = [asked for asked in questions if choice.wants(system, asked.id)]
            if why:
                named = [asked.id for asked in wanted] if choice.queries else ["all"] if wanted else []
                yield from (Task("questions", system, query, model, seeds=1, reason=why) for query in named)
                continue
            for asked in wanted:
                yield Task(
                    "questions", system, asked.id, model, _asks(name, system, model, asked, choice.data), seeds=1
                )


def _asks(name: str, system: str, model: str, asked: Asked, shared: Path) -> Callable[[int], Measured]:
    def run(seed: int) -> Measured:
        left = PURSE.settings()
        (row,) = systems.run(name, shared, system=system, model=model, judge=model, only=[asked.id], settings=left)
        if left and 2 * (row.usd or 0.0) > left["max_cost"]:  # the limit may have ended it
            raise PURSE.spent(row.usd)
        numbers = {
            k: float(v)
            for k, v in asdict(row).items()
            if isinstance(v, int | float) and k not in ("calls", "seconds", "usd")
        }
        return Measured(
            row.said, row.right, "right", row.calls, usd=row.usd, seconds=row.seconds, numbers=numbers, text=json.dumps(asdict(row))
        )  # fmt: skip

    return run


def _own(name: str, system: str, choice: Choice) -> Iterator[Task]:
    """What is measured without a model that plans."""
    if system == PLANS:
        fixtures = plans.read(_FIXTURES[name])
        if choice.reduced:
            fixtures = fixtures[:: max(1, len(fixtures) // FEW)]
        for fixture in fixtures:
            if choice.wants(system, fixture.id):
                yield Task(
                    PLANS, system, fixture.id, "labels", _by_hand(_FIXTURES[name], fixture.id, choice.data), seeds=1
                )
    elif choice.wants(system, name):
        count = 20 if choice.reduced else 100
        run = _hospital(choice.data, count) if system == ONE_STATEMENT else _routed(name, choice.data)
        run = _plainest(name, choice.data) if system == PLAINEST else run
        yield Task(system, system, name, "labels", run, seeds=1)


def _by_hand(file: str, question: str, shared: Path) -> Callable[[int], Measured]:
    def run(seed: int) -> Measured:
        (row,) = handwritten.run(file, shared, only=[question])
        quality = None if row.right is None else float(row.right)
        numbers = {"published": float(row.published), "nodes": float(row.nodes)}
        return Measured(
            row.basis, quality, "right", row.calls, seconds=row.seconds, numbers=numbers, problem=row.problem
        )

    return run


def _hospital(shared: Path, count: int) -> Callable[[int], Measured]:
    def run(seed: int) -> Measured:
        with tempfile.TemporaryDirectory() as work:
            rows = ehrxqa.run(shared, Path(work), count=count)
        right = sum(row.right for row in rows) / len(rows)
        return Measured(quality=right, measure="right", calls=sum(row.calls for row in rows), text=ehrxqa.report(rows))

    return run


def _plainest(name: str, shared: Path) -> Callable[[int], Measured]:
    def run(seed: int) -> Measured:
        held = plainest.numbers(plainest.scores(name, shared))
        return Measured(quality=held["all: exact match"], measure="right", numbers=held)

    return run


def _routed(name: str, shared: Path) -> Callable[[int], Measured]:
    def run(seed: int) -> Measured:
        from uql.nl.routers import embedder_of

        found = routing.run(name, shared, embedder_of(None), seed=seed)
        numbers = {"majority": found.majority, "loss": found.loss, "questions": float(found.tried)}
        return Measured(quality=found.network, measure="right", numbers=numbers, text=routing.report([found]))

    return run


def _tables(name: str, records: Sequence[Record]) -> list[Table]:
    made = []
    by_hand = [r for r in records if r.system == PLANS and not r.reason]
    if by_hand:
        judged = [r for r in by_hand if r.quality is not None]
        right = sum(r.quality == 1.0 for r in judged)
        published = sum(r.numbers.get("published", 0.0) for r in by_hand)
        line = (
            str(len(by_hand)),
            f"{right} of {len(judged)}",
            f"{published:.0f}",
            f"{sum(r.calls for r in by_hand):,}",
        )
        wrong = tuple(f"{r.query}: {r.problem or 'another answer'}" for r in judged if r.quality != 1.0)
        made.append(
            Table(
                f"{name}: plans by hand",
                ("plans", "equal the reference", "equal as published", "calls"),
                (line,),
                wrong,
            )
        )
    made += [
        Table(f"{name}: {r.system}", (), (), text=r.text)
        for r in records
        if r.system in (ONE_STATEMENT, ROUTER) and r.text
    ]
    made += [plainest.table(name, r.numbers) for r in records if r.system == PLAINEST and not r.reason]
    rows = [systems.row_of(json.loads(r.text)) for r in records if r.table == "questions" and r.text]
    reasons = {r.reason: [s.system for s in records if s.reason == r.reason] for r in records if r.reason}
    notes = tuple(f"not run, {why}: {', '.join(dict.fromkeys(names))}" for why, names in reasons.items())
    models = {r.model for r in rows}
    text = report.tables(rows, next(iter(models), None)) if rows else "no question was asked"
    if rows or notes or not made:
        made.append(Table(f"{name}: questions", (), (), notes, text))
    return made
