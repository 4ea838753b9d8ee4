"""Which runs of a ledger this user began.

A ledger may lie where others can write: in a folder that was sent, on a server. What it says of a run is a statement that `resume` runs
and where its rows go. So each run is signed, with a key that lies beside the user's settings; another one asks for the user's trust.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uql.base.errors import ConfigError
from uql.base.own_key import own_key
from uql.base.printable import printable

if TYPE_CHECKING:
    from uql.llm.ledger_rows import StoredRun

SIGNATURE = "signature"  # of a run, among what it takes to continue it
SHOWN = 200  # characters of a statement in an error


def signed(run: str, statement: str, details: str) -> str:
    """What it takes to continue a run, with the user's signature; without one where the key cannot be kept.

    Args:
        details: JSON of an object.
    """
    state = json.loads(details)
    key = own_key(make=True)
    return details if key is None else json.dumps({**state, SIGNATURE: _signature(key, run, statement, state)})


def is_own(run: StoredRun) -> bool:
    """Did this user begin the run, as the ledger has it now?"""
    state = json.loads(run.details)
    signature, key = state.pop(SIGNATURE, None), own_key()
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
