"""JSON objects in files that only the user can read: keys, what was trusted, what servers can do, what a page keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    """The object of a file; empty where there is no file. Raises OSError, ValueError where it cannot be read or holds another value."""
    try:
        if path.exists() and not path.is_file():
            raise OSError("not a file")  # a pipe or a device never ends
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Puts an object in the place of a file. No other user can read it at any time; a full disk leaves the old one. Raises OSError."""
    import tempfile

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(values, file, ensure_ascii=False, indent=1)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)
