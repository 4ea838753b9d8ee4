"""`uql init`: choose a model, try it, and write a uql.toml with every setting, its default and what it means."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from uql.base.errors import UQLError
from uql.base.settings import IN_PROJECTS, Settings, meanings
from uql.command import options
from uql.command.outcome import Code, UsageError, command, narrate, new_app, say

app = new_app()
_EXAMPLES = {
    "model": '"local"', "embedder": '"openai:text-embedding-3-small"', "budget": "256", "error": "0.1", "recall": "0.9",
    "precision": "0.9", "max_cost": "1.0", "max_seconds": "300", "max_tokens": "1000000", "method": '"uniform"',
    "strata": '"auto"', "explore": "0.1", "total": "0.125", "proxy": '"stars"', "audit": '"judged_rows"', "folder": '"."',
    "concurrency": "8", "ledger": '"ledger.sqlite"', "progress": "true",
}  # fmt: skip
_TABLES = ("endpoints", "prices")
WRITTEN = ("model", "budget", "max_cost")
LISTED = 20  # names of a server's models that are shown
KINDS = (  # of models: the name, what it is, an example of a model's name
    ("local", "on this machine, in this process: uql models pull fetches it (1.1 GB)", ""),
    ("ollama", "on this machine, by Ollama", ""),
    ("openai", "with a key", "gpt-5-mini"),
    ("anthropic", "with a key", "claude-haiku-4-5"),
    ("openrouter", "with a key", ""),
    ("gemini", "with a key", "gemini-2.5-flash"),
    ("http", "any other server of OpenAI's protocol: vLLM, llama.cpp, a gateway", ""),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is written beside the comments.

    Attributes:
        model: as the setting of that name; "": none.
        budget: calls of a statement; "": the default.
        max_cost: USD of a statement; "": no limit.
        price: USD per million tokens, input and output, of a model whose price is not known.
    """

    model: str = ""
    budget: str = ""
    max_cost: str = ""
    price: tuple[float, float] | None = None


@command(app)
def init(
    model: Annotated[
        str | None, typer.Option("-m", "--model", help="The model to write: local, openai:NAME, …")
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            metavar="IN,OUT", help="USD per million input and output tokens, for a model without a known price."
        ),
    ] = None,
    budget: options.Budget = None,
    max_cost: options.MaxCost = None,
    user: Annotated[bool, typer.Option("--user", help="The user's own file instead of ./uql.toml.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print it, write nothing.")] = False,
    no_call: Annotated[bool, typer.Option("--no-call", help="Do not make the test call.")] = False,
) -> int | None:
    """Choose a model, try it with a call, and write a commented uql.toml into this folder.

    On a terminal it asks; with options, or without a terminal, it does not. A model that does not answer is not written (exit code 3).
    """
    from uql.base.config import FILE, files, trust, user_file
    from uql.llm.trial import try_call

    path = user_file() if user else Path(FILE)
    if (path.exists() or path.is_symlink()) and not force and not show:
        raise UsageError(f"{path} is there already", help="--force replaces it, --print shows what would be written")
    chosen = Choice(model or "", budget or "", max_cost or "", _price(price))
    asks = model is None and not show and sys.stdin.isatty() and sys.stderr.isatty()
    if asks:
        chosen = _prompt_choice(chosen)
    settings = _checked(chosen)
    if chosen.model and not no_call and not show:
        try:
            trial = try_call(chosen.model, settings)
        except UQLError as error:
            if not asks or not typer.confirm(f"{error}\nWrite the file all the same?", err=True):
                raise
        else:
            narrate(f"{chosen.model} {trial.words()}")
            if trial.problem and not asks:
                return Code.BACKEND
    text = commented(project=not user, chosen=chosen)
    if show:
        print(text, end="")
        return None
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("w" if force else "x", encoding="utf-8") as file:
        file.write(text)
    if chosen.model and not user:
        trust([layer for layer in files(path.parent) if layer.path == path])  # the user has just written it
    say(path)
    return None


def _price(text: str | None) -> tuple[float, float] | None:
    if not text:
        return None
    try:
        input_usd, output_usd = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--price {text!r} is not IN,OUT", help="USD per million tokens, as --price 0.15,0.60"
        ) from None
    return input_usd, output_usd


def _checked(chosen: Choice) -> Settings:
    """The settings in force with the choice. Raises ConfigError where a value cannot be."""
    from uql.base import config

    choices: dict[str, Any] = {"model": chosen.model, "budget": chosen.budget, "max_cost": chosen.max_cost}
    values = {name: value for name, value in choices.items() if value}
    if chosen.price is not None:
        values["prices"] = {chosen.model: dict(zip(("input", "output"), chosen.price, strict=True))}
    return config.load(**values)[0]


# ------------------------------------------------------------------------------------------------------------ questions
def _prompt_choice(choice: Choice) -> Choice:
    """What the user answers on a terminal."""
    narrate("Which model reads your rows?")
    for number, (name, what, _) in enumerate(KINDS, 1):
        narrate(f"  {number}. {name:<11} {what}")
    narrate("  or a model's whole name, as openai:NAME or http://host/v1#NAME; empty: none for now")
    kinds = {word: entry for number, entry in enumerate(KINDS, 1) for word in (str(number), entry[0])}
    while True:
        model = typer.prompt("model", default="", show_default=False, err=True).strip()
        if not model or model in kinds or ":" in model or model.startswith("local?"):
            break
        narrate(f"{model!r} is neither a number from 1 to {len(KINDS)} nor the whole name of a model, as openai:NAME")
    if model in kinds:
        kind, _, example = kinds[model]
        model = "local" if kind == "local" else _model_of(kind, example)
    if not model:
        return choice
    _ask_key(model.partition(":")[0])
    return replace(choice, model=model, price=choice.price or _ask_price(model))


def _model_of(kind: str, example: str) -> str:
    """The name of a model of a vendor or server; those that it lists are shown."""
    import asyncio

    from uql.llm.providers.hosted import models_of

    if kind == "http":
        url = typer.prompt("address, as http://host:8000/v1", err=True).strip().rstrip("/")
        place, prefix = url, f"{url}#"
    else:
        place, prefix = kind, f"{kind}:"
        _ask_key(kind)
    try:
        if kind != "anthropic":
            names = asyncio.run(models_of(place, _checked(Choice())))
            narrate("models there: " + (", ".join(names[:LISTED]) or "none"))
    except UQLError as error:
        narrate(str(error), "note")
    return prefix + str(typer.prompt("model", default=example or None, err=True)).strip()


def _ask_key(kind: str) -> None:
    from uql.base import keys

    variable = keys.VARIABLES.get(kind)
    if variable is not None and keys.find(variable) is None:
        key = typer.prompt(
            f"key for {kind}, kept in {keys.place()} (empty: later)",
            default="",
            hide_input=True,
            show_default=False,
            err=True,
        )
        if key.strip():
            keys.store(variable, key.strip())


def _ask_price(model: str) -> tuple[float, float] | None:
    """The price of a model: said where it is known, asked for where it is not."""
    from uql.llm.providers import open_provider

    try:
        price = open_provider(model, _checked(Choice()).with_values(offline=True)).price
    except UQLError:
        return None
    if price is not None:
        narrate(f"price: ${price.input:g} + ${price.output:g} per million tokens")
        return None
    text = typer.prompt(
        "its price is not known: USD per million tokens as IN,OUT (empty: unknown)",
        default="",
        show_default=False,
        err=True,
    )
    return _price(text.strip())


def commented(*, project: bool, chosen: Choice | None = None) -> str:
    """The text of the file: every setting with its meaning, behind a # but for what was chosen."""
    where = (
        "for this folder; it may come from a stranger, so some need: uql config trust" if project else "for all folders"
    )
    lines = [f"# Settings of UQL, {where}.", "# uql config show prints what holds and where it comes from.", ""]
    comments = meanings()
    for field in fields(Settings):
        rule = IN_PROJECTS[field.name]
        setting = getattr(chosen, field.name, "") if field.name in WRITTEN else ""
        if setting:
            value = setting if field.name != "model" and setting != "all" else json.dumps(setting)
            lines += [f"# {comments[field.name]}", f"{field.name} = {value}", ""]
            continue
        if project and not rule.takes_any:
            continue
        lines.append(f"# {comments[field.name]}")
        if project and rule.asks:
            lines.append(f"# without trust: {rule.words()}")
        if field.name in _TABLES:
            lines += [f"# {field.name}: tables of their own, described in docs/models.md", ""]
            continue
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        lines += [f"# {field.name} = {_EXAMPLES.get(field.name) or json.dumps(default)}", ""]
    if chosen is not None and chosen.price is not None:
        input_usd, output_usd = chosen.price
        lines += [
            f"[prices.{json.dumps(chosen.model)}]  # USD per million tokens",
            f"input = {input_usd}",
            f"output = {output_usd}",
            "",
        ]
    return "\n".join(lines)
