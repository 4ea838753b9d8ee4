"""`r.stream()`: the estimates while a statement runs. Rows are fetched piece by piece."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import DataError

ROWS = 3000
COUNT = 'SELECT COUNT(*) AS n FROM notes WHERE "it is good" WITH (budget = 400)'
MEAN = 'SELECT AVG("the price"::DOUBLE) AS price, COUNT(*) AS n FROM notes WHERE "it is good" WITH (budget = 600)'


@pytest.fixture
def con() -> uql.Connection:
    con = uql.connect(model=HashModel(), ledger=":memory:", progress=False)
    con.execute(f"CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range({ROWS}) t(i)")
    return con


@pytest.mark.parametrize("query", [COUNT, MEAN], ids=["count", "mean"])
def test_each_estimate_comes_with_its_interval_while_the_statement_runs(con, query):
    result = con.uql(query)
    moments = list(result.stream())
    names = set(result.columns)
    live = [moment for moment in moments[:-1] if moment.estimates]
    assert len(live) >= 2
    for moment in live:
        assert set(moment.estimates) <= names, "under the names of the columns"
        assert all(e.low <= e.value <= e.high and not e.exact for e in moment.estimates.values())
    assert [m.done for m in moments] == [False] * (len(moments) - 1) + [True]
    assert all(before.calls <= after.calls for before, after in pairwise(moments))
    assert moments[-1].calls == result.cost.calls > 0
    assert moments[-1].estimates == result.estimates
    first, last = live[1].estimates["n"], moments[-1].estimates["n"]
    assert last.high - last.low < first.high - first.low


def test_watching_changes_no_number(con):
    watched = con.uql(MEAN)
    list(watched.stream())
    other = uql.connect(model=HashModel(), ledger=":memory:", progress=False)
    other.execute(f"CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range({ROWS}) t(i)")
    assert other.uql(MEAN).estimates == watched.estimates


def test_in_asyncio_the_loop_goes_on(con):
    async def work():
        return [moment.done async for moment in con.uql(COUNT).stream()]

    done = asyncio.run(work())
    assert done[-1] and not any(done[:-1]) and len(done) > 1


def test_what_the_statement_raises_is_raised(con):
    with pytest.raises(DataError, match="onvert"):
        list(con.uql("""SELECT CAST('x' || body AS INTEGER), "its mood" FROM notes LIMIT 5""").stream())


@pytest.mark.parametrize("how", ["break", "close"])
def test_leaving_the_loop_ends_the_statement_and_keeps_what_was_paid(con, how):
    result = con.uql(COUNT)
    moments = iter(result.stream())
    for moment in moments:
        if moment.estimates:
            break
    if how == "close":
        moments.close()
    del moments  # where a loop is left, nothing holds its iterator
    paid = result.cost.calls
    assert 0 < paid < 390
    assert result.partial
    assert con.uql(COUNT).cost.calls <= 400 - paid


def test_leaving_a_loop_of_asyncio_ends_the_statement(con):
    result = con.uql(COUNT)

    async def work():
        moments = aiter(result.stream())
        async for _ in moments:
            break
        await moments.aclose()

    asyncio.run(work())
    assert result.partial and result.cost.calls < 390


def test_a_statement_that_waits_for_another_sends_nothing_once_its_loop_is_left(con):
    first, second = con.uql(COUNT), con.uql(MEAN)
    waiting, moments = second.stream(), iter(first.stream())
    next(moments)
    later = iter(waiting)
    asked = threading.Thread(target=lambda: next(later))
    asked.start()
    list(moments)
    asked.join(30)
    later.close()
    assert not first.partial and first.cost.calls >= 390
    assert second.partial


def test_plain_sql_has_its_last_moment_alone(con):
    (moment,) = con.uql("SELECT count(*) FROM notes").stream()
    assert moment.done and moment.calls == 0 and moment.estimates["count(*)"].exact


def test_rows_are_made_python_objects_of_where_they_are_fetched(con, monkeypatch):
    from uql.api import result as module

    made = []
    whole = module.python_values
    monkeypatch.setattr(module, "python_values", lambda c, kind: made.append(len(c)) or whole(c, kind))
    con.execute("SET threads = 2")
    rows = con.uql("SELECT range AS i FROM range(1_000_000)")
    assert rows.fetchone() == (0,)
    assert rows.fetchmany(3) == [(1,), (2,), (3,)]
    assert rows[999_999] == (999_999,) and rows[-1] == (999_999,)
    assert sum(made) < 5_000
    with pytest.raises(IndexError):
        rows[1_000_000]


def test_a_reader_gives_batches_that_duckdb_reads(con):
    rows = con.uql(COUNT)
    assert rows.to_arrow_reader().schema.names == ["n", "n_low", "n_high"]
    assert rows.to_arrow_reader(intervals=False).schema.names == ["n"]
    reader = con.uql("SELECT id FROM notes ORDER BY id").to_arrow_reader(1000)
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [1000, 1000, 1000]
    reader = con.uql("SELECT id FROM notes").to_arrow_reader(1000)
    assert duckdb.sql("SELECT count(*), sum(id) FROM reader").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]


def test_a_second_thread_that_looks_at_the_rows_waits_for_the_stream(con):
    result = con.uql(COUNT)
    moments = iter(result.stream())
    next(moments)
    seen = []
    other = threading.Thread(target=lambda: seen.append(result.cost.calls))
    other.start()
    list(moments)
    other.join(30)
    assert seen == [result.cost.calls] and seen[0] >= 390
