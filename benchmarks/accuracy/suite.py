"""The suite `accuracy` for the runner: one label of each row, asked of a real model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import uql
from uql.benchmarks.accuracy.data_sets import CHARACTERS, DATA_SETS, ROWS, DataSet, sample
from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task, is_simulated
from uql.sampling.intervals import clopper_pearson

MODELS = ("local",)
LEVEL = 0.95
NOTES = (
    "accuracy: rows whose answer is their label; a row without an answer is wrong; the interval is Clopper and Pearson's at 95 %",
    f"rows are random ones by a seed; of imdb, bbc_news and sgd the model is shown the first {CHARACTERS} characters",
    "commonest: what an answer that is always the commonest label of these rows would reach",
    "seconds a row are those of a machine that may have had other work",
    "labels of abcd are those that another model gave (silver)",
    "public figures are of whole test sets, and where it says so of models trained on labels: the local model has seen none",
)


def tasks(choice: Choice) -> Iterator[Task]:
    """One for each data set and model."""
    for model in choice.models or MODELS:
        for data_set in DATA_SETS:
            if choice.wants("uql", data_set.name):
                reason = "a label table is always right here" if is_simulated(model) else ""
                runs = None if reason else partial(run, data_set, model, choice)
                rows = choice.rows or ROWS
                yield Task("labels", "uql", data_set.name, model, runs, {"rows": rows}, 1, rows, reason=reason)


def run(data_set: DataSet, model: str, choice: Choice, seed: int = 0) -> Measured:
    """Asks which label each row has. The ledger lies among the work files, so that a run that was stopped goes on."""
    rows = sample(data_set, choice.data, seed, choice.rows or ROWS)
    began = time.perf_counter()
    settings = {"ledger": str(choice.work / "accuracy.sqlite"), "budget": "all", "seed": seed, **PURSE.settings()}
    with uql.connect(model=model, **settings) as con:
        con.sql("CREATE TABLE texts (id BIGINT, text VARCHAR)")
        con.execute("INSERT INTO texts SELECT unnest($1), unnest($2)", [list(rows.texts), list(rows.texts.values())])
        labels = ", ".join("'" + word.replace("'", "''") + "'" for word in rows.words)
        result = con.uql(
            f'SELECT id, ("{data_set.question}" USING (text))::ENUM({labels}) AS label FROM texts ORDER BY id'
        )
        answers = dict(result.fetchall())
        PURSE.check(result)
        cost = result.cost
    right = sum(answers.get(row) == label for row, label in rows.truth.items())
    low, high = clopper_pearson(right, len(rows.truth), LEVEL)
    numbers = {
        "rows": float(len(rows.truth)),
        "right": float(right),
        "labels": float(len(rows.words)),
        "low": low,
        "high": high,
        "commonest": rows.commonest,
        "without an answer": float(sum(answers.get(row) is None for row in rows.truth)),
    }
    seconds = time.perf_counter() - began
    answer = sorted(map(str, answers.items()))
    return Measured.at_cost(cost, answer, right / len(rows.truth), "accuracy", seconds, numbers)


def tables(records: Sequence[Record]) -> list[Table]:
    """A line for each data set, a table for each model."""
    public = {data_set.name: data_set.public for data_set in DATA_SETS}
    made = []
    for model in dict.fromkeys(r.model for r in records if not r.reason):
        rows = []
        for r in records:
            if r.model != model or r.reason:
                continue
            n = r.numbers
            each = r.seconds / max(1, r.calls)
            rows.append((
                r.query, f"{n['labels']:.0f}", f"{n['rows']:.0f}", f"{100 * (r.quality or 0):.1f} %",
                f"{100 * n['low']:.1f}–{100 * n['high']:.1f} %", f"{100 * n['commonest']:.1f} %", public.get(r.query) or "–",
                f"{n['without an answer']:.0f}", f"{each:.1f}",
            ))  # fmt: skip
        head = (
            "data set",
            "labels",
            "rows",
            "accuracy",
            "interval",
            "commonest",
            "public figure",
            "no answer",
            "s a row",
        )
        made.append(Table(f"Which label? Model {model}", head, tuple(rows), NOTES))
    return made


SUITE = Suite(
    "accuracy",
    "one label of each row, asked of a real model: how often it is the label of the data set, beside public figures",
    ("uql",),
    MODELS,
    tasks,
    tables,
    needs=tuple(dict.fromkeys(data_set.data for data_set in DATA_SETS)),
    cuts=True,
)
