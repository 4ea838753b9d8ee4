"""One shard: a DuckDB over a run of the rows of each table. It answers in messages of at most 64 KB, whatever the rows."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from hashlib import blake2b
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uql.base.extras import need
from uql.base.sql_text import quote
from uql.cluster.lake import Lake, view
from uql.cluster.messages import pack
from uql.cluster.selection import SCORE, Below, Head, Near, Selection
from uql.features.cache import forget_pages, save_parts
from uql.features.embedder import Embedder, Matrix, unit_rows
from uql.features.static import static_embedder
from uql.sampling.row_hash import rows_below

PLACE = "__uql_place"  # the column of the place of a row in its share
DIGITS = 4  # of a cosine: the sums of its products round otherwise in another share
DIMENSIONS = 64  # of the vectors that nearness is told by: 128 bytes a row
SLICE = 8_192  # rows embedded or scored at a time
SHARES = "share"  # the schema of the views of the shard's own rows


class Shard:
    """Every method may be called again after the process was lost: what it gives depends on the files and its arguments alone.

    Args:
        lake: of its tables the views `main.NAME` are the whole tables, `share.NAME` the rows of this shard, with their place in it as
            `__uql_place`.
        shard, shards: which of how many this is.
    """

    def __init__(self, lake: Lake, shard: int, shards: int) -> None:
        self._lake, self._tables = lake, {table.name: table for table in lake.tables}
        self._shard, self._shards = shard, shards
        self._duck = self.connect()
        self._duck.execute(f"CREATE SCHEMA {SHARES}")
        for table in lake.tables:
            share = f"SELECT *, system.main.row_number() OVER () - 1 AS {PLACE} FROM ({table.share(shard, shards)})"
            self._duck.execute(view(f"main.{quote(table.name)}", table.whole))
            self._duck.execute(view(f"{SHARES}.{quote(table.name)}", share))
        self._chosen: tuple[object, pa.Table] | None = None
        self._scored: tuple[object, NDArray[np.float32]] | None = None

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection to a database in memory that reads the lake."""
        # one thread numbers the rows, however many there are, and for each DuckDB reads 30 MB ahead
        duck = duckdb.connect(config={"threads": 1})
        for sql in self._lake.setup:
            duck.execute(sql)
        return duck

    def count(self, sql: str) -> int:
        """The rows of a query over the share. Raises: duckdb.Error."""
        rows = self._duck.execute(f"SELECT system.main.count(*) FROM ({sql})").fetchall()
        return int(rows[0][0])

    def rows(self, sql: str, first: int, count: int, selection: Selection, start: int) -> tuple[bytes, int]:
        """Some rows of a query over the share, from the `start`-th of these on.

        Args:
            first: the number of its first row, of those of all shards.
            count: its rows.
            selection: which of them.
            start: how many rows the caller has.
        Returns: a message of as many rows as it holds, `__row` being a row's number; and how many are left after them.
        """
        key = (sql, first, selection)
        if self._chosen is None or self._chosen[0] != key:
            self._chosen = key, self._choose(sql, first, count, selection)
        return pack(self._chosen[1].slice(start))

    def best(self, sql: str, selection: Near) -> bytes:
        """The greatest scores of the rows of a query, as (n ≤ wanted.most,) float32."""
        scores = self._scores(sql, selection)
        return (
            scores if len(scores) <= selection.most else np.partition(scores, -selection.most)[-selection.most :]
        ).tobytes()

    def slices(self, table: str, rows: int) -> Iterator[str]:
        """SQL of the rows of a table that are this shard's, in their order, about `rows` of them at a time; at least one."""
        whole = self._tables[table]
        n = max(1, -(-whole.total // (self._shards * rows)))
        return (whole.share(self._shard * n + i, self._shards * n) for i in range(n))

    def work(self, do: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """What a function makes of this shard, in a loop of its own."""

        async def done() -> Any:
            return await do(self, *arguments)

        return asyncio.run(done())

    def usage(self) -> tuple[float, int]:
        """CPU seconds of the process so far, and bytes of memory at most; 0 bytes where the system does not say."""
        memory = 0
        if sys.platform != "win32":
            import resource

            unit = 1 if sys.platform == "darwin" else 1024  # bytes
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return time.process_time(), memory

    def _choose(self, sql: str, first: int, count: int, selection: Selection) -> pa.Table:
        numbered = f"SELECT *, system.main.row_number() OVER () - 1 AS __row FROM ({sql})"
        if isinstance(selection, Head):
            relation = self._duck.sql(f"SELECT * FROM ({numbered}) ORDER BY {selection.order} LIMIT {selection.limit}")
            rows = relation.to_arrow_table()
            places = rows.column("__row").to_numpy()
        else:
            if isinstance(selection, Below):
                places = rows_below(first, first + count, selection.bound) - first
            else:
                scores = self._scores(sql, selection)
                places = np.flatnonzero(scores >= np.float32(selection.score))
                places = places[nearest(scores[places], selection.most)]
            self._duck.register("__wanted", pa.table({"__row": places}))
            try:
                relation = self._duck.sql(f"SELECT * FROM ({numbered}) SEMI JOIN __wanted USING (__row) ORDER BY __row")
                rows = relation.to_arrow_table()
            finally:
                self._duck.unregister("__wanted")
            if isinstance(selection, Near):
                rows = rows.add_column(0, SCORE, pa.array(scores[places]))
        return rows.set_column(rows.num_columns - 1, "__row", pa.array(places + first))

    # ------------------------------------------------------------------------------------------------------- nearness
    def _scores(self, sql: str, selection: Near) -> NDArray[np.float32]:
        """(n,) the cosine of each row of a query with a text."""
        key = (sql, selection.table, selection.text_sql, selection.text)
        if self._scored is None or self._scored[0] != key:
            vectors = self._rows_as_vectors(selection)
            query_vector = _short(self._embedder().embed([selection.text]))[0]
            every = np.zeros(len(vectors), np.float32)
            for i in range(0, len(vectors), SLICE):
                every[i : i + SLICE] = vectors[i : i + SLICE].astype(np.float32) @ query_vector
                forget_pages(vectors)
            places = self._duck.sql(f"SELECT {quote(selection.place)} AS place FROM ({sql})").fetchnumpy()["place"]
            self._scored = key, np.round(every[places], DIGITS)
        return self._scored[1]

    def _rows_as_vectors(self, selection: Near) -> NDArray[np.float16]:
        """(rows of the share, DIMENSIONS) unit vectors, from the file beside the lake, which is made where there is none."""
        table, embedder = self._tables[selection.table], self._embedder()
        name = f"{table.content}\0{selection.text_sql}\0{embedder.name}".encode()
        path = self._lake.vectors / f"{blake2b(name, digest_size=8).hexdigest()}-{self._shard}-{self._shards}.npy"
        if not path.exists():
            rows = self._duck.sql(f"SELECT {selection.text_sql} AS shown FROM {SHARES}.{quote(selection.table)}")
            n = self.count(f"SELECT 1 FROM {SHARES}.{quote(selection.table)}")
            batches = (batch.column(0).to_pylist() for batch in rows.to_arrow_reader(SLICE))
            save_parts(path, n, (_short(embedder.embed(texts)).astype(np.float16) for texts in batches))
        vectors: NDArray[np.float16] = np.load(path, mmap_mode="r")
        return vectors

    @staticmethod
    def _embedder() -> Embedder:
        embedder = static_embedder()
        if embedder is None:
            need("the nearest rows of a cluster's tables", "local", "wordllama")
        assert embedder is not None
        return embedder


def nearest(scores: NDArray[np.float32], most: int) -> NDArray[np.int64]:
    """The places of the greatest scores, ascending; of equal ones the first."""
    return np.sort(np.argsort(-scores, kind="stable")[:most])


def _short(vectors: Matrix) -> Matrix:
    """(n, DIMENSIONS) the first dimensions, of length 1: those of wordllama's table stand in the order of what they say.

    Source: Kusupati et al. (2022), Matryoshka representation learning.
    """
    return unit_rows(np.ascontiguousarray(vectors[:, :DIMENSIONS]))
