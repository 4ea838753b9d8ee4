"""`uql calibrate`: fit a model's probabilities of a condition to rows that a stronger judge has labelled."""

from __future__ import annotations

from typing import Annotated

import typer

from uql.command import outcome, query
from uql.command.outcome import Code

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(context_settings={"help_option_names": ["-h", "--help"]})
def calibrate(
    condition: Annotated[str, typer.Argument(help="The condition, as it stands in queries.")],
    rows: Annotated[str, typer.Argument(help="A file, a table, or a SELECT: the columns to show, and the label.")],
    label: Annotated[str, typer.Option(help="The column that says whether the condition is so.")] = "label",
    database: Annotated[str | None, typer.Option("--database", help="The database that holds the table.")] = None,
    model: Annotated[str | None, typer.Option(help="The model to calibrate.")] = None,
    budget: Annotated[str | None, typer.Option(help="Model calls at most, or 'all'.")] = None,
    ledger: Annotated[str | None, typer.Option(help="Another ledger than that of the settings.")] = None,
    dry: Annotated[bool, typer.Option("--no-keep", help="Say what it would bring; change nothing.")] = False,
) -> None:
    """Fit a model's probabilities of a condition to labelled rows; kept where they are better on rows left out.

    uql calibrate "the review is positive" "SELECT text, positive AS label FROM 'labelled.csv'" --model local
    """

    def run() -> int:
        from pathlib import Path

        from uql.api.calibrate import calibrate as fit

        given = {"model": model, "budget": budget, "ledger": ledger}
        settings = {name: value for name, value in given.items() if value is not None}
        request = query.Request(text="", database=database, settings=settings)
        source = "'" + rows.replace("'", "''") + "'" if Path(rows).is_file() else rows
        with query.connect(request) as con:
            found = fit(con, condition, source, label=label, keep=not dry)
        print(f"rows       {found.rows}")
        print(f"accuracy   {found.accuracy_before:.3f} as it is, {found.accuracy:.3f} calibrated (rows left out)")
        print(f"log loss   {found.loss_before:.3f} as it is, {found.loss:.3f} calibrated (rows left out)")
        print(f"threshold  {found.threshold:.3f} of the model's own probability")
        if not found.better:
            print("not better on rows left out: the probabilities stay as they are")
        elif dry:
            print("better; nothing was changed")
        else:
            print("kept: queries with this condition and model use it from now on")
        return Code.OK

    raise typer.Exit(outcome.run(run))
