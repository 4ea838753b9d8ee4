"""Where the keys of models are found: the environment, the system's keyring, and a file that only the user can read.

The file is `keys.json` in the user's folder of settings, with mode 600. A key never stands in a uql.toml.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from uql.base.config import user_file
from uql.base.errors import ConfigError

FILE = "keys.json"
VENDORS = {  # a vendor's short name → the variable of its key
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "voyage": "VOYAGE_API_KEY",
}


def keys_file() -> Path:
    """The file of keys, there or not."""
    return user_file().with_name(FILE)


def variable(name: str) -> str:
    """The variable of a vendor's short name, or the variable itself.

    Raises: ConfigError (UQL402) for anything else.

    >>> variable("openai"), variable("MY_GATEWAY_KEY")
    ('OPENAI_API_KEY', 'MY_GATEWAY_KEY')
    """
    if name.lower() in VENDORS:
        return VENDORS[name.lower()]
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
        raise ConfigError(
            f"there is no key {name!r}", code="UQL402", help=f"one of {', '.join(VENDORS)}, or the name of a variable"
        )
    return name


def find(name: str) -> str | None:
    """The key of a variable; None where no place has it. The environment comes first, then the keyring, then the file."""
    return os.environ.get(name) or _in_keyring(name) or _stored().get(name)


def places() -> dict[str, str]:
    """Each key that is set, by its variable, and where it is found: "environment", "keyring" or the path of the file."""
    stored = _stored()
    found = {}
    for name in sorted({*VENDORS.values(), *stored}):
        if os.environ.get(name):
            found[name] = "environment"
        elif _in_keyring(name):
            found[name] = "keyring"
        elif name in stored:
            found[name] = str(keys_file())
    return found


def store(name: str, key: str) -> Path:
    """Keep a key in the file. Raises ConfigError (UQL402) for a key that is empty or not one printable word."""
    if not key or not key.isprintable() or " " in key:
        raise ConfigError("a key is one word of printable characters", code="UQL402")
    return _write({**_stored(), name: key})


def remove(name: str) -> bool:
    """Forget a key of the file. Returns: was it there?"""
    held = _stored()
    if name not in held:
        return False
    del held[name]
    _write(held)
    return True


def _in_keyring(name: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    found: str | None = keyring.get_password("uql", name)
    return found


def _stored() -> dict[str, str]:
    path = keys_file()
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", help="delete it, and set the keys again") from None
    return {str(name): str(key) for name, key in held.items()} if isinstance(held, dict) else {}


def _write(held: dict[str, str]) -> Path:
    """Write the file anew; nobody else can read it at any time, and a full disk leaves the old one."""
    path = keys_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
            json.dump(dict(sorted(held.items())), out, indent=2)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path
