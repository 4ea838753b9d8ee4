"""Bits of the ledger's file that were flipped: what can be read is used, the rest is asked again or is an error in words."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel
from scripted import row
from typer.testing import CliRunner

from uql.base.errors import UQLError
from uql.base.settings import Settings
from uql.command.runs import app
from uql.llm.corrections import People, correct
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import SCHEMA, Entry, Failed
from uql.llm.providers.base import Answer
from uql.llm.questions import Choice, Predicate, Score, Write
from uql.llm.run_lease import Lease
from uql.session.resume import find

DETAILS = json.dumps(
    {"settings": {"budget": 9}, "parameters": {}, "rates": {}, "database": None, "folder": "/", "read_only": False}
)
KEYS = [f"key {n}".encode() for n in range(40)]
ASKED = Predicate("it is so")


def filled(path: Path) -> bytes:
    """The bytes of a ledger with something in each of its tables."""
    with Ledger(path) as ledger:
        for n in range(6):
            ledger.start_run(f"run{n}", statement="SELECT 1", model="m", seed=n, details=DETAILS)
            ledger.log_draw(f"run{n}", "count", range(9))
            ledger.keep_statistics("m", {f"rate {n}": [0.5, n]})
            correct(
                ledger, ASKED, row(f"row {n}"), Answer(n % 2 == 0), before="True", model="m", run="run1", source="t"
            )
        ledger.fail([Failed("run1", KEYS[0], "refusal", "the model declined", "no", 1)])
        asyncio.run(ledger.put([Entry(key, Answer("an answer", 0.5), "m", "t", "run1") for key in KEYS]))
        Lease(ledger, "run2", lambda: None).take()
    return path.read_bytes()


def used(path: Path) -> None:
    """Everything that statements and commands do with a ledger."""

    async def go(ledger: Ledger) -> None:
        await ledger.ever_asked([b"head"])
        await ledger.note([b"head"])
        found = await ledger.get(KEYS)
        await ledger.origins(KEYS)
        await ledger.failures("run1", KEYS)
        lost = [key for key in KEYS if key not in found]
        await ledger.put([Entry(key, Answer("again"), "m") for key in lost])
        await ledger.get(lost)

    with Ledger(path) as ledger:
        asyncio.run(go(ledger))
        for run in ledger.runs():
            ledger.draws(str(run["run"]), "count")
        ledger.statistics("m")
        People.of(ledger).answers(ASKED, [row(f"row {n}") for n in range(6)])
        Lease(ledger, "run3", lambda: None).take()
        for name in ("runs", "calls", "errors", "corrections"):
            list(ledger.table(name)[1])
        ledger.stats()
        find("run1", ledger, trust=True)
    for said in (["runs"], ["runs", "run1"], ["runs", "--json"]):
        shown = CliRunner().invoke(app, [*said[1:], "--ledger", str(path)])
        assert shown.exception is None or isinstance(shown.exception, SystemExit), said
    with Ledger(path) as ledger:
        ledger.prune(model="m", source="t")


def damaged(folder: Path, count: int, seed: int) -> int:
    """Flips one to three bits of the file, `count` times. Returns how many ended as an error in words."""
    draw = random.Random(seed)
    whole, path, refused = filled(folder / "whole.sqlite"), folder / "l.sqlite", 0
    places = [at for at, byte in enumerate(whole) if byte]  # of what is there
    for _ in range(count):
        flipped = bytearray(whole)
        for at in draw.sample(places, draw.randint(1, 3)):
            flipped[at] ^= 1 << draw.randrange(8)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(flipped)
        try:
            used(path)
        except UQLError:
            refused += 1
    return refused


def test_flipped_bits_of_the_file_are_answers_or_errors_in_words(tmp_path: Path) -> None:
    assert damaged(tmp_path, 80, 1) < 80


@pytest.mark.slow
def test_1_000_flips_are_answers_or_errors_in_words(tmp_path: Path) -> None:
    assert damaged(tmp_path, 1_000, 1) < 1_000


VALUES = [
    "x'ff'",
    "'a text'",
    "zeroblob(1000)",
    "'NaN'",
    "'[]'",
    "1e400",
    "-1e400",
    "-3",
    "9223372036854775807",
    "NULL",
]


def columns() -> list[tuple[str, str]]:
    """Each column of each table of a ledger."""
    with sqlite3.connect(":memory:") as db:
        db.executescript(SCHEMA)
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
        return [(table, column) for table in names for _, column, *_ in db.execute(f"PRAGMA table_info({table})")]


@pytest.mark.thorough
@pytest.mark.one_in(97)
@pytest.mark.parametrize("values", [VALUES[part::5] for part in range(5)], ids=range(5))
@pytest.mark.parametrize("table, column", columns())
def test_a_value_of_another_type_in_any_column_is_set_aside_or_an_error_in_words(
    tmp_path: Path, table: str, column: str, values: list[str]
) -> None:
    """SQLite keeps a text in a column of numbers where the file says so. What a damaged answer said is asked again."""
    from hash_model import HashModel

    import uql

    path, whole = tmp_path / "l.sqlite", tmp_path / "whole.sqlite"
    statements = [
        'SELECT COUNT(*) FROM notes WHERE "it is so"',
        'SELECT COUNT(*) FROM notes WHERE "it is so" WITH (budget = 6)',
    ]
    listing = "SELECT COUNT(*) FROM uql_runs(), uql_calls(), uql_errors()"

    def ask() -> list[list[Any]]:
        with uql.connect(model=HashModel({"it is so": 0.4}), ledger=str(path)) as con:
            con.execute("CREATE TABLE notes AS SELECT 'note ' || i AS body FROM range(20) t(i)")
            return [con.uql(statement).fetchall() for statement in statements]

    filled(path)
    before = ask()
    whole.write_bytes(path.read_bytes())
    for value in values:
        path.write_bytes(whole.read_bytes())
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA ignore_check_constraints = true")
            with contextlib.suppress(sqlite3.IntegrityError), db:  # NULL where none may be
                db.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}")
        now = ask()
        assert now[0] == before[0], value
        if (table, column) != ("draws", "indices"):
            assert now[1] == before[1], value
        with contextlib.suppress(UQLError), uql.connect(ledger=str(path)) as con:
            con.uql(listing).fetchall()
        with contextlib.suppress(UQLError):
            used(path)


@pytest.mark.thorough
@pytest.mark.one_in(8)
@pytest.mark.parametrize("value", ["x'ff'", "'a text'", "zeroblob(1000)", "'NaN'", "1e400"])
@pytest.mark.parametrize(
    "column",
    [
        "answer_rows.at",
        "answer_rows.calls",
        "answer_rows.probability",
        "answer_rows.input_tokens",
        "answer_rows.usd",
        "statistics.name",
        "failures.calls",
        "failures.usd",
        "failures.at",
        "sittings.root",
        "sittings.budget",
        "sittings.at",
        "sittings.rates",
        "sittings.usd",
        "sittings.ended",
        "sittings.ended_by",
    ],
)
def test_a_value_of_another_type_is_set_aside(tmp_path: Path, column: str, value: str) -> None:
    """SQLite keeps a text in a column of numbers where the file says so: the statement was a TypeError."""
    from hash_model import HashModel

    import uql

    path, (table, name) = tmp_path / "l.sqlite", column.split(".")

    def asked() -> list[tuple[int]]:
        with uql.connect(model=HashModel({"it is so": 0.4}), ledger=str(path)) as con:
            con.execute("CREATE TABLE notes AS SELECT 'note ' || i AS body FROM range(20) t(i)")
            return con.uql('SELECT COUNT(*) FROM notes WHERE "it is so"').fetchall()

    filled(path)
    before = asked()
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE OR IGNORE {table} SET {name} = {value}")
    db.close()
    assert asked() == before
    used(path)


@pytest.mark.parametrize(
    "forged",
    [
        "probability = 7.0",
        "probability = -0.5",
        "probability = 9e999",
        "input_tokens = -5, output_tokens = 0",
        "input_tokens = 1, output_tokens = 1, usd = -2.5",
        "input_tokens = 1, output_tokens = 1, usd = 9e999",
        """answer = '{"v": "a", "d": [0.5, 99]}'""",
        """answer = '{"v": "a", "d": [0.5, NaN]}'""",
        """answer = '{"v": "a", "p": 1e300}'""",
        """answer = '{"v": "a", "c": [-1, 1, null]}'""",
        r"""answer = '{"v": "\ud800"}'""",
        r"""answer = '{"v": [{"\udfff": 1}]}'""",
    ],
)
def test_an_answer_with_a_number_or_a_text_that_it_cannot_have_is_set_aside(tmp_path: Path, forged: str) -> None:
    filled(tmp_path / "l")
    with contextlib.closing(sqlite3.connect(tmp_path / "l")) as db, db:
        db.execute(f"UPDATE answer_rows SET {forged} WHERE key = ?", (KEYS[0],))
    with Ledger(tmp_path / "l") as ledger:
        assert set(ledger.answers(KEYS)) == set(KEYS[1:]) and ledger.damaged == {KEYS[0]}


@pytest.mark.parametrize(
    ("question", "forged"),
    [
        (Predicate("it is so"), '"yes"'),
        (Predicate("it is so"), "1"),
        (Score("how nice", 5), '"abc"'),
        (Score("how nice", 5), "99"),
        (Score("how nice", 5), '{"$decimal": "sNaN"}'),
        (Score("how nice", 5), '{"$interval": [999999999, 0, 0]}'),
        (Choice("the kind", ("a", "b")), "7"),
        (Choice("the kinds", ("a", "b"), many=True), '["a", 7]'),
        (Write("a summary"), '{"a": 1}'),
    ],
)
def test_a_forged_answer_of_a_type_that_no_reply_has_is_asked_again(tmp_path: Path, question: Any, forged: str) -> None:
    async def ask() -> tuple[list[Any], int]:
        async with Gate.open(Settings(ledger=str(tmp_path / "l")), model=HashModel(), calls=None) as gate:
            (kept,) = await gate.ledger_answers([question], [row("a text")])
            said = await gate.ask(question, [row("a text")])
            assert kept.values == [None] if gate.cost.calls else kept.values == said.values
            return said.values, gate.cost.calls

    paid = asyncio.run(ask())
    assert paid[1] == 1 and asyncio.run(ask()) == (paid[0], 0)
    with contextlib.closing(sqlite3.connect(tmp_path / "l")) as db, db:
        db.execute("UPDATE answer_rows SET answer = ?", (f'{{"v": {forged}}}',))
    assert asyncio.run(ask()) == paid
