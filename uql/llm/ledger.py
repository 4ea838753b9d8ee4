"""The ledger: every answer that was ever paid for, and what each run did, in one SQLite file or in a PostgreSQL server.

An answer is found by a keyed hash of model, parameters, prompt version, question and row content: no row's text is a key
and nothing but answers and the texts of questions is kept. An answer is written before it is used. Writes of
one moment share a transaction. Several processes may use one ledger at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from uql.base.errors import ConfigError, DataError, UQLError
from uql.base.extras import install, need
from uql.base.postgres_url import is_postgres, without_password
from uql.base.sql_text import first_line
from uql.llm import codec
from uql.llm.events import Event
from uql.llm.ledger_database import Database, upsert
from uql.llm.ledger_rows import (
    CALL_COLUMNS,
    CORRECTION_COLUMNS,
    ERROR_COLUMNS,
    FORMAT,
    LATEST,
    OF_OTHER_TYPES,
    RUN_COLUMNS,
    RUNS,
    SUBJECT_COLUMNS,
    Entry,
    Failed,
    Origin,
    Stats,
    StoredRun,
    record,
)
from uql.llm.ledger_sqlite import SQLite, default_path
from uql.llm.limiter import BURST_S
from uql.llm.providers.base import Answer
from uql.llm.run_owner import killed

T = TypeVar("T")
log = logging.getLogger("uql")
MOST_AHEAD_S = 86_400.0  # that a rate can be taken in advance: a moment beyond it is of a clock that was wrong, or of a damaged file
MOST_SAID = 500  # characters of what a database says of an error
COPIED = 4_096  # bytes that are copied sooner than hashed in two steps
PAUSE_S = 0.002  # between two transactions that keep answers, at least: one alone takes as long as three answers of a larger one
KEY_BYTES = 20
MAX_BYTES = 4 << 30  # the oldest answers are dropped beyond it
OF_ANSWER = ("answer", "probability", "input_tokens", "output_tokens", "usd")  # as `codec.to_row` gives them
MOST_CALLS = 10_000  # that an answer took: a file that says more is damaged
ANSWER = upsert("answer_rows", "key", *OF_ANSWER, "subject", "at", "calls")
ANSWERS = f"key, CAST(answer AS BLOB), {', '.join(OF_ANSWER[1:])}"
PAID = f"{ANSWERS}, calls, at"
FAILURE = upsert("failures", "root, key", *(field.name for field in fields(Failed)[2:]))
FAILURE = FAILURE.replace("= excluded.at", "= COALESCE(failures.at, excluded.at)")  # when it failed first
OF_CALL = [column for column in CALL_COLUMNS if column not in SUBJECT_COLUMNS]
CALL = f"INSERT INTO call_rows (subject, {', '.join(OF_CALL)}) VALUES ({','.join('?' * (1 + len(OF_CALL)))})"
subject_of: Callable[[Event], tuple[str, ...]] = attrgetter(*SUBJECT_COLUMNS)
call_of: Callable[[Event], tuple[Any, ...]] = attrgetter(*OF_CALL)
SUBJECT = f"INSERT INTO subjects ({', '.join(SUBJECT_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
SUBJECT_ID = f"SELECT id FROM subjects WHERE {' AND '.join(f'{column} = ?' for column in SUBJECT_COLUMNS)}"


@dataclass(slots=True, eq=False)
class _Write:
    entries: Sequence[Entry]
    events: Sequence[Event]
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]

    def end(self, failure: UQLError | None) -> None:
        """Wake the one who waits, in its own loop."""
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)


def find_failures(db: Database, root: str, keys: Sequence[bytes]) -> dict[bytes, Failed]:
    """The rows among `keys` for which a run got no answer.

    Args:
        root: the run that drew first.
    """
    rows = db.by_key("failures", "failures.*", keys, root=root)
    return {failed.key: failed for row in rows if (failed := record(Failed, row)) is not None}


def keyed(secret: bytes, *parts: bytes) -> bytes:
    """The key of what `parts` describe: 20 bytes, keyed with a ledger's secret."""
    *first, last = parts
    return key_maker(secret, *first)(last)


def key_maker(secret: bytes, *first: bytes) -> Callable[[bytes], bytes]:
    """What makes keys of parts of which all but the last are the same."""
    begun = hashlib.blake2b(b"".join(map(_with_length, first)), key=secret, digest_size=KEY_BYTES)

    def key(last: bytes) -> bytes:
        digest = begun.copy()
        n = len(last)
        if n < COPIED:
            digest.update(n.to_bytes(8, "little") + last)
        else:
            digest.update(n.to_bytes(8, "little"))
            digest.update(last)
        return digest.digest()

    return key


def _with_length(part: bytes) -> bytes:
    return len(part).to_bytes(8, "little") + part


def exists(path: str | None) -> bool:
    """Has anything been kept there? Of a server this is known once it is opened."""
    return is_postgres(path) or (path != ":memory:" and (default_path() if path is None else Path(path)).exists())


class Ledger:
    """Answers and runs, open for reading and writing.

    Args:
        path: of the file, or "postgresql://user@host/database"; None: the default path; ":memory:" keeps nothing beyond this object.
        max_bytes: size above which the oldest answers of a file are dropped at closing.
    Attributes:
        path: as it may be shown.  address: as it was given, perhaps with a password.
    Raises: ConfigError (UQL410) where the file is not a ledger, or its folder cannot be written, or the server cannot be used;
        (UQL610) where the extra `cluster` is missing. Every method: DataError (UQL415) where it cannot be read or written.
    """

    def __init__(self, path: str | Path | None = None, *, max_bytes: int = MAX_BYTES) -> None:
        self.address = str(default_path() if path is None else path)
        self.path = without_password(self.address)
        self.max_bytes = max_bytes
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="uql-ledger")
        self._lock = threading.Lock()  # of the list of writes
        self._using = threading.RLock()  # of the connection
        self._waiting: list[_Write] = []
        self._flushing: asyncio.AbstractEventLoop | None = None  # that will write them
        self._written = 0.0  # when the last of them were, by the monotonic clock
        self._closed = False
        self.damaged: set[bytes] = set()  # keys of answers that could not be read
        self.n_lost = 0  # answers that were paid for and could not be kept
        with ExitStack() as undo:
            undo.callback(self._pool.shutdown)
            self._db = self._pool.submit(self._open).result()
            undo.pop_all()  # it is open
        self.secret = self._db.secret

    # ------------------------------------------------------------------------------------------------- opening, closing
    def _open(self) -> Database:
        db: Database
        if is_postgres(self.address):
            need("ledgers in a PostgreSQL server", "cluster", "psycopg")
            try:
                from uql.llm.ledger_postgres import Postgres
            except ImportError as error:  # without libpq
                raise ConfigError(f"psycopg: {error}", code="UQL610", help=install("cluster")) from error

            db = Postgres.open(self.address)
        else:
            db = SQLite.open(self.address)
        if db.format != FORMAT or not isinstance(db.secret, bytes) or len(db.secret) > hashlib.blake2b.MAX_KEY_SIZE:
            db.close()
            raise ConfigError(
                f"the ledger {self.path} has format {db.format!r}, this version reads {FORMAT} with a secret of at most "
                f"{hashlib.blake2b.MAX_KEY_SIZE} bytes",
                code="UQL410",
            )
        return db

    def close(self) -> None:
        """Write what waits, keep the size cap, close the file. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._pool.submit(self._finish).result()
        finally:
            self._pool.shutdown()

    def _finish(self) -> None:
        with self._using:
            try:
                if self._waiting:
                    self._write()
                if os.path.isfile(self.address) and os.path.getsize(self.address) > self.max_bytes:
                    self._checked(self._keep_within)
            finally:
                self._db.close()

    def _keep_within(self, db: Database) -> None:
        with suppress(db.busy):  # another process is at it: whoever closes last keeps the cap
            _drop_oldest(db, self.max_bytes)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------------------------------------- using the connection
    def work(self, use: Callable[[Database], T], *, atomic: bool = False) -> T:
        """Use the database in the ledger's thread, alone, and wait. Each statement commits; `atomic` holds them together.

        No cursor may leave `use`: another thread that drops it would reset the next statement.
        """
        if self._closed:
            raise DataError(f"the ledger {self.path} is closed")
        return self._pool.submit(self._exclusive, use, atomic).result()

    async def read(self, use: Callable[[Database], T], *, atomic: bool = False) -> T:
        """As `work`, for those who run in a loop."""
        return await asyncio.wrap_future(self._pool.submit(self._exclusive, use, atomic))

    async def transact(self, use: Callable[[Database], T]) -> T:
        """Use the database in one transaction: in the loop's own thread where a file is free, which takes less time than handing
        over to another."""
        if not self._begin_here():
            return await self.read(use, atomic=True)
        try:
            return self._checked(use, atomic=True, begun=True)
        finally:
            self._using.release()

    def soon(self, use: Callable[[Database], object]) -> None:
        """As `work`, without waiting for it."""
        self._pool.submit(self._exclusive, use)

    def now(self) -> float:
        """Seconds since the epoch, by the clock that all users of the ledger share."""
        return self._db.now()

    def _exclusive(self, use: Callable[[Database], T], atomic: bool = False) -> T:
        with self._using:
            return self._checked(use, atomic=atomic)

    def _checked(self, use: Callable[[Database], T], *, atomic: bool = False, begun: bool = False) -> T:
        try:
            return self._db.run(use, atomic=atomic, begun=begun)
        except self._db.errors as error:
            raise self._failure(error) from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Around what is made of the ledger's values. Raises: DataError (UQL415) where one has another type than its column."""
        try:
            yield
        except OF_OTHER_TYPES as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> DataError:
        lost = f"; answers that were paid for and are not kept: {self.n_lost:,}" if self.n_lost else ""
        return DataError(
            f"the ledger {self.path} cannot be used: {first_line(error)[:MOST_SAID]}{lost}",
            code="UQL415",
            help=self._db.advice(error),
        )

    def _begin_here(self) -> bool:
        """Take the database and begin a transaction; False, at once, where a thread or another process is at it."""
        if not self._using.acquire(blocking=False):
            return False
        begun = False
        try:
            begun = self._db.begin_now()
        finally:
            if not begun:
                self._using.release()
        return begun

    # ----------------------------------------------------------------------------------------------------------- answers
    def key(self, *parts: bytes) -> bytes:
        """The key of what `parts` describe: 20 bytes, keyed with this ledger's secret."""
        return keyed(self.secret, *parts)

    def answers(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`, for those who do not run in a loop."""
        return self.work(lambda db: self.find(db, keys)[0])

    async def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers known for `keys`."""
        return (await self.get_paid(keys, math.inf))[0]

    async def get_paid(
        self, keys: Sequence[bytes], since: float, until: float = math.inf
    ) -> tuple[dict[bytes, Answer], dict[bytes, int]]:
        """The answers known for some keys, and the calls of those that were paid for at a moment or later.

        Args:
            since, until: seconds since the epoch; the calls of answers that came after the second are below 0.
        """
        if not keys:
            return {}, {}
        # readers are never locked out in WAL
        if len(keys) <= 64 and self._db.quick and self._using.acquire(blocking=False):
            try:
                return self._checked(lambda db: self.find(db, keys, since, until))
            finally:
                self._using.release()
        return await self.read(lambda db: self.find(db, keys, since, until))

    def find(
        self, db: Database, keys: Sequence[bytes], since: float = math.inf, until: float = math.inf
    ) -> tuple[dict[bytes, Answer], dict[bytes, int]]:
        """What `get_paid` gives. A damaged answer is set aside and counted: its question is asked again.

        Args:
            since, until: seconds since the epoch.
        """
        rows = list(db.by_key("answer_rows", ANSWERS if since == math.inf else PAID, keys))
        answers, damaged = codec.readable(rows)
        if not self.damaged.issuperset(damaged):
            self.damaged.update(damaged)
            log.warning("%d answers of the ledger %s are damaged; they are asked again", len(self.damaged), self.path)
        if since == math.inf:
            return answers, {}
        later = (row for row in rows if isinstance(row[-1], float) and since <= row[-1] <= LATEST)
        later = (row for row in later if row[0] in answers and isinstance(row[-2], int) and 0 < row[-2] <= MOST_CALLS)
        return answers, {row[0]: row[-2] if row[-1] <= until else -row[-2] for row in later}

    async def note(self, heads: Sequence[bytes]) -> None:
        """Note that these questions are about to be asked of rows, so that `ever_asked` tells them from new ones."""
        digests = [self.key(head) for head in dict.fromkeys(heads)]

        def work(db: Database) -> None:
            if _count_questions(db, digests) < len(digests):
                db.executemany("INSERT INTO questions VALUES (?) ON CONFLICT DO NOTHING", [(d,) for d in digests])

        await self.read(work)

    async def ever_asked(self, heads: Sequence[bytes]) -> bool:
        """Whether any of these questions was ever asked of a row; of a file that was begun without this list: perhaps, so yes."""
        digests = [b"", *(self.key(head) for head in dict.fromkeys(heads))]
        return bool(await self.read(lambda db: _count_questions(db, digests)))

    async def origins(self, keys: Sequence[bytes]) -> dict[bytes, Origin]:
        """Who paid for the answers known for `keys`, but for damaged ones."""

        def work(db: Database) -> dict[bytes, Origin]:
            rows = db.by_key("answers", "key, run, calls, at", keys)
            paid = ((key, record(Origin, values)) for key, *values in rows)
            return {key: origin for key, origin in paid if origin is not None}

        return await self.read(work)

    def fail(self, failed: Sequence[Failed]) -> None:
        """Keep, soon, that the model gave no answer for these rows: `at` is the moment when that is written."""
        self.soon(lambda db: db.executemany(FAILURE, [astuple(replace(f, at=db.now())) for f in failed]))

    async def failed_keys(self, root: str) -> list[bytes]:
        """The keys of all rows for which a run got no answer."""
        rows = await self.read(lambda db: db.execute("SELECT key FROM failures WHERE root = ?", (root,)).fetchall())
        return [key for (key,) in rows if isinstance(key, bytes) and len(key) == KEY_BYTES]

    async def failures(self, root: str, keys: Sequence[bytes]) -> dict[bytes, Failed]:
        """The rows among `keys` for which a run got no answer; what is damaged is asked again."""
        return await self.read(lambda db: find_failures(db, root, keys)) if keys else {}

    async def put(self, entries: Sequence[Entry], events: Sequence[Event] = ()) -> None:
        """Keep answers and events. Returns once they are in the file: use an answer only after that."""
        if not entries and not events:
            return
        loop = asyncio.get_running_loop()
        write = _Write(entries, events, loop, loop.create_future())
        with self._lock:
            self._waiting.append(write)
            flushing, self._flushing = self._flushing, loop
        if flushing is not loop:  # the writes of one moment share a transaction
            loop.call_later(self._written + PAUSE_S - time.monotonic(), self._flush)
        await write.done

    def _flush(self) -> None:
        if not self._begin_here():
            try:
                self._pool.submit(self._write)
            except RuntimeError:  # no memory for a thread: those who wait would wait for ever
                self._write()
            return
        try:
            self._write(begun=True)
        finally:
            self._using.release()

    def _write(self, *, begun: bool = False) -> None:
        """Put all that waits into one transaction, and wake those who wait for it."""
        with self._using:
            with self._lock:
                writes, self._waiting, self._flushing = self._waiting, [], None
            failure: UQLError | None = None
            try:
                self._db.run(partial(_keep, writes), atomic=True, begun=begun)
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody waits for ever
                self.n_lost += sum(len(write.entries) for write in writes)
                failure = error if isinstance(error, UQLError) else self._failure(error)
            self._written = time.monotonic()
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
    async def reserve(self, run: str, cap: int, calls: int) -> int:
        """Take calls of a run that several processes share, before they are made: as many as its cap leaves.

        They stay taken, whatever becomes of the process.

        Args:
            cap: of all its processes together.
            calls: wanted; below 0: so many were not made, and are given back.
        Returns how many were taken.
        """

        def work(db: Database) -> int:
            db.execute("INSERT INTO reserved VALUES (?, 0) ON CONFLICT DO NOTHING", (run,))
            db.execute("UPDATE reserved SET calls = calls WHERE run = ?", (run,))  # the others wait for its end
            total = int(db.execute("SELECT calls FROM reserved WHERE run = ?", (run,)).fetchone()[0])
            grant = min(calls, max(0, cap - total))
            db.execute("UPDATE reserved SET calls = calls + ? WHERE run = ?", (grant, run))
            return grant

        return await self.transact(work)

    async def take_rate(self, model: str, account: str, unit: str, seconds: float) -> float:
        """Take the next so many seconds of a rate that all users of the ledger share.

        Args:
            account: whose rate it is; users of one model with other accounts have rates of their own.
            unit: "requests" or "tokens".
            seconds: of the rate.
        Returns in how many seconds they begin; below 0: they have begun.
        """
        key = self.key(b"rate", model.encode(), account.encode(), unit.encode())

        def work(db: Database) -> float:
            now = db.now()
            db.execute("INSERT INTO rates VALUES (?, 0) ON CONFLICT DO NOTHING", (key,))
            # the others wait for the end of this transaction
            begin = "CASE WHEN until BETWEEN ? AND ? THEN until ELSE ? END"
            least, most = now - BURST_S, now + MOST_AHEAD_S
            db.execute(f"UPDATE rates SET until = {begin} + ? WHERE key = ?", (least, most, least, seconds, key))
            until = float(db.execute("SELECT until FROM rates WHERE key = ?", (key,)).fetchone()[0])
            return until - seconds - now

        return await self.transact(work)

    def _change(self, sql: str, values: Sequence[object]) -> None:
        self.work(lambda db: db.execute(sql, values).rowcount)

    def start_run(self, run: str, *, statement: str, model: str, seed: int, details: str = "") -> None:
        """Note a run; one that is there already (a resumed one) is running again.

        Args:
            details: JSON: what a resumed run must know.
        """
        self._change(
            "INSERT INTO runs VALUES (?, ?, NULL, ?, ?, ?, 'running', ?) "
            "ON CONFLICT (run) DO UPDATE SET status = 'running', finished = NULL",
            (run, self.now(), statement, model, seed, details),
        )

    def finish_run(self, run: str, status: str) -> None:
        """Set a run's status: done, partial, failed, interrupted."""
        self._change("UPDATE runs SET finished = ?, status = ? WHERE run = ?", (self.now(), status, run))

    def log_draw(self, run: str, step: str, indices: Iterable[int]) -> None:
        """Append the rows that a sampler drew at one step of a run, before they are asked.

        Args:
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
        rows = self.work(lambda db: _runs(db, sql, (run,)))
        if not rows:
            raise self._failure(ValueError(f"the run {run} is in an index alone"))
        return dict(zip(RUN_COLUMNS, rows[0], strict=True))

    def stored(self, run: str) -> StoredRun | None:
        """The run of an id, or of what only one run's id begins with; None where there is none."""
        sql = (
            "SELECT run, statement, model, seed, status, started, details FROM runs "
            "WHERE run = ? OR (length(?) >= 4 AND substr(run, 1, length(?)) = ?) ORDER BY run = ? DESC LIMIT 2"
        )
        paid = (
            "SELECT COALESCE(SUM(CASE WHEN s.kind = 'call' THEN c.rows END), 0), "
            "COALESCE(SUM(c.input_tokens + c.output_tokens), 0), COALESCE(SUM(c.usd), 0.0) "
            "FROM call_rows c JOIN subjects s ON s.id = c.subject WHERE s.run = ?"
        )

        def work(db: Database) -> StoredRun | None:
            matches = db.execute(sql, (run,) * 5).fetchall()
            if not matches or (len(matches) > 1 and matches[0][0] != run):
                return None
            return StoredRun(*matches[0], *db.execute(paid, matches[0][:1]).fetchone())

        return self.work(work)

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
            while rows := self.work(lambda db: db.execute(sql, last).fetchall()):
                if rows[-1][0] <= last[0]:
                    raise self._failure(ValueError(f"the numbers of {table} do not rise"))
                yield [row[1:] for row in rows]
                last[:] = rows[-1][:1]

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
        now = self.now()
        rows = [(scope, name, json.dumps(value), now) for name, value in values.items()]

        def work(db: Database) -> None:
            db.lock()
            db.executemany("DELETE FROM statistics WHERE scope = ? AND name = ?", [row[:2] for row in rows])
            db.executemany("INSERT INTO statistics VALUES (?, ?, ?, ?)", rows)

        self.work(work, atomic=True)

    def statistics(self, scope: str) -> dict[str, Any]:
        """The values remembered, but for those that are damaged."""
        sql = "SELECT name, CAST(value AS BLOB) FROM statistics WHERE scope = ?"
        values = {}
        for name, value in self.work(lambda db: db.execute(sql, (scope,)).fetchall()):
            with suppress(ValueError, RecursionError):
                if isinstance(name, str):
                    values[name] = json.loads(value)
        return values

    # ------------------------------------------------------------------------------------------------------------ upkeep
    def stats(self) -> Stats:
        """How much is in the file."""

        def work(db: Database) -> Stats:
            def answers_of(column: str) -> tuple[tuple[str, int], ...]:
                sql = f"SELECT {column}, COUNT(*) FROM answers GROUP BY {column} ORDER BY {column}"
                return tuple(db.execute(sql).fetchall())

            answers, runs, calls = (_count(db, table) for table in ("answer_rows", "runs", "call_rows"))
            return Stats(self.path, answers, runs, calls, db.size(), answers_of("model"), answers_of("source"))

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
            where["at < ?"] = self.now() - older_than_s

        def work(db: Database) -> int:
            gone = 0
            if where:
                which, values = " AND ".join(where), list(where.values())
                _forget_runs(db, which, values)
                sql = f"DELETE FROM answer_rows WHERE key IN (SELECT key FROM answers WHERE {which})"
                gone += db.execute(sql, values).rowcount
                calls_sql = f"SELECT n FROM calls WHERE message <> '' AND {which}"
                db.execute(f"UPDATE call_rows SET message = '' WHERE n IN ({calls_sql})", values)
                if source is not None and len(where) == 1:
                    db.execute(f"DELETE FROM corrections WHERE {which}", values)
                _shrink(db)
            return gone + (0 if max_bytes is None else _drop_oldest(db, max_bytes))

        return self.work(work)

    def clear(self) -> int:
        """Forget everything: answers, runs, calls, draws. Returns how many answers went."""

        def work(db: Database) -> int:
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
                "reserved",
            ):
                db.execute(f"DELETE FROM {table}")
            _shrink(db)
            return gone

        return self.work(work)


def _count_questions(db: Database, digests: Sequence[bytes]) -> int:
    return sum(n for (n,) in db.by_key("questions", "COUNT(*)", digests, key="digest"))


def _keep(writes: Sequence[_Write], db: Database) -> None:
    """Writes answers and events; an answer takes away the claim on its row."""
    now = db.now()
    entries = [entry for write in writes for entry in write.entries]
    events = [event for write in writes for event in write.events]
    of_entries = [(e.run, "", e.model, "", "", e.source) for e in entries]
    of_events = [subject_of(event) for event in events]
    ids = {subject: _subject(db, subject) for subject in dict.fromkeys((*of_entries, *of_events))}
    rows = [
        (e.key, *codec.to_row(e.answer), ids[about], now, e.calls) for e, about in zip(entries, of_entries, strict=True)
    ]
    db.executemany(ANSWER, rows)
    db.executemany("DELETE FROM claims WHERE key = ?", [(e.key,) for e in entries])
    db.executemany(CALL, [(ids[about], *call_of(event)) for event, about in zip(events, of_events, strict=True)])


def _subject(db: Database, subject: tuple[str, ...]) -> int:
    """The number of a row of `subjects`, which is written where it is new."""
    row = db.execute(SUBJECT_ID, subject).fetchone()
    if row is None:
        db.execute(SUBJECT, subject)
        row = db.execute(SUBJECT_ID, subject).fetchone()
    return int(row[0])


def _runs(db: Database, sql: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
    """Rows of RUN_COLUMNS; the status of a run whose process has ended without a word is "killed"."""
    at, of = RUN_COLUMNS.index("status"), RUN_COLUMNS.index("run")
    rows, dead = db.execute(sql, values).fetchall(), killed(db)
    return [(*row[:at], "killed", *row[at + 1 :]) if row[of] in dead else row for row in rows]


def _forget_runs(db: Database, which: str, values: Sequence[Any]) -> None:
    """Runs that paid for these answers, or read the same tables with the same model, are not drawn again."""
    paid = f"SELECT root FROM sittings WHERE run IN (SELECT run FROM answers WHERE {which})"
    read = (
        "SELECT d.run FROM draws d JOIN runs r ON r.run = d.run "
        f"JOIN (SELECT DISTINCT model, source FROM answers WHERE {which}) a ON r.model = a.model AND d.step = 'rows of ' || a.source"
    )
    roots = list(db.execute(f"SELECT DISTINCT * FROM ({paid} UNION {read}) AS of_them", [*values, *values]))
    for table in ("failures", "sittings"):
        db.executemany(f"DELETE FROM {table} WHERE root = ?", roots)


def _shrink(db: Database) -> None:
    db.execute(
        "DELETE FROM subjects WHERE id NOT IN (SELECT subject FROM answer_rows UNION SELECT subject FROM call_rows)"
    )
    db.shrink()


def _count(db: Database, table: str) -> int:
    return int(db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def _drop_oldest(db: Database, max_bytes: int) -> int:
    """Delete the oldest answers (and calls of their time) until the file is below nine tenths of `max_bytes`. What a run under way
    has paid for stays."""
    dead, gone = killed(db), 0
    living = [run for (run,) in db.execute("SELECT run FROM runs WHERE status = 'running'") if run not in dead]
    ended = f"subject NOT IN (SELECT id FROM subjects WHERE run IN ({','.join('?' * len(living)) or 'NULL'}))"
    while True:
        _shrink(db)
        size = db.size()
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
