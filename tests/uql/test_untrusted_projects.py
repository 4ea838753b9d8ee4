"""What a stranger's uql.toml may set before the user trusts it: a table of every setting, and attacks."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import duckdb
import pytest

import uql
from uql.base.config import load, user_file
from uql.base.errors import ConfigError
from uql.base.settings import IN_PROJECTS, NAMES, Settings
from uql.cli import main
from uql.llm.providers.oracle import Oracle

# Two values of each setting: one that a project's file may set untrusted, one that it may not. None: there is none.
SAMPLES: dict[str, tuple[Any, Any]] = {
    "model": ("local", "http://host.example/v1#m"),
    "models": (None, ["openai:small", "http://host.example/v1#large"]),
    "accuracy": (0.9, None),
    "embedder": ("static", "voyage:voyage-4"),
    "budget": (64, None),
    "exact": (True, None),
    "fresh": (True, None),
    "error": (0.1, None),
    "confidence": (0.9, None),
    "recall": (0.9, None),
    "total": (0.2, None),
    "proxy": (None, "(SELECT length(content) FROM read_text('/etc/hostname'))"),
    "precision": (0.9, None),
    "max_cost": (0.5, 50.0),
    "exact_below": (0.005, 50.0),
    "exact_seconds": (5.0, 500.0),
    "max_seconds": (5, 500),
    "max_tokens": (5, 500),
    "seed": (7, None),
    "partial": (True, None),
    "on_error": ("drop", None),
    "method": ("uniform", None),
    "strata": (5, None),
    "explore": (0.1, None),
    "examples": (False, "secrets"),
    "audit": (None, "secrets"),
    "soft": (True, None),
    "describe": (True, None),
    "listen": (True, None),
    "concurrency": (2, None),
    "rows_per_request": (4, None),
    "batch": (True, None),
    "ledger": (":memory:", "elsewhere/ledger.sqlite"),
    "offline": (True, False),
    "quoted": ("strict", None),
    "folder": (None, "/"),
    "urls": (False, True),
    "timeout_s": (5.0, None),
    "confirm_over": (0.01, 1000.0),
    "endpoints": (None, {"https://host.example": {"key_env": "AWS_SECRET"}}),
    "prices": (None, {"openai:m": {"input": 0.0, "output": 0.0}}),
    "plugins": (None, ["theirs"]),
    "progress": (False, None),
    "disabled_rules": (["asked_once"], None),
}
HARMLESS = [(name, samples[0]) for name, samples in SAMPLES.items() if samples[0] is not None]
HARMFUL = [(name, samples[1]) for name, samples in SAMPLES.items() if samples[1] is not None]
CAPS = {"max_cost": 1.0, "max_seconds": 60, "max_tokens": 60, "confirm_over": 0.1}  # of the user


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a stranger sent, with a user who has a file of their own."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in NAMES:
        monkeypatch.delenv(f"UQL_{name.upper()}", raising=False)
    user_file().parent.mkdir(parents=True)
    user_file().write_text("".join(f"{name} = {value}\n" for name, value in CAPS.items()))
    return folder


def write(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        Path("uql.toml").write_text(f"{name} = {json.dumps(value)}\n")
        return
    tables = (
        f"[{name}.{json.dumps(key)}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in held.items())
        for key, held in value.items()
    )
    Path("uql.toml").write_text("".join(tables))


def test_every_setting_has_a_decision_and_samples_that_show_it() -> None:
    assert set(IN_PROJECTS) == set(SAMPLES) == {field.name for field in fields(Settings)}
    for name, (harmless, harmful) in SAMPLES.items():
        rule = IN_PROJECTS[name]
        assert (harmless is not None) == rule.takes_any, name
        assert (harmful is None) == (not rule.asks), name


@pytest.mark.parametrize(("name", "value"), HARMLESS, ids=[name for name, _ in HARMLESS])
def test_an_untrusted_project_may_set(name: str, value: Any) -> None:
    write(name, value)
    settings, origins = load()
    assert origins[name] == str(Path.cwd() / "uql.toml")
    assert settings == load(**{name: value})[0]


@pytest.mark.parametrize(("name", "value"), HARMFUL, ids=[name for name, _ in HARMFUL])
def test_an_untrusted_project_may_not_set_and_a_trusted_one_may(name: str, value: Any) -> None:
    write(name, value)
    with pytest.raises(ConfigError) as caught:
        load()
    said = str(caught.value)
    assert name in said and "uql config trust" in said and IN_PROJECTS[name].asks in said
    assert main(["config", "trust", "--yes"]) == 0
    assert load()[1][name].endswith("uql.toml")


@pytest.mark.parametrize("value", ["oracle:evil.toml", "scripted:evil.toml", "openai:m", "local:/x.gguf", "mine:m"])
def test_every_model_but_the_local_one_asks_for_trust(value: str) -> None:
    write("model", value)
    with pytest.raises(ConfigError, match="uql config trust"):
        load()


def test_the_same_holds_for_the_table_in_pyproject() -> None:
    Path("pyproject.toml").write_text("[tool.uql]\nledger = 'elsewhere/ledger.sqlite'\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml.*ledger"):
        load()


def test_one_error_names_everything_that_trusting_would_allow() -> None:
    Path("uql.toml").write_text(
        "budget = 3\nurls = true\nledger = 'elsewhere.sqlite'\nmodels = ['openai:a', 'openai:b']\n"
    )
    with pytest.raises(ConfigError) as caught:
        load()
    assert all(word in str(caught.value) for word in ("urls", "ledger", "models"))
    assert "budget" not in str(caught.value)


def test_what_the_command_asks_about_is_listed_before_it_asks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("uql.toml").write_text("budget = 3\nurls = true\nledger = 'elsewhere\\u001b[2J'\n")
    assert main(["config", "trust", "--yes"]) == 0
    said = capsys.readouterr().err
    assert IN_PROJECTS["urls"].asks in said and IN_PROJECTS["ledger"].asks in said and "\x1b" not in said


def test_a_limit_may_be_lowered_where_the_user_has_none_but_never_raised() -> None:
    user_file().write_text("")
    write("max_cost", 50.0)
    assert load()[0].max_cost == 50.0
    user_file().write_text("max_cost = 1.0")
    with pytest.raises(ConfigError, match="max_cost"):
        load()


# ------------------------------------------------------------------------------------- the SQL and the files of a model
def oracle_file(answer: str) -> Path:
    user_file().write_text("")
    duckdb.sql("SELECT 1 AS id, 'a' AS text").write_parquet("data.parquet")
    duckdb.sql("SELECT 1 AS id, true AS good").write_parquet("labels.parquet")
    path = Path("evil.toml")
    path.write_text(
        'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n[answers]\n'
        + f'"it is good" = {json.dumps(answer)}\n'
    )
    return path


ESCAPES = [
    "(SELECT content FROM read_text('secret.txt'))",
    "(SELECT COUNT(*) FROM read_csv('secret.txt')) > 0",
    "(SELECT COUNT(*) FROM glob('*')) > 0",
    "(SELECT COUNT(*) FROM 'data.parquet') > 0",
    "good) FROM truth; COPY truth TO 'out.csv'; SELECT (good",
    "good) FROM truth; ATTACH 'out.db' AS o; SELECT (good",
    "good) FROM truth; SET lock_configuration = false; SELECT (good",
    "good) FROM truth; INSTALL httpfs; SELECT (good",
    "good) FROM truth; CREATE TABLE more AS SELECT 1; SELECT (good",
    "(SELECT COUNT(*) FROM local_table) > 0",
]


@pytest.mark.thorough
@pytest.mark.parametrize("answer", ESCAPES)
def test_the_sql_of_an_oracle_reads_and_writes_no_file_and_is_one_statement(answer: str) -> None:
    Path("secret.txt").write_text("secret")
    local_table = duckdb.sql("SELECT 1 AS x").to_arrow_table()
    assert local_table.num_rows == 1
    path = oracle_file(answer)
    before = sorted(Path.cwd().iterdir())
    with (
        uql.connect(model=f"oracle:{path}", ledger=":memory:") as con,
        pytest.raises(ConfigError, match="is not SQL over the labels"),
    ):
        con.sql("CREATE TABLE t AS SELECT 1 AS id, 'a' AS text")
        con.uql('SELECT COUNT(*) FROM t WHERE "it is good"').fetchall()
    assert sorted(Path.cwd().iterdir()) == before


def test_an_oracle_reads_one_file_for_a_name_and_no_pattern_of_files() -> None:
    path = oracle_file("good")
    Path("*.csv").write_text("id,text\n1,a\n")
    Path("other.csv").write_text("id,text\n2,secret\n")
    path.write_text(path.read_text().replace("data.parquet", "*.csv"))
    with pytest.raises(ConfigError, match="one file"):
        Oracle(path)


@pytest.mark.parametrize("readers", ["http://127.0.0.1:9/v1#m", "openai:m", "scripted:script.toml", "mine:m"])
def test_the_readers_of_a_script_send_no_row_away_and_are_not_the_script(readers: str) -> None:
    Path("script.toml").write_text(f'readers = "{readers}"\n')
    with (
        uql.connect(model="scripted:script.toml", ledger=":memory:") as con,
        pytest.raises(ConfigError, match="readers"),
    ):
        con.sql("CREATE TABLE t AS SELECT 1 AS id, 'a' AS text")
        con.uql('SELECT COUNT(*) FROM t WHERE "it is good"').fetchall()


@pytest.mark.parametrize("name", ["uql.toml", "pyproject.toml"])
@pytest.mark.parametrize("kind", ["pipe", "device", "long", "directory"])
def test_a_project_file_that_is_none_or_too_long_ends_at_once(name: str, kind: str) -> None:
    """A pipe or /dev/zero in its place held the command for ever, and 20 GB were read into memory."""
    path = Path(name)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "long":
            with path.open("wb") as file:
                file.truncate(20 << 30)
        case "directory":
            path.mkdir()
    if name == "pyproject.toml" and kind != "long":
        assert load()[0].max_cost == CAPS["max_cost"]
        return
    with pytest.raises(ConfigError, match="cannot be read"):
        load()


@pytest.mark.parametrize(
    "text",
    [f"models = {'[' * 3000}{']' * 3000}", f"prices = {'{a=' * 2000}1{'}' * 2000}", f"budget = {'9' * 5000}", "seed = 1\x00"],
    ids=["lists", "tables", "digits", "nul"],
)  # fmt: skip
def test_a_project_file_that_breaks_the_parser_is_an_error_in_words(text: str) -> None:
    Path("uql.toml").write_text(text)
    with pytest.raises(ConfigError, match="cannot be read"):
        load()


@pytest.mark.parametrize("kind", ["oracle", "scripted"])
def test_a_model_file_that_breaks_the_parser_or_is_a_pipe_is_an_error_in_words(kind: str) -> None:
    Path("deep.toml").write_text(f"data = {'[' * 3000}{']' * 3000}")
    os.mkfifo("pipe.toml")
    for name in ("deep.toml", "pipe.toml"):
        with (
            pytest.raises(ConfigError, match="cannot be read"),
            uql.connect(model=f"{kind}:{name}", ledger=":memory:") as con,
        ):
            con.uql("SELECT * FROM (SELECT 'a text' AS body) WHERE \"the {body} is nice\"").fetchall()
