"""What servers could do when they were tried, kept for a week beside the ledger. Servers of this machine are tried by each process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from uql.base import json_file
from uql.llm.ledger_sqlite import default_path
from uql.llm.providers.base import Capabilities

FILE = "servers.json"
KEPT_S = 7 * 86_400.0


def file() -> Path:
    """Where it is kept."""
    return default_path().with_name(FILE)


def load(name: str, now: float | None = None) -> Capabilities | None:
    """What the server and model of a name could do; None where it was never tried, or too long ago."""
    values = facts(name, now)
    names = {field.name for field in fields(Capabilities)}
    return Capabilities(**{key: value for key, value in values.items() if key in names}) if values else None


def save(name: str, can: Capabilities) -> None:
    """Keep what a server can do. Where the folder cannot be written, it is tried again by the next process."""
    keep_facts(name, asdict(can))


def facts(name: str, now: float | None = None) -> dict[str, Any]:
    """What else is known of a server and model, empty where nothing is, or since too long."""
    entry = _all().get(name)
    if not isinstance(entry, dict) or (time.time() if now is None else now) - entry.get("at", 0.0) > KEPT_S:
        return {}
    return entry


def keep_facts(name: str, facts: Mapping[str, Any]) -> None:
    """Keep plain values about a server and model instead of what was kept."""
    with suppress(OSError):
        json_file.write(file(), {**_all(), name: {**facts, "at": time.time()}})


def _all() -> dict[str, Any]:
    try:
        return json_file.read(file())
    except (OSError, ValueError):
        return {}
