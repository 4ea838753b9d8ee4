"""The command line: rows on stdout, words on stderr, an exit code that says how it ended."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import uql
from uql.cli import main
from uql.shell.app import Shell

ORACLE = ["--model", "oracle:oracle.toml", "--ledger", ":memory:"]
POSITIVE = 'SELECT id, stars FROM reviews WHERE "the review is positive" ORDER BY id'


def test_a_plain_query_is_shown_as_a_table(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shop.duckdb", "-c", "SELECT COUNT(*) AS n FROM reviews"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1].strip("│ ") == "n"
    assert "│      6 │" in out or "│     6 │" in out
    assert err == ""


def test_a_semantic_query_gives_rows_on_stdout_and_the_cost_on_stderr(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop.duckdb", "-c", POSITIVE, "--csv", *ORACLE]) == 0
    out, err = capsys.readouterr()
    assert out == "id,stars\n1,5\n3,4\n5,5\n"
    assert "6 calls" in err


@pytest.mark.parametrize("how", ["file", "standard input", "dash"])
def test_the_query_comes_from_a_file_or_a_pipe(
    how: str, world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"" if how == "file" else (world / "query.uql").read_bytes()), "utf-8")
    monkeypatch.setattr("sys.stdin", stdin)
    words = {"file": ["-f", "query.uql"], "standard input": [], "dash": ["-f", "-"]}[how]
    assert main(["shop.duckdb", *words, "--json", *ORACLE]) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 3}]


@pytest.mark.parametrize("format_", ["table", "json"])
def test_queries_that_are_given_each_after_an_option_of_its_own_are_run_in_order(
    format_: str, world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = ["-c", "SELECT 'first' AS a -- no more", "-c", "", "-c", "SELECT 'second' AS a"]
    assert main([*queries, *(["--json"] if format_ == "json" else [])]) == 0
    out, err = capsys.readouterr()
    assert ("first" in out) == (format_ == "table") and "second" in out
    assert ("the rows of 1 statement before the last are not written" in err) == (format_ == "json")


def test_formats_hold_the_same_rows(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outs = {}
    for flag in ("--csv", "--json", "--markdown"):
        assert main(["shop.duckdb", "-c", "SELECT id, stars FROM reviews WHERE id < 3 ORDER BY id", flag]) == 0
        outs[flag] = capsys.readouterr().out
    assert list(csv.reader(io.StringIO(outs["--csv"]))) == [["id", "stars"], ["1", "5"], ["2", "1"]]
    assert json.loads(outs["--json"]) == [{"id": 1, "stars": 5}, {"id": 2, "stars": 1}]
    assert outs["--markdown"].splitlines() == ["| id | stars |", "| ---: | ---: |", "| 1 | 5 |", "| 2 | 1 |"]


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.jsonl", "rows.ndjson", "rows.parquet"])
def test_the_suffix_of_the_output_chooses_the_format(
    name: str, own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop.duckdb", "-c", POSITIVE, "-o", name, *ORACLE]) == 0
    assert capsys.readouterr().out == ""
    with duckdb.connect() as con:
        assert con.execute(f"FROM '{name}'").fetchall() == [(1, 5), (3, 4), (5, 5)]
    assert not [path for path in own_world.iterdir() if path.name.startswith(f".{name}")]


def test_a_suffix_of_no_format_is_refused_before_anything_is_asked(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop.duckdb", "-c", POSITIVE, "-o", "rows.xlsx", *ORACLE]) == 2
    said = capsys.readouterr().err
    assert ".parquet" in said
    assert "calls" not in said
    assert not Path("rows.xlsx").exists()


def test_a_failed_query_leaves_the_old_output_alone(own_world: Path) -> None:
    Path("rows.csv").write_text("old")
    assert main(["shop.duckdb", "-c", "SELECT nope FROM reviews", "-o", "rows.csv"]) == 1
    assert Path("rows.csv").read_text() == "old"
    assert not list(own_world.glob(".rows*"))


def test_a_bad_output_is_found_before_anything_is_asked(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shop.duckdb", "-c", POSITIVE, "-o", "nowhere/rows.csv", *ORACLE]) == 2
    assert "calls" not in capsys.readouterr().err


def test_an_estimate_is_shown_with_its_interval_and_stored_with_its_bounds(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = """SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive" """
    assert main(["shop.duckdb", "-c", query, "--budget", "4", "--csv", *ORACLE]) == 0
    out, err = capsys.readouterr()
    header, row = csv.reader(io.StringIO(out))
    assert header == ["n", "n_low", "n_high"]
    assert float(row[1]) <= 3 <= float(row[2])
    assert "interval at 95 %" in err


def test_confidence_reaches_the_interval(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = """SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive" """
    assert main(["shop.duckdb", "-c", query, "--budget", "4", "--confidence", "0.8", *ORACLE]) == 0
    assert "interval at 80 %" in capsys.readouterr().err


def test_dry_run_prints_the_plan_and_asks_nobody(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shop.duckdb", "-c", POSITIVE, "--dry-run", *ORACLE]) == 0
    out, err = capsys.readouterr()
    assert "the review is positive" in out
    assert "calls" in out
    assert "6 calls," not in err


REFUSED = "the price of openai:nobody is not known"


@pytest.mark.parametrize("words", [["--model", "openai:nobody"], ["--set", "models=oracle:oracle.toml,openai:nobody"]])
def test_dry_run_says_that_a_run_would_be_refused_as_the_run_then_is(
    words: list[str], world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    query = ["shop.duckdb", "-c", POSITIVE, *words, "--max-cost", "2", "--ledger", ":memory:"]
    assert main([*query, "--dry-run"]) == 0
    assert f"Warning: the run would be refused: UQL402: max_cost is set, and {REFUSED}" in capsys.readouterr().out
    assert main(query) == 2
    assert REFUSED in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (POSITIVE, ["--model", "openai:nobody"]),
        (POSITIVE, [*ORACLE, "--max-cost", "2"]),
        ("SELECT id FROM reviews", ["--model", "openai:nobody", "--max-cost", "2"]),
        (POSITIVE, ["--set", "models=openai:nobody,oracle:oracle.toml", "--max-cost", "2"]),
    ],
    ids=["without a limit", "with a price", "without a question", "of the first of two models"],
)
def test_dry_run_says_nothing_of_a_refusal_where_there_is_none(
    query: str, words: list[str], world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop.duckdb", "-c", query, *words, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "be refused" not in out
    assert ("would end where it first asks openai:nobody: UQL402" in out) == ("--set" in words)


def test_a_plan_as_json_is_json_on_stdout(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shop.duckdb", "-c", f"EXPLAIN (FORMAT JSON) {POSITIVE}", *ORACLE]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["price"]["calls"]["expected"] == 6
    assert found["plan"]["rows"] == {"low": 0, "expected": 2, "high": 6}


def test_parameters_are_given_by_name(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT id FROM reviews WHERE stars > $least AND text LIKE $like ORDER BY id"
    assert main(["shop.duckdb", "-c", query, "--param", "least=4", "--param", "like=%a%", "--csv"]) == 0
    assert capsys.readouterr().out == "id\n1\n5\n"


def test_any_setting_can_be_set(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "--set", "recall=0.9"]) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in out.splitlines() if line.startswith("recall ")] == [["recall", "0.9", "argument"]]
    assert main(["config", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["confidence"] == {"value": 0.95, "origin": "default"}


def test_the_environment_and_a_project_file_are_read(
    own_world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("uql.toml").write_text('model = "oracle:oracle.toml"\nledger = ":memory:"\n')
    assert main(["config", "trust", "--yes"]) == 0
    capsys.readouterr()
    monkeypatch.setenv("UQL_BUDGET", "4")
    assert main(["shop.duckdb", "-f", "query.uql", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("n,n_low,n_high\n")


def test_strict_gives_5_where_rows_have_no_answer(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shop.duckdb", "-c", POSITIVE, "--csv", "--model", "oracle:forgetful.toml", "--ledger", ":memory:"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out == "id,stars\n1,5\n"
    assert "4 rows without an answer" in err
    assert main([*words, "--strict"]) == 5
    assert capsys.readouterr().out == out


def test_read_only_leaves_the_database_alone(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("shop.duckdb").read_bytes()
    assert main(["shop.duckdb", "--read-only", "-c", POSITIVE, "--csv", *ORACLE]) == 0
    assert main(["shop.duckdb", "--read-only", "-c", "CREATE TABLE x AS SELECT 1 AS a"]) == 1
    assert Path("shop.duckdb").read_bytes() == before


def test_what_was_answered_is_not_asked_again(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shop.duckdb", "-c", POSITIVE, "--csv", "--model", "oracle:oracle.toml", "--ledger", "ledger.sqlite"]
    assert main(words) == 0
    first = capsys.readouterr()
    assert main(words) == 0
    second = capsys.readouterr()
    assert first.out == second.out
    assert "6 calls" in first.err
    assert "0 new calls, 6 from the ledger" in second.err


def test_interrupting_gives_130(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uql.command.query.execute", interrupted)
    assert main(["shop.duckdb", "-c", "SELECT 1"]) == 130
    assert "ledger" in capsys.readouterr().err


def test_help_names_every_command_and_exit_code(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from uql.cli import COMMANDS

    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"uql {name}" in out for name in COMMANDS)
    assert "130 interrupted" in " ".join(out.split())
    lines = [line.strip() for line in out.partition("Other commands:")[2].partition("Exit codes:")[0].splitlines()]
    assert [" ".join(line.split()) for line in lines if line] == [
        f"uql {n} {says}" for n, (_, says) in COMMANDS.items()
    ]
    for name in COMMANDS:
        assert main([name, "--help"]) == 0


def process(words: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "import sys; from uql.cli import main; sys.exit(main())", *words]
    return subprocess.run(command, capture_output=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


def test_rows_that_one_table_has_no_place_for_are_said(capsys: pytest.CaptureFixture[str], world: Path) -> None:
    assert main(["--csv", "-c", "CREATE TABLE t AS SELECT 1 AS a; SELECT 2 AS b; SELECT a FROM t"]) == 0
    out, said = capsys.readouterr()
    assert out == "a\n1\n"
    assert "the rows of 1 statement before the last are not written" in said
    assert main(["--csv", "-c", "CREATE TABLE t AS SELECT 1 AS a; SELECT a FROM t"]) == 0
    assert capsys.readouterr() == ("a\n1\n", "")


def test_a_closed_pipe_is_quiet(world: Path) -> None:
    program = "import sys; from uql.cli import main; sys.exit(main())"
    query = "SELECT range AS i FROM range(200000)"
    shell = f"'{sys.executable}' -c '{program}' --csv -c '{query}' | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["i", "0"]
    assert done.stderr == ""


@pytest.mark.thorough
def test_no_color_and_a_pipe_get_no_escapes(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for words in (["--help"], ["-c", "SELEC 1"], ["--nope"], ["-c", "SELECT 1 AS a"]):
        done = process(words)
        assert b"\x1b" not in done.stdout + done.stderr


def test_a_poor_locale_still_writes_utf8(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = process(["-c", "SELECT 'é日' AS a"])
    assert done.returncode == 0
    assert "é日" in done.stdout.decode("utf-8")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT error(text) FROM (SELECT chr(27) || '[2J' AS text)",
        "SELECT text::INT FROM (SELECT chr(27) || '[2J' AS text)",
        'SELECT missing FROM (SELECT 1 AS "a\x1b[2J")',
        'SELECT * FROM "\x1b[2J"',
        "SELEC \x1b[2J",
    ],
)
def test_an_error_that_quotes_a_value_of_a_row_does_nothing_to_the_terminal(
    statement: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([":memory:", "-c", statement, "--ledger", ":memory:"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and "error: " in err
    with duckdb.connect() as duck, uql.attach(duck, ledger=":memory:") as con:
        printed = io.StringIO()
        Shell(con, out=printed, keep_history=False).handle(f"{statement};")
        assert "\x1b" not in printed.getvalue() and "error: " in printed.getvalue()
