"""The ledgers of a session: a file is opened when it is used; memory and servers stay open while a connection of the session lives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from uql.base.postgres_url import is_postgres

if TYPE_CHECKING:
    from uql.llm.ledger import Ledger

MEMORY = ":memory:"


class Ledgers:
    """Shared by a connection and its cursors; each closes it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 1
        self._by_path: dict[str, Ledger] = {}

    def shared(self) -> Ledgers:
        """The same, for one more connection."""
        with self._lock:
            self._users += 1
        return self

    @contextmanager
    def open(self, path: str | None) -> Iterator[Ledger]:
        """The ledger of a path; None: the user's own. Raises ConfigError (UQL410) where it cannot be used."""
        from uql.llm.ledger import Ledger

        if path is None or not (path == MEMORY or is_postgres(path)):
            with Ledger(path) as ledger:
                yield ledger
            return
        with self._lock:
            if path not in self._by_path:
                self._by_path[path] = Ledger(path)
            ledger = self._by_path[path]
        yield ledger

    def exists(self, path: str | None) -> bool:
        """Has anything been kept there?"""
        from uql.llm.ledger import exists

        return path in self._by_path if path == MEMORY else exists(path)

    def close(self) -> None:
        """Of one connection: the last one forgets what is in memory, and leaves the servers."""
        with self._lock:
            self._users -= 1
            left = list(self._by_path.values()) if self._users <= 0 else []
            self._by_path = {} if left else self._by_path
        for ledger in left:
            ledger.close()
