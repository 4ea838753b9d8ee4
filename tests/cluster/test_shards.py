"""Any number of shards draws the same rows: by one process without Ray, by the engine without a cluster, by actors of Ray."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hash_model import HashModel
from small_lake import ROWS, opened, write

import uql
from uql.base.errors import BudgetError, ConfigError, DataError
from uql.cluster.cluster import open_cluster
from uql.cluster.lake import LakeTable, open_lake, tables_of
from uql.cluster.messages import MESSAGE, unpack
from uql.cluster.selection import Below, Near
from uql.cluster.shard import Shard
from uql.sampling.row_hash import bound_for, lowest, row_hashes, rows_below
from uql.sampling.two_stage import first_rows

QUERIES = (
    'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"',
    'SELECT COUNT(*) AS n, SUM(price) AS s FROM reviews WHERE "the review is positive" AND stars > 1',
    'SELECT kind, COUNT(*) AS n, AVG(price) AS p FROM reviews WHERE "the review is positive" GROUP BY kind ORDER BY kind',
    'SELECT COUNT(*) AS n, SUM(stars) AS s, COUNT(*) FILTER (WHERE "the review is positive") AS yes FROM reviews',
    'SELECT kind, COUNT(*) AS n, COUNT(*) FILTER (WHERE "the review is positive") AS yes FROM reviews GROUP BY 1 ORDER BY 1',
    'SELECT "the topic" AS topic, COUNT(*) AS n FROM reviews GROUP BY 1 ORDER BY 1',
)


def answers(con: uql.Connection, queries: tuple[str, ...] = QUERIES) -> list[Any]:
    """Rows and intervals of the queries."""
    found = []
    for query in queries:
        result = con.uql(query)
        found.append((result.fetchall(), dict(result.estimates)))
        assert result.cost.calls <= 128 and not result.exact
    return found


# ------------------------------------------------------------------------------------------------------------ rows
def test_the_hash_of_a_row_is_splitmix64() -> None:
    def by_hand(row: int) -> int:
        z = (row + 1) * 0x9E3779B97F4A7C15 % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    rows = np.array([0, 1, 2, 10**9, 2**40], dtype=np.int64)
    assert row_hashes(rows).tolist() == [by_hand(int(row)) for row in rows]


def test_parts_of_a_table_find_the_rows_of_the_whole() -> None:
    bound = bound_for(500, 10_000)
    parts = [rows_below(start, start + 2_500, bound) for start in range(0, 10_000, 2_500)]
    found = np.concatenate(parts)
    assert 500 <= len(found) < 1_000
    assert found[lowest(found, 500)].tolist() == first_rows(10_000, 500).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("second", ["i + 0.4", "i::TINYINT", "i::VARCHAR"])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_shards_read_each_file_with_the_types_of_the_first(tmp_path: Path, second: str, shards: int) -> None:
    duck = duckdb.connect()
    (tmp_path / "reviews").mkdir()
    rows = "'Review ' || i AS body FROM range"
    duck.execute(f"COPY (SELECT i AS id, {rows}(60) t(i)) TO '{tmp_path}/reviews/a.parquet'")
    duck.execute(
        f"COPY (SELECT {rows}(60, 120) t(i)) TO '{tmp_path}/b.parquet'".replace("'Rev", f"{second} AS id, 'Rev")
    )
    (tmp_path / "b.parquet").rename(tmp_path / "reviews" / "b.parquet")
    query = 'SELECT id FROM reviews WHERE id % 10 = 7 AND ("the review is positive" OR true) ORDER BY id'
    with opened(tmp_path, "process", shards) as con:
        assert con.uql(query).fetchall() == [(i,) for i in range(7, 120, 10)]


def test_a_file_in_which_a_column_has_another_name_is_an_error_that_names_both(tmp_path: Path) -> None:
    write(tmp_path / "lake", 90)
    duckdb.execute(f"COPY (SELECT 1 AS id, 'x' AS text) TO '{tmp_path}/lake/reviews/part9.parquet'")
    with pytest.raises(DataError, match=r"part9.parquet has no column kind, which .*part0.parquet has") as raised:
        opened(tmp_path / "lake", "process", 2)
    assert raised.value.code == "UQL503" and "union_by_name" in str(raised.value.help)


@pytest.mark.parametrize("rows", [30, 7])
def test_a_file_that_was_changed_under_an_open_connection_is_an_error_and_not_another_answer(
    tmp_path: Path, rows: int
) -> None:
    lake = write(tmp_path / "lake", 90)
    query = 'SELECT kind, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY kind ORDER BY kind'
    other = f"SELECT * REPLACE (body || '!' AS body) FROM read_parquet('{lake}/reviews/part1.parquet') LIMIT {rows}"
    settings = {"ledger": str(tmp_path / "l.sqlite"), "budget": 20}
    with opened(lake, "process", 2, **settings) as con:
        con.uql(query).fetchall()
        duckdb.execute(f"COPY ({other}) TO '{tmp_path}/new.parquet'")
        (tmp_path / "new.parquet").replace(lake / "reviews" / "part1.parquet")
        for again in (query, query.replace("kind", "stars")):
            with pytest.raises(DataError, match=r"part1.parquet was changed since the connection was opened") as raised:
                con.uql(again).run()
            assert raised.value.code == "UQL503" and "anew" in str(raised.value.help)
        assert con.uql("SELECT count(*) FROM films").fetchall() == [(50,)]
    with opened(lake, "process", 2, **settings) as con:
        assert con.uql(query).fetchall() and con.uql(query).cost.calls == 0


def test_a_file_that_is_no_parquet_is_an_error_that_says_what_to_do_with_it(tmp_path: Path) -> None:
    (write(tmp_path / "lake", 90) / "reviews" / "part9.parquet").write_text("id,kind")
    with pytest.raises(DataError, match=r"reviews cannot be read: .*part9.parquet") as raised:
        opened(tmp_path / "lake", "process", 2)
    assert raised.value.code == "UQL503" and "out of the folder" in str(raised.value.help)


@pytest.mark.parametrize("rows", [(4, 4), (1, 0, 7, 3), (10,), (0, 2), (5, 5, 5, 5, 5)])
def test_shards_part_a_table_without_a_row_lost_or_twice(tmp_path: Path, rows: tuple[int, ...]) -> None:
    duck, first = duckdb.connect(), 0
    (tmp_path / "t").mkdir()
    for i, n in enumerate(rows):
        duck.execute(
            f"COPY (SELECT i FROM range({first}, {first + n}) t(i)) TO '{tmp_path}/t/{i}.parquet' (ROW_GROUP_SIZE 2048)"
        )
        first += n
    (table,) = tables_of(tmp_path, duck)
    assert table.rows == rows
    for shards in (1, 2, 3, 7):
        found = [[i for (i,) in duck.execute(table.share(k, shards)).fetchall()] for k in range(shards)]
        assert [i for part in found for i in part] == list(range(first))
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_a_table_is_known_by_its_content_wherever_it_lies(lake: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(lake, tmp_path / "copy")
    before, after = ({t.name: t.content for t in tables_of(folder, duckdb.connect())} for folder in (lake, copy))
    assert before == after
    (copy / "reviews" / "part0.parquet").unlink()
    changed = {t.name: t.content for t in tables_of(copy, duckdb.connect())}
    assert changed["reviews"] != before["reviews"] and changed["films"] == before["films"]


# --------------------------------------------------------------------------------------------------------- answers
@pytest.mark.parametrize(
    ("seed", "queries", "shards"),
    [(1, QUERIES[::2], (3,)), *(pytest.param(seed, QUERIES, (1, 2, 4), marks=pytest.mark.slow) for seed in (2, 3, 4))],
)
def test_any_number_of_shards_gives_the_answers_of_the_engine_alone(
    lake: Path, seed: int, queries: tuple[str, ...], shards: tuple[int, ...]
) -> None:
    with opened(lake, None, seed=seed) as con:
        alone = answers(con, queries)
    for n in shards:
        with opened(lake, "process", n, seed=seed) as con:
            assert answers(con, queries) == alone, n


@pytest.mark.slow
def test_intervals_hold_the_truth_over_seeds(lake: Path) -> None:
    model = HashModel({"the review is positive": 0.3})
    with uql.connect(lake, cluster="process", model=model, ledger=":memory:", method="uniform", budget=128) as con:
        exact = opened(lake, None).uql(f"{QUERIES[0]} WITH (budget = 'all')").fetchall()[0][0]
        held = 0
        for seed in range(30):
            estimate = con.uql(f"{QUERIES[0]} WITH (seed = {seed})").estimates["n"]
            held += estimate.low <= exact <= estimate.high
    assert held >= 25


@pytest.mark.thorough
@pytest.mark.parametrize("among", ["SELECT id FROM films WHERE id < 4", "SELECT stars FROM reviews WHERE kind = 1"])
def test_rows_that_a_plain_sub_query_chooses_are_drawn_as_without_a_cluster(lake: Path, among: str) -> None:
    query = f'SELECT COUNT(*) AS n, SUM(id) AS s FROM reviews WHERE stars IN ({among}) AND id < 800 AND "the review is positive"'
    with opened(lake, None) as con:
        con.execute(f"CREATE VIEW films AS FROM read_parquet('{lake}/films.parquet')")
        alone = answers(con, (query,))
    for n in (1, 3):
        with opened(lake, "process", n) as con:
            assert answers(con, (query,)) == alone, n


def test_few_rows_are_asked_as_without_a_cluster(lake: Path) -> None:
    queries = (
        'SELECT id FROM reviews WHERE "the review is positive" AND id < 90',
        'SELECT id FROM reviews WHERE "the review is positive" AND id < 90 ORDER BY price DESC, id LIMIT 3',
        'SELECT COUNT(*) FROM reviews WHERE "the review is positive" AND id IN (SELECT id FROM films)',
        'SELECT title, "the genre" FROM films WHERE id > 40 ORDER BY id',
    )
    with opened(lake, None) as con:
        con.execute(f"CREATE VIEW films AS FROM read_parquet('{lake}/films.parquet')")
        alone = [con.uql(query).fetchall() for query in queries]
    with opened(lake, "process", 3) as con:
        assert [con.uql(query).fetchall() for query in queries] == alone
        assert con.uql("SELECT COUNT(*), SUM(stars) FROM reviews").fetchall() == [
            (ROWS, sum(1 + i % 5 for i in range(ROWS)))
        ]


def test_a_table_of_the_session_goes_before_the_lakes_of_its_name(lake: Path) -> None:
    query = 'SELECT COUNT(*) FROM films WHERE "it is good"'
    with opened(lake, "process", 2) as con:
        for made in ("TEMP TABLE films", "OR REPLACE VIEW films"):
            con.execute(f"CREATE {made} AS SELECT 'Film ' || i AS title FROM range(7) t(i)")
            result = con.uql(query)
            assert result.exact and result.cost.calls + result.cost.cached == 7
            con.execute("DROP TABLE IF EXISTS temp.films")


def test_the_same_statement_again_costs_nothing(lake: Path) -> None:
    with opened(lake, "process", 2) as con:
        first, again = con.uql(QUERIES[0]), con.uql(QUERIES[0])
        assert first.cost.calls > 100
        assert again.fetchall() == first.fetchall() and again.cost.calls == 0


# ---------------------------------------------------------------------------------------------------------- search
def test_limit_after_an_order_gives_the_rows_of_the_engine_alone(lake: Path) -> None:
    queries = (
        'SELECT id FROM reviews WHERE "the review is positive" ORDER BY price DESC, id LIMIT 12',
        'SELECT id, "the topic" FROM reviews ORDER BY stars DESC, id LIMIT 4 OFFSET 2',
        'SELECT id, "the topic" FROM reviews LIMIT 4',
    )
    with opened(lake, None) as con:
        alone = [con.uql(query).fetchall() for query in queries]
    for shards in (1, 3):
        with opened(lake, "process", shards) as con:
            found = [con.uql(query) for query in queries]
            assert [result.fetchall() for result in found] == alone
            assert all(result.exact for result in found)


def test_a_search_finds_rare_rows_by_their_meaning_with_any_number_of_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uql.engine.sharded.NEAREST", 64)
    (tmp_path / "lake").mkdir()
    duckdb.execute(
        "COPY (SELECT i AS id, i % 2 AS kind, CASE WHEN i % 331 = 0 THEN 'a dog barks and a puppy plays, number ' || i "
        f"ELSE 'quarterly tax report about bond yields, page ' || i END AS body FROM range({ROWS}) t(i)) "
        f"TO '{tmp_path}/lake/notes.parquet'"
    )
    dogs = {i for i in range(ROWS) if i % 331 == 0}
    query = 'SELECT id FROM notes WHERE "it is about dogs" AND kind = 0 LIMIT 4'

    def reads(question: Any, row: Any) -> Any:
        return "dog" in row.cells[0].value

    found = []
    for shards in (1, 3):
        model = HashModel(answers=reads)
        with opened(tmp_path / "lake", "process", shards, model=model, budget=40, examples=False) as con:
            result = con.uql(query)
            found.append(result.fetchall())
            assert {i for (i,) in found[-1]} <= dogs and len(found[-1]) == 4 and result.cost.calls < 20
            lacking = con.uql(query.replace("LIMIT 4", "LIMIT 30"))
            assert not lacking.exact and len(lacking.fetchall()) == len({i for i in dogs if i % 2 == 0})
    assert found[0] == found[1]
    assert list((tmp_path / "lake.uql-features" / "shards").glob("*.npy"))


def test_of_equally_near_rows_the_first_are_sent(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    duckdb.execute(
        "COPY (SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'a dog barks' ELSE 'a tax report' END AS body "
        f"FROM range(3000) t(i)) TO '{tmp_path}/lake/notes.parquet'"
    )
    for shards in (1, 3):
        cluster = open_cluster(tmp_path / "lake", "process", shards, duckdb.connect())
        sql = 'SELECT id, __uql_place AS place FROM share."notes" WHERE id > 9'
        rows = cluster.near(sql, Near("notes", "place", "body", "dogs", 40))
        assert rows.column("id").to_pylist() == list(range(10, 90, 2))
        assert rows.column_names == ["id", "place", "__row"]


# --------------------------------------------------------------------------------------------------------- traffic
def test_messages_are_small_and_their_sum_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    sent = []
    for rows in (4_000, 16_000):
        with opened(write(tmp_path / str(rows), rows), "process", 2, method="uniform") as con:
            con.uql(QUERIES[0]).run()
            traffic = con.session.cluster.traffic
            assert traffic.largest <= MESSAGE
            sent.append(traffic.bytes)
    assert sent[1] < 1.5 * sent[0]


def test_long_texts_are_sent_in_many_messages(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    duckdb.execute(
        "COPY (SELECT i AS id, repeat(md5(i::VARCHAR), 1 + (i % 50)::INT) || sha256(i::VARCHAR) AS body, "
        "CASE WHEN i = 7 THEN (SELECT string_agg(md5(j::VARCHAR), '') FROM range(4000) s(j)) END AS long FROM range(900) t(i)) "
        f"TO '{tmp_path}/lake/t.parquet'"
    )
    lake = open_lake(tmp_path / "lake", duckdb.connect())
    shard, start, sizes, left = Shard(lake, 0, 1), 0, [], 1
    import pyarrow as pa

    rows = []
    while left:
        answer = shard.rows("SELECT * FROM share.t", 0, 900, Below(2**64 - 1), start)
        sizes.append(len(answer[0]))
        part, left = unpack(answer)
        rows.append(part)
        start += rows[-1].num_rows
    assert pa.concat_tables(rows).column("__row").to_pylist() == list(range(900))
    assert len(sizes) > 3
    assert sum(size > MESSAGE for size in sizes) <= 1  # the one row that is larger than a message


# ---------------------------------------------------------------------------------------------------------- errors
def test_what_a_cluster_does_not_do_is_said_before_a_call(lake: Path) -> None:
    with opened(lake, "process", 2) as con:
        wanted = {
            'SELECT id FROM reviews WHERE "the review is positive"': (DataError, "UQL527"),
            'SELECT id FROM reviews WHERE "the review is positive" ORDER BY "how good" LIMIT 3': (DataError, "UQL527"),
            'SELECT COUNT(*) FROM reviews AS a JOIN reviews AS b USING (id) WHERE "{a.body} is like {b.body}"': (
                DataError,
                "UQL527",
            ),
            f"{QUERIES[0]} WITH (budget = 'all')": (BudgetError, "UQL401"),
        }
        for query, (kind, code) in wanted.items():
            with pytest.raises(kind) as raised:
                con.uql(query).run()
            assert raised.value.code == code and raised.value.help
        con.execute("CREATE TEMP TABLE mine AS SELECT 1 AS id")
        with pytest.raises(DataError, match="shards cannot read") as raised:
            con.uql(f"{QUERIES[0]} AND id IN (SELECT id FROM mine)").run()
        assert raised.value.code == "UQL503"
        assert con.uql("SELECT * FROM uql_calls()").fetchall() == []


def test_a_folder_without_tables_and_shards_without_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Parquet files") as raised:
        uql.connect(tmp_path, cluster="process")
    assert raised.value.code == "UQL501"
    with pytest.raises(ConfigError, match="shards are of a cluster"):
        uql.connect(shards=2)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(DataError, match="broken") as raised:
        uql.connect(tmp_path, cluster="process")
    assert raised.value.code == "UQL503"


def test_a_share_of_no_rows_reads_none() -> None:
    assert LakeTable("t", ("a.parquet",), (1,), 0).share(0, 2).endswith("LIMIT 0 OFFSET 0")


# ------------------------------------------------------------------------------------------------------------- Ray
def test_actors_give_the_answers_of_one_process(lake: Path, nodes: Any) -> None:
    with opened(lake, "process", method="uniform") as con:
        alone = answers(con, QUERIES[:2])
    with opened(lake, nodes.address, method="uniform") as con:
        assert con.session.cluster.shards == 2
        assert answers(con, QUERIES[:2]) == alone


@pytest.mark.slow
def test_a_node_that_is_lost_costs_time_alone(lake: Path, nodes: Any) -> None:
    with opened(lake, "process", method="uniform") as con:
        alone = answers(con, QUERIES[:3])
    with opened(lake, nodes.address, shards=2, method="uniform") as con:
        assert answers(con, QUERIES[:1]) == alone[:1]
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        assert answers(con, QUERIES[1:3]) == alone[1:]


# ---------------------------------------------------------------------------------------------------------- a lost driver
DRIVER = """
import asyncio, os, sys
import uql, uql.api.connection
sys.path.append(sys.argv[1])
from hash_model import HashModel
import uql.sampling.two_stage as two_stage
two_stage.LEAST, two_stage.A_CALL = 600, 2

class Slow(HashModel):
    async def answer(self, request):
        await asyncio.sleep(0.05)
        reply = await super().answer(request)
        os.write(1, b".")
        return reply

con = uql.connect(sys.argv[2], cluster="process", shards=2, model=Slow({"the review is positive": 0.3}), ledger=sys.argv[3],
                  seed=1, budget=64, method="uniform", concurrency=4)
con.uql(sys.argv[4]).fetchall()
"""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 20, 45])
def test_a_driver_that_is_killed_is_gone_on_with(lake: Path, tmp_path: Path, after: int) -> None:
    settings: dict[str, Any] = {"budget": 64, "method": "uniform", "concurrency": 4}
    with opened(lake, "process", **settings) as con:
        unbroken = con.uql(QUERIES[1]).fetchall()
    ledger, tests = str(tmp_path / "ledger.sqlite"), str(Path(__file__).parents[1])
    command = [sys.executable, "-c", DRIVER, tests, str(lake), ledger, QUERIES[1]]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert driver.stdout is not None and len(driver.stdout.read(after)) == after
    driver.kill()
    billed = after + len(driver.stdout.read())
    driver.wait()
    assert billed < 64
    with opened(lake, "process", 3, ledger=ledger, **settings) as con:
        (token,) = (row[0] for row in con.uql("SELECT run FROM uql_runs()").fetchall())
        result = con.resume(token)
        assert result.fetchall() == unbroken
        assert billed + result.cost.calls <= 64 + 4  # those in flight when it was killed were not kept


def test_a_shard_reads_ahead_for_one_thread_however_many_cores_there_are(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    with opened(lake, "process") as con:
        assert con.session.cluster is not None
        assert con.session.cluster.count("SELECT 1 WHERE current_setting('threads') > 1") == 0


def test_a_shard_says_what_it_uses_where_the_system_has_no_count_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = object.__new__(Shard)
    assert shard.usage()[1] > 10_000_000
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)
    seconds, memory = shard.usage()
    assert seconds > 0 and memory == 0
