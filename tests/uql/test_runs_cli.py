"""`uql runs`, `uql resume`, `uql cache`, `--offline`: what a user sees of runs and of the ledger."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

import uql
from uql.base.errors import ConfigError
from uql.base.own_key import key_file
from uql.cli import main
from uql.llm.ledger import Ledger
from uql.session.resume import find

COUNT = 'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"'
GIVEN = ["--ledger", "l.sqlite"]


def query(text: str, *more: str, model: str = "oracle:oracle.toml") -> list[str]:
    return ["shop.duckdb", "-c", text, "--model", model, *GIVEN, *more]


def priced(folder: Path, line: str) -> str:
    """The oracle, with a price or a latency."""
    (folder / "priced.toml").write_text(f"{line}\n{(folder / 'oracle.toml').read_text()}")
    return "oracle:priced.toml"


def test_runs_are_listed_and_one_is_shown(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", *GIVEN]) == 0
    assert capsys.readouterr().out == "no runs yet\n"
    assert main(query(COUNT)) == 0
    assert main(query('SELECT "the mood" FROM reviews', model="oracle:forgetful.toml")) in (0, 1)
    capsys.readouterr()
    assert main(["runs", *GIVEN]) == 0
    out = capsys.readouterr().out
    assert COUNT[:40] in out and re.search(r"done +6 +0 +0", out)
    assert main(["runs", "--json", *GIVEN]) == 0
    run = next(r for r in json.loads(capsys.readouterr().out) if r["statement"] == COUNT)
    assert run["calls"] == 6 and run["status"] == "done"
    assert main(["runs", run["run"][:6], *GIVEN]) == 0
    out = capsys.readouterr().out
    assert "question   the review is positive: 6 calls" in out and COUNT in out
    assert main(["runs", "ffffffff", *GIVEN]) == 2
    assert "uql runs lists them" in capsys.readouterr().err


def test_a_list_of_runs_ends_where_the_terminal_does(
    own_world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(query(COUNT)) == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "60")
    main(["runs", *GIVEN])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 60
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["runs", *GIVEN])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) == 60 and all(line.endswith("…") for line in lines)


def test_failed_rows_are_shown_with_their_reason(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(query(COUNT, "--strict", model="oracle:forgetful.toml")) == 5
    run = sqlite3.connect("l.sqlite").execute("SELECT run FROM runs").fetchone()[0]
    capsys.readouterr()
    assert main(["runs", run, *GIVEN]) == 0
    out = capsys.readouterr().out
    assert out.count("failed     the review is positive") == 4
    assert main(["runs", run, "--json", *GIVEN]) == 0
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 4


def test_a_run_that_reached_its_cost_tells_its_token_and_goes_on_from_another_folder(
    own_world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = priced(own_world, "price = { input = 10.0, output = 10.0 }")
    assert main(query(COUNT, "--max-cost", "0.001", "--budget", "all", model=model)) == 4
    out, err = capsys.readouterr()
    token = re.search(r"uql resume (\w+) --ledger (\S+)", err)
    assert token and "partial" in err
    before = sqlite3.connect("l.sqlite").execute("SELECT COUNT(*) FROM answers").fetchone()[0]
    assert 0 < before < 6
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ledger = str(own_world / token[2])
    assert main(["resume", token[1][:8], "--ledger", ledger, "--max-cost", "1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"n": 3}] and "where the run began" in err
    assert f"{6 - before} calls, {before} from the ledger" in err
    assert main(["resume", "nothing-like-it", "--ledger", ledger]) == 2
    assert "UQL412" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_give_130_and_a_token_and_keep_what_was_paid(
    own_world: Path, capsys: pytest.CaptureFixture[str], sent: signal.Signals
) -> None:
    model = priced(own_world, "latency_s = 1.5")
    command = [sys.executable, "-m", "uql.cli", *query(COUNT, "--no-progress", "--set", "concurrency=1", model=model)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ), cwd=own_world)
    began = time.monotonic()
    while time.monotonic() - began < 60 and process.poll() is None:
        time.sleep(0.1)
        if Path("l.sqlite").exists():
            held = sqlite3.connect("l.sqlite", timeout=5)
            try:
                if held.execute("SELECT COUNT(*) FROM answers").fetchone()[0]:
                    break
            except sqlite3.OperationalError:
                continue
            finally:
                held.close()
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted; what was answered is in the ledger; continue it with: uql resume " in err
    assert "Traceback" not in err
    token = re.search(r"uql resume (\w+)", err)
    assert token
    held = sqlite3.connect("l.sqlite")
    assert held.execute("SELECT status FROM runs").fetchall() == [("interrupted",)]
    paid = held.execute("SELECT COUNT(*) FROM answers").fetchone()[0]
    assert 0 < paid < 6
    assert main(["resume", token[1], *GIVEN]) == 0
    assert f"{6 - paid} calls, {paid} from the ledger" in capsys.readouterr().err


def test_offline_answers_from_the_ledger_and_names_what_it_lacks(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(query(COUNT, "--offline")) == 1
    assert "UQL411" in capsys.readouterr().err
    assert main(query(COUNT)) == 0
    capsys.readouterr()
    assert main(query(COUNT, "--offline", "--json")) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"n": 3}] and "0 new calls, 6 from the ledger" in err


def test_offline_needs_no_key_of_a_vendor(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(query(COUNT, model="openai:gpt-x")) == 2, "a key is missing"
    capsys.readouterr()
    assert main(query(COUNT, "--offline", model="openai:gpt-x")) == 1
    assert "UQL411" in capsys.readouterr().err


def test_the_cache_tells_what_it_holds_and_forgets(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(query(COUNT)) == 0
    capsys.readouterr()
    assert main(["cache", "stats", "--json", *GIVEN]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answers"] == 6 and told["runs"] == 1 and told["tables"] == {"reviews": 6}
    assert main(["cache", "prune", *GIVEN]) == 2
    assert main(["cache", "prune", "--size", "lots", *GIVEN]) == 2
    assert main(["cache", "prune", "--older-than", "1d", *GIVEN]) == 0
    assert capsys.readouterr().out.startswith("0 answers forgotten, 6 kept")
    assert main(["cache", "prune", "--table", "reviews", *GIVEN]) == 0
    assert capsys.readouterr().out.startswith("6 answers forgotten, 0 kept")
    assert main(query(COUNT)) == 0
    assert main(["cache", "clear", "--yes", *GIVEN]) == 0
    capsys.readouterr()
    assert main(["cache", "stats", *GIVEN]) == 0
    assert "runs     0" in capsys.readouterr().out


def test_the_tables_of_the_ledger_stand_in_statements(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(query(COUNT)) == 0
    capsys.readouterr()
    sql = "SELECT r.status, c.kind, COUNT(*) AS n FROM uql_runs() r JOIN uql_calls() c ON r.run = c.run GROUP BY r.status, c.kind"
    assert main(query(sql, "--json")) == 0
    assert json.loads(capsys.readouterr().out) == [{"status": "done", "kind": "call", "n": 6}]


def test_a_ledger_of_a_stranger_sends_no_signs_to_the_terminal_and_names_no_endpoint(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settings of a sitting are the user's own: of a run, an endpoint would choose where a key of the environment goes."""
    escape = "\x1b]0;title\x07\x1b[2J"
    chosen = {"endpoints": {"https://elsewhere.example": {"key_env": "OPENAI_API_KEY"}}, "budget": 9}
    details = {"settings": chosen, "parameters": {}, "rates": {}, "database": None, "read_only": False}
    with Ledger("l.sqlite") as ledger:
        told = json.dumps({**details, "folder": f"/nowhere{escape}"})
        ledger.start_run("strange", statement=f"SELECT 1 -- {escape}", model=f"m{escape}", seed=1, details=told)
        ledger.finish_run("strange", "partial")
        assert find("strange", ledger, trust=True).settings == {"budget": 9}
    for command in (["runs"], ["runs", "strange"], ["resume", "strange"], ["cache", "show"]):
        main([*command, *GIVEN])
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err and "\x07" not in out + err, command
    main(["runs", "strange", *GIVEN])
    assert r"SELECT 1 -- \x1b]0;title\x07" in capsys.readouterr().out


def strange_run(folder: Path, statement: str, model: str = "oracle:oracle.toml", **state: object) -> None:
    """A ledger with a run that somebody else has put there, ready to be continued."""
    details = {"settings": {"model": model}, "parameters": {}, "rates": {}, "database": str(folder / "shop.duckdb")}
    details |= {"read_only": False, "folder": str(folder)} | state
    with Ledger("l.sqlite") as ledger:
        ledger.start_run("strange", statement=statement, model="m", seed=1, details=json.dumps(details))
        ledger.finish_run("strange", "partial")


def test_a_run_of_somebody_else_is_shown_and_runs_only_when_the_user_says_yes(
    own_world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    strange_run(
        own_world, "COPY (SELECT $a AS a) TO 'stolen.csv'", "http://elsewhere.example/v1#m", parameters={"a": 41}
    )
    for answer in ("n\n", "\n", ""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        main(["resume", "strange", *GIVEN])
        shown = capsys.readouterr().err
        assert "you did not begin this run" in shown and "COPY (SELECT $a AS a) TO 'stolen.csv'" in shown
        assert str(own_world / "shop.duckdb") in shown and "$a = 41" in shown
        assert "model = 'http://elsewhere.example/v1#m'" in shown, "what asks for trust in a project's file too"
        assert not Path("stolen.csv").exists()
    assert main(["resume", "strange", "--yes", *GIVEN]) == 0
    assert Path("stolen.csv").exists()


def test_a_run_of_ones_own_whose_statement_was_changed_in_the_ledger_is_shown_first(
    own_world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = priced(own_world, "price = { input = 10.0, output = 10.0 }")
    assert main(query(COUNT, "--max-cost", "0.001", "--budget", "all", model=model)) == 4
    with sqlite3.connect("l.sqlite") as db:
        (run,) = db.execute("SELECT run FROM runs").fetchone()
        db.execute("UPDATE runs SET statement = statement || ' TO kept'")
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert main(["resume", run, "--max-cost", "1", *GIVEN]) == 0
    assert "TO kept" in capsys.readouterr().err
    with uql.connect("shop.duckdb", ledger="l.sqlite") as con, pytest.raises(ConfigError, match="UQL418") as caught:
        con.resume(run)
    assert "TO kept" in str(caught.value) and "trust=True" in str(caught.value)


def test_the_key_of_runs_is_private_and_a_home_without_room_for_it_costs_the_question_alone(
    own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = priced(own_world, "price = { input = 10.0, output = 10.0 }")
    given = query(COUNT, "--max-cost", "0.001", "--budget", "all", model=model)
    assert main(given) == 4
    assert key_file().stat().st_mode & 0o777 == 0o600 and key_file().parent.stat().st_mode & 0o077 == 0
    (own_world / "no folder").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own_world / "no folder"))
    Path("l.sqlite").unlink()
    assert main(given) == 4
    with uql.connect("shop.duckdb", ledger="l.sqlite") as con:
        (run,) = con.uql("SELECT run FROM uql_runs()").fetchone()
        with pytest.raises(ConfigError, match="UQL418"):
            con.resume(run)
        assert con.resume(run, trust=True, max_cost=1).fetchall() == [(3,)]


def test_a_run_that_nests_too_deep_to_be_read_is_an_error_in_words(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Ledger("l.sqlite") as ledger:
        deep = '{"settings": ' + "[" * 100_000
        ledger.start_run("strange", statement="SELECT 1", model="m", seed=1, details=deep)
        ledger.finish_run("strange", "partial")
    assert main(["resume", "strange", "--yes", *GIVEN]) == 2
    assert "UQL412" in capsys.readouterr().err
