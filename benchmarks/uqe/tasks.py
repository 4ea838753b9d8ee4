"""What the UQE suite runs: a task for each table, system, question and model, and what one run of it measures."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from uql.benchmarks.runner.records import Measured
from uql.benchmarks.runner.suite import SIMULATED_SEEDS, Choice, Task, is_simulated
from uql.benchmarks.uqe import paper
from uql.benchmarks.uqe.data import CONDITIONS, GROUPINGS, Condition, Grouping, World, world
from uql.benchmarks.uqe.emd import emd
from uql.benchmarks.uqe.model import Model
from uql.benchmarks.uqe.systems import algorithm1, algorithm2, count_each, engine, long_context, mips, udf, uniform

COUNT_CALLS, FIND_CALLS = 128, 256  # the paper's budgets
BUDGETS = (32, 64, 128, 256)
LOCAL_CALLS = 24  # of a model that answers some rows a minute
OURS: dict[str, dict[str, Any]] = {"uql": {}, "uql-no-examples": {"examples": False}}  # system → settings

Count = Callable[[Model, Condition, int, np.random.Generator], float]
Find = Callable[[Model, Condition, int, np.random.Generator], list[int]]
Group = Callable[[Model, Grouping, int, np.random.Generator], dict[str, float]]

COUNTERS: dict[str, Count] = {
    "uniform": uniform.count,
    "udf": udf.count,
    "algorithm-1": algorithm1.count,
    "count-each": count_each.count,
    "long-context": long_context.count,
}
FINDERS: dict[str, Find] = {
    "uniform": uniform.find,
    "udf": udf.find,
    "mips": mips.find,
    "algorithm-2": algorithm2.find,
    "long-context": long_context.find,
}
GROUPERS: dict[str, Group] = {
    "uniform": uniform.group,
    "udf": udf.group,
    "algorithm-1": algorithm1.group,
    "long-context": long_context.group,
}
SYSTEMS = tuple(dict.fromkeys([*OURS, *COUNTERS, *FINDERS, *GROUPERS]))
TABLES = ("table 1", "table 2", "table 3", "table 4", "table 5", "figure 4", "figure 5", "budgets")
NO_GROUPS_OF_A_PROMPT = "groups and their sizes are not read from a model's reply to one long prompt"
NO_SUBFLOWS = "the kinds within one request are labelled for 34 and 81 rows only"


def tasks(choice: Choice) -> Iterator[Task]:
    """Every task; table 4 needs no model, table 5 and figure 4 are read from the runs of tables 1 and 2."""
    models = choice.models or ("labels", "labels-5", "labels-10", "local")
    for condition in CONDITIONS:
        if choice.wants("uql", condition.name):
            yield Task(
                "table 4",
                "uql",
                condition.name,
                "none",
                partial(shares, condition, choice),
                _capped(choice),
                seeds=1,
                group=condition.source,
            )
    for model in models:
        yield from _counts(choice, model)
        yield from _finds(choice, model)
        yield from _groups(choice, model)
        if model == "labels":
            yield from _curves(choice)


def _budget(model: str, calls: int) -> int:
    return calls if is_simulated(model) else LOCAL_CALLS


def _seeds(model: str) -> int:
    return SIMULATED_SEEDS if is_simulated(model) else 1


def _capped(choice: Choice) -> dict[str, int]:
    return {} if choice.rows is None else {"rows": choice.rows}


def _settings(choice: Choice, budget: int) -> dict[str, int]:
    return {"budget": budget, **_capped(choice)}


def lacking(system: str, condition: Condition, model: str) -> str:
    """Why a system cannot be run on a question; empty where it can."""
    if condition.source == "clevr" and system == "mips":
        return mips.NO_EMBEDDINGS
    if system == "count-each" and condition.name not in count_each.COUNTED:
        return "counts objects of pictures only"
    if condition.source == "clevr" and not is_simulated(model):
        return f"{model} reads no pictures" if model.startswith("local") else ""
    return ""


def _chosen(choice: Choice, systems: Sequence[str], model: str) -> Iterator[tuple[str, Condition]]:
    for condition in CONDITIONS:
        for system in systems:
            wanted = choice.wants(system, condition.name)
            if wanted and not (system == "count-each" and condition.source != "clevr"):
                yield system, condition


def _counts(choice: Choice, model: str) -> Iterator[Task]:
    budget = _budget(model, COUNT_CALLS)
    for system, condition in _chosen(choice, [*OURS, *COUNTERS], model):
        run = (
            partial(count_with_engine, system, condition, model, choice, budget)
            if system in OURS
            else partial(count_with, system, condition, model, choice, budget)
        )
        reason = lacking(system, condition, model)
        yield Task(
            "table 1",
            system,
            condition.name,
            model,
            None if reason else run,
            _settings(choice, budget),
            _seeds(model),
            budget,
            worst=1.0,
            reason=reason,
            group=condition.source,
        )


def _finds(choice: Choice, model: str) -> Iterator[Task]:
    budget = _budget(model, FIND_CALLS)
    for system, condition in _chosen(choice, [*OURS, *FINDERS], model):
        run = (
            partial(find_with_engine, system, condition, model, choice, budget)
            if system in OURS
            else partial(find_with, system, condition, model, choice, budget)
        )
        reason = lacking(system, condition, model)
        seeds = 1 if system == "mips" else _seeds(model)  # no chance in it
        yield Task(
            "table 2",
            system,
            condition.name,
            model,
            None if reason else run,
            _settings(choice, budget),
            seeds,
            0 if system == "mips" else budget,
            reason=reason,
            group=condition.source,
        )


def _groups(choice: Choice, model: str) -> Iterator[Task]:
    budget = _budget(model, COUNT_CALLS)
    for grouping in GROUPINGS:
        for system in ("uql", *GROUPERS):
            if not choice.wants(system, grouping.name):
                continue
            run = (
                partial(group_with_engine, grouping, model, choice, budget)
                if system == "uql"
                else partial(group_with, system, grouping, model, choice, budget)
            )
            reason = "" if is_simulated(model) or system != "long-context" else NO_GROUPS_OF_A_PROMPT
            yield Task(
                "table 3",
                system,
                grouping.name,
                model,
                None if reason else run,
                _settings(choice, budget),
                _seeds(model),
                budget + uniform.TAXONOMY_ROWS,
                worst=1.0,
                reason=reason,
                group=grouping.source,
            )
    for name in ("abcd_account_access_type", "abcd_single_item_type"):
        if choice.wants("uql", name):
            yield Task("table 3", "uql", name, model, None, seeds=1, reason=NO_SUBFLOWS)


def _curves(choice: Choice) -> Iterator[Task]:
    for system, condition in _chosen(choice, ["uql", "uniform", "algorithm-2"], "labels"):
        if condition.name not in paper.FIGURE_5:
            continue
        reason = lacking(system, condition, "labels")
        run = None if reason else partial(curve, system, condition, choice)
        calls = sum(BUDGETS) if system == "uql" else FIND_CALLS
        yield Task(
            "figure 5",
            system,
            condition.name,
            "labels",
            run,
            _settings(choice, FIND_CALLS),
            SIMULATED_SEEDS,
            calls,
            reason=reason,
            group=condition.source,
        )
    imdb = CONDITIONS[0]
    for budget in BUDGETS:
        for system, count, find in (("uql", None, None), ("algorithms", algorithm1.count, algorithm2.find)):
            if not choice.wants("uql" if system == "uql" else "algorithm-1", imdb.name):
                continue
            yield Task(
                "budgets",
                system,
                imdb.name,
                "labels",
                partial(at_budget, imdb, choice, budget, count, find),
                _settings(choice, budget),
                SIMULATED_SEEDS,
                2 * budget,
                group=imdb.source,
            )


# ------------------------------------------------------------------------------------------------------------ one run
def shares(condition: Condition, choice: Choice, seed: int = 0) -> Measured:
    """Table 4: the share of the rows that meet a condition, rows, duplicates and rows left out."""
    held = world(condition.source, choice)
    truth = held.truth(condition)
    numbers = {"share": float(truth.mean()), "rows": held.n, "duplicates": held.duplicates, "dropped": held.dropped}
    return Measured(int(truth.sum()), None, "", numbers=numbers)


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def relative_error(estimate: float, truth: int) -> float:
    """|estimate − truth| ÷ truth, or ÷ 1 where nothing matches; 1 where there is no estimate."""
    return abs(estimate - truth) / max(truth, 1) if np.isfinite(estimate) else 1.0


def count_with(system: str, condition: Condition, model: str, choice: Choice, budget: int, seed: int) -> Measured:
    held = world(condition.source, choice)
    asked, truth, began = Model(held, model, choice), int(held.truth(condition).sum()), time.perf_counter()
    estimate = COUNTERS[system](asked, condition, budget, _rng(seed))
    seconds, error, numbers = time.perf_counter() - began, relative_error(estimate, truth), {"share": estimate / held.n}
    return Measured.at_cost(asked.cost, estimate, error, "relative error", seconds, numbers)


def count_with_engine(
    system: str, condition: Condition, model: str, choice: Choice, budget: int, seed: int
) -> Measured:
    held = world(condition.source, choice)
    query = condition.query("count")
    result, seconds, busy = engine.ask(condition.source, model, choice, query, seed=seed, budget=budget, **OURS[system])
    again = _again(condition, model, choice, query, seed=seed, budget=budget, **OURS[system])
    truth, interval = int(held.truth(condition).sum()), result.estimates["n"]
    assert not isinstance(interval, list)
    estimate = math.nan if interval.value is None else float(interval.value)
    low, high = interval.low, interval.high
    numbers = {"share": estimate / held.n, "processor seconds": busy, **again}
    if low is not None and high is not None:
        numbers |= {"covered": float(low <= truth <= high), "width": (high - low) / max(truth, 1)}
    error = relative_error(estimate, truth)
    found = Measured.at_cost(result.cost, estimate, error, "relative error", seconds, numbers)
    return found if interval.value is not None else replace(found, problem="no row that was asked has an answer")


def _again(
    condition: Condition, model: str, choice: Choice, query: str, *, seed: int, **settings: Any
) -> dict[str, float]:
    """The processor's seconds of the same query once more, of the first seed alone, which is enough for table 5."""
    if seed:
        return {}
    return {"seconds again": engine.seconds_again(condition.source, model, choice, query, seed=seed, **settings)}


def f1_of(found: Sequence[int], truth: Sequence[bool], limit: int) -> tuple[float, float, float]:
    """F1, precision and recall as in the paper's table 2: recall is of as many rows as may be returned.

    >>> f1_of([0, 1], [True, True, True, False], 2)
    (1.0, 1.0, 1.0)
    """
    right = sum(bool(truth[row]) for row in found)
    precision = right / len(found) if found else 0.0
    wanted = min(limit, sum(map(bool, truth)))
    if not wanted:  # nothing matches: to find nothing is right
        return (0.0, 0.0, 0.0) if found else (1.0, 1.0, 1.0)
    recall = right / wanted
    return (2 * precision * recall / (precision + recall) if right else 0.0), precision, recall


def find_with(system: str, condition: Condition, model: str, choice: Choice, budget: int, seed: int) -> Measured:
    held = world(condition.source, choice)
    asked, began = Model(held, model, choice), time.perf_counter()
    found = FINDERS[system](asked, condition, budget, _rng(seed))
    seconds = time.perf_counter() - began
    f1, precision, recall = f1_of(found, held.truth(condition).tolist(), budget)
    numbers = {"precision": precision, "recall": recall}
    return Measured.at_cost(asked.cost, sorted(found), f1, "F1", seconds, numbers)


def find_with_engine(system: str, condition: Condition, model: str, choice: Choice, budget: int, seed: int) -> Measured:
    held = world(condition.source, choice)
    query = condition.query("find").replace(f"LIMIT {FIND_CALLS}", f"LIMIT {budget}")
    result, seconds, busy = engine.ask(condition.source, model, choice, query, seed=seed, budget=budget, **OURS[system])
    place = {i: row for row, i in enumerate(held.ids)}
    found = [place[row[0]] for row in result.fetchall()]
    f1, precision, recall = f1_of(found, held.truth(condition).tolist(), budget)
    numbers = {"precision": precision, "recall": recall, "processor seconds": busy}
    numbers |= _again(condition, model, choice, query, seed=seed, budget=budget, **OURS[system])
    return Measured.at_cost(result.cost, sorted(found), f1, "F1", seconds, numbers)


def group_with(system: str, grouping: Grouping, model: str, choice: Choice, budget: int, seed: int) -> Measured:
    held = world(grouping.source, choice)
    asked, began = Model(held, model, choice), time.perf_counter()
    found = GROUPERS[system](asked, grouping, budget, _rng(seed))
    seconds, error = time.perf_counter() - began, emd(found, _true_groups(held, grouping))
    return Measured.at_cost(asked.cost, found, error, "EMD", seconds, {"groups": len(found)})


def group_with_engine(grouping: Grouping, model: str, choice: Choice, budget: int, seed: int) -> Measured:
    held = world(grouping.source, choice)
    result, seconds, _ = engine.ask(grouping.source, model, choice, grouping.query, seed=seed, budget=budget)
    found = {str(kind): float(n) for kind, n in result.fetchall() if kind is not None and n is not None}
    truth = _true_groups(held, grouping)
    numbers = {"groups": float(len(found)), **{f"{paper.FOUND}{kind}": n for kind, n in found.items()}}
    numbers |= {f"{paper.TRUE}{kind}": n for kind, n in truth.items()}
    return Measured.at_cost(result.cost, found, emd(found, truth), "EMD", seconds, numbers)


def _true_groups(held: World, grouping: Grouping) -> dict[str, float]:
    return {kind: float(n) for kind, n in Counter(held.kinds(grouping)).items()}


def curve(system: str, condition: Condition, choice: Choice, seed: int) -> Measured:
    """Figure 5: rows found with 32, 64, 128 and 256 calls, as a share of the calls and of all that match (at most 256)."""
    held = world(condition.source, choice)
    truth, runs = held.truth(condition), []
    numbers: dict[str, float] = {}
    wanted = min(FIND_CALLS, int(truth.sum()))
    began = time.perf_counter()
    if system == "uql":
        for budget in BUDGETS:
            found = find_with_engine("uql", condition, "labels", choice, budget, seed)
            runs.append(found)
            hits = round(found.numbers["precision"] * len(found.answer))
            numbers |= {f"hits@{budget}": hits / budget, f"recall@{budget}": hits / wanted}
    else:
        asked = Model(held, "labels", choice)
        search = (
            algorithm2.search(asked, condition, FIND_CALLS, _rng(seed))
            if system == "algorithm-2"
            else [(int(row), None) for row in _rng(seed).permutation(held.n)[:FIND_CALLS]]
        )
        runs.append(Measured.at_cost(replace(asked.cost, calls=len(search)), None, None, "", 0.0, {}))
        for budget in BUDGETS:
            hits = int(truth[[row for row, _ in search[:budget]]].sum())
            numbers |= {f"hits@{budget}": hits / budget, f"recall@{budget}": hits / wanted}
    seconds = time.perf_counter() - began
    return replace(
        _sum(runs),
        answer=numbers,
        quality=numbers[f"recall@{FIND_CALLS}"],
        measure="recall",
        numbers=numbers,
        seconds=seconds,
    )


def _sum(runs: Sequence[Measured]) -> Measured:
    """What several runs cost together."""
    usd = [run.usd for run in runs]
    names = ("calls", "requests", "cached", "input_tokens", "output_tokens", "seconds")
    costs = {name: sum(getattr(run, name) for run in runs) for name in names}
    return Measured(usd=None if None in usd else sum(u or 0.0 for u in usd), **costs)


def at_budget(
    condition: Condition, choice: Choice, budget: int, count: Count | None, find: Find | None, seed: int
) -> Measured:
    """The tables 4 and 5 of the paper's final version: F1 of a search and relative error of a count with B calls each."""
    if count is None or find is None:
        counted = count_with_engine("uql", condition, "labels", choice, budget, seed)
        found = find_with_engine("uql", condition, "labels", choice, budget, seed)
    else:
        counted = count_with("algorithm-1", condition, "labels", choice, budget, seed)
        found = find_with("algorithm-2", condition, "labels", choice, budget, seed)
    numbers = {"relative error": counted.quality or 0.0, "count seconds": counted.seconds}
    answer = [counted.answer, found.answer]
    return replace(_sum([counted, found]), answer=answer, quality=found.quality, measure="F1", numbers=numbers)
