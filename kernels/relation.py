"""The candidate rows of a query block: a table in DuckDB, seen by kernels as row ids 0 … n − 1, and the answers known of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uql.base.media_types import media_type
from uql.base.schema import Field, Modality
from uql.compiler.physical import Stage
from uql.compiler.sql import value_type
from uql.compiler.syntax import Column, Expr
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import ColumnAnswers, Filters, Rids
from uql.kernels.duck import Duck, quote
from uql.kernels.media import lasting, loaded
from uql.llm.questions import Cell, Question, Row
from uql.operators.record import Parameters
from uql.sampling.base import Indices

SMALL = 10_000  # rows of a table that is read whole sooner than looked up in
SMALL_BYTES = 1 << 20  # of one whose values are kept once they are read
# rows that are read at once: of texts more, as many as have BYTES at the most
LEAST_AT_ONCE, MOST_AT_ONCE, BYTES_AT_ONCE = 4_096, 32_768, 64 << 20
NO_ROWS = np.zeros(0, dtype=np.int64)
MOST_AHEAD = 8 * MOST_AT_ONCE  # rows in no order that one scan gives


@dataclass(frozen=True, slots=True)
class Pool:
    """Pairs that stand for all pairs of two sides.

    Attributes:
        total: pairs in all.
        left, right: (pairs,) the row of each side.
        strata: (pairs,) in [0, H): near pairs by their cosine, and last the random ones of all others.
        sizes: (H,) the pairs that each stratum stands for: the last is the only one not wholly in the pool.
        units: (n, e) and (m, e) unit vectors of both sides; None where they have no text.
    """

    total: int
    left: Indices
    right: Indices
    strata: Indices
    sizes: Indices
    units: tuple[NDArray[np.float32], NDArray[np.float32]] | None

    @property
    def near(self) -> int:
        """Pairs near in meaning."""
        return int(self.sizes[:-1].sum())


@dataclass(frozen=True, slots=True)
class FirstStage:
    """The rest of the table, where a relation holds uniform random rows of it: the first stage of a sample.

    Attributes:
        total: rows of the table.
        rows: SQL of all of them, with the columns of the relation.
    """

    total: int
    rows: str


@dataclass(slots=True)
class _Shown:
    """What reading rows for a model gave.

    Attributes:
        rows: by the columns that they show and by id, at most SMALL of each kind.
        unreadable: values whose files cannot be read, and why.
        longest: bytes of the longest row by the columns that it shows.
        ahead: rows that are about to be read, by id, and by what is read what one scan gave of them: of a small table all rows.
    """

    rows: dict[tuple[tuple[Column, ...], tuple[Column, ...]], dict[int, Row]] = field(default_factory=dict)
    unreadable: dict[tuple[int, Column], str] = field(default_factory=dict)
    longest: dict[tuple[Column, ...], int] = field(default_factory=dict)
    ahead: tuple[Rids, dict[tuple[str, ...], pa.Table]] = field(default_factory=lambda: (NO_ROWS, {}))


class Relation:
    """A materialised table of candidate rows. Its columns are called "alias.name".

    Args:
        name: of the table in DuckDB.
        n: its rows.
        source: the user's table that the rows come from, by which the ledger can forget their answers.
        pool: where the rows are pairs that stand for more of them.
        stage: where the rows are random ones of more.
    """

    def __init__(
        self,
        duck: Duck,
        name: str,
        n: int,
        fields: dict[Column, Field],
        source: str = "",
        pool: Pool | None = None,
        stage: FirstStage | None = None,
    ) -> None:
        self.duck, self.name, self.n, self.fields, self.source = duck, name, n, fields, source
        self.part_of: Pool | FirstStage | None = pool or stage
        self.answers: dict[int, ColumnAnswers] = {}  # by the id of a virtual column
        self.filters = Filters()
        self._shown = _Shown()
        row_bytes = sum(SMALL_BYTES if f.type == "BLOB" else f.mean_bytes for f in fields.values())
        if n <= SMALL and n * row_bytes < SMALL_BYTES:
            self._shown.ahead = np.arange(n, dtype=np.int64), {}

    @property
    def unreadable(self) -> dict[tuple[int, Column], str]:
        """The values whose files cannot be read, by row and column, and why."""
        return self._shown.unreadable

    @property
    def pool(self) -> Pool | None:
        """Where the rows are pairs that stand for more of them."""
        return self.part_of if isinstance(self.part_of, Pool) else None

    @property
    def stage(self) -> FirstStage | None:
        """Where the rows are random ones of more."""
        return self.part_of if isinstance(self.part_of, FirstStage) else None

    @property
    def on_videos(self) -> list[VirtualColumn]:
        """The conditions that were answered by frames of videos."""
        return [answers.column for answers in self.answers.values() if answers.origin.moments is not None]

    def moments(self, columns: Sequence[VirtualColumn]) -> list[VirtualColumn]:
        """The moments of those of these columns that were answered by frames of videos."""
        return [replace(c, moment=True) for c in columns if self[c].origin.moments is not None]

    def __getitem__(self, column: VirtualColumn) -> ColumnAnswers:
        """The answers to a virtual column, none at first."""
        answers = self.answers.get(column.id)
        if answers is None:
            answers = self.answers[column.id] = ColumnAnswers.of(column, self.n)
        return answers

    @property
    def total(self) -> int:
        """The rows that its rows stand for."""
        if self.stage is not None:
            return self.stage.total
        return self.n if self.pool is None else self.pool.total

    def random_rows(self) -> Rids:
        """The rows of which each is one of all it stands for by chance: not those that were chosen as near pairs."""
        return np.arange(0 if self.pool is None else self.pool.near, self.n, dtype=np.int64)

    @property
    def derives(self) -> bool:
        """Is a condition on pairs answered from their rows?"""
        return any(answers.derived is not None for answers in self.answers.values())

    @property
    def doubtful(self) -> list[VirtualColumn]:
        """The texts of which some answers are not those that the model itself would give."""
        return [answers.column for answers in self.answers.values() if answers.doubtful]

    def labels(self, column: VirtualColumn) -> tuple[str, ...]:
        """The labels of a choice: those that were found, else those of the text."""
        own_labels = self[column].prompt.labels
        return column.labels if own_labels is None else own_labels

    def question(self, column: VirtualColumn) -> Question:
        """What is put to the model about one row for this virtual column."""
        answers = self[column]
        parameters = Parameters(
            column.type, self.labels(column), answers.prompt.descriptions, column.none_of_these, column.many
        )
        question = column.operator.question(column.asked_text, parameters)
        prompt = answers.prompt
        return (
            replace(question, examples=prompt.examples, meaning=prompt.meaning)
            if prompt.examples or prompt.meaning
            else question
        )

    def calls(self, stages: Sequence[Stage], rids: Rids | None = None) -> int:
        """Calls that asking these stages of these rows (None: all) still takes: rows of equal content are asked once, NULLs never."""
        total = 0
        for stage in stages:
            missing = np.zeros(self.n if rids is None else len(rids), dtype=bool)
            for column in stage.columns:
                derived = self[column].derived
                if derived is not None:
                    total += derived.calls(rids)
                    continue
                missing |= ~(self[column].asked_mask if rids is None else self[column].asked_mask[rids])
            count = int(missing.sum())
            if count and stage.input_columns:
                open_ = np.flatnonzero(missing) if rids is None else rids[missing]
                names = ", ".join(quote(c.label) for c in stage.input_columns)
                sides: dict[str, list[str]] = {}
                for c in stage.reads or stage.input_columns:
                    sides.setdefault(c.table, []).append(f"{quote(c.label)} IS NOT NULL")
                condition = " AND ".join(f"({' OR '.join(parts)})" for parts in sides.values())
                tables = {"__open": pa.table({"__rid": open_.astype(np.int64)})} if count < self.n else {}
                among = f"{quote(self.name)} AS r{' JOIN __open AS o ON o.__rid = r.rowid' if tables else ''}"
                sql = f"SELECT system.main.COUNT(*) FROM (SELECT DISTINCT {names} FROM {among} WHERE {condition})"
                count = int(self.duck.execute(sql, tables)[0][0])
            total += count
        return total

    def rows(self, rids: Rids, columns: Sequence[VirtualColumn]) -> list[Row]:
        """What the model is shown of each row.

        Rows without bytes are kept: other questions, and the evidence of a result, show them again.
        """
        reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
        holes = tuple(dict.fromkeys(c for column in columns for c in column.holes))
        kept = self._shown.rows.setdefault((reads, holes), {})
        if len(rids) > SMALL and not kept:  # more than are kept
            return self._read(rids, reads, holes)
        wanted = rids.tolist()
        missing = [rid for rid in dict.fromkeys(wanted) if rid not in kept]
        if not missing:
            return [kept[rid] for rid in wanted]
        new = dict(zip(missing, self._read(np.array(missing, dtype=np.int64), reads, holes), strict=True))
        if len(kept) + len(new) <= SMALL:
            has_bytes = any(isinstance(cell.value, bytes) for row in new.values() for cell in row.cells)
            kept.update({} if has_bytes else new)
        return [new[rid] if rid in new else kept[rid] for rid in wanted]

    def at_once(self, columns: Sequence[VirtualColumn], n: int, most: int = MOST_AT_ONCE) -> int:
        """How many rows are read at once: bounds what is in memory.

        Args:
            columns: of which the model is shown each row.
            n: rows that are wanted.
            most: of short texts.
        """
        reads = tuple(dict.fromkeys(c for column in columns for c in (*column.reads, *column.holes)))
        if n <= LEAST_AT_ONCE or any(self._may_be_file(c) for c in reads):
            return LEAST_AT_ONCE
        if reads not in self._shown.longest:
            bytes = " + ".join(f"coalesce(system.main.strlen({self._column_sql(c)}), 0)" for c in reads) or "0"
            self._shown.longest[reads] = int(
                self.duck.scalar(f"SELECT system.main.max({bytes}) FROM {quote(self.name)}")
            )
        return min(max(LEAST_AT_ONCE, BYTES_AT_ONCE // max(1, self._shown.longest[reads])), most)

    def in_parts(self, rids: Rids, columns: Sequence[VirtualColumn]) -> Callable[[int], Rids]:
        """What gives the next of these rows, as many as are wanted and may be read at once; none at the end.

        Rows in no order lie all over the table: it is scanned once for several parts of them.

        Args:
            columns: of which the model is shown each row.
        """
        most, ahead = (self.at_once(columns, len(rids), limit) for limit in (MOST_AT_ONCE, MOST_AHEAD))
        start = until = 0

        def part(wanted: int) -> Rids:
            nonlocal start, until
            begun, start = start, min(start + min(wanted, most), len(rids))
            if ahead > most and (start > until or begun == start):
                until = begun + ahead
                stretch = rids[begun:until]
                self._shown.ahead = (np.sort(stretch) if (np.diff(stretch) < 0).any() else NO_ROWS), {}
            return rids[begun:start]

        return part

    def _may_be_file(self, column: Column) -> bool:
        field = self.fields.get(column)
        return field is None or field.type == "BLOB" or field.modality not in (Modality.TEXT, Modality.STRUCTURED)

    def _read(self, rids: Rids, reads: Sequence[Column], holes: Sequence[Column]) -> list[Row]:
        table = self.stored(rids, tuple(self._column_sql(c) for c in (*reads, *holes)))
        lists = [table.column(i).to_pylist() for i in range(len(reads) + len(holes))]
        several = len({c.table for c in (*reads, *holes)}) > 1
        cells: list[list[Cell]] = []
        for c, values in zip(reads, lists, strict=False):
            field = self.fields.get(c)
            shown, missing = loaded(values, field, self.duck.media)
            there = [None if i in missing else value for i, value in enumerate(values)] if missing else values
            seconds = lasting(there, field, self.duck.media)
            cells.append(_cells(c, shown, c.table if several else "", seconds))
            self.unreadable.update({(int(rids[i]), c): why for i, why in missing.items()})
        of_rows = zip(*cells, strict=True) if cells else repeat((), len(rids))
        if holes:
            of_holes = (
                _hole_values(holes, values, alone=not reads) for values in zip(*lists[len(reads) :], strict=True)
            )
        rows = list(map(Row, of_rows, of_holes if holes else repeat(())))
        for i, rid in enumerate(rids.tolist() if self.unreadable else ()):
            if any((rid, c) in self.unreadable for c in reads):
                rows[i] = Row()  # not asked
        return rows

    def stored(self, rids: Rids, expressions: tuple[str, ...]) -> pa.Table:
        """As `fetch`, of expressions that fail for no row: from what is read ahead where it holds all of these rows."""
        ahead, tables = self._shown.ahead
        at = np.searchsorted(ahead, rids)
        if not len(ahead) or not np.array_equal(ahead[np.minimum(at, len(ahead) - 1)], rids):
            return self.fetch(rids, expressions)
        if expressions not in tables:
            tables[expressions] = self.fetch(ahead, expressions)
        return tables[expressions].take(at)

    def texts(self, reads: Sequence[Column]) -> list[str]:
        """What the model is shown of every row, as one text each: what features are made of."""
        table = self.stored(np.arange(self.n, dtype=np.int64), tuple(self._column_sql(c) for c in reads))
        lists = [table.column(i).to_pylist() for i in range(len(reads))]
        return ["\n".join(v for v in row if isinstance(v, str)) for row in zip(*lists, strict=True)]

    def matches(self, other: Relation, columns: Sequence[Column]) -> tuple[Indices, Indices]:
        """The pairs of a row of this and a row of another relation in which these columns hold the same."""
        same = " AND ".join(
            f"{self._column_sql(c, 'a.')} IS NOT DISTINCT FROM {other._column_sql(c, 'b.')}" for c in columns
        )
        pairs = self.duck.arrow(
            f"SELECT a.rowid AS x, b.rowid AS y FROM {quote(self.name)} AS a JOIN {quote(other.name)} AS b ON {same} ORDER BY ALL"
        )
        return pairs.column(0).to_numpy(), pairs.column(1).to_numpy()

    def each(self, sql: str) -> NDArray[Any]:
        """(n,) the values of a SQL expression over the columns, NaN or None for NULL."""
        table = self.duck.arrow(f"SELECT {sql} AS x FROM {quote(self.name)} ORDER BY rowid")
        values: NDArray[Any] = table.column(0).to_numpy(zero_copy_only=False)
        return values

    def _column_sql(self, column: Column, of: str = "") -> str:
        field = self.fields.get(column)
        if field is not None and field.type == "BLOB":
            return of + quote(column.label)
        return f"CAST({of}{quote(column.label)} AS VARCHAR)"

    def fetch(self, rids: Rids, expressions: Sequence[str]) -> pa.Table:
        """The values of SQL expressions over columns, for these rows in this order: one column each."""
        parts = [f"{e} AS e{i}" for i, e in enumerate(expressions)]
        if len(rids) == self.n and np.array_equal(rids, np.arange(self.n)):
            return self.in_order(parts, quote(self.name), {}, "rowid")
        rows = pa.table({"__rid": pa.array(rids), "__pos": pa.array(np.arange(len(rids), dtype=np.int64))})
        return self.in_order(parts, *self._beside("__answers", rows))

    def in_order(
        self, parts: Sequence[str], source: str, arrays: dict[str, pa.Table], place: str = "__pos"
    ) -> pa.Table:
        """The rows of a FROM clause in the order of their places.

        Arrow sorts them: DuckDB's optimizer takes time quadratic in the columns that ORDER BY carries.

        Args:
            parts: SQL of the columns wanted, each with its name.
            source: SQL of the FROM clause.
            arrays: the Arrow tables that it names.
            place: its column that is 0 … n − 1 in its n rows.
        """
        table = self.duck.output(f"SELECT {', '.join(parts)}, {place} FROM {source}", arrays)
        width = table.num_columns - 1
        places = table.column(width).to_numpy()
        table = table.select(range(width))
        return table if (np.diff(places) > 0).all() else table.take(np.argsort(places))

    def with_answers(self, rids: Rids, columns: Sequence[VirtualColumn], **extra: NDArray[Any]) -> pa.Table:
        """An Arrow table of __rid, __pos, the answers as text or number under their internal names, and extra arrays."""
        data: dict[str, Any] = {
            "__rid": pa.array(rids),
            "__pos": pa.array(np.arange(len(rids), dtype=np.int64)),
        }
        for column in columns:
            data[column.name] = to_arrow(self[column].values[rids])
            if column.attempt:
                why = self[column].origin.messages
                texts = [None] * len(rids) if why is None else list(why[rids])
                data[f"{column.name}_why"] = pa.array(texts, type=pa.string())
            moments = self[column].origin.moments
            if moments is not None:
                data[replace(column, moment=True).name] = pa.array(moments.seconds[rids], from_pandas=True)
        data.update({name: pa.array(values) for name, values in extra.items()})
        return pa.table(data)

    def joined(
        self, rids: Rids, columns: Sequence[VirtualColumn], **extra: NDArray[Any]
    ) -> tuple[str, dict[str, pa.Table]]:
        """A FROM clause with every column, answer (in its type) and extra array of these rows, and the Arrow table it needs."""
        answers = self.with_answers(rids, columns, **extra)
        as_is = ["__rid", "__pos", *(c.name for c in self.moments(columns)), *extra]
        cast = [typed_answer(column) for column in columns]
        return self._beside(f"(SELECT {', '.join([*as_is, *cast])} FROM __answers)", answers)

    def _beside(self, sql: str, answers: pa.Table) -> tuple[str, dict[str, pa.Table]]:
        """A FROM clause with `answers` as a and the rows of their __rid as r, and the Arrow tables it needs.

        A hash join leaves 3 kB in DuckDB's queue of blocks to evict, each time it runs, and takes twice as long for a table that is small,
        or of which most rows are wanted: there every row of the table has an answer or none beside it by its place, and those without are
        left out. Both sides are read whole: where one is filtered first, DuckDB 2.0 may join other rows.

        Args:
            sql: what is selected from __answers, as many rows in the same order.
            answers: __rid and any other columns.
        """
        rids, table = answers.column("__rid").to_numpy(), quote(self.name)
        joined = f"{sql} AS a JOIN {table} AS r ON r.rowid = a.__rid", {"__answers": answers}
        if self.n > max(SMALL, 2 * len(rids)):
            return joined
        by_place = answers
        if len(rids) < self.n or not (rids[1:] > rids[:-1]).all():  # not every row in order
            places: NDArray[Any] = np.full(self.n, -1, dtype=np.int32 if self.n < 2**31 else np.int64)
            places[rids] = np.arange(len(rids), dtype=places.dtype)
            missing = places < 0
            if self.n - int(missing.sum()) < len(rids):  # one is wanted twice
                return joined
            by_place = answers.take(pa.array(places, mask=missing))
        return f"{sql} AS a POSITIONAL JOIN {table} AS r SEMI JOIN (SELECT 1) ON r.rowid = a.__rid", {
            "__answers": by_place
        }

    def evaluate(self, exprs: Sequence[Expr], rids: Rids, columns: Sequence[VirtualColumn]) -> pa.Table:
        """The values of expressions for these rows in this order, by DuckDB, over columns and answers.

        Args:
            rids: (n,) the rows.
            columns: virtual columns that the expressions read.
        Returns: one column an expression, n rows.
        """
        parts = [f"{self.duck.expression(e)} AS e{i}" for i, e in enumerate(exprs)]
        joined, arrays = self.joined(rids, columns)
        return self.in_order(parts, joined, arrays)


def _cells(column: Column, values: Sequence[Any], table: str, seconds: Sequence[float]) -> list[Cell]:
    """The n values of a column as they are shown, which last so many seconds."""
    name = column.name
    return [
        Cell(name, value, table, media_type(value), s) if isinstance(value, bytes) else Cell(name, value, table)
        for value, s in zip(values, seconds, strict=True)
    ]


def _hole_values(holes: Sequence[Column], values: Sequence[Any], *, alone: bool) -> tuple[tuple[str, str], ...]:
    """The values of one row in holes, by name and label. Holes `alone`, all of a side NULL, are not asked."""
    there = {c.table for c, value in zip(holes, values, strict=True) if value is not None}
    if alone and there != {c.table for c in holes}:
        return ()
    texts = ["unknown" if value is None else str(value) for value in values]
    return tuple((name, text) for c, text in zip(holes, texts, strict=True) for name in (c.name, c.label))


def to_arrow(values: NDArray[np.object_]) -> pa.Array:
    """Booleans and numbers as such, all else as the text that DuckDB casts (JSON for lists and structs).

    >>> to_arrow(np.array([2**53 + 1, None], dtype=object)).to_pylist(), to_arrow(np.array([timedelta(days=2)])).to_pylist()
    ([9007199254740993, None], ['2 days 0 seconds 0 microseconds'])
    """
    types = set(map(type, values)) - {type(None)}
    if types <= {bool}:
        return pa.array(values, type=pa.bool_())
    if bool not in types and all(issubclass(t, int | float) for t in types):
        with suppress(pa.ArrowInvalid, OverflowError):  # an integer that neither int64 nor a float holds
            return pa.array(list(values))
    return pa.array([None if v is None else _cast_text(v) for v in values], type=pa.string())


def _cast_text(value: Any) -> str:
    """An answer as the text that DuckDB casts to its type."""
    if isinstance(value, bytes):
        return "".join(chr(b) if 32 <= b < 127 and b != ord("\\") else f"\\x{b:02X}" for b in value)
    if isinstance(value, timedelta):
        return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
    return json.dumps(value, default=_cast_text) if isinstance(value, list | dict) else str(value)


def typed_answer(column: VirtualColumn) -> str:
    """The answer in its DuckDB type; what does not fit is NULL. That of a TRY is a STRUCT of the answer and the error."""
    name = quote(column.name)
    if column.attempt:
        plain = typed_answer(replace(column, attempt=False)).rpartition(" AS ")[0]
        return f"system.main.struct_pack(value := {plain}, error := {quote(f'{column.name}_why')}) AS {name}"
    if column.many:
        return f"TRY_CAST(TRY_CAST({name} AS JSON) AS VARCHAR[]) AS {name}"
    if column.type.endswith("[]") or column.type.startswith(("STRUCT", "MAP")):
        return f"TRY_CAST(TRY_CAST({name} AS JSON) AS {column.type}) AS {name}"
    return f"TRY_CAST({name} AS {value_type(column)}) AS {name}"
