"""`uql model init | check`: the semantic model of a database, `uql.model.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uql.base.errors import UQLError
from uql.base.printable import printable
from uql.base.schema import Table
from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app, say
from uql.nl.small.vote import key_of

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.nl.ask.answer import Answer

app = new_app("What questions in words need to know of a database: uql.model.toml beside it (docs/questions.md).")
Database = Annotated[Path, typer.Argument(help="A DuckDB database.")]


@command(app)
def init(database: Database) -> None:
    """Write a first uql.model.toml beside a database: its tables and columns, and the joins that were found. Makes no calls."""
    from uql.api.opening import connect
    from uql.nl.schema import semantic_model
    from uql.nl.schema.discover import discover

    path = options.existing(database).parent / semantic_model.FILE
    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already: edit it")
    with connect(database, read_only=True, ledger=":memory:") as con:
        names = con.catalog.names()
        if not names:
            raise UsageError(f"{database} has no tables")
        scope = discover("", con.catalog, None, most=len(names))
        found = sorted(scope.sources.values(), key=lambda source: source.origin)
        tables = [Table(source.origin, "", source.fields, source.row_count, source.description) for source in found]
        with path.open("x", encoding="utf-8") as file:  # and not through a link that leads to no file yet
            file.write(semantic_model.proposed(tables, scope.links))
    say(path)


@command(app)
def check(
    database: Database,
    ask: Annotated[bool, typer.Option("--ask", help="Ask each question anew, and compare the rows.")] = False,
    model: options.Model = None,
) -> int:
    """Read uql.model.toml, and run its metrics and verified questions. Exit code 1 where one fails, or with --ask gives other rows."""
    from uql.command.one_query import one_query
    from uql.command.query import connect
    from uql.llm.budget import Budget
    from uql.nl.schema import semantic_model

    path = options.existing(database).parent / semantic_model.FILE
    if not path.is_file():
        raise UsageError(f"there is no {path}: uql model init {database}")
    description = semantic_model.read(path)
    wrong = 0
    with connect(str(database), options.settings_of(None, model=model), read_only=True, files=False) as con:
        # without a limit of its own: the file, which somebody may have sent, sets no setting that asks for trust
        con.session.caps = (Budget(),)
        checks = [(f"metric {name}", "", uql) for name, (_, uql) in description.metrics.items()]
        checks += [(each.question, each.question, each.uql) for each in description.verified]
        for called, question, uql in checks:
            try:
                table = one_query(con, uql).arrow()
                same = not ask or not question or _same(table, con.ask(question))
                message = (
                    f"{table.num_rows:,} row{'s' * (table.num_rows != 1)}" if same else "other rows when asked anew"
                )
            except UQLError as error:
                same, message = False, error.message
            wrong += not same
            say(f"{'ok' if same else 'FAILS':<5}  {printable(called)}: {printable(message)}")
    narrate(f"{len(checks) - wrong} of {len(checks)} hold")
    return Code.QUERY if wrong else Code.OK


def _same(table: pa.Table, answer: Answer) -> bool:
    """Has one of the results that the answer rests on these rows, in any order of rows and columns?"""
    results = [answer.results[name].table for name in answer.rests_on if name in answer.results]
    return any(result is not None and key_of(result) == key_of(table) for result in results)
