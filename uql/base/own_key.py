"""A secret of the user, beside the settings, by which UQL finds again that it wrote something itself, where others may write too."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from uql.base.config import user_file

_BYTES = 32


def key_file() -> Path:
    """Where the key lies, there or not."""
    return user_file().with_name("runs.key")


def own_key(*, make: bool = False) -> bytes | None:
    """The user's key; None where there is none, or it cannot be made."""
    path = key_file()
    with suppress(OSError):
        if make and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(file, "wb") as opened:
                    opened.write(secrets.token_bytes(_BYTES))
        if path.is_file():
            with path.open("rb") as opened:
                key = opened.read(_BYTES)
            return key if len(key) == _BYTES else None
    return None
