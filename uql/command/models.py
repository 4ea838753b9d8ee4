"""`uql models pull | list | test`: fetch a local model, see which are there, try what one can do."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Annotated

import typer

from uql.command import outcome
from uql.command.outcome import Code, narrate

if TYPE_CHECKING:
    from uql.llm.model_files import ModelFile, ModelReport

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)
_LINE_S = 10.0  # between two lines in a log
_REDRAW_S = 0.2  # between two drawings on a terminal


@app.callback()
def about() -> None:
    """Models that run on this machine, in $UQL_HOME/models or the user's data folder."""


@app.command()
def pull(
    name: Annotated[
        str | None, typer.Argument(help="A model of `uql models list`; without it the default one.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--no-progress", help="Say nothing while fetching.")] = False,
) -> None:
    """Fetch a model, unless it is there. What was fetched before a break is used. Prints the path of the file."""

    def run() -> int:
        from uql.base.errors import DataError, UQLError
        from uql.llm import model_files as models

        told = Download(sys.stderr)
        try:
            path = models.pull(name or models.DEFAULT, progress=None if quiet else told)
        except DataError as error:  # no source, a full disk, a wrong digest: the model is not available
            told.clear()
            return _not_had(error)
        except UQLError:
            told.clear()
            raise
        told.clear()
        print(path)
        return Code.OK

    raise typer.Exit(outcome.run(run))


def _served(server: str) -> list[str]:
    import asyncio

    from uql.base import config
    from uql.llm.providers.hosted import models_of

    return asyncio.run(models_of(server, config.load()[0]))


@app.command("list")
def list_(
    server: Annotated[
        str | None,
        typer.Argument(help="A server to ask: ollama, openrouter, gemini, azure, openai, http(s)://host/v1."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON array.")] = False,
) -> None:
    """The models that can be fetched, and those that are there; with a server, the models that it has."""

    def run() -> int:
        from uql.llm import model_files as models

        if server is not None:
            names = _served(server)
            print(json.dumps(names) if as_json else "\n".join(names))
            return Code.OK

        found = models.list_models()
        if as_json:
            print(json.dumps([_as_dict(model) for model in found], indent=2))
            return Code.OK
        width = max((len(model.name) for model in found), default=0)
        for model in found:
            there = str(model.path) if model.there else f"not here: uql models pull {model.name}"
            print(f"{model.name:<{width}}  {model.bytes / 1e9:5.2f} GB  {model.licence or '–':<12}  {there}")
        return Code.OK

    raise typer.Exit(outcome.run(run))


@app.command()
def test(
    model: Annotated[
        str,
        typer.Argument(help="As --model takes it: local, local:/path/file.gguf, openai:NAME, http://HOST/v1#NAME …"),
    ] = "local",
) -> None:
    """Ask a model one question of each kind and say what it can do."""

    def run() -> int:
        from uql.base import config
        from uql.llm import model_files as models

        settings, _ = config.load()
        report = models.test_model(model, settings)
        _print_report(report)
        return Code.OK if all(ability.works for ability in report.abilities) else Code.QUERY

    raise typer.Exit(outcome.run(run))


def _print_report(report: ModelReport) -> None:
    def said(value: bool | None) -> str:
        return "not known" if value is None else "yes" if value else "no"

    print(report.model)
    for ability in report.abilities:
        print(f"  {ability.name:<10} {'works' if ability.works else 'fails':<6} {ability.detail}")
    context = f"{report.context:,} tokens" if report.context else "not known"
    print(f"  probabilities: {said(report.probabilities)}, JSON schema: {said(report.schema)}, context: {context}")
    print(f"  {report.seconds:.1f} s")
    for warning in report.warnings:
        narrate(warning, "warning")


def _as_dict(model: ModelFile) -> dict[str, object]:
    return {"name": model.name, "path": str(model.path), "there": model.there, "bytes": model.bytes}


def _not_had(error: Exception) -> int:
    narrate(str(error), "error")
    return Code.BACKEND


@dataclass(slots=True)
class Download:
    """Tells how far a download is: one line that is drawn anew on a terminal, a line now and then in a log."""

    stream: IO[str]
    clock: Callable[[], float] = time.monotonic
    drawn: float = field(default=float("-inf"))
    text: str = ""

    def __call__(self, done: int, total: int, text: str) -> None:
        now = self.clock()
        terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        changed = text != self.text
        if not changed and now - self.drawn < (_REDRAW_S if terminal else _LINE_S):
            return
        self.drawn, self.text = now, text
        share = f"{100 * done / total:3.0f} %, " if total else ""
        line = f"{text}: {share}{done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
        print(f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=self.stream, flush=True)

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self.text and self.stream.isatty() and os.environ.get("TERM") != "dumb":
            print("\r\x1b[K", end="", file=self.stream, flush=True)
