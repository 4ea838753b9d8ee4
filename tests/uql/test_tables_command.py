"""`uql tables`, and the statements of semantic tables on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uql.cli import main

MADE = (
    'CREATE SEMANTIC TABLE liked AS SELECT id, "the mood" AS mood FROM reviews WHERE "the review is positive" KEY (id)'
)


def test_statements_run_and_the_list_tells_of_them(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--model", "oracle:oracle.toml"]
    assert main(["shop.duckdb", *model, "--dry-run", "-c", MADE]) == 0
    assert capsys.readouterr().out.startswith("CREATE SEMANTIC TABLE liked\n  Project")
    assert main(["shop.duckdb", *model, "--csv", "-c", MADE]) == 0
    assert capsys.readouterr().out.splitlines() == ["table,rows,added,changed,removed,calls", "liked,3,3,0,0,9"]
    assert main(["shop.duckdb", *model, "--dry-run", "-c", "REFRESH liked"]) == 0
    assert "REFRESH liked  [0 rows new" in capsys.readouterr().out
    assert main(["shop.duckdb", *model, "--csv", "-c", "REFRESH liked"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "liked,3,0,0,0,0"
    assert main(["shop.duckdb", *model, "--read-only", "-c", "REFRESH liked"]) == 1
    assert "UQL511" in capsys.readouterr().err
    assert main(["tables", "shop.duckdb"]) == 0
    shown = capsys.readouterr().out
    assert (
        "liked" in shown
        and "KEY (id), refreshed" in shown
        and "9 calls to oracle" in shown
        and "reviews  6 rows" in shown
    )
    assert "uql_semantic_tables" not in shown
    assert main(["tables", "shop.duckdb", "--json"]) == 0
    told = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert told["liked"]["key"] == "id" and told["reviews"]["definition"] is None


def test_a_database_that_is_not_there_is_a_mistake_of_the_command_line(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "nothing.duckdb"]) == 2
    assert "nothing.duckdb" in capsys.readouterr().err
