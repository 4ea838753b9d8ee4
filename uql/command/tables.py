"""`uql tables DATABASE`: the tables of a database; of semantic ones key, model, cost and query; corrections that people made."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from uql.base.printable import printable
from uql.command import options
from uql.command.outcome import UsageError, command, new_app
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

    if not database.is_file():
        raise UsageError(f"there is no database {database}")
    with connect(database, read_only=True, ledger=":memory:") as con:
        names = con.catalog.names()
        counted = [con.catalog.table(tuple(name.split("."))).row_count for name in names]
        made = {row["name"]: row for row in con.uql("FROM uql_tables()").arrow().to_pylist()}
    found = [
        {"name": n, "rows": rows, **{k: made.get(n, {}).get(k) for k in KEPT}}
        for n, rows in zip(names, counted, strict=True)
    ]
    found += [{"name": n, "rows": None, **{k: row[k] for k in KEPT}} for n, row in made.items() if n not in names]
    _print(found, as_json)


KEPT = ("key", "refreshed", "model", "calls", "definition")


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if not found:
        print("no tables yet")
    width = max((len(told["name"]) for told in found), default=0)
    for told in found:
        rows = "dropped" if told["rows"] is None else f"{told['rows']:,} row{'s' * (told['rows'] != 1)}"
        print(printable(f"{told['name']:<{width}}  {rows}"))
        if told["definition"] is not None:
            when = told["refreshed"].strftime("%Y-%m-%d %H:%M UTC")
            print(
                f"{'':<{width}}  KEY ({told['key']}), refreshed {when}, {told['calls']:,} calls to {told['model'] or 'no model'}"
            )
            print(f"{'':<{width}}  {told['definition']}")
