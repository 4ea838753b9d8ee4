"""`uql bench list | run | report | compare | peers`: run suites of benchmarks, print their tables, compare two runs."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uql.command.outcome import Code, UsageError, command, narrate, new_app

if TYPE_CHECKING:
    from uql.benchmarks.runner.records import Record

app = new_app("Benchmarks. Results are lines of JSON, one for each system, query, model and seed.")
RESULTS = Path("bench-results")
PAGES = (".html", ".htm")


@command(app, "list")
def list_() -> None:
    """The suites, with their systems and models."""
    from uql.benchmarks.runner import suites

    for name in suites.names():
        suite = suites.find(name)
        print(f"{name:<13} {suite.about}")
        print(f"{'':<13} systems: {', '.join(suite.systems)}; models: {', '.join(suite.models)}")


@command(app, "run")
def run_(
    suite: Annotated[str, typer.Argument(help="A suite of `uql bench list`.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="By default bench-results/SUITE.jsonl.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="At most so many a task; 200 where labels answer.")] = None,
    systems: Annotated[str, typer.Option(help="Some of the suite's, with commas between.")] = "",
    models: Annotated[str, typer.Option(help="labels, labels-5, labels-10, local, or any --model.")] = "",
    queries: Annotated[str, typer.Option(help="Names of queries, or beginnings of them, with commas between.")] = "",
    tables: Annotated[str, typer.Option(help="Some of the suite's tables, with commas between.")] = "",
    rows: Annotated[int | None, typer.Option(min=1, help="At most so many random rows of a table.")] = None,
    reduced: Annotated[bool, typer.Option("--reduced", help="The short form of a suite.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a results file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")] = False,
    max_cost: Annotated[float | None, typer.Option(min=0, help="USD, of all runs in the results file.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Only models on this machine.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data; by default $UQL_DATA or ../shared/data.")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="Where label tables and vectors are kept.")] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=1, help="Processes; runs over one data set stay in one.")
    ] = 1,
) -> int:
    """Run a suite and append a line for each run to the results file."""
    from uql.benchmarks.runner import run as runner, suites
    from uql.benchmarks.runner.parallel import Processes
    from uql.benchmarks.runner.records import read
    from uql.benchmarks.runner.suite import Choice

    found = suites.find(suite)
    path = output or RESULTS / f"{suite}.jsonl"
    choice = Choice(
        (data or Path(os.environ.get("UQL_DATA", "../shared/data"))).resolve(),
        (work or RESULTS / "work").resolve(),
        _words(systems),
        _words(models),
        _words(queries),
        _words(tables),
        rows,
        reduced,
        seeds,
    )
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a file", help="-o names the file of the results")
    done = read(path)
    if dry_run:
        with tempfile.TemporaryDirectory() as nowhere:  # some suites write label tables to know their tasks
            tasks = runner.tasks_of(found, replace(choice, work=Path(nowhere)), offline=offline)
        planned = runner.plan(found, tasks, seeds, done)
        for task in tasks:
            n = min(seeds or task.seeds, task.seeds)
            count = f"cannot be run: {task.reason}" if task.run is None else f"{n} seed{'s' * (n > 1)}"
            print(f"{task.table}  {task.system}  {task.query}  {task.model}  {count}")
        every = f" and those of {planned.unlimited:,} runs that ask every row" if planned.unlimited else ""
        print(f"{planned.runs:,} runs to do, {planned.done:,} done, at most {planned.calls:,} calls{every}; {path}")
        if max_cost is not None:
            left = max_cost - sum(record.usd or 0.0 for record in done)
            refused = runner.unpriced([task for task, _ in runner.pending(found, tasks, seeds, done)])
            for model in refused:
                print(f"would be refused: the price of {model} is unknown, so --max-cost cannot be kept")
            if not refused:
                print(
                    f"${max(0.0, left):.2f} of --max-cost {max_cost:g} is left"
                    + ("" if left > 0 else ": nothing would be run")
                )
        return Code.OK
    choice.work.mkdir(parents=True, exist_ok=True)
    tasks = runner.tasks_of(found, choice, offline=offline)
    planned = runner.plan(found, tasks, seeds, done)
    try:
        ended = runner.execute(
            found,
            tasks,
            path,
            seeds=seeds,
            resume=resume,
            max_cost=max_cost,
            say=lambda text: narrate(text),
            work=Processes(jobs, choice, offline, tasks) if jobs > 1 else None,
        )
    except KeyboardInterrupt:
        narrate(f"interrupted; what was run is in {path}, and --resume goes on")
        return Code.INTERRUPTED
    missing = f", {planned.missing} tasks cannot be run" if planned.missing else ""
    narrate(f"{ended.runs:,} runs, {ended.problems:,} without an answer{missing}, {ended.usd:.4f} USD: {path}")
    reasons = Counter(task.reason for task in tasks if task.run is None and task.reason)
    for reason, number in reasons.most_common():
        narrate(f"{number:,} cannot be run: {reason}", "note")
    if path.exists():
        narrate(f"the tables: uql bench report {path}")
    if ended.limit:
        narrate(f"--max-cost {max_cost:g} was reached; --resume with a higher one goes on", "note")
        return Code.BUDGET
    return Code.OK


@command(app)
def report(
    files: Annotated[list[Path], typer.Argument(help="Results files.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help=".md or .html; by default Markdown on stdout.")
    ] = None,
    title: Annotated[str, typer.Option(help="Of the page.")] = "Benchmarks",
) -> None:
    """Print the tables of results as Markdown, or write an HTML page with plots."""
    from uql.benchmarks.runner import report as reports

    if output is not None and output.suffix.lower() not in (*PAGES, ".md"):
        raise UsageError(f"-o {output} is neither .md nor .html", help="results files are never written over")
    records = _read(files)
    as_page = output is not None and output.suffix.lower() in PAGES
    text = reports.page(records, title) if as_page else reports.markdown(records, title)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


@command(app)
def compare(
    before: Annotated[Path, typer.Argument(help="A results file.")],
    after: Annotated[Path, typer.Argument(help="Another one.")],
    fail_if: Annotated[str | None, typer.Option(help="As 'f1 < -0.02 or calls > 1.1x'.")] = None,
    per_query: Annotated[bool, typer.Option("--per-query", help="Each query and model apart.")] = False,
    same: Annotated[
        list[str] | None, typer.Option(help="A count, as calls, that no run on an equal machine may change.")
    ] = None,
) -> int:
    """Compare the runs that two files share. Exit code 1 where --fail-if holds for any of them, or a run is not as --same wants it."""
    from uql.benchmarks.runner import compare as comparing, condition
    from uql.benchmarks.runner.report import markdown_table

    wanted = condition.parse(fail_if) if fail_if is not None else None
    first, second = _read([before]), _read([after])
    found = comparing.compared(first, second, per_query=per_query)
    if not found:
        raise UsageError(f"{before} and {after} share no run", help="they must hold the same suite, models and seeds")
    failed = comparing.failures(found, wanted) if wanted is not None else []
    unequal, elsewhere = comparing.unequal(first, second, same or ()), comparing.elsewhere(first, second)
    notes = [*comparing.changed(first, second), *comparing.unshared(first, second), *elsewhere]
    (notes if elsewhere else failed).extend(unequal)
    print(markdown_table(comparing.table(found, notes)))
    for line in failed:
        narrate(line, "error")
    return Code.QUERY if failed else Code.OK


peers = typer.Typer(no_args_is_help=True, help="Other engines, each in an environment of its own.")
app.add_typer(peers, name="peers")


@command(peers, "list")
def peers_list() -> None:
    """Which peers there are, and what is installed."""
    from uql.benchmarks.peers.environments import PEERS, home, version_of

    for peer in PEERS.values():
        there = version_of(peer)
        print(f"{peer.name:<11} {there or 'not here: uql bench peers install ' + peer.name}")
    narrate(f"in {home()}")


@command(peers, "install")
def peers_install(
    names: Annotated[
        list[str] | None, typer.Argument(help="lotus, palimpzest, thalamusdb, jevdb; all by default.")
    ] = None,
    python: Annotated[str | None, typer.Option(help="The Python to use, where the one found does not fit.")] = None,
) -> int:
    """Make the environments anew, with pinned versions. Some gigabytes; `peers remove` deletes them."""
    from uql.base.errors import ConfigError
    from uql.benchmarks.peers import environments

    failed = 0
    for peer in environments.find(tuple(names or ())):
        try:
            environments.install(peer, python, narrate)
        except ConfigError as error:  # the others may still work
            narrate(str(error), "error")
            failed += 1
    return Code.BACKEND if failed else Code.OK


@command(peers, "remove")
def peers_remove(names: Annotated[list[str] | None, typer.Argument(help="All by default.")] = None) -> None:
    """Delete environments."""
    from uql.benchmarks.peers import environments

    for peer in environments.find(tuple(names or ())):
        environments.remove(peer)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _read(files: list[Path]) -> list[Record]:
    from uql.benchmarks.runner.records import read

    missing = [path for path in files if not path.is_file()]
    if missing:
        raise UsageError(f"there is no results file {missing[0]}", help="uql bench run SUITE makes one")
    records = read(files)
    if not records:
        raise UsageError(f"{files[0]} holds no result", help="uql bench run SUITE makes one")
    return records
