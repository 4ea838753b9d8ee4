"""`uql eval`: how right a text is, per model and wording, by labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uql.base.sql_text import literal
from uql.command import options
from uql.command.outcome import UsageError, command, new_app, say
from uql.command.output import print_json

app = new_app()


@command(app)
def eval_(
    rows: Annotated[str, typer.Argument(help="A file, a table, or a SELECT: the columns to show, and the label.")],
    texts: Annotated[list[str], typer.Argument(help="The text, as it stands in queries; several: its wordings.")],
    label: Annotated[str, typer.Option(help="The column with the right answers: yes and no, or labels.")] = "label",
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A column to show to the model; may be repeated. Default: all.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("-m", "--model", help="A model; may be repeated. Default: that of the settings.")
    ] = None,
    database: Annotated[str | None, typer.Option("--database", help="The database that holds the table.")] = None,
    sample: Annotated[str, typer.Option(help="Number of labelled rows to draw, or 'all'.")] = "200",
    improve: Annotated[int, typer.Option(help="Wordings that the model proposes, checked on rows kept apart.")] = 0,
    packed: Annotated[
        int,
        typer.Option(
            help="Rows per request: measures what sharing changes, and decides it for rows_per_request = 'auto'."
        ),
    ] = 0,
    max_cost: options.MaxCost = None,
    ledger: options.Ledger = None,
    settings: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Precision, recall, cost and seconds of a text by labelled rows, per model and wording, with intervals.

    uql eval labelled.csv "the review is positive" "the reviewer liked the film" -m local -m openai:NAME
    """
    from uql.command.query import connect
    from uql.show.progress import Progress

    if sample != "all" and not (sample.isdigit() and int(sample)):
        raise UsageError(f"--sample {sample!r} is not a number of rows", help="as --sample 200, or --sample all")
    overrides = options.settings_of(settings, max_cost=max_cost, ledger=ledger)
    source = literal(rows) if Path(rows).is_file() else rows
    with connect(database, overrides, read_only=database is not None) as con, Progress().of(con.on_event):
        evaluation = con.evaluate(
            source,
            texts,
            label=label,
            columns=tuple(columns or ()),
            models=tuple(models or ()),
            sample=None if sample == "all" else int(sample),
            improve=improve,
            packed=packed,
        )
    print_json(evaluation.dicts()) if as_json else say(evaluation)
