"""`uql shell [database]`: statements one after another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from uql.command import outcome
from uql.command.outcome import Code, UsageError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def shell(
    database: Annotated[
        str | None, typer.Argument(help="A DuckDB file; made when it is not there. Without it: in memory.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="As in uql -c.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see uql config show.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every statement that changes something, a file too.")
    ] = False,
) -> None:
    """Ask, look, ask again. A statement ends with ; and .help lists what else there is."""

    def run() -> int:
        from uql.command.query import Request, connect, pairs

        try:
            import prompt_toolkit
            import pygments  # noqa: F401
        except ImportError:
            raise UsageError("the shell needs prompt_toolkit", help="pip install 'uql-engine[shell]'") from None
        del prompt_toolkit
        given = pairs("--set", settings) | ({"model": model} if model is not None else {})
        request = Request(text="", database=database, settings=given, read_only=read_only)
        if not sys.stdin.isatty():
            raise UsageError("the shell needs a terminal", help="uql -f FILE runs a script, and so does a pipe")
        with connect(request) as con:
            from uql.shell.app import Shell

            name = Path(database).stem if database not in (None, ":memory:") else "memory"
            return Code(Shell(con, str(name), color=outcome.colored(sys.stdout)).loop())

    raise typer.Exit(outcome.run(run))
