"""The providers by the first word of a model's name. Each is one file and is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm.providers.base import Provider, usable

HOSTED = ("ollama", "openrouter", "mistral", "deepseek", "groq", "xai", "azure")  # of OpenAI's protocol
BUILT_IN = {
    "local": "uql.llm.providers.local",
    "oracle": "uql.llm.providers.oracle",
    "openai": "uql.llm.providers.openai_api",
    "anthropic": "uql.llm.providers.anthropic_api",
    "gemini": "uql.llm.providers.gemini_api",
    "systemone": "uql.llm.providers.systemone",
    "scripted": "uql.llm.providers.scripted",
    **dict.fromkeys(HOSTED, "uql.llm.providers.hosted"),
    "http": "uql.llm.providers.compatible",
    "https": "uql.llm.providers.compatible",
}
NAMED = ("openai", "anthropic", "gemini", *HOSTED)  # whose models have names
WHOLE = ("http", "https", *HOSTED)  # opened by their whole name
CHOICES = (
    "local, local:NAME, local:/path/file.gguf, http(s)://host/v1#MODEL, openai:MODEL, anthropic:MODEL, ollama:MODEL, "
    "openrouter:MODEL, gemini:MODEL, mistral:MODEL, deepseek:MODEL, groq:MODEL, xai:MODEL, azure:DEPLOYMENT, "
    "systemone:http(s)://host#MODEL, oracle:FILE.toml"
)
FAMILIES = {
    **dict.fromkeys(("gpt", "o1", "o3", "o4"), "openai"),
    **dict.fromkeys(("llama", "qwen", "gemma", "phi"), "ollama"),
    **{name: name for name in ("gemini", "mistral", "deepseek")},
    "claude": "anthropic",
    "grok": "xai",
}
GROUP = "uql.providers"  # entry points of third parties; used only where the user's configuration names them


def open_provider(spec: str | Provider | None, settings: Settings, *, plugins: tuple[str, ...] = ()) -> Provider:
    """The provider that a model's name stands for.

    Args:
        spec: as in `CHOICES`; a Provider is returned as it is.
        plugins: kinds of third parties that the user's configuration allows; a model's name alone loads none.
    Raises: ConfigError where no model is set or its kind is unknown; what the provider's own opening raises.
    """
    if spec is None:
        raise ConfigError(
            "no model is set", code="UQL402", help=f"`uql init` chooses one; or set model to one of: {CHOICES}"
        )
    if not isinstance(spec, str):
        return usable(spec)
    if spec.startswith("local?"):
        spec = spec.replace("?", ":?", 1)
    kind, colon, rest = spec.partition(":")
    if colon and kind in NAMED and not rest.partition("?")[0]:
        raise ConfigError(f"{kind}: needs the name of a model, as {kind}:MODEL", code="UQL402")
    if kind in BUILT_IN and (colon or kind == "local"):
        opened: Callable[[str, Settings], Provider] = import_module(BUILT_IN[kind]).open_provider
        return opened(spec if kind in WHOLE else rest, settings)
    if colon and kind in plugins:
        for entry in entry_points(group=GROUP):
            if entry.name == kind:
                make: Any = entry.load()
                return usable(partial(make, rest, settings)())
    vendor = next((vendor for family, vendor in FAMILIES.items() if spec.lower().startswith(family)), None)
    near = f"did you mean {vendor}:{spec}? " if vendor else ""
    raise ConfigError(f"there is no kind of model {spec!r}", code="UQL402", help=f"{near}choices: {CHOICES}")
