"""Goes through the tasks of a suite, seed by seed, and writes a line for each run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from uql.base.config import load
from uql.base.errors import AuthError, BackendError, ConfigError, QuotaError, UnknownModelError, UQLError
from uql.benchmarks.runner import lines
from uql.benchmarks.runner.purse import PURSE, SpentError
from uql.benchmarks.runner.records import Measured, Record, finite, hash_of, read, versions, write
from uql.benchmarks.runner.suite import MODELS, Choice, Suite, Task, is_offline, is_simulated
from uql.llm.prices import price_of

STOPS = (ConfigError, SpentError, AuthError, BackendError, QuotaError, UnknownModelError)
Say = Callable[[str], None]
Work = Callable[[Suite, Sequence[tuple[Task, int]]], Iterable[Record]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do."""

    runs: int  # still to do
    done: int  # in the file already
    calls: int  # at most, of the runs whose calls are limited
    unlimited: int  # runs that ask every row
    missing: int  # tasks that cannot be run


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: `limit` where --max-cost stopped it."""

    runs: int
    problems: int
    usd: float
    limit: bool


def tasks_of(suite: Suite, choice: Choice, *, offline: bool) -> list[Task]:
    """The tasks chosen; with `offline` those whose model is elsewhere come with that as their reason.

    Raises: ConfigError for a system or model that the suite does not know.
    """
    unknown = [system for system in choice.systems if system not in suite.systems]
    if unknown:
        raise ConfigError(
            f"the suite {suite.name} has no system {unknown[0]!r}",
            code="UQL402",
            help=f"systems: {', '.join(suite.systems)}",
        )
    lacking = [folder for folder in suite.needs if not any((choice.data / folder).glob("*.parquet"))]
    if lacking:
        raise ConfigError(
            f"the suite {suite.name} needs the data {', '.join(lacking)}, which {choice.data} does not have",
            code="UQL402",
            help="set UQL_DATA or --data to the folder of the data sets",
        )
    check_models(choice.models)
    if choice.rows is not None and not suite.cuts:
        raise ConfigError(f"the suite {suite.name} takes no --rows: it asks of whole tables", code="UQL402")
    tables = {made for table in choice.tables for made in suite.made_of.get(table, (table,))}
    try:
        every = list(suite.tasks(choice))
    except (duckdb.Error, OSError) as error:
        raise _unreadable(suite, error) from error
    whole = {task.query for task in every}.intersection(choice.queries)  # names that are given whole mean no other
    beginnings = tuple(query for query in choice.queries if query not in whole)
    chosen = []
    for task in every:
        if tables and task.table not in tables:
            continue
        if whole and task.query not in whole and not task.query.startswith(beginnings):
            continue
        if offline and task.run is not None and not is_offline(task.model):
            task = replace(task, run=None, reason="the model is elsewhere")
        chosen.append(task)
    if not chosen:
        raise ConfigError(
            f"nothing of the suite {suite.name} is left by --systems, --models, --queries and --tables",
            code="UQL402",
            help=f"uql bench run {suite.name} --dry-run lists all of it",
        )
    for option, unused in (
        ("--queries", [q for q in choice.queries if not any(task.query.startswith(q) for task in every)]),
        ("--tables", sorted(tables - {task.table for task in every})),
        ("--models", sorted(set(choice.models) - {task.model for task in every})),
    ):
        if unused:
            raise ConfigError(
                f"{option}: nothing that is left of the suite {suite.name} is called {unused[0]!r}",
                code="UQL402",
                help=f"uql bench run {suite.name} --dry-run lists all of it",
            )
    return chosen


def _unreadable(suite: Suite, error: Exception) -> ConfigError:
    """Files that are not there or that another run holds."""
    return ConfigError(
        f"a file of the suite {suite.name} cannot be used: {str(error).splitlines()[0]}",
        code="UQL402",
        help="--data names the folder of the data sets, --work one that no other run uses",
    )


def check_models(models: Sequence[str]) -> None:
    """Raises ConfigError for a name that is no model's, before anything is run."""
    for model in models:
        if not (is_simulated(model) or model in ("none", "local") or ":" in model):
            raise ConfigError(
                f"there is no model {model!r}",
                code="UQL402",
                help=f"{', '.join(MODELS)}, local, or what --model takes, as openai:MODEL or http://host/v1#MODEL",
            )


def pending(
    suite: Suite, tasks: Sequence[Task], seeds: int | None, done: Sequence[Record]
) -> Iterator[tuple[Task, int]]:
    """(task, seed) of what is still to be run, seed by seed, so that an interrupted run has some of everything."""
    there = {record.place for record in done if not record.reason}  # what could not be run then may be run now
    most = max((task.seeds if seeds is None else min(seeds, task.seeds) for task in tasks if task.run), default=0)
    for seed in range(most):
        for task in tasks:
            count = task.seeds if seeds is None else min(seeds, task.seeds)
            if task.run is not None and seed < count and _record(suite, task, seed).place not in there:
                yield task, seed


def plan(suite: Suite, tasks: Sequence[Task], seeds: int | None, done: Sequence[Record]) -> Plan:
    """What `execute` would do."""
    left = list(pending(suite, tasks, seeds, done))
    calls = [task.calls for task, _ in left]
    limited = [n for n in calls if n is not None]
    runs = sum(not record.reason for record in done)
    return Plan(len(left), runs, sum(limited), len(calls) - len(limited), sum(task.run is None for task in tasks))


def unpriced(tasks: Sequence[Task]) -> list[str]:
    """The models whose price is not known: `--max-cost` refuses them."""
    models = dict.fromkeys(task.model for task in tasks if task.run is not None)
    return [m for m in models if ":" in m and not is_offline(m) and price_of(m, load()[0]) is None]


def _no_price(model: str) -> ConfigError:
    return ConfigError(
        f"the price of {model} is unknown, so --max-cost cannot be kept",
        code="UQL402",
        help=f'give it in your configuration, [prices."{model}"], or leave --max-cost out',
    )


def execute(
    suite: Suite,
    tasks: Sequence[Task],
    path: Path,
    *,
    seeds: int | None,
    resume: bool,
    max_cost: float | None,
    say: Say,
    work: Work | None = None,
) -> Ended:
    """Runs what is to be run and appends a line for each run to `path`.

    Args:
        max_cost: USD of all runs in the file, those of earlier sittings too.
        work: makes the records of what is left, in any order; by default here, one after the other.
    Raises: ConfigError where the file holds results and `resume` is off, or another run writes to it; OSError, before
        anything is run, where it cannot be written.
    """
    done = read(path) if path.exists() else []
    if done and not resume:
        raise ConfigError(
            f"{path} holds {len(done)} results already",
            code="UQL402",
            help="--resume goes on with it; -o names another",
        )
    known = {record.place: record.reason for record in done}
    for task in tasks:
        if task.run is None and known.get((told := _record(suite, task, 0, reason=task.reason)).place) not in (
            "",
            task.reason,
        ):
            write(path, told)
    left = list(pending(suite, tasks, seeds, done))
    if max_cost is not None:
        for model in unpriced([task for task, _ in left]):
            raise _no_price(model)
    PURSE.left = None if max_cost is None else max_cost - sum(record.usd or 0.0 for record in done)
    if not left or PURSE.empty:
        return Ended(0, 0, 0.0, bool(left))
    usd, runs, problems, last_said = 0.0, 0, 0, time.monotonic()
    with lines.alone(path):
        for record in (work or one_by_one)(suite, left):
            write(path, record)
            runs += 1
            problems += bool(record.problem)
            usd += record.usd or 0.0
            if max_cost is not None and record.usd is None:
                raise _no_price(record.model)
            if time.monotonic() - last_said > 5 or runs == len(left):
                last_said = time.monotonic()
                last = f"{record.table}, {record.system}, {record.query}, {record.model}"
                say(f"{runs:,} of {len(left):,} runs; last: {last}")
    return Ended(runs, problems, usd, max_cost is not None and runs < len(left))


def one_by_one(suite: Suite, left: Iterable[tuple[Task, int]]) -> Iterator[Record]:
    """Runs in this process, in the order given, until what may be spent is spent."""
    for task, seed in left:
        if PURSE.empty:
            return
        try:
            yield ran(suite, task, seed)
        except SpentError:
            return


def ran(suite: Suite, task: Task, seed: int) -> Record:
    """One run; its record says what kept it from an answer.

    Raises: what is wrong with the settings, or with a model that is not there or cannot be reached: no system's fault.
    """
    assert task.run is not None
    began = time.perf_counter()
    try:
        found = task.run(seed)
    except STOPS:
        raise
    except (duckdb.IOException, OSError) as error:
        raise _unreadable(suite, error) from error
    except UQLError as error:  # an answer that could not be had is the worst one
        measured = Measured(
            quality=task.worst, measure="unanswered", seconds=time.perf_counter() - began, problem=str(error)
        )
        return _record(suite, task, seed, measured)
    PURSE.take(found.usd)
    return _record(suite, task, seed, found)


def _record(suite: Suite, task: Task, seed: int, found: Measured | None = None, reason: str = "") -> Record:
    place = (suite.name, task.table, task.system, task.query, task.model, seed, dict(task.settings))
    if found is None:
        return Record(*place, versions=versions(), reason=reason)
    return Record(
        *place,
        versions={**versions(), **found.versions},
        answer_hash=hash_of(found.answer),
        quality=found.quality,
        measure=found.measure,
        calls=found.calls,
        requests=found.requests,
        cached=found.cached,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        usd=found.usd,
        seconds=round(found.seconds, 4),
        numbers=finite(found.numbers),
        text=found.text,
        problem=found.problem.splitlines()[0] if found.problem else "",
    )
