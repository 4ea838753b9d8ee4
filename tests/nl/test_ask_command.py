"""`uql ask`: what it prints where, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from nl.shop import database

from uql.cli import main

REPLY = """[[reply]]
task = "planner"
again = true
json = '{"cannot": "%s", "nodes": [%s]}'
"""
COUNT = '{"kind": "uql", "name": "n", "sql": "SELECT city, count(*) AS shops FROM shops GROUP BY city ORDER BY city"}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UQL_LEDGER", ":memory:")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("shop.duckdb") as con:
        con.register("given", database().sql("FROM shops").to_arrow_table())
        con.execute("CREATE TABLE shops AS FROM given")
    (tmp_path / "plan.toml").write_text(REPLY % ("", COUNT))
    (tmp_path / "cannot.toml").write_text(REPLY % ("there are no prices", ""))
    return tmp_path


def ask(*words: str, script: str = "plan.toml") -> int:
    return main(["ask", *words, "--model", f"scripted:{script}", "--no-progress"])


def test_the_answer_goes_to_stdout_and_the_rest_to_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("shop.duckdb", "How many shops are in each city?", "--uql") == 0
    said = capsys.readouterr()
    assert "Leeds" in said.out and "SELECT city, count(*) AS shops FROM shops" in said.out and "TO n;" in said.out
    assert "1 call," in said.err and "call" not in said.out


def test_a_few_rows_are_printed_once_as_rows_and_values_of_one_column_as_words(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("shop.duckdb", "How many shops are in each city?") == 0
    said = capsys.readouterr().out
    assert said.count("Leeds") == 1 and "│ Leeds" in said and said.startswith("┌")
    names = {"kind": "uql", "name": "n", "sql": "SELECT name FROM shops ORDER BY name"}
    (folder / "names.toml").write_text(REPLY % ("", json.dumps(names)))
    assert ask("shop.duckdb", "Which shops are there?", script="names.toml") == 0
    assert capsys.readouterr().out == "Ada, Bo, Cy\n"


def test_a_figure_is_printed_with_its_cell_and_the_rows_behind_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = {"kind": "uql", "name": "n", "sql": "SELECT count(*) AS shops FROM shops"}
    (folder / "one.toml").write_text(REPLY % ("", json.dumps(one)))
    assert ask("shop.duckdb", "How many shops are there?", "--why", script="one.toml") == 0
    said = capsys.readouterr().out
    assert "shops of row 1 of n" in said and "city Leeds" in said and "name" in said


def test_json_holds_answer_plan_steps_and_cost(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("shop.duckdb", "How many shops are in each city?", "--json") == 0
    held = json.loads(capsys.readouterr().out)
    assert held["value"] == [{"city": "Leeds", "shops": 2}, {"city": "York", "shops": 1}]
    assert [s["state"] for s in held["steps"]] == ["done", "done", "done"] and held["cost"]["calls"] == 1


def test_a_folder_holds_the_tables_and_the_uql(folder: Path) -> None:
    assert ask("shop.duckdb", "How many shops are in each city?", "-o", "out") == 0
    assert (folder / "out" / "n.csv").read_text() == "city,shops\nLeeds,2\nYork,1\n"
    assert (folder / "out" / "answer.uql").read_text().startswith("SELECT city")


def test_a_plan_is_printed_with_its_price_and_not_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("shop.duckdb", "How many shops are in each city?", "--plan") == 0
    said = capsys.readouterr()
    assert "n: uql\n" in said.out and "price: about 0 calls" in said.out


def test_a_file_is_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.csv").write_text("city\nOslo\n")
    assert ask("--table", "shops=s.csv", "How many shops are in each city?") == 0
    assert "Oslo" in capsys.readouterr().out


def test_a_question_that_cannot_be_answered_ends_with_1_and_its_reason(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("shop.duckdb", "What does a kettle cost?", script="cannot.toml") == 1
    said = capsys.readouterr()
    assert said.out == "" and "there are no prices" in said.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.duckdb", "How many?"], "there is no database missing.duckdb"),
        (["a", "b", "c"], "put the question in quotes"),
        (["shop.duckdb", "How many?", "--mode", "fast"], "mode = 'fast' is not possible"),
        (["How many?", "--table", "shops"], "is not NAME=FILE"),
        (["shop.duckdb", "How many?", "-o", "plan.toml"], "is not a folder"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert ask(*words) == 2
    assert message in capsys.readouterr().err


def test_a_file_and_a_folder_stand_beside_a_database(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "people.csv").write_text("name,age\nKim,30\n")
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("I complain about the delivery.")
    sql = "SELECT people.age, count(*) AS n FROM people CROSS JOIN notes CROSS JOIN shops GROUP BY people.age"
    (folder / "both.toml").write_text(REPLY % ("", json.dumps({"kind": "uql", "name": "n", "sql": sql})))
    tables = ("--table", "people=people.csv", "--table", "notes=notes")
    assert ask("shop.duckdb", "How old is Kim?", *tables, script="both.toml") == 0
    assert "age 30, n 3" in capsys.readouterr().out


def test_a_database_without_a_question_is_a_fault_of_usage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("shop.duckdb") == 2
    assert "there is no question about shop.duckdb" in capsys.readouterr().err


def test_a_question_only_reads_so_that_another_reader_of_the_file_does_not_matter(folder: Path) -> None:
    with duckdb.connect("shop.duckdb", read_only=True):
        assert ask("shop.duckdb", "How many shops are in each city?") == 0


def test_a_log_has_a_line_a_step(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "shop.duckdb", "How many shops are in each city?", "--model", "scripted:plan.toml"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["plan: done, 1 step", "n: done, 2 rows"]


def test_a_limit_ends_with_what_was_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kinds = {"kind": "uql", "name": "kinds", "sql": "SELECT ask('the kind of shop') AS kind FROM shops"}
    both = {"cannot": "", "nodes": [json.loads(COUNT), kinds]}
    (folder / "both.toml").write_text(
        f'[[reply]]\ntask = "planner"\nagain = true\njson = {json.dumps(json.dumps(both))}\n'
    )
    assert ask("shop.duckdb", "How many, and of which kind?", "--budget", "1", script="both.toml") == 4
    said = capsys.readouterr()
    assert "found before the limit: n: city Leeds, shops 2; city York, shops 1" in said.out
    assert "this cannot be answered" in said.err
