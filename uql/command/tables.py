"""`uql tables DATABASE`: the tables of a database; of semantic ones key, model, cost and query; corrections that people made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from uql.base.printable import printable
from uql.command import options
from uql.command.outcome import command, new_app, say
from uql.command.output import print_json

app = new_app()


@command(app)
def tables(
    database: Annotated[Path, typer.Argument(help="A DuckDB database.")],
    as_json: options.Json = False,
) -> None:
    """List the tables of a database with their rows; of semantic tables what they are made of and what they cost.

    In UQL: FROM uql_tables(). REFRESH brings one up to date.
    """
    from uql.api.opening import connect

    with connect(options.existing(database), read_only=True, ledger=":memory:") as con:
        names = con.catalog.names()
        counted = [con.catalog.table(tuple(name.split("."))).row_count for name in names]
        semantic_tables = {row["name"]: row for row in con.uql("FROM uql_tables()").arrow().to_pylist()}
    entries = [
        {"name": n, "rows": rows, **{k: semantic_tables.get(n, {}).get(k) for k in KEPT}}
        for n, rows in zip(names, counted, strict=True)
    ]
    entries += [
        {"name": n, "rows": None, **{k: row[k] for k in KEPT}} for n, row in semantic_tables.items() if n not in names
    ]
    _print(entries, as_json)


KEPT = ("key", "refreshed", "model", "calls", "definition")


def _print(entries: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(entries)
        return
    if not entries:
        say("no tables yet")
    width = max((len(entry["name"]) for entry in entries), default=0)
    for entry in entries:
        rows = "dropped" if entry["rows"] is None else f"{entry['rows']:,} row{'s' * (entry['rows'] != 1)}"
        say(printable(f"{entry['name']:<{width}}  {rows}"))
        if entry["definition"] is not None:
            when = entry["refreshed"].strftime("%Y-%m-%d %H:%M UTC")
            say(
                f"{'':<{width}}  KEY ({entry['key']}), refreshed {when}, {entry['calls']:,} calls to {entry['model'] or 'no model'}"
            )
            say(f"{'':<{width}}  {entry['definition']}")
