"""`uql adapters list | install | remove`: the environments of adapters that need packages of their own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uql.command import options
from uql.command.outcome import UsageError, command, narrate, new_app, say
from uql.nl.adapters import HERE, environments
from uql.nl.adapters.environments import KNOWN, folder, installed

app = new_app(
    "Ways to answer a part of a question: those of UQL itself, and those of other libraries, each in an environment of its own."
)


@command(app, "list")
def list_() -> None:
    """The adapters, what they do, and which are installed."""
    for name in HERE:
        say(f"{name:<13} here")
    for name, spec in KNOWN.items():
        there = (
            str(folder(name))
            if installed(name)
            else f"not installed, about {spec.megabytes:,} MB: uql adapters install {name}"
        )
        say(f"{name:<13} {spec.about}; {there}")


@command(app)
def install(
    name: Annotated[str, typer.Argument(help="An adapter of `uql adapters list`.")],
    yes: options.Yes = False,
) -> None:
    """Make the environment of an adapter and fetch its packages, at pinned versions."""
    spec = environments.adapter_spec(name)
    if environments.installed(name):
        narrate(f"{name} is there: {environments.folder(name)}")
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"say --yes to fetch {', '.join(spec.packages)} (about {spec.megabytes:,} MB)")
        question = f"Fetch {', '.join(spec.packages)} and what they need (about {spec.megabytes:,} MB) into {environments.folder(name)}?"
        if not typer.confirm(question, err=True):
            return
    say(environments.install(name, tell=narrate))


@command(app)
def remove(name: Annotated[str, typer.Argument(help="An adapter of `uql adapters list`.")]) -> None:
    """Delete the environment of an adapter."""
    narrate(f"{name} is deleted" if environments.remove(name) else f"{name} was not installed")
