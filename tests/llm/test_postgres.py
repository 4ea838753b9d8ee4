"""A ledger in a PostgreSQL server: what it says where it cannot be used, what it does where the server goes away, who sees what."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hash_model import HashModel
from test_in_flight import EVERY, ROWS, Slow
from test_ledger_contract import connect

import uql
from uql.base.errors import ConfigError, DataError
from uql.base.postgres_url import without_password
from uql.benchmarks.gate.postgres_server import PASSWORD, NoServer, Server
from uql.cli import main
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry
from uql.llm.providers.base import Answer

ledger_postgres = pytest.importorskip("uql.llm.ledger_postgres", reason="the extra cluster is not installed")
URLS = [  # that hold a password, written well or not
    f"postgresql://ada:{quote(PASSWORD, safe='')}@127.0.0.1:PORT/postgres",
    f"postgresql://ada:{PASSWORD}@127.0.0.1:PORT/postgres",
    f"postgres://ada@127.0.0.1:PORT/postgres?password={quote(PASSWORD, safe='')}&sslmode=prefer",
    f"postgresql://ada:{PASSWORD}@127.0.0.1:PORT/nowhere",
    "postgresql://ada:wrongs3cret@127.0.0.1:PORT/postgres",
    "postgresql://ada:s3cret@127.0.0.1:PORT/postgres?nosuchoption=1",
    "postgresql://ada:s3cret@[::1/postgres",
    "postgresql://ada:s3@s3cret@127.0.0.1:PORT/postgres",
    "postgresql://ada:s3cret:x?y@127.0.0.1:PORT/postgres",
    "postgresql://ada:#s3cret@127.0.0.1:PORT/postgres",
    "postgresql://ada:s3cret@127.0.0.1:1/postgres",
]


@pytest.fixture
def by_tcp(server: Server) -> str:
    """The URL of a database of its own for the user ada, with the password."""
    name = server.database().split("@/")[1].partition("?")[0]
    server.sql(f"GRANT CREATE ON DATABASE {name} TO ada")
    return f"postgresql://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/{name}"


@pytest.mark.parametrize("url", URLS)
def test_the_password_stands_in_nothing_that_is_printed(url: str) -> None:
    shown = without_password(url)
    assert "s3cret" not in shown and "of@ada" not in shown and shown.startswith("postgres") and "ada" in shown


@pytest.mark.parametrize("url", URLS[1:])
def test_a_server_that_cannot_be_used_is_an_error_in_words_without_the_password(server: Server, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Ledger(url.replace("PORT", str(server.port)))
    said = f"{caught.value} {caught.value.help} {caught.value.__cause__}"
    assert caught.value.code == "UQL410" and caught.value.help and "s3cret" not in said and "of@ada" not in said


def test_commands_and_results_never_show_the_password(
    by_tcp: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UQL_LEDGER", by_tcp)
    with uql.connect(model=HashModel({"it is so": 0.3})) as con:
        con.sql("CREATE TABLE t AS SELECT range AS id, 'text ' || range AS text FROM range(80)")
        said = [
            str(con.uql(EVERY)),
            str(con.uql(f"EXPLAIN {EVERY}").fetchall()),
            str(con.uql("FROM uql_runs()").fetchall()),
        ]
        said += [str(con.uql('SELECT id FROM t WHERE "it is so" LIMIT 2').why(0))]
        run = con.last_run
    for command in (
        "config show",
        "config show --json",
        "doctor --no-call",
        "runs",
        f"runs {run}",
        "cache stats",
        f"resume {run}",
    ):
        main(command.split())
    monkeypatch.setenv("UQL_LEDGER", by_tcp.replace("s3cret", "s3cretx"))
    assert main(["runs"]) != 0
    printed = capsys.readouterr()
    said += [printed.out, printed.err]
    assert "s3cret" not in "".join(said) and "UQL410" in printed.err and "postgresql://ada@127.0.0.1" in printed.out


def test_an_untrusted_project_may_not_name_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("uql.toml").write_text("ledger = 'postgresql://mallory:s3cret@evil.example/all'\n")
    with pytest.raises(ConfigError, match="may not set ledger") as caught:
        uql.connect()
    assert "s3cret" not in str(caught.value)


def test_without_the_extra_it_is_named_and_a_file_needs_none_of_it() -> None:
    told = """
import sys
sys.modules["psycopg"] = None
import importlib.util
real = importlib.util.find_spec
import uql.base.extras as extras
extras.find_spec = lambda name: None if name == "psycopg" else real(name)
from uql.base.errors import ConfigError
from uql.llm.ledger import Ledger
Ledger(":memory:").close()
try:
    Ledger("postgresql://ada@nowhere/db")
except ConfigError as error:
    print(error.code, error.help)
"""
    said = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, timeout=60)
    assert said.stdout.startswith("UQL610") and "[cluster]" in said.stdout


def test_another_user_of_the_server_is_told_which_rights_are_missing(server: Server) -> None:
    owner = server.database()
    name = owner.split("@/")[1].partition("?")[0]
    with Ledger(owner) as ledger:
        asyncio.run(ledger.put([Entry(b"k", Answer(True), "m")]))
    url = f"postgresql://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{server.port}/{name}"
    with pytest.raises(ConfigError, match="permission denied") as caught:
        Ledger(url)
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA uql" in str(caught.value.help)
    server.sql(
        "GRANT USAGE ON SCHEMA uql TO ada; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA uql TO ada",
        name,
    )
    with Ledger(url) as ledger:
        assert ledger.answers([b"k"])[b"k"].value is True
        asyncio.run(ledger.put([Entry(b"l", Answer(True), "m")]))
        assert ledger.prune(model="m") == 2, "the space of the rows stays with the server"


def test_a_ledger_of_a_later_format_is_left_alone(server: Server) -> None:
    url = server.database()
    Ledger(url).close()
    server.sql("UPDATE uql.meta SET value = '99' WHERE name = 'format'", url.split("@/")[1].partition("?")[0])
    with pytest.raises(ConfigError, match="format 99, this version reads"):
        Ledger(url)


def test_all_users_go_by_the_clock_of_the_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time
    monkeypatch.setattr(ledger_postgres.time, "time", lambda: now() + 3600)
    with Ledger(server.database()) as ledger:
        assert abs(ledger.now() - now()) < 60


def test_a_session_keeps_one_connection_to_the_server(server: Server) -> None:
    import psycopg

    url = server.database()
    with connect(url, HashModel({"it is so": 0.3}), 20) as con:
        for _ in range(3):
            con.uql(EVERY).fetchall()
        with psycopg.connect(url) as other:
            asked = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'uql'"
            )
            assert other.execute(asked).fetchone() == (1,)


def test_a_server_that_comes_back_costs_no_answer_and_no_call_twice(server: Server) -> None:
    url, model = server.database(), Slow(0.004)
    with connect(url, model) as con:
        down = threading.Thread(
            target=lambda: (until(lambda: len(model.paid) > 60), server.down(), time.sleep(0.5), server.up())
        )
        down.start()
        result = con.uql(EVERY)
        result.fetchall()
        down.join()
        assert result.estimates["n"].exact and not result.errors and len(model.paid) == len(set(model.paid)) == ROWS
    with Ledger(url) as ledger:
        stats = ledger.stats()
        assert stats.answers == ROWS and ledger.runs()[0]["calls"] == ROWS, "no call is counted twice"


def test_a_server_that_stays_away_ends_the_run_and_what_was_lost_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_postgres, "PATIENCE_S", 0.5)
    try:
        server = Server.start()
    except NoServer as why:
        pytest.skip(str(why))
    try:
        model = Slow(0.004)
        with connect(server.url(), model) as con:
            down = threading.Thread(target=lambda: (until(lambda: len(model.paid) > 60), server.down()))
            down.start()
            with pytest.raises(DataError) as caught:
                con.uql(EVERY).fetchall()
            down.join()
        said = str(caught.value)
        assert caught.value.code == "UQL415" and "answers that were paid for and are not kept" in said
        lost = int(re.findall(r"not kept: ([\d,]+)", said)[0].replace(",", ""))
        server.up()
        with Ledger(server.url()) as ledger:
            assert lost > 0 and ledger.stats().answers + lost >= len(model.paid) - 1
    finally:
        server.stop()


def test_a_transaction_whose_commit_was_not_confirmed_is_not_made_twice(server: Server) -> None:
    url = server.database()
    with Ledger(url) as ledger:
        database = ledger._db
        real, broken = database._connection.execute, []

        def confirm_nothing(sql: object, *values: object) -> object:
            done = real(sql, *values)
            if sql == "COMMIT" and not broken:
                broken.append(True)
                database._connection.close()
                raise ledger_postgres.psycopg.OperationalError("the connection is lost")
            return done

        monkey = pytest.MonkeyPatch()
        with monkey.context() as patched:
            patched.setattr(database._connection, "execute", confirm_nothing)
            ledger.log_draw("r", "count", [1, 2])
        assert broken and ledger.draws("r", "count") == [[1, 2]]


def test_a_transaction_that_a_killed_server_has_lost_is_made_again(server: Server) -> None:
    """Another session has got its number since."""
    url = server.database()
    with Ledger(url) as ledger, Ledger(url) as other:
        database = ledger._db
        real, broken = database._connection.execute, []

        def lose(sql: object, *values: object) -> object:
            if sql == "COMMIT" and not broken:
                broken.append(real("SELECT pg_current_xact_id()").fetchone())
                real("ROLLBACK")
                other.log_draw("r", "other", [3])
                database._connection.close()
                raise ledger_postgres.psycopg.OperationalError("the server is gone")
            return real(sql, *values)

        monkey = pytest.MonkeyPatch()
        with monkey.context() as patched:
            patched.setattr(database._connection, "execute", lose)
            patched.setattr(ledger_postgres.Postgres, "execute", _of_the_other(ledger_postgres.Postgres.execute))
            ledger.log_draw("r", "count", [1, 2])
        assert broken and ledger.draws("r", "count") == [[1, 2]]


def _of_the_other(real: object) -> object:
    """As if the number of every transaction was that of one that another session has committed."""

    def execute(self: object, sql: str, values: object = ()) -> object:
        committed = "SELECT 'committed' WHERE CAST(? AS TEXT) <> ''"
        return real(self, committed if "pg_xact_status" in sql else sql, values)  # type: ignore[operator]

    return execute


def until(there: object) -> None:
    end = time.monotonic() + 30
    while not there():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)
