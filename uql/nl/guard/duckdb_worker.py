"""The child process in which DuckDB runs what a model wrote: orders come in on stdin, replies go out on stdout.

An order is a line of JSON, after which stands an Arrow IPC stream where it brings a table. A reply is a line of JSON, after which
stand as many bytes of Arrow IPC as it says. Each `open` gives a new DuckDB in memory, or a database file to read, and limits of memory
and CPU time.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import duckdb
import pyarrow as pa

from uql.base.duckdb_connections import lock

THREADS = 2
MB = 2**20
SLACK = 256  # MiB more than at the start that a process may hold on to and be used again


class Worker:
    """One DuckDB at a time, and the orders for it."""

    def __init__(self, orders: BinaryIO, replies: BinaryIO) -> None:
        self._orders, self._replies = orders, replies
        self._duck = _fresh()
        self._duck.execute("SELECT 1").fetchall()
        self._base = _address_space()

    def serve(self) -> None:
        """Carries out orders until stdin ends."""
        while line := self._orders.readline():
            order = json.loads(line)
            try:
                reply, rows = self._done(order)
                data = _stream(rows) if rows is not None else None
            except (duckdb.Error, pa.ArrowException, MemoryError, RecursionError, ValueError, TypeError) as error:
                is_expected = isinstance(error, duckdb.Error | MemoryError)
                reply, data = {"error": type(error).__name__ if is_expected else "Error", "message": str(error)}, None
            reply["bytes"] = data.size if data is not None else 0
            self._replies.write(json.dumps(reply).encode() + b"\n")
            if data is not None:
                self._replies.write(data)
            self._replies.flush()
            if order["op"] == "close":
                self._duck = _fresh()  # for the next one, while nobody waits

    def _done(self, order: dict[str, object]) -> tuple[dict[str, object], pa.Table | None]:
        sql, name = str(order.get("sql", "")), str(order.get("name", ""))
        match order["op"]:
            case "open" | "limit" as op:
                memory = int(str(order["memory"]))
                _limit(self._base, memory, float(str(order["seconds"])))
                if "database" in order:
                    self._duck.close()
                    self._duck = _opened(str(order["database"]), str(order["folder"]), memory)
                elif op == "open":
                    lock(self._duck, f"{memory}MiB")
            case "close":
                self._duck.close()
                return {"kept": _address_space() <= self._base + SLACK * MB}, None
            case "load":
                with pa.ipc.open_stream(self._orders) as reader:
                    try:
                        self._duck.register("__given", reader)
                        self._duck.execute(sql)
                    finally:
                        for _ in reader:  # what an error left
                            pass
                self._duck.unregister("__given")
            case "register":
                with pa.ipc.open_stream(self._orders) as reader:
                    self._duck.register(name, reader.read_all())
            case "unregister":
                self._duck.unregister(name)
            case "columns":
                relation = self._duck.sql(sql)
                if relation is not None:
                    return {"columns": relation.columns, "types": [str(kind) for kind in relation.types]}, None
            case "rows":
                relation = self._duck.sql(sql, params=order["parameters"] or None)
                return {}, relation.to_arrow_table() if relation is not None else None
        return {}, None


def _fresh() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"temp_directory": ""})


def _opened(database: str, folder: str, memory: int) -> duckdb.DuckDBPyConnection:
    """A database file, to read. Its settings are for whoever opens it to lock.

    Args:
        folder: that relative paths in statements start from.
        memory: MiB of DuckDB.
    """
    os.chdir(folder)
    limits: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": "",
        "memory_limit": f"{memory}MiB",
        "threads": THREADS,
    }
    return duckdb.connect(database, read_only=True, config=limits)


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _address_space() -> int:
    """The bytes of address space that this process has taken; 0: not known."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _limit(base: int, memory: int, seconds: float) -> None:
    """Limits the process to `memory` MiB beyond `base` bytes, and to the CPU time of `seconds` on all threads from now on."""
    if sys.platform == "win32":  # the parent's clock alone ends a statement there, DuckDB alone limits its memory
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(used.ru_utime + used.ru_stime + THREADS * seconds) + 2
    limits = {resource.RLIMIT_CPU: cpu, resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    if base:
        limits[resource.RLIMIT_AS] = base + memory * MB
    for kind, most in limits.items():
        with suppress(ValueError, OSError):  # a limit that this system does not have
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


def main() -> None:
    pa.set_memory_pool(pa.system_memory_pool())  # its address space is what it uses
    pa.set_cpu_count(1)
    with os.fdopen(os.dup(0), "rb") as orders, os.fdopen(os.dup(1), "wb") as replies:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        sys.setrecursionlimit(2_000)
        with suppress(BrokenPipeError):  # the parent is gone
            Worker(orders, replies).serve()


if __name__ == "__main__":
    main()
