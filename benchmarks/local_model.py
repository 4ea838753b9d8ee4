"""How well the local model answers conditions: AUC, fresh tokens and rows a second, beside the reference numbers.

    python -m uql.benchmarks.local_model [task …]                            the data: $UQL_DATA, default ../shared/data
    python -m uql.benchmarks.local_model --constructs [--rows 40] [name …]   every construct of the language
    python -m uql.benchmarks.local_model --conditions [name …]               WHERE beside rows that nearly meet it

The tasks and shares are those of the measurements that chose the prompts; rows are drawn anew by a seed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uql.base.settings import Settings
from uql.benchmarks import local_conditions, local_constructs
from uql.benchmarks.local_conditions import auc
from uql.llm.gate import Gate
from uql.llm.questions import Cell, Predicate, Row


@dataclass(frozen=True, slots=True)
class Task:
    """A condition over a data set with its truth as SQL over data d and labels l, and what was measured for it."""

    name: str
    data: str
    text: str  # SQL of the text shown
    condition: str
    truth: str
    where: str
    rows: int
    share: float  # of yes among the rows
    reference: float  # AUC
    tokens: int  # fresh tokens a row


TASKS = (
    Task("lost card", "banking77", "d.text", "the customer's card was lost or stolen",
         "l.intent = 'lost_or_stolen_card'", "true", 80, 0.3, 0.94, 34),
    Task("tweet negative", "airline_tweets", "d.text", "the tweet is negative about the airline",
         "l.sentiment = 'negative'", "l.sentiment IS NOT NULL", 60, 0.5, 0.86, 51),
    Task("review positive", "imdb", "d.text", "the review is positive",
         "l.sentiment = 'positive'", "length(d.text) BETWEEN 300 AND 550", 40, 0.5, 0.95, 132),
    Task("article sport", "bbc_news", "d.text[:220]", "the article is about sport", "l.topic = 'sport'", "true", 60, 0.25, 1.00, 68),
)  # fmt: skip


def rows_of(task: Task, folder: Path, seed: int) -> tuple[list[Row], NDArray[np.bool_]]:
    """The rows of a task at its share of yes, and their truth."""
    import duckdb

    sql = f"""
        SELECT {task.text} AS shown, {task.truth} AS truth
        FROM '{folder}/{task.data}/data.parquet' d JOIN '{folder}/{task.data}/labels.parquet' l USING (id)
        WHERE {task.where} ORDER BY hash(CAST(id AS VARCHAR) || '{seed}')"""
    with duckdb.connect() as con:
        found = con.execute(sql).fetchall()
    yes = round(task.rows * task.share)
    chosen = [t for t in found if t[1]][:yes] + [t for t in found if not t[1]][: task.rows - yes]
    chosen.sort(key=lambda t: hash((len(t[0]), t[0][:20].count("e"))))  # mixed, the same way each time
    return [Row((Cell("text", text),)) for text, _ in chosen], np.array([bool(truth) for _, truth in chosen])


async def measure(tasks: list[Task], folder: Path, *, model: str, seed: int) -> None:
    print(
        f"{'condition':16} {'rows':>5} {'AUC':>6} {'reference':>9} {'accuracy':>9} {'tokens/row':>11} {'ref.':>5} {'rows/s':>7}"
    )
    for task in tasks:
        rows, truth = rows_of(task, folder, seed)
        async with Gate.open(Settings(model=model, ledger=":memory:", budget="all")) as gate:
            await gate.ask(Predicate("this is a text"), [Row((Cell("text", "loading"),))])
            warm = gate.cost.input_tokens
            began = time.monotonic()
            answers = await gate.ask(Predicate(task.condition), rows)
            seconds = time.monotonic() - began
            tokens = (gate.cost.input_tokens - warm) / len(rows)
        said = np.array([bool(v) for v in answers.values])
        area = auc(answers.probabilities, truth)
        print(
            f"{task.name:16} {len(rows):5} {area:6.3f} {task.reference:9.2f} {(said == truth).mean():9.2f} {tokens:11.0f} "
            f"{task.tokens:5} {len(rows) / seconds:7.2f}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="; ".join(task.name for task in TASKS))
    parser.add_argument("--model", default="local")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--constructs", action="store_true", help="every construct of the language, over labelled rows")
    parser.add_argument(
        "--conditions", action="store_true", help="how precise WHERE is beside rows that nearly meet it"
    )
    parser.add_argument("--rows", type=int, default=40, help="of a construct")
    given = parser.parse_args()
    folder = Path(os.environ.get("UQL_DATA", "../shared/data"))
    if not folder.is_dir():
        print(f"no data in {folder}: set UQL_DATA", file=sys.stderr)
        return 2
    if given.conditions:
        local_conditions.run(given.tasks, folder, model=given.model, seed=given.seed)
        return 0
    if given.constructs:
        good = local_constructs.measure(given.tasks, folder, model=given.model, rows=given.rows, seed=given.seed)
        return 0 if good else 1
    chosen = [task for task in TASKS if not given.tasks or task.name in given.tasks]
    asyncio.run(measure(chosen, folder, model=given.model, seed=given.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
