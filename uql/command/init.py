"""`uql init`: a uql.toml with every setting, its default and what it means, all commented out."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from uql.command.outcome import UsageError, command, new_app

app = new_app()
_EXAMPLES = {
    "model": '"local"', "embedder": '"openai:text-embedding-3-small"', "budget": "256", "error": "0.1", "recall": "0.9",
    "precision": "0.9", "max_cost": "1.0", "max_seconds": "300", "max_tokens": "1000000", "method": '"uniform"',
    "strata": '"auto"', "explore": "0.1", "total": "0.125", "proxy": '"stars"', "audit": '"judged_rows"', "folder": '"."',
    "concurrency": "8", "ledger": '"ledger.sqlite"', "progress": "true",
}  # fmt: skip
_TABLES = ("endpoints", "prices")


@command(app)
def init(
    user: Annotated[bool, typer.Option("--user", help="The user's own file instead of ./uql.toml.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print it, write nothing.")] = False,
) -> None:
    """Write a commented uql.toml into this folder: remove the # before what you want to change."""
    from uql.base.config import FILE, user_file

    text = commented(project=not user)
    if show:
        print(text, end="")
        return
    path = user_file() if user else Path(FILE)
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", help="--force replaces it, --print shows what would be written")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(path)


def commented(*, project: bool) -> str:
    """The text of the file: every setting behind a #, with its meaning."""
    from uql.base.settings import IN_PROJECTS, Settings, meanings

    where = (
        "for this folder; it may come from a stranger, so some need: uql config trust" if project else "for all folders"
    )
    lines = [f"# Settings of UQL, {where}.", "# uql config show prints what holds and where it comes from.", ""]
    said = meanings()
    for field in fields(Settings):
        rule = IN_PROJECTS[field.name]
        if project and not rule.takes_any:
            continue
        lines.append(f"# {said[field.name]}")
        if project and rule.asks:
            lines.append(f"# without trust: {rule.words()}")
        if field.name in _TABLES:
            lines += [f"# {field.name}: tables of their own, described in docs/models.md", ""]
            continue
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        lines += [f"# {field.name} = {_EXAMPLES.get(field.name) or json.dumps(default)}", ""]
    return "\n".join(lines)
