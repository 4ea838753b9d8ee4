"""Pages of commands: each is run, in order, and prints what the page says. `pytest --update-golden` rewrites the page."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
from outputs import skeleton

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.M | re.S)


def printed(command: str) -> str:
    """What a command of the page writes to stdout."""
    from uql.cli import main

    words = shlex.split(command)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as said:
        if words[:3] == ["python", "-m", "uql.benchmarks.datasets"]:
            from uql.benchmarks.datasets.__main__ import main as write

            code = write(words[3:])
        else:
            assert words[0] == "uql", f"the tutorial runs uql, not {words[0]}"
            code = main(words[1:])
    assert code == 0, f"{command}\n{said.getvalue()}"
    return out.getvalue()


@pytest.mark.parametrize(
    ("page", "least"), [("tutorial.md", 8), pytest.param("intervals.md", 4, marks=pytest.mark.slow)]
)
def test_every_command_of_a_page_prints_what_it_says(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    path = DOCS / page
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    text = path.read_text("utf-8")
    commands = 0
    shown: list[str] = []

    def run(match: re.Match[str]) -> str:
        nonlocal commands
        lines = match[1].splitlines()
        parts: list[str] = []
        command = ""
        for line in lines:
            if line.startswith("$ ") or command.endswith("\n"):
                command = command + line.removeprefix("$ ") if command else line[2:]
                parts.append(line)
                if command.endswith("\\"):
                    command = command[:-1] + "\n"
                    continue
                if _open_quote(command):
                    command += "\n"
                    continue
                parts.append(printed(command).rstrip("\n"))
                commands += 1
                command = ""
        shown.append("\n".join(part for part in parts if part))
        return "```console\n" + "\n".join(part for part in parts if part) + "\n```"

    rewritten = _BLOCK.sub(run, text)
    if request.config.getoption("--update-golden"):
        path.write_text(rewritten, encoding="utf-8")
    assert commands >= least
    for block, said in zip(_BLOCK.findall(path.read_text("utf-8")), shown, strict=True):
        assert skeleton(said) == skeleton(block.rstrip("\n"))


def _open_quote(command: str) -> bool:
    """Does the command go on in the next line, within quotes?"""
    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def test_an_estimate_that_a_page_speaks_of_is_one_that_a_command_printed() -> None:
    estimate = re.compile(r"\d+ \(\d+–\d+\)|\d+ ± \d+")
    pages = [(DOCS / page).read_text("utf-8") for page in ("index.md", "tutorial.md", "intervals.md")]
    shown = {number for page in pages for block in _BLOCK.findall(page) for number in estimate.findall(block)}
    named = {number for page in pages for number in estimate.findall(_BLOCK.sub("", page))}
    assert named and named <= shown
