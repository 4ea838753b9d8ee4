"""Where API keys are kept: the environment, the system's keyring, and a file that only the user can read.

The keyring needs the extra `keys` (the package keyring) and a backend, as desktops have one. The file is `keys.json` in the user's
folder of settings, with mode 600; a keyring cannot be listed, so the file has the names of its keys too, with "" in place of the key.
A key is never in a uql.toml.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from uql.base import json_file
from uql.base.config import user_file
from uql.base.errors import ConfigError
from uql.base.vendors import VENDORS

FILE = "keys.json"
KEYRING = "keyring"  # the place of that name
_SERVICE = "uql"  # the keyring's entries are (_SERVICE, variable)
VARIABLES = {name: vendor.key_env for name, vendor in VENDORS.items() if vendor.key_env}  # by a vendor's short name


def keys_file() -> Path:
    """The file of keys, there or not."""
    return user_file().with_name(FILE)


def variable(name: str) -> str:
    """The variable of a vendor's short name, or the variable itself.

    Raises: ConfigError (UQL402) for anything else.

    >>> variable("openai"), variable("MY_GATEWAY_KEY")
    ('OPENAI_API_KEY', 'MY_GATEWAY_KEY')
    """
    if name.lower() in VARIABLES:
        return VARIABLES[name.lower()]
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
        raise ConfigError(
            f"there is no key {name!r}", code="UQL402", help=f"one of {', '.join(VARIABLES)}, or the name of a variable"
        )
    return name


def find(name: str) -> str | None:
    """The key of a variable; None where no place has it. The environment comes first, then the keyring, then the file.

    Raises: ConfigError (UQL402) where only a keyring that cannot be read may have it.
    """
    value = os.environ.get(name)
    if value:
        return value
    stored = _stored().get(name)
    try:
        return _in_keyring(name) or stored
    except ConfigError:
        if stored:
            return stored
        raise


def places() -> dict[str, str]:
    """Each key that is set, by its variable, and where it is found: "environment", "keyring" or the path of the file.

    Where the keyring cannot be read, the keys of the other places alone: `keyring_problem` says why.
    """
    stored = _stored()
    sources = {}
    readable = keyring_problem() is None
    for name in sorted({*VARIABLES.values(), *stored}):
        if os.environ.get(name):
            sources[name] = "environment"
        elif readable and _in_keyring(name):
            sources[name] = KEYRING
        elif stored.get(name):
            sources[name] = str(keys_file())
    return sources


def keyring_problem() -> str | None:
    """Why the keyring cannot be read; None where it can be, or there is none."""
    try:
        _in_keyring("OPENAI_API_KEY")
    except ConfigError as error:
        return error.message
    return None


def place() -> str:
    """Where `store` keeps a key: "keyring", or the path of the file where there is no keyring."""
    return KEYRING if _keeps() else str(keys_file())


def store(name: str, key: str, *, in_file: bool = False) -> str:
    """Keep a key, in the keyring where there is one, else in the file. The other of the two forgets it.

    Args:
        in_file: keep it in the file all the same.

    Returns: where it is, as `place` says. Raises: ConfigError (UQL402) for a key that is empty or not one printable word, and where the
        keyring does not take it.
    """
    if not key or not key.isprintable() or " " in key:
        raise ConfigError("a key is one word of printable characters", code="UQL402")
    if in_file or not _keeps():
        _write({**_stored(), name: key})
        if keyring_problem() is None:
            _forget_in_keyring(name)
        return str(keys_file())
    _of_keyring("set_password", name, key)
    _write({**_stored(), name: ""})
    return KEYRING


def remove(name: str) -> bool:
    """Forget a key, in the keyring and in the file. Returns: was it there?"""
    return bool(_forget_in_keyring(name) | _forget_in_file(name))


# -------------------------------------------------------------------------------------------------------------- keyring
def _keyring() -> Any:
    """The package keyring; None where it is not installed."""
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _keeps() -> bool:
    """Is there a keyring that keeps secrets? Backends below priority 1 keep none, or in plain text."""
    package = _keyring()
    try:
        return package is not None and package.get_keyring().priority >= 1
    except RuntimeError:  # a backend that is configured and cannot run here
        return False


def _in_keyring(name: str) -> str | None:
    return _of_keyring("get_password", name)


def _forget_in_keyring(name: str) -> bool:
    if _in_keyring(name) is None:
        return False
    _of_keyring("delete_password", name)
    return True


def _of_keyring(function: str, *arguments: str) -> str | None:
    """What a function of the package keyring returns for our service; None where there is no keyring.

    Raises: ConfigError (UQL402) where the keyring is locked or fails.
    """
    package = _keyring()
    if package is None:
        return None
    from keyring.errors import KeyringError, NoKeyringError

    try:
        value: str | None = getattr(package, function)(_SERVICE, *arguments)
    except NoKeyringError:
        return None
    except KeyringError as error:
        raise ConfigError(
            f"the system's keyring cannot be used: {error}",
            code="UQL402",
            help="unlock it; or keep the key in a file: uql keys set NAME --file",
        ) from None
    return value


# ----------------------------------------------------------------------------------------------------------------- file
def _stored() -> dict[str, str]:
    path = keys_file()
    try:
        return {name: str(key) for name, key in json_file.read(path).items()}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", help="delete it, and set the keys again") from None


def _forget_in_file(name: str) -> bool:
    entries = _stored()
    if name not in entries:
        return False
    key = entries.pop(name)
    _write(entries)
    return bool(key)


def _write(values: dict[str, str]) -> None:
    json_file.write(keys_file(), dict(sorted(values.items())))
