"""`uql run SCRIPT`: a script of statements, for jobs and CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uql.command import options, query
from uql.command.outcome import command, new_app

app = new_app()


@command(app)
def run(
    script: Annotated[str, typer.Argument(help="A file of statements with ; between; - is standard input.")],
    database: options.Database = None,
    variables: options.Parameters = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON array with the result of every statement.")
    ] = False,
    output: options.Output = None,
    model: options.Model = None,
    budget: options.Budget = None,
    max_cost: options.MaxCost = None,
    max_seconds: options.MaxSeconds = None,
    ledger: options.Ledger = None,
    settings: options.Set = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print plans and prices; make no calls.")] = False,
    strict: options.Strict = False,
    read_only: options.ReadOnly = False,
    no_progress: options.NoProgress = False,
) -> int:
    """Run a script and print the result of each statement. The whole script is checked before its first statement runs.

    uql run report.uql shop.duckdb --var day=2026-01-01 --json
    """
    request = query.Request(
        text=query.text_of(None, script),
        format=options.format_of(output, False, as_json, False),
        output=Path(output) if output is not None else None,
        parameters=query.constants(variables),
        dry_run=dry_run,
        strict=strict,
        progress=not no_progress,
        each=True,
    )
    values = options.settings_of(
        settings, model=model, budget=budget, max_cost=max_cost, max_seconds=max_seconds, ledger=ledger
    )
    return query.answer(database, values, request, read_only)
