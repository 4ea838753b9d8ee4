"""`uql keys set | list | remove`: keys of models, in a file that only the user can read."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app
from uql.command.output import print_json

app = new_app(
    "Keys of models: the environment comes first, then the keyring, then a file of mode 600 that this writes."
)
Name = Annotated[
    str, typer.Argument(help="openai, anthropic, openrouter, gemini, azure, voyage, or the name of a variable.")
]


@command(app, "set")
def set_(name: Name) -> None:
    """Keep a key. It is asked for without being shown, or read from standard input; it is no argument, which a shell would remember."""
    from uql.base import keys

    variable = keys.variable(name)
    if sys.stdin.isatty():
        key = typer.prompt(f"key for {variable}", hide_input=True, err=True)
    else:
        key = sys.stdin.readline()
    if not key.strip():
        raise UsageError("no key was given", help=f"uql keys set {name} < FILE, or type it when it is asked for")
    print(keys.store(variable, key.strip()))
    if keys.places().get(variable) == "environment":
        narrate(f"{variable} is set in the environment too, which comes first", "note")


@command(app, "list")
def list_(as_json: options.Json = False) -> None:
    """Which keys are set, and where; never the keys."""
    from uql.base import keys

    found = keys.places()
    if as_json:
        print_json(found)
        return
    if not found:
        narrate("no key is set; uql keys set openai")
    for name, place in found.items():
        print(f"{name}  {place}")


@command(app)
def remove(name: Name) -> int:
    """Forget a key of the file."""
    from uql.base import keys

    variable = keys.variable(name)
    if keys.remove(variable):
        return Code.OK
    raise UsageError(f"{keys.keys_file()} holds no {variable}")
