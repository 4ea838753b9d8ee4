"""`uql resume TOKEN`: continue a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uql.command import options, query
from uql.command.outcome import Code, UsageError, command, narrate, new_app
from uql.command.output import Output

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result
    from uql.base.settings import Settings
    from uql.session.resume import Before

app = new_app()


@command(app)
def resume(
    token: Annotated[str, typer.Argument(help="The id of the run, as `uql runs` lists it, or its first letters.")],
    csv: options.Csv = False,
    as_json: options.Json = False,
    markdown: options.Markdown = False,
    output: options.Output = None,
    budget: Annotated[
        str | None, typer.Option(help="Maximum number of model calls, including those paid before.")
    ] = None,
    max_cost: options.MaxCost = None,
    max_seconds: Annotated[str | None, typer.Option(help="Maximum time in seconds, from now on.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that holds the run.")] = None,
    settings: options.Set = None,
    strict: options.Strict = False,
    no_progress: options.NoProgress = False,
    yes: options.Yes = False,
) -> int:
    """Continue a run that was killed, interrupted, or stopped at a limit, in the database and the folder it began in.

    The same rows are drawn; those that have an answer are not paid for again. Settings given here replace the run's own.

    Of a run that you did not begin on this machine it shows the statement first, and asks.
    """
    from uql.base import config
    from uql.base.postgres_url import is_postgres
    from uql.llm.ledger import Ledger
    from uql.session.resume import find, is_own

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
        before = find(token, store, trust=True)
    if not is_own(before) and not (yes or _confirmed(_would_do(before, own))):
        return Code.OK
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
        make = partial(_resumed, con, before, changes)  # the run as it was shown: the ledger may be another by now
        return query.run(con, make, out.rows, request)


def _resumed(con: Connection, before: Before, changes: Mapping[str, Any]) -> Result:
    from uql.api.result import Result
    from uql.session.script import resume

    return Result(resume(con.session, before, changes, {}), con.session)


def _would_do(before: Before, own: Settings) -> list[str]:
    """What resuming a run would do, in lines: where, with which parameters and settings that ask for trust, and the statement.

    Args:
        own: the settings of the user.
    """
    from uql.base.config import needs_trust
    from uql.base.printable import printable

    access = "only read" if before.read_only else "open"
    lines = [f"in the folder {before.folder}", f"it would {access} the database {before.database or 'in memory'}"]
    lines += [f"with ${name} = {value!r}" for name, value in (before.parameters or {}).items()]
    lines += [f"with {setting}: it would {what}" for setting, what in needs_trust(before.settings, own).items()]
    return [printable(line) for line in lines] + [printable(line) for line in before.statement.splitlines()]


def _confirmed(lines: list[str]) -> bool:
    """Does the user want to continue a run of somebody else's? Shows what it would do."""
    narrate("you did not begin this run as the ledger has it:")
    for line in lines:
        narrate(f"  {line}")
    return typer.confirm("it runs with your files, keys and models. Continue it?", err=True)
