"""Memory that runs out, wherever it does: an error with a code and what to do; what was paid before is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.cli import main
from uql.llm.ledger import Entry, Ledger
from uql.llm.providers.base import Answer, Reply, Request

QUERY = 'SELECT COUNT(*) FROM notes WHERE "it is so"'


class Small(HashModel):
    """Has no memory left at its twentieth call."""

    async def answer(self, request: Request) -> Reply:
        if self.calls >= 20:
            raise MemoryError
        return await super().answer(request)


def opened(**given: Any) -> uql.Connection:
    con = uql.connect(**{"ledger": ":memory:", "budget": "all", "model": HashModel(), **given})
    con.execute("CREATE TABLE notes AS SELECT range AS id, 'text number ' || range AS text FROM range(40)")
    return con


def fails(*_: Any, **__: Any) -> Any:
    raise MemoryError("no memory for an array")


def test_in_a_provider(tmp_path: Path) -> None:
    ledger = str(tmp_path / "l.sqlite")
    with opened(model=Small(), ledger=ledger) as con:
        with pytest.raises(uql.UQLError, match="UQL526") as told:
            con.uql(QUERY).fetchall()
        assert told.value.help
        assert con.uql("SELECT 1 AS x").fetchall() == [(1,)], "the session goes on"
    model = HashModel()
    with opened(model=model, ledger=ledger) as con:
        con.uql(QUERY).fetchall()
    assert model.calls <= 20 + 8, "what was answered is kept, but for what was in flight"


PLACES = [
    "uql.llm.ledger._keep", "uql.llm.codec.to_row", "uql.llm.gate.distinct", "uql.llm.gate.collected", "uql.kernels.duck.Duck.arrow",
    "uql.kernels.relation.Relation.rows", "uql.compiler.planner.plan", "uql.session.session.Session.bind", "uql.compiler.parser.parse_script",
    "uql.engine.execute.execute",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_in_any_stage(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as con:
        monkeypatch.setattr(place, fails)
        with pytest.raises(uql.UQLError) as told:
            con.uql(QUERY).fetchall()
        monkeypatch.undo()
        assert told.value.code in ("UQL526", "UQL415") and "no memory" in str(told.value)
        assert len(con.uql(QUERY).fetchall()) == 1, "the next one works"


NO_MEMORY = [RuntimeError("can't start new thread"), ImportError("x.so: failed to map segment from shared object")]


@pytest.mark.parametrize("place", PLACES[::3])
@pytest.mark.parametrize("error", NO_MEMORY)
def test_a_thread_or_a_library_that_finds_no_memory(
    place: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    with opened() as con:
        monkeypatch.setattr(place, fails)
        with pytest.raises(uql.UQLError, match=r"not enough memory|UQL415"):
            con.uql(QUERY).fetchall()
        monkeypatch.undo()
        assert len(con.uql(QUERY).fetchall()) == 1


def test_the_writer_of_the_ledger_gets_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[object] = []
    with Ledger(tmp_path / "l.sqlite") as ledger:
        submit = ledger._pool.submit

        def fails(work: Any, *given: Any) -> Any:
            if work == ledger._write:
                refused.append(work)
                raise NO_MEMORY[0]
            return submit(work, *given)

        monkeypatch.setattr(ledger, "_begin_here", lambda: False)
        monkeypatch.setattr(ledger._pool, "submit", fails)
        entry = Entry(ledger.key(b"question", b"row"), Answer("short"), "m", "t")
        asyncio.run(asyncio.wait_for(ledger.put([entry]), 5))
        assert ledger.stats().answers == 1
    assert refused


@pytest.mark.parametrize("place", ["uql.command.query.execute", "uql.session.script.checked"])
def test_in_a_command(place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(place, fails)
    assert main(["-c", "SELECT 1 AS x"]) == 1
    shown = capsys.readouterr().err
    assert "UQL526" in shown and "help" in shown and "Traceback" not in shown


def test_in_duckdb() -> None:
    with opened() as con:
        con.execute("SET memory_limit = '20MB'")
        con.execute("SET temp_directory = ''")
        with pytest.raises(uql.UQLError, match="UQL526"):
            con.uql("SELECT list(repeat('x', 1000) || range) AS l FROM range(1000000)").fetchall()


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("fetchall", "uql.api.result.python_values"),
        ("fetchmany", "uql.api.result.python_values"),
        ("df", "uql.api.result.for_pandas"),
        ("pl", "uql.api.result.durations"),
    ],
)
def test_where_rows_are_brought_into_their_form(form: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened() as con:
        result = con.uql("SELECT * FROM notes")
        result.run()
        monkeypatch.setattr(place, fails)
        with pytest.raises(uql.UQLError, match="UQL526"):
            getattr(result, form)()
