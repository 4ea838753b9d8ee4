"""What a shard sends, packed by the shard and checked by the driver: a message may be damaged on its way, or come from another version."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from uql.base.errors import DataError
from uql.base.sql_text import first_line
from uql.cluster.selection import SCORE, Below, Head, Near, Selection
from uql.sampling.row_hash import row_hashes

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

MESSAGE = 64 * 1024  # bytes of an answer at most, of more than one row
CHECKSUM = 16  # bytes before the rows
ROW = "__row"  # the last column: the number of a row, among those of all shards
OTHER_COSINE = 1e-3  # beyond 1, by rounding


def pack(rows: pa.Table) -> tuple[bytes, int]:
    """As many of the first rows as fit, compressed, and how many are left."""
    import pyarrow as pa

    each = max(1.0, rows.nbytes / max(1, rows.num_rows))
    n = min(rows.num_rows, max(1, int(4 * MESSAGE / each)))  # text is compressed to a third or so
    while True:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
            stream.write_table(rows.slice(0, n).combine_chunks())
        data = sink.getvalue()
        size = CHECKSUM + data.size
        if size <= MESSAGE or n <= 1:
            return _checksum(data) + data.to_pybytes(), rows.num_rows - n
        n = max(1, min(n - 1, int(0.95 * n * MESSAGE / size)))


def unpack(answer: object) -> tuple[pa.Table, int]:
    """The rows of a message, and how many are left after them. Raises: DataError (UQL503) where it is none."""
    import pyarrow as pa

    match answer:
        case (bytes(message), int(left)) if left >= 0:
            data = memoryview(message)[CHECKSUM:]
            if _checksum(data) != message[:CHECKSUM]:
                raise broken("its checksum does not fit")
            try:
                rows = pa.ipc.open_stream(data).read_all()
                rows.validate(full=True)
            except (pa.ArrowInvalid, OSError) as error:
                raise broken(first_line(error)) from error
            if left and not rows.num_rows:
                raise broken("it holds no rows, and more are to follow")
            return rows, left
    raise broken(f"it is {type(answer).__name__}")


def joined(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of messages as one table. Raises: DataError (UQL503) where their columns differ."""
    import pyarrow as pa

    if any(part.column_names != parts[0].column_names for part in parts):
        raise broken("the columns of two messages differ")
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise broken(first_line(error)) from error


def checked(rows: pa.Table, first: int, count: int, selection: Selection) -> pa.Table:
    """The rows that a shard has sent for a selection.

    Args:
        first: the number of the shard's first row.
    Raises: DataError (UQL503) where they are others than the selection can give.
    """
    import pyarrow as pa

    if not rows.column_names or rows.column_names[-1] != ROW or rows.schema.types[-1] != pa.int64():
        raise broken("it has no row numbers")
    numbers = rows.column(ROW).drop_null().to_numpy()
    if len(np.unique(numbers)) < rows.num_rows:
        raise broken("row numbers are missing, or stand there twice")
    if len(numbers) and not (first <= numbers.min() and numbers.max() < first + count):
        raise broken("a row number is none of the shard's")
    match selection:
        case Below(bound):
            if (row_hashes(numbers) > np.uint64(bound)).any():
                raise broken("a row was not asked for")
        case Head(_, limit):
            if len(numbers) != min(limit, count):
                raise broken(f"it holds {len(numbers):,} rows and not {min(limit, count):,}")
        case Near(most=most):
            if rows.schema.field(0).name != SCORE or rows.schema.types[0] != pa.float32():
                raise broken("it has no scores")
            scores(rows.column(0).to_numpy().tobytes(), most)
    return rows


def scores(answer: object, most: int) -> NDArray[np.float32]:
    """Cosines that a shard has sent, at most so many. Raises: DataError (UQL503) where they are none."""
    if not isinstance(answer, bytes) or len(answer) % 4:
        raise broken(f"scores of the type {type(answer).__name__}")
    values = np.frombuffer(answer, np.float32)
    if len(values) > most or not (np.abs(values) <= 1 + OTHER_COSINE).all():
        raise broken(f"{len(values):,} scores, of which some are no cosines or too many")
    return values


def number(answer: object, most: int) -> int:
    """A count that a shard has sent. Raises: DataError (UQL503) where it is not in [0, most]."""
    if type(answer) is not int or not 0 <= answer <= most:
        raise broken(f"a count of {str(answer)[:40]}, of {most:,} rows")
    return answer


def broken(what: str) -> DataError:
    """The error where a shard's answer cannot be used."""
    return DataError(
        f"the answer of a shard cannot be used: {what}",
        code="UQL503",
        help="do all machines of the cluster have the same version of UQL, and the same files under the lake's path? Open the "
        "connection anew; what was answered is in the ledger",
    )


def _checksum(data: Any) -> bytes:
    return blake2b(data, digest_size=CHECKSUM).digest()
