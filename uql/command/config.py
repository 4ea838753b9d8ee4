"""`uql config show`: every setting, its value, and where that comes from."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from uql.base.config import load, misspelt_variables, user_file
from uql.command import options
from uql.command.outcome import UsageError, command, narrate, new_app, say
from uql.command.output import print_json

app = new_app(
    "Settings, the nearest winning: defaults < the user's file < ./pyproject.toml < ./uql.toml < UQL_* < arguments."
)


@command(app)
def show(
    settings: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Print every setting with its value and its origin."""
    from uql.base.postgres_url import without_password
    from uql.base.printable import aligned, printable

    effective, origins = load(**options.settings_of(settings))
    for name, meant in misspelt_variables().items():
        narrate(f"{name} means nothing; did you mean {meant}?", "warning")
    values = {field.name: _plain(getattr(effective, field.name)) for field in fields(effective)}
    values["ledger"] = effective.ledger and without_password(effective.ledger)
    if as_json:
        print_json({name: {"value": value, "origin": origins[name]} for name, value in values.items()})
        return
    for line in aligned([(name, _toml(value), origins[name]) for name, value in values.items()]):
        sys.stdout.write(printable(line) + "\n")


@command(app)
def path() -> None:
    """Print where the user's own file is looked for."""
    say(user_file())


@command(app)
def trust(
    folder: Annotated[str, typer.Argument(help="The project's folder.")] = ".",
    remove: Annotated[bool, typer.Option("--remove", help="Trust its files no longer.")] = False,
    yes: options.Yes = False,
) -> None:
    """Let a project's uql.toml or pyproject.toml set everything, as it is now: models, ledger, … After a change it asks again."""
    from uql.base import config
    from uql.base.printable import printable

    layers = config.files(Path(folder).absolute())
    files = [layer for layer in layers if layer.path is not None]
    paths = ", ".join(str(layer.path) for layer in files)
    if not files:
        raise UsageError(f"there is no uql.toml and no [tool.uql] in {folder}")
    if remove:
        config.distrust(files)
        narrate(f"not trusted any more: {paths}")
        return
    for layer in files:
        narrate(f"--- {layer.path}")
        for line in layer.content.decode("utf-8", errors="replace").splitlines():
            narrate(printable(line))
    allowed = config.would_allow(layers)
    narrate("trusted, it may:" if allowed else "it sets nothing that needs trust")
    for line in allowed:
        narrate(f"  {line}")
    question = "it may then decide where your rows go, and which files are read and written. Trust it as it is?"
    if not yes and not typer.confirm(question, err=True):
        return
    config.trust(files)
    narrate(f"trusted: {paths}")


def _plain(value: Any) -> Any:
    """Tables as they are written; a key is only ever named by its variable."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) is not None}
    return value


def _toml(value: Any) -> str:
    """A value as it would stand in uql.toml; "–" for none."""
    if value is None:
        return "–"
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
