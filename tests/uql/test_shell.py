"""The shell: what is typed, what it prints, and what Ctrl-C does."""

from __future__ import annotations

import io
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

pytest.importorskip("prompt_toolkit")
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from pygments.token import Name, String

import uql
from uql.cli import main
from uql.llm.providers.base import Price
from uql.llm.run_record import Cost
from uql.nl.ask.answer import Answer
from uql.shell.app import Shell, history_file, mistake
from uql.shell.lexer import SEMANTIC, UQLLexer, highlighted

POSITIVE = 'SELECT id, stars FROM reviews WHERE "the review is positive" ORDER BY id;'


class Typed:
    """A shell whose keys a test types."""

    def __init__(self, shell: Shell, keys: PipeInput, out: io.StringIO) -> None:
        self.shell, self.keys, self.out = shell, keys, out

    def __call__(self, *lines: str) -> str:
        """Types lines, then Ctrl-D. Returns what was printed after the greeting."""
        self.keys.send_text("".join(line + "\r" for line in lines) + "\x04")
        self.code = self.shell.loop()
        return re.sub(" +", " ", self.out.getvalue()).partition("\n")[2]


@pytest.fixture
def con(own_world: Path) -> Iterator[uql.Connection]:
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger=":memory:") as con:
        yield con


@pytest.fixture
def typed(con: uql.Connection) -> Iterator[Typed]:
    with create_pipe_input() as keys:
        out = io.StringIO()
        yield Typed(Shell(con, "shop", input=keys, output=DummyOutput(), out=out), keys, out)


def test_a_statement_may_have_several_lines_and_ends_with_a_semicolon(typed: Typed) -> None:
    out = typed("SELECT id,", "  ';' AS a", "FROM reviews WHERE id = 2;")
    assert "│ 2 │ ; │" in out
    assert typed.code == 0


def test_scripts_schemas_models_budgets_and_databases_by_commands(typed: Typed, own_world: Path) -> None:
    (own_world / "two.uql").write_text("SELECT 41 AS a; SELECT 42 AS b;", encoding="utf-8")

    def prompt() -> str:
        return "".join(part for _, part in typed.shell._prompt())

    assert prompt() == "shop (oracle:oracle.toml)> "
    out = typed(
        ".read two.uql", ".read no.uql", ".schema REVIEWS", ".schema nope", ".budget 5", ".budget much", POSITIVE
    )
    assert "│ 41 │" in out and "│ 42 │" in out and "error: there is no file no.uql" in out
    assert 'CREATE TABLE reviews(id INTEGER, "text" VARCHAR, stars INTEGER);' in out
    assert "error: no table nope" in out
    assert "budget: 5" in out and "much" in out and "5 calls" in out
    assert prompt() == "shop (oracle:oracle.toml, 5 calls)> "


def test_another_database_is_opened_with_the_settings_in_force(typed: Typed, own_world: Path) -> None:
    with duckdb.connect(str(own_world / "other.duckdb")) as other:
        other.execute("CREATE TABLE elsewhere (id INTEGER)")
    out = typed(".budget 7", ".open nowhere/x.duckdb", ".open other.duckdb", ".tables", ".budget", ".model")
    assert "error: there is no folder nowhere" in out
    assert "elsewhere (0 rows): id integer" in out and "reviews" not in out
    assert out.count("budget: 7") == 2 and "model: oracle:oracle.toml" in out
    assert typed.shell.name == "other"


def test_a_semantic_statement_shows_rows_and_what_they_cost(typed: Typed) -> None:
    out = typed(POSITIVE)
    assert "3 rows" in out
    assert "6 calls" in out


def test_why_errors_cost_last_and_rerun_speak_of_the_last_result(typed: Typed) -> None:
    out = typed(POSITIVE, ".why 2", ".errors", ".cost", ".last", ".rerun", ".cost")
    assert '"the review is positive" → True (probability 1.00)' in out
    assert "text: The actors are a delight" in out
    assert "every row that was asked has an answer" in out
    assert "last: 6 calls" in out
    assert out.count("│ 3 │ 4 │") == 3
    assert "session: 12 calls" in out or "session: 6 calls, 6 from the ledger" in out


def test_commands_before_any_statement_say_so(typed: Typed) -> None:
    out = typed(".why", ".last", ".rerun", ".explain", ".cost")
    assert out.count("there is no") == 4
    assert "session: nothing was asked" in out


@pytest.mark.parametrize(
    ("typed_so_far", "shown"),
    [
        ("", ""),
        (".tables", ""),
        ("SELECT id FRO", ""),
        ("SELECT id FROM reviews WHERE (stars >", ""),
        ('SELECT id FROM reviews WHERE "the rev', ""),
        ("SELECT nam", ""),
        ("SELECT id FROM reviews WHERE stars > 3;", ""),
        ("SELECT id FROM reviews WHERE stars > > 3 AND ", "UQL100"),
        ("SELECT starz FROM reviews ", "UQL202"),
        ("SELECT id FROM revews;", "UQL201"),
        ('SELECT id FROM reviews WHERE "the review is positive" AND "strs" > 3;', "UQL101"),
    ],
)
def test_the_bar_below_shows_what_is_wrong_while_one_types(con: uql.Connection, typed_so_far: str, shown: str) -> None:
    found = mistake(con, typed_so_far)
    assert found.startswith(shown) and bool(found) == bool(shown)
    assert "\n" not in found


def test_the_pager_gets_every_row_and_whole_cells(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("SELECT i, repeat('x', 500) || i AS long FROM range(200) t(i);", ".page")
    paged = capsys.readouterr().out
    assert "x" * 500 + "137" in paged and paged.count("xxxx│") == 0
    assert "x" * 500 not in typed.out.getvalue()


def test_a_wrong_command_is_told_the_right_one(typed: Typed) -> None:
    out = typed(".tabels", "SELECT 1 AS a;", ".why x", ".mode")
    assert "did you mean .tables?" in out
    assert "takes the number of a row" in out
    assert "choices: table, csv, json, markdown" in out


@pytest.mark.parametrize("leave", ["\\q", "exit", "quit;", ".exit"])
def test_commands_of_psql_and_duckdb_are_known(typed: Typed, leave: str) -> None:
    out = typed(
        "\\d reviews",
        "\\dt",
        "help",
        ".output rows.csv",
        "SELECT 1 AS a;",
        ".mode boxes",
        ".read",
        leave,
        "SELECT 77 AS b;",
    )
    assert out.count("reviews (6 rows): id integer") == 2 and "leave, as Ctrl-D does" in out
    assert "1 row written to rows.csv" in out
    assert (
        "error: rows cannot be shown as boxes; choices: table" in out and "error: .read takes the name of a file" in out
    )
    assert "77" not in out and typed.code == 0


def test_explain_asks_nobody(typed: Typed) -> None:
    out = typed(".explain " + POSITIVE, ".cost")
    assert "SemFilter" in out
    assert "session: nothing was asked" in out


def test_modes_and_files(typed: Typed) -> None:
    out = typed(
        ".mode csv",
        "SELECT 1 AS a, 'x' AS b;",
        ".once rows.json",
        "SELECT 2 AS a;",
        ".once nowhere/rows.csv",
        ".once rows.xlsx",
        "SELECT 3 AS a;",
    )
    assert "rows.xlsx has a format that cannot be written" in out
    assert "a,b\n1,x\n" in out
    assert "1 row written to rows.json" in out
    assert Path("rows.json").read_text() == '[\n{"a":2}\n]\n'
    assert "cannot be written" in out
    assert "a\n3\n" in out


def test_tables_shows_columns_and_what_is_text(typed: Typed) -> None:
    out = typed(".tables", ".tables labels")
    assert "reviews (6 rows): id integer, text varchar (text), stars integer" in out
    assert out.count("labels (6 rows)") == 2


def test_an_error_shows_its_place_and_the_shell_goes_on(typed: Typed) -> None:
    out = typed("SELECT nope FROM reviews;", "SELECT 7 AS a;")
    assert "UQL202" in out
    assert "^^^^" in out
    assert "│ 7 │" in out


def test_several_statements_each_show_their_rows(typed: Typed) -> None:
    out = typed("SELECT 1 AS a; SELECT 2 AS b;")
    assert "│ 1 │" in out
    assert "│ 2 │" in out


def test_help_lists_every_command(typed: Typed) -> None:
    from uql.shell.app import COMMANDS

    out = typed(".help")
    assert all(f"{name} " in out for name in (*COMMANDS, "? question"))


def test_quit_leaves(typed: Typed) -> None:
    assert "│" not in typed(".quit", "SELECT 1 AS a;")
    assert typed.code == 0


@pytest.mark.parametrize(("answer", "calls"), [("y", 6), ("n", 0), ("", 0)])
def test_a_dear_statement_is_asked_about_first(answer: str, calls: int, own_world: Path) -> None:
    from uql.llm.providers import open_provider

    with uql.connect(model="oracle:oracle.toml", ledger=":memory:") as plain:
        model = open_provider("oracle:oracle.toml", plain.configured)
    model.price = Price(1000.0, 1000.0)  # type: ignore[misc]
    with uql.connect("shop.duckdb", model=model, ledger=":memory:") as con, create_pipe_input() as keys:
        out = io.StringIO()
        shell = Shell(con, input=keys, output=DummyOutput(), out=out)
        keys.send_text(POSITIVE + "\r" + answer + "\r\x04")
        shell.loop()
        assert "more than confirm_over = $0.1" in out.getvalue()
        said = out.getvalue()
        assert "about $" in said and ", 6 calls" in said
        assert shell.total.calls == calls
        assert ("not run" in out.getvalue()) is (calls == 0)


def test_a_question_without_words_is_not_asked(typed: Typed) -> None:
    assert "takes a question" in typed("?")


@pytest.mark.parametrize(("usd", "typed_in", "runs"), [(0.01, "", True), (5.0, "y", True), (5.0, "n", False)])
def test_a_question_shows_its_uql_first_and_asks_where_it_is_dear(
    usd: float, typed_in: str, runs: bool, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(con: uql.Connection, question: str, *, confirm: Any, confirm_over: float) -> Any:
        assert question == "how many"
        if not confirm(SimpleNamespace(usd_most=usd), "n: uql\n  SELECT COUNT(*) FROM reviews"):
            return Answer(question, cannot="it was not confirmed")
        return Answer(
            question, "there are 6", value=6, cost=Cost(calls=3), notes=["not sure: 1 of 2"], readings=("a", "b")
        )

    monkeypatch.setattr(uql.Connection, "ask", ask)
    out = typed("? how many", *([typed_in] if typed_in else []))
    assert "SELECT COUNT(*) FROM reviews\n" in out
    assert out.endswith("there are 6\nnot sure: 1 of 2\nmay also mean: b\n") is runs
    assert out.endswith("This cannot be answered: it was not confirmed\n") is not runs
    assert ("more than confirm_over" in out) is (usd > 1)
    assert typed.shell.total.calls == (3 if runs else 0)


def test_ctrl_c_twice_leaves_and_once_does_not(typed: Typed) -> None:
    typed.keys.send_text("SELECT\x03")
    time.sleep(0.05)
    assert "│ 1 │" in typed("SELECT 1 AS a;")
    assert "Ctrl-C again leaves" in typed.out.getvalue()
    typed.keys.send_text("\x03\x03")
    assert typed.shell.loop() == 130


def interrupting(shell: Shell, times: int) -> threading.Thread:
    """Presses Ctrl-C from outside: when the first row was answered, and again when the shell has said that it stops."""
    answered = threading.Event()
    shell.con.on_event(lambda event: answered.set() if event.kind == "call" else None)

    def work() -> None:
        assert answered.wait(60)
        for _ in range(times):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            deadline = time.monotonic() + 60
            while "Ctrl-C again leaves" not in shell.out.getvalue() and time.monotonic() < deadline:  # type: ignore[attr-defined]
                time.sleep(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.fixture
def slow(own_world: Path) -> Iterator[Shell]:
    text = Path("oracle.toml").read_text().replace('key = "id"', 'key = "id"\nlatency_s = 0.6')
    Path("slow.toml").write_text(text)
    with (
        uql.connect("shop.duckdb", model="oracle:slow.toml", ledger="ledger.sqlite", concurrency=1) as con,
        create_pipe_input() as keys,
    ):
        yield Shell(con, input=keys, output=DummyOutput(), out=io.StringIO())


def test_ctrl_c_once_ends_the_statement_and_keeps_the_answers(slow: Shell) -> None:
    thread = interrupting(slow, 1)
    slow.handle(POSITIVE)
    thread.join()
    out = slow.out.getvalue()  # type: ignore[attr-defined]
    assert "what was answered is kept" in out
    first = slow.total.calls
    assert 0 < first < 6
    slow.handle(POSITIVE)
    assert slow.total.calls == 6
    assert slow.last is not None
    assert slow.last.fetchall() == [(1, 5), (3, 4), (5, 5)]


def test_ctrl_c_twice_ends_the_shell(slow: Shell) -> None:
    thread = interrupting(slow, 2)
    with pytest.raises(KeyboardInterrupt):
        slow.handle(POSITIVE)
    thread.join()


def test_history_is_kept_under_the_home_and_its_texts_are_completed(typed: Typed, con: uql.Connection) -> None:
    typed(POSITIVE)
    assert history_file().is_relative_to(Path.cwd().parent / "home")
    assert history_file().stat().st_mode & 0o077 == 0
    with create_pipe_input() as keys:
        again = Shell(con, input=keys, output=DummyOutput(), out=io.StringIO())
        assert completions(again, 'SELECT 1 WHERE "the rev') == ['the review is positive"']


def completions(shell: Shell, before: str, after: str = "") -> list[str]:
    completer = shell._session.completer
    assert completer is not None
    document = Document(before + after, len(before))
    return [c.text for c in completer.get_completions(document, CompleteEvent(completion_requested=True))]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("SELECT * FROM rev", "", ["reviews"]),
        ("SELECT st", " FROM reviews", ["stars"]),
        ("SELECT st", "", ["stars"]),
        ("SET uql.conf", "", ["uql.confidence", "uql.confirm_over"]),
        ("SELECT 1 WITH (max_c", "", ["max_cost"]),
        (".w", "", [".why"]),
        ("SELECT * FROM reviews WHE", "", ["WHEN", "WHERE"]),
    ],
)
def test_completion_knows_tables_columns_settings_and_commands(
    before: str, after: str, found: list[str], typed: Typed
) -> None:
    offered = completions(typed.shell, before, after)
    assert [name for name in found if name in offered] == found
    assert all(name.lower().startswith(before.split()[-1].lower().lstrip("(")) for name in offered)


def test_text_for_the_model_has_a_colour_of_its_own() -> None:
    text = """SELECT "the mood" AS "m", t."a b" FROM "t" WHERE "it is so" AND x = "y" AND z LIKE "w%" -- "c\""""
    kinds = {value: kind for kind, value in UQLLexer().get_tokens(text) if value.startswith('"')}
    assert {value for value, kind in kinds.items() if kind is SEMANTIC} == {'"the mood"', '"it is so"'}
    assert {value for value, kind in kinds.items() if kind is Name.Variable} == {'"m"', '"a b"', '"t"'}
    assert {value for value, kind in kinds.items() if kind is String.Double} == {'"y"', '"w%"'}
    assert highlighted(text, color=False) == text
    assert "\x1b[" in highlighted(text, color=True)


def test_the_shell_needs_a_terminal(
    world: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1;"))
    assert main(["shell"]) == 2
    assert "uql -f FILE" in capsys.readouterr().err
