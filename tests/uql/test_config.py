"""Settings come from five places, the nearest winning, and each value knows where it is from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import uql
from uql.base import toml_file
from uql.base.config import load, misspelt_variables, user_file
from uql.base.errors import ConfigError
from uql.base.settings import NAMES, Settings
from uql.cli import main
from uql.llm.prices import price_of


@pytest.fixture(autouse=True)
def empty_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, no user's file, no UQL_* variable."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in NAMES:
        monkeypatch.delenv(f"UQL_{name.upper()}", raising=False)


def write_user_file(text: str) -> Path:
    path = user_file()
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_every_value_is_the_default() -> None:
    settings, origins = load()
    assert settings.confidence == 0.95
    assert set(origins) == NAMES
    assert set(origins.values()) == {"default"}


def test_each_layer_wins_over_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    user = write_user_file("budget = 1\nseed = 1\nconfidence = 0.5\nmax_seconds = 30\nrecall = 0.6")
    Path("pyproject.toml").write_text("[tool.uql]\nbudget = 2\nseed = 2\nconfidence = 0.6\nmax_seconds = 20\n")
    Path("uql.toml").write_text("budget = 3\nseed = 3\nconfidence = 0.7\n")
    monkeypatch.setenv("UQL_BUDGET", "4")
    monkeypatch.setenv("UQL_SEED", "4")
    settings, origins = load(budget=5)
    assert (settings.budget, settings.seed, settings.confidence, settings.max_seconds, settings.recall) == (
        5, 4, 0.7, 20.0, 0.6,
    )  # fmt: skip
    here = Path.cwd()
    assert {name: origins[name] for name in ("budget", "seed", "confidence", "max_seconds", "recall", "model")} == {
        "budget": "argument",
        "seed": "UQL_SEED",
        "confidence": str(here / "uql.toml"),
        "max_seconds": f"{here / 'pyproject.toml'} [tool.uql]",
        "recall": str(user),
        "model": "default",
    }


def test_none_is_not_given_and_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_MODEL", "")
    Path("uql.toml").write_text("budget = 'all'")
    settings, origins = load(budget=None, model=None)
    assert (settings.budget, settings.model) == ("all", None)
    assert origins["budget"].endswith("uql.toml")
    assert origins["model"] == "default"


def test_a_pyproject_of_something_else_is_not_read() -> None:
    Path("pyproject.toml").write_text("this is not toml")
    assert load()[1]["budget"] == "default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budgett = 3", "did you mean budget"),
        ("budget = -3", "whole number of calls"),
        ("confidence = 95", "share between 0 and 1"),
        ("budget = ", "cannot be read"),
        ("seed = [1]", "whole number"),
        ("[endpoints.x]\nkey_env = 'A'", "may not set endpoints"),
        ("model = 'https://example.org/v1#m'", "may not set model"),
        ("embedder = 'http://example.org/v1#m'", "may not set embedder"),
    ],
)
def test_a_bad_project_file_is_named_with_what_is_wrong(text: str, words: str) -> None:
    Path("uql.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert "uql.toml" in str(caught.value)
    assert words in str(caught.value)


def test_a_file_that_is_not_utf8_or_not_a_file_is_named() -> None:
    Path("uql.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(ConfigError, match=r"uql\.toml cannot be read"):
        load()
    Path("uql.toml").unlink()
    Path("uql.toml").mkdir()
    with pytest.raises(ConfigError, match=r"uql\.toml cannot be read"):
        load()


def test_the_user_may_set_an_endpoint_and_so_may_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    write_user_file("model = 'http://localhost:8000/v1#m'")
    assert load()[0].model == "http://localhost:8000/v1#m"
    monkeypatch.setenv("UQL_MODEL", "http://localhost:9000/v1#m")
    assert load()[0].model == "http://localhost:9000/v1#m"


def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_CONFIDENCE", "2")
    with pytest.raises(ConfigError, match="UQL_CONFIDENCE"):
        load()


def test_a_misspelt_variable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_BUGDET", "3")
    monkeypatch.setenv("UQL_HOME", "/somewhere")
    monkeypatch.setenv("UQL_SOMETHING_ELSE", "1")
    assert misspelt_variables() == {"UQL_BUGDET": "UQL_BUDGET"}


OWN = """plugins = ["mine"]

[endpoints."https://gw.example/v1"]
key_env = "GW_KEY"
tokens_per_minute = 1000

[prices."openai:gpt-x"]
input = 2.0
output = 8
"""


def test_the_user_names_servers_their_keys_prices_and_plug_ins() -> None:
    write_user_file(OWN)
    settings, origins = load()
    assert settings.endpoints[0].origin == "https://gw.example:443" and settings.endpoints[0].key_env == "GW_KEY"
    assert settings.plugins == ("mine",) and origins["plugins"].endswith("uql.toml")
    price = price_of("openai:gpt-x", settings)
    assert price is not None and (price.input, price.output) == (2.0, 8.0)
    assert price_of("openai:gpt-unknown", settings) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[endpoints.x]\nkey_env = 'A'", "not an http"),
        ("[endpoints.'https://h']\nkey = 'sk-secret-1'", "there is no 'key'"),
        ("[endpoints.'https://h']\nkey_env = 'sk-secret-1'", "never holds the key"),
        ("[endpoints.'https://h']\nconcurrency = 0", "above 0"),
        ("[prices.m]\ninput = 1", "needs input and output"),
        ("[prices.m]\ninput = -1\noutput = 1", "not possible"),
        ("prices = 3", "table of tables"),
        ("plugins = 'x'", "list of names"),
    ],
)
def test_a_server_or_price_that_cannot_be_is_refused_and_no_key_is_repeated(text: str, words: str) -> None:
    write_user_file(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert words in str(caught.value) and "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("text", [OWN, "plugins = ['x']", "[prices.m]\ninput=0\noutput=0", "model = 'http://h/v1#m'"])
def test_a_projects_file_says_where_rows_and_keys_go_only_once_it_is_trusted_and_as_it_was(text: str) -> None:
    path = Path("uql.toml")
    path.write_text(text)
    with pytest.raises(ConfigError, match="uql config trust"):
        load()
    assert main(["config", "trust", "--yes"]) == 0
    assert load()[0] != Settings()
    path.write_text(text + "\n# another line\n")
    with pytest.raises(ConfigError, match="uql config trust"):
        load()
    assert main(["config", "trust", "--yes"]) == 0
    load()
    assert main(["config", "trust", "--remove"]) == 0
    with pytest.raises(ConfigError, match="uql config trust"):
        load()


def test_a_file_that_changes_while_it_is_checked_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values and what is compared with the trusted file are of one reading."""
    path = Path("uql.toml")
    path.write_text("plugins = ['mine']")
    assert main(["config", "trust", "--yes"]) == 0
    read, seen = toml_file.content, list[Path]()

    def swapped(file: Path) -> bytes:
        if file.name == "uql.toml" and file.parent == Path.cwd():
            seen.append(file)
            return b"plugins = ['evil']" if len(seen) == 1 else read(file)
        return read(file)

    monkeypatch.setattr(toml_file, "content", swapped)
    with pytest.raises(ConfigError, match="uql config trust"):
        load()
    assert seen


def test_what_is_trusted_is_what_was_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("uql.toml")
    path.write_text("plugins = ['mine']")

    def confirmed(*_: object, **__: object) -> bool:
        path.write_text("plugins = ['evil']")
        return True

    monkeypatch.setattr("typer.confirm", confirmed)
    assert main(["config", "trust"]) == 0
    assert "mine" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="uql config trust"):
        load()
    path.write_text("plugins = ['mine']")
    assert load()[0].plugins == ("mine",)


def test_trust_shows_the_file_and_asks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pyproject.toml").write_text("[tool.uql]\nplugins = ['mine']\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["config", "trust"]) == 0
    said = capsys.readouterr().err
    assert "plugins = ['mine']" in said and "Trust it as it is?" in said
    with pytest.raises(ConfigError, match="uql config trust"):
        load()
    assert main(["config", "trust", "nowhere"]) == 2


@pytest.mark.parametrize("name", ["plugins", "endpoints", "prices"])
def test_no_statement_names_plug_ins_servers_or_prices(name: str) -> None:
    with uql.connect(ledger=":memory:") as con:
        for statement in (f"SET uql.{name} = 'x'", f"SELECT 1 WITH ({name} = 'x')"):
            with pytest.raises(ConfigError):
                con.uql(statement)


def test_descriptions_are_switched_on_and_off() -> None:
    assert Settings().with_values(describe="off").describe is False
    assert Settings().with_values(describe="on").describe is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", 1e308),
        ("budget", 2**63),
        ("seed", 10**34),
        ("error", 1e-300),
        ("confidence", 0.9999999999999999),
        ("confidence", 1e-300),
        ("total", 1 - 1e-15),
        ("max_tokens", 2**64),
    ],
)
def test_a_number_that_nothing_can_be_counted_with_is_refused_where_it_is_set(name: str, value: float) -> None:
    """They were an OverflowError of SQLite, a ZeroDivisionError or a StatisticsError of the run."""
    with pytest.raises(ConfigError) as raised:
        Settings().with_values(**{name: value})
    assert raised.value.code == "UQL105" and name in str(raised.value)


def test_the_largest_and_smallest_numbers_that_may_be_set_run() -> None:
    from hash_model import HashModel

    far = {"seed": 2**63 - 1, "max_tokens": 2**63 - 1, "error": 1e-9, "confidence": 1 - 1e-9, "budget": 2**63 - 1}
    assert Settings().with_values(seed=2**53 + 1).seed == 2**53 + 1
    for name, value in far.items():
        with uql.connect(model=HashModel({"it is good": 0.4}), ledger=":memory:", **{name: value}) as con:
            con.execute("CREATE TABLE notes AS SELECT 'note ' || i AS body FROM range(100) t(i)")
            assert con.uql('SELECT COUNT(*) FROM notes WHERE "it is good"').fetchall()


def test_a_folder_with_a_hostile_name_sends_no_signs_to_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shop\x1b]0;title\x07\x1b[2J"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path("uql.toml").write_text("budget = 5")
    ledger = str(folder / "l.sqlite")
    for command in (["config", "show"], ["cache", "stats", "--ledger", ledger], ["doctor", "--no-call"]):
        main(command)
        out, err = capsys.readouterr()
        assert "\\x1b" in out and "\x1b" not in out + err and "\x07" not in out + err, command


def test_a_user_without_a_home_is_asked_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pwd = pytest.importorskip("pwd")

    def no_entry(uid: int) -> None:  # as in a container that runs under a number which has no name
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", no_entry)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "UQL_HOME"):
        monkeypatch.delenv(name, raising=False)
    for command in (["-c", "SELECT 1"], ["doctor"], ["runs"]):
        assert main(command) == 2
        assert "set HOME to a folder that can be written" in capsys.readouterr().err
