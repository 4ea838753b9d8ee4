"""`uql cache stats | prune | clear`: what the ledger holds, and how it forgets."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from uql.base.printable import printable
from uql.command import options
from uql.command.outcome import UsageError, command, new_app, say
from uql.command.output import print_json

app = new_app("The ledger: every answer that was paid for, by which no question about a row is paid for twice.")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


@command(app)
def stats(ledger: options.Ledger = None, as_json: options.Json = False) -> None:
    """Print how many answers, runs and calls the ledger holds, how large it is, and the answers of each model and table."""
    with options.open_ledger(ledger) as store:
        counts = store.stats()
    if as_json:
        document = {"path": counts.path, "answers": counts.answers, "runs": counts.runs, "calls": counts.calls}
        document |= {"bytes": counts.bytes, "models": dict(counts.models), "tables": dict(counts.sources)}
        print_json(document)
        return
    say(printable(f"ledger   {counts.path}"))
    say(f"size     {counts.bytes / 1e6:,.1f} MB")
    say(f"answers  {counts.answers:,}")
    say(f"runs     {counts.runs:,}")
    say(f"calls    {counts.calls:,}")
    for name, count in counts.models:
        say(printable(f"model    {name}: {count:,} answers"))
    for name, count in counts.sources:
        say(printable(f"table    {name or '(none)'}: {count:,} answers"))


@command(app)
def prune(
    table: Annotated[str | None, typer.Option(help="Delete the answers about this table's rows.")] = None,
    model: Annotated[str | None, typer.Option(help="Delete this model's answers.")] = None,
    older_than: Annotated[str | None, typer.Option(help="Delete answers older than this, as 30d, 12h.")] = None,
    size: Annotated[str | None, typer.Option(help="Delete the oldest until the file fits, as 500M, 2G.")] = None,
    ledger: options.Ledger = None,
) -> None:
    """Delete answers. Conditions given together must all hold; --size comes after them."""
    if table is None and model is None and older_than is None and size is None:
        raise UsageError(
            "nothing to forget is named", help="--table, --model, --older-than, --size; all: uql cache clear"
        )
    age = None if older_than is None else _seconds(older_than)
    most = None if size is None else _bytes(size)
    with options.open_ledger(ledger) as store:
        gone = store.prune(source=table, model=model, older_than_s=age, max_bytes=most)
        left = store.stats()
    say(f"{gone:,} answers forgotten, {left.answers:,} kept, {left.bytes / 1e6:,.1f} MB")


@command(app)
def clear(ledger: options.Ledger = None, yes: options.Yes = False) -> None:
    """Delete everything: answers, runs, calls."""
    with options.open_ledger(ledger) as store:
        count = store.stats().answers
        if not yes and not typer.confirm(f"forget {count:,} answers in {store.path}, which were paid for?", err=True):
            return
        gone = store.clear()
    say(f"{gone:,} answers forgotten")


def _bytes(text: str) -> int:
    """A size in bytes.

    >>> _bytes("500M"), _bytes("2GiB"), _bytes("1.5k")
    (500000000, 2147483648, 1500)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"--size {text!r} is not a size", help="as 500M, 2G, 1.5GiB")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def _seconds(text: str) -> float:
    """An age in seconds.

    >>> _seconds("30d"), _seconds("12 h")
    (2592000.0, 43200.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", text, re.IGNORECASE)
    if not match:
        raise UsageError(f"--older-than {text!r} is not an age", help="as 30d, 12h, 45m")
    return float(match[1]) * _SECONDS[match[2].lower()]
