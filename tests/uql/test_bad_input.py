"""Bad input, through the command line and through Python: a clear error or a stated result, never a traceback."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import uql
from uql.base.errors import BindError, ConfigError, UQLError
from uql.cli import main

ORACLE = ("--model", "oracle:oracle.toml", "--ledger", ":memory:")
POSITIVE = '''SELECT id FROM reviews WHERE "the review is positive"'''
COUNT = '''SELECT COUNT(*) AS n FROM {} WHERE "the review is positive"'''


@dataclass(frozen=True, slots=True)
class Cli:
    """One row of the table: what is typed, how it ends, and words that must be said on stderr (or, for code 0, anywhere)."""

    name: str
    words: tuple[str, ...]
    code: int
    says: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)  # written first, in a world of its own
    environment: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""


def query(text: str, *more: str) -> tuple[str, ...]:
    return ("shop.duckdb", "-c", text, *more)


USAGE = [
    Cli("nothing at all", (), 2, ("no query", "uql --help")),
    Cli("a database and no query", ("shop.duckdb",), 2, ("no query",)),
    Cli("a query behind the database", ("shop.duckdb", "SELECT 1"), 2, ("uql shop.duckdb -c 'SELECT 1'",)),
    Cli("an empty query", query("  "), 2, ("is empty",)),
    Cli("-c and -f", query("SELECT 1", "-f", "query.uql"), 2, ("-c and -f",)),
    Cli("a file of queries that is not there", ("-f", "gone.uql"), 2, ("there is no file gone.uql",)),
    Cli("a folder as file of queries", ("-f", "folder"), 2, ("not a file",)),
    Cli("a file of queries that is empty", ("-f", "empty.uql"), 2, ("empty.uql is empty",)),
    Cli(
        "a file of queries that is not UTF-8", ("-f", "latin1.uql"), 2, ("latin1.uql is not UTF-8", "0xe9", "offset 8")
    ),
    Cli("a pipe that is not UTF-8", (), 2, ("standard input is not UTF-8",), stdin=b"SELECT '\xff'"),
    Cli("two formats", query("SELECT 1", "--csv", "--json"), 2, ("--csv and --json",)),
    Cli("an unknown option", query("SELECT 1", "--colour"), 2, ("--colour",)),
    Cli("an option without its value", ("shop.duckdb", "-c"), 2, ("-c",)),
    Cli("a misspelt command", ("modles", "list"), 2, ("did you mean uql models",)),
    Cli("an unknown command", ("frobnicate",), 2, ("commands: init",)),
    Cli("a misspelt sub-command", ("models", "pul"), 2, ("pul",)),
    Cli("a query where the database stands", ("SELECT 1",), 2, ("goes after -c",)),
    Cli("two databases", ("shop.duckdb", "other.duckdb", "-c", "SELECT 1"), 2, ("other.duckdb",)),
    Cli("a folder as database", ("folder", "-c", "SELECT 1"), 2, ("is a folder",)),
    Cli("a corrupt database", ("corrupt.duckdb", "-c", "SELECT 1"), 2, ("corrupt.duckdb cannot be opened",)),
    Cli("a text file as database", ("text.duckdb", "-c", "SELECT 1"), 2, ("text.duckdb cannot be opened",)),
    Cli("a CSV file as database", ("reviews.csv", "-c", "SELECT 1"), 2, ("is not a database", "FROM 'reviews.csv'")),
    Cli("a CSV file that is not there as database", ("gone.csv", "-c", "SELECT 1"), 2, ("gone.csv is not a database",)),
    Cli("a database to read that is not there", ("gone.duckdb", "--read-only", "-c", "SELECT 1"), 2, ("gone.duckdb",)),
    Cli("a database in no folder", ("no/where.duckdb", "-c", "SELECT 1"), 2, ("there is no folder no",)),
    Cli("a statement of DuckDB's that fails", query("DROP TABLE nope"), 1, ("error: UQL509: DuckDB: Catalog Error",)),
    Cli("a file of a function", query("FROM read_csv('nope.csv')"), 1, ("UQL501: nope.csv: there is no such file",)),
    Cli("a file of the home folder", query("FROM '~/nope.csv'"), 1, ("/nope.csv: there is no such file",)),
    Cli("a folder in FROM", query("FROM 'folder'"), 1, ("folder is a folder", "folder/*.csv", "read_text(")),
    Cli("a question about no tables", ("ask", "how many?"), 1, ("no tables to ask about", "--table NAME=FILE")),
    Cli("a folder as output", query("SELECT 1", "-o", "folder"), 2, ("is a folder",)),
    Cli("an output in no folder", query("SELECT 1", "-o", "no/x.csv"), 2, ("cannot write no/x.csv",)),
    Cli("an output below a file", query("SELECT 1", "-o", "reviews.csv/x"), 2, ("cannot write",)),
    Cli("Parquet to the terminal", query("SELECT 1", "-o", "-"), 0, ("1",)),
    Cli("a parameter without a value", query("SELECT 1", "--param", "x"), 2, ("NAME=VALUE",)),
    Cli("a setting without a value", query("SELECT 1", "--set", "budget"), 2, ("NAME=VALUE",)),
]
SETTINGS = [
    Cli("a budget that is a word", query("SELECT 1", "--budget", "x"), 2, ("budget", "'all'")),
    Cli("a negative budget", query("SELECT 1", "--budget", "-1"), 2, ("budget", "whole number of calls from 0")),
    Cli("half a call", query("SELECT 1", "--budget", "1.5"), 2, ("budget",)),
    Cli("a confidence in per cent", query("SELECT 1", "--confidence", "95"), 2, ("share between 0 and 1",)),
    Cli("a confidence of one", query("SELECT 1", "--confidence", "1"), 2, ("confidence",)),
    Cli("a confidence that is a word", query("SELECT 1", "--confidence", "high"), 2, ("confidence",)),
    Cli("a negative cost", query("SELECT 1", "--max-cost", "-1"), 2, ("max_cost", "positive")),
    Cli("an infinite cost", query("SELECT 1", "--max-cost", "inf"), 2, ("max_cost",)),
    Cli("no seconds", query("SELECT 1", "--max-seconds", "0"), 2, ("max_seconds",)),
    Cli("a negative seed", query("SELECT 1", "--seed", "-1"), 2, ("seed",)),
    Cli("a seed that is a word", query("SELECT 1", "--seed", "lucky"), 2, ("seed",)),
    Cli("an unknown setting", query("SELECT 1", "--set", "bugdet=3"), 2, ("did you mean budget",)),
    Cli("an unknown choice", query("SELECT 1", "--set", "on_error=ignore"), 2, ("'null', 'raise', 'drop'",)),
    Cli("a flag that is none", query("SELECT 1", "--set", "exact=perhaps"), 2, ("true or false",)),
    Cli("a bad variable", query("SELECT 1"), 2, ("UQL_BUDGET",), environment={"UQL_BUDGET": "many"}),
    Cli("a misspelt variable", query("SELECT 1"), 0, ("did you mean UQL_BUDGET",), environment={"UQL_BUGDET": "3"}),
    Cli("a broken project file", query("SELECT 1"), 2, ("uql.toml cannot be read",), {"uql.toml": "budget = "}),
    Cli("an unknown setting in a file", query("SELECT 1"), 2, ("uql.toml", "budget"), {"uql.toml": "bugdet = 1"}),
    Cli(
        "a project that sends rows elsewhere",
        query("SELECT 1"),
        2,
        ("uql config trust",),
        {"uql.toml": "model = 'https://example.org/v1#m'"},
    ),
    Cli(
        "a setting of a statement that is not there", query("SELECT 1 AS a WITH (bugdet = 3)"), 2, ("UQL105", "budget")
    ),
    Cli("a setting of a statement that cannot be", query("SELECT 1 AS a WITH (budget = -3)"), 2, ("UQL105", "budget")),
    Cli("SET of something unknown", query("SET uql.bugdet = 3"), 2, ("UQL105", "budget")),
]
LANGUAGE = [
    Cli("no SQL at all", query("hello"), 1, ("UQL1",)),
    Cli("an unterminated double quote", query('SELECT id FROM reviews WHERE "is it'), 1, ("UQL1", "line 1", "^")),
    Cli("an unterminated single quote", query("SELECT 'a FROM reviews"), 1, ("UQL1", "^")),
    Cli("an unterminated comment", query("SELECT 1 /* and"), 1, ("UQL1",)),
    Cli("a parenthesis too few", query("SELECT (1 FROM reviews"), 1, ("UQL1",)),
    Cli("10,000 parentheses", query("SELECT " + "(" * 10_000 + "1" + ")" * 10_000), 1, ("UQL1",)),
    Cli("a zero byte", ("shop.duckdb", "-f", "-"), 1, ("UQL1",), stdin=b"SELECT \x00 FROM reviews"),
    Cli("a clause twice", query('SELECT id FROM reviews LIMIT 1 WHERE "x is so" LIMIT 2'), 1, ("UQL104",)),
    Cli("an empty text", query('SELECT id FROM reviews WHERE ""'), 1, ("UQL",)),
    Cli("a misspelt table", query("SELECT id FROM reviewz"), 1, ("UQL201", "did you mean reviews")),
    Cli("a table that is not there", query(COUNT.format("elsewhere")), 1, ("UQL201", "elsewhere")),
    Cli("a misspelt column", query("SELECT star FROM reviews"), 1, ("UQL202", "stars")),
    Cli("a quoted word beside a column", query('SELECT id FROM reviews WHERE "strs" > 3'), 1, ("UQL101", "stars")),
    Cli("an unknown alias", query("SELECT x.id FROM reviews r"), 1, ("UQL2",)),
    Cli("an unknown function", query('SELECT frob(id) FROM reviews WHERE "it is so"', *ORACLE), 1, ("frob",)),
    Cli("a parameter that is not given", query("SELECT id FROM reviews WHERE stars > $least"), 1, ("least",)),
    Cli("an unknown hole", query('SELECT id FROM reviews WHERE "does {colour} fit"'), 1, ("colour",)),
    Cli("nothing to read", query('SELECT COUNT(*) FROM numbers WHERE "it is large"'), 1, ("UQL207",)),
    Cli("a file that is not there", query("SELECT * FROM 'gone.csv'"), 1, ("gone.csv",)),
    Cli("a folder as table", query("SELECT * FROM 'folder'"), 1, ("folder",)),
    Cli("a value that cannot be cast", query("SELECT 'a'::INTEGER AS i FROM reviews"), 1, ("INT",)),
    Cli("a table that is there already", query("SELECT id FROM reviews TO labels"), 1, ("UQL203", "labels")),
    Cli(
        "writing to a database opened to read",
        query("CREATE TABLE x AS SELECT 1 AS a", "--read-only"),
        1,
        ("read-only",),
    ),
    Cli(
        "more calls than the budget", query('SELECT "the mood" FROM reviews', "--budget", "3", *ORACLE), 1, ("UQL401",)
    ),
]
MODELS = [
    Cli("the local model before it was fetched", query(POSITIVE, "--model", "local"), 3, ("uql models pull",)),
    Cli("a model file that is not there", query(POSITIVE, "--model", "local:gone.gguf"), 3, ("gone.gguf",)),
    Cli("a model file that is none", query(POSITIVE, "--model", "local:model.gguf"), 3, ("model.gguf",)),
    Cli("a model of nobody", query(POSITIVE, "--model", "frob:nicate"), 2, ("frob", "oracle:FILE.toml")),
    Cli("a model without a key", query(POSITIVE, "--model", "openai:gpt-5"), 2, ("OPENAI_API_KEY",)),
    Cli("another model without a key", query(POSITIVE, "--model", "anthropic:claude"), 2, ("ANTHROPIC_API_KEY",)),
    Cli("a server that is not there", query(POSITIVE, "--model", "http://127.0.0.1:9/v1#m"), 3, ("127.0.0.1:9",)),
    Cli("an oracle that is not there", query(POSITIVE, "--model", "oracle:gone.toml"), 2, ("gone.toml",)),
    Cli("a broken oracle", query(POSITIVE, "--model", "oracle:broken_oracle.toml"), 2, ("broken_oracle.toml",)),
    Cli("an oracle without its data", query(POSITIVE, "--model", "oracle:lost_oracle.toml"), 2, ("gone.parquet",)),
    Cli("a model to test that is not there", ("models", "test", "local:gone.gguf"), 3, ("gone.gguf",)),
    Cli("a model to fetch that nobody has", ("models", "pull", "no-such-model"), 3, ("no-such-model",)),
    Cli(
        "a price that nobody knows",
        query(POSITIVE, "--max-cost", "1", "--model", "http://uql.invalid/v1#m"),
        2,
        ("UQL402",),
    ),
]
RESULTS = [
    Cli("an empty table", query(COUNT.format("nothing"), "--csv", *ORACLE), 0, ("n\n0\n",)),
    Cli("a column of NULLs", query(COUNT.format("blanks"), "--csv", *ORACLE), 0, ("n\n0\n",)),
    Cli("no rows", query("SELECT id FROM nothing", "--csv"), 0, ("id\n",)),
    Cli("no budget", query(COUNT.format("reviews"), "--budget", "0", "--csv", *ORACLE), 0, ("n,n_low,n_high\n",)),
    Cli("LIMIT 0", query(POSITIVE + " LIMIT 0", "--csv", *ORACLE), 0, ("id\n",)),
    Cli("LIMIT beyond the table", query(POSITIVE + " LIMIT 1000", "--csv", *ORACLE), 0, ("id\n1\n3\n5\n",)),
    Cli("a new database", ("new.duckdb", "-c", "SELECT 1 AS a", "--csv"), 0, ("a\n1\n", "was not there"), {"x": ""}),
]
BYTES = [
    Cli("bytes that are not UTF-8", ("-c", "SELECT * FROM 'latin1.csv'"), 1, ("latin1.csv",)),
    Cli("a text of a megabyte", ("-c", "SELECT id, length(text) AS n FROM 'huge.csv'", "--csv"), 0, ("1,1000000",)),
    Cli(
        "a question that the oracle has not been told",
        query('SELECT id FROM reviews WHERE "it is about cats"', *ORACLE),
        2,
        ("it is about cats", "it knows: how good it is"),
    ),
    Cli(
        "rows without an answer",
        query(POSITIVE, "--model", "oracle:forgetful.toml", "--ledger", ":memory:"),
        0,
        ("4 rows without an answer: wrong_type 4",),
    ),
    Cli(
        "rows without an answer, strictly",
        query(POSITIVE, "--model", "oracle:forgetful.toml", "--ledger", ":memory:", "--strict"),
        5,
        ("wrong_type",),
    ),
]
TABLE = [*USAGE, *SETTINGS, *LANGUAGE, *MODELS, *RESULTS, *BYTES]


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name.replace(" ", "_"))
def test_the_command_line_ends_as_the_table_says(
    case: Cli, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("own_world" if case.files else "world")
    for name, text in case.files.items():
        Path(name).write_text(text, encoding="utf-8")
    for name, value in case.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(case.stdin), "utf-8"))
    code = main(list(case.words))
    out, err = capsys.readouterr()
    assert code == case.code, out + err
    said = err if case.code else out + err
    for words in case.says:
        assert words in said
    if case.code not in (0, 5):
        assert out == ""
        assert err.strip()
    assert "Traceback" not in out + err
    assert max(map(len, err.splitlines()), default=0) < 400  # a message, not the input read back


def test_the_table_has_sixty_rows_or_more() -> None:
    assert len(TABLE) >= 60
    assert len({case.name for case in TABLE}) == len(TABLE)


@pytest.mark.parametrize("name", ["a corrupt database", "10,000 parentheses", "the local model before it was fetched"])
def test_the_installed_command_ends_the_same_way(name: str, world: Path) -> None:
    case = next(case for case in TABLE if case.name == name)
    command = [sys.executable, "-c", "import sys; from uql.cli import main; sys.exit(main())", *case.words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == case.code
    assert "Traceback" not in done.stderr
    assert all(words in done.stderr for words in case.says)


# --------------------------------------------------------------------------------------------------------------- Python
def connect(**settings: Any) -> uql.Connection:
    return uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger=":memory:", **settings)


def run(text: Any, **parameters: Any) -> Callable[[], object]:
    def act() -> object:
        with connect() as con:
            return con.uql(text, **parameters).fetchall()

    return act


def set_in_a_block(**settings: Any) -> Callable[[], None]:
    def act() -> None:
        with connect() as con, con.settings(**settings):
            pass

    return act


PYTHON: list[tuple[str, Callable[[], object], type[UQLError], str]] = [
    ("a statement that is not a string", run(42), UQLError, "text"),
    ("an empty text", run(""), UQLError, "statement"),
    ("only a comment", run("-- nothing"), UQLError, "statement"),
    ("an unknown argument", lambda: uql.connect(bugdet=3), ConfigError, "did you mean budget"),
    ("an unknown setting, at once", lambda: uql.connect().settings(budjet=3), ConfigError, "did you mean budget"),
    ("a misspelt type", lambda: uql.connect().uql("SELECT 'a'::INTEGR"), BindError, "did you mean INTEGER"),
    (
        "a misspelt type of a text",
        lambda: uql.connect().uql('SELECT "how old" USING (a)::DOUBEL FROM (SELECT 1 AS a)'),
        BindError,
        "did you mean DOUBLE",
    ),
    ("a negative budget", lambda: uql.connect(budget=-1), ConfigError, "budget"),
    ("a budget that is a list", lambda: uql.connect(budget=[1]), ConfigError, "budget"),
    ("a budget that is true", lambda: uql.connect(budget=True), ConfigError, "budget"),
    ("a budget that is not a number", lambda: uql.connect(budget=float("nan")), ConfigError, "budget"),
    ("an infinite budget", lambda: uql.connect(budget=float("inf")), ConfigError, "budget"),
    ("a seed that is infinite", lambda: uql.connect(seed=float("inf")), ConfigError, "seed"),
    ("a confidence of NaN", lambda: uql.connect(confidence=float("nan")), ConfigError, "confidence"),
    ("a folder as database", lambda: uql.connect("folder"), UQLError, "folder"),
    ("a corrupt database", lambda: uql.connect("corrupt.duckdb"), UQLError, "corrupt.duckdb"),
    ("a parameter that is not given", run("SELECT id FROM reviews WHERE stars > $x"), UQLError, "x"),
    ("a parameter of no type", run("SELECT id FROM reviews WHERE stars > $x", x=object()), UQLError, "x"),
    (
        "a word as a text, nested too deep",
        run(f'SELECT id FROM reviews WHERE {"NOT " * 120} "positive"'),
        UQLError,
        "100 deep",
    ),
    ("a bad setting in a block", set_in_a_block(budget="x"), ConfigError, "budget"),
    ("an empty virtual column", lambda: uql.sem("  "), UQLError, "text"),
]


@pytest.mark.parametrize(("name", "act", "kind", "words"), PYTHON, ids=[row[0].replace(" ", "_") for row in PYTHON])
def test_python_raises_an_error_that_says_what_is_wrong(
    name: str, act: Callable[[], object], kind: type[UQLError], words: str, world: Path
) -> None:
    with pytest.raises(kind) as caught:
        act()
    assert words in str(caught.value)
    assert caught.value.code.startswith("UQL")


def test_an_error_of_the_language_points_at_its_place(world: Path) -> None:
    with connect() as con, pytest.raises(UQLError) as caught:
        con.uql("SELECT id\nFROM reviews\nWHERE strs > 3").fetchall()
    assert caught.value.code == "UQL202"
    assert "line 3, column 7" in str(caught.value)
    assert "^^^^" in str(caught.value)


def test_budget_0_is_answered_from_the_ledger_alone(own_world: Path) -> None:
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger="ledger.sqlite") as con:
        assert con.uql(POSITIVE + " ORDER BY id").fetchall() == [(1,), (3,), (5,)]
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger="ledger.sqlite", budget=0) as con:
        again = con.uql(POSITIVE + " ORDER BY id")
        assert again.fetchall() == [(1,), (3,), (5,)]
        assert (again.cost.calls, again.cost.cached) == (0, 6)


def test_budget_0_without_a_ledger_says_what_is_not_known(world: Path) -> None:
    with connect(budget=0) as con:
        result = con.uql(COUNT.format("reviews"))
        estimate = result.estimates["n"]
        assert not isinstance(estimate, list)
        assert (estimate.low, estimate.high, estimate.exact) == (0, 6, False)
        assert result.cost.calls == 0


def test_null_is_never_asked_and_never_a_no(world: Path) -> None:
    with connect() as con:
        assert con.uql(COUNT.format("blanks")).cost.calls == 0
        rows = con.uql('SELECT id, "the mood" AS mood FROM blanks ORDER BY id').fetchall()
        assert rows == [(i, None) for i in range(5)]


def test_an_empty_table_gives_an_exact_nothing(world: Path) -> None:
    with connect() as con:
        result = con.uql(COUNT.format("nothing"))
        assert result.fetchall() == [(0,)]
        assert result.exact
        assert result.cost.calls == 0
