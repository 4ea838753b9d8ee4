"""SQLite ledgers that somebody else has made: what their schema would run does not run, and what they hold breaks nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from uql.base.errors import ConfigError
from uql.llm.ledger import Ledger

DRAWS = "run TEXT NOT NULL, step TEXT NOT NULL, n INTEGER NOT NULL, indices BLOB NOT NULL, PRIMARY KEY (run, step, n)"
ENDLESS = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) AS digest FROM r"
FOREIGN = {
    "the trigger t": f"CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT ({ENDLESS}); END",
    "the trigger on_view": "CREATE TRIGGER on_view INSTEAD OF INSERT ON answers BEGIN DELETE FROM runs; END",
    "the view questions": f"DROP TABLE questions; CREATE VIEW questions AS {ENDLESS}",
    "the view calls": f"DROP VIEW calls; CREATE VIEW calls AS {ENDLESS}",
    "the view answers": "DROP VIEW answers; CREATE VIEW answers AS WITH answer_rows AS (SELECT 1) SELECT key, answer, model, source, "
    "at, run, calls FROM answer_rows a JOIN subjects s ON s.id = a.subject",
    "the table draws": f"DROP TABLE draws; CREATE TABLE draws ({DRAWS}, CHECK (length(hex(zeroblob(900000000))) > 1))",
    "the table claims": "DROP TABLE claims; CREATE TABLE claims (key BLOB PRIMARY KEY, lease TEXT AS (hex(zeroblob(900000000))))",
    "the table grown": "DROP TABLE grown; CREATE TABLE grown (run TEXT PRIMARY KEY, calls INTEGER DEFAULT (random()))",
    "the table rates": "DROP TABLE rates; CREATE VIRTUAL TABLE rates USING fts5(key)",
    "the index by_hex": "CREATE INDEX by_hex ON runs (hex(zeroblob(900000000)))",
    "the index some": "CREATE INDEX some ON runs (run) WHERE like('%%%%a', statement)",
}


def changed(path: Path, script: str) -> Path:
    """A ledger after a script of SQL."""
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    return path


@pytest.mark.parametrize("said", FOREIGN)
def test_a_ledger_whose_schema_would_run_something_is_refused(said: str, tmp_path: Path) -> None:
    path = changed(tmp_path / "l.sqlite", FOREIGN[said])
    with pytest.raises(ConfigError, match=f"{said} is not of UQL") as caught:
        Ledger(path)
    assert caught.value.code == "UQL410"


def test_other_tables_of_the_file_and_indexes_of_columns_are_the_users_own(tmp_path: Path) -> None:
    own = "CREATE TABLE mine (a CHECK (a > 0)); CREATE INDEX by_status ON runs (status); CREATE VIEW seen AS SELECT abs(a) FROM mine"
    with Ledger(changed(tmp_path / "l.sqlite", own)) as ledger:
        assert ledger.runs() == []


@pytest.mark.parametrize("secret", ["randomblob(65)", "'a text'", "zeroblob(1000000)"])
def test_a_secret_that_makes_no_keys_is_an_error_in_words(secret: str, tmp_path: Path) -> None:
    path = changed(tmp_path / "l.sqlite", f"UPDATE meta SET value = {secret} WHERE name = 'secret'")
    with pytest.raises(ConfigError) as caught:
        Ledger(path)
    assert caught.value.code == "UQL410"
