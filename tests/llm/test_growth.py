"""A statement that is repeated leaves next to nothing in memory, of this library's or of DuckDB's."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hash_model import HashModel

import uql
from uql.base.schema import Field
from uql.compiler.syntax import Column
from uql.kernels.duck import Duck
from uql.kernels.relation import SMALL, Relation

REPEATS = 40


class _Info(ctypes.Structure):
    """What mallinfo2 of glibc gives."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    ]


def _measure() -> Callable[[], _Info] | None:
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallinfo2"):
        return None
    libc.mallinfo2.restype = _Info
    return libc.mallinfo2  # type: ignore[no-any-return]


INFO = _measure()
counted = pytest.mark.skipif(INFO is None, reason="asks glibc how much memory is in use")


def left_by(work: Callable[[], object]) -> float:
    """The kB that each of many repeats leaves in use: not pages that are kept for later, which RSS counts too."""
    assert INFO is not None
    for _ in range(REPEATS // 2):
        work()
    gc.collect()
    gc.freeze()  # what other tests have left need not be looked through each time
    before = INFO().uordblks
    for _ in range(REPEATS):
        work()
    gc.collect()
    return float(INFO().uordblks - before) / 1024 / REPEATS


@pytest.mark.thorough
@counted
def test_a_repeated_statement_leaves_little(tmp_path: Path) -> None:
    with uql.connect(model=HashModel({"it is so": 0.4}), ledger=str(tmp_path / "l.sqlite")) as con:
        con.execute("CREATE TABLE notes AS SELECT range AS id, 'text number ' || range AS text FROM range(50)")
        left = left_by(lambda: con.uql('SELECT count(*) FROM notes WHERE "it is so"').fetchall())
    assert left < 12, f"{left:.1f} kB a statement"  # 17.7 with hash joins, 6.4 without


def relation(duck: Duck, rows: int) -> Relation:
    name, n = duck.create(f'SELECT range AS "t.id", \'text \' || range AS "t.text" FROM range({rows})')
    return Relation(
        duck, name, n, {Column("t", "id"): Field("id", "BIGINT"), Column("t", "text"): Field("text", "VARCHAR")}
    )


@counted
def test_rows_that_are_looked_up_leave_nothing() -> None:
    with duckdb.connect() as con:
        rows = relation(Duck(con), 50)
        most = np.arange(49, dtype=np.int64)
        left = [left_by(lambda: rows.fetch(most, ['"t.text"'])) for _ in range(4)]
        assert min(left) < 2  # 0.8, at times 3.5; by a hash join always 3.5


@pytest.mark.parametrize("rows", [50, 3 * SMALL])
@pytest.mark.parametrize("wanted", ["some", "all", "twice", "none", "backwards"])
def test_rows_are_fetched_in_the_order_wanted(rows: int, wanted: str) -> None:
    rids = {
        "some": np.array([7, 3, rows - 1]),
        "all": np.arange(rows),
        "twice": np.array([4, 2, 4]),
        "none": np.array([], dtype=np.int64),
        "backwards": np.arange(rows)[::-1],
    }[wanted].astype(np.int64)
    with duckdb.connect() as con:
        found = relation(Duck(con), rows).fetch(rids, ['"t.id"', '"t.text"'])
    assert found.equals(pa.table({"e0": rids, "e1": [f"text {i}" for i in rids.tolist()]}, schema=found.schema))


def test_a_repeated_statement_adds_next_to_nothing_to_the_ledger(tmp_path: Path) -> None:
    """Rows that the ledger answers are counted together: a line for each of them would be more than their answers take."""
    path = tmp_path / "l.sqlite"
    with uql.connect(model=HashModel(), ledger=str(path), budget="all") as con:
        con.execute("CREATE TABLE reviews AS SELECT range AS id, 'review number ' || range AS body FROM range(600)")

        def run(fresh: bool) -> tuple[int, int]:
            with con.settings(fresh=fresh):
                result = con.uql('SELECT id FROM reviews WHERE "it is good"').run()
            return result.cost.calls, result.cost.cached

        assert run(False) == (600, 0)
        lines = [con.uql("SELECT COUNT(*) FROM uql_calls()").fetchone()[0] for _ in range(4) if run(True) == (0, 600)]
        assert len(lines) == 4 and lines[3] - lines[0] <= 3 * 8
        told = con.uql("SELECT kind, SUM(rows) FROM uql_calls() GROUP BY kind ORDER BY kind").fetchall()
        assert told == [("cached", 4 * 600), ("call", 600)]
        assert [run for (run,) in con.uql("SELECT cached FROM uql_runs() ORDER BY started").fetchall()] == [
            0,
            *[600] * 4,
        ]
