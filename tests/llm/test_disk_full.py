"""A full disk: at whatever write it ends, the statement ends in words, what was paid before is kept, and the next one works."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.llm.ledger import Ledger

resource = pytest.importorskip("resource", reason="Windows has no such limit")
SOFT, HARD = resource.getrlimit(resource.RLIMIT_FSIZE)
ROWS = "SELECT range AS id, 'text number ' || range AS text FROM range(60)"
QUERY = 'SELECT COUNT(*) FROM notes WHERE "it is so" WITH (budget = 40)'
FULL = {"UQL410", "UQL415", "UQL505", "UQL509", "UQL510"}


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes: a write ends as on a full disk.

    Python writes no bytecode meanwhile: it would keep the part of a file that went in, and no later process could import the module.
    """
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, HARD))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (SOFT, HARD))
        sys.dont_write_bytecode = before


def run(ledger: Path, model: HashModel, statement: str = QUERY) -> list[tuple[object, ...]] | uql.UQLError:
    try:
        with uql.connect(model=model, ledger=str(ledger), budget=40) as con:
            con.execute(f"CREATE TABLE notes AS {ROWS}")
            return con.uql(statement).fetchall()
    except uql.UQLError as error:
        return error


def pages(path: Path) -> int:
    """4 KB pages that a statement writes at the most into one file of the ledger."""
    with uql.connect(model=HashModel(), ledger=str(path), budget=40) as con:
        con.execute(f"CREATE TABLE notes AS {ROWS}")
        con.uql(QUERY).fetchall()
        return max(file.stat().st_size for file in path.parent.glob(f"{path.name}*")) // 4096 + 1


def ledger_full_at(folder: Path, every: int) -> int:
    """A statement while no file grows beyond n pages, for each `every`-th n until the statement fits. Returns how many were refused."""
    whole = folder / "whole.sqlite"
    free = run(whole, HashModel())
    assert not isinstance(free, uql.UQLError)
    refused = 0
    for page in range(0, pages(folder / "pages.sqlite"), every):
        for size in (page * 4096, page * 4096 + 100):  # between two writes, and within one
            ledger, model = folder / f"l{size}.sqlite", HashModel()
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
    return refused


@pytest.mark.thorough
def test_a_disk_that_is_full_at_some_writes_of_the_ledger_ends_the_statement_in_words(tmp_path: Path) -> None:
    assert ledger_full_at(tmp_path, 8) >= 2


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_write_of_the_ledger_ends_the_statement_in_words(tmp_path: Path) -> None:
    assert ledger_full_at(tmp_path, 1) >= 10


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


@contextmanager
def full_at(write: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The n-th file that Python opens for writing, n from 0, is on a full disk. Gives the names of those that were opened."""
    opened, plain = [], Path.open

    def open_(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if set(mode) & set("wax+"):
            opened.append(path.name)
            if len(opened) == write + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return plain(path, mode, *more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", open_)
        yield opened


@pytest.mark.thorough
def test_a_disk_that_is_full_at_any_write_of_features_ends_in_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT COUNT(*) FROM notes WHERE \"it is so\" WITH (budget = 20, method = 'asd', fresh = true)"
    writes = files = 0
    while writes <= files:  # the last round writes everything
        database = tmp_path / f"{writes}.duckdb"
        with uql.connect(database, model=HashModel(), ledger=":memory:") as con:
            con.execute(f"CREATE TABLE notes AS {ROWS}")
            with full_at(writes, monkeypatch) as opened:
                try:
                    con.uql(text).fetchall()
                except uql.UQLError as error:
                    assert error.code in FULL, str(error)
            assert con.uql(text).fetchall(), "the next one works"
        files, writes = len(opened), writes + 1
    assert writes >= 4, "features are written"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        ["init"],
        ["config", "trust", "--yes"],
        ["--model", "local", "-o", "out.csv", "-c", "SELECT range AS x, repeat('x', 1000) AS y FROM range(2000)"],
        ["--model", "local", "-o", "out.parquet", "-c", "SELECT range AS x FROM range(200000)"],
    ],
)
@pytest.mark.parametrize("size", [0, 10, 5_000])
def test_a_command_that_writes_a_file_on_a_full_disk_ends_in_words_and_keeps_the_file_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str], size: int
) -> None:
    from uql.cli import main

    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UQL_LEDGER", ":memory:")
    monkeypatch.chdir(tmp_path)
    if command[0] == "config":
        (tmp_path / "uql.toml").write_text(f"ledger = '{tmp_path / 'elsewhere' / 'other.sqlite'}'\n")
    for name in ("out.csv", "out.parquet"):
        (tmp_path / name).write_text("before")
    with full_after(size):
        code = main(command)
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and code in (0, 1, 2), shown.err
    assert code == 0 or "-o" not in command or (tmp_path / command[3]).read_text() == "before"
    assert main(command) == 0 or command == ["init"], capsys.readouterr().err
