"""Answers with their truth beside them: `make demo`, or `python -m uql.benchmarks.demo`.

13,083 questions that customers asked a bank (banking77, CC BY 4.0; datasets/banking77/CREDIT.md), and 150 drawn pictures. Two steps ask
a real local model; the others ask the labels in place of a model that makes no mistakes, and say so. The labels stand in a table that
no query reads: they are looked at afterwards, to print the truth beside each answer. What it prints is what happened; where the model
cannot be had it says so, and the exit code is 3.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uql
from uql.base.settings import Settings
from uql.benchmarks.datasets.__main__ import oracle_text
from uql.benchmarks.datasets.examples import BANKING77, Example, pictures
from uql.command import outcome
from uql.llm.providers import open_provider
from uql.show import render
from uql.show.progress import Progress

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

# What the 77 intents are about, the first pattern that fits deciding.
AREAS = (
    ("top-ups", "top_up|topping_up"),
    ("transfers and bank accounts", "transfer|beneficiary|receiving_money|direct_debit"),
    ("cash and cash machines", "cash|atm"),
    ("exchange and currencies", "exchange|currenc|country_support"),
    ("identity and personal details", "verify|identity|age_limit|personal_details|passcode|terminate|phone"),
    ("card payments, charges, refunds", "card_payment|[Rr]efund|charge|transaction"),
    ("cards", "card|pin|contactless|apple_pay|visa"),
)
_WHEN = " ".join(f"WHEN regexp_matches(intent, '{pattern}') THEN '{name}'" for name, pattern in AREAS)
AREA = f"CASE {_WHEN} END"
TOPPING_UP = "the question is about topping up"
TOPIC = "the topic of the question"
RED_CUBE = "a red cube is in the picture"


@dataclass(frozen=True, slots=True)
class Step:
    """One query of the demo, and what the labels say of its answer.

    Attributes:
        model: "local"; or "questions" or "pictures", whose labels stand for a model.
        rows: that a full scan would ask.
    """

    title: str
    query: str
    truth: Callable[[Connection, Result], list[str]]
    model: str
    rows: int


def rows(con: Connection, sql: str) -> list[tuple[object, ...]]:
    """The rows of a plain SQL text."""
    return list(con.sql(sql).fetchall())


def true_count(sql: str) -> Callable[[Connection, Result], list[str]]:
    """The count by the labels, and whether the interval holds it.

    Args:
        sql: that counts over the labels.
    """

    def check(con: Connection, result: Result) -> list[str]:
        (truth,) = (int(str(n)) for (n,) in rows(con, sql))
        estimate = result.estimates["n"]
        assert not isinstance(estimate, list)
        low, high = estimate.low, estimate.high
        inside = low is not None and high is not None and low <= truth <= high
        where = "inside the interval" if inside else "outside the interval"
        return [
            f"answer  {render.format_estimate(estimate)}, interval at {100 * estimate.confidence:g} %",
            f"truth   {truth:,} by the labels: {where}",
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
    """The size of each group by the labels, and how many of the intervals hold it."""
    sizes = {
        str(area): int(str(n)) for area, n in rows(con, f"SELECT {AREA} AS area, COUNT(*) FROM labels GROUP BY area")
    }
    groups = result.estimates["n"]
    assert isinstance(groups, list)
    found = {str(name): estimate for name, estimate in zip(result.arrow().column(0).to_pylist(), groups, strict=True)}
    inside = sum(
        e.low is not None and e.high is not None and e.low <= sizes.get(n, 0) <= e.high for n, e in found.items()
    )
    return [
        f"answer  {len(found)} groups",
        f"truth   by the labels: {inside} of {len(found)} inside their intervals",
        *(f"        {n:>6,}  {area}" for area, n in sorted(sizes.items(), key=lambda one: -one[1])),
    ]


STEPS = (
    Step(
        "A common condition, counted to ±10 %",
        f"""SELECT COUNT(*) AS n
FROM questions
WHERE "{TOPPING_UP}"
WITH (error = 0.1)""",
        true_count(f"SELECT COUNT(*) FROM labels WHERE regexp_matches(intent, '{dict(AREAS)['top-ups']}')"),
        "questions",
        13_083,
    ),
    Step(
        "Ten rows that match, found without asking all",
        """SELECT id, text
FROM questions
WHERE "the question is about Apple Pay or Google Pay"
LIMIT 10
WITH (budget = 64)""",
        true_rows("apple_pay_or_google_pay"),
        "local",
        13_083,
    ),
    Step(
        "Groups without predefined labels",
        f"""SELECT topic, COUNT(*) AS n
FROM questions
GROUP BY "{TOPIC}" AS topic
ORDER BY n DESC
WITH (budget = 256)""",
        true_areas,
        "questions",
        13_083,
    ),
    Step(
        "Pictures",
        f"""SELECT COUNT(*) AS n
FROM pictures
WHERE "{RED_CUBE}"
WITH (budget = 64)""",
        true_count("SELECT COUNT(*) FROM picture_labels WHERE red_cube"),
        "pictures",
        150,
    ),
)
LOCAL_MODEL = "local"
LOCAL = "a model of 1.5 billion parameters on this machine"
QUESTION = "Which intent has the most questions, and how many?"
ANSWER = "SELECT intent, COUNT(*) FROM labels GROUP BY intent ORDER BY 2 DESC LIMIT 1"


def run(ledger: str) -> int:
    """Runs all steps and prints each as soon as it is done."""
    start = time.perf_counter()
    open_provider(LOCAL_MODEL, Settings())  # fails at once where the model is not there
    with tempfile.TemporaryDirectory() as name, uql.connect(ledger=ledger) as con:
        folder = Path(name)
        topping = f"regexp_matches(intent, '{dict(AREAS)['top-ups']}')"
        bank = Example(
            "questions",
            "",
            BANKING77 / "data.parquet",
            BANKING77 / "labels.parquet",
            answers={TOPPING_UP: topping, TOPIC: AREA},
        )
        models = {"local": LOCAL_MODEL}
        for made in (bank, pictures(folder)):
            file = folder / f"{made.table}.toml"
            file.write_text(oracle_text(made, made.table), encoding="utf-8")
            models[made.table] = f"oracle:{file}"
            labels = "labels" if made is bank else "picture_labels"
            for table, data in ((made.table, made.data), (labels, made.labels)):
                con.sql(f"CREATE TABLE {table} AS FROM read_parquet('{data.as_posix()}')")
        (count,) = rows(con, "SELECT COUNT(*) FROM questions")[0]
        print(f"{count:,} questions that customers asked a bank (banking77, PolyAI, CC BY 4.0)\n", flush=True)
        for number, step in enumerate(STEPS, 1):
            _told(con, number, step, models[step.model])
        _asked(len(STEPS) + 1, ledger)
    print(f"{len(STEPS) + 1} answers in {time.perf_counter() - start:.0f} s")
    return 0


def _told(con: Connection, number: int, step: Step, model: str) -> None:
    """One step: the query, its answer, the truth, and what it took beside asking every row."""
    by = LOCAL if step.model == "local" else "the labels, in place of a model"
    print(f"{number}. {step.title}\n\n{step.query}\n-- asks {by}\n", flush=True)
    with Progress().of(con.on_event):
        result = con.uql(step.query.replace("WITH (", f"WITH (model = '{model}', "))
        data = result.arrow(intervals=False)
    print(render.table(data, types=result.types, estimates=result.estimates))
    cost = result.cost
    share = step.rows * (cost.input_tokens + cost.output_tokens) / max(1, cost.calls)
    whole = f"        {cost.calls:,} calls; each row asked: {step.rows:,} calls, about {share:,.0f} tokens"
    for line in (*step.truth(con, result), whole, *(f"        {line}" for line in render.footer(result.run()))):
        print(line)
    print(flush=True)


def _asked(number: int, ledger: str) -> None:
    """A question in words over a plain table, by the local model."""
    print(f"{number}. A question in words\n\n{QUESTION}\n-- asks {LOCAL}\n", flush=True)
    with uql.connect(model=LOCAL_MODEL, ledger=ledger) as con:
        con.sql(f"CREATE TABLE labels AS FROM read_parquet('{(BANKING77 / 'labels.parquet').as_posix()}')")
        answer = con.ask(QUESTION)
        print(f"{answer.uql}\n\nanswer  {answer}\n        {answer.cost.calls} calls")
        print(f"truth   {', '.join(map(str, rows(con, ANSWER)[0]))}\n", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ledger", default=":memory:", help="a file of answers to keep; by default each run asks anew")
    arguments = parser.parse_args(argv)
    return outcome.run(lambda: run(arguments.ledger))


if __name__ == "__main__":
    sys.exit(main())
