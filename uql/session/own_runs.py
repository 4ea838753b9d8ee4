"""Which runs of a ledger this user began.

A ledger may lie where others can write: in a folder that was sent, on a server. What it says of a run is a statement that `resume` runs
and where its rows go. So each run is signed, with a key that lies beside the user's settings; another one asks for the user's trust.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.base.config import user_file
from uql.base.errors import ConfigError
from uql.base.printable import printable

if TYPE_CHECKING:
    from uql.llm.ledger_rows import StoredRun

SIGNATURE = "signature"  # of a run, among what it takes to continue it
SHOWN = 200  # characters of a statement in an error
_BYTES = 32


def key_file() -> Path:
    """The user's key of runs, there or not."""
    return user_file().with_name("runs.key")


def signed(run: str, statement: str, details: str) -> str:
    """What it takes to continue a run, with the user's signature; without one where the key cannot be kept.

    Args:
        details: JSON of an object.
    """
    state = json.loads(details)
    key = _key(make=True)
    return details if key is None else json.dumps({**state, SIGNATURE: _signature(key, run, statement, state)})


def is_own(run: StoredRun) -> bool:
    """Did this user begin the run, as the ledger has it now?"""
    state = json.loads(run.details)
    signature, key = state.pop(SIGNATURE, None), _key()
    if key is None or not isinstance(signature, str):
        return False
    return hmac.compare_digest(_signature(key, run.id, run.statement, state).encode(), signature.encode())


def check_own(run: StoredRun) -> None:
    """Raises ConfigError (UQL418) for a run that this user did not begin."""
    if not is_own(run):
        statement = printable(" ".join(run.statement.split()))[:SHOWN]
        raise ConfigError(
            f"you did not begin the run {run.id} as the ledger has it; its statement: {statement}",
            code="UQL418",
            help=f"`uql resume {run.id}` shows what it would do and asks; con.resume({run.id!r}, trust=True) does not ask",
        )


def _signature(key: bytes, run: str, statement: str, state: Mapping[str, Any]) -> str:
    text = json.dumps([run, statement, state], sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _key(make: bool = False) -> bytes | None:
    """The user's key; None where there is none, or it cannot be made."""
    path = key_file()
    with suppress(OSError):
        if make and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(file, "wb") as opened:
                    opened.write(secrets.token_bytes(_BYTES))
        if path.is_file():
            with path.open("rb") as opened:
                key = opened.read(_BYTES)
            return key if len(key) == _BYTES else None
    return None
