"""The driver's side of a cluster: its shards, and the rows that they draw together.

A row is drawn by the hash of its number among the rows that the plain conditions leave, so any number of shards draws the same rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from uql.base.errors import ConfigError, DataError
from uql.base.sql_text import first_line, quote
from uql.cluster.lake import Lake, LakeTable, open_lake
from uql.cluster.messages import broken, checked, joined, number, scores, unpack
from uql.cluster.ray_actors import on_ray
from uql.cluster.selection import SCORE, Below, Head, Near, Selection
from uql.cluster.shard import SHARES, Shard, nearest
from uql.sampling.row_hash import LARGEST, bound_for, lowest

PROCESS = "process"  # the address of a cluster of this process alone, without Ray
Call = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]
Work = Callable[..., Awaitable[list[Any]]]


@dataclass(slots=True)
class Traffic:
    """What the shards have sent.

    Attributes:
        bytes: in all.
        messages: answers.
        largest: bytes of one answer.
    """

    bytes: int = 0
    messages: int = 0
    largest: int = 0

    def add(self, size: int) -> None:
        self.bytes, self.messages, self.largest = self.bytes + size, self.messages + 1, max(self.largest, size)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The shards over a lake.

    Attributes:
        place: the path beside which vectors are kept.
        tables: by name.
        views: their SQL in the driver, by name: another view or table of that name is not the lake's.
        call: runs a method of every shard whose arguments are not None, and gives the answers in the order of the shards.
        work: gives what a coroutine function makes of each shard and of its other arguments; a shard that is lost begins again.
        alone: are the shards in this process?
        shards: their number.
        close: gives up the shards.
    """

    place: Path
    tables: dict[str, LakeTable]
    views: dict[str, str]
    call: Call
    work: Work
    alone: bool
    shards: int
    close: Callable[[], None]
    traffic: Traffic = field(default_factory=Traffic)
    _counts: dict[str, list[int]] = field(default_factory=dict)

    @staticmethod
    def share_of(table: LakeTable) -> str:
        """The name under which a query of a shard reads its own rows of a table."""
        return f"{SHARES}.{quote(table.name)}"

    def count(self, sql: str) -> int:
        """The rows of a query over `share_of` a table, of all shards. Raises: DataError (UQL503)."""
        return sum(self.counts(sql))

    def counts(self, sql: str) -> list[int]:
        """The same, of each shard. Raises: DataError (UQL503), also where a file of the lake was changed since it was opened."""
        for table in self.tables.values():
            if self.share_of(table) in sql:
                table.check_unchanged()
        if sql not in self._counts:
            most = max(table.total for table in self.tables.values())
            self._counts[sql] = [number(answer, most) for answer in self._each("count", [(sql,)] * self.shards)]
        return self._counts[sql]

    def draw(self, sql: str, count: int) -> pa.Table:
        """The rows of a query whose numbers have the lowest hashes, in the order of their numbers.

        Args:
            sql: over `share_of` a table.
            count: rows; those that there are, where there are fewer.
        Raises: DataError (UQL503).
        """
        total = self.count(sql)
        count = min(count, total)
        bound = LARGEST if count == total else bound_for(count, total)
        rows = self._rows(sql, Below(bound))
        while rows.num_rows < count:  # one draw in a hundred million
            if bound == LARGEST:
                raise broken(f"it holds {rows.num_rows:,} of {total:,} rows")
            bound = min(LARGEST, 2 * bound)
            rows = self._rows(sql, Below(bound))
        return rows.filter(lowest(rows.column("__row").to_numpy(), count))

    def head(self, sql: str, order: str, limit: int) -> pa.Table:
        """The first rows of each shard by an order, among which are the first `limit` of all.

        Args:
            sql: over `share_of` a table.
            order: SQL of ORDER BY; `__row` is the number of a row.
            limit: rows of a shard.
        """
        return self._rows(sql, Head(order, limit))

    def near(self, sql: str, selection: Near) -> pa.Table:
        """The rows that are nearest to a text, of all shards, in the order of their numbers; `sql` is over `share_of` a table."""
        parts = self._each("best", [(sql, selection)] * self.shards)
        found = np.concatenate([scores(part, selection.most) for part in parts])
        least = float(np.partition(found, -selection.most)[-selection.most]) if len(found) >= selection.most else -1.0
        rows = self._rows(sql, replace(selection, score=least))
        return rows.take(nearest(rows.column(SCORE).to_numpy(), selection.most)).drop_columns(SCORE)

    def usage(self) -> list[tuple[float, int]]:
        """Of each shard the CPU seconds of its process so far, and bytes of memory at most."""
        return self._each("usage", [()] * self.shards)

    def _rows(self, sql: str, chosen: Selection) -> pa.Table:
        """The rows that the shards choose, in rounds of one message a shard. Raises: DataError (UQL503) where they are others."""
        counts = self.counts(sql)
        firsts = [0, *accumulate(counts)]
        parts: list[list[pa.Table]] = [[] for _ in counts]
        open_ = list(range(self.shards))
        while open_:
            had = [sum(part.num_rows for part in parts[i]) for i in open_]
            requests = [(sql, firsts[i], counts[i], chosen, n) for i, n in zip(open_, had, strict=True)]
            left = {}
            for i, n, answer in zip(open_, had, self._each("rows", requests, open_), strict=True):
                rows, left[i] = unpack(answer)
                number(n + rows.num_rows + left[i], counts[i])
                self.traffic.add(len(answer[0]))
                parts[i].append(rows)
            open_ = [i for i in open_ if left[i]]
        shares = zip(parts, firsts, counts, strict=False)
        return joined([checked(joined(batches), first, count, chosen) for batches, first, count in shares])

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]], of: Sequence[int] | None = None) -> list[Any]:
        places = range(self.shards) if of is None else of
        by_shard: list[Any] = [None] * self.shards
        for i, argument in zip(places, arguments, strict=True):
            by_shard[i] = argument
        try:
            return self.call(method, by_shard)
        except duckdb.Error as error:
            raise DataError(
                f"the shards cannot read their rows: {first_line(error)}",
                code="UQL503",
                help="a plain condition over the lake's tables names those tables alone: temporary tables and macros of this "
                "connection are not in the shards",
            ) from error


def open_cluster(path: str | Path, address: str, shards: int | None, duck: duckdb.DuckDBPyConnection) -> Cluster:
    """The shards over the tables of a lake, which become views of `duck` too.

    Args:
        path: of the lake, as `open_lake` takes it.
        address: of Ray: "ray://host:10001", "host:6379", "auto", "local" for one on this machine; "process" for this process alone.
        shards: None: one a core of the cluster.
    Raises: DataError (UQL501, UQL503); ConfigError (UQL105) where Ray does not answer, (UQL610) where it is not installed.
    """
    lake = open_lake(path, duck)
    if shards is not None and shards < 1:
        raise ConfigError(f"shards = {shards} is not at least 1", code="UQL105")
    alone = address == PROCESS
    n, call, work, close = _in_process(lake, shards or 1) if alone else on_ray(lake, address, shards)
    views = dict(
        duck.execute(
            "SELECT view_name, sql FROM system.main.duckdb_views() WHERE NOT internal AND NOT temporary"
        ).fetchall()
    )
    return Cluster(lake.place, {table.name: table for table in lake.tables}, views, call, work, alone, n, close)


Shards = tuple[int, Call, Work, Callable[[], None]]


def _in_process(lake: Lake, shards: int) -> Shards:
    workers = [Shard(lake, i, shards) for i in range(shards)]

    def call(method: str, arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        return [getattr(one, method)(*a) for one, a in zip(workers, arguments, strict=True) if a is not None]

    async def work(do: Callable[..., Awaitable[Any]], *arguments: Any) -> list[Any]:
        return [await do(one, *arguments) for one in workers]

    return shards, call, work, workers.clear
