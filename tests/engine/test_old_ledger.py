"""A ledger that an earlier version wrote answers the same statements, at no call.

tests/golden/ledger holds the tables, 50 statements, their results, and the file: written once, by the version of November 2026.
Where there is no file, `--update-golden` writes it, from the version that runs: never to make this test pass.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hash_model import HashModel

import uql

GOLDEN = Path(__file__).parents[1] / "golden" / "ledger"
FILE = GOLDEN / "ledger.sqlite"
RESULTS = GOLDEN / "results.txt"


def lines(name: str) -> list[str]:
    return (GOLDEN / name).read_text(encoding="utf-8").splitlines()


STATEMENTS = lines("statements.sql")


def connect(ledger: Path) -> uql.Connection:
    con = uql.connect(model=HashModel(), ledger=str(ledger), budget="all")
    for statement in lines("data.sql"):
        con.sql(statement)
    return con


def write(folder: Path) -> None:
    """The statements on an empty ledger, whose write-ahead log is then part of the file."""
    path = folder / "ledger.sqlite"
    with connect(path) as con:
        found = [repr(con.uql(statement).fetchall()) for statement in STATEMENTS]
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("DELETE FROM calls")
        db.commit()
        db.execute("VACUUM")
    shutil.copyfile(path, FILE)
    RESULTS.write_text("\n".join(found) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[uql.Connection]:
    folder = tmp_path_factory.mktemp("ledger")
    if not FILE.exists() and request.config.getoption("--update-golden"):
        write(folder)
    shutil.copyfile(FILE, folder / "old.sqlite")
    with connect(folder / "old.sqlite") as con:
        yield con


@pytest.mark.one_in(4)
@pytest.mark.parametrize("n", range(len(STATEMENTS)))
def test_an_old_ledger_answers_a_statement_at_no_call(con: uql.Connection, n: int) -> None:
    result = con.uql(STATEMENTS[n])
    assert repr(result.fetchall()) == lines("results.txt")[n]
    assert result.cost.calls == 0
