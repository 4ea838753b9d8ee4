"""The ledger: every answer that was ever paid for, and what each run did, in one SQLite file.

An answer is found by a keyed hash of model, parameters, prompt version, question and row content: no row's text is a key
and nothing but answers and the texts of questions is in the file. An answer is written before it is used. Writes of
one moment share a transaction. Two processes may use one file at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from uql.base.errors import ConfigError, DataError
from uql.llm import codec
from uql.llm.events import Event
from uql.llm.ledger_rows import (
    BEFORE_FORMAT_3,
    CALL_COLUMNS,
    CORRECTION_COLUMNS,
    ERROR_COLUMNS,
    FORMAT,
    FROM_FORMAT_1,
    FROM_FORMAT_2,
    RUN_COLUMNS,
    RUNS,
    SCHEMA,
    SUBJECT_COLUMNS,
    Entry,
    Failed,
    Origin,
    Stats,
    StoredRun,
)
from uql.llm.providers.base import Answer
from uql.llm.run_owner import killed

T = TypeVar("T")
log = logging.getLogger("uql")
BUSY_MS = 60_000  # how long another process may hold the file
MAX_BYTES = 4 << 30  # the oldest answers are dropped beyond it
AT_ONCE = 500  # keys of one SELECT
UNREADABLE = (sqlite3.Error, UnicodeError)  # a message about a damaged file may not be text either


@dataclass(slots=True, eq=False)
class _Write:
    entries: Sequence[Entry]
    events: Sequence[Event]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]

    def end(self, failure: DataError | None) -> None:
        """Wake the one who waits, in its own loop."""
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)


def default_path() -> Path:
    """$UQL_HOME/ledger.sqlite, else in the user's data folder."""
    home = os.environ.get("UQL_HOME")
    if home:
        return Path(home).expanduser() / "ledger.sqlite"
    from platformdirs import user_data_path

    return user_data_path("uql", appauthor=False) / "ledger.sqlite"


def _make_private(path: Path, mode: int) -> None:
    """Give a file or folder its mode, whatever umask says; one that is not there, or is another user's, stays as it is."""
    with suppress(FileNotFoundError, PermissionError):
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def keyed(secret: bytes, *parts: bytes) -> bytes:
    """The key of what `parts` describe: 20 bytes, keyed with a ledger's secret."""
    digest = hashlib.blake2b(key=secret, digest_size=20)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def by_key(db: sqlite3.Connection, sql: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """The rows of a SELECT whose condition ends with "IN", for some keys at once.

    Args:
        db: the ledger's database.
        sql: up to IN.
        keys: any number; AT_ONCE go into one statement.
    """
    for start in range(0, len(keys), AT_ONCE):
        part = keys[start : start + AT_ONCE]
        yield from db.execute(f"{sql} ({','.join('?' * len(part))})", part)


def transaction(db: sqlite3.Connection, use: Callable[[sqlite3.Connection], T], *, begun: bool = False) -> T:
    """What `use` gives, in one transaction that no other process writes beside. Where it fails nothing is changed.

    Args:
        begun: the transaction was begun already.
    """
    try:
        if not begun:
            db.execute("BEGIN IMMEDIATE")
        result = use(db)
        db.execute("COMMIT")
        return result
    finally:
        if db.in_transaction:  # `use` or the commit failed
            db.execute("ROLLBACK")


class Ledger:
    """One file of answers and runs, open for reading and writing.

    Args:
        path: of the file; None: the default path; ":memory:" keeps nothing beyond this object.
        max_bytes: size above which the oldest answers are dropped at closing.
    Raises: ConfigError (UQL410) where the file is not a ledger, or its folder cannot be written. Every method: DataError (UQL415)
        where the file cannot be read or written.
    """

    def __init__(self, path: str | Path | None = None, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = str(default_path() if path is None else path)
        self.max_bytes = max_bytes
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="uql-ledger")
        self._lock = threading.Lock()  # of the list of writes
        self._using = threading.RLock()  # of the connection
        self._waiting: list[_Write] = []
        self._closed = False
        self.damaged: set[bytes] = set()  # keys of answers that could not be read
        with ExitStack() as undo:
            undo.callback(self._pool.shutdown)
            self._db, self.secret = self._pool.submit(self._open).result()
            undo.pop_all()  # it is open

    # ------------------------------------------------------------------------------------------------- opening, closing
    def _open(self) -> tuple[sqlite3.Connection, bytes]:
        db: sqlite3.Connection | None = None
        try:
            if self.path != ":memory:":
                self._make_files()
            db = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            found = transaction(db, _with_tables)
        except (OSError, *UNREADABLE) as error:
            if db is not None:
                db.close()
            raise ConfigError(
                f"the ledger {self.path} cannot be used: {error}",
                code="UQL410",
                help="give another path (ledger = …), or ':memory:' to keep no answers",
            ) from error
        format, secret = found.get("format"), found.get("secret")
        if format != FORMAT or not isinstance(secret, bytes):
            db.close()
            raise ConfigError(f"the ledger {self.path} has format {format}, this version reads {FORMAT}", code="UQL410")
        return db, secret

    def _make_files(self) -> None:
        """The file and its folder, for the user alone."""
        file = Path(self.path)
        own = file == default_path() or not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        if own:  # a folder of the user's choice may be shared with others
            _make_private(file.parent, 0o700)
        if not file.exists():  # closing one that SQLite has open in this process would drop its locks
            with suppress(FileExistsError):  # private before anything is in it
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        for suffix in ("", "-wal", "-shm"):  # SQLite makes the others with the mode of the first
            _make_private(Path(f"{file}{suffix}"), 0o600)

    def close(self) -> None:
        """Write what waits, keep the size cap, close the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._pool.submit(self._alone, self._finish).result()
        finally:
            self._pool.shutdown()

    def _finish(self, db: sqlite3.Connection) -> None:
        try:
            if self._waiting:
                self._write()
            if self.path != ":memory:" and os.path.getsize(self.path) > self.max_bytes:
                with suppress(sqlite3.OperationalError):  # another process is at it: whoever closes last keeps the cap
                    _drop_oldest(db, self.max_bytes)
        finally:
            db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------------------------------------- using the connection
    def work(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Use the connection in the ledger's thread, alone, and wait. Each statement commits; `transaction` holds several together.

        No cursor may leave `use`: another thread that drops it would reset the next statement.
        """
        if self._closed:
            raise DataError(f"the ledger {self.path} is closed")
        return self._pool.submit(self._alone, use).result()

    async def read(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """As `work`, for those who run in a loop."""
        return await asyncio.wrap_future(self._pool.submit(self._alone, use))

    async def transact(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Use the connection in one transaction: in the loop's own thread where the file is free, which takes less time than handing
        over to another."""
        if not self._begin_here():
            return await self.read(partial(transaction, use=use))
        try:
            return self._checked(partial(transaction, use=use, begun=True))
        finally:
            self._using.release()

    def soon(self, use: Callable[[sqlite3.Connection], object]) -> None:
        """As `work`, without waiting for it."""
        self._pool.submit(self._alone, use)

    def _alone(self, use: Callable[[sqlite3.Connection], T]) -> T:
        with self._using:
            return self._checked(use)

    def _checked(self, use: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return use(self._db)
        except UNREADABLE as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> DataError:
        help = "free some space, or give another path (ledger = …)"
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            help = "the file is damaged: move it away, or give another path (ledger = …)"
        return DataError(f"the ledger {self.path} cannot be used: {error}", code="UQL415", help=help)

    def _begin_here(self) -> bool:
        """Take the connection and begin a transaction; False, at once, where a thread or another process is at it."""
        if not self._using.acquire(blocking=False):
            return False
        begun = False
        try:
            self._db.execute("PRAGMA busy_timeout = 0")
            try:
                self._db.execute("BEGIN IMMEDIATE")
                begun = True
            finally:
                self._db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        except sqlite3.Error:  # the thread waits for the file, and says what is wrong with it
            return False
        finally:
            if not begun:
                self._using.release()
        return True

    # ----------------------------------------------------------------------------------------------------------- answers
    def key(self, *parts: bytes) -> bytes:
        """The key of what `parts` describe: 20 bytes, keyed with this ledger's secret."""
        return keyed(self.secret, *parts)

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`, for those who do not run in a loop."""
        return self.work(lambda db: self.find(db, keys))

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`."""
        if not keys:
            return {}
        if len(keys) <= 64 and self._using.acquire(blocking=False):  # readers are never locked out in WAL
            try:
                return self._checked(lambda db: self.find(db, keys))
            finally:
                self._using.release()
        return await self.read(lambda db: self.find(db, keys))

    def find(self, db: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`. A damaged one is set aside and counted: its question is asked again."""
        rows = by_key(db, "SELECT key, CAST(answer AS BLOB) FROM answers WHERE key IN", keys)
        found, damaged = codec.readable(rows)
        if not self.damaged.issuperset(damaged):
            self.damaged.update(damaged)
            log.warning("%d answers of the ledger %s are damaged; they are asked again", len(self.damaged), self.path)
        return found

    async def note(self, heads: Sequence[bytes]) -> None:
        """Note that these questions are about to be asked of rows, so that `asked` tells them from new ones."""
        digests = [self.key(head) for head in dict.fromkeys(heads)]

        def work(db: sqlite3.Connection) -> None:
            if _noted(db, digests) < len(digests):
                db.executemany("INSERT OR IGNORE INTO questions VALUES (?)", [(d,) for d in digests])

        await self.read(work)

    async def asked(self, heads: Sequence[bytes]) -> bool:
        """Whether any of these questions was ever asked of a row; of a file that was begun without this list: perhaps, so yes."""
        digests = [b"", *(self.key(head) for head in dict.fromkeys(heads))]
        return bool(await self.read(lambda db: _noted(db, digests)))

    async def origins(self, keys: Sequence[bytes]) -> dict[bytes, Origin]:
        """Who paid for the answers known for `keys`."""
        sql = "SELECT key, run, calls, at FROM answers WHERE key IN"
        return await self.read(lambda db: {key: Origin(*paid) for key, *paid in by_key(db, sql, keys)})

    def fail(self, failed: Sequence[Failed]) -> None:
        """Keep, soon, that the model gave no answer for these rows."""
        rows = [astuple(f) for f in failed]
        self.soon(lambda db: db.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?)", rows))

    async def failures(self, root: str, keys: Sequence[bytes]) -> dict[bytes, Failed]:
        """The rows among `keys` for which a run got no answer."""

        def work(db: sqlite3.Connection) -> dict[bytes, Failed]:
            found = [Failed(*row) for row in db.execute("SELECT * FROM failures WHERE root = ?", (root,))]
            wanted = set(keys)
            return {f.key: f for f in found if f.key in wanted}

        return await self.read(work) if keys else {}

    async def put(self, entries: Sequence[Entry], events: Sequence[Event] = ()) -> None:
        """Keep answers and events. Returns once they are in the file: use an answer only after that."""
        if not entries and not events:
            return
        loop = asyncio.get_running_loop()
        write = _Write(entries, events, loop, loop.create_future())
        with self._lock:
            self._waiting.append(write)
            first = len(self._waiting) == 1
        if first:  # the writes of this turn of the loop share a transaction
            loop.call_soon(self._flush)
        await write.done

    def _flush(self) -> None:
        if not self._begin_here():
            self._pool.submit(self._write)
            return
        try:
            self._write(begun=True)
        finally:
            self._using.release()

    def _write(self, *, begun: bool = False) -> None:
        """Put all that waits into one transaction, and wake those who wait for it."""
        with self._using:
            with self._lock:
                writes, self._waiting = self._waiting, []
            failure = None
            try:
                transaction(self._db, partial(_keep, writes), begun=begun)
            except (sqlite3.Error, MemoryError, TypeError, ValueError) as error:
                failure = self._failure(error)
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        for write in writes:
            if write.loop is here:
                write.end(failure)
            elif not write.loop.is_closed():
                write.loop.call_soon_threadsafe(write.end, failure)

    # --------------------------------------------------------------------------------------------------------------- runs
    def _change(self, sql: str, values: Sequence[object]) -> None:
        self.work(lambda db: db.execute(sql, values).rowcount)

    def start_run(self, run: str, *, statement: str, model: str, seed: int, details: str = "") -> None:
        """Note a run; one that is there already (a resumed one) is running again.

        Args:
            run: its id.
            statement: its text.
            model: its name.
            seed: of its draws.
            details: JSON: what a resumed run must know.
        """
        self._change(
            "INSERT INTO runs VALUES (?, ?, NULL, ?, ?, ?, 'running', ?) "
            "ON CONFLICT (run) DO UPDATE SET status = 'running', finished = NULL",
            (run, time.time(), statement, model, seed, details),
        )

    def finish_run(self, run: str, status: str) -> None:
        """Set a run's status: done, partial, failed, interrupted."""
        self._change("UPDATE runs SET finished = ?, status = ? WHERE run = ?", (time.time(), status, run))

    def log_draw(self, run: str, step: str, indices: Iterable[int]) -> None:
        """Append the rows that a sampler drew at one step of a run, before they are asked.

        Args:
            run: its id.
            step: which sampler of the run.
            indices: row numbers, in the order drawn.
        """
        packed = b"".join(int(i).to_bytes(8, "little") for i in indices)
        self._change(
            "INSERT INTO draws SELECT ?, ?, COALESCE(MAX(n) + 1, 0), ? FROM draws WHERE run = ? AND step = ?",
            (run, step, packed, run, step),
        )

    def draws(self, run: str, step: str) -> list[list[int]]:
        """The draws of a step, in the order in which they were logged."""
        sql = "SELECT CAST(indices AS BLOB) FROM draws WHERE run = ? AND step = ? ORDER BY n"
        blobs = [row[0] or b"" for row in self.work(lambda db: db.execute(sql, (run, step)).fetchall())]
        return [[int.from_bytes(blob[i : i + 8], "little") for i in range(0, len(blob), 8)] for blob in blobs]

    def runs(self, limit: int = 50) -> list[dict[str, Any]]:
        """The latest runs, newest first, each with what it paid."""
        rows = self.work(lambda db: _runs(db, f"{RUNS} LIMIT ?", (limit,)))
        return [dict(zip(RUN_COLUMNS, row, strict=True)) for row in rows]

    def run(self, run: str) -> dict[str, Any]:
        """The run of an id, as `runs` lists it."""
        sql = RUNS.replace("GROUP BY", "WHERE r.run = ? GROUP BY")
        return dict(zip(RUN_COLUMNS, self.work(lambda db: _runs(db, sql, (run,)))[0], strict=True))

    def stored(self, run: str) -> StoredRun | None:
        """The run of an id, or of what only one run's id begins with; None where there is none."""
        sql = (
            "SELECT r.run, statement, r.model, seed, status, started, details, "
            "COALESCE(SUM(input_tokens + output_tokens), 0), COALESCE(SUM(usd), 0.0) FROM runs r "
            "LEFT JOIN subjects s ON s.run = r.run LEFT JOIN call_rows c ON c.subject = s.id "
            "WHERE r.run = ?1 OR (length(?1) >= 4 AND substr(r.run, 1, length(?1)) = ?1) "
            "GROUP BY r.run ORDER BY r.run = ?1 DESC LIMIT 2"
        )
        found = self.work(lambda db: db.execute(sql, (run,)).fetchall())
        if not found or (len(found) > 1 and found[0][0] != run):
            return None
        return StoredRun(*found[0])

    def calls(self, run: str | None = None) -> list[dict[str, Any]]:
        """The events of a run (None: of all), in the order in which they were written."""
        sql, of = f"SELECT {', '.join(CALL_COLUMNS)} FROM calls", () if run is None else (run,)
        rows = self.work(lambda db: db.execute(f"{sql} {'WHERE run = ?' * len(of)} ORDER BY n", of).fetchall())
        return [dict(zip(CALL_COLUMNS, row, strict=True)) for row in rows]

    def table(self, name: str) -> tuple[tuple[str, ...], Iterator[list[tuple[Any, ...]]]]:
        """Columns and rows of "runs", "calls", "errors" or "corrections", the rows 10,000 at a time."""
        if name == "runs":
            return RUN_COLUMNS, iter([self.work(lambda db: _runs(db, RUNS))])
        columns, table, only = {
            "corrections": (CORRECTION_COLUMNS, "corrections", ""),
            "calls": (CALL_COLUMNS, "calls", ""),
            "errors": (ERROR_COLUMNS, "calls", "kind = 'failed' AND "),
        }[name]
        n = "id" if name == "corrections" else "n"
        sql = f"SELECT {n}, {', '.join(columns)} FROM {table} WHERE {only}{n} > ? ORDER BY {n} LIMIT 10000"

        def batches() -> Iterator[list[tuple[Any, ...]]]:
            last = [0]
            while found := self.work(lambda db: db.execute(sql, last).fetchall()):
                yield [row[1:] for row in found]
                last[:] = found[-1][:1]

        return columns, batches()

    def errors(self, run: str | None = None) -> list[dict[str, Any]]:
        """The rows given up in a run (None: in all), with kind and message of the last failure."""
        return [{name: call[name] for name in ERROR_COLUMNS} for call in self.calls(run) if call["kind"] == "failed"]

    def batches(self) -> list[dict[str, Any]]:
        """The batches of vendors that are under way: id, model, requests without a reply, when it was handed in."""
        sql = "SELECT batch, model, COUNT(*), MIN(at) FROM batches GROUP BY batch, model ORDER BY MIN(at)"
        rows = self.work(lambda db: db.execute(sql).fetchall())
        return [dict(zip(("batch", "model", "requests", "at"), row, strict=True)) for row in rows]

    # -------------------------------------------------------------------------------------------------------- statistics
    def keep_statistics(self, scope: str, values: Mapping[str, Any]) -> None:
        """Remember plain values by name, of one model and database."""
        now = time.time()
        rows = [(scope, name, json.dumps(value), now) for name, value in values.items()]
        self.work(lambda db: db.executemany("INSERT OR REPLACE INTO statistics VALUES (?, ?, ?, ?)", rows).rowcount)

    def statistics(self, scope: str) -> dict[str, Any]:
        """The values remembered, but for those that are damaged."""
        sql = "SELECT name, CAST(value AS BLOB) FROM statistics WHERE scope = ?"
        kept = {}
        for name, value in self.work(lambda db: db.execute(sql, (scope,)).fetchall()):
            with suppress(ValueError, RecursionError):
                kept[name] = json.loads(value)
        return kept

    # ------------------------------------------------------------------------------------------------------------ upkeep
    def stats(self) -> Stats:
        """How much is in the file."""

        def work(db: sqlite3.Connection) -> Stats:
            def answers_of(column: str) -> tuple[tuple[str, int], ...]:
                sql = f"SELECT {column}, COUNT(*) FROM answers GROUP BY {column} ORDER BY {column}"
                return tuple(db.execute(sql).fetchall())

            answers, runs, calls = (_count(db, table) for table in ("answer_rows", "runs", "call_rows"))
            return Stats(self.path, answers, runs, calls, _size(db), answers_of("model"), answers_of("source"))

        return self.work(work)

    def prune(
        self,
        *,
        source: str | None = None,
        model: str | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
    ) -> int:
        """Forget answers: of one table, of one model, older than an age, or the oldest until the file fits a size.

        Conditions given together must all hold; with none of them nothing is forgotten. What failed replies said goes with
        the answers of its table, and so do corrections; what calls cost stays.
        Answers about rows of several tables (a join) go with each of them.

        Args:
            source: a table.
            model: a model's name.
            older_than_s: seconds since the answer.
            max_bytes: of the file.
        Returns how many answers went.
        """
        where: dict[str, Any] = {}
        if source is not None:
            where["instr(', ' || source || ', ', ', ' || ? || ', ') > 0"] = source
        if model is not None:
            where["model = ?"] = model
        if older_than_s is not None:
            where["at < ?"] = time.time() - older_than_s

        def work(db: sqlite3.Connection) -> int:
            gone = 0
            if where:
                which, values = " AND ".join(where), list(where.values())
                _forget_runs(db, which, values)
                sql = f"DELETE FROM answer_rows WHERE key IN (SELECT key FROM answers WHERE {which})"
                gone += db.execute(sql, values).rowcount
                said = f"SELECT n FROM calls WHERE message <> '' AND {which}"
                db.execute(f"UPDATE call_rows SET message = '' WHERE n IN ({said})", values)
                if source is not None and len(where) == 1:
                    db.execute(f"DELETE FROM corrections WHERE {which}", values)
                _shrink(db)
            return gone + (0 if max_bytes is None else _drop_oldest(db, max_bytes))

        return self.work(work)

    def clear(self) -> int:
        """Forget everything: answers, runs, calls, draws. Returns how many answers went."""

        def work(db: sqlite3.Connection) -> int:
            gone = db.execute("DELETE FROM answer_rows").rowcount
            for table in (
                "subjects",
                "questions",
                "runs",
                "call_rows",
                "draws",
                "corrections",
                "sittings",
                "grown",
                "failures",
                "batches",
            ):
                db.execute(f"DELETE FROM {table}")
            _shrink(db)
            return gone

        return self.work(work)


def _with_tables(db: sqlite3.Connection) -> dict[str, Any]:
    """Makes the tables that are missing, from those of an earlier format where they are. Returns format and secret of the file."""
    db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
    db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?), ('secret', ?)", (FORMAT, secrets.token_bytes(32)))
    found = dict(db.execute("SELECT name, value FROM meta"))
    before = {1: (*FROM_FORMAT_1, *BEFORE_FORMAT_3), 2: BEFORE_FORMAT_3, FORMAT: ()}.get(found["format"])
    if before is None:  # of a later version
        return found
    for statement in (*before, *SCHEMA.split(";"), *(FROM_FORMAT_2 if before else ())):
        db.execute(statement)
    return found | {"format": FORMAT}


def _noted(db: sqlite3.Connection, digests: Sequence[bytes]) -> int:
    return sum(n for (n,) in by_key(db, "SELECT COUNT(*) FROM questions WHERE digest IN", digests))


def _keep(writes: Sequence[_Write], db: sqlite3.Connection) -> None:
    """Writes answers and events; an answer takes away the claim on its row."""
    now = time.time()
    entries = [entry for write in writes for entry in write.entries]
    events = [event for write in writes for event in write.events]
    of_entries = [(e.run, "", e.model, "", "", e.source) for e in entries]
    of_events = [tuple(getattr(event, c) for c in SUBJECT_COLUMNS) for event in events]
    ids = {subject: _subject(db, subject) for subject in dict.fromkeys((*of_entries, *of_events))}
    kept = [
        (e.key, codec.dumps(e.answer), ids[about], now, e.calls) for e, about in zip(entries, of_entries, strict=True)
    ]
    db.executemany("INSERT OR REPLACE INTO answer_rows VALUES (?, ?, ?, ?, ?)", kept)
    db.executemany("DELETE FROM claims WHERE key = ?", [(e.key,) for e in entries])
    own = [c for c in CALL_COLUMNS if c not in SUBJECT_COLUMNS]
    calls = [(ids[about], *(getattr(event, c) for c in own)) for event, about in zip(events, of_events, strict=True)]
    db.executemany(
        f"INSERT INTO call_rows (subject, {', '.join(own)}) VALUES ({','.join('?' * (1 + len(own)))})", calls
    )


def _subject(db: sqlite3.Connection, subject: tuple[str, ...]) -> int:
    """The number of a row of `subjects`, which is written where it is new."""
    db.execute(f"INSERT OR IGNORE INTO subjects ({', '.join(SUBJECT_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", subject)
    where = " AND ".join(f"{c} = ?" for c in SUBJECT_COLUMNS)
    return int(db.execute(f"SELECT id FROM subjects WHERE {where}", subject).fetchone()[0])


def _runs(db: sqlite3.Connection, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
    """Rows of RUN_COLUMNS; the status of a run whose process has ended without a word is "killed"."""
    at, of = RUN_COLUMNS.index("status"), RUN_COLUMNS.index("run")
    rows, dead = db.execute(sql, values).fetchall(), killed(db)
    return [(*row[:at], "killed", *row[at + 1 :]) if row[of] in dead else row for row in rows]


def _forget_runs(db: sqlite3.Connection, which: str, values: Sequence[Any]) -> None:
    """Runs that paid for these answers, or read the same tables with the same model, are not drawn again."""
    paid = f"SELECT root FROM sittings WHERE run IN (SELECT run FROM answers WHERE {which})"
    read = (
        "SELECT d.run FROM draws d JOIN runs r ON r.run = d.run "
        f"JOIN (SELECT DISTINCT model, source FROM answers WHERE {which}) a ON r.model = a.model AND d.step = 'rows of ' || a.source"
    )
    roots = list(db.execute(f"SELECT DISTINCT * FROM ({paid} UNION {read})", [*values, *values]))
    for table in ("failures", "sittings"):
        db.executemany(f"DELETE FROM {table} WHERE root = ?", roots)


def _shrink(db: sqlite3.Connection) -> None:
    db.execute(
        "DELETE FROM subjects WHERE id NOT IN (SELECT subject FROM answer_rows UNION SELECT subject FROM call_rows)"
    )
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")


def _size(db: sqlite3.Connection) -> int:
    """Bytes of the file."""
    return int(db.execute("PRAGMA page_count").fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0])


def _count(db: sqlite3.Connection, table: str) -> int:
    return int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _drop_oldest(db: sqlite3.Connection, max_bytes: int) -> int:
    """Delete the oldest answers (and calls of their time) until the file is below nine tenths of `max_bytes`. What a run under way
    has paid for stays."""
    dead, gone = killed(db), 0
    living = [run for (run,) in db.execute("SELECT run FROM runs WHERE status = 'running'") if run not in dead]
    ended = f"subject NOT IN (SELECT id FROM subjects WHERE run IN ({','.join('?' * len(living))}))"
    while True:
        _shrink(db)
        size = _size(db)
        ((total,),) = db.execute(f"SELECT COUNT(*) FROM answer_rows WHERE {ended}", living)
        if size <= max_bytes or not total:
            return gone
        drop = max(1, int(total * (1 - 0.9 * max_bytes / size)))
        oldest = f"SELECT at FROM answer_rows WHERE {ended} ORDER BY at LIMIT 1 OFFSET ?"
        last = db.execute(oldest, (*living, min(drop, total) - 1)).fetchone()
        gone += db.execute(f"DELETE FROM answer_rows WHERE at <= ? AND {ended}", (*last, *living)).rowcount
        db.execute(f"DELETE FROM call_rows WHERE at <= ? AND {ended}", (*last, *living))
        db.execute(
            "DELETE FROM draws WHERE run IN (SELECT run FROM runs WHERE started <= ? AND status <> 'running')", last
        )
        db.execute("DELETE FROM sittings WHERE root IN (SELECT root FROM sittings WHERE at <= ?)", last)
        db.execute("DELETE FROM failures WHERE root NOT IN (SELECT root FROM sittings)")
