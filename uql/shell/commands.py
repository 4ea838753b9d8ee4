"""What the dot commands of the shell do. Each takes the shell and its argument, and prints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from uql.command.outcome import UsageError
from uql.command.output import format_of_file
from uql.errors import UQLError

if TYPE_CHECKING:
    from uql.shell.app import Shell

MODES = ("table", "csv", "json", "markdown")


class Leave(Exception):
    """The user wants to go."""


def why(shell: Shell, argument: str) -> None:
    """the answers behind a row of the last result: .why 3 (rows count from 1)"""
    result = shell.need_last()
    if result is None:
        return
    number = argument.strip() or "1"
    if not number.isdigit() or int(number) < 1:
        shell.say(f"error: .why takes the number of a row, from 1 on, not {number!r}")
        return
    try:
        shell.say(str(result.why(int(number) - 1)))
    except IndexError:
        shell.say(f"error: the last result has {len(result):,} rows")


def errors(shell: Shell, argument: str) -> None:
    """the rows of the last result without an answer"""
    result = shell.need_last()
    if result is None:
        return
    if not result.errors:
        shell.say("every row that was asked has an answer")
    for error in result.errors[:50]:
        shell.say(f'row {error.row}: "{error.clause}": {error.kind}: {error.message}')
    if len(result.errors) > 50:
        shell.say(f"… and {len(result.errors) - 50:,} more")


def cost(shell: Shell, argument: str) -> None:
    """what the last statement and the session have cost"""
    from uql.render import cost_line

    if shell.last is not None:
        shell.say("last:    " + (cost_line(shell.last.cost) or "nothing was asked"))
    shell.say("session: " + (cost_line(shell.total) or "nothing was asked"))


def explain(shell: Shell, argument: str) -> None:
    """the plan and price of a statement, or of the last one; asks nobody"""
    text = argument.strip().rstrip(";") or shell.statement.rstrip().rstrip(";")
    if not text:
        shell.say("there is no statement yet: .explain SELECT …")
        return
    shell.say(shell.con.uql(text).explain())


def last(shell: Shell, argument: str) -> None:
    """the last result again"""
    result = shell.need_last()
    if result is not None:
        shell.show(result)


def mode(shell: Shell, argument: str) -> None:
    """how rows are shown: table, csv, json, markdown"""
    wanted = argument.strip().lower()
    if wanted in MODES:
        shell.mode = wanted
    else:
        shell.say(f"rows are shown as {shell.mode}; choices: {', '.join(MODES)}")


def once(shell: Shell, argument: str) -> None:
    """write the next result to a file: .once rows.csv (.csv .json .jsonl .md .parquet)"""
    if not argument.strip():
        shell.say("error: .once takes the name of a file")
        return
    path = Path(argument.strip()).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        shell.say(f"error: {path} cannot be written")
        return
    try:
        format_of_file(path, "csv")
    except UsageError as error:
        shell.say(f"error: {error}")
        return
    shell.once = path
    shell.say(f"the next result goes to {path}")


def rerun(shell: Shell, argument: str) -> None:
    """run the last statement again; what was answered is not asked again"""
    if shell.statement:
        shell.run(shell.statement)
    else:
        shell.say("there is no statement yet")


def tables(shell: Shell, argument: str) -> None:
    """the tables and their columns: .tables, .tables reviews"""
    names = [argument.strip()] if argument.strip() else shell.con.catalog.names()
    if not names:
        shell.say("there are no tables; FROM 'file.csv' reads a file")
    for name in names:
        table = shell.con.catalog.table(tuple(name.split(".")))
        columns = ", ".join(
            f"{f.name} {f.type.lower()}" + (f" ({f.modality})" if f.modality != "structured" else "")
            for f in table.fields
        )
        shell.say(f"{name} ({table.row_count:,} rows): {columns}")


def help(shell: Shell, argument: str) -> None:
    """this list"""
    width = max(map(len, COMMANDS))
    shell.say('A statement ends with ; and may have several lines. "…" is a text that a model is asked, row by row.')
    for name, command in COMMANDS.items():
        shell.say(f"{name:<{width}}  {command.__doc__}")
    shell.say(f"{'? question':<{width}}  an answer to a question in words, with the UQL that it is made by")


def quit(shell: Shell, argument: str) -> None:
    """leave, as Ctrl-D does"""
    raise Leave


COMMANDS: dict[str, Callable[[Shell, str], None]] = {
    ".why": why,
    ".errors": errors,
    ".cost": cost,
    ".explain": explain,
    ".last": last,
    ".mode": mode,
    ".once": once,
    ".rerun": rerun,
    ".tables": tables,
    ".help": help,
    ".quit": quit,
}


def run(shell: Shell, line: str) -> None:
    """One dot command. Raises Leave."""
    from difflib import get_close_matches

    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name.lower().rstrip(";"))
    if command is None:
        close = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        shell.say(f"error: there is no command {name}; {hint}.help lists them")
        return
    try:
        command(shell, argument.rstrip(";"))
    except UQLError as error:
        shell.say(f"error: {error}")
