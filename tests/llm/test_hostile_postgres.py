"""A ledger in a PostgreSQL server that somebody else may write to, and servers that hang, drip or are none."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

import pytest
from drip import slow_server
from hash_model import HashModel
from test_in_flight import EVERY
from test_ledger_contract import connect

from uql.base.errors import ConfigError, DataError
from uql.benchmarks.gate.postgres_server import PASSWORD, Server
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry
from uql.llm.providers.base import Answer

ledger_postgres = pytest.importorskip("uql.llm.ledger_postgres", reason="the extra cluster is not installed")


def database_of(url: str) -> str:
    return url.split("@/")[1].partition("?")[0]


@pytest.fixture
def of_ada(server: Server) -> Iterator[tuple[str, str]]:
    """A ledger that the user ada has made and owns: its database, and its URL for a superuser."""
    url = server.database()
    name = database_of(url)
    server.sql(f"GRANT CREATE ON DATABASE {name} TO ada")
    with Ledger(by_tcp(server.port, name)) as ledger:
        asyncio.run(ledger.put([Entry(b"k", Answer(True), "m")]))
    yield name, url


def by_tcp(port: int, name: str, more: str = "") -> str:
    return f"postgresql://ada:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/{name}{more}"


RISE = "BEGIN ALTER ROLE ada SUPERUSER; RETURN NEW; END"
FOREIGN = {
    "the trigger taken on answer_rows": (
        f"CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS '{RISE}';"
        "CREATE TRIGGER taken BEFORE INSERT ON uql.answer_rows FOR EACH ROW EXECUTE FUNCTION public.f()"
    ),
    "the function length": "CREATE FUNCTION uql.length(bytea, text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "the operator ||": (
        "CREATE FUNCTION public.g(bigint, text) RETURNS text LANGUAGE sql AS 'SELECT '''';';"
        "CREATE OPERATOR uql.|| (LEFTARG = bigint, RIGHTARG = text, FUNCTION = public.g)"
    ),
    "the rule taken on runs": "CREATE RULE taken AS ON INSERT TO uql.runs DO ALSO SELECT query_to_xml('ALTER ROLE ada SUPERUSER', true, true, '')",
    "the policy mine on questions": (
        "ALTER TABLE uql.questions ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON uql.questions USING (pg_sleep(1) IS NULL)"
    ),
    "the check slow on claims": "ALTER TABLE uql.claims ADD CONSTRAINT slow CHECK (lease <> repeat('x', 1))",
    "a computed column of runs": "ALTER TABLE uql.runs ALTER details SET DEFAULT query_to_xml('DROP SCHEMA uql', true, true, '')::text",
    "a computed index on draws": "CREATE INDEX i ON uql.draws (length(run))",
    "a type of its own, of lease in claims": (
        "CREATE DOMAIN public.d AS text CHECK (length(VALUE) > 0); ALTER TABLE uql.claims ALTER lease TYPE public.d"
    ),
    "the column indices of draws as text": "ALTER TABLE uql.draws ALTER indices TYPE text USING ''",
    "the column usd of answer_rows as numeric": "ALTER TABLE uql.answer_rows ALTER usd TYPE numeric USING 1e400",
    "runs, which is not a table": "ALTER TABLE uql.runs RENAME TO old; CREATE VIEW uql.runs AS SELECT * FROM uql.old",
    "meta, which is not a table": "ALTER TABLE uql.meta RENAME TO old; CREATE VIEW uql.meta AS SELECT old.* FROM uql.old, pg_sleep(60)",
}  # fmt: skip


@pytest.mark.parametrize("what", FOREIGN)
def test_what_would_run_with_the_rights_of_whoever_opens_a_ledger_is_refused(
    server: Server, of_ada: tuple[str, str], what: str
) -> None:
    name, url = of_ada
    server.sql(
        f"GRANT CREATE ON SCHEMA public TO ada; SET ROLE ada; {FOREIGN[what]}".replace("SET ROLE ada;", ""), name
    )
    with pytest.raises(ConfigError) as raised:
        Ledger(url)
    assert raised.value.code == "UQL410" and f"holds {what}" in str(raised.value)
    assert "could run with your rights" in str(raised.value.help)


def test_what_is_put_there_later_is_seen_once_the_connection_is_made_anew(
    server: Server, of_ada: tuple[str, str]
) -> None:
    name, url = of_ada
    with Ledger(url) as ledger:
        server.sql(FOREIGN["the trigger taken on answer_rows"], name)
        ledger._db._connection.close()
        with pytest.raises(ConfigError, match="the trigger taken"):
            asyncio.run(ledger.put([Entry(b"l", Answer(True), "m")]))


def test_a_view_of_the_ledger_that_says_something_else_is_not_read(server: Server) -> None:
    url = server.database()
    with connect(url, HashModel({"it is so": 0.3}), 20) as con:
        result = con.uql(EVERY).fetchall()
        calls = con.uql("SELECT count(*) FROM uql_calls()").fetchall()
        server.sql(
            "DROP VIEW uql.answers, uql.calls; CREATE VIEW uql.answers AS SELECT 1 AS key;"
            "CREATE VIEW uql.calls AS SELECT pg_sleep(60) IS NULL AS n",
            database_of(url),
        )
        assert con.uql("SELECT count(*) FROM uql_calls()").fetchall() == calls
        assert con.uql(EVERY).fetchall() == result


# ------------------------------------------------------------------------------------------------------------ servers
@contextmanager
def relay(port: int) -> Iterator[tuple[int, threading.Event]]:
    """A port that leads to the server; once the event is set, it gives a byte of what the server says now and then."""
    dripping, ended = threading.Event(), threading.Event()

    def pump(source: socket.socket, target: socket.socket, back: bool) -> None:
        with suppress(OSError), source, target:
            while data := source.recv(65536):
                for one in [data[i : i + 1] for i in range(len(data))] if back and dripping.is_set() else [data]:
                    if back and dripping.is_set() and ended.wait(0.2):
                        return
                    target.sendall(one)

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                client, _ = listening.accept()
                real = socket.create_connection(("127.0.0.1", port))
                for ends in ((client, real, False), (real, client, True)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listening.getsockname()[1], dripping
        finally:
            ended.set()
            with suppress(OSError):
                socket.create_connection(listening.getsockname(), 10).close()
            accepting.join(10)


def test_a_server_that_drips_its_reply_ends_the_statement(
    server: Server, of_ada: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with relay(server.port) as (port, dripping), Ledger(by_tcp(port, of_ada[0], "?sslmode=disable")) as ledger:
        assert ledger.answers([b"k"])[b"k"].value is True
        monkeypatch.setattr(ledger_postgres, "ANSWER_S", 1.0)
        monkeypatch.setattr(ledger_postgres, "PATIENCE_S", 0.5)
        dripping.set()
        began = time.monotonic()
        with pytest.raises(DataError, match="within 1 s") as raised:
            ledger.answers([b"k"])
        assert raised.value.code == "UQL415" and time.monotonic() - began < 30


def test_a_statement_that_the_server_does_not_end_is_ended_there(server: Server) -> None:
    with Ledger(server.database()) as ledger:
        (limit,) = ledger.work(lambda db: db.execute("SHOW statement_timeout").fetchall())
        assert limit == ("5min",)


@pytest.mark.parametrize("stage", ["nothing", "headers", "body"])
def test_what_is_no_postgres_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setattr(ledger_postgres, "CONNECT_S", 2)
    with slow_server(stage) as port:
        began = time.monotonic()
        with pytest.raises(ConfigError) as raised:
            Ledger(by_tcp(port, "postgres"))
        assert raised.value.code == "UQL410" and time.monotonic() - began < 30
    assert "s3cret" not in f"{raised.value} {raised.value.help}"


def test_a_server_without_tls_is_refused_where_the_url_asks_for_it(server: Server) -> None:
    with pytest.raises(ConfigError, match="SSL") as raised:
        Ledger(by_tcp(server.port, "postgres", "?sslmode=require"))
    assert raised.value.code == "UQL410" and "s3cret" not in f"{raised.value} {raised.value.help}"


def test_an_error_of_the_server_is_one_short_line_without_the_password(server: Server, of_ada: tuple[str, str]) -> None:
    name, url = of_ada
    with Ledger(url) as ledger:
        server.sql("CREATE FUNCTION public.loud() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '%', repeat('x', 10000000); END $$", name)  # fmt: skip
        with pytest.raises(DataError) as raised:
            ledger.work(lambda db: db.execute("SELECT public.loud()"))
    assert raised.value.code == "UQL415" and len(str(raised.value)) < 2_000
