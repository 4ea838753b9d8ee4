"""`uql resume TOKEN`: continue a run."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from uql.command import options, query
from uql.command.outcome import UsageError, command, narrate, new_app
from uql.command.output import Output

app = new_app()


@command(app)
def resume(
    token: Annotated[str, typer.Argument(help="Of the run, as it was told; its first letters are enough.")],
    csv: options.Csv = False,
    as_json: options.Json = False,
    markdown: options.Markdown = False,
    output: options.Output = None,
    budget: Annotated[str | None, typer.Option(help="Model calls at most, those paid before counted.")] = None,
    max_cost: options.MaxCost = None,
    max_seconds: Annotated[str | None, typer.Option(help="Seconds at most, of this sitting.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that holds the run.")] = None,
    settings: options.Set = None,
    strict: options.Strict = False,
    no_progress: options.NoProgress = False,
) -> int:
    """Continue a run that was killed, interrupted, or stopped at a limit, in the database and the folder it began in.

    The same rows are drawn; those that have an answer are not paid for again. Settings given here replace the run's own.
    """
    from uql.base import config
    from uql.base.postgres_url import is_postgres
    from uql.llm.ledger import Ledger
    from uql.session.resume import find

    changes = options.settings_of(settings, budget=budget, max_cost=max_cost, max_seconds=max_seconds)
    request = query.Request(
        text="",
        format=options.format_of(output, csv, as_json, markdown),
        output=Path(output).absolute() if output is not None else None,
        strict=strict,
        progress=not no_progress,
    )
    place = ledger if ledger is None or is_postgres(ledger) else str(Path(ledger).absolute())
    own, _ = config.load(ledger=place)
    with Ledger(own.ledger) as store:
        before = find(token, store)
    if not Path(before.folder).is_dir():
        raise UsageError(f"the run began in the folder {before.folder}, which is not there any more")
    if before.folder != os.getcwd():
        narrate(f"in {before.folder}, where the run began", "note")
        os.chdir(before.folder)
    values = before.settings if own.ledger is None else {**before.settings, "ledger": own.ledger}
    with (
        Output.open(request.output, request.format) as out,
        query.connect(before.database, values, read_only=before.read_only) as con,
    ):
        return query.run(con, partial(con.resume, before.id, **changes), out.rows, request)
