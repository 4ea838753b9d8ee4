"""The ledgers of a session: a file is opened when it is used, one in memory is kept as long as a connection of the session lives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uql.llm.ledger import Ledger

MEMORY = ":memory:"


class Ledgers:
    """Shared by a connection and its cursors; each closes it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 1
        self._memory: Ledger | None = None

    def shared(self) -> Ledgers:
        """The same, for one more connection."""
        with self._lock:
            self._users += 1
        return self

    @contextmanager
    def open(self, path: str | None) -> Iterator[Ledger]:
        """The ledger of a path; None: the user's own. Raises ConfigError (UQL410) where it cannot be used."""
        from uql.llm.ledger import Ledger

        if path != MEMORY:
            with Ledger(path) as ledger:
                yield ledger
            return
        with self._lock:
            if self._memory is None:
                self._memory = Ledger(MEMORY)
        yield self._memory

    def exists(self, path: str | None) -> bool:
        """Has anything been kept there?"""
        from uql.llm.ledger import exists

        return self._memory is not None if path == MEMORY else exists(path)

    def close(self) -> None:
        """Of one connection: the last one forgets what is in memory."""
        with self._lock:
            self._users -= 1
            memory, self._memory = (self._memory, None) if self._users <= 0 else (None, self._memory)
        if memory is not None:
            memory.close()
