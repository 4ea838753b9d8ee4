"""UQL in notebooks: `%load_ext uql`, then `%uql` and `%%uql` in Jupyter; the function `run` in marimo and anywhere else.

    %load_ext uql
    %%uql --budget 64 -o found
    SELECT id FROM reviews WHERE "the review complains about the plot"

A run shows one block that is replaced in place, and nothing of it stays; the table comes with its intervals and what it cost.
Data frames of the notebook may be named in FROM, and its variables as $name.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from uql.api.background import run_interruptible
from uql.base.errors import ConfigError
from uql.show.progress import Progress
from uql.sources.frames import visible

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

_DEFAULT: dict[str, Connection] = {}  # connections that this module opened, by the path of their database


def run(text: str, con: Connection | None = None, **parameters: Any) -> Result:
    """Runs a statement with its progress in the page. In marimo: `uql.api.notebook.run("SELECT …", con)` as the last line of a cell.

    Args:
        con: where it runs; None: a database in memory that the notebook's other statements see too.
        parameters: values of `$name`.
    Returns: the result, which has run; notebooks show it as a table.
    """
    return watched(con or open_connection(None), text, parameters, visible(sys._getframe(1)))


def watched(con: Connection, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
    """Runs a statement in a thread of its own and draws its progress from here; an interrupt ends it and keeps the answers.

    Args:
        text: one statement or several, with `;` between.
        parameters: values of `$name`.
        frames: data frames by the name that FROM gives them.
    """
    with Progress(by_events=False).of(con.on_event) as progress:
        return run_interruptible(lambda: con.statement(text, parameters, frames), con.interrupt, progress.draw)


def open_connection(database: str | None, **settings: Any) -> Connection:
    """The notebook's connection to a database; opened once. None: in memory."""
    from uql.api.opening import connect

    key = database or ":memory:"
    if key not in _DEFAULT:
        _DEFAULT[key] = connect(database, **settings)
    return _DEFAULT[key]


def close() -> None:
    """Closes the connections that this module opened."""
    while _DEFAULT:
        _DEFAULT.popitem()[1].close()


# ---------------------------------------------------------------------------------------------------------------- magics
class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"%%uql: {message}", help=" ".join(self.format_usage().split()))


def _parser() -> _Parser:
    parser = _Parser(prog="%%uql", add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--database", help="a DuckDB file; without it in memory")
    parser.add_argument("--con", help="a variable that holds a connection of uql or of duckdb")
    parser.add_argument("-o", "--output", metavar="NAME", help="a variable for the result")
    parser.add_argument("-m", "--model")
    parser.add_argument("-b", "--budget")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other setting")
    parser.add_argument("--dry-run", action="store_true", help="the plan and its price; makes no calls")
    return parser


class Magics:
    """`%uql` and `%%uql` of one IPython shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._attached: tuple[object, Connection] | None = None
        self._where: tuple[str | None, str | None] = None, None  # the connection and the database of what follows

    def __call__(self, line: str, cell: str | None = None) -> Any:
        """`%uql SELECT …` runs the line; `%%uql [options]` the cell; `%uql -d shop.duckdb -m local` sets what follows."""
        words, text = _split(line) if cell is None else (shlex.split(line), cell)
        options = _parser().parse_args(words)
        if options.output is not None and not options.output.isidentifier():
            raise ConfigError(f"%%uql: {options.output!r} is not the name of a variable", help="-o found")
        has_target = options.con is not None or options.database is not None
        where = (options.con, options.database) if has_target else self._where
        con = self._connection(*where)
        values = {"model": options.model, "budget": options.budget} | _pairs(options.set)
        values = {name: value for name, value in values.items() if value is not None}
        if not text.strip():
            self._where = where
            con.use(**values)
            return None
        names = self.shell.user_ns
        with con.settings(**values):
            statement = f"EXPLAIN {text}" if options.dry_run else text
            result = watched(con, statement, _parameters(text, names), names)
        if options.dry_run:
            print("\n".join(str(row[0]) for row in result.fetchall()))
            return None
        if options.output:
            names[options.output] = result
            return None if cell is None else result
        return result if result.columns else None

    def _connection(self, name: str | None, database: str | None) -> Connection:
        """The connection that was named, else the notebook's own."""
        from uql.api.connection import Connection
        from uql.api.opening import attach

        if name is None:
            return open_connection(database)
        variable = self.shell.user_ns.get(name)
        if isinstance(variable, Connection):
            return variable
        if variable is None or not hasattr(variable, "cursor"):
            raise ConfigError(f"%%uql: {name} holds no connection", help="con = uql.connect('shop.duckdb')")
        if self._attached is None or self._attached[0] is not variable:
            self._attached = variable, attach(variable)
        return self._attached[1]


def _split(line: str) -> tuple[list[str], str]:
    """The options at the beginning of a line, and the statement after them.

    >>> _split("-m local --dry-run SELECT 1 - -b")
    (['-m', 'local', '--dry-run'], 'SELECT 1 - -b')
    """
    words: list[str] = []
    rest = line.strip()
    while rest.startswith("-") and not rest.startswith("-- "):
        word, _, rest = rest.partition(" ")
        words.append(word)
        rest = rest.strip()
        if "=" not in word and word != "--dry-run":
            value, _, rest = rest.partition(" ")
            words.append(value)
            rest = rest.strip()
    return words, rest


def _pairs(assignments: list[str]) -> dict[str, str]:
    pairs = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"%%uql: --set {text!r} is not NAME=VALUE", help="as --set recall=0.9")
        pairs[name.strip()] = value.strip()
    return pairs


def _parameters(text: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of the notebook that the statement names as $name."""
    from uql.compiler.bind.parameters import names as named

    return {name: names[name] for name in named(text) if name in names}


def load_ipython_extension(shell: Any) -> None:
    """Registers `%uql` and `%%uql`."""
    magics: Callable[..., Any] = Magics(shell)
    shell.register_magic_function(magics, "line_cell", "uql")


def unload_ipython_extension(shell: Any) -> None:
    """Takes them away and closes the notebook's own connections."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("uql", None)
    close()
