"""`uql doctor`: what is installed, which models answer, what a call takes and costs."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import typer

from uql.base import config, keys
from uql.base.errors import UQLError
from uql.base.printable import aligned, printable_lines
from uql.base.settings import Settings
from uql.base.version import __version__
from uql.command import options
from uql.command.outcome import Code, command, new_app
from uql.command.output import print_json

app = new_app()
LIST_TIMEOUT_S = 5.0  # for a server's list of models
SERVERS = ("ollama", "openai", "openrouter", "gemini", "mistral", "deepseek", "groq", "xai")  # that list their models
DETAIL = 100  # characters of a list of names


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Attributes:
        state: "ok"; "missing" for what may be missing; "fails" for what was asked for and does not work.
        help: what to do; "" where there is nothing to do.
    """

    about: str
    name: str
    state: str
    detail: str
    help: str = ""


@command(app)
def doctor(
    models: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="A model to try; may be repeated. Default: that of the settings."),
    ] = None,
    no_call: Annotated[bool, typer.Option("--no-call", help="Make no calls, reach no server.")] = False,
    as_json: options.Json = False,
) -> int:
    """Say what is installed, which keys are set, which models answer, and what a call takes and costs.

    The model of the settings, and those of --model, get two short questions; servers are asked for their lists of models only.
    Exit code 3 where a model does not answer.
    """
    settings, origins = config.load()
    tried = list(models or ([settings.model] if settings.model else settings.models))
    checks = [*_installed(), *_places(settings, origins), *_keys(), *_local()]
    if not no_call:
        checks += [*_servers(settings), *(_trial(model, settings) for model in tried)]
    if not tried:
        checks.append(Check("model", "–", "missing", "no model is set", "uql init, or --model NAME with each command"))
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        _table(checks)
    return Code.BACKEND if any(check.state == "fails" for check in checks) else Code.OK


def _table(checks: list[Check]) -> None:
    rows = [(c.about, c.name, c.state, f"{c.detail} ({c.help})" if c.help else c.detail) for c in checks]
    for line in aligned(rows):
        sys.stdout.write(printable_lines(line) + "\n")


def _installed() -> Iterator[Check]:
    from importlib.metadata import version

    from uql.base.extras import EXTRAS, install, missing

    yield Check(
        "version", "uql", "ok", f"{__version__}, Python {platform.python_version()}, DuckDB {version('duckdb')}"
    )
    for extra, (what, _) in EXTRAS.items():
        absent = missing(extra)
        detail = f"{what}: {', '.join(absent)}" if absent else what
        yield Check("extra", extra, "missing" if absent else "ok", detail, install(extra) if absent else "")


def _places(settings: Settings, origins: dict[str, str]) -> Iterator[Check]:
    from uql.base.config import user_file
    from uql.base.postgres_url import without_password
    from uql.llm.ledger_sqlite import default_path

    user = user_file()
    yield Check("settings", "yours", "ok" if user.exists() else "missing", str(user))
    changed = [f"{name} ({origin})" for name, origin in origins.items() if origin not in ("default", str(user))]
    if changed:
        yield Check("settings", "nearer", "ok", ", ".join(changed))
    yield Check("ledger", "answers", "ok", without_password(settings.ledger or str(default_path())))


def _keys() -> Iterator[Check]:
    places = keys.places()
    for name, place in places.items():
        yield Check("key", name, "ok", place)
    if not places:
        yield Check("key", "–", "missing", "no key of a vendor is set", "uql keys set openai")
    problem = keys.keyring_problem()
    if problem is not None:
        yield Check("key", "keyring", "fails", problem, "unlock it, or uql keys set NAME --file")


def _local() -> Iterator[Check]:
    from uql.llm.model_files import list_models

    for model in list_models():
        detail = str(model.path) if model.there else f"{model.bytes / 1e9:.1f} GB"
        help = "" if model.there else f"uql models pull {model.name}"
        yield Check("file", model.name, "ok" if model.there else "missing", detail, help)


def _servers(settings: Settings) -> Iterator[Check]:
    """Ollama, and the vendors whose key is set: do they list models?"""
    quick, places = settings.with_values(timeout_s=min(settings.timeout_s, LIST_TIMEOUT_S)), keys.places()
    for name in SERVERS:
        key = keys.VARIABLES.get(name)
        if key is None or key in places:
            yield _reached("server", name, partial(_listed, name, quick), required=key is not None)


def _listed(server: str, settings: Settings) -> str:
    import asyncio

    from uql.llm.providers.hosted import models_of

    names = asyncio.run(models_of(server, settings))
    return f"{len(names)} models: {', '.join(names)}"[:DETAIL]


def _trial(model: str, settings: Settings) -> Check:
    from uql.llm.trial import try_call

    return _reached("model", model, lambda: try_call(model, settings).words(), required=True)


def _reached(about: str, name: str, work: Callable[[], str], *, required: bool) -> Check:
    """What the work says, or why the model was not reached, which is a failure where it is required."""
    try:
        message = work()
    except UQLError as error:
        return Check(about, name, "fails" if required else "missing", error.message, error.help or "")
    return Check(about, name, "fails" if message.startswith("gives no answer") else "ok", message)
