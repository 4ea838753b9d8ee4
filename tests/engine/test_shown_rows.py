"""What the model is shown of a row is read from DuckDB once a run, and is the same each time."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

from uql.base.schema import Field
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels.duck import Duck
from uql.kernels.relation import BYTES_AT_ONCE, LEAST_AT_ONCE, MOST_AT_ONCE, SMALL, Relation
from uql.operators.condition import CONDITION

TEXT, SCAN = Column("t", "text"), Column("t", "scan")
READS_TEXT = [VirtualColumn(0, "it is so", CONDITION, "BOOLEAN", (TEXT,))]
READS_BOTH = [VirtualColumn(1, "it is so", CONDITION, "BOOLEAN", (TEXT, SCAN))]


@pytest.fixture
def relation() -> Iterator[Relation]:
    with duckdb.connect() as con:
        duck = Duck(con)
        name, n = duck.create(
            f"SELECT 'text ' || range AS \"t.text\", encode('scan ' || range) AS \"t.scan\" FROM range({SMALL + 100})"
        )
        yield Relation(duck, name, n, {TEXT: Field("text", "VARCHAR"), SCAN: Field("scan", "BLOB")})


@pytest.fixture
def read(relation: Relation, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The ids that are read from DuckDB, of each reading."""
    read: list[list[int]] = []
    fetch = relation.fetch
    monkeypatch.setattr(relation, "fetch", lambda rids, parts: read.append(rids.tolist()) or fetch(rids, parts))
    return read


def shown(relation: Relation, rids: list[int], columns: list[VirtualColumn]) -> list[list[object]]:
    return [[cell.value for cell in row.cells] for row in relation.rows(np.array(rids, dtype=np.int64), columns)]


def test_only_rows_that_were_not_shown_before_are_read(relation: Relation, read: list[list[int]]) -> None:
    assert shown(relation, [7, 3, 7], READS_TEXT) == [["text 7"], ["text 3"], ["text 7"]]
    assert shown(relation, [3, 5, 7], READS_TEXT) == [["text 3"], ["text 5"], ["text 7"]]
    assert shown(relation, [5, 3], READS_TEXT) == [["text 5"], ["text 3"]]
    assert shown(relation, [], READS_TEXT) == []
    assert read == [[7, 3], [5]]


def test_other_columns_of_a_row_are_read_by_themselves(relation: Relation, read: list[list[int]]) -> None:
    assert shown(relation, [4], READS_TEXT) == [["text 4"]]
    assert shown(relation, [4], READS_BOTH) == [["text 4", b"scan 4"]]
    assert read == [[4], [4]]


def test_rows_with_bytes_are_not_kept(relation: Relation, read: list[list[int]]) -> None:
    assert shown(relation, [4], READS_BOTH) == shown(relation, [4], READS_BOTH)
    assert read == [[4], [4]]


def test_no_more_rows_are_kept_than_are_read_whole(relation: Relation, read: list[list[int]]) -> None:
    every = list(range(SMALL + 100))
    assert shown(relation, every, READS_TEXT) == shown(relation, every, READS_TEXT)
    assert [len(rids) for rids in read] == [SMALL + 100] * 2


def test_more_rows_of_short_texts_than_of_long_ones_or_of_files_are_read_at_once() -> None:
    with duckdb.connect() as con:
        duck = Duck(con)

        def at_once(text: str, columns: list[VirtualColumn], wanted: int = 200_000) -> int:
            name, n = duck.create(f'SELECT {text} AS "t.text", encode(\'scan\') AS "t.scan" FROM range(200_000)')
            fields = {TEXT: Field("text", "VARCHAR"), SCAN: Field("scan", "BLOB")}
            return Relation(duck, name, n, fields).at_once(columns, wanted)

        assert at_once("'text ' || range", READS_TEXT) == at_once("NULL::VARCHAR", READS_TEXT) == MOST_AT_ONCE
        assert at_once("'text ' || range", READS_TEXT, wanted=4_000) == LEAST_AT_ONCE
        one_long = "CASE range WHEN 7 THEN repeat('ä', {}) ELSE 'text' END"
        assert at_once(one_long.format(2_000), READS_TEXT) == BYTES_AT_ONCE // 4_000
        assert at_once(one_long.format(60_000), READS_TEXT) == LEAST_AT_ONCE
        assert at_once("'text ' || range", READS_BOTH) == LEAST_AT_ONCE


@pytest.mark.parametrize("in_order", [False, True])
def test_rows_in_no_order_are_read_by_one_scan_of_the_table_for_many_parts(in_order: bool) -> None:
    n, scanned = 100_000, list[int]()
    with duckdb.connect() as con:
        duck = Duck(con)
        name, _ = duck.create(f"SELECT 'text ' || range AS \"t.text\" FROM range({n})")
        relation = Relation(duck, name, n, {TEXT: Field("text", "VARCHAR")})
        fetch = relation.fetch
        relation.fetch = lambda rids, parts: scanned.append(len(rids)) or fetch(rids, parts)
        rids = np.arange(n) if in_order else np.random.default_rng(0).permutation(n)
        part = relation.in_parts(rids, READS_TEXT)
        read = list[np.ndarray]()
        while len(rows := part(20_000 if read else 30)):
            wanted = rows[rows % 3 > 0] if len(read) == 2 else rows  # the others were asked before
            assert shown(relation, wanted.tolist(), READS_TEXT) == [[f"text {rid}"] for rid in wanted]
            read.append(rows)
        assert np.array_equal(np.concatenate(read), rids) and max(map(len, read)) == 20_000
        assert scanned == [n] if not in_order else len(scanned) == len(read) == 6
        assert shown(relation, rids[:SMALL].tolist(), READS_TEXT) and len(scanned) == (
            7 if in_order else 2
        )  # nothing is kept
