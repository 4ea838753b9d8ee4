"""A full disk: at whatever write it ends, the statement ends in words, what was paid before is kept, and the next one works."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hash_model import HashModel

import uql
from uql.llm.ledger import Ledger

resource = pytest.importorskip("resource", reason="Windows has no such limit")
SOFT, HARD = resource.getrlimit(resource.RLIMIT_FSIZE)
ROWS = "SELECT range AS id, 'text number ' || range AS text FROM range(60)"
QUERY = 'SELECT COUNT(*) FROM notes WHERE "it is so" WITH (budget = 40)'
FULL = {"UQL410", "UQL415", "UQL505", "UQL509"}


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes: a write ends as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, HARD))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SOFT, HARD))


def run(ledger: Path, model: HashModel, statement: str = QUERY) -> list[tuple[object, ...]] | uql.UQLError:
    try:
        with uql.connect(model=model, ledger=str(ledger), budget=40) as con:
            con.execute(f"CREATE TABLE notes AS {ROWS}")
            return con.uql(statement).fetchall()
    except uql.UQLError as error:
        return error


def test_a_disk_that_is_full_at_any_write_of_the_ledger_ends_the_statement_in_words(tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    free = run(whole, HashModel())
    assert not isinstance(free, uql.UQLError)
    refused = 0
    for size in (0, 40_960, 90_112):
        ledger, model = tmp_path / f"l{size}.sqlite", HashModel()
        with full_after(size):
            found = run(ledger, model)
        if isinstance(found, uql.UQLError):
            refused += 1
            assert found.code in FULL and str(ledger) in str(found), str(found)
        else:
            assert found == free
        kept = 0
        if ledger.exists() and ledger.stat().st_size:
            with Ledger(ledger) as held:
                kept = held.stats().answers
        paid = model.calls
        again = run(ledger, model)
        assert again == free, "the next one works"
        assert model.calls - paid <= 40 - kept, "what was kept is not paid for again"
    assert refused >= 2


@pytest.mark.parametrize(
    "statement",
    [
        'CREATE TABLE other AS SELECT *, "the kind" AS kind FROM notes LIMIT 5',
        'SELECT "the kind" AS kind FROM notes LIMIT 5 TO kinds',
        "COPY (SELECT \"the kind\" AS kind, repeat(text, 1000) AS r FROM notes LIMIT 5) TO '{folder}/out.csv'",
        "COPY (SELECT repeat(text, 10000) AS r FROM notes) TO '{folder}/out.parquet'",
    ],
)
def test_a_disk_that_is_full_where_a_statement_writes_is_an_error_in_words(tmp_path: Path, statement: str) -> None:
    with uql.connect(tmp_path / "rows.duckdb", model=HashModel(), ledger=":memory:", budget="all") as con:
        con.execute(f"CREATE TABLE notes AS {ROWS}")
        con.execute("CHECKPOINT")
        with full_after(1000):
            try:
                con.uql(statement.format(folder=tmp_path)).fetchall()
            except uql.UQLError as error:
                assert error.code in FULL and "Traceback" not in str(error)
        assert con.uql("SELECT count(*) FROM notes").fetchall() == [(60,)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_command_on_a_full_disk_ends_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from uql.cli import main

    with full_after(0):
        code = main(["--ledger", str(tmp_path / "l.sqlite"), "-c", "SELECT 1 AS x"])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and code in (0, 1, 2)
