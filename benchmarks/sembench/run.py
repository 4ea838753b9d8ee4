"""Runs the queries and judges their answers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import uql
from uql.api.result import Result
from uql.base.errors import UQLError
from uql.benchmarks.sembench.scenarios import Query, Scenario
from uql.benchmarks.sembench.scores import adjusted_rand, closeness, f1, spearman


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query, run once. `quality` is between 0 and 1; an answer that could not be had has 0 and its reason in `problem`."""

    query: str
    measure: str
    quality: float
    exact: bool
    calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    problem: str = ""


def judge(query: Query, rows: list[tuple[Any, ...]]) -> float:
    """The quality of an answer's rows."""
    if query.measure == "counts":  # rows of key and number
        held = dict(rows)
        return sum(closeness(held.get(key, 0), n) for key, n in query.truth) / len(query.truth)
    if query.measure == "closeness":
        return closeness(None if not rows or rows[0][0] is None else float(rows[0][0]), float(query.truth[0][0]))
    if query.measure == "spearman":
        return spearman(rows, query.truth)
    if query.measure == "adjusted_rand":  # rows of key and label
        said = dict(rows)
        return adjusted_rand([said.get(key) for key, _ in query.truth], [label for _, label in query.truth])
    return f1(rows, query.truth, query.limit)


def ask(scenario: Scenario, query: Query, model: str | None = None, **settings: Any) -> tuple[Result, uql.Connection]:
    """The result of a query over fresh tables, by its oracle or by another model, with nothing kept from earlier runs."""
    settings = {"ledger": ":memory:", **settings}
    con = uql.connect(model=model or f"oracle:{query.oracle}", **settings)
    scenario.fill(con)
    return con.uql(query.text), con


def run(scenario: Scenario, query: Query, model: str | None = None, **settings: Any) -> Outcome:
    """Runs a query and judges it."""
    start = time.perf_counter()
    result, con = ask(scenario, query, model, **settings)
    with con:
        try:
            rows = result.fetchall()
        except UQLError as error:
            return Outcome(query.name, query.measure, 0.0, False, 0, 0, 0, time.perf_counter() - start, str(error))
        seconds = time.perf_counter() - start
        cost = result.cost
        return Outcome(
            query.name,
            query.measure,
            judge(query, rows),
            result.exact,
            cost.calls,
            cost.input_tokens,
            cost.output_tokens,
            seconds,
        )
