"""Adapters: the ways in which a sub-query can be answered, one file each, with one interface (`base.Adapter`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from uql.base.errors import ConfigError

if TYPE_CHECKING:
    from uql.nl.adapters.base import Adapter

IN_PROCESS = {  # the class of each that runs in this process
    "uql": ("uql.nl.adapters.uql_adapter", "Uql"),
    "single_model": ("uql.nl.adapters.single_model", "SingleModel"),
    "structgpt": ("uql.nl.adapters.structgpt", "StructGPT"),
}
HERE = tuple(IN_PROCESS)
APART = ("lotus", "dspy", "llamaindex")  # in an environment of their own


def open_adapter(name: str) -> Adapter:
    """The adapter of a name. Raises ConfigError (UQL642) on an unknown one, and on one that is not installed."""
    if name in IN_PROCESS:
        module, kind = IN_PROCESS[name]
        opened: Adapter = getattr(import_module(module), kind)()
        return opened
    if name in APART:
        from uql.nl.adapters.environments import adapter

        return adapter(name)
    raise ConfigError(f"there is no adapter {name!r}", code="UQL642", help=f"there are {', '.join((*HERE, *APART))}")


def open_adapters(names: Sequence[str] = HERE) -> dict[str, Adapter]:
    """Adapters by name, in this order; without names those that need nothing installed."""
    return {name: open_adapter(name) for name in names}


def available() -> list[str]:
    """The adapters that can be opened: those of this process, and those that are installed."""
    from uql.nl.adapters.environments import installed

    return [*HERE, *(name for name in APART if installed(name))]
