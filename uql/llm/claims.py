"""Rows in flight: what one run has sent is waited for by all others, in threads and in processes.

A run claims rows in the ledger before it sends them, some at a time; the transaction that keeps an answer takes its claim away. A
claim holds as long as the lease of its run: where the process has ended, or gave no sign of life for half a minute, others take over.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from uql.llm.ledger import Ledger, find_failures
from uql.llm.ledger_database import Database, upsert
from uql.llm.ledger_rows import Failed
from uql.llm.providers.base import Answer
from uql.llm.run_owner import holder_of

CLAIM = upsert("claims", "key", "lease")


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of some keys: `answers` are there by now, `others` are in flight elsewhere, the same statement has `failed` to get
    an answer elsewhere, all the rest are claimed."""

    answers: dict[bytes, Answer] = field(default_factory=dict)
    others: frozenset[bytes] = frozenset()
    failed: dict[bytes, Failed] = field(default_factory=dict)

    def knows(self, key: bytes) -> bool:
        """Is a key not to be claimed?"""
        return key in self.answers or key in self.others or key in self.failed


class Claims:
    """Of one run.

    Args:
        lease: the name of the lease that keeps them alive.
        drawn_by: the run whose failures are not asked again; "": none.
    """

    def __init__(self, ledger: Ledger, lease: str, drawn_by: str = "") -> None:
        self.ledger, self.lease, self._drawn_by = ledger, lease, drawn_by
        self._here = socket.gethostname()

    async def take(self, keys: Sequence[bytes], also: Sequence[bytes] = (), *, waits: bool = False) -> Claimed:
        """Claim the keys that have no answer and that no other run has in flight.

        Args:
            also: further keys whose answers are looked up.
            waits: they were in flight elsewhere a moment ago: nothing is written before one of them is free.
        """

        def work(db: Database) -> Claimed:
            db.lock()
            status = self._check(db, keys, also)
            free = [k for k in keys if not status.knows(k)]
            db.executemany(CLAIM, [(key, self.lease) for key in free])
            return status

        if waits:
            status = await self.ledger.read(lambda db: self._check(db, keys, also))
            if all(map(status.knows, keys)):
                return status
        return await self.ledger.transact(work)

    def _check(self, db: Database, keys: Sequence[bytes], also: Sequence[bytes]) -> Claimed:
        all_keys = [*keys, *also]
        lease_of = dict(db.by_key("claims", "key, lease", all_keys))
        answers, _ = self.ledger.find(db, all_keys)  # after the claims: an answer comes as its claim goes
        leases = set(lease_of.values()) - {self.lease}
        alive = {lease for lease in leases if holder_of(db, lease, self._here) is not None}
        others = frozenset(key for key in keys if key not in answers and lease_of.get(key) in alive)
        failed = find_failures(db, self._drawn_by, keys) if self._drawn_by else {}
        return Claimed(
            answers, others, {key: one for key, one in failed.items() if one.is_final and key not in answers}
        )

    def release(self, keys: Sequence[bytes]) -> None:
        """Give up the claims of rows that got no answer, soon."""
        if keys:
            values = [(key, self.lease) for key in keys]
            self.ledger.soon(lambda db: db.executemany("DELETE FROM claims WHERE key = ? AND lease = ?", values))
