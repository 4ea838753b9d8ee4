"""The command `uql`: `uql [database] -c 'query'`, or a sub-command such as `uql models pull`.

The first word decides: a name in COMMANDS is a sub-command, anything else a database or an option of the query command.
Nothing heavy is imported before that is known, so that `uql --version` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

COMMANDS = {  # name → the module that holds its typer app, and one line of help
    "shell": ("uql.command.shell", "statements one after another, with completion, prices and reasons"),
    "ask": ("uql.command.ask", "answer a question in words, by UQL that is shown"),
    "models": ("uql.command.models", "fetch, list and test models"),
    "bench": ("uql.command.bench", "run suites of benchmarks, print their tables, compare two runs"),
    "oracle": ("uql.command.oracle", "serve a table of labels as a model of OpenAI's protocol"),
    "tables": ("uql.command.tables", "the tables of a database; of semantic ones their query, key and cost"),
    "runs": ("uql.command.runs", "list the runs of the ledger, show one"),
    "resume": ("uql.command.resume", "continue a run that was killed, interrupted, or stopped at a limit"),
    "cache": ("uql.command.cache", "what the ledger holds; forget a table, a model, the oldest, all"),
    "init": ("uql.command.init", "write a commented uql.toml"),
    "completion": ("uql.command.completion", "completion of commands and options for bash, zsh and fish"),
    "calibrate": ("uql.command.calibrate", "fit a model's probabilities of a condition to labelled rows"),
    "config": ("uql.command.config", "show every setting and where its value comes from"),
    "adapters": ("uql.command.adapters", "ways to answer a part of a question: list, install, remove"),
    "router": ("uql.command.router", "collect traces of adapters, train the router on them"),
    "ui": ("uql.command.ui", "the web page: editor, plans, rows, reasons, charts"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name; None: that of the process) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-V"]):
        from uql import __version__

        print(f"uql {__version__}")
        return 0
    if argv is None:
        import gc

        gc.set_threshold(100_000, 50, 100)  # a start makes many objects and no garbage: a tenth of its time
    from uql.command import outcome

    return outcome.run(lambda: _dispatch(words))


def _dispatch(words: list[str]) -> int:
    from importlib import import_module

    from uql.command import outcome

    first = words[0] if words else ""
    if first in COMMANDS:
        app = import_module(COMMANDS[first][0]).app
        return outcome.call(app, words[1:], f"uql {first}")
    from uql.command import query

    query.refuse_mistaken_database(words, COMMANDS)
    return outcome.call(query.app(COMMANDS), words, "uql")


if __name__ == "__main__":
    sys.exit(main())
