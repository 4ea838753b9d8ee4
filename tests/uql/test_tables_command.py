"""`uql tables`, and the statements of semantic tables on the command line."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path

import pytest

import uql.command
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


def test_names_in_a_database_do_nothing_to_a_terminal(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = MADE.replace('"the mood"', "'\x1b]52;c;eA==\x07'")
    assert main(["shop.duckdb", "--model", "oracle:oracle.toml", "-c", made]) == 0
    capsys.readouterr()
    assert main(["tables", "shop.duckdb"]) == 0
    shown = capsys.readouterr().out
    assert "\\x1b]52" in shown and "\x1b" not in shown and "\x07" not in shown


def test_what_commands_tell_is_written_where_it_does_nothing_to_a_terminal() -> None:
    """`print` stands where a text is made for a program, or is the command's own; all else is said by `outcome.say` and `narrate`."""
    own = {
        "completion.py": 1,
        "init.py": 1,
        "models.py": 2,
        "ask.py": 1,
        "outcome.py": 2,
        "output.py": 1,
        "query.py": 1,
        "ui.py": 1,
    }
    found: Counter[str] = Counter()
    for path in Path(uql.command.__file__).parent.glob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        found[path.name] += sum(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls)
    assert +found == own
