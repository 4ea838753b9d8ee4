"""`uql keys set | list | remove`: API keys of models, in the system's keyring or in a file that only the user can read."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uql.base import keys
from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app, say
from uql.command.output import print_json

app = new_app(
    "API keys of models: the environment comes first, then the system's keyring (extra keys), then a file of mode 600."
)
Name = Annotated[
    str,
    typer.Argument(
        help="openai, anthropic, openrouter, gemini, mistral, deepseek, groq, xai, azure, voyage, or the name of a variable."
    ),
]


@command(app, "set")
def set_(
    name: Name,
    in_file: Annotated[
        bool, typer.Option("--file", help="In the file of mode 600, also where there is a keyring.")
    ] = False,
) -> None:
    """Keep a key, in the system's keyring where there is one, else in a file that only you can read; prints which.

    It is asked for without being shown, or read from standard input. It is not an argument, because shells keep a history.
    """
    variable = keys.variable(name)
    if sys.stdin.isatty():
        key = typer.prompt(f"key for {variable}", hide_input=True, err=True)
    else:
        key = sys.stdin.readline()
    if not key.strip():
        raise UsageError("no key was given", help=f"uql keys set {name} < FILE, or type it when it is asked for")
    say(keys.store(variable, key.strip(), in_file=in_file))
    if keys.places().get(variable) == "environment":
        narrate(f"{variable} is set in the environment too, which comes first", "note")


@command(app, "list")
def list_(as_json: options.Json = False) -> None:
    """Which keys are set, and where; never the keys."""
    places = keys.places()
    problem = keys.keyring_problem()
    if problem is not None:
        narrate(problem, "warning")
    if as_json:
        print_json(places)
        return
    if not places:
        narrate("no key is set; uql keys set openai")
    for name, place in places.items():
        say(f"{name}  {place}")


@command(app)
def remove(name: Name) -> int:
    """Delete a key, in the keyring and in the file."""
    variable = keys.variable(name)
    if keys.remove(variable):
        return Code.OK
    raise UsageError(f"no {variable} is kept in the keyring or in {keys.keys_file()}")
