"""The gate: what is asked, how often, and what it costs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted import Scripted, row

from uql.base.errors import (
    AuthError,
    BackendError,
    ConfigError,
    ModelError,
    ModelReplyError,
    QuotaError,
    UnknownModelError,
    UQLError,
)
from uql.base.settings import Settings
from uql.llm.gate import Gate, Run
from uql.llm.ledger import Ledger
from uql.llm.ledger_keys import Chunk, Slot
from uql.llm.ledger_sqlite import SQLite
from uql.llm.providers.base import Answer, CallError, Limits, Problem
from uql.llm.questions import Choice, Extract, Predicate, Row, Score, Write

SETTINGS = Settings(ledger=":memory:")
SO = Predicate("it is so")


def gate(provider: Scripted, calls: int | None = None, **settings: object) -> Gate:
    return Gate.open(SETTINGS.with_values(**settings), model=provider, calls=calls, run=Run("r", 1))


def test_answers_come_in_the_order_of_the_rows(run) -> None:
    async def go() -> None:
        async with gate(Scripted(latency_s=0.001)) as g:
            rows = [row("a" * n) for n in range(1, 40)]
            answers = await g.ask(SO, rows)
            assert answers.values == [(n + len(SO.text)) % 2 == 0 for n in range(1, 40)]
            assert answers.probabilities.tolist() == [float(v) for v in answers.values]
            assert not answers.failures

    run(go())


@pytest.mark.parametrize("chunk", [4096, 1000])
def test_a_slow_call_does_not_hold_up_the_rows_after_it(run, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.llm.gate.CHUNK", chunk)

    async def go() -> None:
        provider, last, alone = Scripted(concurrency=512), asyncio.Event(), False

        async def answer(request):
            nonlocal alone
            if request.row == row("0"):
                done, _ = await asyncio.wait([asyncio.create_task(last.wait())], timeout=20)
                alone = not done
            if len(provider.calls) == 4000:
                last.set()
            return await provider._answer(request)

        provider.answer = answer
        async with gate(provider) as g:
            assert not (await g.ask(SO, [row(str(n)) for n in range(4096)])).failures
        assert not alone

    run(go())


def test_the_first_error_ends_the_chunks_beside_it_and_is_raised_itself(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.llm.gate.CHUNK", 8)

    async def go() -> None:
        provider = Scripted(
            lambda request, n: AuthError("no key") if request.row == row("12") else None, concurrency=16, latency_s=0.01
        )
        g = gate(provider)
        with pytest.raises(AuthError, match="no key"):
            async with g:
                await g.ask(SO, [row(str(n)) for n in range(64)])
        assert len(provider.calls) <= 40 and provider.in_flight == 0
        assert g.cost.calls == len(provider.calls) and g.budget.spent_calls == len(provider.calls)

    run(go())


def test_what_another_ask_was_answered_during_a_look_into_the_ledger_is_not_paid_again(run) -> None:
    async def go() -> None:
        provider = Scripted()
        async with gate(provider) as g:
            look, other = g._known, g.ask(SO, [row("x"), row("y")])

            async def late(*asked):
                g._known = look
                found = await look(*asked)
                await other
                return found

            g._known = late
            answers = await g.ask(SO, [row("x"), row("z")])
            assert not answers.failures and len(provider.calls) == g.cost.calls == 3

    run(go())


def test_null_rows_are_none_without_a_call_and_a_write_needs_no_row(run) -> None:
    async def go() -> None:
        provider = Scripted()
        async with gate(provider) as g:
            answers = await g.ask(SO, [row(None), row("x"), Row()])
            assert answers.values[0] is None and answers.values[2] is None and answers.values[1] is not None
            assert not answers.failures and len(provider.calls) == 1 and np.isnan(answers.probabilities[0])
            assert (await g.ask(Write("say it"), [Row()])).values == ["value 6"]

    run(go())


def test_several_questions_about_a_row_travel_in_one_request(run) -> None:
    async def go() -> None:
        provider = Scripted()
        async with gate(provider) as g:
            said = await g.ask([SO, Choice("kind", ("a", "b")), Score("much"), Extract("name")], [row("x"), row("yy")])
            assert len(said) == 4 and len(provider.calls) == 2 and all(len(c.questions) == 4 for c in provider.calls)
            assert g.cost.calls == 2 and g.cost.input_tokens == 20 and g.cost.usd == pytest.approx((20 + 4 * 2) / 1e6)

    run(go())


def test_equal_questions_of_equal_rows_are_sent_once_also_at_the_same_time(run) -> None:
    async def go() -> None:
        provider = Scripted(latency_s=0.01)
        async with gate(provider) as g:
            first, second = await asyncio.gather(
                g.ask(SO, [row("x")] * 5), g.ask([SO, Score("much")], [row("x"), row("y")])
            )
            assert first.values == [first.values[0]] * 5 and second[0].values[0] == first.values[0]
            asked = [(q.text, c.row.cells[0].value) for c in provider.calls for q in c.questions]
            assert len(asked) == len(set(asked)) == 4

    run(go())


def test_a_later_query_with_one_of_two_fused_questions_hits_the_ledger(run, tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"

    async def go() -> None:
        provider = Scripted()
        async with gate(provider, ledger=str(path)) as g:
            both = await g.ask([SO, Extract("name")], [row("x")])
        async with gate(provider, ledger=str(path)) as g:
            again = await g.ask(Extract("name"), [row("x")])
            assert again.values == both[1].values and g.cost.cached == 1 and g.cost.calls == 0
            await g.ask([SO, Extract("name"), Score("much")], [row("x")])
            assert [q.text for q in provider.calls[-1].questions] == ["much"]
        other = Scripted(name="another")
        async with gate(other, ledger=str(path)) as g:
            await g.ask(SO, [row("x")])
            assert len(other.calls) == 1

    run(go())


def test_a_statement_that_was_answered_looks_each_row_up_once_and_makes_nothing_of_the_others(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, looked_up, slots = str(tmp_path / "l.sqlite"), list[bytes](), list[Row]()
    by_key, of_chunk = SQLite.by_key, Chunk.slot
    questions, asked = [SO, Choice("kind", ("a", "b"))], [row(f"{n % 50}") for n in range(60)]
    paid = Run("first", 1, started=0.0)

    def watched_by_key(
        db: SQLite, table: str, items: str, keys: Sequence[bytes], key: str = "key", root: str = ""
    ) -> Iterator[tuple[object, ...]]:
        looked_up.extend(keys if "answer" in table else ())
        return by_key(db, table, items, keys, key, root)

    def watched_slot(chunk: Chunk, i: int, answers: list[Answer | None]) -> Slot:
        slots.append(chunk.rows[i])
        return of_chunk(chunk, i, answers)

    async def go(name: str, rows: list[Row]) -> tuple[list[list[object]], int, int, list[int | None]]:
        looked_up.clear(), slots.clear()
        run = replace(paid, root="" if name == "first" else "first", id=name)
        async with Gate.open(SETTINGS.with_values(ledger=path), model=Scripted(), calls=200, run=run) as g:
            answers = await g.ask(questions, rows)
            return [a.values for a in answers], g.cost.calls, g.cost.cached, [g.calls_left]

    first = run(go("first", asked))
    monkeypatch.setattr(SQLite, "by_key", watched_by_key)
    monkeypatch.setattr(Chunk, "slot", watched_slot)
    again = run(go("second", asked))
    assert first[1:] == (50, 0, [150]) and again == (first[0], 0, 50, [150]), "its calls are counted as they were"
    assert len(looked_up) == len(set(looked_up)) == 100 and not slots
    more = run(go("third", [row("new"), *asked]))
    assert more[1:] == (1, 50, [149]) and [values[1:] for values in more[0]] == first[0]
    assert len(set(looked_up)) == 102 and slots == [row("new")]


def test_holes_cells_tables_and_types_are_part_of_what_is_asked(run) -> None:
    async def go() -> None:
        provider = Scripted()
        async with gate(provider) as g:
            await g.ask(Predicate("in {city}"), [row("x", city="Rome"), row("x", city="Bonn"), row("x")])
            assert len(provider.calls) == 3
            await g.ask(Extract("n", "BIGINT"), [row("x")])
            await g.ask(Extract("n", "DOUBLE"), [row("x")])
            assert len(provider.calls) == 5

    run(go())


def test_the_budget_is_never_exceeded_and_the_rest_is_none_with_its_reason(run) -> None:
    async def go() -> None:
        provider = Scripted(latency_s=0.001)
        async with gate(provider, calls=7) as g:
            answers = await g.ask(SO, [row("a" * n) for n in range(1, 21)])
            assert len(provider.calls) == 7 == g.cost.calls and g.calls_left == 0
            assert [f.kind for f in answers.failures] == ["budget"] * 13
            assert all(answers.values[f.index] is None for f in answers.failures)
            assert [f.index for f in answers.failures] == list(range(7, 20)), "rows are asked in order"
            assert g.cost.failed == 0

    run(go())


def test_with_budget_0_the_ledger_alone_answers(run, tmp_path: Path) -> None:
    async def go() -> None:
        provider, path = Scripted(), str(tmp_path / "l.sqlite")
        async with gate(provider, ledger=path) as g:
            await g.ask(SO, [row("x")])
        async with gate(provider, calls=0, ledger=path) as g:
            answers = await g.ask(SO, [row("x"), row("y")])
            assert answers.values[0] is not None and answers.values[1] is None and len(provider.calls) == 1

    run(go())


@pytest.mark.parametrize("budgets", [200, pytest.param(1_000, marks=pytest.mark.slow)])
def test_over_random_budgets_nothing_is_overspent(run, budgets) -> None:
    rng = random.Random(7)

    async def one(ledger: Ledger) -> None:
        tokens = (rng.randint(1, 50), rng.randint(1, 20))

        def script(request, number):
            roll = rng.random()
            if roll < 0.2:
                return CallError(rng.choice(["rate_limit", "timeout", "server", "truncated", "empty"]), "no")
            return None

        provider = Scripted(script, concurrency=rng.randint(1, 6), tokens=tokens, name=f"m{rng.random()}")
        calls = rng.choice([None, rng.randint(0, 12)])
        caps = {
            "max_tokens": rng.choice([None, rng.randint(1, 400)]),
            "max_cost": rng.choice([None, rng.uniform(1e-6, 4e-4)]),
        }
        g = Gate.open(SETTINGS.with_values(**caps), model=provider, calls=calls, ledger=ledger)
        with contextlib.suppress(BackendError):
            await asyncio.gather(*(g.ask(SO, [row(f"{k} {n}") for n in range(rng.randint(1, 6))]) for k in range(2)))
        assert calls is None or len(provider.calls) <= calls
        assert g.cost.calls == len(provider.calls)
        assert caps["max_tokens"] is None or g.cost.input_tokens + g.cost.output_tokens <= caps["max_tokens"]
        assert caps["max_cost"] is None or g.cost.usd <= caps["max_cost"] + 1e-12

    async def go() -> None:
        with Ledger(":memory:") as ledger:
            for _ in range(budgets):
                await one(ledger)

    run(go())


def test_seconds_end_a_run(run) -> None:
    async def go() -> None:
        provider = Scripted(latency_s=0.02, concurrency=1)
        async with gate(provider, max_seconds=0.1) as g:
            answers = await g.ask(SO, [row(str(n)) for n in range(50)])
            assert (
                1 <= len(provider.calls) <= 6
                and answers.failures[-1].kind == "budget"
                and "seconds" in answers.failures[-1].message
            )

    run(go())


def test_seconds_end_the_wait_for_a_model_whose_work_cannot_be_taken_back(run) -> None:
    async def go() -> None:
        provider = Scripted(latency_s=60.0, limits=Limits(concurrency=1, timed=False))
        async with gate(provider, max_seconds=0.1) as g:
            async with asyncio.timeout(20):
                answers = await g.ask(SO, [row("one"), row("two")])
            assert len(provider.calls) == 1 and len(answers.failures) == 2 and g.budget.exhausted == "seconds"

    run(go())


def test_max_cost_with_an_unknown_price_is_refused(run) -> None:
    async def go() -> None:
        async with gate(Scripted(price=None), max_cost=1.0) as g:
            with pytest.raises(ModelError, match="UQL402"):
                await g.ask(SO, [row("x")])
        async with gate(Scripted(price=None)) as g:
            await g.ask(SO, [row("x")])
            assert g.cost.usd is None

    run(go())


def test_an_unreadable_reply_is_tried_once_more_with_the_error_shown(run) -> None:
    def script(request, number):
        if not request.errors:
            return [Answer(problem=Problem("wrong_type", "a number was wanted", "many"))]
        return [Answer(4.0)]

    async def go() -> None:
        provider = Scripted(script)
        async with gate(provider) as g:
            answers = await g.ask(Extract("n", "DOUBLE"), [row("x")])
            assert answers.values == [4.0] and not answers.failures
            assert provider.calls[1].errors == ("a number was wanted",) and g.cost.calls == 2

    run(go())


def test_a_row_that_fails_twice_is_null_with_its_reason_and_is_never_kept(run, tmp_path: Path) -> None:
    bad = [Answer(problem=Problem("wrong_type", "not a label", "purple"))]

    async def go() -> None:
        provider, path = (
            Scripted(lambda request, number: bad if request.row == row("x") else None),
            str(tmp_path / "l.sqlite"),
        )
        async with gate(provider, ledger=path) as g:
            answers = await g.ask(SO, [row("x"), row("y")])
            (failure,) = answers.failures
            assert (failure.index, failure.kind, failure.message, failure.raw) == (
                0,
                "wrong_type",
                "not a label",
                "purple",
            )
            assert (
                answers.values[0] is None and answers.values[1] is not None and g.cost.failed == 1 and g.cost.calls == 3
            )
        async with gate(Scripted(), ledger=path) as g:
            again = await g.ask(SO, [row("x"), row("y")])
            assert not again.failures and g.cost.calls == 1 and g.cost.cached == 1

    run(go())


def test_of_two_fused_questions_the_failed_one_alone_is_asked_again(run) -> None:
    def script(request, number):
        return [
            Answer(problem=Problem("wrong_type", "no", "?")) if q.text == "bad" else Answer(1.0)
            for q in request.questions
        ]

    async def go() -> None:
        provider = Scripted(script)
        async with gate(provider) as g:
            good, bad = await g.ask([Score("good"), Score("bad")], [row("x")])
            assert good.values == [1.0] and bad.failed == {0} and [len(c.questions) for c in provider.calls] == [2, 1]

    run(go())


@pytest.mark.parametrize("kind", ["rate_limit", "timeout", "server", "connection"])
def test_faults_of_the_wire_are_tried_again(run, kind: str) -> None:
    async def go() -> None:
        provider = Scripted(lambda request, number: CallError(kind, "later") if number <= 2 else None)
        async with gate(provider) as g:
            answers = await g.ask(SO, [row("x")])
            assert not answers.failures and g.cost.calls == 3 and all(c.errors == () for c in provider.calls)

    run(go())


@pytest.mark.parametrize("kind", ["refusal", "content_filter", "too_long"])
def test_what_no_second_try_changes_is_not_asked_again(run, kind: str) -> None:
    async def go() -> None:
        provider = Scripted(lambda request, number: CallError(kind, "no"))
        async with gate(provider) as g:
            assert [f.kind for f in (await g.ask(SO, [row("x")])).failures] == [kind] and g.cost.calls == 1

    run(go())


@pytest.mark.parametrize(
    "error",
    [AuthError("no key"), QuotaError("empty"), UnknownModelError("what"), ConfigError("no"), BackendError("gone")],
)
@pytest.mark.parametrize("on_error", ["null", "raise", "drop"])
def test_errors_of_every_row_stop_at_once_whatever_on_error_says(run, error: UQLError, on_error: str) -> None:
    async def go() -> None:
        provider = Scripted(lambda request, number: error, concurrency=1)
        async with gate(provider, on_error=on_error) as g:
            with pytest.raises(type(error)):
                await g.ask(SO, [row(str(n)) for n in range(20)])
            assert len(provider.calls) == 1

    run(go())


def test_a_backend_that_never_answers_is_an_error_and_one_that_goes_away_too(run) -> None:
    async def go() -> None:
        async with gate(Scripted(lambda request, number: CallError("connection", "refused"))) as g:
            with pytest.raises(BackendError, match="UQL406"):
                await g.ask(SO, [row("x")])
        gone = Scripted(lambda request, number: CallError("connection", "reset") if number > 5 else None, concurrency=1)
        async with gate(gone) as g:
            with pytest.raises(BackendError):
                await g.ask(SO, [row(str(n)) for n in range(40)])
        flaky = Scripted(
            lambda request, number: CallError("connection", "reset") if request.row == row("7") else None, concurrency=1
        )
        async with gate(flaky) as g:
            assert [f.index for f in (await g.ask(SO, [row(str(n)) for n in range(40)])).failures] == [7]

    run(go())


def test_on_error_raise_stops_at_the_first_failed_row(run) -> None:
    async def go() -> None:
        provider = Scripted(
            lambda r, n: [Answer(problem=Problem("wrong_type", "no", "?"))] if r.row == row("3") else None,
            concurrency=1,
        )
        async with gate(provider, on_error="raise") as g:
            with pytest.raises(ModelReplyError, match="wrong_type"):
                await g.ask(SO, [row(str(n)) for n in range(40)])
            assert len(provider.calls) < 8

    run(go())


def test_interrupt_sends_nothing_more_and_keeps_what_was_paid(run, tmp_path: Path) -> None:
    async def go() -> None:
        provider, path = Scripted(latency_s=0.005, concurrency=4), str(tmp_path / "l.sqlite")
        rows = [row(str(n)) for n in range(200)]
        async with gate(provider, ledger=path) as g:
            asking = asyncio.create_task(g.ask(SO, rows))
            while len(provider.calls) < 8:
                await asyncio.sleep(0.001)
            g.interrupt()
            answers = await asking
            paid = len(provider.calls)
            assert (
                0 < paid < 200
                and {f.kind for f in answers.failures} == {"interrupted"}
                and len(answers.failures) == 200 - paid
            )
        async with gate(Scripted(), ledger=path) as g:
            await g.ask(SO, rows)
            assert g.cost.cached == paid and g.cost.calls == 200 - paid

    run(go())


def test_events_are_calls_and_cached_and_failed_rows_and_the_ledger_lists_them(run, tmp_path: Path) -> None:
    def script(request, number):
        if request.row == row("2"):
            return [Answer(problem=Problem("wrong_type", "no", "?"))]
        return CallError("server", "503") if number == 5 else None

    async def go() -> None:
        path = str(tmp_path / "l.sqlite")
        async with gate(Scripted(), ledger=path) as g:
            await g.ask(SO, [row("0"), row("1")])
        seen = []
        ledger = Ledger(path)
        g = Gate.open(SETTINGS, model=Scripted(script), calls=None, run=Run("second"), ledger=ledger)
        g.listeners.append(seen.append)
        await g.ask(SO, [row(str(n)) for n in range(9)])
        await g.aclose()
        kinds = [e.kind for e in seen]
        assert (
            kinds.count("call") == g.cost.calls
            and [e.rows for e in seen if e.kind == "cached"] == [g.cost.cached] == [2]
            and kinds.count("failed") == g.cost.failed == 1
        )
        rows = sum(e.rows for e in seen)
        assert rows == sum(e["rows"] for e in ledger.calls("second")) == g.cost.calls + g.cost.cached + g.cost.failed
        (told,) = [r for r in ledger.runs() if r["run"] == "second"]
        assert told["status"] == "done" and told["calls"] == g.cost.calls and told["failed"] == 1
        assert [e["error"] for e in ledger.errors("second")] == ["wrong_type"]
        ledger.close()

    run(go())


def test_concurrency_is_kept_and_used(run) -> None:
    async def go() -> None:
        provider = Scripted(latency_s=0.002)
        async with gate(provider, concurrency=5) as g:
            await asyncio.gather(*(g.ask(SO, [row(f"{k}{n}") for n in range(20)]) for k in range(3)))
        assert provider.most_in_flight == 5

    run(go())


def test_a_named_model_is_asked_beside_the_default(run) -> None:
    async def go() -> None:
        small, large = Scripted(name="small"), Scripted(name="large")
        async with gate(small) as g:
            await g.ask(SO, [row("x")], model=large)
            await g.ask(SO, [row("x")])
        assert len(small.calls) == len(large.calls) == 1 and not large.closed and not small.closed

    run(go())


@pytest.mark.parametrize("spec", [None, "gpt", "what:is", "openai", "oracle:/not/there.toml"])
def test_a_model_that_cannot_be_meant_is_an_error_with_the_choices(run, spec: str | None) -> None:
    async def go() -> None:
        async with Gate.open(SETTINGS.with_values(model=spec)) as g:
            with pytest.raises(ConfigError, match="oracle"):
                await g.ask(SO, [row("x")])

    run(go())


def test_a_missing_model_file_says_how_to_get_it(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_HOME", str(tmp_path))

    async def go() -> None:
        for spec in ("local", "local:nothing", "local:/no/file.gguf"):
            async with Gate.open(SETTINGS.with_values(model=spec)) as g:
                with pytest.raises(UnknownModelError, match="uql models pull"):
                    await g.ask(SO, [row("x")])

    run(go())
