"""A row that is read beside its answers is the row that was meant, however many rows of its table are wanted."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from hash_model import HashModel

import uql
from uql.base.schema import Field
from uql.compiler.physical import Stage
from uql.compiler.syntax import Column
from uql.kernels import asking
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import Duck
from uql.kernels.relation import SMALL, Relation

ID, TEXT = Column("t", "id"), Column("t", "text")


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2}) as con:
        yield con


def numbered(connection: duckdb.DuckDBPyConnection, n: int) -> Relation:
    duck = Duck(connection)
    name, n = duck.create(f'SELECT range AS "t.id", \'text \' || range AS "t.text" FROM range({n})')
    return Relation(duck, name, n, {ID: Field("id", "BIGINT"), TEXT: Field("text", "VARCHAR")})


def subsets(n: int, sizes: list[int], seed: int = 0) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(seed)
    for size in sizes:
        yield rng.choice(n, size, replace=False).astype(np.int64)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1, 64, 2_048, 2_049, 4_000, 9_000, SMALL])
def test_any_rows_of_a_small_table_are_read_as_they_are(connection: duckdb.DuckDBPyConnection, n: int) -> None:
    relation = numbered(connection, n)
    sizes = [min(n, 60 + size) for size in range(0, 240, 3)] + [n // 2 + 1, n]
    for rids in subsets(n, sizes):
        ids, texts = relation.fetch(rids, ['"t.id"', '"t.text"']).columns
        assert ids.to_pylist() == rids.tolist()
        assert texts.to_pylist() == [f"text {rid}" for rid in rids]


def test_a_small_table_is_read_once_and_a_large_one_by_its_rows(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    read = Duck.arrow
    monkeypatch.setattr(Duck, "arrow", lambda duck, sql, *tables: reads.append(sql) or read(duck, sql, *tables))
    for n, mean_bytes, scans in [(500, 10.0, 1), (500, 10_000.0, 40), (SMALL + 1, 10.0, 40)]:
        relation = numbered(connection, n)
        fields = {column: replace(field, mean_bytes=mean_bytes) for column, field in relation.fields.items()}
        relation = Relation(relation.duck, relation.name, n, fields)
        reads.clear()
        for rids in subsets(n, list(range(1, 41))):
            rids[0] = rids[-1]  # a row may be wanted twice
            assert relation.stored(rids, ('"t.text"',)).column(0).to_pylist() == [f"text {rid}" for rid in rids]
        assert len(reads) == scans


def test_most_rows_of_a_large_table_are_read_as_they_are(connection: duckdb.DuckDBPyConnection) -> None:
    relation = numbered(connection, 150_000)
    for rids in subsets(relation.n, [75_000, 75_001, 131_072, 149_999, 150_000]):
        assert relation.fetch(rids, ['"t.id"']).column(0).to_numpy().tolist() == rids.tolist()


def test_what_some_rows_of_a_large_table_take_does_not_grow_with_it(connection: duckdb.DuckDBPyConnection) -> None:
    relation = numbered(connection, 1_000_000)
    relation.fetch(np.arange(100), ['"t.id"'])
    tracemalloc.start()
    relation.fetch(np.arange(100), ['"t.id"'])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000  # bytes: a number for each row of the table would be 8,000,000


def test_answers_stand_beside_their_own_rows(connection: duckdb.DuckDBPyConnection) -> None:
    relation = numbered(connection, 4_000)
    for rids in subsets(relation.n, list(range(100, 180))):
        joined, arrays = relation.joined(rids, [], __number=rids)
        table = relation.in_order(['"t.id"', "__number", "__rid"], joined, arrays)
        assert [column.to_pylist() for column in table.columns] == [rids.tolist()] * 3


@pytest.mark.parametrize("every, most", [(1, 10), (2, 12)])
def test_few_bytes_a_row_place_answers_beside_a_table(
    connection: duckdb.DuckDBPyConnection, every: int, most: int
) -> None:
    relation = numbered(connection, 400_000)
    rids = np.arange(0, relation.n, every)
    relation.joined(rids[:100], [])
    tracemalloc.start()
    joined, arrays = relation.joined(rids, [])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most * relation.n  # 8 of them number the answers; before they were 25 and 17
    assert relation.in_order(['"t.id"'], joined, arrays).column(0).to_numpy().tolist() == rids.tolist()


def test_an_exact_count_keeps_little_of_its_rows_while_duckdb_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 400_000

    async def answered(stage: Stage, rids: Rids, relation: Relation, ctx: Context) -> None:
        for column in stage.columns:
            answers = relation[column]
            answers.values[rids[::2]], answers.values[rids[1::2]] = True, False
            answers.asked_mask[rids] = True

    monkeypatch.setattr(asking, "ask", answered)
    con = uql.connect(ledger=":memory:", model=HashModel())
    con.execute(f"CREATE TABLE t AS SELECT 'text ' || range AS text FROM range({n})")
    query = """SELECT COUNT(*) FROM t WHERE "it is so" WITH (budget = 'all')"""
    con.uql(query.replace('"it', "text = 'text 1' AND \"it")).fetchall()
    kept: list[int] = []
    joined = Relation.joined

    def noted(*given: Any, **extra: Any) -> Any:
        kept.append(tracemalloc.get_traced_memory()[0])
        return joined(*given, **extra)

    monkeypatch.setattr(Relation, "joined", noted)
    tracemalloc.start()
    assert con.uql(query).fetchall() == [(n // 2,)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 62 * n  # bytes; they were 72
    assert kept[0] < 30 * n  # bytes; with the sample that the rows were drawn in they were 56
