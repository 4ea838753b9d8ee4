"""Where the value of a setting comes from: defaults < the user's file < the project's file < UQL_* < arguments.

    ~/.config/uql/uql.toml     the user's file (the platform's own folder; $XDG_CONFIG_HOME is honoured)
    ./pyproject.toml           [tool.uql] of the folder one works in
    ./uql.toml                 the same, nearer
    UQL_BUDGET=64              the environment
    connect(budget=64)         arguments, and those of the command line

SET uql.budget and WITH (budget = …) are nearer still; the engine applies them. A project's file may be somebody else's:
whoever opens a folder that was sent to them must not send rows to the sender, nor have files read or written. So it sets only what
`uql.base.settings.IN_PROJECTS` lists, before the user has read it and said `uql config trust`; after a change it has to be said again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from uql.base import json_file, toml_file
from uql.base.errors import ConfigError
from uql.base.postgres_url import without_password
from uql.base.printable import printable
from uql.base.settings import IN_PROJECTS, NAMES, InProjects, Settings
from uql.base.user_folder import settings_folder

PREFIX = "UQL_"
FILE = "uql.toml"
PYPROJECT = "pyproject.toml"
NOT_SETTINGS = {"UQL_HOME", "UQL_DATA"}  # variables that mean something else
TRUSTED = "trusted.json"  # beside the user's file: digests of projects' files that the user has read
SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Layer:
    """Values of one place, unchecked.

    Attributes:
        origin: the place in a few words.
        path: of a project's file.
        content: of that file, read once: what is trusted is what is used.
    """

    origin: str
    values: Mapping[str, Any]
    path: Path | None = None
    content: bytes = b""

    @property
    def is_trusted(self) -> bool:
        """Is it the user's own, or did the user trust this file as it is now?"""
        return self.path is None or _trusted().get(str(self.path.absolute())) == self.digest

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def user_file() -> Path:
    """The user's own file, there or not."""
    return settings_folder() / FILE


def load(**arguments: Any) -> tuple[Settings, dict[str, str]]:
    """All layers put together and checked. The project's files are those of the current folder, not of the ones above it.

    Args:
        arguments: settings by name; None means not given.
    Returns: the settings, and for every name the origin of its value: "default", a path, "UQL_BUDGET", or "argument".
    Raises: ConfigError naming the origin of an unknown name or of a value that cannot be.
    """
    settings, origins = Settings(), dict.fromkeys(sorted(NAMES), "default")
    argument_layer = Layer("argument", {name: value for name, value in arguments.items() if value is not None})
    for layer in (*files(Path.cwd()), *_environment(), argument_layer):
        if not layer.is_trusted:
            _ask_for_trust(layer, settings)
        try:
            settings = settings.with_values(**layer.values)
        except ConfigError as error:
            if layer is argument_layer:
                raise
            raise ConfigError(f"{layer.origin}: {error.message}", help=error.help) from None
        for name in layer.values:
            origins[name] = layer.origin
    return settings, origins


def trust(layers: Sequence[Layer]) -> None:
    """Trust the projects' files as they were read: they may set endpoints, prices and plug-ins from now on."""
    _keep({**_trusted(), **{str(layer.path.absolute()): layer.digest for layer in layers if layer.path is not None}})


def distrust(layers: Sequence[Layer]) -> None:
    """Trust these files no longer."""
    gone = {str(layer.path.absolute()) for layer in layers if layer.path is not None}
    _keep({name: digest for name, digest in _trusted().items() if name not in gone})


def _trusted() -> dict[str, str]:
    path = user_file().with_name(TRUSTED)
    try:
        return {name: str(digest) for name, digest in json_file.read(path).items()}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", help="delete it, and trust the files again") from None


def _keep(digests: Mapping[str, str]) -> None:
    json_file.write(user_file().with_name(TRUSTED), dict(sorted(digests.items())))


def misspelt_variables() -> dict[str, str]:
    """Variables UQL_* that mean nothing and look like a setting: name → the name it may have meant."""
    variables = {PREFIX + name.upper() for name in NAMES}
    suggestions = {}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in variables and name not in NOT_SETTINGS:
            close = get_close_matches(name, variables, 1, cutoff=0.8)
            if close:
                suggestions[name] = close[0]
    return suggestions


def needs_trust(values: Mapping[str, Any], own: Settings) -> dict[str, str]:
    """The values of a project's file that need the user's trust, "name = value", each with what it would let the file do.

    `own`: the settings without the file.
    """
    permissions = {}
    for name, value in values.items():
        rule = IN_PROJECTS.get(name, InProjects(asks=f"set {name}"))
        if name in NAMES and not rule.allows(value, getattr(own, name)):
            display_value = without_password(value) if isinstance(value, str) else value
            permissions[printable(f"{name} = {display_value!r}")[:SHOWN]] = rule.asks
    return permissions


def would_allow(layers: Sequence[Layer]) -> list[str]:
    """What trusting the project's files among these would let them do, a line for each of their values that needs trust."""
    own = Settings()
    lines = []
    for layer in layers:
        if layer.path is not None:
            lines += [f"{value}: {what}" for value, what in needs_trust(layer.values, own).items()]
        else:
            own = own.with_values(**layer.values)
    return lines


def _ask_for_trust(layer: Layer, own: Settings) -> None:
    permissions = needs_trust(layer.values, own)
    if permissions:
        raise ConfigError(
            f"{layer.origin}: a project's file may not set {', '.join(permissions)} before you trust it: "
            f"it would {'; '.join(dict.fromkeys(permissions.values()))}",
            help=f"put it into {user_file()}, or read the file and run: uql config trust",
        )


# ------------------------------------------------------------------------------------------------------------- sources
def files(folder: Path) -> list[Layer]:
    """The user's file and those of a project that set something, nearest last. Raises: ConfigError for one that cannot be read."""
    user, project, pyproject = user_file(), folder / FILE, folder / PYPROJECT
    layers = [Layer(str(user), _toml(user)[0])]
    values, content = _toml(pyproject, b"tool.uql") if pyproject.is_file() else ({}, b"")
    own = values.get("tool", {}).get("uql", {})
    if not isinstance(own, dict):
        raise ConfigError(f"{pyproject}: [tool.uql] is a table of settings")
    layers.append(Layer(f"{pyproject} [tool.uql]", own, pyproject, content))
    if project != user:
        values, content = _toml(project)
        layers.append(Layer(str(project), values, project, content))
    return [layer for layer in layers if layer.values]


def _toml(path: Path, holding: bytes = b"") -> tuple[dict[str, Any], bytes]:
    """The top-level values of a TOML file and its content; nothing where there is none, or it does not hold these bytes."""
    try:
        if not path.exists():
            return {}, b""
        data = toml_file.content(path)
        return (toml_file.parsed(data), data) if holding in data else ({}, b"")
    except (ValueError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ConfigError:
    help = "it is a TOML file, UTF-8, as: budget = 256"
    if isinstance(error, PermissionError):
        help = "set HOME, or XDG_CONFIG_HOME, to a folder of this user"
    return ConfigError(f"{path} cannot be read: {error}", help=help)


def _environment() -> list[Layer]:
    """One layer a variable, so that an error names it. An empty variable is one that is not set; case does not matter."""
    variables = {name.upper(): value for name, value in os.environ.items() if value}
    names = {PREFIX + field.name.upper(): field.name for field in fields(Settings)}
    return [Layer(variable, {name: variables[variable]}) for variable, name in names.items() if variable in variables]
