"""`uql runs`: the runs of the ledger; `uql runs RUN`: one of them, with its calls by kind and its failures."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from datetime import datetime
from typing import Annotated, Any

import typer

from uql.base.printable import aligned, printable
from uql.command import options
from uql.command.outcome import UsageError, command, new_app, say
from uql.command.output import print_json

app = new_app()
_SHOWN_ERRORS = 20
_STATEMENT = 60  # characters of a statement in the list


@command(app)
def runs(
    run: Annotated[str | None, typer.Argument(help="The id of a run, or its first letters.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Runs to list, the latest first.")] = 20,
    as_json: options.Json = False,
    ledger: options.Ledger = None,
) -> None:
    """List the runs of the ledger, or show one. In UQL: FROM uql_runs(), uql_calls(), uql_errors()."""
    with options.open_ledger(ledger) as store, store.reading():
        if run is None:
            _list(store.runs(limit), as_json)
            if not as_json:
                for batch in store.batches():
                    say(
                        f"batch {batch['batch']} of {batch['model']}, handed in {_when(batch['at'])}: {batch['requests']:,} requests"
                        " under way; the statement given again waits for them"
                    )
        else:
            stored = store.stored(run)
            if stored is None:
                raise UsageError(f"there is no run {run!r} in {store.path}", help="uql runs lists them")
            details = store.run(stored.id)
            _one(details | _sums(store.calls(stored.id)), store.errors(stored.id), as_json, bool(stored.details))


def _list(entries: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(entries)
        return
    if not entries:
        say("no runs yet")
        return
    heads = ("run", "began", "status", "calls", "cached", "failed", "usd", "model", "statement")
    rows = [
        (
            entry["run"],
            _when(entry["started"]),
            entry["status"],
            f"{entry['calls']:,}",
            f"{entry['cached']:,}",
            f"{entry['failed']:,}",
            _usd(entry["usd"]),
            entry["model"],
            _short(entry["statement"]),
        )
        for entry in entries
    ]
    for line in aligned([heads, *rows], right=[heads.index(head) for head in ("calls", "cached", "failed", "usd")]):
        say(_fitted(printable(line)))


def _fitted(line: str) -> str:
    """The line, cut where the terminal ends."""
    width = shutil.get_terminal_size().columns
    return line if len(line) <= width or not sys.stdout.isatty() else f"{line[: width - 1]}…"


def _one(record: dict[str, Any], errors: list[dict[str, Any]], as_json: bool, continuable: bool) -> None:
    if as_json:
        print_json({**record, "errors": errors})
        return
    ended = _when(record["finished"]) if record["finished"] else "–"
    say(f"run        {record['run']}")
    say(f"status     {record['status']}")
    say(f"began      {_when(record['started'])}, ended {ended}")
    say(printable(f"model      {record['model']}, seed {record['seed']}"))
    say(
        f"calls      {record['calls']:,} ({record['requests']:,} requests), {record['cached']:,} answered by the ledger"
    )
    say(f"tokens     {record['input_tokens']:,} + {record['output_tokens']:,}")
    say(f"usd        {_usd(record['usd'])}")
    for question, count in record["questions"].items():
        say(f"question   {printable(question)}: {count:,} calls")
    for kind, count in record["faults"].items():
        say(f"fault      {kind}: {count:,} calls")
    for error in errors[:_SHOWN_ERRORS]:
        say(printable(f"failed     {error['text']}: {error['error']}: {error['message']}"))
    if len(errors) > _SHOWN_ERRORS:
        say(f"           … and {len(errors) - _SHOWN_ERRORS:,} more: SELECT * FROM uql_errors()")
    if continuable and record["status"] in ("running", "killed", "interrupted", "partial", "unfinished"):
        say(f"continue   uql resume {record['run']}")
    say(f"statement\n{record['statement'].strip()}")


def _sums(calls: list[dict[str, Any]]) -> dict[str, Any]:
    model_calls = [call for call in calls if call["kind"] == "call"]
    return {
        "requests": sum(call["requests"] for call in model_calls),
        "questions": dict(Counter(call["text"] for call in model_calls).most_common()),
        "faults": dict(Counter(call["error"] for call in model_calls if call["error"]).most_common()),
    }


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _usd(usd: float | None) -> str:
    return "–" if usd is None else f"{usd:.4f}"


def _short(statement: str) -> str:
    line = printable(" ".join(statement.split()))
    return line if len(line) <= _STATEMENT else line[: _STATEMENT - 1] + "…"
