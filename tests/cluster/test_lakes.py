"""What a lake may be: folders of Parquet, CSV and JSON files, a DuckDB database, a DuckLake. The rows are those of a folder of Parquet files."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from small_lake import opened, write

import uql
from uql.base.errors import DataError
from uql.cluster.lake import open_lake

ROWS = 1_200
KINDS = ("csv", "csv.gz", "jsonl", "duckdb", "ducklake")
QUERIES = (
    'SELECT COUNT(*) AS n, SUM(stars) AS s FROM reviews WHERE "the review is positive" AND stars > 1',
    'SELECT kind, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY kind ORDER BY kind',
    'SELECT id FROM reviews WHERE "the review is positive" ORDER BY id LIMIT 5',
)


def answers(con: uql.Connection) -> list[Any]:
    results = [con.uql(query) for query in QUERIES]
    return [(result.fetchall(), dict(result.estimates), result.cost.calls) for result in results]


def with_ducklake(duck: duckdb.DuckDBPyConnection, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the extension known to DuckDB as `INSTALL ducklake` does; skips where it cannot be had for this DuckDB."""
    spec = importlib.util.find_spec("duckdb_extension_ducklake")
    version = f"v{duckdb.__version__}"
    found = spec and [*Path(str(spec.origin)).parent.glob(f"extensions/{version}/*.duckdb_extension")]
    if not found:
        pytest.skip(f"the extension ducklake is not here for DuckDB {version}")
    platform = duck.execute("PRAGMA platform").fetchall()[0][0]
    folder = home / ".duckdb" / "extensions" / version / platform
    folder.mkdir(parents=True)
    shutil.copy(found[0], folder)
    monkeypatch.setenv("HOME", str(home))


def made(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str | Path:
    """The same table in each kind of lake."""
    parquet = write(folder / "parquet", ROWS)
    rows = f"FROM read_parquet('{parquet}/reviews/*.parquet')"
    duck = duckdb.connect()
    lake = folder / "lake"
    match kind:
        case "duckdb":
            lake = lake.with_suffix(".duckdb")
            duck.execute(f"ATTACH '{lake}' AS kept; CREATE TABLE kept.reviews AS {rows}; CREATE TABLE kept.t(i INT)")
            duck.execute("DETACH kept")
        case "ducklake":
            with_ducklake(duck, folder, monkeypatch)
            duck = duckdb.connect(config={"threads": 1})  # which writes rows in their order
            address = f"ducklake:{lake}.ducklake"
            duck.execute(f"ATTACH '{address}' AS kept (DATA_PATH '{lake}-data')")
            duck.execute(f"CREATE TABLE kept.reviews AS {rows} WHERE id < 200")
            for first in range(100, ROWS, 100):  # many files, the first of which are gone again
                duck.execute(f"INSERT INTO kept.reviews {rows} WHERE id >= {first} AND id < {first + 100}")
            duck.execute("DELETE FROM kept.reviews WHERE rowid >= 100 AND rowid < 200; DETACH kept")
            return address
        case _:
            (lake / "reviews").mkdir(parents=True)
            for i in range(3):
                some = f"COPY (SELECT * {rows} WHERE id // 400 = {i} ORDER BY id) TO"
                duck.execute(
                    f"{some} '{lake}/reviews/{i}.{kind}' ({'FORMAT json' if kind == 'jsonl' else 'FORMAT csv'})"
                )
    return lake


@pytest.mark.parametrize("kind", KINDS)
def test_any_lake_gives_the_answers_of_a_folder_of_parquet_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = made(kind, tmp_path, monkeypatch)
    with opened(tmp_path / "parquet", "process", 2) as con:
        wanted = answers(con)
    for shards in (1, 3):
        with opened(lake, "process", shards) as con:
            assert answers(con) == wanted
            assert [name for name in con.tables if name != "t"] == ["reviews"]
            assert con.uql("SELECT count(*), sum(id) FROM reviews").fetchall() == [(ROWS, ROWS * (ROWS - 1) // 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_shards_part_any_table_without_a_row_lost_or_twice(
    kind: str, shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duck = duckdb.connect(config={"threads": 1})  # as shards read
    lake = open_lake(made(kind, tmp_path, monkeypatch), duck)
    table = next(table for table in lake.tables if table.name == "reviews")
    found = [
        [i for (i,) in duck.execute(f"SELECT id FROM ({table.share(k, shards)})").fetchall()] for k in range(shards)
    ]
    assert sorted(i for part in found for i in part) == list(range(ROWS))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    whole = [i for (i,) in duck.execute(f"SELECT id FROM ({table.share(0, 1)})").fetchall()]
    assert [i for part in found for i in part] == whole


def test_each_shard_writes_its_rows_of_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = made("duckdb", tmp_path, monkeypatch)
    with opened(lake, "process", 3, budget=2_000) as con:
        con.uql(
            f"""COPY (SELECT id, "the review is positive" AS yes FROM reviews) TO '{tmp_path}/out' (FORMAT parquet)"""
        ).run()
    assert duckdb.sql(f"SELECT count(DISTINCT id), count(yes) FROM '{tmp_path}/out/*.parquet'").fetchall() == [
        (ROWS, ROWS)
    ]


def test_shards_see_the_snapshot_of_a_ducklake_that_was_opened_and_the_next_connection_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = made("ducklake", tmp_path, monkeypatch)
    duck = duckdb.connect()
    before = open_lake(address, duck)
    duck.close()
    duckdb.execute(f"ATTACH '{address}' AS w; INSERT INTO w.reviews FROM w.reviews LIMIT 100; DETACH w")
    with duckdb.connect() as duck:
        duck.execute(before.setup[0])
        assert duck.execute(f"SELECT count(*) FROM ({before.tables[0].whole})").fetchall() == [(ROWS,)]
    with opened(address, "process", 2) as con:
        assert con.uql("SELECT count(*) FROM reviews").fetchall() == [(ROWS + 100,)]


def test_a_database_that_was_changed_under_an_open_connection_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Path(made("duckdb", tmp_path, monkeypatch))
    with opened(lake, "process", 2) as con:
        answers(con)
        lake.touch()
        with pytest.raises(DataError, match="was changed since the connection was opened"):
            con.uql(QUERIES[0].replace("> 1", "> 2")).run()


def test_a_file_of_rows_is_a_lake_of_one_table(tmp_path: Path) -> None:
    lake = write(tmp_path / "lake", 90, files=1)
    with opened(lake / "reviews" / "part0.parquet", "process", 2) as con:
        assert con.tables == ["part0"]
        assert con.uql('SELECT count(*) FROM part0 WHERE "the review is positive"').fetchall()[0][0] > 0


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": "x\n1", "a.json": '{"x": 1}'}, "a.json and .*a.csv would both be the table a"),
        ({"t/a.csv": "x\n1", "t/b.json": '{"x": 1}'}, "the files of t have several formats"),
        ({"t/a.csv": "x,y\n1,2", "t/b.csv": "z\n1"}, "the files of t cannot be read: .*"),
        ({"notes.txt": "x", "_a.csv": "x\n1", "t/.b.csv": "x\n1"}, "holds no Parquet files, and no others"),
    ],
)
def test_files_that_are_no_table_are_an_error_in_words(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lake" / name).write_text(text)
    with pytest.raises(DataError, match=message):
        opened(tmp_path / "lake", "process", 2)


def test_a_database_that_cannot_be_opened_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "lake.duckdb").write_text("no database")
    with pytest.raises(DataError, match=r"lake.duckdb cannot be opened: "):
        opened(tmp_path / "lake.duckdb", "process", 2)
    with pytest.raises(DataError, match=r"there is no folder and no file .*missing.duckdb"):
        opened(tmp_path / "missing.duckdb", "process", 2)
    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    with pytest.raises(DataError, match=r"empty.duckdb has no tables in its schema main"):
        opened(tmp_path / "empty.duckdb", "process", 2)
