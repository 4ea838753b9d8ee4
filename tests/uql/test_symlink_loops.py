"""Symbolic links that lead to themselves, wherever a path can stand: an error in words."""

from __future__ import annotations

from pathlib import Path

import pytest

import uql
from uql.cli import main


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A file and a folder that lead to themselves, and a folder that holds a link to itself."""
    for name in ("file", "l.sqlite", "rows.csv", "uql.toml", "model.gguf", "oracle.toml", "data.duckdb", "home"):
        (tmp_path / name).symlink_to(tmp_path / f"{name}.other")
        (tmp_path / f"{name}.other").symlink_to(tmp_path / name)
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "again").symlink_to(tmp_path / "nested")
    (tmp_path / "nested" / "a.txt").write_text("a text")
    return tmp_path


COMMANDS = {
    "database": ["data.duckdb", "-c", "SELECT 1"],
    "ledger": ["--ledger", "l.sqlite", "-c", "SELECT 1"],
    "table": ["-c", "SELECT * FROM 'rows.csv'"],
    "folder": ["-c", "SELECT count(*) FROM 'nested/**'"],
    "folder as a database": ["nested", "-c", "SELECT 1"],
    "model": ["--model", "local:model.gguf", "-c", "SELECT \"it is so\" FROM range(2)"],
    "oracle": ["--model", "oracle:oracle.toml", "-c", "SELECT \"it is so\" FROM range(2)"],
    "script": ["-f", "file"],
    "cache": ["cache", "stats", "--ledger", "l.sqlite"],
    "config": ["config", "show"],
    "copy": ["-c", "COPY (SELECT 1) TO 'rows.csv'"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_a_path_that_leads_to_itself(
    loop: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(loop)
    code = main(COMMANDS[name])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and code in (0, 1, 2, 3)
    assert code == 0 or "error" in shown.err


def test_the_home_of_uql_leads_to_itself(loop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_HOME", str(loop / "home"))
    monkeypatch.chdir(loop / "nested")
    with uql.connect() as con:
        assert con.uql("SELECT 1 AS x").fetchall() == [(1,)]
        with pytest.raises(uql.UQLError):
            con.uql("SELECT * FROM uql_runs()").fetchall()
