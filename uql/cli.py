"""The command `uql`: `uql [database] -c 'query'`, or a sub-command such as `uql models pull`.

The first word decides: a name in COMMANDS is a sub-command, anything else a database or an option of the query command.
Nothing heavy is imported before that is known, so that `uql --version` answers at once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

from uql.command import COMMANDS as COMMANDS

INTERRUPTED = 130  # outcome.Code.INTERRUPTED, which is not imported yet


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name; None: that of the process) and return its exit code."""
    try:
        return _run(argv)
    except KeyboardInterrupt:  # while the command was being imported
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-V"]):
        from uql import __version__

        print(f"uql {__version__}")
        return 0
    if argv is None:
        from uql.base.process_wide import THRESHOLDS

        gc.set_threshold(*THRESHOLDS)  # a start makes many objects and no garbage: a tenth of its time
    from uql.command import outcome

    # there Ctrl-C does not end the process: it stops a statement, or is the client's
    keeps_default = (["shell"], ["mcp"])
    if argv is None and words[:1] not in keeps_default:
        outcome.stop_at_sigterm()
    code = outcome.run(lambda: _dispatch(words))
    if argv is None:
        gc.freeze()  # the process ends: a last look through all objects would find what nobody waits for
    return code


def _dispatch(words: list[str]) -> int:
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
