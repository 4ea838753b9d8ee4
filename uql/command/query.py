"""`uql [database] -c 'query'`: run a query and write its rows."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uql.base.printable import printable
from uql.command import outcome
from uql.command.outcome import Code, UsageError, narrate
from uql.command.output import Format, Output, format_of_file

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

_DATA_FILES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
_SHOWN_ERRORS = 10


@dataclass(frozen=True, slots=True)
class Request:
    """One run of the query command, its arguments checked as far as that needs no engine."""

    text: str
    database: str | None = None
    format: Format = "table"
    output: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    strict: bool = False
    read_only: bool = False
    progress: bool = True


def app(commands: Mapping[str, tuple[str, str]]) -> typer.Typer:
    """The typer app of the query command; its help ends in the sub-commands."""
    others = "\n\n".join(f"uql {name}: {says}" for name, (_, says) in commands.items())
    made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    made.command(
        epilog=f"Other commands:\n\n{others}\n\nExit codes: 0 ok, 1 query error, 2 usage or configuration, "
        "3 model unreachable or missing, 4 a limit was reached (partial result written), "
        "5 rows without an answer under --strict, 130 interrupted.",
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_query)
    return made


def refuse_mistaken_database(words: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Say what was probably meant where the first word is no database: a misspelt sub-command, a query without -c."""
    first = words[0] if words else ""
    if not first or first.startswith("-") or Path(first).exists():
        return
    if any(char.isspace() for char in first):
        raise UsageError(f"there is no database {first[:60]!r}", help=f"a query goes after -c: uql -c {first[:60]!r}")
    if not {"-c", "--command", "-f", "--file"} & set(words):
        close = get_close_matches(first, commands, 1, cutoff=0.6)
        hint = f"did you mean uql {close[0]}? " if close else ""
        known = ", ".join(commands)
        raise UsageError(f"there is no command or database {first!r}", help=f"{hint}commands: {known}; see uql --help")


def _query(
    database: Annotated[
        str | None, typer.Argument(help="A DuckDB file; made when it is not there. Without it: in memory.")
    ] = None,
    command: Annotated[
        str | None, typer.Option("-c", "--command", help="The query. Else -f, else standard input.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--file", help="A file with the query; - is standard input.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON array.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write a Markdown table.")] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="Write to this file, all rows; .csv .json .jsonl .md .parquet choose the format."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="local, openai:NAME, anthropic:NAME, http://HOST/v1#NAME, oracle:FILE.toml"),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Model calls at most, or 'all'; 0: the ledger alone.")] = None,
    confidence: Annotated[str | None, typer.Option(help="Of intervals and guarantees, as 0.95.")] = None,
    max_cost: Annotated[str | None, typer.Option(help="USD at most.")] = None,
    max_seconds: Annotated[str | None, typer.Option(help="Seconds at most.")] = None,
    seed: Annotated[str | None, typer.Option(help="Of everything random.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="File of the answers already paid for; ':memory:' keeps none of them.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see uql config show.")
    ] = None,
    parameters: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="The value of $NAME in the query.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Answers of the ledger alone; a row that it does not have is an error.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and its price; make no calls.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 when a row has no answer.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse every statement that changes something, a file too.")
    ] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Say nothing while running.")] = False,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """SQL in which a double-quoted text may stand where a column may stand: a model says its value, row by row.

    uql -c "SELECT COUNT(*) FROM 'reviews.csv' WHERE \\"the review complains about the plot\\""
    """

    def run() -> int:
        if version:
            from uql import __version__

            print(f"uql {__version__}")
            return 0
        named: dict[str, Any] = {"model": model, "budget": budget, "confidence": confidence, "max_cost": max_cost}
        named |= {"max_seconds": max_seconds, "seed": seed, "ledger": ledger, "offline": offline or None}
        request = Request(
            text=_text(command, file),
            database=database,
            format=format_of({"csv": csv, "json": as_json, "markdown": markdown}, output),
            output=Path(output) if output is not None else None,
            settings={name: value for name, value in named.items() if value is not None} | pairs("--set", settings),
            parameters={name: _constant(value) for name, value in pairs("--param", parameters).items()},
            dry_run=dry_run,
            strict=strict,
            read_only=read_only,
            progress=not no_progress,
        )
        return execute(request)

    raise typer.Exit(outcome.run(run))


# ------------------------------------------------------------------------------------------------------------ arguments
def _text(command: str | None, file: str | None) -> str:
    """The query, from -c, -f or standard input."""
    if command is not None and file is not None:
        raise UsageError("-c and -f are both given", help="give the query once")
    if command is not None:
        text, where = command, "-c"
    elif file is not None and file != "-":
        path = Path(file)
        if not path.is_file():
            raise UsageError(f"there is no file {file}" if not path.exists() else f"{file} is not a file")
        text, where = _decode(path.read_bytes(), file), file
    elif file == "-" or not sys.stdin.isatty():
        source = getattr(sys.stdin, "buffer", None)
        text, where = _decode(source.read(), "standard input") if source else sys.stdin.read(), "standard input"
    else:
        raise UsageError("no query", help="uql [database] -c 'SELECT …', -f FILE, or pipe one in; see uql --help")
    if not text.strip():
        raise UsageError(f"no query: {where} is empty", help="uql [database] -c 'SELECT …'; see uql --help")
    return text


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = data[error.start]
        raise UsageError(
            f"{where} is not UTF-8: byte 0x{bad:02x} at offset {error.start}", help="save it as UTF-8"
        ) from None


def format_of(flags: Mapping[str, bool], output: str | None) -> Format:
    chosen = [name for name, given in flags.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} are both given", help="choose one format")
    if chosen:
        return {"csv": "csv", "json": "json", "markdown": "markdown"}[chosen[0]]  # type: ignore[return-value]
    return format_of_file(Path(output), "table") if output is not None else "table"


def pairs(option: str, values: Sequence[str] | None) -> dict[str, str]:
    pairs = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{option} {value!r} is not NAME=VALUE", help=f"as {option} budget=64")
        pairs[name.strip()] = rest.strip()
    return pairs


def _constant(value: str) -> Any:
    """The value of a parameter: a number, true, false or null as JSON writes them, else the text, also without its '…'.

    >>> [_constant(v) for v in ("12", "1.5", "true", "null", "'12'", "late")]
    [12, 1.5, True, None, '12', 'late']
    """
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(parsed, list | dict | str) else parsed


# -------------------------------------------------------------------------------------------------------------- running
def execute(request: Request) -> int:
    """Run the query, write its rows, say on stderr what has to be said of them.

    Of several statements all run, in order. As a table or as Markdown the rows of each are written; the other formats hold
    one table, that of the last.
    """
    from uql.base import config
    from uql.command.script import pieces, plan

    for name, meant in config.misspelt_variables().items():
        narrate(f"{name} means nothing; did you mean {meant}?", "warning")
    statements = pieces(request.text)
    code = Code.OK
    with Output.open(request.output, request.format) as output, connect(request) as con:
        for number, (statement, source) in enumerate(statements, 1):
            if request.dry_run:
                output.text(plan(con, statement, source, request.parameters))
                continue
            last = number == len(statements)
            shown = output if last or request.format in ("table", "markdown") else None
            ended = run(con, partial(con.uql, source, request.parameters), shown, request)
            if ended in (Code.INTERRUPTED, Code.QUERY):
                if not last:
                    narrate(
                        f"statement {number} of {len(statements)}; the {len(statements) - number} after it were not run"
                    )
                return ended
            code = max(code, ended)
    return code


def run(con: Connection, make: Callable[[], Result], output: Output | None, request: Request) -> Code:
    """Run one statement with its progress on stderr, and write its rows where there is an output for them."""
    import duckdb

    from uql.show.progress import Progress

    try:
        with Progress(enabled=request.progress) as progress:
            stop = con.on_event(progress)
            try:
                result = make()
                data = result.arrow(intervals=False)
            finally:
                stop()
    except KeyboardInterrupt:
        narrate(f"interrupted; what was answered is in the ledger{_continued(con)}")
        return Code.INTERRUPTED
    except duckdb.Error as error:
        narrate(f"DuckDB: {error}", "error")
        return Code.QUERY
    if output is not None:
        output.rows(data, result)
    code = _say(result, request.strict)
    if code == Code.BUDGET:
        narrate(f"partial{_continued(con)}")
    return code


def _continued(con: Connection) -> str:
    """How the run goes on, where its ledger outlives it."""
    if not con.last_run:
        return ""
    ledger = con.configured.ledger
    return f"; continue it with: uql resume {con.last_run}" + (f" --ledger {shlex.quote(ledger)}" if ledger else "")


def _say(result: Result, strict: bool) -> Code:
    """Tell what stands beside the rows; how the statement ended."""
    from uql.show import render

    for line in render.footer(result):
        narrate(printable(line))
    if strict and result.errors:
        for error in result.errors[:_SHOWN_ERRORS]:
            narrate(printable(f"row {error.row}: {error.kind}: {error.message}"), "failed")
    if result.partial:
        return Code.BUDGET
    return Code.FAILED_ROWS if strict and result.errors else Code.OK


@contextmanager
def connect(request: Request) -> Iterator[Connection]:
    """The database, open; a file that is none is an error of usage, not of the query."""
    import duckdb

    import uql
    from uql.base.errors import DataError

    database = request.database
    if database is not None and database != ":memory:":
        path = Path(database)
        if path.is_dir():
            raise UsageError(f"{database} is a folder, not a database", help="files in it: FROM 'folder/*.parquet'")
        if path.suffix.lower() in _DATA_FILES and path.exists():
            raise UsageError(f"{database} is not a database", help=f"uql -c \"SELECT … FROM '{database}'\"")
        if not path.exists():
            if request.read_only:
                raise UsageError(f"there is no database {database}")
            if not path.parent.is_dir():
                raise UsageError(f"there is no folder {path.parent}")
            narrate(f"{database} was not there: a new database", "note")
    with ExitStack() as opened:
        try:
            if request.read_only and database not in (None, ":memory:"):
                read_only = opened.enter_context(duckdb.connect(database, read_only=True))
                con = uql.attach(read_only, **request.settings)
            else:
                con = uql.connect(database, **request.settings)
        except duckdb.Error as error:
            raise UsageError(f"the database {database} cannot be opened: {str(error).splitlines()[0]}") from None
        except DataError as error:
            raise UsageError(error.message, help=error.help) from None
        if request.read_only:
            con.only_read()
        yield opened.enter_context(con)
