"""A run belongs to one process at a time: its lease in the ledger, with a sign of life every few seconds.

The rows that a run has in flight (`uql.llm.claims`) are its own as long as its lease holds.

A second process that would continue the run is told who has it. A lease is free when its process has ended, or has given no sign of
life for half a minute; one that finds its lease taken (it was asleep) sends nothing more.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable

from uql.base.errors import ConfigError, DataError
from uql.llm.ledger import Ledger
from uql.llm.ledger_database import Database, upsert
from uql.llm.run_owner import DEAD_S, holder_of

BEAT_S = 5.0
LEASE = upsert("leases", "run", "owner", "host", "pid", "at")
FORGOTTEN_S = 86_400.0  # after which the lease of a killed run is deleted


class Lease:
    """Of one sitting of one run.

    Args:
        lost: called once, from another thread, where another process has taken the run over.
    """

    def __init__(self, ledger: Ledger, run: str, lost: Callable[[], None]) -> None:
        self._ledger, self._run, self._on_lost = ledger, run, lost
        self._owner, self._host, self._pid = secrets.token_hex(8), socket.gethostname(), os.getpid()
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None

    def take(self) -> None:
        """Make the run this process's. Raises ConfigError (UQL414) where another one is at it."""

        def work(db: Database) -> tuple[str, int] | None:
            db.lock()
            holder = holder_of(db, self._run, self._host)
            if holder is None:
                db.execute("DELETE FROM leases WHERE at < ?", (db.now() - FORGOTTEN_S,))
                db.execute("DELETE FROM claims WHERE lease = ? OR lease NOT IN (SELECT run FROM leases)", (self._run,))
                values = (self._run, self._owner, self._host, self._pid, db.now())
                db.execute(LEASE, values)
            return holder

        _refused(self._run, self._ledger.work(work, atomic=True), self._host)
        self._beating = threading.Thread(target=self._beat, name="uql-lease", daemon=True)
        self._beating.start()

    def _beat(self) -> None:
        def work(db: Database) -> int:
            own = (db.now(), self._run, self._owner)
            return db.execute("UPDATE leases SET at = ? WHERE run = ? AND owner = ?", own).rowcount

        while not self._ended.wait(BEAT_S):
            try:
                n_rows = self._ledger.work(work)
            except DataError as error:
                if error.code == "UQL415":  # locked for a minute, or a full disk: the next beat tries again
                    continue
                return
            except RuntimeError:  # the ledger is closed
                return
            if not n_rows and not self._ended.is_set():  # else it was given up here, while this beat waited
                self._on_lost()
            if not n_rows:
                return

    def release(self) -> bool:
        """Give the run up. Was it this process's until now?"""
        self._ended.set()

        def work(db: Database) -> int:
            own = (self._run, self._owner)
            n_rows = db.execute("DELETE FROM leases WHERE run = ? AND owner = ?", own).rowcount
            if n_rows:
                db.execute("DELETE FROM claims WHERE lease = ?", (self._run,))
            return n_rows

        return bool(self._ledger.work(work))


def refuse_held(ledger: Ledger, run: str) -> None:
    """Raises ConfigError (UQL414) where a process is at the run."""
    here = socket.gethostname()
    _refused(run, ledger.work(lambda db: holder_of(db, run, here)), here)


def _refused(run: str, holder: tuple[str, int] | None, here: str) -> None:
    if holder is not None:
        where = "" if holder[0] == here else f" on {holder[0]}"
        raise ConfigError(
            f"the run {run} is under way in process {holder[1]}{where}",
            code="UQL414",
            help=f"let it end, or stop it; it may be continued elsewhere {DEAD_S:.0f} s after its last sign of life",
        )
