"""How the command ends: each exit code, what is on which stream, and the small commands `init` and `completion`."""

from __future__ import annotations

import csv
import io
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from uql.base.config import load
from uql.base.settings import IN_PROJECTS, NAMES, Settings
from uql.cli import COMMANDS, main

POSITIVE = 'SELECT id, stars FROM reviews WHERE "the review is positive" ORDER BY id'
ORACLE = ["--model", "oracle:oracle.toml", "--ledger", ":memory:"]
PROGRAM = [sys.executable, "-c", "import sys; from uql.cli import main; sys.exit(main())"]


def slow(folder: Path, seconds: float) -> list[str]:
    """The arguments of a model that takes its time, one row after another."""
    text = (folder / "oracle.toml").read_text().replace('key = "id"', f'key = "id"\nlatency_s = {seconds}')
    (folder / "slow.toml").write_text(text)
    return ["--model", "oracle:slow.toml", "--set", "concurrency=1"]


CODES = {
    "a query": (0, ["shop.duckdb", "-c", POSITIVE, *ORACLE]),
    "a name that is not there": (1, ["shop.duckdb", "-c", "SELECT nope FROM reviews"]),
    "a text that cannot be read": (1, ["-c", "SELECT FROM WHERE"]),
    "more calls than the budget": (
        1,
        ["shop.duckdb", "-c", 'SELECT "the mood" AS m FROM reviews', "--budget", "2", *ORACLE],
    ),
    "an unknown option": (2, ["--nope"]),
    "a file that is not there": (2, ["-f", "nowhere.uql"]),
    "a setting that cannot be": (2, ["-c", "SELECT 1", "--set", "budget=much"]),
    "a setting that there is not": (2, ["-c", "SELECT 1", "--set", "nope=1"]),
    "a model without a name": (2, ["shop.duckdb", "-c", POSITIVE, "--model", "nothing:x", "--ledger", ":memory:"]),
    "a server that is not there": (
        3,
        ["shop.duckdb", "-c", POSITIVE, "--model", "http://127.0.0.1:9/v1#m", "--ledger", ":memory:"],
    ),
    "a model file that is not there": (
        3,
        ["shop.duckdb", "-c", POSITIVE, "--model", "local", "--ledger", ":memory:"],
    ),
    "rows without an answer": (
        5,
        ["shop.duckdb", "-c", POSITIVE, "--strict", "--model", "oracle:forgetful.toml", "--ledger", ":memory:"],
    ),
}


@pytest.mark.parametrize("case", CODES)
def test_the_exit_code_says_how_it_ended(case: str, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, words = CODES[case]
    assert main(words) == code
    out, err = capsys.readouterr()
    assert ("error:" in err or "Error" in err) is (code in (1, 2, 3))
    assert bool(out) is (code in (0, 5))


def test_a_limit_while_running_gives_4_and_what_was_finished(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "shop.duckdb",
        "-c",
        POSITIVE,
        "--csv",
        *slow(own_world, 0.4),
        "--ledger",
        ":memory:",
        "--max-seconds",
        "1",
    ]
    assert main(words) == 4
    out, err = capsys.readouterr()
    assert out.startswith("id,stars\n1,5\n")
    assert "partial" in err


def test_an_error_that_was_not_reached_gives_4(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import duckdb

    with duckdb.connect("many.duckdb") as con:
        con.sql("CREATE TABLE t AS SELECT 'a text about things with the number ' || range AS text FROM range(900)")
    Path("many.toml").write_text(
        'data = "many.parquet"\nlabels = "labels_of_many.parquet"\nkey = "text"\n[answers]\n"it is so" = "so"\n'
    )
    with duckdb.connect("many.duckdb") as con:
        con.sql("COPY t TO 'many.parquet'")
        con.sql("COPY (SELECT text, hash(text) % 3 = 0 AS so FROM t) TO 'labels_of_many.parquet'")
    count = 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (error = {}, budget = 100)'
    words = ["--model", "oracle:many.toml", "--ledger", ":memory:"]
    assert main(["many.duckdb", "-c", count.format(0.01), *words]) == 4
    assert "was not reached" in capsys.readouterr().err
    assert main(["many.duckdb", "-c", count.format(0.9), *words]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_names_the_file_and_says_that_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "SELECT * FROM range(100000)", "--csv", "-o", "/dev/full"]) == 2
    err = capsys.readouterr().err
    assert "cannot write /dev/full: No space left on device" in err and "makes no new calls" in err


def test_ctrl_c_gives_130_and_keeps_the_answers(own_world: Path) -> None:
    words = [
        "shop.duckdb",
        "-c",
        POSITIVE,
        "--csv",
        *slow(own_world, 0.8),
        "--ledger",
        "ledger.sqlite",
        "--no-progress",
    ]
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not answers_in(own_world / "ledger.sqlite") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "ledger" in err
    assert answers_in(own_world / "ledger.sqlite") >= 1


def test_ctrl_c_while_the_command_is_imported_gives_130_and_no_traceback() -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder
class Interrupted(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "uql.command.outcome":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from uql.cli import main
sys.exit(main())
"""
    ended = subprocess.run([sys.executable, "-c", program, "-c", "SELECT 1"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def answers_in(path: Path) -> int:
    import sqlite3

    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        try:
            return int(db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
        except sqlite3.OperationalError:  # not made yet
            return 0


def on_a_terminal(words: list[str]) -> tuple[int, str, str]:
    """Runs the command with stderr on a terminal and stdout in a pipe."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*PROGRAM, *words], stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal is closed
            break
        if not part:
            break
        said += part
    assert process.stdout is not None
    out = process.stdout.read().decode()
    os.close(ours)
    return process.wait(60), out, said.decode()


def test_stdout_is_clean_csv_while_progress_is_drawn(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    words = ["shop.duckdb", "-c", POSITIVE, "--csv", *slow(own_world, 0.3), "--ledger", ":memory:"]
    code, out, said = on_a_terminal(words)
    assert code == 0
    assert list(csv.reader(io.StringIO(out))) == [["id", "stars"], ["1", "5"], ["3", "4"], ["5", "5"]]
    assert "of at most 256 calls" in said
    assert "6 calls" in said.splitlines()[-1]


@pytest.mark.parametrize("no_color", ["", "1"])
def test_errors_are_red_on_a_terminal_unless_colours_are_not_wanted(
    no_color: str, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    code, out, said = on_a_terminal(["-c", "SELEC 1"])
    assert code == 1
    assert out == ""
    assert ("\x1b[" in said) is (not no_color)


# ---------------------------------------------------------------------------------------------------------------- init
def test_init_writes_a_file_that_changes_nothing_until_it_is_edited(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init"]) == 0
    text = Path("uql.toml").read_text()
    assert all((f"# {name} = " in text) is IN_PROJECTS[name].takes_any for name in NAMES)
    settings, origins = load()
    assert settings == Settings()
    assert set(origins.values()) == {"default"}
    assert main(["init"]) == 2
    assert "--force" in capsys.readouterr().err
    Path("uql.toml").write_text(text.replace("# budget = 256", "budget = 64"))
    assert main(["config", "show"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("budget "))
    assert line.split()[1] == "64"
    assert line.endswith("uql.toml")
    assert main(["init", "--force"]) == 0
    assert Path("uql.toml").read_text() == text


def test_every_example_of_init_can_be_used(own_world: Path) -> None:
    import tomllib

    from uql.command.init import commented

    lines = [line[2:] for line in commented(project=False).splitlines() if line.startswith("# ") and " = " in line]
    found = 0
    for line in lines:
        try:
            (pair,) = tomllib.loads(line).items()
        except (tomllib.TOMLDecodeError, ValueError):
            continue  # a line of prose
        if pair[0] in NAMES:
            Settings().with_values(**dict([pair]))
            found += 1
    assert found == len(NAMES - {"endpoints", "prices"})


# ---------------------------------------------------------------------------------------------------------- completion
def test_the_completion_of_bash_knows_commands_options_and_settings(
    world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out

    def completed(*words: str) -> set[str]:
        asked = (
            f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _uql 2>/dev/null; echo "${{COMPREPLY[@]}}"'
        )
        done = subprocess.run(
            [bash, "-c", f"{script}\n{asked}"], capture_output=True, text=True, timeout=30, check=True
        )
        return set(done.stdout.split())

    assert "models" in completed("uql", "mod")
    assert completed("uql", "models", "pu") == {"pull"}
    assert completed("uql", "shop.duckdb", "--bud") == {"--budget"}
    assert "recall=" in completed("uql", "--set", "re")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_every_command(shell: str, world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in COMMANDS)
    assert main(["completion", "tcsh"]) == 2
