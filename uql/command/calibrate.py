"""`uql calibrate`: fit a model's probabilities of a condition to rows that a stronger judge has labelled."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uql.base.sql_text import literal
from uql.command import options
from uql.command.outcome import command, narrate, new_app, say

app = new_app()


@command(app)
def calibrate(
    condition: Annotated[str, typer.Argument(help="The condition, as it stands in queries.")],
    rows: Annotated[str, typer.Argument(help="A file, a table, or a SELECT: the columns to show, and the label.")],
    label: Annotated[str, typer.Option(help="The column that says whether the condition is so.")] = "label",
    database: Annotated[str | None, typer.Option("--database", help="The database that holds the table.")] = None,
    model: options.Model = None,
    budget: options.Budget = None,
    ledger: options.Ledger = None,
    dry: Annotated[bool, typer.Option("--no-keep", help="Show the gain and change nothing.")] = False,
) -> None:
    """Fit a model's probabilities of a condition to labelled rows; kept where they are better on rows left out.

    uql calibrate "the review is positive" "SELECT text, positive AS label FROM 'labelled.csv'" --model local
    """
    from uql.api.calibrate import calibrate as fit
    from uql.command.query import connect
    from uql.show.progress import Progress

    settings = options.settings_of(model=model, budget=budget, ledger=ledger)
    source = literal(rows) if Path(rows).is_file() else rows
    with connect(database, settings) as con, Progress().of(con.on_event) as progress:
        result = fit(con, condition, source, label=label, keep=not dry)
    say(f"rows       {result.rows}")
    say(f"accuracy   {result.accuracy_before:.3f} as it is, {result.accuracy:.3f} calibrated (rows left out)")
    say(f"log loss   {result.loss_before:.3f} as it is, {result.loss:.3f} calibrated (rows left out)")
    say(f"threshold  {result.threshold:.3f} of the model's own probability")
    if not result.better:
        say("not better on rows left out: the probabilities stay as they are")
    elif dry:
        say("better; nothing was changed")
    else:
        say("kept: queries with this condition and model use it from now on")
    narrate(progress.counts.line())
