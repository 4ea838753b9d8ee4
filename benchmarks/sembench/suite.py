"""The SemBench suite for the runner: every query, with the engine's own budget and with every row asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import duckdb

from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import MODELS, Choice, Suite, Table, Task, is_simulated
from uql.benchmarks.runner.summary import cells, number, spread
from uql.benchmarks.sembench.run import ask, judge
from uql.benchmarks.sembench.scenarios import LACKING, SCENARIOS, Query, Scenario

MOST_CALLS = 256  # of the engine where no budget is given
SEEDS = 5  # of a query whose answer depends on chance
LEAKS = {
    "reviewstate",
    "state",
    "sentiment",
    "score",
    "originalscore",
    "scoresentiment",
}  # columns that give the label away
FILM = "ant_man_and_the_wasp_quantumania"
SYSTEMS: dict[str, dict[str, str]] = {"uql": {}, "uql-exact": {"budget": "all"}}
NOTES = (
    "F1 for rows, 1 / (1 + relative error) for numbers, Spearman for scores and rankings; a query without an answer has 0",
    "ceiling: the same query with every row asked and the labels as the model; no model can be expected to go beyond it by its rows",
    "CPU s: seconds of this process's processor, the engine's own where the model is a table of labels; again: those of the same "
    "statement once more, answered by the ledger without a call",
)
TIMES = ("processor seconds", "seconds again")


@lru_cache(maxsize=32)
def scenario(name: str, choice: Choice, model: str) -> Scenario:
    """A scenario with an oracle that errs as the model's name says."""
    work = choice.work / "sembench" / name / (model if is_simulated(model) else "labels")
    work.mkdir(parents=True, exist_ok=True)
    return SCENARIOS[name](choice.data, work, MODELS.get(model, 0.0))


def tasks(choice: Choice) -> Iterator[Task]:
    """A task for each query, system and model, and one that looks at the data."""
    if not choice.queries:
        yield Task("data", "uql", "movie_reviews", "none", partial(facts, choice.data), seeds=1, group="sembench")
    for model in choice.models or tuple(MODELS):
        for name in SCENARIOS:
            held = scenario(name, choice, model)
            for query in held.queries:
                for system, settings in SYSTEMS.items():
                    if choice.wants(system, f"{name}_{query.name}"):
                        yield Task(
                            name,
                            system,
                            f"{name}_{query.name}",
                            model,
                            partial(run, held, query, model, choice, settings),
                            {"budget": "default", **settings},
                            SEEDS if system == "uql" and is_simulated(model) else 1,
                            MOST_CALLS if system == "uql" else None,
                            group="sembench",  # a process that begins writes the label tables anew
                        )
        for question, why in LACKING.items():
            if choice.wants("uql", f"mmqa_{question}"):
                yield Task("mmqa", "uql", f"mmqa_{question}", model, None, seeds=1, reason=why)


def run(held: Scenario, query: Query, model: str, choice: Choice, settings: Mapping[str, str], seed: int) -> Measured:
    """Runs a query over fresh tables and judges its rows."""
    began, busy = time.perf_counter(), time.process_time()
    result, con = ask(held, query, None if is_simulated(model) else model, seed=seed, **settings, **PURSE.settings())
    with con:
        rows = result.fetchall()
        PURSE.check(result)
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        numbers = {"exact": float(result.exact), "rows": float(len(rows)), "processor seconds": busy}
        with con.settings(offline=True):
            began = time.process_time()
            con.uql(query.text).run()
            numbers["seconds again"] = time.process_time() - began
        answer, quality = sorted(map(str, rows)), judge(query, rows)
        return Measured.at_cost(result.cost, answer, quality, query.measure, seconds, numbers)


def tables(records: Sequence[Record]) -> list[Table]:
    """For each scenario and model: quality beside the ceiling, calls, tokens, seconds."""
    found = [_data_table(r) for r in records if r.table == "data"]
    held = cells([r for r in records if r.table != "data"])
    models = dict.fromkeys(cell[3] for cell in held)
    there = {(cell[0], cell[3]) for cell in held}
    for name, model in [(n, m) for m in models for n in SCENARIOS if (n, m) in there]:
        rows, totals = [], dict.fromkeys(SYSTEMS, 0.0)
        own = {cell[2]: s for cell, s in held.items() if (cell[0], cell[3]) == (name, model)}
        queries = [query for query, s in own.items() if not s.reason]
        missing = [f"not run: {query}: {s.reason}" for query, s in own.items() if s.reason]
        for query in queries:
            top = held.get((name, "uql-exact", query, "labels"))
            ceiling = number(top.mean("quality")) if top is not None else "not run"
            for system in SYSTEMS:
                summary = held.get((name, system, query, model))
                if summary is None:
                    continue
                totals[system] += summary.mean("quality") / len(queries)
                calls, tokens = number(summary.mean("calls"), 0), number(summary.mean("tokens"), 0)
                quality = spread(summary.qualities)
                seconds = (number(s, 2) for s in (summary.seconds, *map(summary.mean, TIMES)))
                why = summary.problems[0][:80] if summary.problems else ""
                rows.append(
                    (query, system, summary.measure or "unanswered", quality, ceiling, calls, tokens, *seconds, why)
                )
        for system, total in totals.items():
            if any(row[1] == system for row in rows):
                rows.append(("mean", system, "", number(total), *[""] * 7))
        head = (
            "query",
            "system",
            "measure",
            "quality",
            "ceiling",
            "calls",
            "tokens",
            "seconds",
            "CPU s",
            "again, CPU s",
            "without an answer",
        )
        found.append(Table(f"SemBench {name}, model {model}", head, tuple(rows), (*NOTES, *missing)))
    return found


def facts(data: Path, seed: int = 0) -> Measured:
    """What is known to be wrong with the movie data: columns that give labels away (none may be left), and rows that stand twice."""
    reviews = data / "movie_reviews" / "data.parquet"
    counts = f"SELECT COUNT(*), COUNT(DISTINCT text) FROM '{reviews}'"
    with duckdb.connect() as con:
        columns = [row[0] for row in con.execute(f"DESCRIBE SELECT * FROM '{reviews}'").fetchall()]
        ((rows, distinct),) = con.execute(counts).fetchall()
        ((film, film_distinct),) = con.execute(f"{counts} WHERE movie = '{FILM}'").fetchall()
    leaks = [column for column in columns if column.lower() in LEAKS]
    numbers = {"rows": rows, "duplicates": rows - distinct, "film rows": film, "film duplicates": film - film_distinct}
    return Measured(columns, None, "", numbers={**numbers, "leaks": len(leaks)}, text=", ".join(columns))


def _data_table(record: Record) -> Table:
    n = record.numbers
    rows = (
        ("columns that a query may see", record.text),
        ("of these known to give a label away", f"{n['leaks']:.0f}; the original's reviewState does, and is left out"),
        ("reviews", f"{n['rows']:,.0f}, of which {n['duplicates']:,.0f} repeat the text of another"),
        (
            f"reviews of {FILM} (Q5 to Q7, Q9)",
            f"{n['film rows']:,.0f}, of which {n['film duplicates']:,.0f} repeat another's",
        ),
    )
    return Table("SemBench movie: the data", ("what", "found"), rows)


SUITE = Suite(
    "sembench",
    "SemBench's movie queries and the MMQA ones whose data is at hand, by its own measures, with oracle ceilings",
    tuple(SYSTEMS),
    tuple(MODELS),
    tasks,
    tables,
    needs=("movie_reviews", "sembench_mmqa"),
)
