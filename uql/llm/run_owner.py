"""Which process is at a run, by its lease in the ledger."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from uql.llm.ledger_database import Database
from uql.llm.ledger_rows import SignOfLife, record

DEAD_S = 30.0  # without a sign of life


def killed(db: Database) -> set[str]:
    """The runs that are noted as running, and that no process is at any more.

    A run that can be continued has its lease from the first moment on. Any other (`details` empty) has a lease under its id and a
    suffix: without one it counts as killed once it is older than a sign of life may be. A ledger in memory has no other process.
    """
    if not db.persistent:
        return set()
    here, now = socket.gethostname(), db.now()
    noted = db.execute("SELECT run, started, details <> '' FROM runs WHERE status = 'running'").fetchall()
    dead = set()
    for run, started, continuable in noted:
        leases = db.execute("SELECT run FROM leases WHERE run = ? OR run LIKE ? || '-%'", (run, run)).fetchall()
        alive = any(holder_of(db, lease, here) is not None for (lease,) in leases)
        if not alive and (continuable or leases or now - started >= DEAD_S):
            dead.add(run)
    return dead


def holder_of(db: Database, run: str, here: str) -> tuple[str, int] | None:
    """Host and process that have the run; None: no living process has it.

    Args:
        db: the ledger's database.
        here: the name of this host.
    """
    row = db.execute("SELECT host, pid, at FROM leases WHERE run = ?", (run,)).fetchone()
    sign = record(SignOfLife, row) if row is not None else None
    if sign is None or abs(db.now() - sign.at) >= DEAD_S or (sign.host == here and not _runs(sign.pid)):
        return None
    return sign.host, sign.pid


def _runs(pid: int) -> bool:
    """Is there a process of that number? One that has ended and was not yet waited for is none."""
    if os.name == "nt":  # there, signal 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # the second: no process can have such a number
        return False
    except PermissionError:
        return True
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no such folder on this system
        return True
    return stat.rpartition(")")[2].split()[:1] != ["Z"]
