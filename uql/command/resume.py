"""`uql resume TOKEN`: continue a run."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from uql.command import outcome, query
from uql.command.outcome import UsageError, narrate
from uql.command.output import Output

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def resume(
    token: Annotated[str, typer.Argument(help="Of the run, as it was told; its first letters are enough.")],
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON array.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")] = False,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Write to this file, all rows; its suffix chooses the format.")
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Model calls at most, those paid before counted.")] = None,
    max_cost: Annotated[str | None, typer.Option(help="USD at most.")] = None,
    max_seconds: Annotated[str | None, typer.Option(help="Seconds at most, of this sitting.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that holds the run.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, instead of the run's own."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 when a row has no answer.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Say nothing while running.")] = False,
) -> None:
    """Continue a run that was killed, interrupted, or stopped at a limit, in the database and the folder it began in.

    The same rows are drawn; those that have an answer are not paid for again.
    """

    def run() -> int:
        named = {"budget": budget, "max_cost": max_cost, "max_seconds": max_seconds}
        changes = {name: value for name, value in named.items() if value is not None} | query.pairs("--set", settings)
        flags = {"csv": csv, "json": as_json, "markdown": markdown}
        request = query.Request(
            text="",
            format=query.format_of(flags, output),
            output=Path(output).absolute() if output is not None else None,
            settings={"ledger": str(Path(ledger).absolute())} if ledger is not None else {},
            strict=strict,
            progress=not no_progress,
        )
        return _resume(token, request, changes)

    raise typer.Exit(outcome.run(run))


def _resume(token: str, request: query.Request, changes: dict[str, Any]) -> int:
    from uql.base import config
    from uql.llm.ledger import Ledger
    from uql.session.resume import find

    own, _ = config.load(**request.settings)
    with Ledger(own.ledger) as ledger:
        before = find(token, ledger)
    if not Path(before.folder).is_dir():
        raise UsageError(f"the run began in the folder {before.folder}, which is not there any more")
    if before.folder != os.getcwd():
        narrate(f"in {before.folder}, where the run began", "note")
        os.chdir(before.folder)
    request = replace(
        request,
        database=before.database,
        read_only=before.read_only,
        settings={**before.settings, "ledger": own.ledger} if own.ledger is not None else before.settings,
    )
    with Output.open(request.output, request.format) as output, query.connect(request) as con:
        return query.run(con, partial(con.resume, before.id, **changes), output, request)
