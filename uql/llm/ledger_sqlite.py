"""The ledger in one SQLite file, private to the user. Two processes may use it at once."""

from __future__ import annotations

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from uql.base.errors import ConfigError
from uql.base.user_folder import user_folder
from uql.llm.ledger_rows import (
    BEFORE_FORMAT_3,
    FORMAT,
    FROM_FORMAT_1,
    FROM_FORMAT_2,
    FROM_FORMAT_3,
    FROM_FORMAT_4,
    OF_OTHER_TYPES,
    SCHEMA,
)

T = TypeVar("T")
UPGRADES: dict[
    object, tuple[tuple[str, ...], tuple[str, ...]]
] = {  # of a format: before and after the tables of this one are made
    1: ((*FROM_FORMAT_1, *BEFORE_FORMAT_3, *FROM_FORMAT_4), FROM_FORMAT_2),
    2: ((*BEFORE_FORMAT_3, *FROM_FORMAT_4), FROM_FORMAT_2),
    3: ((*FROM_FORMAT_3, *FROM_FORMAT_4), ()),
    4: (FROM_FORMAT_4, ()),
    FORMAT: ((), ()),
}
BUSY_MS = 60_000  # how long another process may hold the file
AT_ONCE = 900  # keys of one SELECT
CACHE_KB = 16_384  # the inner pages of the index of 10⁷ answers take 6,000


def default_path() -> Path:
    """$UQL_HOME/ledger.sqlite, else in the user's data folder."""
    return user_folder() / "ledger.sqlite"


class SQLite(sqlite3.Connection):
    """A `Database` in a file, or in memory. Made by `open`; each statement commits outside a transaction."""

    format: int | None
    secret: bytes
    persistent: bool
    quick = True
    errors: tuple[type[Exception], ...] = (
        sqlite3.Error,
        UnicodeError,
    )  # a message about a damaged file may not be text
    busy: type[Exception] = sqlite3.OperationalError

    @classmethod
    def open(cls, path: str) -> SQLite:
        """Opens the file, which is made where it is missing. Raises ConfigError (UQL410) where it cannot be used."""
        db: SQLite | None = None
        try:
            if path != ":memory:":
                _make_files(Path(path))
            db = sqlite3.connect(
                path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False, factory=SQLite
            )
            write_ahead(db)
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(f"PRAGMA cache_size = -{CACHE_KB}")
            meta = db.run(_with_tables, atomic=True)
            if path != ":memory:":  # it is a ledger: the mode of another file, or of a device, is not touched
                for suffix in ("", "-wal", "-shm"):
                    _make_private(Path(f"{path}{suffix}"), 0o600)
        except (OSError, sqlite3.Error, UnicodeError) as error:
            if db is not None:
                db.close()
            raise ConfigError(
                f"the ledger {path} cannot be used: {error}",
                code="UQL410",
                help="give another path (ledger = …), or ':memory:' to keep no answers",
            ) from error
        db.format, db.secret, db.persistent = meta.get("format"), meta.get("secret", b""), path != ":memory:"
        return db

    def by_key(
        self, table: str, items: str, keys: Sequence[bytes], key: str = "key", root: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """As in `Database`."""
        in_order = sorted(keys)  # neighbours of the table share pages
        for start in range(0, len(in_order), AT_ONCE):
            part = in_order[start : start + AT_ONCE]
            asked = ",".join(["(?)"] * len(part))  # for IN SQLite would make an index of them first
            sql = f"SELECT {items} FROM (VALUES {asked}) CROSS JOIN {table} WHERE {key} = column1"
            yield from self.execute(f"{sql} AND root = ?" if root else sql, [*part, root] if root else part)

    def run(self, use: Callable[[Any], T], *, atomic: bool = False, begun: bool = False) -> T:
        """As in `Database`; not `atomic`, each statement commits."""
        if not atomic:
            return use(self)
        try:
            if not begun:
                self.execute("BEGIN IMMEDIATE")
            result = use(self)
            self.execute("COMMIT")
            return result
        finally:
            if self.in_transaction:  # `use` or the commit failed
                self.execute("ROLLBACK")

    def begin_now(self) -> bool:
        try:
            self.execute("PRAGMA busy_timeout = 0")
            try:
                self.execute("BEGIN IMMEDIATE")
            finally:
                self.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        except sqlite3.Error:  # the ledger's thread waits for the file, and says what is wrong with it
            return False
        return True

    def lock(self) -> None:
        """Every transaction that writes is."""

    def now(self) -> float:
        return time.time()

    def size(self) -> int:
        pages, bytes = (int(self.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
        return pages * bytes

    def shrink(self) -> None:
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.execute("VACUUM")

    def advice(self, error: Exception) -> str:
        no_access = isinstance(error, sqlite3.OperationalError)
        if isinstance(error, (sqlite3.DatabaseError, *OF_OTHER_TYPES)) and not no_access:
            return "the file is damaged: move it away, or give another path (ledger = …)"
        return "free some space, or give another path (ledger = …)"


def write_ahead(db: sqlite3.Connection) -> None:
    """Turns write-ahead logging on. SQLite waits for no other process that does so at the same moment: it is tried again here."""
    until = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.005)


def _make_files(file: Path) -> None:
    """The file and its folder, for the user alone."""
    own = file == default_path() or not file.parent.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    if own:  # a folder of the user's choice may be shared with others
        _make_private(file.parent, 0o700)
    if not file.exists():  # closing one that SQLite has open in this process would drop its locks
        with suppress(FileExistsError):  # private before anything is in it
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            _make_private(file, 0o600)


def _make_private(path: Path, mode: int) -> None:
    """Give a file or folder its mode, whatever umask says; one that is not there, or is another user's, stays as it is."""
    with suppress(FileNotFoundError, PermissionError):
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def _with_tables(db: SQLite) -> dict[str, Any]:
    """Makes the tables that are missing, from those of an earlier format where they are. Returns format and secret of the file."""
    db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
    db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?), ('secret', ?)", (FORMAT, secrets.token_bytes(32)))
    meta = dict(db.execute("SELECT name, value FROM meta"))
    if meta["format"] not in UPGRADES:  # of a later version
        return meta
    before, after = UPGRADES[meta["format"]]
    for statement in (*before, *SCHEMA.split(";"), *after):
        db.execute(statement)
    db.execute("UPDATE meta SET value = ? WHERE name = 'format' AND value <> ?", (FORMAT, FORMAT))
    return meta | {"format": FORMAT}
