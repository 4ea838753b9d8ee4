"""`uql shell [database]`: statements one after another."""

from __future__ import annotations

import sys
from pathlib import Path

from uql.command import options
from uql.command.outcome import UsageError, colored, command, new_app

app = new_app()


@command(app)
def shell(
    database: options.Database = None,
    model: options.Model = None,
    settings: options.Set = None,
    read_only: options.ReadOnly = False,
) -> int:
    """An interactive shell: a statement ends with ; and .help lists the other commands."""
    from uql.base.extras import need
    from uql.command.query import connect

    need("interactive shells", "shell", "prompt_toolkit", "pygments")
    if not sys.stdin.isatty():
        raise UsageError("the shell needs a terminal", help="uql -f FILE runs a script, and so does a pipe")
    with connect(database, options.settings_of(settings, model=model), read_only=read_only) as con:
        from uql.shell.app import Shell

        name = Path(database).stem if database not in (None, ":memory:") else "memory"
        return Shell(con, str(name), color=colored(sys.stdout)).loop()
