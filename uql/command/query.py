"""`uql [database] -c 'query'`: run a query and write its rows."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import uql
from uql.base.errors import DataError
from uql.base.postgres_url import without_password
from uql.base.printable import printable
from uql.base.sql_text import DATA_FILES, first_line
from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app
from uql.command.output import Format, Output

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result
    from uql.engine.outcome import Outcome

_SHOWN_ERRORS = 10
# DuckDB's words where another process holds the file, and only reads it
READABLE = "open this database in read-only mode"


_NO_ROWS: tuple[list[str], ...] = ([], ["Count"], ["Success"])  # the columns of a statement that is not a query


@dataclass(frozen=True, slots=True)
class Request:
    """One run of the query command, its arguments checked as far as that needs no engine."""

    text: str
    format: Format = "table"
    output: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dry_run: bool = False
    strict: bool = False
    progress: bool = True
    each: bool = False  # JSON holds the result of every statement, not the rows of the last


def app(commands: Mapping[str, tuple[str, str]]) -> typer.Typer:
    """The typer app of the query command; its help ends in the sub-commands."""
    width = max(map(len, commands)) + 2
    others = "\n".join(f"uql {name:<{width}}{says}" for name, (_, says) in commands.items())
    application = new_app()
    command(
        application,
        epilog=f"Other commands:\n\n{others}\n\nExit codes: 0 ok, 1 query error, 2 usage or configuration, "
        "3 model unreachable or missing, 4 a limit was reached (partial result written), "
        "5 rows without an answer under --strict, 130 interrupted.",
    )(_query)
    return application


def _way(database: str, text: str) -> str:
    """How a query, or a question in words, is written on the command line. `database`: with a blank behind it, or ""."""
    from uql.compiler.syntax_errors import QUESTION_WORDS

    if text.endswith("?") or text.partition(" ")[0].lower() in QUESTION_WORDS:
        return f"a question in words: uql ask {database}{text!r}"
    return f"a query goes after -c: uql {database}-c {text!r}"


def refuse_mistaken_database(words: Sequence[str], commands: Mapping[str, Any]) -> None:
    """Say what was probably meant where the first words are not a database and an option: a misspelt sub-command, a query without -c."""
    first, second = (*words[:2], "", "")[:2]
    if first and second and not first.startswith("-") and not second.startswith("-") and _has_blank(second):
        raise UsageError(f"{second[:60]!r} is not an option", help=_way(f"{first} ", second[:60]))
    if not first or first.startswith("-") or Path(first).exists():
        return
    if _has_blank(first):
        raise UsageError(f"there is no database {first[:60]!r}", help=_way("", first[:60]))
    if not {"-c", "--command", "-f", "--file"} & set(words):
        close = ["--help"] if first == "help" else get_close_matches(first, commands, 1, cutoff=0.6)
        hint = f"did you mean uql {close[0]}? " if close else ""
        names = ", ".join(commands)
        raise UsageError(f"there is no command or database {first!r}", help=f"{hint}commands: {names}; see uql --help")


def _has_blank(word: str) -> bool:
    return any(char.isspace() for char in word)


def _query(
    database: options.Database = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            "--command",
            help="The query; without -c and -f it is read from standard input. Several are run in order, as one script.",
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option("-f", "--file", help="A file with the query; - is standard input.")
    ] = None,
    csv: options.Csv = False,
    as_json: options.Json = False,
    markdown: options.Markdown = False,
    output: options.Output = None,
    model: options.Model = None,
    budget: options.Budget = None,
    confidence: Annotated[
        str | None, typer.Option(help="Confidence of intervals and guarantees, such as 0.95.")
    ] = None,
    max_cost: options.MaxCost = None,
    max_seconds: options.MaxSeconds = None,
    seed: Annotated[str | None, typer.Option(help="Seed of the random numbers.")] = None,
    ledger: options.Ledger = None,
    settings: options.Set = None,
    parameters: options.Parameters = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Cached answers only; a row without one is an error.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and its price; make no calls.")] = False,
    strict: options.Strict = False,
    read_only: options.ReadOnly = False,
    no_progress: options.NoProgress = False,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> int:
    """SQL that can ask an LLM about each row: a double-quoted text is a condition or a column whose values come from a model.

    uql -c "SELECT COUNT(*) FROM 'reviews.csv' WHERE \\"the review complains about the plot\\""
    """
    if version:
        from uql import __version__

        print(f"uql {__version__}")
        return 0
    request = Request(
        text=text_of(None if command is None else "\n;\n".join(filter(str.strip, command)), file),
        format=options.format_of(output, csv, as_json, markdown),
        output=Path(output) if output is not None else None,
        parameters=constants(parameters),
        dry_run=dry_run,
        strict=strict,
        progress=not no_progress,
    )
    values = options.settings_of(
        settings,
        model=model,
        budget=budget,
        confidence=confidence,
        max_cost=max_cost,
        max_seconds=max_seconds,
        seed=seed,
        ledger=ledger,
        offline=offline or None,
    )
    return answer(database, values, request, read_only)


def answer(database: str | None, settings: Mapping[str, Any], request: Request, read_only: bool) -> int:
    """Open the database and the place for the rows, and `execute`.

    Args:
        database: the path of a file; None: in memory.
        settings: that were given, by name.
        request: the statements, and what is wanted of them.
        read_only: statements that change something are refused.
    """
    from uql.base import config

    for name, meant in config.misspelt_variables().items():
        narrate(f"{name} means nothing; did you mean {meant}?", "warning")
    with Output.open(request.output, request.format) as out, connect(database, settings, read_only=read_only) as con:
        return execute(con, request, out)


# ------------------------------------------------------------------------------------------------------------ arguments
def text_of(command: str | None, file: str | None) -> str:
    """The query, from -c, -f or standard input."""
    if command is not None and file is not None:
        raise UsageError("-c and -f are both given", help="give the query once")
    if command is not None:
        text, where = command, "-c"
    elif file is not None and file != "-":
        path = Path(file)
        if not path.is_file():
            help = _way("", file[:60]) if _has_blank(file) else None
            raise UsageError(f"there is no file {file}" if not path.exists() else f"{file} is not a file", help=help)
        text, where = _decode(path.read_bytes(), file), file
    elif file == "-" or not sys.stdin.isatty():
        source = getattr(sys.stdin, "buffer", None)
        text, where = _decode(source.read(), "standard input") if source else sys.stdin.read(), "standard input"
    else:
        raise UsageError(
            "no query",
            help="uql [database] -c 'SELECT …', -f FILE, or pipe one in; `uql shell` and `uql ui` take many; see uql --help",
        )
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


def constants(values: Sequence[str] | None) -> dict[str, Any]:
    """The values of parameters, given as NAME=VALUE. Raises: UsageError."""
    return {name: _constant(value) for name, value in options.pairs("--var", values, example="day=2026-01-01").items()}


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
def execute(con: Connection, request: Request, output: Output) -> int:
    """Run the query, write its rows to stdout and its notes and warnings to stderr.

    Of several statements all run, in order, once the whole script is checked. As a table or as Markdown the rows of each are
    written; the other formats hold one table, that of the last, and it is said what is left out, but with `each` one JSON
    document that holds all.

    Args:
        request: the statements, and what is wanted of them.
    Returns: the highest exit code of the statements.
    """
    from uql.show.render import as_document

    if request.dry_run:
        from uql.command.script import plans

        for plan_text in plans(con, request.text, request.parameters):
            output.text(plan_text)
        return Code.OK
    statements = con.script(request.text, request.parameters)
    documents: list[dict[str, Any]] = []
    together = request.each and request.format == "json"
    every = together or request.format in ("table", "markdown")
    write = (lambda outcome: documents.append(as_document(outcome))) if together else output.rows
    left_out, code = 0, Code.OK

    def leave_out(outcome: Outcome) -> None:
        nonlocal left_out
        left_out += outcome.table.column_names not in _NO_ROWS

    try:
        for number, make in enumerate(statements, 1):
            left = len(statements) - number
            ended = run(con, make, write if every or not left else leave_out, request)
            code = max(code, ended)
            if ended in (Code.INTERRUPTED, Code.QUERY):
                if left:
                    narrate(f"statement {number} of {len(statements)}; the {left} after it were not run")
                break
    finally:
        if together:
            output.text(json.dumps(documents, ensure_ascii=False, indent=2))
        if left_out:
            rows = f"the rows of {left_out} statement{'s' * (left_out > 1)} before the last"
            narrate(f"{rows} are not written: {request.format} holds one table", "note")
    return code


def run(con: Connection, make: Callable[[], Result], write: Callable[[Outcome], None], request: Request) -> Code:
    """Run one statement with its progress on stderr, and give its rows to `write`.

    Args:
        request: progress and strictness.
    Returns: the exit code.
    """
    import duckdb

    from uql.show.progress import Progress

    try:
        with Progress(enabled=request.progress).of(con.on_event):
            outcome = make().run()
    except KeyboardInterrupt:
        kept = (
            "the ledger is in memory: no answer is kept"
            if _forgets(con)
            else f"what was answered is in the ledger{_continued(con)}"
        )
        narrate(f"interrupted; {kept}")
        return Code.INTERRUPTED
    except duckdb.Error as error:
        narrate(f"DuckDB: {error}", "error")
        return Code.QUERY
    write(outcome)
    code = _say(outcome, request.strict)
    if code == Code.BUDGET:
        narrate(f"partial{_continued(con)}")
    return code


def _continued(con: Connection) -> str:
    """How the run goes on, where its ledger outlives it."""
    if not con.last_run or _forgets(con):
        return ""
    ledger = without_password(con.configured.ledger or "")
    return f"; continue it with: uql resume {con.last_run}" + (f" --ledger {shlex.quote(ledger)}" if ledger else "")


def _forgets(con: Connection) -> bool:
    return con.configured.ledger == ":memory:"


def _say(outcome: Outcome, strict: bool) -> Code:
    """Tell what stands beside the rows; how the statement ended."""
    from uql.show import render

    for line in render.footer(outcome, resume=""):
        narrate(printable(line))
    if strict and outcome.errors:
        for error in outcome.errors[:_SHOWN_ERRORS]:
            narrate(printable(f"row {error.row}: {error.kind}: {error.message}"), "failed")
    if outcome.partial:
        return Code.BUDGET
    return Code.FAILED_ROWS if strict and outcome.errors else Code.OK


@contextmanager
def connect(
    database: str | None, settings: Mapping[str, Any], *, read_only: bool = False, files: bool = True
) -> Iterator[Connection]:
    """The database, open; a file that is none is an error of usage, not of the query.

    Args:
        database: the path of a file; None: in memory.
        settings: that were given, by name.
        read_only: statements that change something are refused, and the file is opened so too; as it is where another process,
            such as `uql ui`, has it open for reading. DuckDB's settings are locked then: a view of the file may call what sets them.
        files: may a session that only reads read files and addresses other than those in columns that say so?
    Raises: UsageError.
    """
    import duckdb

    if database is not None and database != ":memory:":
        path = Path(database)
        if path.is_dir():
            raise UsageError(f"{database} is a folder, not a database", help="files in it: FROM 'folder/*.parquet'")
        if path.suffix.lower() in DATA_FILES:
            raise UsageError(f"{database} is not a database", help=f"uql -c \"SELECT … FROM '{database}'\"")
        if not path.exists():
            if read_only:
                raise UsageError(f"there is no database {database}")
            if not path.parent.is_dir():
                raise UsageError(f"there is no folder {path.parent}")
            narrate(f"{database} was not there: a new database", "note")
    with ExitStack() as opened:
        try:
            con = None
            if not read_only or database in (None, ":memory:"):
                try:
                    con = uql.connect(database, **settings)
                except DataError as error:
                    if READABLE not in error.message:
                        raise UsageError(error.message, help=error.help) from None
                    narrate(f"another process has {database} open: this one only reads it", "note")
                    read_only = True
            if con is None:
                duck = opened.enter_context(duckdb.connect(str(database), read_only=True))
                con = uql.attach(duck, **settings)
        except duckdb.Error as error:
            raise UsageError(f"the database {database} cannot be opened: {first_line(error)}") from None
        if read_only:
            con.only_read()
            con.catalog.lock_settings(files=files)
            if not files:
                con.session.files = con.catalog.files_in_rows()
        yield opened.enter_context(con)
