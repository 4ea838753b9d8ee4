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
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from uql.base import toml_file
from uql.base.errors import ConfigError
from uql.base.postgres_url import without_password
from uql.base.printable import printable
from uql.base.settings import IN_PROJECTS, NAMES, InProjects, Settings

PREFIX = "UQL_"
FILE = "uql.toml"
PYPROJECT = "pyproject.toml"
NOT_SETTINGS = {"UQL_HOME", "UQL_DATA", "UQL_DEBUG"}  # variables that mean something else
TRUSTED = "trusted.json"  # beside the user's file: digests of projects' files that the user has read
SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Layer:
    """Values of one place, unchecked; `origin` says where in a few words."""

    origin: str
    values: Mapping[str, Any]
    project: bool = False
    path: Path | None = None


def user_file() -> Path:
    """The user's own file, there or not."""
    from platformdirs import user_config_path

    return user_config_path("uql", appauthor=False) / FILE


def load(**arguments: Any) -> tuple[Settings, dict[str, str]]:
    """All layers put together and checked. The project's files are those of the current folder, not of the ones above it.

    Args:
        arguments: settings by name; None means not given.
    Returns: the settings, and for every name the origin of its value: "default", a path, "UQL_BUDGET", or "argument".
    Raises: ConfigError naming the origin of an unknown name or of a value that cannot be.
    """
    settings, origins = Settings(), dict.fromkeys(sorted(NAMES), "default")
    given = Layer("argument", {name: value for name, value in arguments.items() if value is not None})
    for layer in (*_files(Path.cwd()), *_environment(), given):
        if layer.project and not (layer.path is not None and is_trusted(layer.path)):
            _ask_for_trust(layer, settings)
        try:
            settings = settings.with_values(**layer.values)
        except ConfigError as error:
            if layer is given:
                raise
            raise ConfigError(f"{layer.origin}: {error.message}", help=error.help) from None
        for name in layer.values:
            origins[name] = layer.origin
    return settings, origins


def project_files(folder: Path) -> list[Path]:
    """The files of a project that set something, nearest last."""
    pyproject, project = folder / PYPROJECT, folder / FILE
    return [*([pyproject] if _tool_table(pyproject) else []), *([project] if project.is_file() else [])]


def is_trusted(path: Path) -> bool:
    """Did the user trust this file, as it is now? A file that has changed since is not trusted any more."""
    return _trusted().get(str(path.absolute())) == _digest(path)


def trust(paths: Sequence[Path]) -> None:
    """Trust these files as they are: they may set endpoints, prices and plug-ins from now on."""
    _keep({**_trusted(), **{str(path.absolute()): _digest(path) for path in paths}})


def distrust(paths: Sequence[Path]) -> None:
    """Trust these files no longer."""
    gone = {str(path.absolute()) for path in paths}
    _keep({name: digest for name, digest in _trusted().items() if name not in gone})


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(toml_file.content(path)).hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _trusted() -> dict[str, str]:
    path = user_file().with_name(TRUSTED)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", help="delete it, and trust the files again") from None
    return {str(name): str(digest) for name, digest in held.items()}


def _keep(digests: Mapping[str, str]) -> None:
    path = user_file().with_name(TRUSTED)
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".part")  # on a full disk the files that were trusted before stay so
    try:
        whole.write_text(json.dumps(dict(sorted(digests.items())), indent=2), encoding="utf-8")
        whole.replace(path)
    finally:
        whole.unlink(missing_ok=True)


def misspelt_variables() -> dict[str, str]:
    """Variables UQL_* that mean nothing and look like a setting: name → the name it may have meant."""
    known = {PREFIX + name.upper() for name in NAMES}
    found = {}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known and name not in NOT_SETTINGS:
            close = get_close_matches(name, known, 1, cutoff=0.8)
            if close:
                found[name] = close[0]
    return found


def needs_trust(values: Mapping[str, Any], own: Settings) -> dict[str, str]:
    """The values of a project's file that need the user's trust, "name = value", each with what it would let the file do.

    `own`: the settings without the file.
    """
    found = {}
    for name, value in values.items():
        rule = IN_PROJECTS.get(name, InProjects(asks=f"set {name}"))
        if name in NAMES and not rule.allows(value, getattr(own, name)):
            shown = without_password(value) if isinstance(value, str) else value
            found[printable(f"{name} = {shown!r}")[:SHOWN]] = rule.asks
    return found


def would_allow(folder: Path) -> list[str]:
    """What trusting the files of a project would let them do, a line for each of their values that needs trust."""
    own = Settings()
    lines = []
    for layer in _files(folder):
        if layer.project:
            lines += [f"{value}: {what}" for value, what in needs_trust(layer.values, own).items()]
        else:
            own = own.with_values(**layer.values)
    return lines


def _ask_for_trust(layer: Layer, own: Settings) -> None:
    found = needs_trust(layer.values, own)
    if found:
        raise ConfigError(
            f"{layer.origin}: a project's file may not set {', '.join(found)} before you trust it: "
            f"it would {'; '.join(dict.fromkeys(found.values()))}",
            help=f"put it into {user_file()}, or read the file and run: uql config trust",
        )


# ------------------------------------------------------------------------------------------------------------- sources
def _files(folder: Path) -> list[Layer]:
    user, project, pyproject = user_file(), folder / FILE, folder / PYPROJECT
    layers = [
        Layer(str(user), _toml(user)),
        Layer(f"{pyproject} [tool.uql]", _tool_table(pyproject), project=True, path=pyproject),
    ]
    if project != user:
        layers.append(Layer(str(project), _toml(project), project=True, path=project))
    return [layer for layer in layers if layer.values]


def _toml(path: Path, holding: bytes = b"") -> dict[str, Any]:
    """The top-level values of a TOML file, {} when there is none, or where it does not hold these bytes."""
    if not path.exists():
        return {}
    try:
        data = toml_file.content(path)
        return toml_file.parsed(data) if holding in data else {}
    except (ValueError, OSError) as error:
        raise _unreadable(path, error) from None


def _tool_table(path: Path) -> dict[str, Any]:
    table = _toml(path, b"tool.uql").get("tool", {}).get("uql", {}) if path.is_file() else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.uql] is a table of settings")
    return table


def _unreadable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path} cannot be read: {error}", help="it is a TOML file, UTF-8, as: budget = 256")


def _environment() -> list[Layer]:
    """One layer a variable, so that an error names it. An empty variable is one that is not set; case does not matter."""
    given = {name.upper(): value for name, value in os.environ.items() if value}
    named = {PREFIX + field.name.upper(): field.name for field in fields(Settings)}
    return [Layer(variable, {name: given[variable]}) for variable, name in named.items() if variable in given]
