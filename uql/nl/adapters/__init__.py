"""Adapters: the ways in which a sub-query can be answered, one file each, with one interface (`base.Adapter`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uql.base.errors import ConfigError

if TYPE_CHECKING:
    from uql.nl.adapters.base import Adapter

HERE = ("uql", "single_model", "structgpt")  # in this process
APART = ("lotus", "dspy", "llamaindex")  # in an environment of their own


def open_adapter(name: str) -> Adapter:
    """The adapter of a name. Raises ConfigError (UQL642) on an unknown one, and on one that is not installed."""
    if name == "uql":
        from uql.nl.adapters.uql_adapter import Uql

        return Uql()
    if name == "single_model":
        from uql.nl.adapters.single_model import SingleModel

        return SingleModel()
    if name == "structgpt":
        from uql.nl.adapters.structgpt import StructGPT

        return StructGPT()
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
