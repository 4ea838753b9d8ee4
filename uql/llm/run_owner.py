"""Which process is at a run, by its lease in the ledger."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from pathlib import Path

DEAD_S = 30.0  # without a sign of life


def killed(db: sqlite3.Connection) -> set[str]:
    """The runs that are noted as running, and that no process is at any more."""
    here = socket.gethostname()
    noted = db.execute(
        "SELECT run FROM runs WHERE status = 'running' AND details <> ''"
    ).fetchall()  # they have a lease
    return {run for (run,) in noted if holder_of(db, run, here) is None}


def holder_of(db: sqlite3.Connection, run: str, here: str) -> tuple[str, int] | None:
    """Host and process that have the run; None: no living process has it."""
    row = db.execute("SELECT host, pid, at FROM leases WHERE run = ?", (run,)).fetchone()
    if row is None or time.time() - row[2] >= DEAD_S or (row[0] == here and not _runs(row[1])):
        return None
    return row[0], row[1]


def _runs(pid: int) -> bool:
    """Is there a process of that number? One that has ended and was not yet waited for is none."""
    if os.name == "nt":  # there, signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no such folder on this system
        return True
    return stat.rpartition(")")[2].split()[:1] != ["Z"]
