"""How a command ends: exit codes, and errors told in words on stderr, never as a traceback."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import wraps
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, TypeVar

from uql.base.errors import AuthError, BackendError, ConfigError, QuotaError, UnknownModelError, UQLError, memory_errors
from uql.base.printable import printable_lines

if TYPE_CHECKING:
    import typer

F = TypeVar("F", bound=Callable[..., int | None])


class Code(IntEnum):
    """Exit codes; the same for every command."""

    OK = 0
    QUERY = 1  # the query is wrong, or cannot be answered as it is asked
    USAGE = 2  # the command line, a file named on it, a setting, a key
    BACKEND = 3  # the model cannot be reached, or is not there
    BUDGET = 4  # a limit was reached while running: what is finished was written
    FAILED_ROWS = 5  # under --strict: some rows have no answer
    INTERRUPTED = 130  # Ctrl-C or SIGTERM; what was answered is in the ledger


class UsageError(Exception):
    """The command line cannot be obeyed: a file that is missing, two formats at once."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.message, self.help = message, help

    def __str__(self) -> str:
        return self.message + (f"\n  help: {self.help}" if self.help else "")


def code_of(error: UQLError) -> Code:
    """The exit code for an error of the engine."""
    if isinstance(error, ConfigError | AuthError) or error.code == "UQL402":  # 402: a setting that no model can keep
        return Code.USAGE
    if isinstance(error, BackendError | UnknownModelError | QuotaError):
        return Code.BACKEND
    return Code.QUERY


def colored(stream: IO[str]) -> bool:
    """May this stream be coloured? NO_COLOR forbids it (https://no-color.org), FORCE_COLOR demands it."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def narrate(message: str, kind: str = "") -> None:
    """Say something on stderr, which may hold values of rows; `kind` ("error", "note", "warning") stands before it, the first in red."""
    message = printable_lines(message)
    if kind:
        head = f"\x1b[1;31m{kind}\x1b[0m: " if kind == "error" and colored(sys.stderr) else f"{kind}: "
        message = head + message
    with contextlib.suppress(BrokenPipeError):
        print(message, file=sys.stderr, flush=True)


def say(text: object) -> None:
    """Print on stdout what people read: values of rows, names and replies of servers do nothing to a terminal."""
    print(printable_lines(str(text)))


def new_app(about: str = "") -> typer.Typer:
    """The typer app of a command; with `about` (its help) that of a group of commands."""
    import typer

    group = bool(about)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=group, help=about or None)
    if group:
        app.callback()(lambda: None)  # a group of one command is a group too
    return app


def command(app: typer.Typer, name: str | None = None, epilog: str | None = None) -> Callable[[F], F]:
    """Adds a function to an app: it returns its exit code (None: 0), and its errors are told as `run` does.

    Args:
        name: None: the function's.
        epilog: stands below the help.
    """
    import typer

    def add(function: F) -> F:
        @wraps(function)
        def called(*arguments: Any, **named: Any) -> None:
            raise typer.Exit(run(lambda: function(*arguments, **named)))

        app.command(name, epilog=epilog, context_settings={"help_option_names": ["-h", "--help"]})(called)
        return function

    return add


def run(command: Callable[[], int | None]) -> int:
    """Run a command and turn every error that a user can cause into words and an exit code."""
    _say_utf8()
    try:
        with memory_errors():
            code = command() or Code.OK
        sys.stdout.flush()
        return int(code)
    except UsageError as error:
        narrate(str(error), "error")
        return Code.USAGE
    except UQLError as error:
        narrate(str(error), "error")
        return code_of(error)
    except KeyboardInterrupt:
        narrate("interrupted; what was answered is in the ledger and will not be asked again")
        return Code.INTERRUPTED
    except BrokenPipeError:  # the reader has gone, as in `uql … | head`
        _silence_stdout()
        return Code.OK
    except OSError as error:
        if error.errno == errno.EPIPE:
            _silence_stdout()
            return Code.OK
        narrate(_os_error_text(error), "error")
        return Code.USAGE


def stop_at_sigterm() -> None:
    """SIGTERM stops this process as Ctrl-C does: what was paid for is kept, and the token to resume is printed."""

    def stop(_: int, frame: FrameType | None) -> None:
        ctrl_c = signal.getsignal(signal.SIGINT)
        if not callable(ctrl_c):  # a shell script began this with "&", so that Ctrl-C does not stop it
            raise KeyboardInterrupt
        ctrl_c(signal.SIGINT, frame)

    signal.signal(signal.SIGTERM, stop)


def call(app: typer.Typer, words: Sequence[str], name: str) -> int:
    """Run a typer app that returns its exit code; typer's own usage errors are 2.

    Args:
        words: the arguments, without the program's name.
        name: of the program, in messages.
    Returns: the exit code.
    """
    try:
        code: Any = app(args=list(words), prog_name=name, standalone_mode=True)
    except SystemExit as stop:
        code = stop.code
    return code if isinstance(code, int) else Code.OK


def _os_error_text(error: OSError) -> str:
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what


def _say_utf8() -> None:
    """Write UTF-8 whatever the locale: a table of a C locale would otherwise end in an error of encoding."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and (stream.encoding or "").lower().replace("-", "") != "utf8":
            reconfigure(encoding="utf-8", errors="replace")


def _silence_stdout() -> None:
    """Point stdout to nowhere, so that the interpreter's last flush does not complain of the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
