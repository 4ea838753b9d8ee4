"""`uql ask [database] "question"`: a question in words, answered by UQL that is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uql.base.printable import printable
from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app, say

if TYPE_CHECKING:
    from uql.nl.ask.answer import Answer, PlanView
    from uql.nl.ask.pricing import PlanPrice
    from uql.show.progress import Progress

app = new_app()
_WHY_ROWS, _WHY_CHARS = 5, 300


@command(
    app,
    epilog="Exit codes: 0 answered, 1 cannot be answered (the reason is on stderr), 2 usage or configuration, 3 model unreachable or "
    "missing, 4 a limit was reached (what was found is written), 130 interrupted.",
)
def ask(
    words: Annotated[list[str], typer.Argument(metavar="[DATABASE] QUESTION", help="A DuckDB file, and the question.")],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table", metavar="NAME=PATH", help="A file (CSV, JSON, Parquet, SQLite), or a folder of texts or images."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="Write answer, UQL, plan, tables, plots here."),
    ] = None,
    mode: Annotated[
        str, typer.Option(help="dag: a plan at once; meta: sub-queries; interleaved: step by step.")
    ] = "dag",
    style: Annotated[str, typer.Option(help="short: at most ten words; full: with details and sources.")] = "short",
    rule: Annotated[list[str] | None, typer.Option("--rule", help="A rule of the use case, in words.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the answer as JSON, with its plan and steps.")] = False,
    show_plan: Annotated[bool, typer.Option("--plan", help="Print the plan, its UQL and price; run nothing.")] = False,
    show_uql: Annotated[bool, typer.Option("--uql", help="Print the UQL below the answer.")] = False,
    show_why: Annotated[
        bool, typer.Option("--why", help="Print for each figure of the answer its cell and the rows behind it.")
    ] = False,
    readings: Annotated[
        bool | None,
        typer.Option(
            "--readings/--no-readings",
            help="Check whether the question is ambiguous. Default: only with a hosted model.",
        ),
    ] = None,
    model: options.Model = None,
    planner: Annotated[str | None, typer.Option(help="The model that plans and writes, if not --model.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Maximum number of model calls for the whole question. Default: 1024.")
    ] = None,
    max_cost: options.MaxCost = None,
    confirm_over: Annotated[
        float | None, typer.Option(help="Ask before running what may cost more USD than this. Default: the setting.")
    ] = None,
    yes: options.Yes = False,
    no_checker: Annotated[bool, typer.Option("--no-checker", help="Mode meta: decompose every question.")] = False,
    no_decomposer: Annotated[bool, typer.Option("--no-decomposer", help="Mode meta: decompose none.")] = False,
    adapter: Annotated[
        list[str] | None,
        typer.Option("--adapter", help="Mode meta: an adapter of `uql adapters list`; may be repeated."),
    ] = None,
    router: Annotated[
        Path | None,
        typer.Option("--router", help="Mode meta: a router of `uql router train`, which ranks the adapters."),
    ] = None,
    no_progress: options.NoProgress = False,
) -> int:
    """Answer a question about the tables, texts and images of a database.

    uql ask shop.duckdb "How many reviews of the kettle complain about the lid?"
    """
    if len(words) > 2:
        raise UsageError("ask takes a database and a question", help="put the question in quotes")
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise UsageError(f"{output} is not a folder", help="-o takes the name of a folder")
    settings = options.settings_of(model=model, budget=budget, max_cost=max_cost)
    arguments: dict[str, Any] = {
        "mode": mode,
        "style": style,
        "rules": tuple(rule or ()),
        "planner": planner,
        "checker": not no_checker,
        "decomposer": not no_decomposer,
        "readings": readings,
    }
    if (adapter or router is not None) and mode != "meta":
        raise UsageError("--adapter and --router are for --mode meta")
    if adapter:
        from uql.nl.adapters import open_adapters

        arguments["adapters"] = open_adapters(adapter)
    if router is not None:
        from uql.nl.routers import load_router

        arguments["router"] = load_router(router)
    if show_plan:
        arguments |= {"confirm": _show, "confirm_over": -1.0}
    elif not yes:
        arguments |= {"confirm": _confirmed, "confirm_over": confirm_over}
    answer = _run(words, table or [], settings, arguments, not no_progress)
    if show_plan:
        return Code.OK if answer.plan.plan is not None and answer.cannot.startswith(_SHOWN) else _failed(answer)
    return _written(answer, output, as_json, show_uql, show_why)


def _run(
    words: list[str], tables: list[str], settings: dict[str, Any], arguments: dict[str, Any], progress: bool
) -> Answer:
    from uql.command.query import connect
    from uql.show.progress import Progress

    database, question = (None, words[0]) if len(words) == 1 else (words[0], words[1])
    if database is None and Path(question).is_file():
        raise UsageError(f"there is no question about {question}", help=f'uql ask {question} "How many …?"')
    if database is not None and not Path(database).exists():
        raise UsageError(f"there is no database {database}")
    # questions only read: several may be asked of one file at the same time
    with connect(database, settings, read_only=database is not None) as con:
        for name, file in options.pairs("--table", tables, "NAME=FILE", "reviews=reviews.csv").items():
            con.register(name, file)
        if arguments.get("confirm") is _confirmed and arguments["confirm_over"] is None:
            arguments["confirm_over"] = con.configured.confirm_over
        if arguments.get("confirm_over") is None:
            arguments["confirm"] = None
        with Progress(enabled=progress).of(con.on_event) as display:
            if arguments.get("confirm") is not None:
                arguments["confirm"] = _without_block(arguments["confirm"], display)
            return con.ask(question, **arguments)


def _without_block(confirm: Callable[[PlanPrice, PlanView], bool], progress: Progress) -> Callable[..., bool]:
    """Asks with the block of progress taken away."""

    def confirm_plan(price: PlanPrice, plan: PlanView) -> bool:
        progress.hide()
        return confirm(price, plan)

    return confirm_plan


_SHOWN = "it was not confirmed"


def _show(price: PlanPrice, plan: PlanView) -> bool:
    """Prints a plan with its price, and runs nothing."""
    say(plan.text)
    say(f"\nprice: {price}")
    return False


def _confirmed(price: PlanPrice, plan: PlanView) -> bool:
    """Asks on a terminal; elsewhere nothing that costs more than `confirm_over` is run without --yes."""
    narrate(plan.text)
    narrate(f"price: {price}")
    if not sys.stdin.isatty():
        narrate("not run: confirm with --yes, or raise --confirm-over", "note")
        return False
    narrate("run it? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _written(answer: Answer, output: str | None, as_json: bool, show_uql: bool, show_why: bool) -> int:
    if output is not None and (answer.results or answer.answered):
        for path in answer.save(output):
            narrate(f"wrote {path}")
    if as_json:
        from uql.nl.ask.answer import as_json as plainly

        print(json.dumps(answer.to_json(), default=plainly, ensure_ascii=False, indent=2))
    elif answer.answered:
        say(answer.shown)
        for plot in answer.plots:
            narrate(f"a plot: {plot.title}{'' if output is not None else '; -o FOLDER writes it'}")
        if show_uql and answer.uql:
            say(f"\n{answer.uql}")
        if show_why:
            _print_why(answer)
    else:
        for note in answer.notes:  # what was found before a limit
            say(printable(note))
    for reading in answer.readings:
        narrate(f"may also mean: {reading}" if reading != answer.readings[0] else f"read as: {reading}")
    if answer.json.get("extra"):
        narrate(str(answer.json["extra"]), "note")
    for warning in answer.warnings:
        narrate(warning, "warning")
    from uql.show.render import dollars, plural

    usd = "" if not answer.cost.usd else f"{dollars(answer.cost.usd)}, "
    cached = f", {answer.cost.cached:,} from the ledger" if answer.cost.cached else ""
    narrate(
        f"{usd}{plural(len(answer.steps), 'step')}, {plural(answer.cost.calls, 'call')}{cached}, {answer.seconds:.1f} s"
    )
    return _failed(answer) if not answer.answered else Code.BUDGET if answer.partial else Code.OK


def _print_why(answer: Answer) -> None:
    """Each figure with its cell, and the first rows behind it."""

    for citation in answer.citations:
        line = f"{citation.text}: {citation.column} of row {citation.row + 1} of {citation.node}"
        rows = answer.rows(citation)
        say("\n" + printable(line))
        for row in rows[:_WHY_ROWS]:
            say("  " + printable(_row(row))[:_WHY_CHARS])
        if len(rows) > _WHY_ROWS:
            say(f"  … {len(rows) - _WHY_ROWS} more in --json")


def _row(row: Mapping[str, Any]) -> str:
    """A row in words; of a join, the columns of each table with its name before them."""
    parts = []
    for name, value in row.items():
        inner = {f"{name}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value}
        parts += [f"{k} {v}" for k, v in inner.items()]
    return ", ".join(parts)


def _failed(answer: Answer) -> int:
    narrate(f"this cannot be answered: {answer.cannot}", "error")
    return Code.BUDGET if answer.partial else Code.QUERY
