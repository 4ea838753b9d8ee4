"""The shell: reads statements, prices them, runs them, shows them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import AnyFormattedText, FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import style_from_pygments_cls

from uql import render
from uql.command.output import format_of_file
from uql.errors import UQLError
from uql.llm.run import Cost
from uql.shell import commands
from uql.shell.commands import COMMANDS, Leave
from uql.shell.completion import UQLCompleter, texts_in
from uql.shell.lexer import UQLLexer, highlighted, style

if TYPE_CHECKING:
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from uql.connection import Connection
    from uql.result import Result

TWICE_S = 2.0  # within which a second Ctrl-C leaves


def history_file() -> Path:
    """$UQL_HOME/history, else in the user's data folder."""
    home = os.environ.get("UQL_HOME")
    if home:
        return Path(home).expanduser() / "history"
    from platformdirs import user_data_path

    return user_data_path("uql", appauthor=False) / "history"


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
        output: Output | None = None,
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
        self._texts: list[str] = []
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
            input=input,
            output=output,
        )
        for entry in list(self._history.load_history_strings())[:500]:
            self._remember(entry)

    # ------------------------------------------------------------------------------------------------------------- loop
    def loop(self) -> int:
        """Reads and runs until the user leaves. Returns the exit code."""
        self.say('UQL shell. A statement ends with ; – .help says more, "? question" asks in words, Ctrl-D leaves.')
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
        if text.startswith("."):
            commands.run(self, text)
        elif text.startswith("?"):
            self._ask(text[1:].strip().rstrip(";").strip())
        else:
            self.run(text)

    def run(self, text: str) -> None:
        """Runs statements, each shown as it is done. An error ends them."""
        from uql.command.script import pieces

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
        self._add(self.last.cost)
        self.show(self.last)
        return not self.last.partial

    def _in_background(self, begin: Callable[[], Result]) -> Result:
        """Runs in a thread, so that Ctrl-C can end it: the first sends nothing more and keeps what was answered, the second leaves."""
        from uql.progress import Progress

        def work() -> Result:
            result = begin()
            result.run()
            return result

        progress = Progress(enabled=sys.stderr.isatty())
        thread = ThreadPoolExecutor(1, thread_name_prefix="uql-shell")
        with progress:
            stop = self.con.on_event(progress)
            try:
                running = thread.submit(work)
                while True:
                    try:
                        return running.result(0.1)
                    except TimeoutError:
                        if running.done():
                            raise
                    except KeyboardInterrupt:
                        if self._twice():
                            raise
                        self.con.interrupt()
                        self.say("stopping; what was answered is kept (Ctrl-C again leaves)")
            finally:
                stop()
                thread.shutdown(wait=False)

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
        asked: PromptSession[str] = PromptSession(input=self._session.input, output=self._session.output)
        try:
            return asked.prompt("Go on? [y/N] ", in_thread=in_thread).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def _ask(self, question: str) -> None:
        """An answer to a question in words: the UQL first, then what it found."""
        ask: Any = getattr(self.con, "ask", None)
        if not question:
            self.say("? takes a question: ? which complaints are the most frequent")
        elif ask is None:
            self.say("error: questions in words are not part of this installation; write UQL")
        else:
            try:
                answer = ask(question, confirm=self._planned, confirm_over=-1.0)  # so that every plan is shown first
            except UQLError as error:
                self.say(f"error: {error}")
                return
            except KeyboardInterrupt:
                if self._twice():
                    raise
                self.say("stopped; what was answered is kept")
                return
            self._add(answer.cost)
            self.say(str(answer))

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
        path, self.once = self.once, None
        data = result.arrow()
        if path is not None:
            format = format_of_file(path, "csv")
            if format == "parquet":
                render.write_parquet(data, path, estimates=result.estimates)
            else:
                with path.open("w", encoding="utf-8", newline="") as stream:
                    render.WRITERS[format](data, stream, estimates=result.estimates)
            self.say(f"{data.num_rows:,} row{'' if data.num_rows == 1 else 's'} written to {path}")
        elif self.mode == "table":
            box = render.table(data, types=result.types, estimates=result.estimates)
            if box:
                self.say(box)
        elif data.num_columns:
            render.WRITERS[self.mode](data, self.out, estimates=result.estimates)
        for line in render.footer(result):
            self.say(render.printable(line))

    def say(self, text: str) -> None:
        """Prints a text as it is; errors in red where colours are allowed."""
        if self.color and text.startswith("error:"):
            text = f"\x1b[1;31merror\x1b[0m{text[5:]}"
        with contextlib.suppress(BrokenPipeError):
            print(text, file=self.out, flush=True)

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

    def _add(self, cost: Cost) -> None:
        total = self.total
        for name in ("calls", "requests", "cached", "failed", "input_tokens", "output_tokens", "seconds"):
            setattr(total, name, getattr(total, name) + getattr(cost, name))
        total.usd = None if total.usd is None or cost.usd is None else total.usd + cost.usd

    def _remember(self, statement: str) -> None:
        for text in texts_in(statement):
            if text in self._texts:
                self._texts.remove(text)
            self._texts.insert(0, text)

    def _prompt(self) -> AnyFormattedText:
        return FormattedText([("bold", self.name), ("", "> ")])

    def _continuation(self, width: int, line: int, wrapped: int) -> AnyFormattedText:
        return "" if wrapped else "… ".rjust(width)

    def _tables(self) -> list[str]:
        return self.con.catalog.names()

    def _columns(self, text: str) -> list[str]:
        """The columns of the tables that stand in the text."""
        found: list[str] = []
        low = text.lower()
        for name in self._tables():
            if name.lower() in low:
                with contextlib.suppress(UQLError):
                    found += [field.name for field in self.con.catalog.table(tuple(name.split("."))).fields]
        return list(dict.fromkeys(found))


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

    >>> complete("SELECT 1"), complete("SELECT ';"), complete("SELECT 1;"), complete(".help"), complete("? why")
    (False, False, True, True, True)
    """
    from uql.compiler.parser import parse_script
    from uql.errors import UQLSyntaxError

    stripped = text.strip()
    if not stripped or stripped[0] in ".?":
        return True
    if not stripped.endswith(";"):
        return False
    try:  # a ; within quotes or a comment ends nothing: then a second one adds no statement
        return len(parse_script(text + "\nSELECT 1")) > len(parse_script(text))
    except UQLSyntaxError:
        return True


def _writes(source: str) -> bool:
    """Is it a statement that runs at once when it is read? It has no price to ask about first."""
    from uql.compiler.parser import parse
    from uql.compiler.syntax import Explain, Query, Select, Union
    from uql.errors import UQLSyntaxError

    try:
        tree = parse(source)
    except UQLSyntaxError:
        return True
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
