"""What a ledger promises, whichever database keeps it: a SQLite file or a PostgreSQL server."""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest
from hash_model import HashModel
from test_in_flight import EVERY, ROWS, SOME, Slow

import uql
from uql.base.errors import ConfigError, DataError
from uql.llm import corrections
from uql.llm.claims import Claims
from uql.llm.events import Event
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry, Failed, Origin
from uql.llm.providers.base import Answer
from uql.llm.questions import Predicate
from uql.llm.run_lease import LEASE, Lease
from uql.session.resume import table


def put(ledger: Ledger, *entries: Entry, events: list[Event] | None = None) -> None:
    asyncio.run(ledger.put(entries, events or []))


def connect(ledger: str, model: Any, rows: int = ROWS) -> uql.Connection:
    con = uql.connect(model=model, ledger=ledger)
    con.sql(
        f"CREATE TABLE t AS SELECT range AS id, 'text of number ' || range || ' as it stands here' AS text FROM range({rows})"
    )
    return con


def test_answers_come_back_as_they_were_and_their_origin_with_them(place: str) -> None:
    values = {
        b"a": Answer("täxt \x00 'q' ? % \\x", 0.25, (0.75, 0.25), paid=(3, 4, 0.1)),
        b"b": Answer(None),
        b"c": Answer(2**70),
    }
    with Ledger(place) as ledger:
        put(ledger, *(Entry(key, answer, "m ?", "t%s", "run", 3) for key, answer in values.items()))
        put(ledger, Entry(b"b", Answer([1.5, math.inf]), "n"))
    with Ledger(place) as ledger:
        found = ledger.answers([b"a", b"b", b"c", b"d"])
        assert found.keys() == values.keys() and found[b"a"] == values[b"a"] and found[b"c"].value == 2**70
        assert found[b"b"].value == [1.5, math.inf], "a later answer goes before an earlier one"
        origin = asyncio.run(ledger.origins([b"a"]))[b"a"]
        assert (
            (origin.run, origin.calls) == ("run", 3)
            and isinstance(origin, Origin)
            and abs(origin.at - ledger.now()) < 60
        )
        assert ledger.stats().models == (("m ?", 2), ("n", 1)) and ledger.stats().bytes > 0
        many = [Entry(n.to_bytes(4), Answer(n), "m") for n in range(2500)]
        put(ledger, *many)
        assert {k: a.value for k, a in ledger.answers([e.key for e in many]).items()} == {
            e.key: e.answer.value for e in many
        }


SINCE_FORMAT_4 = {"sittings": ("usd", "ended", "ended_by"), "failures": ("input_tokens", "output_tokens", "usd", "at")}


def without_later_columns(db: Any) -> None:
    for name, columns in SINCE_FORMAT_4.items():
        for column in columns:
            db.execute(f"ALTER TABLE {name} DROP COLUMN {column}")


def test_a_ledger_of_format_4_keeps_its_answers_and_asks_its_failures_again(place: str) -> None:
    def as_format_4(db: Any) -> None:
        without_later_columns(db)
        db.execute("UPDATE meta SET value = ? WHERE name = 'format'", (4 if place.endswith(".sqlite") else b"4",))
        db.execute("DELETE FROM meta WHERE name = 'tables'")

    failed = Failed("r", b"a", "refusal", "no", "", 1)
    with Ledger(place) as ledger:
        put(ledger, Entry(b"b", Answer("kept"), "m", "t", "run"))
        ledger.fail([failed])
        ledger.work(as_format_4, atomic=True)
    for _ in range(2):
        with Ledger(place) as ledger:
            assert ledger.answers([b"b"])[b"b"].value == "kept"
            assert asyncio.run(ledger.failures("r", [b"a"])) == {}
    with Ledger(place) as ledger:
        ledger.fail([failed])
        assert asyncio.run(ledger.failures("r", [b"a"]))[b"a"].kind == "refusal"


def test_a_ledger_of_format_3_keeps_its_answers_with_probability_and_cost(place: str) -> None:
    def as_format_3(db: Any) -> None:
        for column in ("probability", "input_tokens", "output_tokens", "usd"):
            db.execute(f"ALTER TABLE answer_rows DROP COLUMN {column}")
        without_later_columns(db)
        db.execute("CREATE INDEX call_rows_subject ON call_rows (subject)")
        text = '{"v":true,"p":0.25,"c":[3,4,0.1]}'
        db.execute("UPDATE answer_rows SET answer = ? WHERE key = ?", (text, b"a"))
        db.execute("UPDATE meta SET value = ? WHERE name = 'format'", (3 if place.endswith(".sqlite") else b"3",))
        db.execute("DELETE FROM meta WHERE name = 'tables'")

    with Ledger(place) as ledger:
        put(ledger, Entry(b"a", Answer("the new form"), "m", "t", "run", 3))
        ledger.work(as_format_3, atomic=True)
    for _ in range(2):  # it is in the new format then
        with Ledger(place) as ledger:
            found = ledger.answers([b"a"])[b"a"]
            assert (found.value, found.probability, found.paid) == (True, 0.25, (3, 4, 0.1))
            origin = asyncio.run(ledger.origins([b"a"]))[b"a"]
            assert (origin.run, origin.calls) == ("run", 3)
    with Ledger(place) as ledger:
        put(ledger, Entry(b"b", Answer(2, 0.5, paid=(5, 6, None)), "m"))
        assert ledger.answers([b"b"])[b"b"].paid == (5, 6, None)


def test_all_who_open_a_ledger_make_the_same_keys(place: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(lambda _: Ledger(place), range(4)))
    assert len({ledger.key(b"question", b"row") for ledger in opened}) == 1 and len(opened[0].secret) == 32
    for ledger in opened:
        ledger.close()


def test_runs_calls_errors_and_corrections_are_tables(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.start_run("run-1", statement="SELECT 'a\x00b'", model="m", seed=2**40, details="{}")
        common = {"run": "run-1", "at": 1.5, "model": "m", "question": "Predicate", "text": "it is so", "source": "t"}
        call = Event("call", **common, input_tokens=50, output_tokens=1, requests=1, usd=0.25, seconds=0.5)
        lost = Event("failed", **common, error="server", message="50%\x00?", attempt=3)
        put(ledger, events=[call, call, Event("cached", **common, rows=7), lost])
        (run,) = ledger.runs()
        assert (run["calls"], run["cached"], run["failed"], run["input_tokens"], run["usd"]) == (2, 7, 1, 100, 0.5)
        assert (
            all(type(run[name]) is int for name in ("seed", "calls", "cached", "input_tokens")) and run["seed"] == 2**40
        )
        assert run["status"] == "killed", "nobody has its lease"
        stored = ledger.stored("run-")
        assert stored is not None and (stored.tokens, stored.usd, stored.status) == (102, 0.5, "running")
        assert ledger.stored("run-2") is None and ledger.run("run-1") == run
        assert [c["kind"] for c in ledger.calls("run-1")] == ["call", "call", "cached", "failed"] and ledger.calls(
            "x"
        ) == []
        assert [e["error"] for e in ledger.errors()] == ["server"]
        question = Predicate("it is so")
        row = uql.llm.questions.Row((uql.llm.questions.Cell("text", "x"),))
        said = {"before": "true", "model": "m", "run": "run-1", "source": "t"}
        first = corrections.correct(ledger, question, row, Answer(True), **said)
        second = corrections.correct(ledger, question, row, Answer(False), **said)
        people = corrections.People.of(ledger)
        assert second > first and people.answers(question, [row])[0].value is False
        corrections.withdraw(ledger, second)
        assert corrections.People.of(ledger).answers(question, [row])[0].value is True
        with pytest.raises(DataError, match="no correction"):
            corrections.withdraw(ledger, second)
        assert corrections.touched(ledger, 0.0).knows(question) and not corrections.touched(ledger, ledger.now()).knows(
            question
        )
        for name, rows in (("uql_runs", 1), ("uql_calls", 4), ("uql_errors", 1), ("uql_corrections", 2)):
            assert table(name, ledger).num_rows == rows


def test_failures_statistics_and_batches_are_kept_by_key(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.fail([Failed("r", b"a", "refusal", "no", "", 1), Failed("r", b"b", "refusal", "no", "raw", 1)])
        ledger.fail([Failed("r", b"a", "wrong_type", "still no", "", 2)])
        found = asyncio.run(ledger.failures("r", [b"a", b"c"]))
        assert found == {b"a": Failed("r", b"a", "wrong_type", "still no", "", 2, at=found[b"a"].at)}
        assert asyncio.run(ledger.failed_keys("r")) == [] and found[b"a"].at > 0, "keys of another length are no keys"
        long = "how a very long question is written " * 500
        ledger.keep_statistics("m on db", {"a": 1, long: {"x": [1, 2.5]}})
        ledger.keep_statistics("m on db", {"a": 2})
        assert ledger.statistics("m on db") == {"a": 2, long: {"x": [1, 2.5]}} and ledger.statistics("other") == {}
        assert ledger.batches() == []


def test_prune_by_table_takes_joins_with_it_and_clear_takes_all(place: str) -> None:
    with Ledger(place) as ledger:
        put(ledger, *(Entry(source.encode(), Answer(1), "m", source) for source in ("a", "b", "a, b", "ab")))
        assert ledger.prune(source="a") == 2 and ledger.answers([b"a", b"b", b"a, b", b"ab"]).keys() == {b"b", b"ab"}
        assert ledger.prune(max_bytes=1) == 2, "all that is not of a run under way"
        put(ledger, Entry(b"c", Answer(1), "m"))
        ledger.start_run("r", statement="", model="m", seed=0)
        assert ledger.clear() == 1 and ledger.runs() == [] and ledger.stats().answers == 0


def test_a_claim_holds_until_the_answer_is_there_or_its_run_is_gone(place: str) -> None:
    async def go(one: Ledger, two: Ledger) -> None:
        lease = Lease(one, "one", lambda: None)
        lease.take()
        with pytest.raises(ConfigError, match="UQL414"):
            Lease(two, "one", lambda: None).take()
        first, second = Claims(one, "one"), Claims(two, "two")
        assert (await first.take([b"a", b"b"])).others == frozenset()
        assert (await second.take([b"a", b"b", b"c"])).others == {b"a", b"b"}
        await one.put([Entry(b"a", Answer(True), "m")])
        found = await second.take([b"a", b"b"], waits=True)
        assert found.answers[b"a"].value is True and found.others == {b"b"}
        assert lease.release() and (await second.take([b"b"])).others == frozenset()

    with Ledger(place) as one, Ledger(place) as two:
        asyncio.run(go(one, two))


def test_a_lease_of_another_host_holds_by_its_signs_of_life_alone(place: str) -> None:
    """The number of its process says nothing here."""
    with Ledger(place) as ledger:
        for age_s, held in ((25.0, True), (31.0, False)):
            lease = ("r", "owner", "elsewhere", 2**22 + 1, ledger.now() - age_s)
            ledger.work(lambda db, lease=lease: db.execute(LEASE, lease).rowcount)
            with pytest.raises(ConfigError, match="elsewhere") if held else nullcontext():
                Lease(ledger, "r", lambda: None).take()


@pytest.mark.parametrize("statement", [EVERY, pytest.param(SOME, marks=pytest.mark.slow)])
def test_two_users_with_one_question_pay_for_it_once(place: str, statement: str) -> None:
    """Each has a connection and a model of its own, as on two machines."""
    alone = Slow(0)
    with connect(":memory:", alone) as con:
        expected = con.uql(statement).estimates["n"]
    models = [Slow(), Slow()]
    with connect(place, models[0]) as one, connect(place, models[1]) as two, ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda con: con.uql(statement).estimates["n"], (one, two)))
    paid = [text for model in models for text in model.paid]
    assert len(paid) == len(set(paid)) == len(alone.paid)
    assert all(n.value == pytest.approx(expected.value) and n.calls == expected.calls for n in found)


def test_what_one_user_paid_another_one_has_for_nothing(place: str) -> None:
    first, second = HashModel({"it is so": 0.3}), HashModel({"it is so": 0.3})
    with connect(place, first) as con:
        said = con.uql(SOME).estimates["n"]
        rows = con.uql('SELECT id FROM t WHERE "it is so" LIMIT 3 WITH (seed = 5)').fetchall()
    with connect(place, second) as con:
        again = con.uql(SOME)
        assert (again.estimates["n"].value, again.estimates["n"].low) == (said.value, said.low)
        assert con.uql('SELECT id FROM t WHERE "it is so" LIMIT 3 WITH (seed = 5)').fetchall() == rows
        assert second.calls == 0 and "answered from run" in " ".join(again.warnings + list(again.notes))
        assert len(con.uql("FROM uql_runs()").fetchall()) == 4
        assert con.uql(EVERY).estimates["n"].exact and first.calls + second.calls <= ROWS + 1, "one more for examples"


@pytest.mark.slow
def test_a_larger_budget_goes_on_with_what_another_user_drew(place: str) -> None:
    first, second, alone = (HashModel({"it is so": 0.3}) for _ in range(3))
    with connect(":memory:", alone) as con:
        expected = con.uql(SOME).estimates["n"]
    with connect(place, first) as con:
        con.uql(SOME.replace("60", "30"))
    with connect(place, second) as con:
        found = con.uql(SOME).estimates["n"]
        assert found.value == pytest.approx(expected.value) and first.calls + second.calls == alone.calls
