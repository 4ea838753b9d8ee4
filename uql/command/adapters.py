"""`uql adapters list | install | remove`: the environments of adapters that need packages of their own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uql.command import outcome
from uql.command.outcome import Code, UsageError, narrate

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@app.callback()
def about() -> None:
    """Ways to answer a part of a question: those of UQL itself, and those of other libraries, each in an environment of its own."""


@app.command("list")
def list_() -> None:
    """The adapters, what they do, and which are installed."""

    def run() -> int:
        from uql.nl.adapters import HERE
        from uql.nl.adapters.environments import KNOWN, folder, installed

        for name in HERE:
            print(f"{name:<13} here")
        for name, known in KNOWN.items():
            there = (
                str(folder(name))
                if installed(name)
                else f"not installed, about {known.megabytes:,} MB: uql adapters install {name}"
            )
            print(f"{name:<13} {known.about}; {there}")
        return Code.OK

    raise typer.Exit(outcome.run(run))


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="An adapter of `uql adapters list`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before fetching.")] = False,
) -> None:
    """Make the environment of an adapter and fetch its packages, at pinned versions."""

    def run() -> int:
        from uql.nl.adapters import environments

        known = environments.known(name)
        if environments.installed(name):
            narrate(f"{name} is there: {environments.folder(name)}")
            return Code.OK
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(f"say --yes to fetch {', '.join(known.packages)} (about {known.megabytes:,} MB)")
            asked = f"Fetch {', '.join(known.packages)} and what they need (about {known.megabytes:,} MB) into {environments.folder(name)}?"
            if not typer.confirm(asked, err=True):
                return Code.OK
        print(environments.install(name, tell=narrate))
        return Code.OK

    raise typer.Exit(outcome.run(run))


@app.command()
def remove(name: Annotated[str, typer.Argument(help="An adapter of `uql adapters list`.")]) -> None:
    """Delete the environment of an adapter."""

    def run() -> int:
        from uql.nl.adapters import environments

        narrate(f"{name} is deleted" if environments.remove(name) else f"{name} was not installed")
        return Code.OK

    raise typer.Exit(outcome.run(run))
