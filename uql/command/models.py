"""`uql models pull | list | test`: fetch a local model, see which are there, try what one can do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Annotated

import typer

from uql.base import config
from uql.base.errors import DataError
from uql.command import options
from uql.command.outcome import Code, command, narrate, new_app, say
from uql.command.output import print_json
from uql.llm import model_files as models

if TYPE_CHECKING:
    from uql.llm.model_files import ModelReport

app = new_app("Models that run on this machine, in $UQL_HOME/models or the user's data folder.")
_LINE_S = 10.0  # between two lines in a log
_REDRAW_S = 0.2  # between two drawings on a terminal


@command(app)
def pull(
    name: Annotated[
        str | None, typer.Argument(help="A model of `uql models list`; without it the default one.")
    ] = None,
    quiet: options.NoProgress = False,
) -> int:
    """Fetch a model, unless it is there. What was fetched before a break is used. Prints the path of its file or folder."""
    from uql.base.extras import need

    if name == models.WHISPER:
        need("transcripts", "audio", "faster_whisper")
    else:
        need("local models", "local", "xllamacpp")  # before a gigabyte is fetched for nothing
    with closing(Download(sys.stderr)) as download:
        try:
            path = models.pull(name or models.DEFAULT, progress=None if quiet else download)
        except DataError as error:  # no source, a full disk, a wrong digest: the model is not available
            download.close()
            narrate(str(error), "error")
            return Code.BACKEND
    say(path)
    return Code.OK


@command(app, "list")
def list_(
    server: Annotated[
        str | None,
        typer.Argument(
            help="A server to ask: ollama, openrouter, gemini, mistral, deepseek, groq, xai, azure, openai, http(s)://host/v1."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """The models that can be downloaded and those that are installed; with a server, the models it serves."""
    if server is not None:
        names = _served(server)
        print_json(names) if as_json else say("\n".join(names))
        return
    listing = models.list_models()
    if as_json:
        print_json([{"name": m.name, "path": str(m.path), "there": m.there, "bytes": m.bytes} for m in listing])
        return
    width = max((len(model.name) for model in listing), default=0)
    for model in listing:
        there = str(model.path) if model.there else f"not here: uql models pull {model.name}"
        say(f"{model.name:<{width}}  {model.bytes / 1e9:5.2f} GB  {model.licence or '–':<12}  {there}")


def _served(server: str) -> list[str]:
    import asyncio

    from uql.llm.providers.hosted import models_of

    return asyncio.run(models_of(server, config.load()[0]))


@command(app)
def test(
    model: Annotated[
        str,
        typer.Argument(help="As --model takes it: local, local:/path/file.gguf, openai:NAME, http://HOST/v1#NAME …"),
    ] = "local",
) -> int:
    """Ask a model one question of each kind and say what it can do."""
    settings, _ = config.load()
    report = models.test_model(model, settings)
    _print_report(report)
    return Code.OK if all(ability.works for ability in report.abilities) else Code.QUERY


def _print_report(report: ModelReport) -> None:
    def yes_no(value: bool | None) -> str:
        return "not known" if value is None else "yes" if value else "no"

    say(report.model)
    for ability in report.abilities:
        say(f"  {ability.name:<10} {'works' if ability.works else 'fails':<6} {ability.detail}")
    context = f"{report.context:,} tokens" if report.context else "not known"
    say(f"  probabilities: {yes_no(report.probabilities)}, JSON schema: {yes_no(report.schema)}, context: {context}")
    say(f"  {report.seconds:.1f} s")
    for warning in report.warnings:
        narrate(warning, "warning")


@dataclass(slots=True)
class Download:
    """Tells how far a download is: one line that is drawn anew on a terminal, a line now and then in a log."""

    stream: IO[str]
    clock: Callable[[], float] = time.monotonic
    last_draw_s: float = field(default=float("-inf"))
    text: str = ""

    def __call__(self, done: int, total: int, text: str) -> None:
        now = self.clock()
        terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
        changed = text != self.text
        if not changed and now - self.last_draw_s < (_REDRAW_S if terminal else _LINE_S):
            return
        self.last_draw_s, self.text = now, text
        share = f"{100 * done / total:3.0f} %, " if total else ""
        scale, unit = (1e6, "MB") if total >= 1e6 else (1e3, "kB")
        line = f"{text}: {share}{done / scale:,.0f} of {total / scale:,.0f} {unit}"
        print(f"\r\x1b[K{line}" if terminal else line, end="" if terminal else "\n", file=self.stream, flush=True)

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self.text and self.stream.isatty() and os.environ.get("TERM") != "dumb":
            print("\r\x1b[K", end="", file=self.stream, flush=True)
