"""Options and arguments that several commands take, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uql.command.outcome import UsageError
from uql.command.output import Format, format_of_file

if TYPE_CHECKING:
    from uql.llm.ledger import Ledger as LedgerFile

Text = str | None
Database = Annotated[Text, typer.Argument(help="A DuckDB file; created if it does not exist. Default: in memory.")]
Model = Annotated[
    Text,
    typer.Option("-m", "--model", help="local, openai:NAME, anthropic:NAME, http://HOST/v1#NAME, oracle:FILE.toml"),
]
Budget = Annotated[Text, typer.Option(help="Maximum number of model calls, or 'all'; 0: cached answers only.")]
MaxCost = Annotated[Text, typer.Option(help="Maximum cost in USD.")]
MaxSeconds = Annotated[Text, typer.Option(help="Maximum time in seconds.")]
Ledger = Annotated[
    Text,
    typer.Option(
        "--ledger", help="The ledger, the cache of answers: a file or postgresql://…; ':memory:' keeps nothing."
    ),
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see uql config show.")
]
Parameters = Annotated[
    list[str] | None, typer.Option("--var", "--param", metavar="NAME=VALUE", help="The value of $NAME in the query.")
]
Csv = Annotated[bool, typer.Option("--csv", help="Write CSV.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")]
Output = Annotated[
    Text,
    typer.Option(
        "-o", "--output", help="Write all rows to this file; .csv .json .jsonl .md .parquet select the format."
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with code 5 if a row has no answer.")]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Refuse every statement that changes the database or writes a file.")
]
NoProgress = Annotated[bool, typer.Option("--no-progress", help="Show no progress.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def existing(database: Path) -> Path:
    """The path of a database that is there. Raises: UsageError."""
    if not database.is_file():
        raise UsageError(f"there is no database {database}")
    return database


def open_ledger(ledger: str | None) -> LedgerFile:
    """The ledger of a path, else that of the settings."""
    from uql.base import config
    from uql.llm.ledger import Ledger as LedgerFile

    return LedgerFile(config.load(ledger=ledger)[0].ledger)


def settings_of(others: Sequence[str] | None = None, **named: Any) -> dict[str, Any]:
    """The settings that were given: by options of their own, where not None, and by `--set`. Raises: UsageError."""
    return {name: value for name, value in named.items() if value is not None} | pairs("--set", others)


def pairs(
    option: str, values: Sequence[str] | None, form: str = "NAME=VALUE", example: str = "budget=64"
) -> dict[str, str]:
    """The values of an option that takes NAME=VALUE, by name. Raises: UsageError.

    Args:
        option: its name, for the error.
        values: as given; None: the option was not.
        form, example: what the error shows.
    """
    by_name = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {value!r} is not {form}", help=f"as {option} {example}")
        by_name[name.strip()] = rest.strip()
    return by_name


def format_of(output: str | None, csv: bool, json: bool, markdown: bool) -> Format:
    """The format that was asked for, else that of the file's name. Raises: UsageError for two of them.

    Args:
        output: the file to write; None: stdout.
    """
    flags: dict[Format, bool] = {"csv": csv, "json": json, "markdown": markdown}
    chosen = [name for name, flag in flags.items() if flag]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} are both given", help="choose one format")
    if chosen:
        return chosen[0]
    return format_of_file(Path(output), "table") if output is not None else "table"
