"""No key is ever in the ledger, a log, EXPLAIN, an error, an event or what the command line prints, also where a server repeats it."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, chat, serve

import uql
from uql.base.errors import AuthError, ConfigError
from uql.cli import main
from uql.llm.providers import compatible, wire
from uql.llm.providers.openai_api import OpenAI

KEY = "sk-test-0123456789abcdefGHIJ"
QUERY = 'SELECT id, "the name" AS name FROM t'


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    compatible._probed.clear()
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def connect(folder: Path, model: Any, **settings: Any) -> uql.Connection:
    con = uql.connect(folder / "t.duckdb", model=model, ledger=str(folder / "l.sqlite"), **settings)
    con.sql(
        "CREATE TABLE t AS SELECT range AS id, 'the text of row ' || range || ' as it stands' AS text FROM range(6)"
    )
    return con


def repeating(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Answers, but for every second row says what it was sent, key and all."""
    if any(f"row {n} " in json.dumps(body["messages"]) for n in (1, 3, 5)):
        return 400, {"error": {"message": f"I was sent {headers['authorization']} and {KEY}", "type": "bad"}}
    return chat(body, headers)


def nowhere(folder: Path) -> None:
    """No file below the folder holds the key."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path


def test_a_key_that_a_server_repeats_is_taken_out_everywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[Any] = []

    def go(told: Server) -> None:
        own = {told.url: {"key_env": "MY_KEY"}}
        with connect(tmp_path, f"{told.url}/v1#m", endpoints=own) as con:
            con.on_event(seen.append)
            result = con.uql(QUERY)
            said = [result.explain(), str(result.quote()), repr(result), str(result.errors), str(result.warnings)]
            assert len(result.errors) == 3 and "[key]" in result.errors[0].message
            said += [str(con.uql(f"SELECT * FROM uql_{name}()").fetchall()) for name in ("runs", "calls", "errors")]
            said += [str(con.uql(f"EXPLAIN ANALYZE {QUERY}").fetchall()), str(con.configured), str(result.why(0))]
            assert not any(KEY in text for text in said)
        assert {h["authorization"] for h in told.headers} == {f"Bearer {KEY}"}, "and yet it was sent"

    with serve({"/v1/chat/completions": repeating}) as told:
        go(told)
    assert seen and not any(KEY in str(event) for event in seen)
    assert not any(KEY in record.getMessage() for record in caplog.records)
    nowhere(tmp_path)


def test_an_error_that_ends_the_run_repeats_no_key(tmp_path: Path) -> None:
    def refused(body: dict[str, Any], headers: dict[str, str]) -> Any:
        return 401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}

    with serve({"/v1/chat/completions": refused}) as told:
        model = OpenAI("gpt-x", api_key=KEY, url=f"{told.url}/v1")
        with connect(tmp_path, model) as con, pytest.raises(AuthError) as caught:
            con.uql(QUERY).fetchall()
    assert "[key]" in str(caught.value) and KEY not in str(caught.value) + repr(caught.value)
    nowhere(tmp_path)


def test_the_command_line_prints_no_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    with serve({"/v1/chat/completions": repeating}) as told:
        settings = tmp_path / "config" / "uql" / "uql.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[endpoints."{told.url}"]\nkey_env = "MY_KEY"\n')
        connect(tmp_path, f"{told.url}/v1#m").close()
        given = ["--model", f"{told.url}/v1#m", "--ledger", "l.sqlite"]
        assert main(["t.duckdb", "-c", QUERY, "--strict", *given]) == 5
        assert main(["config", "show"]) == 0 and main(["runs", "--json", "--ledger", "l.sqlite"]) == 0
    out, err = capfd.readouterr()
    assert "MY_KEY" in out and "[key]" in err and KEY not in out + err
    nowhere(tmp_path)


def test_a_key_in_the_name_of_a_model_is_refused_and_not_repeated() -> None:
    with uql.connect(model=f"https://user:{KEY}@host/v1#m", ledger=":memory:") as con:
        con.sql("CREATE TABLE t AS SELECT 'a text that is long enough to be one' AS text")
        with pytest.raises(ConfigError) as caught:
            con.uql('SELECT "the name" FROM t').fetchall()
    assert KEY not in str(caught.value)


def test_short_words_are_no_keys() -> None:
    wire.keep_out("no")
    assert wire.without_keys("no name") == "no name"
