"""`WITH (batch = true)`: the vendors' batch APIs, at half the price, paid once also where the process is killed in between."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from batch_server import BatchServer, serving
from hash_model import HashModel

import uql
from uql.base.errors import ConfigError
from uql.cli import main
from uql.llm.ledger import Ledger
from uql.llm.providers import batches
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import CallError, Price
from uql.llm.providers.openai_api import OpenAI

ROWS = 30
QUERY = "SELECT id FROM notes WHERE \"it is even\" ORDER BY id WITH (budget = 'all', batch = {})"
KINDS = ["openai", "anthropic"]


def model(kind: str, url: str) -> Any:
    price = Price(2.0, 8.0)
    if kind == "openai":
        return OpenAI("m", api_key="k", url=f"{url}/v1", price=price, api="chat")
    return Anthropic("m", api_key="k", url=url, price=price)


@contextmanager
def connected(kind: str, url: str, ledger: Path | str = ":memory:") -> Iterator[uql.Connection]:
    with uql.connect(model=model(kind, url), ledger=str(ledger), rows_per_request=1) as con:
        con.sql(
            f"CREATE TABLE notes AS SELECT range AS id, 'a note of some length about ' || repeat('x', range) AS text FROM range({ROWS})"
        )
        yield con


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUIET_S", 0.1)
    monkeypatch.setattr(batches, "LOOKS_S", [0.02, 0.05])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_same_answers_for_half_the_price_and_sends_no_row_alone(kind: str) -> None:
    server = BatchServer()
    with serving(server) as at, connected(kind, at.url) as con:
        alone = con.uql(QUERY.format("false"))
        rows, calls = alone.fetchall(), alone.cost.calls
        assert server.direct == calls == ROWS
    with serving(server) as at, connected(kind, at.url) as con:
        asked = con.uql(QUERY.format("true"))
        quoted, full = asked.quote(), con.uql(QUERY.format("false")).quote()
        assert quoted.usd.high == pytest.approx(full.usd.high / 2)
        assert asked.fetchall() == rows and asked.exact and not asked.errors
        assert server.direct == ROWS and len(server.batches) == 1 and len(server.billed) == ROWS
        assert asked.cost.calls == ROWS and asked.cost.usd == pytest.approx(alone.cost.usd / 2)
        assert asked.cost.input_tokens == alone.cost.input_tokens
        assert con.uql(QUERY.format("true")).fetchall() == rows and len(server.batches) == 1, "the ledger knows them"


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_given_as_an_object_answers_one_statement_after_another(kind: str) -> None:
    """Each statement has an event loop of its own, and connections end with theirs."""
    with serving(BatchServer()) as at, connected(kind, at.url) as con:
        for text in ("it is even", "it is odd"):
            assert len(con.uql(QUERY.format("false").replace("it is even", text)).fetchall()) == ROWS // 2


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_a_batch_ended_without_are_asked_again_and_the_others_are_not(kind: str, tmp_path: Path) -> None:
    server = BatchServer()
    server.expire = (2, 5, 7)
    with serving(server) as at, connected(kind, at.url, tmp_path / "l.sqlite") as con:
        result = con.uql(QUERY.format("true"))
        found = result.fetchall()
        assert not result.errors and found == con.uql(QUERY.format("false")).fetchall()
        assert [len(batch["requests"]) for batch in server.batches] == [ROWS, 3]
        assert {id for id, _ in server.batches[1]["requests"]} <= {id for id, _ in server.batches[0]["requests"]}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_share_a_request_share_one_of_a_batch(kind: str) -> None:
    server = BatchServer()
    with serving(server) as at, connected(kind, at.url) as con, con.settings(rows_per_request=8):
        result = con.uql(QUERY.format("true"))
        assert len(result.fetchall()) + len(result.errors) <= ROWS and not server.direct
        assert len(server.batches[0]["requests"]) == -(-ROWS // 8)


def test_a_batch_that_is_refused_or_damaged_fails_its_rows_and_nobody_waits_for_it(tmp_path: Path) -> None:
    for spoil in ({"refused": "the file has too many lines"}, {"damaged": True}):
        server = BatchServer()
        for name, value in spoil.items():
            setattr(server, name, value)
        ledger = tmp_path / f"{next(iter(spoil))}.sqlite"
        with serving(server) as at, connected("openai", at.url, ledger) as con:
            result = con.uql(QUERY.format("true"))
            assert result.fetchall() == [] and len(result.errors) == ROWS and not result.exact
            words = {message for row in result.errors for message in [str(row)]}
            assert all(("too many lines" in w) or ("damaged" in w) for w in words)
            assert con.uql("SELECT COUNT(*) FROM uql_runs()").fetchall() == [(1,)]
            (server.refused, server.damaged) = "", False
            assert len(con.uql(QUERY.format("true, fresh = true")).fetchall()) == ROWS // 2


def test_a_batch_at_which_no_look_succeeds_is_given_up_and_taken_up_by_the_next_run(
    tmp_path: Path, monkeypatch: Any
) -> None:
    async def out(*_: Any) -> Any:
        raise CallError("server", "out of order")

    server, reached = BatchServer(), batches._lines
    with serving(server) as at, connected("openai", at.url, tmp_path / "l.sqlite") as con:
        monkeypatch.setattr(batches, "UNREACHED_S", 0.1)
        monkeypatch.setattr(batches, "_lines", out)
        result = con.uql(QUERY.format("true"))
        assert result.fetchall() == [] and len(result.errors) == ROWS
        monkeypatch.setattr(batches, "_lines", reached)
        assert len(con.uql(QUERY.format("true, fresh = true")).fetchall()) == ROWS // 2
    assert len(server.batches) == 1


KILLED = """
import sys
sys.path[:0] = sys.argv[1:3]
import test_batches
from uql.llm.providers import batches
batches.QUIET_S, batches.LOOKS_S = 0.1, [0.02, 0.05]
with test_batches.connected(sys.argv[3], sys.argv[4], sys.argv[5]) as con:
    print(con.uql(test_batches.QUERY.format("true")).fetchall())
"""


def until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not there():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_a_killed_process_is_waited_for_and_paid_once(kind: str, tmp_path: Path, capsys: Any) -> None:
    server = BatchServer()
    server.held = True
    ledger = tmp_path / "l.sqlite"
    here = Path(__file__).parent
    with serving(server) as at:
        told = [sys.executable, "-c", KILLED, str(here), str(here.parent), kind, at.url, str(ledger)]
        first = subprocess.Popen(told, stdout=subprocess.PIPE)
        until(lambda: bool(server.batches) and server.batches[0]["looks"] > 0)
        first.kill()
        first.wait()
        assert main(["runs", "--ledger", str(ledger)]) == 0
        said = capsys.readouterr().out
        assert f"batch b0 of {kind}:m" in said and f"{ROWS} requests under way" in said
        server.held = False
        with connected(kind, at.url, ledger) as con:
            result = con.uql(QUERY.format("true"))
            assert len(result.fetchall()) == ROWS // 2 and not result.errors
        assert len(server.billed) == len(set(server.billed)) == ROWS and not server.direct
        assert main(["runs", "--ledger", str(ledger)]) == 0
        assert "under way" not in capsys.readouterr().out


LOST = KILLED.replace(
    "with test_batches",
    """
noted = batches.Batches._note
async def killed(self, batch, requests):
    if batch == "b0":
        import os
        os._exit(9)
    await noted(self, batch, requests)
batches.Batches._note = killed
with test_batches""",
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_whose_id_was_never_noted_is_found(kind: str, tmp_path: Path) -> None:
    """Killed between the vendor's reply and the note of the batch: by its mark, and at Anthropic by its size and time."""
    server, ledger, here = BatchServer(), tmp_path / "l.sqlite", Path(__file__).parent
    with serving(server) as at:
        told = [sys.executable, "-c", LOST, str(here), str(here.parent), kind, at.url, str(ledger)]
        assert subprocess.run(told, stdout=subprocess.PIPE, timeout=60).returncode == 9
        assert len(server.batches) == 1
        with connected(kind, at.url, ledger) as con:
            result = con.uql(QUERY.format("true"))
            assert len(result.fetchall()) == ROWS // 2 and not result.errors
        assert len(server.billed) == ROWS and not server.direct


def test_a_batch_of_another_program_is_not_taken_for_one_whose_id_was_never_noted(tmp_path: Path) -> None:
    """As large as the one that never reached the vendor, and made at the same time."""
    server, ledger = BatchServer(), tmp_path / "l.sqlite"
    with serving(server) as at, connected("anthropic", at.url, ledger) as con:
        con.uql(QUERY.format("true")).fetchall()
        mine = server.batches.pop()["requests"]
        server._create([(f"r{n}", body) for n, (_, body) in enumerate(mine)])
        server.strange = [("made before", ROWS, time.time() - 300)]
        name = model("anthropic", at.url).name
        lost = [(bytes.fromhex(id), "uql-lost", name, time.time()) for id, _ in mine]
        with Ledger(ledger) as held:
            held.work(lambda db: db.executemany("INSERT INTO batches VALUES (?, ?, ?, ?)", lost).rowcount)
            held.work(lambda db: db.execute("DELETE FROM answer_rows").rowcount)
        result = con.uql(QUERY.format("true, fresh = true"))
        assert len(result.fetchall()) == ROWS // 2 and not result.errors
        assert server.batches[0]["looks"] > 0, "it could have been the one"
        assert [len(batch["requests"]) for batch in server.batches] == [ROWS, ROWS]


def test_a_batch_that_never_reached_the_vendor_is_handed_in_again(tmp_path: Path) -> None:
    server, ledger = BatchServer(), tmp_path / "l.sqlite"
    with serving(server) as at, connected("openai", at.url, ledger) as con:
        create, server._of_file = server._of_file, lambda body: (400, {"error": {"message": "not so"}})  # type: ignore[assignment,return-value]
        assert con.uql(QUERY.format("true")).fetchall() == []
        with Ledger(ledger) as held:
            assert held.batches() == [], "what the vendor refused is not under way"
        server._of_file = create  # type: ignore[method-assign]
        assert len(con.uql(QUERY.format("true, fresh = true")).fetchall()) == ROWS // 2
        assert len(server.billed) == ROWS


def test_a_batch_that_the_vendor_has_no_longer_is_handed_in_again(tmp_path: Path) -> None:
    server = BatchServer()
    ledger = tmp_path / "l.sqlite"
    with serving(server) as at, connected("openai", at.url, ledger) as con:
        provider = model("openai", at.url)
        con.uql(QUERY.format("true")).fetchall()
        keys = [bytes.fromhex(id) for id, _ in server.batches[0]["requests"]]
        with Ledger(ledger) as held:
            held.work(
                lambda db: (
                    db.executemany(
                        "INSERT INTO batches VALUES (?, 'b39', ?, 0)", [(key, provider.name) for key in keys]
                    ).rowcount
                )
            )
            held.work(lambda db: db.execute("DELETE FROM answer_rows").rowcount)
        result = con.uql(QUERY.format("true, fresh = true"))
        assert len(result.fetchall()) == ROWS // 2 and not result.errors
        assert [len(batch["requests"]) for batch in server.batches] == [ROWS, ROWS]


def test_a_model_without_a_batch_api_and_a_limit_of_seconds_are_refused_before_anything_is_sent() -> None:
    with uql.connect(model=HashModel(), ledger=":memory:") as con:
        con.sql("CREATE TABLE notes AS SELECT 1 AS id, 'a note of some length for a model' AS text")
        with pytest.raises(ConfigError, match="hash has no batch API") as error:
            con.uql(QUERY.format("true")).fetchall()
        assert error.value.code == "UQL402"
    server = BatchServer()
    with serving(server) as at, connected("openai", at.url) as con, con.settings(max_seconds=60):
        with pytest.raises(ConfigError, match="a batch may take a day"):
            con.uql(QUERY.format("true")).fetchall()
        assert not server.batches and not server.direct


def test_nobody_waits_for_a_batch_whose_end_cannot_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(batches.Batches, "_forget", full)
    with serving(BatchServer()) as at, connected("openai", at.url) as con:
        waits = threading.Timer(30, con.interrupt)
        waits.start()
        result = con.uql(QUERY.format("true"))
        assert result.fetchall() == [] and "no space left" in str(result.errors[0])
        waits.cancel()


@pytest.mark.parametrize("status", ["200", None, float("nan"), 1e30])
def test_a_status_of_a_batch_that_is_no_number_concerns_its_row_alone(
    monkeypatch: pytest.MonkeyPatch, status: Any
) -> None:
    read = batches._OpenAI.results

    async def spoilt(*given: Any) -> Any:
        replies = await read(*given)
        if replies:
            first = next(iter(replies))
            replies[first] = status, replies[first][1]
        return replies

    monkeypatch.setattr(batches._OpenAI, "results", spoilt)
    with serving(BatchServer()) as at, connected("openai", at.url) as con:
        result = con.uql(QUERY.format("true"))
        assert result.fetchall() and len(result.errors) <= 1
