"""The shell: reads statements, prices them, runs them, shows them."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import duckdb
from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import AnyFormattedText, FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import style_from_pygments_cls

from uql.api.background import run_interruptible
from uql.base.errors import UQLError, UQLSyntaxError
from uql.base.names import suggestion
from uql.base.printable import printable, printable_lines
from uql.base.user_folder import user_folder
from uql.command.outcome import UsageError
from uql.command.output import Output, format_of_file
from uql.command.script import pieces
from uql.compiler.parser import parse, parse_script, tree_of
from uql.compiler.syntax import Explain, Query, Select, Union
from uql.llm.run_record import Cost
from uql.shell.completion import UQLCompleter, texts_in
from uql.shell.lexer import UQLLexer, highlighted, style
from uql.show import render
from uql.show.progress import Progress
from uql.show.render import cost_line

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output as Terminal

    from uql.api.connection import Connection
    from uql.api.result import Result

MODES = ("table", "csv", "json", "markdown")
TWICE_S = 2.0  # within which a second Ctrl-C leaves


class Leave(Exception):
    """The user wants to go."""


def history_file() -> Path:
    """$UQL_HOME/history, else in the user's data folder."""
    return user_folder() / "history"


class Shell:
    """One session over a connection.

    Args:
        con: where statements run; left open.
        name: of the database, for the prompt.
        input, output: of prompt_toolkit, for tests; None: the terminal.
        out: where everything is printed; None: standard output.
        color: may what is printed be coloured?

    Attributes:
        last: the last result.  statement: the last text.  total: what the session has cost.
        mode: how rows are shown.  once: a file for the next result.
    """

    def __init__(
        self,
        con: Connection,
        name: str = "memory",
        *,
        input: Input | None = None,
        output: Terminal | None = None,
        out: IO[str] | None = None,
        color: bool = False,
        keep_history: bool = True,
    ) -> None:
        self.con, self.name, self.color = con, name, color
        self.out = sys.stdout if out is None else out
        self.last: Result | None = None
        self.statement, self.mode = "", "table"
        self.once: Path | None = None
        self.total = Cost()
        self._resources = ExitStack()
        self._texts: list[str] = []
        self._checked = "", ""
        self._interrupted_at = float("-inf")
        self._history = _history() if keep_history else InMemoryHistory()
        self._session: PromptSession[str] = PromptSession(
            message=self._prompt,
            multiline=True,
            prompt_continuation=self._continuation,
            lexer=PygmentsLexer(UQLLexer),
            style=style_from_pygments_cls(style()) if color else None,
            completer=UQLCompleter(self._tables, self._columns, lambda: self._texts, _described()),
            complete_while_typing=False,
            history=self._history,
            key_bindings=_keys(),
            enable_history_search=True,
            bottom_toolbar=self._mistake_shown,
            input=input,
            output=output,
        )
        for entry in list(self._history.load_history_strings())[:500]:
            self._remember(entry)

    # ------------------------------------------------------------------------------------------------------------- loop
    def loop(self) -> int:
        """Reads and runs until the user leaves. Returns the exit code."""
        self.say('UQL shell. A statement ends with ; – .help says more, "? question" asks in words, Ctrl-D leaves.')
        with self._resources:
            return self._loop()

    def _loop(self) -> int:
        while True:
            try:
                line = self._session.prompt()
            except EOFError:
                return 0
            except KeyboardInterrupt:
                if self._twice():
                    return 130
                self.say("(Ctrl-C again leaves)")
                continue
            try:
                self.handle(line)
            except Leave:
                return 0
            except KeyboardInterrupt:
                return 130

    def handle(self, line: str) -> None:
        """One input: a dot command, a question, or statements. Raises Leave; KeyboardInterrupt where Ctrl-C came twice."""
        text = line.strip()
        if not text or not text.rstrip(";").strip():
            return
        if _is_command(text):
            run_command(self, text)
        elif text.startswith("?"):
            self._ask(text[1:].strip().rstrip(";").strip())
        else:
            self.run(text)

    def run(self, text: str) -> None:
        """Runs statements, each shown as it is done. An error ends them."""
        self.statement = text
        try:
            for _, source in pieces(text):
                self._remember(source)
                if not self._one(source):
                    return
        except UQLError as error:
            self.say(f"error: {error}")

    def _one(self, source: str) -> bool:
        """Prices, runs and shows one statement. False where the user did not want it, or ended it."""
        result = None if _writes(source) else self.con.uql(source)
        if result is not None and not self._agreed(result):
            self.say("not run")
            return False
        self.last = self._in_background(lambda: result if result is not None else self.con.uql(source))
        self.total += self.last.cost
        self.show(self.last)
        return not self.last.partial

    def _in_background(self, begin: Callable[[], Result]) -> Result:
        """Runs so that Ctrl-C can end it: the first sends nothing more and keeps what was answered, the second leaves."""

        def interrupted() -> None:
            if self._twice():
                raise KeyboardInterrupt
            self.con.interrupt()
            self.say("stopping; what was answered is kept (Ctrl-C again leaves)")

        with Progress(enabled=sys.stderr.isatty()).of(self.con.on_event):
            return run_interruptible(begin, interrupted)

    def _agreed(self, result: Result) -> bool:
        """Shows the price of a statement that asks a model, and where it is above `confirm_over` asks whether to go on."""
        quote = result.quote()
        if quote.calls.high < 1:
            return True
        limit = self.con.configured.confirm_over
        line = render.price_line(quote)
        if limit is None or quote.usd is None or quote.usd.high <= limit:
            if quote.calls.expected >= 100:
                self.say(line)
            return True
        self.say(f"{line}; more than confirm_over = ${limit:g}")
        return self._yes()

    def _yes(self, *, in_thread: bool = False) -> bool:
        prompt_session: PromptSession[str] = PromptSession(input=self._session.input, output=self._session.output)
        try:
            return prompt_session.prompt("Go on? [y/N] ", in_thread=in_thread).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def _ask(self, question: str) -> None:
        """An answer to a question in words: the UQL first, then what it found."""
        if not question:
            self.say("? takes a question: ? which complaints are the most frequent")
            return

        def planned(price: Any, plan: Any) -> bool:
            progress.hide()
            return self._planned(price, plan)

        try:
            with Progress(enabled=sys.stderr.isatty()).of(self.con.on_event) as progress:
                # so that every plan is shown first
                answer = self.con.ask(question, confirm=planned, confirm_over=-1.0)
        except UQLError as error:
            self.say(f"error: {error}")
            return
        except KeyboardInterrupt:
            if self._twice():
                raise
            self.say("stopped; what was answered is kept")
            return
        self.total += answer.cost
        self.say("\n".join([answer.shown, *answer.notes] if answer.answered else [str(answer)]))
        for reading in answer.readings[1:]:
            self.say(f"may also mean: {reading}")

    def _planned(self, price: Any, plan: Any) -> bool:
        """Shows the plan of a question before it runs; where it is dear, asks."""
        self.say(highlighted(str(plan), color=self.color))
        limit = self.con.configured.confirm_over
        if limit is None or price.usd_most is None or price.usd_most <= limit:
            return True
        self.say(f"{price}; more than confirm_over = ${limit:g}")
        return self._yes(in_thread=True)

    # ---------------------------------------------------------------------------------------------------------- showing
    def show(self, result: Result) -> None:
        """The rows in the mode of the shell, or in the file of `.once`; beneath them what has to be said."""
        outcome, path = result.run(), self.once
        self.once = None
        if path is not None:
            with Output.open(path, format_of_file(path, "csv")) as file:
                file.rows(outcome)
            rows = outcome.table.num_rows
            self.say(f"{rows:,} row{'' if rows == 1 else 's'} written to {path}")
        else:
            Output(self.out, self.mode).rows(outcome)
        for line in render.footer(outcome, resume="uql resume {}"):
            self.say(printable(line))

    def say(self, text: str) -> None:
        """Prints a text, in which a terminal obeys nothing; errors in red where colours are allowed."""
        text = printable_lines(text)
        if self.color and text.startswith("error:"):
            text = f"\x1b[1;31merror\x1b[0m{text[5:]}"
        with contextlib.suppress(BrokenPipeError):
            print(text, file=self.out, flush=True)

    def open(self, path: str) -> None:
        """Another database, with the settings in force; one that this opened before is closed. Raises: UsageError."""
        from uql.command.query import connect

        settings = self.con.configured
        values = {f.name: getattr(settings, f.name) for f in fields(settings)}
        changed = {f.name: values[f.name] for f in fields(settings) if values[f.name] != f.default}
        with ExitStack() as opened:
            con = opened.enter_context(connect(path, changed, read_only=self.con.catalog.read_only))
            self._resources.close()
            self._resources = opened.pop_all()
        self.con, self.name, self.last = con, Path(path).stem, None

    def need_last(self) -> Result | None:
        """The last result; where there is none that is said."""
        if self.last is None:
            self.say("there is no result yet")
        return self.last

    # ---------------------------------------------------------------------------------------------------------- helpers
    def _twice(self) -> bool:
        now = time.monotonic()
        twice = now - self._interrupted_at < TWICE_S
        self._interrupted_at = now
        return twice

    def _remember(self, statement: str) -> None:
        for text in texts_in(statement):
            if text in self._texts:
                self._texts.remove(text)
            self._texts.insert(0, text)

    def _prompt(self) -> AnyFormattedText:
        settings = self.con.configured
        model = self.con.model.name if self.con.model is not None else settings.model
        parts = [model or "no model"]
        if settings.budget is not None:
            calls = settings.calls()
            parts.append("every row" if calls is None else f"{calls:,} calls")
        return FormattedText([("bold", self.name), ("", f" ({', '.join(parts)})> ")])

    def _continuation(self, width: int, line: int, wrapped: int) -> AnyFormattedText:
        return "" if wrapped else "… ".rjust(width)

    def _mistake_shown(self) -> AnyFormattedText:
        """The bar below the statement that is typed; no bar while nothing is wrong with it."""
        text = self._session.default_buffer.text
        if self._checked[0] != text:
            self._checked = text, mistake(self.con, text)
        return self._checked[1] or None

    def _tables(self) -> list[str]:
        return self.con.catalog.names()

    def _columns(self, text: str) -> list[str]:
        """The columns of the tables that stand in the text; where none does, of all."""
        columns: list[str] = []
        low, tables = text.lower(), self._tables()
        for name in [name for name in tables if name.lower() in low] or tables:
            with contextlib.suppress(UQLError):
                columns += self.con.catalog.columns(tuple(name.split(".")))
        return list(dict.fromkeys(columns))


def _described() -> dict[str, str]:
    return {name: (command.__doc__ or "") for name, command in COMMANDS.items()}


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # statements are the user's own business
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def complete(text: str) -> bool:
    """Is the input one that Enter runs? Statements end with ;, commands and questions with their line.

    >>> complete("SELECT 1"), complete("SELECT ';"), complete("SELECT 1;"), complete(".help"), complete("? why"), complete("exit")
    (False, False, True, True, True, True)
    """
    stripped = text.strip()
    if not stripped or stripped[0] == "?" or _is_command(stripped):
        return True
    if not stripped.endswith(";"):
        return False
    try:  # a ; within quotes or a comment ends nothing: then a second one adds no statement
        return len(parse_script(text + "\nSELECT 1")) > len(parse_script(text))
    except UQLSyntaxError:
        return True


def mistake(con: Connection, text: str) -> str:
    """What is wrong with a statement that is being typed, in one line; empty where it may still become right.

    Names are looked up after a space, a line or a `;`, when no word is half typed. Makes no call.
    """
    if not text.strip() or text.lstrip()[0] == "?" or _is_command(text.strip()):
        return ""
    try:
        for tree, _ in parse_script(text):
            if isinstance(tree, str):
                try:
                    duckdb.extract_statements(tree)
                except (duckdb.Error, TypeError):  # TypeError: half of a character
                    parse(tree)
            elif isinstance(tree, Select | Union) and text[-1] in " \n;":
                con.session.bind(tree, text, {}, {})
    except UQLError as error:
        typed = (error.text or text).rstrip()
        unfinished = not text.rstrip().endswith(";") and (error.end >= len(typed) or error.code == "UQL107")
        return "" if unfinished else printable(f"{error.code}: {error.message}")
    return ""


def _is_command(text: str) -> bool:
    """A dot command, or one of psql's, which begin with \\ or are a word alone."""
    return text[0] in ".\\" or text.rstrip(";").lower() in OTHERS


def _writes(source: str) -> bool:
    """Is it a statement that runs at once when it is read? It has no price to ask about first."""
    tree = tree_of(source)
    return not isinstance(tree, Query | Explain) or (isinstance(tree, Select | Union) and tree.to is not None)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


# --------------------------------------------------------------------------------------------------------- dot commands
def why(shell: Shell, argument: str) -> None:
    """the answers behind a row of the last result: .why 3 (rows count from 1)"""
    result = shell.need_last()
    if result is None:
        return
    number = argument.strip() or "1"
    if not number.isdigit() or int(number) < 1:
        raise UsageError(f".why takes the number of a row, from 1 on, not {number!r}")
    if int(number) > len(result):
        raise UsageError(f"the last result has {len(result):,} rows")
    shell.say(str(result.why(int(number) - 1)))


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
    if shell.last is not None:
        shell.say("last:    " + (cost_line(shell.last.cost) or "nothing was asked"))
    shell.say("session: " + (cost_line(shell.total) or "nothing was asked"))


def explain(shell: Shell, argument: str) -> None:
    """the plan and price of a statement, or of the last one; makes no calls"""
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


def page(shell: Shell, argument: str) -> None:
    """the last result, all its rows and whole cells, in the pager ($PAGER)"""
    import pydoc

    result = shell.need_last()
    if result is not None:
        text = io.StringIO()
        Output(text, shell.mode, whole=True).rows(result.run())
        pydoc.pager(text.getvalue())


def mode(shell: Shell, argument: str) -> None:
    """how rows are shown: table, csv, json, markdown"""
    name = argument.strip().lower()
    if name and name not in MODES:
        raise UsageError(f"rows cannot be shown as {name}; choices: {', '.join(MODES)}")
    shell.mode = name or shell.mode
    if not name:
        shell.say(f"rows are shown as {shell.mode}; choices: {', '.join(MODES)}")


def once(shell: Shell, argument: str) -> None:
    """write the next result to a file: .once rows.csv (.csv .json .jsonl .md .parquet)"""
    if not argument.strip():
        raise UsageError(".once takes the name of a file")
    path = Path(argument.strip()).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written")
    format_of_file(path, "csv")
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


def schema(shell: Shell, argument: str) -> None:
    """the statements that make the tables and views: .schema, .schema reviews"""
    name = argument.strip().lower()
    sql = (
        "SELECT sql FROM (SELECT table_name AS name, sql FROM system.main.duckdb_tables() WHERE NOT internal UNION ALL"
        " SELECT view_name, sql FROM system.main.duckdb_views() WHERE NOT internal) WHERE $1 IN ('', system.main.lower(name)) ORDER BY name"
    )
    statements = shell.con.execute(sql, [name]).fetchall()
    for (text,) in statements:
        shell.say(str(text))
    if not statements:
        shell.say(f"error: no table {name}" if name else "the database has no tables")


def read(shell: Shell, argument: str) -> None:
    """run the statements of a file: .read daily.uql"""
    if not argument.strip():
        raise UsageError(".read takes the name of a file")
    path = Path(argument.strip()).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8") from error
    shell.run(text)


def open_(shell: Shell, argument: str) -> None:
    """another database, with the same settings: .open shop.duckdb"""
    if not argument.strip():
        raise UsageError(".open takes a DuckDB file")
    shell.open(str(Path(argument.strip()).expanduser()))


def model(shell: Shell, argument: str) -> None:
    """the model, or another one from now on: .model openai:NAME"""
    _setting(shell, "model", argument)


def budget(shell: Shell, argument: str) -> None:
    """calls of the model at most, for each statement: .budget 200, .budget all"""
    _setting(shell, "budget", argument)


def _setting(shell: Shell, name: str, argument: str) -> None:
    if argument.strip():
        shell.con.use(**{name: argument.strip()})
    shell.say(f"{name}: {getattr(shell.con.configured, name) or 'not set'}")


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
    ".page": page,
    ".mode": mode,
    ".once": once,
    ".rerun": rerun,
    ".tables": tables,
    ".schema": schema,
    ".read": read,
    ".open": open_,
    ".model": model,
    ".budget": budget,
    ".help": help,
    ".quit": quit,
}


OTHERS = {
    "\\d": ".tables", "\\dt": ".tables", "\\i": ".read", "\\o": ".once", "\\?": ".help", "\\q": ".quit",
    "help": ".help", "exit": ".quit", "quit": ".quit", ".exit": ".quit", ".output": ".once",
}  # fmt: skip
"""What these are called in psql and in DuckDB's own shell."""


def run_command(shell: Shell, line: str) -> None:
    """One command. Raises Leave."""
    name, _, argument = line.partition(" ")
    known = name.lower().rstrip(";")
    command = COMMANDS.get(OTHERS.get(known, known))
    try:
        if command is None:
            raise UsageError(f"there is no command {name}; {suggestion(name, COMMANDS)}.help lists them")
        command(shell, argument.rstrip(";"))
    except (UQLError, UsageError) as error:
        shell.say(f"error: {error}")
