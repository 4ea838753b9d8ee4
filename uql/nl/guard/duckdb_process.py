"""DuckDB in a child process, for text that a model or its client wrote: nothing in this process has to be interrupted, a kill ends it.

DuckDB looks at its limits of time and memory between rows. It does not while it binds a statement, nor inside one call of a function.
So the system holds the limits of the child (address space, CPU time), and this process kills it when its time is over. One child
is kept warm for the next statement; statements at the same time have one each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import duckdb

from uql.base.errors import DataError, GuardError

if TYPE_CHECKING:
    import pyarrow as pa

WORKER = "uql.nl.guard.duckdb_worker"
START_S = 30.0  # that a child may take to start, not counted as the statement's
_MEMORY_ERRORS = ("MemoryError", "OutOfMemoryException")


class _Child:
    """A process of the worker; it says nothing before it is asked."""

    def __init__(self) -> None:
        system = {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if "SYSTEMROOT" in os.environ else {}  # Windows needs it
        self.owner = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=system,
            cwd=os.path.abspath(os.sep),
            start_new_session=True,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Kills the process, and closes what leads to it."""
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class _Pool:
    """At most one warm child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warm: _Child | None = None

    def take(self) -> _Child:
        with self._lock:
            warm, self._warm = self._warm, None
        if warm is not None and warm.owner == os.getpid() and warm.process.poll() is None:
            return warm
        return _Child()

    def give(self, child: _Child | None) -> None:
        """Takes a child back; in the place of one that is dead a new one starts."""
        with self._lock:
            if self._warm is None:
                self._warm = child or _Child()
                return
        if child is not None:
            child.end()


_pool = _Pool()


class ChildDuckDB:
    """One DuckDB in a child, with what UQL uses of a connection. Every error is duckdb.Error, or GuardError (UQL621) from a limit on.

    Args:
        memory: MiB of the child.
        seconds: that all statements on it may take together; what passes between them is not counted.
        database: path of a file that is opened to read, with settings that are not locked yet; None: one in memory, locked.
    """

    def __init__(self, child: _Child, memory: int, seconds: float, database: str | None = None) -> None:
        self._child, self._memory, self._seconds = child, memory, seconds
        self._left = START_S
        self._over = ""  # why nothing more can be asked
        file = {} if database is None else {"database": os.path.abspath(database), "folder": os.getcwd()}
        self._ask({"op": "open", "memory": memory, "seconds": seconds, **file})
        self._left = seconds

    # ------------------------------------------------------------------------------------------- as DuckDB's connection
    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> _Relation:
        return _Relation(self, sql, [], [], self._rows(sql, parameters))

    def sql(self, sql: str, *, params: Sequence[Any] | Mapping[str, Any] | None = None) -> _Relation | None:
        if params:
            return _Relation(self, sql, [], [], self._rows(sql, params))
        reply, _ = self._ask({"op": "columns", "sql": sql})
        return _Relation(self, sql, reply["columns"], reply["types"]) if "columns" in reply else None

    def extract_statements(self, sql: str) -> list[str]:
        """The statement as it is: the child parses it."""
        return [sql]

    def register(self, name: str, table: pa.Table) -> None:
        self._ask({"op": "register", "name": name}, table)

    def unregister(self, name: str) -> None:
        if not self._over:
            self._ask({"op": "unregister", "name": name})

    def cursor(self) -> ChildDuckDB:
        return self

    def close(self) -> None:
        """Nothing: the child is given back by whoever opened it."""

    # ------------------------------------------------------------------------------------------------------------ own
    def load(self, name: str, table: pa.Table, further: Sequence[str] = ()) -> None:
        """Makes a table of these rows, and runs further statements of UQL's own about it.

        Args:
            further: statements, run in their order.
        """
        quoted = '"' + name.replace('"', '""') + '"'
        self._ask({"op": "load", "sql": f"CREATE TABLE {quoted} AS SELECT * FROM __given"}, table)
        for statement in further:
            self.execute(statement)

    @property
    def usable(self) -> bool:
        """Has no limit ended it?"""
        return not self._over

    def renew(self) -> None:
        """Gives the statements from now on the whole time again."""
        self._left = START_S
        self._ask({"op": "limit", "memory": self._memory, "seconds": self._seconds})
        self._left = self._seconds

    def arrow(self, sql: str) -> pa.Table:
        """The rows of a query."""
        rows = self._rows(sql)
        assert rows is not None  # a statement without rows is not a query
        return rows

    def finish(self) -> bool:
        """Gives the database up. May the child be used again?"""
        if self._over:
            return False
        self._left = max(self._left, 1.0)
        with suppress(GuardError, duckdb.Error):
            return bool(self._ask({"op": "close"})[0].get("kept"))
        return False

    def _rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> pa.Table | None:
        values = parameters if isinstance(parameters, Mapping) or parameters is None else list(parameters)
        return self._ask({"op": "rows", "sql": sql, "parameters": values})[1]

    def _ask(self, order: Mapping[str, Any], table: pa.Table | None = None) -> tuple[dict[str, Any], pa.Table | None]:
        """The reply to an order. Raises: duckdb.Error; DataError (UQL505) of a table that cannot be sent; GuardError (UQL621)."""
        if self._over:
            raise stopped(self._over)
        began = time.monotonic()
        late = threading.Event()

        def end() -> None:
            late.set()
            self._child.process.kill()

        clock = threading.Timer(max(0.0, self._left), end)
        clock.daemon = True
        clock.start()
        try:
            reply, rows = self._exchange(order, table)
        except (OSError, ValueError, EOFError) as error:  # its pipes are broken, or end
            self._over = self._ended(late.is_set())
            raise stopped(self._over) from error
        finally:
            clock.cancel()
            self._left -= time.monotonic() - began
        if "error" not in reply:
            return reply, rows
        if reply["error"] in _MEMORY_ERRORS:
            self._over = f"it needs more memory than {self._memory} MB"
            raise stopped(self._over)
        kind = getattr(duckdb, str(reply["error"]), duckdb.Error)
        is_duckdb_error = isinstance(kind, type) and issubclass(kind, duckdb.Error)
        raise (kind if is_duckdb_error else duckdb.Error)(str(reply.get("message")))

    def _exchange(self, order: Mapping[str, Any], table: pa.Table | None) -> tuple[dict[str, Any], pa.Table | None]:
        import pyarrow as pa

        there, back = self._child.process.stdin, self._child.process.stdout
        assert there is not None and back is not None
        there.write(json.dumps(order).encode() + b"\n")
        if table is not None:
            try:
                with pa.ipc.new_stream(there, table.schema) as writer:
                    writer.write_table(table, max_chunksize=65_536)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
                self._child.kill()  # it waits for the rest
                raise DataError(f"the rows cannot be sent: {error}", code="UQL505") from error
        there.flush()
        reply = json.loads(back.readline())  # of nothing: ValueError
        size = int(reply["bytes"])
        if not size:
            return reply, None
        data = back.read(size)
        if len(data) < size:
            raise EOFError
        return reply, pa.ipc.open_stream(data).read_all()

    def _ended(self, late: bool) -> str:
        """Why the child is dead."""
        self._child.kill()
        cpu = self._child.process.returncode == -24  # SIGXCPU
        if late or cpu:
            return f"it ran longer than {self._seconds:g} s"
        return f"it needs more memory than {self._memory} MB, or DuckDB failed on it"


class _Relation:
    """A query on a child's DuckDB, which runs when its rows are wanted; of a statement that has run, the rows that it gave."""

    def __init__(
        self, duck: ChildDuckDB, sql: str, columns: list[str], types: list[str], rows: pa.Table | None = None
    ) -> None:
        self._duck, self._sql, self._rows = duck, sql, rows
        self.columns, self.types = columns, types

    def project(self, parts: str) -> _Relation:
        return _Relation(self._duck, f"SELECT {parts} FROM ({self._sql})", [], [])

    def to_arrow_table(self) -> pa.Table:
        return self._rows if self._rows is not None else self._duck.arrow(self._sql)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of a statement that has run."""
        return list(zip(*(c.to_pylist() for c in self._rows.columns), strict=True)) if self._rows is not None else []


@contextmanager
def child_duckdb(memory: int, seconds: float, database: str | None = None) -> Iterator[ChildDuckDB]:
    """A DuckDB in a child.

    Args:
        memory, seconds, database: as of `ChildDuckDB`.

    Raises: GuardError (UQL621) where the child cannot be started.
    """
    try:
        child = _pool.take()
    except OSError as error:
        raise stopped(f"its process cannot be started: {error}") from error
    duck: ChildDuckDB | None = None
    try:
        duck = ChildDuckDB(child, memory, seconds, database)
        yield duck
    finally:
        reusable = duck is not None and duck.finish()
        if not reusable:
            child.end()
        _pool.give(child if reusable else None)


def as_connection(duck: ChildDuckDB) -> duckdb.DuckDBPyConnection:
    """A child's DuckDB where a connection is wanted."""
    return cast("duckdb.DuckDBPyConnection", duck)


def stopped(why: str, help: str | None = None) -> GuardError:
    return GuardError(
        f"the statement was stopped: {why}", code="UQL621", help=help or "join on a condition, aggregate, or add LIMIT"
    )
