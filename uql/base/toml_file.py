"""TOML files that somebody else may have written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

MOST_BYTES = 4_000_000


def content(path: Path) -> bytes:
    """The content of a file. Raises OSError for what is not a regular file (a pipe or a device never ends) or too long."""
    if path.exists() and not path.is_file():
        raise OSError("not a file")
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"longer than {MOST_BYTES:,} bytes")
    return data


def parsed(data: bytes) -> dict[str, Any]:
    """The values of a TOML text. Raises ValueError for one that is not UTF-8 or TOML, or nests too deep."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("it nests too deep") from None
