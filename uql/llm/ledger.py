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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from uql.base.errors import ConfigError, DataError
from uql.llm import codec
from uql.llm.events import Event
from uql.llm.ledger_rows import (
    CALL_COLUMNS,
    CORRECTION_COLUMNS,
    ERROR_COLUMNS,
    FORMAT,
    FROM_FORMAT_1,
    RUN_COLUMNS,
    RUNS,
    SCHEMA,
    Entry,
    Failed,
    Origin,
    Stats,
    StoredRun,
)
from uql.llm.providers.base import Answer

T = TypeVar("T")
log = logging.getLogger("uql")
BUSY_MS = 60_000  # how long another process may hold the file
MAX_BYTES = 4 << 30  # the oldest answers are dropped beyond it


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


def _after(db: sqlite3.Connection, sql: str, rowid: int) -> list[tuple[Any, ...]]:
    return db.execute(sql, (rowid,)).fetchall()


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


class Ledger:
    """One file of answers and runs, open for reading and writing.

    Args:
        path: of the file; None: the default path; ":memory:" keeps nothing beyond this object.
        max_bytes: size above which the oldest answers are dropped at closing.
    Raises: ConfigError where the file is not a ledger, or its folder cannot be written.
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
        try:
            if self.path != ":memory:":
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
            db = sqlite3.connect(self.path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA.split(";"):
                db.execute(statement)
            db.execute(
                "INSERT OR IGNORE INTO meta VALUES ('format', ?), ('secret', ?)", (FORMAT, secrets.token_bytes(32))
            )
            found = dict(db.execute("SELECT name, value FROM meta"))
            if found["format"] == 1:
                for statement in FROM_FORMAT_1:
                    db.execute(statement)
                found["format"] = FORMAT
            db.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"the ledger {self.path} cannot be used: {error}",
                code="UQL410",
                help="give another path (ledger = …), or ':memory:' to keep no answers",
            ) from error
        if found["format"] != FORMAT:
            db.close()
            raise ConfigError(
                f"the ledger {self.path} has format {found['format']}, this version reads {FORMAT}", code="UQL410"
            )
        return db, found["secret"]

    def close(self) -> None:
        """Write what waits, keep the size cap, close the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._pool.submit(self._alone, self._finish).result()
        self._pool.shutdown()

    def _finish(self) -> None:
        if self._waiting:
            self._flush()
        if self.path != ":memory:" and os.path.getsize(self.path) > self.max_bytes:
            with suppress(sqlite3.OperationalError):  # another process is at it: whoever closes last keeps the cap
                self._drop_oldest(self.max_bytes)
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, work: Callable[[], T]) -> T:
        """Run `work` in the ledger's thread and wait."""
        if self._closed:
            raise DataError(f"the ledger {self.path} is closed")
        return self._pool.submit(self._alone, work).result()

    def work(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Use the connection in the ledger's thread, alone; each statement commits unless `use` opens a transaction and ends it."""
        return self._call(lambda: use(self._db))

    async def read(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """As `work`, for those who run in a loop."""
        return await asyncio.wrap_future(self._pool.submit(self._alone, lambda: use(self._db)))

    async def transact(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Use the connection in one transaction: in the loop's own thread, as `_flush_here`, where the file is free."""

        def begun() -> T:
            try:
                return use(self._db)
            finally:
                self._db.execute("COMMIT")

        if self._using.acquire(blocking=False):
            try:
                if self._begins_here():
                    return begun()
            finally:
                self._using.release()

        def work() -> T:
            self._db.execute("BEGIN IMMEDIATE")
            return begun()

        return await asyncio.wrap_future(self._pool.submit(self._alone, work))

    def _begins_here(self) -> bool:
        """Begin a transaction; False, at once, where another process has the file."""
        self._db.execute("PRAGMA busy_timeout = 0")
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        finally:
            self._db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        return True

    def soon(self, use: Callable[[sqlite3.Connection], object]) -> None:
        """As `work`, without waiting for it."""
        self._pool.submit(self._alone, lambda: use(self._db))

    def _alone(self, work: Callable[[], T]) -> T:
        with self._using:
            return work()

    # ----------------------------------------------------------------------------------------------------------- answers
    def key(self, *parts: bytes) -> bytes:
        """The key of what `parts` describe: 20 bytes, keyed with this ledger's secret."""
        return keyed(self.secret, *parts)

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`, for those who do not run in a loop."""
        return self._call(lambda: self._get(keys))

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`."""
        if not keys:
            return {}
        if len(keys) <= 64 and self._using.acquire(blocking=False):  # readers are never locked out in WAL
            try:
                return self._get(keys)
            finally:
                self._using.release()
        return await asyncio.wrap_future(self._pool.submit(self._alone, lambda: self._get(keys)))

    def _get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        found: dict[bytes, Answer] = {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.execute(f"SELECT key, CAST(answer AS BLOB) FROM answers WHERE key IN ({marks})", part)
            found |= self.readable(rows)
        return found

    def readable(self, rows: Iterable[tuple[bytes, bytes]]) -> dict[bytes, Answer]:
        """The answers in rows of `key, answer`. A damaged one is set aside and counted: its question is asked again."""
        found, damaged = codec.readable(rows)
        if not self.damaged.issuperset(damaged):
            self.damaged.update(damaged)
            log.warning("%d answers of the ledger %s are damaged; they are asked again", len(self.damaged), self.path)
        return found

    async def note(self, heads: Sequence[bytes]) -> None:
        """Note that these questions are about to be asked of rows, so that `asked` tells them from new ones."""
        digests = [self.key(head) for head in dict.fromkeys(heads)]

        def work() -> None:
            if self._noted(digests) < len(digests):
                try:
                    self._db.executemany("INSERT OR IGNORE INTO questions VALUES (?)", [(d,) for d in digests])
                except sqlite3.Error as error:
                    raise DataError(f"the ledger {self.path} cannot be written: {error}") from error

        await asyncio.wrap_future(self._pool.submit(self._alone, work))

    async def asked(self, heads: Sequence[bytes]) -> bool:
        """Whether any of these questions was ever asked of a row; of a file that was begun without this list: perhaps, so yes."""
        digests = [b"", *(self.key(head) for head in dict.fromkeys(heads))]
        return bool(await asyncio.wrap_future(self._pool.submit(self._alone, lambda: self._noted(digests))))

    def _noted(self, digests: Sequence[bytes]) -> int:
        marks = ",".join("?" * len(digests))
        found: int = self._db.execute(f"SELECT COUNT(*) FROM questions WHERE digest IN ({marks})", digests).fetchone()[
            0
        ]
        return found

    async def origins(self, keys: Sequence[bytes]) -> dict[bytes, Origin]:
        """Who paid for the answers known for `keys`."""

        def work() -> dict[bytes, Origin]:
            found: dict[bytes, Origin] = {}
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                for key, run, calls, at in self._db.execute(
                    f"SELECT key, run, calls, at FROM answers WHERE key IN ({marks})", part
                ):
                    found[key] = Origin(run, calls, at)
            return found

        return await asyncio.wrap_future(self._pool.submit(self._alone, work))

    def fail(self, failed: Sequence[Failed]) -> None:
        """Keep, soon, that the model gave no answer for these rows."""
        rows = [(f.root, f.key, f.kind, f.message, f.raw, f.calls) for f in failed]
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
            loop.call_soon(self._flush_here)
        await write.done

    def _flush_here(self) -> None:
        """Write in the loop's own thread, which takes less time than handing over to another; where the file is locked by
        another process, or this one's thread is at work, leave it to that thread."""
        if self._using.acquire(blocking=False):
            try:
                locked = not self._begins_here()
                if not locked:
                    self._write()
            finally:
                self._using.release()
            if not locked:
                return
        self._pool.submit(self._flush)

    def _flush(self) -> None:
        with self._using:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                self._end(self._taken(), DataError(f"the ledger {self.path} cannot be written: {error}"))
                return
            self._write()

    def _taken(self) -> list[_Write]:
        with self._lock:
            writes, self._waiting = self._waiting, []
        return writes

    def _write(self) -> None:
        """Put all that waits into the transaction that is open, and end it."""
        writes = self._taken()
        now = time.time()
        failure = None
        try:
            self._db.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (e.key, codec.dumps(e.answer), e.model, e.source, now, e.run, e.calls)
                    for write in writes
                    for e in write.entries
                ],
            )
            self._db.executemany(
                "DELETE FROM claims WHERE key = ?", [(e.key,) for write in writes for e in write.entries]
            )
            self._db.executemany(
                f"INSERT INTO calls VALUES ({','.join('?' * len(CALL_COLUMNS))})",
                [tuple(getattr(e, c) for c in CALL_COLUMNS) for write in writes for e in write.events],
            )
            self._db.execute("COMMIT")
        except (sqlite3.Error, TypeError, ValueError) as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            failure = DataError(f"the ledger {self.path} cannot be written: {error}")
        self._end(writes, failure)

    def _end(self, writes: list[_Write], failure: DataError | None) -> None:
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
    def start_run(self, run: str, *, statement: str, model: str, seed: int, details: str = "") -> None:
        """Note a run; one that is there already (a resumed one) is running again."""

        def work() -> None:
            self._db.execute(
                "INSERT INTO runs VALUES (?, ?, NULL, ?, ?, ?, 'running', ?) "
                "ON CONFLICT (run) DO UPDATE SET status = 'running', finished = NULL",
                (run, time.time(), statement, model, seed, details),
            )

        self._call(work)

    def finish_run(self, run: str, status: str) -> None:
        """Set a run's status: done, partial, failed, interrupted."""

        def work() -> None:
            self._db.execute("UPDATE runs SET finished = ?, status = ? WHERE run = ?", (time.time(), status, run))

        self._call(work)

    def log_draw(self, run: str, step: str, indices: Iterable[int]) -> None:
        """Append the rows that a sampler drew at one step of a run, before they are asked."""
        packed = b"".join(int(i).to_bytes(8, "little") for i in indices)

        def work() -> None:
            self._db.execute(
                "INSERT INTO draws SELECT ?, ?, COALESCE(MAX(n) + 1, 0), ? FROM draws WHERE run = ? AND step = ?",
                (run, step, packed, run, step),
            )

        self._call(work)

    def draws(self, run: str, step: str) -> list[list[int]]:
        """The draws of a step, in the order in which they were logged."""

        def work() -> list[bytes]:
            found = self._db.execute("SELECT indices FROM draws WHERE run = ? AND step = ? ORDER BY n", (run, step))
            return [row[0] for row in found]

        return [
            [int.from_bytes(blob[i : i + 8], "little") for i in range(0, len(blob), 8)] for blob in self._call(work)
        ]

    def runs(self, limit: int = 50) -> list[dict[str, Any]]:
        """The latest runs, newest first, each with what it paid."""
        rows = self._runs(f"{RUNS} LIMIT ?", (limit,))
        return [dict(zip(RUN_COLUMNS, row, strict=True)) for row in rows]

    def run(self, run: str) -> dict[str, Any]:
        """The run of an id, as `runs` lists it."""
        sql = RUNS.replace("GROUP BY", "WHERE r.run = ? GROUP BY")
        return dict(zip(RUN_COLUMNS, self._runs(sql, (run,))[0], strict=True))

    def _runs(self, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """Rows of RUN_COLUMNS; the status of a run whose process has ended without a word is "killed"."""
        from uql.llm.run_owner import killed

        at, of = RUN_COLUMNS.index("status"), RUN_COLUMNS.index("run")

        def work() -> list[tuple[Any, ...]]:
            rows, dead = self._db.execute(sql, values).fetchall(), killed(self._db)
            return [(*row[:at], "killed", *row[at + 1 :]) if row[of] in dead else row for row in rows]

        return self._call(work)

    def stored(self, run: str) -> StoredRun | None:
        """The run of an id, or of what only one run's id begins with; None where there is none."""

        def work() -> list[Any]:
            return self._db.execute(
                "SELECT r.run, statement, r.model, seed, status, started, details, "
                "COALESCE(SUM(input_tokens + output_tokens), 0), COALESCE(SUM(usd), 0.0) FROM runs r "
                "LEFT JOIN calls c ON c.run = r.run WHERE r.run = ?1 OR (length(?1) >= 4 AND substr(r.run, 1, length(?1)) = ?1) "
                "GROUP BY r.run ORDER BY r.run = ?1 DESC LIMIT 2",
                (run,),
            ).fetchall()

        found = self._call(work)
        if not found or (len(found) > 1 and found[0][0] != run):
            return None
        return StoredRun(*found[0])

    def calls(self, run: str | None = None) -> list[dict[str, Any]]:
        """The events of a run (None: of all), in the order in which they were written."""
        sql = f"SELECT {', '.join(CALL_COLUMNS)} FROM calls WHERE ?1 IS NULL OR run = ?1 ORDER BY rowid"
        return [
            dict(zip(CALL_COLUMNS, row, strict=True))
            for row in self._call(lambda: self._db.execute(sql, (run,)).fetchall())
        ]

    def table(self, name: str) -> tuple[tuple[str, ...], Iterator[list[tuple[Any, ...]]]]:
        """Columns and rows of "runs", "calls", "errors" or "corrections", the rows 10,000 at a time."""
        columns: tuple[str, ...]
        if name == "runs":
            columns, sql, key = RUN_COLUMNS, RUNS, ""
        elif name == "corrections":
            columns, key = CORRECTION_COLUMNS, ""
            sql = f"SELECT {', '.join(columns)} FROM corrections ORDER BY id"
        else:
            columns = CALL_COLUMNS if name == "calls" else ERROR_COLUMNS
            only = "" if name == "calls" else "kind = 'failed' AND "
            sql, key = (
                f"SELECT rowid, {', '.join(columns)} FROM calls WHERE {only}rowid > ? ORDER BY rowid LIMIT 10000",
                "rowid",
            )

        def batches() -> Iterator[list[tuple[Any, ...]]]:
            if not key:
                yield self._runs(sql) if name == "runs" else self._call(lambda: self._db.execute(sql).fetchall())
                return
            found = self._call(lambda: self._db.execute(sql, (0,)).fetchall())
            while found:
                yield [row[1:] for row in found]
                found = self._call(partial(_after, self._db, sql, found[-1][0]))

        return columns, batches()

    def errors(self, run: str | None = None) -> list[dict[str, Any]]:
        """The rows given up in a run (None: in all), with kind and message of the last failure."""
        return [{name: call[name] for name in ERROR_COLUMNS} for call in self.calls(run) if call["kind"] == "failed"]

    # -------------------------------------------------------------------------------------------------------- statistics
    def keep_statistics(self, scope: str, values: Mapping[str, Any]) -> None:
        """Remember plain values by name, of one model and database."""
        now = time.time()
        rows = [(scope, name, json.dumps(value), now) for name, value in values.items()]

        def work() -> None:
            # no cursor leaves the ledger's thread: another thread that drops it would reset the next statement
            self._db.executemany("INSERT OR REPLACE INTO statistics VALUES (?, ?, ?, ?)", rows)

        self._call(work)

    def statistics(self, scope: str) -> dict[str, Any]:
        """The values remembered."""
        sql = "SELECT name, value FROM statistics WHERE scope = ?"
        found = self._call(lambda: self._db.execute(sql, (scope,)).fetchall())
        return {name: json.loads(value) for name, value in found}

    # ------------------------------------------------------------------------------------------------------------ upkeep
    def stats(self) -> Stats:
        """How much is in the file."""

        def work() -> Stats:
            def count(table: str) -> int:
                return int(self._db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

            models = self._db.execute("SELECT model, COUNT(*) FROM answers GROUP BY model ORDER BY model").fetchall()
            sources = self._db.execute(
                "SELECT source, COUNT(*) FROM answers GROUP BY source ORDER BY source"
            ).fetchall()
            pages = self._db.execute("PRAGMA page_count").fetchone()[0]
            size = pages * self._db.execute("PRAGMA page_size").fetchone()[0]
            return Stats(
                self.path, count("answers"), count("runs"), count("calls"), size, tuple(models), tuple(sources)
            )

        return self._call(work)

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
        Returns how many answers went.
        """

        def work() -> int:
            gone = 0
            where: list[str] = []
            values: list[Any] = []
            if source is not None:
                where.append("instr(', ' || source || ', ', ', ' || ? || ', ') > 0")
                values.append(source)
            if model is not None:
                where.append("model = ?")
                values.append(model)
            if older_than_s is not None:
                where.append("at < ?")
                values.append(time.time() - older_than_s)
            if where:
                which = " AND ".join(where)
                self._forget_runs(which, values)
                gone += self._db.execute(f"DELETE FROM answers WHERE {which}", values).rowcount
                self._db.execute(f"UPDATE calls SET message = '' WHERE message <> '' AND {which}", values)
                if source is not None and len(where) == 1:
                    self._db.execute(f"DELETE FROM corrections WHERE {which}", values)
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._db.execute("VACUUM")
            if max_bytes is not None:
                gone += self._drop_oldest(max_bytes)
            return gone

        return self._call(work)

    def _forget_runs(self, which: str, values: Sequence[Any]) -> None:
        """Runs that paid for these answers, or read the same tables with the same model, are not drawn again."""
        paid = f"SELECT root FROM sittings WHERE run IN (SELECT run FROM answers WHERE {which})"
        read = (
            "SELECT d.run FROM draws d JOIN runs r ON r.run = d.run "
            f"JOIN (SELECT DISTINCT model, source FROM answers WHERE {which}) a ON r.model = a.model AND d.step = 'rows of ' || a.source"
        )
        roots = list(self._db.execute(f"SELECT DISTINCT * FROM ({paid} UNION {read})", [*values, *values]))
        for table in ("failures", "sittings"):
            self._db.executemany(f"DELETE FROM {table} WHERE root = ?", roots)

    def clear(self) -> int:
        """Forget everything: answers, runs, calls, draws. Returns how many answers went."""

        def work() -> int:
            gone = self._db.execute("DELETE FROM answers").rowcount
            for table in ("questions", "runs", "calls", "draws", "corrections", "sittings", "grown", "failures"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._db.execute("VACUUM")
            return gone

        return self._call(work)

    def _drop_oldest(self, max_bytes: int) -> int:
        """Delete the oldest answers (and calls of their time) until the file is below nine tenths of `max_bytes`."""
        page = self._db.execute("PRAGMA page_size").fetchone()[0]
        gone = 0
        while True:
            self._db.execute("VACUUM")
            size = self._db.execute("PRAGMA page_count").fetchone()[0] * page
            total = self._db.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
            if size <= max_bytes or not total:
                return gone
            drop = max(1, int(total * (1 - 0.9 * max_bytes / size)))
            last = self._db.execute(
                "SELECT at FROM answers ORDER BY at LIMIT 1 OFFSET ?", (min(drop, total) - 1,)
            ).fetchone()
            gone += self._db.execute("DELETE FROM answers WHERE at <= ?", last).rowcount
            self._db.execute("DELETE FROM draws WHERE run IN (SELECT run FROM runs WHERE started <= ?)", last)
            self._db.execute("DELETE FROM calls WHERE at <= ?", last)
            self._db.execute("DELETE FROM sittings WHERE root IN (SELECT root FROM sittings WHERE at <= ?)", last)
            self._db.execute("DELETE FROM failures WHERE root NOT IN (SELECT root FROM sittings)")
