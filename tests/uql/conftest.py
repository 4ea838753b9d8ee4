"""A small world for the tests of the outside: tables, files good and bad, an oracle, no settings of the user."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest

REVIEWS = [
    (1, "A joy from the first minute to the last, I would see it again.", 5, "pos"),
    (2, "Dull, and the plot has more holes than a sieve, a waste of time.", 1, "neg"),
    (3, "The actors are a delight and so is the music, warmly recommended.", 4, "pos"),
    (4, "I fell asleep twice and was sorry to have been woken up in between.", 2, "neg"),
    (5, "Funny, sad and clever, the best film that I have seen this year.", 5, "pos"),
    (6, "The ending makes no sense at all, whoever wrote it should be ashamed.", 1, "neg"),
]
ORACLE = """data = "reviews.parquet"
labels = "labels.parquet"
key = "id"

[answers]
"the review is positive" = "sentiment = 'pos'"
"the mood" = "sentiment"
"how good it is" = "stars"
"""


def make_world(folder: Path) -> None:
    """Fill a folder: reviews as table, CSV and Parquet with an oracle, and files that are wrong in one way each."""
    with duckdb.connect(str(folder / "shop.duckdb")) as con:
        con.execute("CREATE TABLE reviews (id INTEGER, text VARCHAR, stars INTEGER)")
        con.executemany("INSERT INTO reviews VALUES (?, ?, ?)", [row[:3] for row in REVIEWS])
        con.execute("CREATE TABLE labels (id INTEGER, sentiment VARCHAR, stars INTEGER)")
        con.executemany("INSERT INTO labels VALUES (?, ?, ?)", [(i, mood, stars) for i, _, stars, mood in REVIEWS])
        con.execute("CREATE TABLE nothing AS FROM reviews LIMIT 0")
        con.execute("CREATE TABLE blanks AS SELECT i AS id, NULL::VARCHAR AS text FROM range(5) t(i)")
        con.execute("CREATE TABLE numbers AS SELECT i AS id, i * 2 AS double FROM range(5) t(i)")
        con.execute(f"COPY reviews TO '{folder}/reviews.parquet'")
        con.execute(f"COPY labels TO '{folder}/labels.parquet'")
        con.execute(f"COPY reviews TO '{folder}/reviews.csv' (HEADER)")
    (folder / "oracle.toml").write_text(ORACLE, encoding="utf-8")
    forgetful = ORACLE.replace("sentiment = 'pos'", "CASE WHEN id < 3 THEN sentiment = 'pos' END")
    (folder / "forgetful.toml").write_text(forgetful, encoding="utf-8")
    (folder / "broken_oracle.toml").write_text("data = ", encoding="utf-8")
    (folder / "lost_oracle.toml").write_text(ORACLE.replace("reviews.parquet", "gone.parquet"), encoding="utf-8")
    (folder / "query.uql").write_text(
        'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"', encoding="utf-8"
    )
    (folder / "latin1.uql").write_bytes("SELECT 'é'".encode("latin-1"))
    (folder / "latin1.csv").write_bytes(b"id,text\n1,caf\xe9 \xff\xfe\n2,ok\n")
    (folder / "empty.uql").write_text("  \n", encoding="utf-8")
    (folder / "corrupt.duckdb").write_bytes(bytes(range(256)) * 64)
    (folder / "text.duckdb").write_text("this is not a database", encoding="utf-8")
    (folder / "huge.csv").write_text("id,text\n1," + "very " * 200_000 + "\n", encoding="utf-8")
    (folder / "model.gguf").write_bytes(b"this is not a model")
    (folder / "folder").mkdir()


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


@pytest.fixture
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings, keys, models or home of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("UQL_") or name.endswith("_API_KEY") or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))


@pytest.fixture
def world(shared_world: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the world as the current folder; tests that write use `own_world`."""
    monkeypatch.chdir(shared_world)
    return shared_world


@pytest.fixture
def own_world(shared_world: Path, tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world of the test's own, to write in."""
    folder = tmp_path / "world"
    shutil.copytree(shared_world, folder, ignore=shutil.ignore_patterns("*.wal", "ledger*"))
    monkeypatch.chdir(folder)
    return folder
