"""What servers could do when they were tried, kept for a week beside the ledger. Servers of this machine are tried by each process."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

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
    path = file()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{FILE}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump({**_all(), name: {**facts, "at": time.time()}}, stream, indent=1)
        os.replace(temporary, path)


def _all() -> dict[str, object]:
    try:
        content = json.loads(file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
