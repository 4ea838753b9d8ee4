"""The first minutes: keys are kept for the user alone, `uql init` tries a model before it writes it, `uql doctor` says what works."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.backends.fail
import keyring.errors
import pytest

import uql
from uql.base import extras, keys
from uql.base.config import load
from uql.base.errors import AuthError, ConfigError
from uql.base.settings import Settings
from uql.cli import main
from uql.llm.providers import HOSTED, compatible, open_provider
from uql.llm.providers.http_client import vendor_key

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
from loopback import Server, chat, chat_reply, serve

SECRET = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def no_keys(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in keys.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    compatible._probed.clear()


@pytest.fixture
def server() -> Iterator[Server]:
    def says(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if "response_format" in body:
            return chat(body, headers)
        return chat_reply("Yes", tokens=True)

    with serve({"/v1/chat/completions": says}) as told:
        yield told


def type_in(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


# ---------------------------------------------------------------------------------------------------------------- keys
def test_a_key_is_kept_for_the_user_alone_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AuthError, match="there is no key for OpenAI") as error:
        vendor_key("OPENAI_API_KEY", "OpenAI")
    assert "uql keys set OPENAI_API_KEY" in str(error.value.help)
    type_in(f"{SECRET}\n", monkeypatch)
    assert main(["keys", "set", "openai"]) == 0
    assert vendor_key("OPENAI_API_KEY", "OpenAI") == SECRET
    assert stat.S_IMODE(keys.keys_file().stat().st_mode) == 0o600
    assert main(["keys", "list"]) == 0
    assert main(["doctor", "--no-call"]) == 0
    assert main(["config", "show"]) == 0
    shown = capsys.readouterr()
    assert "OPENAI_API_KEY" in shown.out and SECRET not in shown.out + shown.err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert vendor_key("OPENAI_API_KEY", "OpenAI") == "sk-of-the-environment"
    assert keys.places()["OPENAI_API_KEY"] == "environment"
    assert main(["keys", "remove", "openai"]) == 0 and main(["keys", "remove", "openai"]) == 2
    assert SECRET not in keys.keys_file().read_text()


@pytest.mark.parametrize(
    ("words", "typed"), [(["set", "nobody"], "k\n"), (["set", "openai"], "\n"), (["set", "openai"], "two words\n")]
)
def test_a_key_that_cannot_be_is_refused(words: list[str], typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(typed, monkeypatch)
    assert main(["keys", *words]) == 2
    assert not keys.keys_file().exists()


def test_a_damaged_file_of_keys_is_said() -> None:
    keys.store("OPENAI_API_KEY", SECRET)
    keys.keys_file().write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        keys.find("OPENAI_API_KEY")


class Keyring(keyring.backend.KeyringBackend):
    """A keyring that keeps what it is given until the test ends.

    Args:
        locked: it raises what a desktop's keyring raises when nobody unlocks it.
    """

    priority = 5

    def __init__(self, locked: bool = False) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}
        self.locked = locked

    def check(self) -> None:
        if self.locked:
            raise keyring.errors.KeyringLocked("the collection is locked")

    def get_password(self, service: str, username: str) -> str | None:
        self.check()
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.check()
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.check()
        del self.held[service, username]


@pytest.fixture
def desktop() -> Iterator[Keyring]:
    """A desktop's keyring in place of the one that keeps nothing (tests/conftest.py)."""
    before, made = keyring.get_keyring(), Keyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_key_is_kept_in_the_keyring_where_there_is_one(
    desktop: Keyring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.store("OPENAI_API_KEY", "sk-old", in_file=True)
    for name in ("openai", "MY_KEY"):
        type_in(f"{SECRET}\n", monkeypatch)
        assert main(["keys", "set", name]) == 0
    assert capsys.readouterr().out == "keyring\nkeyring\n"
    assert desktop.held == {("uql", "OPENAI_API_KEY"): SECRET, ("uql", "MY_KEY"): SECRET}
    assert "sk-" not in keys.keys_file().read_text(), "the file forgets the key that it had"
    assert vendor_key("OPENAI_API_KEY", "OpenAI") == vendor_key("MY_KEY", "a gateway") == SECRET
    assert main(["keys", "list"]) == 0
    assert capsys.readouterr().out == "MY_KEY  keyring\nOPENAI_API_KEY  keyring\n"
    assert main(["keys", "remove", "openai"]) == 0 and main(["keys", "remove", "openai"]) == 2
    assert list(desktop.held) == [("uql", "MY_KEY")] and list(keys.places()) == ["MY_KEY"]


def test_a_key_is_kept_in_the_file_on_demand(desktop: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
    keys.store("OPENAI_API_KEY", "sk-old")
    type_in(f"{SECRET}\n", monkeypatch)
    assert main(["keys", "set", "openai", "--file"]) == 0
    assert desktop.held == {} and vendor_key("OPENAI_API_KEY", "OpenAI") == SECRET
    assert keys.places() == {"OPENAI_API_KEY": str(keys.keys_file())}


def test_a_locked_keyring_is_an_error_that_says_what_to_do(
    desktop: Keyring, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    desktop.locked = True
    type_in(f"{SECRET}\n", monkeypatch)
    assert main(["keys", "set", "openai"]) == 2
    said = capsys.readouterr().err
    assert "the collection is locked" in said and "--file" in said and "Traceback" not in said
    with pytest.raises(ConfigError, match="the collection is locked"):
        vendor_key("OPENAI_API_KEY", "OpenAI")
    type_in(f"{SECRET}\n", monkeypatch)
    assert main(["keys", "set", "openai", "--file"]) == 0
    assert vendor_key("OPENAI_API_KEY", "OpenAI") == SECRET, "the file does while the keyring is locked"
    assert main(["doctor", "--no-call"]) == 3
    assert "the collection is locked" in capsys.readouterr().out


def test_a_keyring_without_a_backend_keeps_nothing() -> None:
    assert isinstance(keyring.get_keyring(), keyring.backends.fail.Keyring)
    assert keys.find("OPENAI_API_KEY") is None and not keys.remove("OPENAI_API_KEY")
    assert keys.store("OPENAI_API_KEY", SECRET) == keys.place() == str(keys.keys_file())
    assert keys.find("OPENAI_API_KEY") == SECRET


def test_a_server_gets_the_key_that_its_endpoint_names(server: Server) -> None:
    import uql

    keys.store("MY_KEY", SECRET)
    with uql.connect(
        model=f"{server.url}/v1#m", ledger=":memory:", endpoints={server.url: {"key_env": "MY_KEY"}}
    ) as con:
        con.sql("CREATE TABLE t AS SELECT 'a text of some length' AS body")
        assert con.uql('SELECT * FROM t WHERE "it is so"').fetchall()
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}


# ---------------------------------------------------------------------------------------------------------------- init
def test_init_tries_a_model_and_writes_it(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    model = f"{server.url}/v1#m"
    assert main(["init", "--model", model, "--price", "1,2", "--budget", "64", "--max-cost", "0.5"]) == 0
    said = capsys.readouterr().err
    assert "answers in" in said and "a call" in said and server.bodies
    held = tomllib.loads(Path("uql.toml").read_text())
    assert held == {"model": model, "budget": 64, "max_cost": 0.5, "prices": {model: {"input": 1.0, "output": 2.0}}}
    settings, origins = load()  # and it is trusted
    assert settings.model == model and settings.budget == 64 and origins["model"].endswith("uql.toml")


def test_init_writes_no_model_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--model", "http://127.0.0.1:9/v1#m"]) == 3
    assert not Path("uql.toml").exists() and "error" in capsys.readouterr().err
    assert main(["init", "--model", "nothing:such"]) == 2
    assert main(["init", "--model", "local", "--price", "cheap", "--no-call"]) == 2
    assert main(["init", "--model", "http://127.0.0.1:9/v1#m", "--no-call"]) == 0
    assert tomllib.loads(Path("uql.toml").read_text()) == {"model": "http://127.0.0.1:9/v1#m"}


@pytest.mark.parametrize("words", [["7"], ["http"], ["8", "opanai", "7"]], ids=["number", "name", "at the third try"])
def test_the_wizard_asks_on_a_terminal(
    words: list[str], server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from uql.command import init

    answers = iter([*words, f"{server.url}/v1", "m", "0.1, 0.2"])
    asked: list[str] = []

    def prompt(text: str, **_: Any) -> str:
        asked.append(text)
        return next(answers)

    monkeypatch.setattr(init.typer, "prompt", prompt)
    monkeypatch.setattr(init.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr(init.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["init"]) == 0
    assert tomllib.loads(Path("uql.toml").read_text()) == {"model": f"{server.url}/v1#m"}
    said = capsys.readouterr().err
    assert len(asked) == 2 + len(words) and "Which model" in said and "price: $0 + $0" in said and "answers in" in said
    assert init._ask_price("https://host.example/v1#m") == (0.1, 0.2), "a price that is not known is asked for"


# ---------------------------------------------------------------------------------------------------------------- locks
def test_a_command_reads_a_database_that_another_process_has_open(capsys: pytest.CaptureFixture[str]) -> None:
    holding = "import duckdb; con = duckdb.connect('shop.duckdb', read_only=True); print('open', flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        assert main(["shop.duckdb", "-c", "SELECT COUNT(*) AS n FROM reviews", "--csv"]) == 0
        told = capsys.readouterr()
        assert told.out == "n\n6\n" and "this one only reads it" in told.err
        assert main(["shop.duckdb", "-c", "CREATE TABLE t AS SELECT 1 AS a"]) == 1
        with pytest.raises(uql.UQLError) as error:
            uql.connect("shop.duckdb")
        assert error.value.help == "close the other process, or open it with read_only=True where that one reads only"
    finally:
        holder.communicate("")


# -------------------------------------------------------------------------------------------------------------- doctor
def test_a_server_that_is_not_there_is_said_in_the_words_of_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list", "http://127.0.0.1:9/v1"]) == 3
    assert "lists no models: cannot connect to 127.0.0.1:9: Connection refused\n" in capsys.readouterr().err


def test_doctor_says_what_answers_and_what_it_takes(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", f"{server.url}/v1#m", "--json"]) == 0
    found = {(check["about"], check["name"]): check for check in json.loads(capsys.readouterr().out)}
    trial = found["model", f"{server.url}/v1#m"]
    assert trial["state"] == "ok" and "tokens" in trial["detail"] and "s," in trial["detail"]
    assert found["version", "uql"]["detail"].startswith("0.1.0, Python 3.")
    assert {name for about, name in found if about == "extra"} == set(extras.EXTRAS)
    assert main(["doctor", "--model", "http://127.0.0.1:9/v1#m"]) == 3
    out = capsys.readouterr().out
    assert "fails" in out and "127.0.0.1:9" in out


def test_an_oracle_is_tried_with_a_text_and_a_row_of_its_own(
    own_world: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("oracle", "forgetful"):  # the other one has no answer about the last rows
        assert main(["doctor", "--model", f"oracle:{name}.toml"]) == 0, name
        assert "answers in 0." in capsys.readouterr().out
    assert main(["init", "--model", "oracle:oracle.toml"]) == 0
    alone = (own_world / "oracle.toml").read_text().partition("[answers]")[0] + '[answers]\n"same" = "a.id = b.id"\n'
    (own_world / "pairs.toml").write_text(alone)
    assert main(["doctor", "--model", "oracle:pairs.toml"]) == 3
    assert "the oracle pairs.toml has no answer about a row" in capsys.readouterr().out


def test_doctor_names_the_extra_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "starlette" else object())
    assert main(["doctor", "--no-call"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if " ui " in line)
    assert "missing" in line and "starlette" in line and extras.install("ui") in line


def test_the_extras_are_those_of_the_project() -> None:
    from test_dependencies import PROJECT, module

    listed = PROJECT["optional-dependencies"]
    assert set(extras.EXTRAS) == set(listed) - {
        "all",
        "dev",
        "docs",
    }  # docs builds the site, and no code of the package
    for extra, (_, modules) in extras.EXTRAS.items():
        assert set(modules) == {module(requirement) for requirement in listed[extra]}, extra


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini", *HOSTED[1:], "systemone"])
def test_the_key_of_a_kind_of_model_is_set_by_the_name_of_the_kind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://a.openai.azure.com")
    with pytest.raises(AuthError) as raised:
        open_provider(f"{kind}:m", Settings())
    assert f"uql keys set {keys.variable(kind)}," in raised.value.help
