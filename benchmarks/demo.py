"""Real questions of real text with a real local model: `make demo`, or `python -m uql.benchmarks.demo`.

Three queries over 13,083 questions that customers asked a bank (banking77, CC BY 4.0; datasets/banking77/CREDIT.md).
The labels stand in a table that no query reads: they are looked at afterwards, to print the truth beside each answer.
What it prints is what happened; where the model cannot be had it says so, and the exit code is 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uql.command import outcome
from uql.show import render
from uql.show.progress import Progress

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

DATA = Path(__file__).parent / "datasets" / "banking77"

# What the 77 intents are about, the first pattern that fits deciding: a yardstick for the groups that the model finds.
AREAS = (
    ("top-ups", "top_up|topping_up"),
    ("transfers and bank accounts", "transfer|beneficiary|receiving_money|direct_debit"),
    ("cash and cash machines", "cash|atm"),
    ("exchange and currencies", "exchange|currenc|country_support"),
    ("identity and personal details", "verify|identity|age_limit|personal_details|passcode|terminate|phone"),
    ("card payments, charges, refunds", "card_payment|[Rr]efund|charge|transaction"),
    ("cards", "card|pin|contactless|apple_pay|visa"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One query of the demo, and what the labels say of its answer."""

    title: str
    query: str
    truth: Callable[[Connection, Result], list[str]]


def rows(con: Connection, sql: str) -> list[tuple[object, ...]]:
    """The rows of a plain SQL text."""
    return list(con.sql(sql).fetchall())


def true_count(area: str) -> Callable[[Connection, Result], list[str]]:
    """How many rows have an intent of the area, and whether the interval holds that."""
    pattern = dict(AREAS)[area]

    def check(con: Connection, result: Result) -> list[str]:
        sql = f"SELECT COUNT(*) FROM labels WHERE regexp_matches(intent, '{pattern}')"
        (truth,) = (int(str(n)) for (n,) in rows(con, sql))
        estimate = result.estimates["n"]
        assert not isinstance(estimate, list)
        low, high = estimate.low, estimate.high
        inside = low is not None and high is not None and low <= truth <= high
        where = "inside the interval" if inside else "outside the interval"
        return [
            f"answer  {render.format_estimate(estimate)}, interval at {100 * estimate.confidence:g} %",
            f"truth   {truth:,} by the labels (intents {pattern}): {where}",
        ]

    return check


def true_rows(intent: str) -> Callable[[Connection, Result], list[str]]:
    """How many of the rows found have the intent."""

    def check(con: Connection, result: Result) -> list[str]:
        found = [row[0] for row in result.fetchall()]
        labels = {row[0]: row[1] for row in rows(con, "SELECT id, intent FROM labels")}
        wrong = [f"{labels[i]} (id {i})" for i in found if labels[i] != intent]
        (total,) = rows(con, f"SELECT COUNT(*) FROM labels WHERE intent = '{intent}'")[0]
        lines = [f"answer  {len(found)} rows", f"truth   {len(found) - len(wrong)} of them have the intent {intent}"]
        lines[-1] += f", as {total} of all rows do"
        return [*lines, *([f"        the others: {', '.join(wrong)}"] if wrong else [])]

    return check


def true_areas(con: Connection, result: Result) -> list[str]:
    """The areas of the labels by size: the model names groups of its own, so the two lists are read side by side."""
    fits = " ".join(f"WHEN regexp_matches(intent, '{pattern}') THEN '{name}'" for name, pattern in AREAS)
    areas = rows(con, f"SELECT CASE {fits} END AS area, COUNT(*) FROM labels GROUP BY area ORDER BY 2 DESC")
    groups = result.estimates["n"]
    assert isinstance(groups, list)
    total = sum(estimate.value or 0 for estimate in groups)
    return [
        f"answer  {len(groups)} groups, {total:,.0f} rows in all",
        f"truth   {sum(int(str(n)) for _, n in areas):,} rows; the labels' 77 intents, put into {len(areas)} areas:",
        *(f"        {n!s:>6}  {area}" for area, n in areas),
    ]


STEPS = (
    Step(
        "Ten rows that match, found without asking all",
        """SELECT id, text
FROM questions
WHERE "the question is about Apple Pay or Google Pay"
LIMIT 10
WITH (budget = 64, model = 'local')""",
        true_rows("apple_pay_or_google_pay"),
    ),
    Step(
        "A condition, counted",
        """SELECT COUNT(*) AS n
FROM questions
WHERE "the question is about topping up"
WITH (budget = 96, model = 'local')""",
        true_count("top-ups"),
    ),
    Step(
        "Groups that nobody named beforehand",
        """SELECT topic, COUNT(*) AS n
FROM questions
GROUP BY "the topic of the question" AS topic
ORDER BY n DESC
WITH (budget = 96, model = 'local')""",
        true_areas,
    ),
)


def run(ledger: str) -> int:
    """Runs all steps and prints each as soon as it is done."""
    import uql

    start = time.perf_counter()
    with uql.connect(ledger=ledger) as con:
        for name, file in (("questions", "data"), ("labels", "labels")):
            con.sql(f"CREATE TABLE {name} AS FROM read_parquet('{(DATA / file).as_posix()}.parquet')")
        (count,) = rows(con, "SELECT COUNT(*) FROM questions")[0]
        print(f"{count:,} questions that customers asked a bank (banking77, PolyAI, CC BY 4.0)\n", flush=True)
        for number, step in enumerate(STEPS, 1):
            print(f"{number}. {step.title}\n\n{step.query}\n", flush=True)
            with Progress().of(con.on_event):
                result = con.uql(step.query)
                data = result.arrow(intervals=False)
            print(render.table(data, types=result.types, estimates=result.estimates))
            for line in (*step.truth(con, result), *(f"        {line}" for line in render.footer(result.run()))):
                print(line)
            print(flush=True)
    print(f"{len(STEPS)} queries in {time.perf_counter() - start:.0f} s")
    return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ledger", default=":memory:", help="a file of answers to keep; by default each run asks anew")
    arguments = parser.parse_args(argv)
    return outcome.run(lambda: run(arguments.ledger))


if __name__ == "__main__":
    sys.exit(main())
