"""`uql run`: a script with variables, checked whole, one result a statement, exit codes for CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import uql
from uql.base.errors import BindError
from uql.cli import main

ORACLE = ["--model", "oracle:oracle.toml", "--ledger", ":memory:"]
SCRIPT = """-- every day
CREATE TEMP TABLE late AS SELECT id, text, stars, DATE '2026-01-01' + id AS day FROM reviews;
SET uql.confidence = 0.9;
SELECT id FROM late WHERE day >= $day AND stars > $least AND "the review is positive" ORDER BY id;
SELECT COUNT(*) AS n FROM late WHERE "the review is positive" WITH (budget = 2);
"""
VARIABLES = ["--var", "day=2026-01-04", "--var", "least=3"]


@pytest.fixture
def script(own_world: Path) -> Path:
    path = own_world / "daily.uql"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def test_each_statement_gets_the_variables_that_it_names(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(script), "shop.duckdb", *VARIABLES, *ORACLE]) == 0
    out, err = capsys.readouterr()
    assert out.count("┌") == 3, "of CREATE its count, of SET nothing, of each query its rows"
    assert [line.strip("│ ") for line in out.split("│ integer │")[1].splitlines()[2:4]] == ["3", "5"]
    assert "interval at 90 %" in err


def test_json_is_one_document_of_all_results(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(script), "shop.duckdb", *VARIABLES, *ORACLE, "--json"]) == 0
    _, setting, rows, count = json.loads(capsys.readouterr().out)
    assert setting["rows"] == []
    assert rows["rows"] == [{"id": 3}, {"id": 5}]
    assert rows["exact"] and rows["calls"] == 2
    (estimate,) = count["estimates"]["n"]
    assert not count["exact"] and not estimate["exact"] and estimate["confidence"] == 0.9
    assert count["rows"][0]["n_low"] == estimate["low"] <= 3 <= estimate["high"] == count["rows"][0]["n_high"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--var", "day=2026-01-04"], 1, "no value for the parameter $least"),
        ([*VARIABLES, "--var", "leats=3"], 1, "did you mean least?"),
        (["--var", "day"], 2, "as --var day=2026-01-01"),
        ([*VARIABLES, "--read-only"], 1, "UQL511"),
        ([*VARIABLES, "--model", "http://127.0.0.1:9/v1#m"], 3, "127.0.0.1:9"),
    ],
)
def test_exit_codes_say_what_is_wrong(
    words: list[str], code: int, says: str, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(script), "shop.duckdb", *ORACLE, *words]) == code
    assert says in capsys.readouterr().err


def test_nothing_runs_where_the_last_statement_is_wrong(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = 'CREATE TABLE made AS SELECT id, "the mood" AS mood FROM reviews;\nSELECT moood FROM made'
    (own_world / "wrong.uql").write_text(wrong, encoding="utf-8")
    for words in (["run", "wrong.uql", "shop.duckdb"], ["shop.duckdb", "-f", "wrong.uql"]):
        assert main([*words, *ORACLE]) == 1
        said = capsys.readouterr().err
        assert "line 2, column 8" in said and "did you mean mood?" in said and "calls" not in said
    assert main(["shop.duckdb", "-c", "FROM made"]) == 1


def test_a_script_that_fails_midway_is_valid_json_up_to_there(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_world / "fails.uql").write_text("SELECT 1 AS a; SELECT error('stop') AS b; SELECT 2 AS c", encoding="utf-8")
    assert main(["run", "fails.uql", "--json"]) == 1
    out, err = capsys.readouterr()
    assert [found["rows"] for found in json.loads(out)] == [[{"a": 1}]]
    assert "stop" in err


def test_a_script_of_python_shares_its_parameters_between_its_statements() -> None:
    con = uql.connect()
    text = "CREATE TABLE t AS SELECT i AS x FROM range($n) r(i); SELECT sum(x) * $k AS s FROM t"
    assert con.uql(text, n=4, k=10).fetchall() == [(60,)]
    assert [make().fetchall() for make in uql.connect().script(text, n=4, k=10)][-1] == [(60,)]
    with pytest.raises(BindError, match=r"no parameter \$z"):
        uql.connect().uql(text, n=4, k=10, z=1)


def test_a_dry_run_prices_each_statement(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'SELECT id FROM reviews WHERE stars > $least; SELECT id FROM reviews WHERE "the review is positive"'
    (own_world / "two.uql").write_text(text, encoding="utf-8")
    assert main(["run", "two.uql", "shop.duckdb", "--var", "least=3", "--dry-run", *ORACLE]) == 0
    assert "Calls: 6" in capsys.readouterr().out


def test_a_dry_run_knows_the_tables_that_earlier_statements_would_make(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "CREATE TABLE x AS SELECT 1 AS a; INSERT INTO x SELECT 2"
    assert main(["shop.duckdb", "-c", text, "--dry-run", *ORACLE]) == 0
    assert capsys.readouterr().out.count("0 new calls") == 2
    text = """CREATE TABLE x AS SELECT 1 AS a, 'so' AS b; SELECT a FROM x WHERE "it is so" TO y; SELECT a FROM y; SELECT 2 AS c"""
    assert main(["shop.duckdb", "-c", text, "--dry-run", *ORACLE]) == 0
    said = capsys.readouterr().out
    assert said.count("planned when the statements before it have run: no table") == 2
    assert said.count("0 new calls") == 2
    assert main(["shop.duckdb", "-c", f"{text}; SELECT aa FROM y", "--dry-run", *ORACLE]) != 0
    assert "no column aa" in capsys.readouterr().err
    assert main(["shop.duckdb", "-c", "SELECT 1 AS a", "--var", "b=2", "--dry-run", *ORACLE]) != 0
    assert "no parameter $b" in capsys.readouterr().err


def test_a_dry_run_changes_nothing_in_the_database(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statements = (
        'DELETE FROM reviews WHERE "the review is positive"',
        'UPDATE reviews SET stars = 9 WHERE "stars" < 9',
        'ALTER TABLE reviews ADD COLUMN "a b" INTEGER',
        'CREATE TABLE "c d" (i INTEGER)',
        'EXPLAIN ANALYZE CREATE TABLE e AS SELECT id FROM reviews WHERE "the review is positive"',
        'EXPLAIN ANALYZE INSERT INTO reviews SELECT * FROM reviews WHERE "the review is positive"',
        "EXPLAIN ANALYZE INSERT INTO reviews SELECT * FROM reviews",
    )
    rows = ["shop.duckdb", "-c", "FROM reviews ORDER BY ALL; SHOW TABLES", "--csv"]
    assert main(rows) == 0
    before = capsys.readouterr().out
    assert main(["shop.duckdb", "-c", "; ".join(statements), "--dry-run", *ORACLE]) == 0
    said = capsys.readouterr().out
    assert "SemFilter" in said and said.count("DuckDB") >= 4
    assert main(rows) == 0
    assert capsys.readouterr().out == before
    assert main(["shop.duckdb", "-c", "SELECT 1;\n DELETE FROM reviews WHERE \"it is\" AND foo = 3", "--dry-run", *ORACLE]) != 0  # fmt: skip
    assert "line 2, column 40" in capsys.readouterr().err
