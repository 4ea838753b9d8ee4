"""Packages that only some features need: asked for before any work is done for the feature."""

from __future__ import annotations

from importlib.util import find_spec

from uql.base.errors import ConfigError


def need(what: str, extra: str, *modules: str) -> None:
    """Raises ConfigError (UQL610) where one of the modules is not installed.

    Args:
        what: what needs them, in the plural: "plots".
        extra: of the distribution, that installs them.
        modules: as they are imported.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        packages = f"the package{'s' * (len(missing) > 1)} {' and '.join(missing)}"
        raise ConfigError(f"{what} need {packages}", code="UQL610", help=f"pip install 'uql-engine[{extra}]'")
