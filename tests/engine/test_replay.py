"""The same statement again: its own run is drawn again, with the same numbers and rows, for no call; a larger budget goes on with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hash_model import HashModel, digest
from paid_model import Paid, said

import uql
from uql.base.errors import BudgetError
from uql.kernels.relation import Relation
from uql.llm.ledger import Ledger
from uql.llm.providers.base import Answer, CallError, Price, Problem, Reply, Request, RowsReply, RowsRequest
from uql.llm.questions import Predicate, Write
from uql.show.render import price_line

WORDS = ("cats", "dogs", "rivers", "trains", "cakes", "storms", "letters", "gardens")
STATEMENTS = {
    "count": 'SELECT COUNT(*) AS n FROM t WHERE "it is so"',
    "sum": 'SELECT SUM(v) AS s, AVG(v) AS m FROM t WHERE "it is so" AND v > 3',
    "read": 'SELECT AVG("the score"::DOUBLE) AS m FROM t WHERE "it is so"',
    "stored groups": 'SELECT k, COUNT(*) AS n FROM t WHERE "it is so" GROUP BY k ORDER BY k',
    "taxonomy": 'SELECT kind, COUNT(*) AS n FROM t GROUP BY "the kind" AS kind ORDER BY kind',
    "two conditions": 'SELECT COUNT(*) AS n FROM t WHERE "it is so" AND "it is nice"',
    "search": 'SELECT id FROM t WHERE "it is so"',
    "search with values": 'SELECT id, "the name" AS name FROM t WHERE "it is so"',
    "limit": 'SELECT id FROM t WHERE "it is nice" LIMIT 20',
    "first": 'SELECT id FROM t WHERE "it is nice" ORDER BY v DESC LIMIT 9',
    "join": 'SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.k = b.k AND a.id < b.id WHERE "{a.text} is like {b.text}"',
    "sub-query": 'WITH x AS (SELECT * FROM t WHERE "it is so" AND v > 5) SELECT k, "the name" AS name FROM x LIMIT 5',
    "union": 'SELECT COUNT(*) AS n FROM t WHERE "it is so" UNION ALL SELECT COUNT(*) FROM t WHERE "it is nice"',
    "error": 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (error = 0.2)',
    "recall": 'SELECT id FROM t WHERE "it is so" WITH (recall = 0.8)',
    "precision": 'SELECT id FROM t WHERE "it is so" WITH (precision = 0.8)',
    "tokens": 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (max_tokens = 4000)',
    "uqe": "SELECT COUNT(*) AS n FROM t WHERE \"it is so\" WITH (method = 'uqe')",
    "lateral": 'SELECT o.k, x.n FROM (VALUES (0), (1)) AS o(k), LATERAL (SELECT COUNT(*) AS n FROM t WHERE t.k = o.k AND "it is so") AS x',
    "for each value": 'SELECT o.k, x.n FROM (VALUES (0), (1)) AS o(k), LATERAL (SELECT COUNT(*) AS n FROM t WHERE t.k - o.k = 0 AND "it is so") AS x',
}


def connect(folder: Path, model: Any, rows: int = 500, ledger: str | None = None, **settings: Any) -> uql.Connection:
    folder.mkdir(exist_ok=True)
    con = uql.connect(folder / "t.duckdb", model=model, ledger=ledger or str(folder / "l.sqlite"), **settings)
    words = ", ".join(f"'{word}'" for word in WORDS)
    con.sql(
        f"CREATE TABLE IF NOT EXISTS t AS SELECT range AS id, range % 4 AS k, range % 17 AS v, "
        f"'a text about ' || list_extract([{words}], 1 + range % 8) || ' and the number ' || range AS text FROM range({rows})"
    )
    return con


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "other"),
    [
        ('SELECT COUNT(*) AS n FROM t WHERE "it is so" AND "it is nice"', STATEMENTS["read"]),
        (
            'SELECT COUNT(*) FILTER ("it is so") - COUNT(*) FILTER ("it is nice") AS n FROM t',
            'SELECT id FROM t WHERE "it is nice" AND id BETWEEN 200 AND 420',
        ),
    ],
)
def test_a_row_of_which_another_statement_has_paid_a_question_counts_once(
    tmp_path: Path, statement: str, other: str
) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        for text, calls in ((statement, 40), (other, 96)):
            con.uql(f"{text} WITH (budget = {calls})").fetchall()
        larger = con.uql(f"{statement} WITH (budget = 96)")
        expected, paid = said(larger), len(model.paid)
        for _ in range(2):
            assert said(con.uql(larger.text)) == expected and len(model.paid) == paid


@pytest.mark.thorough
@pytest.mark.parametrize("statement", ["SELECT COUNT(*) AS n", "SELECT id"])
def test_what_was_read_in_between_leaves_the_numbers_of_a_statement_alone(tmp_path: Path, statement: str) -> None:
    model = Paid()
    own = f'{statement} FROM t WHERE "it is so" AND id < 90 WITH (budget = 30)'
    others = [
        f'SELECT id FROM t WHERE "it is nice" AND {part} WITH (budget = 30)'
        for part in ("id < 110", "id < 140", "true")
    ]
    with connect(tmp_path, model) as con:
        first = said(con.uql(own))
        for other in (*others, *others):
            con.uql(other).fetchall()
            paid = len(model.paid)
            assert said(con.uql(own)) == first and len(model.paid) == paid


@pytest.mark.parametrize("statement", ["SELECT COUNT(*) AS n", "SELECT id"])
def test_who_has_another_copy_of_the_table_and_read_other_rows_of_it_gets_the_numbers_of_the_ledger(
    tmp_path: Path, statement: str
) -> None:
    model, ledger = Paid(), str(tmp_path / "team.sqlite")
    own = f'{statement} FROM t WHERE "it is so" AND k = 1 WITH (budget = 60)'
    with connect(tmp_path / "ada", model, ledger=ledger) as ada, connect(tmp_path / "bob", model, ledger=ledger) as bob:
        first = said(ada.uql(own))
        bob.uql('SELECT COUNT(*) AS n FROM t WHERE "it is nice" WITH (budget = 30)').fetchall()
        paid = len(model.paid)
        assert said(bob.uql(own)) == first and len(model.paid) == paid


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", STATEMENTS)
def test_the_same_statement_again_gives_the_same_numbers_for_no_call(tmp_path: Path, name: str) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        first = con.uql(STATEMENTS[name])
        expected, paid = said(first), len(model.paid)
        assert paid
        again = con.uql("  " + STATEMENTS[name].replace("SELECT", "select") + " -- again")
        assert said(again) == expected
        assert len(model.paid) == paid and again.cost.calls == 0
        if not first.exact:
            note = f"answered from run {first.run_id} of "
            assert any(n.startswith(note) and "`WITH (fresh = true)` draws anew" in n for n in again.notes)
    with connect(tmp_path, model) as con:  # another session
        assert said(con.uql(STATEMENTS[name])) == expected and len(model.paid) == paid


@pytest.mark.thorough
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "name", ["count", "sum", "read", "stored groups", "taxonomy", "search", "join", "union", "uqe", "error"]
)
def test_a_larger_budget_goes_on_with_the_rows_of_the_smaller_one(tmp_path: Path, name: str) -> None:
    model = Paid()
    statement, _, options = STATEMENTS[name].partition(" WITH (")
    options = f", {options}" if options else ")"

    def run(con: uql.Connection, budget: int) -> uql.Result:
        return con.uql(f"{statement} WITH (budget = {budget}{options}")

    with connect(tmp_path, model) as con:
        small = said(run(con, 128))
        first = list(model.paid)
        large = run(con, 256)
        expected = said(large)
        assert len(model.paid) <= 256 and large.cost.calls == len(model.paid) - len(first)
        assert len(set(model.paid)) == len(model.paid)
        if name not in ("taxonomy", "error"):
            assert large.cost.calls >= 100, "it is spent on further rows"
        assert any("goes on with run" in note for note in large.notes)
        if name == "search":
            assert set(small[0]) <= set(expected[0])
        paid = len(model.paid)
        assert said(run(con, 256)) == expected and said(run(con, 128)) == small, "each budget has its numbers"
        assert said(run(con, 200)) == expected, "one in between is answered from the larger"
        assert len(model.paid) == paid


class WithoutExamples(Paid):
    """Makes up no example rows, so a search begins with random ones."""

    def _answer(self, question: Any, row: Any) -> Any:
        if isinstance(question, Write) and question.task == "examples":
            return Answer(problem=Problem("wrong_type", "no"))
        return super()._answer(question, row)


GOES_ON = {
    **{name: STATEMENTS[name] for name in ("count", "sum", "read", "stored groups", "taxonomy", "search", "recall")},
    **{name: STATEMENTS[name] for name in ("search with values", "two conditions", "limit", "union", "join")},
    "searches": 'SELECT id FROM t WHERE "it is so" UNION ALL SELECT id FROM t WHERE "it is nice"',
    "a whole part, and a search": 'SELECT id FROM t WHERE "it is so" AND id < 90 UNION ALL SELECT id FROM t WHERE "it is nice"',
    "few rows": 'SELECT id % 40 AS f, AVG("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY m LIMIT 3',
    "few rows, then many": 'SELECT id % 5 AS f, AVG("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY f',
    "difference": 'SELECT COUNT(*) FILTER ("it is so") - COUNT(*) FILTER ("it is nice") AS n FROM t',
    "values": 'SELECT COUNT(DISTINCT v) AS n FROM t WHERE "it is nice"',
}


@pytest.mark.thorough
@pytest.mark.one_in(4)
@pytest.mark.parametrize("budget", [8, 24, 60])
@pytest.mark.parametrize("name", GOES_ON)
def test_three_times_the_budget_pays_for_the_further_rows_alone(tmp_path: Path, name: str, budget: int) -> None:
    model = WithoutExamples()
    statement, _, options = GOES_ON[name].partition(" WITH (")
    with connect(tmp_path, model, rows=400) as con:
        ran = 0
        for calls in (budget, 3 * budget):
            try:
                result = con.uql(f"{statement} WITH (budget = {calls}{', ' + options if options else ')'}")
                numbers = said(result)
            except BudgetError:  # too few for this statement
                continue
            ran += 1
            assert len(model.paid) <= calls or result.exact
            assert len({one for one in model.paid if one[1]}) == sum(bool(one[1]) for one in model.paid)
        paid = len(model.paid)
        assert ran and said(con.uql(result.text)) == numbers and len(model.paid) == paid


def test_fresh_draws_anew_and_is_then_the_run_that_is_answered_from(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        one = con.uql(STATEMENTS["count"])
        first, paid = said(one), len(model.paid)
        anew = con.uql(STATEMENTS["count"] + " WITH (fresh = true)")
        assert said(anew) != first and model.since(paid) > 100
        paid = len(model.paid)
        assert said(con.uql(STATEMENTS["count"])) == said(anew) and len(model.paid) == paid
        con.uql("SET uql.fresh = true")
        con.uql(STATEMENTS["count"]).fetchall()
        assert model.since(paid) > 100


def test_another_query_sees_the_answers_as_known_rows(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        con.uql(STATEMENTS["count"]).fetchall()
        other = con.uql('SELECT SUM(v) AS s FROM t WHERE "it is so"')
        assert other.cost.cached >= 100 and not any("answered from" in note for note in other.notes)


@pytest.mark.parametrize("changed", [{"seed": 3}, {"confidence": 0.9}, {"method": "uniform"}])
def test_settings_that_change_answers_are_another_run(tmp_path: Path, changed: dict[str, Any]) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        con.uql(STATEMENTS["count"]).fetchall()
        paid = len(model.paid)
        with con.settings(concurrency=2, timeout_s=9):
            assert con.uql(STATEMENTS["count"]).cost.calls == 0
        with con.settings(**changed):
            con.uql(STATEMENTS["count"]).fetchall()
        assert model.since(paid) > 100


def test_parameters_are_part_of_the_statement(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        statement = 'SELECT COUNT(*) AS n FROM t WHERE "it is so" AND v < $most'
        a, b = said(con.uql(statement, most=12)), said(con.uql(statement, most=9))
        paid = len(model.paid)
        assert said(con.uql(statement, {"most": 12})) == a and said(con.uql(statement, most=9)) == b
        assert len(model.paid) == paid


def test_rows_that_did_not_change_keep_their_answers_and_the_draw_is_new(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        before = said(con.uql(STATEMENTS["count"]))
        paid = len(model.paid)
        con.sql("UPDATE t SET text = text || '!' WHERE id % 100 = 5")
        result = con.uql(STATEMENTS["count"])
        assert result.cost.calls and result.cost.cached >= 100, "the others are known"
        assert not any("answered from" in note for note in result.notes)
        changed, paid = said(result), len(model.paid)
        assert said(con.uql(STATEMENTS["count"])) == changed and len(model.paid) == paid
        con.sql("UPDATE t SET text = replace(text, '!', '')")
        assert said(con.uql(STATEMENTS["count"])) == before and len(model.paid) == paid, "the first data, the first run"


def test_rows_that_changed_are_seen_behind_a_sub_query_that_is_run_for_each_value(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model, budget=64) as con:
        con.uql(STATEMENTS["for each value"]).fetchall()
        con.sql("UPDATE t SET text = text || '!' WHERE id % 100 = 4")
        result = con.uql(STATEMENTS["for each value"])
        assert result.cost.calls and not any("answered from" in note for note in result.notes)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "search", "lateral", "for each value"])
def test_explain_of_a_larger_budget_leaves_out_what_the_smaller_one_paid(tmp_path: Path, name: str) -> None:
    with connect(tmp_path, Paid()) as con:
        first = con.uql(STATEMENTS[name] + " WITH (budget = 64)").cost.calls
        larger = con.uql(STATEMENTS[name] + " WITH (budget = 160)")
        quote = larger.quote()
        assert quote.calls.high <= 160 - first and "Calls: 160" not in larger.explain()
        assert quote.calls.low <= larger.cost.calls <= quote.calls.high


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "lateral", "search"])
def test_explain_of_all_rows_leaves_out_once_what_a_smaller_budget_paid(tmp_path: Path, name: str) -> None:
    with connect(tmp_path, Paid()) as con:
        con.uql(STATEMENTS[name] + " WITH (budget = 200)").fetchall()
        everything = con.uql(STATEMENTS[name] + " WITH (budget = 'all')")
        calls = everything.quote().calls
        assert calls.low <= everything.cost.calls <= calls.high


def test_a_ledger_in_memory_does_the_same_as_long_as_its_connection_lives(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model, ledger=":memory:") as con:
        first = said(con.uql(STATEMENTS["count"]))
        paid = len(model.paid)
        assert said(con.uql(STATEMENTS["count"])) == first and len(model.paid) == paid
        with con.cursor() as cursor:
            assert said(cursor.uql(STATEMENTS["count"])) == first and len(model.paid) == paid
        assert said(con.uql(STATEMENTS["count"])) == first and len(model.paid) == paid
    with connect(tmp_path, model, ledger=":memory:") as con:
        con.uql(STATEMENTS["count"]).fetchall()
        assert len(model.paid) == 2 * paid


def test_explain_and_quote_say_that_there_are_no_new_calls(tmp_path: Path) -> None:
    with connect(tmp_path, Paid()) as con:
        result = con.uql(STATEMENTS["count"])
        assert "0 new calls" not in result.explain() and result.quote().calls.high > 0
        result.fetchall()
        again = con.uql(STATEMENTS["count"])
        assert f"0 new calls: answered from run {result.run_id} of " in again.explain()
        assert again.quote().calls.high == 0 and price_line(again.quote()) == "about 0 calls"
        text = "\n".join(row[0] for row in con.uql(f"EXPLAIN {STATEMENTS['count']}").fetchall())
        assert "0 new calls" in text
        larger = con.uql(STATEMENTS["count"] + " WITH (budget = 200)")
        assert "0 new calls" not in larger.explain()
        assert "0 new calls" not in con.uql(STATEMENTS["count"] + " WITH (fresh = true)").explain()


def test_each_statement_of_a_script_has_its_run(tmp_path: Path) -> None:
    model = Paid()
    script = f"CREATE OR REPLACE TEMP TABLE one AS {STATEMENTS['search']}; {STATEMENTS['count']}"
    with connect(tmp_path, model) as con:
        first = said(con.uql(script))
        paid = len(model.paid)
        assert said(con.uql(script)) == first and len(model.paid) == paid
        assert said(con.uql(STATEMENTS["count"])) == first and len(model.paid) == paid


class Mumbling(Paid):
    """Of every seventh row the first reply is unreadable."""

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        if request.errors or digest(request.questions[0], request.row) % 7:
            return reply
        return Reply(tuple(Answer("perhaps") for _ in reply.answers), 50, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("name", ["count", "sum", "search", "taxonomy"])
def test_rows_that_only_a_larger_budget_reached_are_not_of_a_smaller_one(tmp_path: Path, name: str, rows: int) -> None:
    model = Mumbling()
    with connect(tmp_path, model, rows_per_request=rows) as con:
        texts = [f"{STATEMENTS[name]} WITH (budget = {calls})" for calls in (40, 96, 200)]
        runs = {text: said(con.uql(text)) for text in texts}
        paid = len(model.paid)
        assert 96 < paid <= 200
        for text, expected in runs.items():
            assert said(con.uql(text)) == expected and len(model.paid) == paid


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "stored groups"])
@pytest.mark.parametrize(("kind", "rows"), [(Mumbling, 1), (Paid, 4)])
def test_tokens_of_all_tries_and_of_the_largest_request_count_again(
    tmp_path: Path, kind: type[Paid], rows: int, name: str
) -> None:
    model = kind()
    with connect(tmp_path, model, rows_per_request=rows) as con:
        first = con.uql(f"{STATEMENTS[name]} WITH (max_tokens = 4000)")
        expected, paid = said(first), len(model.paid)
        assert first.cost.input_tokens + first.cost.output_tokens > 3000
        assert said(con.uql(first.text)) == expected and len(model.paid) == paid


@pytest.mark.parametrize("name", ["sub-query", "for each value"])
def test_a_run_that_was_broken_off_while_a_sub_query_was_answered_goes_on(tmp_path: Path, name: str) -> None:
    class Stopping(Paid):
        async def answer(self, request: Request) -> Reply:
            if len(self.paid) == 3:
                con.interrupt()
            return await super().answer(request)

    with connect(tmp_path / "whole", HashModel({"it is so": 0.3})) as con:
        expected = con.uql(STATEMENTS[name]).fetchall()
    with connect(tmp_path / "broken", Stopping()) as con:
        broken = con.uql(STATEMENTS[name])
        assert broken.partial and broken.run_id is not None
        assert con.resume(broken.run_id).fetchall() == expected


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("stop", [9, 30])
def test_a_run_that_was_broken_off_makes_no_more_calls_in_all_than_its_budget(
    tmp_path: Path, stop: int, rows: int
) -> None:
    class Stopping(Mumbling):
        async def answer(self, request: Request) -> Reply:
            if len(self.paid) == stop:
                con.interrupt()
            return await super().answer(request)

    model = Stopping()
    with connect(tmp_path, model, rows_per_request=rows) as con:
        broken = con.uql(f"{STATEMENTS['count']} WITH (budget = 60)")
        assert broken.partial and stop < len(model.paid) < 60
        assert broken.run_id is not None
        con.resume(broken.run_id).fetchall()
    assert 50 < len(model.paid) <= 60


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "search", "stored groups"])
def test_a_run_that_was_broken_off_keeps_its_rows_without_an_answer_when_it_goes_on(tmp_path: Path, name: str) -> None:
    class Stopping(Patchy):
        async def answer(self, request: Request) -> Reply:
            if len(self.paid) == 60:
                con.interrupt()
            cells = tuple(c.value for c in request.row.cells)
            self.patchy = all(row != cells for _, row in self.paid)  # asked once more, it would answer
            return await super().answer(request)

    with connect(tmp_path / "whole", Patchy()) as con:
        unbroken = con.uql(f"{STATEMENTS[name]} WITH (budget = 64)")
        assert unbroken.errors
        expected, failed = said(unbroken), [e.row for e in unbroken.errors]
    model = Stopping()
    with connect(tmp_path / "broken", model) as con:
        broken = con.uql(unbroken.text)
        assert broken.partial and broken.errors and broken.run_id is not None
        resumed = con.resume(broken.run_id)
        assert said(resumed)[:2] == expected[:2] and [e.row for e in resumed.errors] == failed
        assert len(model.paid) <= 64
        assert resumed.retry_failed().cost.calls, "these are asked"


class Refusing(Paid):
    """Gives no answer for some rows."""

    async def answer(self, request: Request) -> Reply:
        if request.row.cells and str(request.row.cells[0].value).endswith("7"):
            self.paid.append(("refused", request.row.cells[0].value))
            raise CallError("refusal", "no")
        return await super().answer(request)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "search", "limit"])
def test_rows_without_an_answer_have_none_again_and_are_not_paid_twice(tmp_path: Path, name: str) -> None:
    model = Refusing()
    with connect(tmp_path, model) as con:
        first = con.uql(STATEMENTS[name])
        expected, paid = said(first), len(model.paid)
        assert first.errors or name == "limit"
        again = con.uql(STATEMENTS[name])
        assert said(again) == expected and [e.row for e in again.errors] == [e.row for e in first.errors]
        assert len(model.paid) == paid


class RefusingOne(Paid):
    """Answers one of two questions about some rows, and not the other."""

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        refused = str(request.row.cells[0].value).endswith("7")
        none = Answer(problem=Problem("refusal", "no"))
        answers = (
            none if refused and "nice" in q.text else a for q, a in zip(request.questions, reply.answers, strict=True)
        )
        return replace(reply, answers=tuple(answers))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("how", ["AND NOT", "OR"])
@pytest.mark.parametrize("what", ["COUNT(*) AS n", "id"])
def test_a_row_that_has_one_of_two_answers_counts_once_again(tmp_path: Path, what: str, how: str) -> None:
    model = RefusingOne()
    statement = f'SELECT {what} FROM t WHERE "it is so" {how} "it is nice"'
    with connect(tmp_path, model, seed=3, budget=128) as con:
        first = con.uql(statement)
        expected, paid = said(first), len(model.paid)
        assert first.errors
        again = con.uql(statement)
        assert said(again) == expected and [e.row for e in again.errors] == [e.row for e in first.errors]
        assert len(model.paid) == paid


def test_a_run_that_was_interrupted_goes_on_when_its_statement_is_given_again(tmp_path: Path) -> None:
    whole = Paid()
    (tmp_path / "whole").mkdir()
    with connect(tmp_path / "whole", whole) as con:
        expected = con.uql(STATEMENTS["count"]).estimates
    model = Paid()
    with connect(tmp_path, model) as con:
        stop = con.on_event(lambda event: con.interrupt() if len(model.paid) > 50 else None)
        assert con.uql(STATEMENTS["count"]).partial
        stop()
        assert con.uql(STATEMENTS["count"]).estimates == expected
    assert len(model.paid) == len(set(model.paid)) == len(whole.paid)


class Faulty(Paid):
    """Of every ninth row the first reply is unreadable, and every thirteenth is refused, for 50 tokens."""

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        number = digest(request.questions[0], request.row)
        if not request.errors and number % 9 == 0:
            return Reply(tuple(Answer("perhaps") for _ in reply.answers), 50, 1)
        if number % 13 == 1:
            raise CallError("refusal", "no", input_tokens=50)
        return reply


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["max_cost = {}e-6", "max_tokens = {}"])
@pytest.mark.parametrize("name", ["count", "search with values", "stored groups"])
def test_each_limit_has_its_numbers_where_rows_fail(tmp_path: Path, name: str, limit: str) -> None:
    model = Faulty(price=Price(1.0, 1.0))
    with connect(tmp_path, model) as con:
        texts = [f"{STATEMENTS[name]} WITH ({limit.format(51 * calls)})" for calls in (40, 96, 110)]
        runs = {}
        for text in texts:
            for _ in range(2):
                paid = len(model.paid)
                runs[text] = said(con.uql(text))
        paid = len(model.paid)
        assert paid > 100 and ("cost" not in limit or paid <= 112), "a larger max_cost goes on"
        for text, expected in runs.items():
            assert said(con.uql(text)) == expected and len(model.paid) == paid
            assert con.uql(text).quote().calls.high == 0


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["max_cost = 2448e-6", "max_tokens = 2448", "budget = 48"])
@pytest.mark.parametrize(("rows", "at"), [(900, 30), (500, 30), (500, 44)])
def test_a_run_with_a_limit_that_was_broken_off_goes_on_to_the_numbers_of_an_unbroken_one(
    tmp_path: Path, limit: str, rows: int, at: int
) -> None:
    class Stopping(Faulty):
        async def answer(self, request: Request) -> Reply:
            if len(self.paid) == at:
                con.interrupt()
            return await super().answer(request)

    text, price = f"{STATEMENTS['count']} WITH ({limit})", Price(1.0, 1.0)
    whole, model = Faulty(price=price), Stopping(price=price)
    with connect(tmp_path / "whole", whole, rows=rows) as con:
        expected = said(con.uql(text))
    with connect(tmp_path / "broken", model, rows=rows) as con:
        run = con.uql(text).run_id
        assert len(model.paid) < at + 14 and len(model.paid) < 48
        assert said(con.resume(run)) == expected and len(model.paid) == len(whole.paid)
        assert said(con.uql(text)) == expected and len(model.paid) == len(whole.paid)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "rows"), [("count", 1), ("error", 3), ("precision", 3)])
def test_who_gives_a_statement_at_once_is_told_the_same_where_rows_fail(tmp_path: Path, name: str, rows: int) -> None:
    model = Faulty()
    with connect(tmp_path, model, rows_per_request=rows) as con, ThreadPoolExecutor(3) as threads:
        cursors, begin = [con.cursor() for _ in range(3)], Barrier(3)

        def ask(cursor: uql.Connection) -> Any:
            begin.wait(30)
            return said(cursor.uql(STATEMENTS[name]))

        first, *others = threads.map(ask, cursors)
        paid = len(model.paid)
        assert others == [first, first] and said(con.uql(STATEMENTS[name])) == first and len(model.paid) == paid


class Bill(Paid):
    """Writes down each row that it is asked about, and ends its process after so many answers; 0: never."""

    def __init__(self, path: Path, stop_at: int) -> None:
        super().__init__()
        self.path, self.stop_at = path, stop_at

    async def answer(self, request: Request) -> Reply:
        with self.path.open("a") as bill:
            bill.write(str(request.row.cells[0].value if request.row.cells else "examples") + "\n")
        reply = await super().answer(request)
        if len(self.paid) == self.stop_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return reply


def counted(folder: Path, stop_at: int = 0) -> list[float]:
    with connect(folder, Bill(folder / "bill", stop_at)) as con:
        n = con.uql(STATEMENTS["count"]).estimates["n"]
        return [n.value, n.low, n.high, n.calls]


IN_A_PROCESS = """
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/engine"]
from pathlib import Path
from test_replay import counted
print(counted(Path(sys.argv[2]), int(sys.argv[3])))
"""


@pytest.mark.thorough
def test_a_killed_run_goes_on_in_another_process_and_is_then_answered_in_a_third(tmp_path: Path) -> None:
    def process(stop_at: int) -> str:
        command = [sys.executable, "-c", IN_A_PROCESS, str(Path(__file__).parents[1]), str(tmp_path), str(stop_at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == (-9 if stop_at else 0), done.stderr
        return done.stdout

    def billed(folder: Path) -> int:
        return len((folder / "bill").read_text().splitlines())

    (tmp_path / "whole").mkdir()
    whole = counted(tmp_path / "whole")
    process(60)
    assert json.loads(process(0)) == whole
    paid = billed(tmp_path)
    assert billed(tmp_path / "whole") <= paid <= billed(tmp_path / "whole") + 8
    assert counted(tmp_path) == whole and billed(tmp_path) == paid


def test_a_corrected_row_keeps_its_correction_in_the_same_draw(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        rows = con.uql(STATEMENTS["search"])
        found = [row[0] for row in rows.fetchall()]
        count = con.uql(STATEMENTS["count"]).estimates["n"]
        paid = len(model.paid)
        rows.correct(0, False)
        again = con.uql(STATEMENTS["search"])
        assert [row[0] for row in again.fetchall()] == found[1:]
        after = con.uql(STATEMENTS["count"]).estimates["n"]
        assert after.calls == count.calls and after.value != count.value
        assert len(model.paid) == paid


def test_a_limit_that_asks_further_rows_after_a_correction_says_why(tmp_path: Path) -> None:
    model = Paid()
    with connect(tmp_path, model) as con:
        rows = con.uql(STATEMENTS["limit"])
        assert len(rows) == 20
        paid = len(model.paid)
        rows.correct(0, False)
        again = con.uql(STATEMENTS["limit"])
        assert len(again) == 20 and again.cost.calls == model.since(paid) > 0
        assert any(f"{again.cost.calls} calls more, since rows of it were corrected" in note for note in again.notes)
        third = con.uql(STATEMENTS["limit"])
        assert third.cost.calls == 0 and not any("calls more" in note for note in third.notes)


class Reader(Paid):
    """Says yes by the words of a row."""

    def _answer(self, question: Any, row: Any) -> Any:
        if isinstance(question, Predicate):
            yes = any(word in str(row.cells[0].value) for word in question.text.split())
            return Answer(yes, float(yes))
        return super()._answer(question, row)


def test_vectors_that_were_made_since_do_not_change_which_questions_are_asked(tmp_path: Path) -> None:
    model = Reader()
    query = 'SELECT id FROM t WHERE "cats dogs" OR "rivers trains" OR "cakes storms" WITH (exact)'
    with connect(tmp_path, model, disabled_rules="predicates_together") as con:
        first = said(con.uql(query))
        con.uql(STATEMENTS["count"]).fetchall()  # makes the vectors
        paid = len(model.paid)
        assert said(con.uql(query)) == first and len(model.paid) == paid


def test_labels_of_a_table_that_are_paid_are_priced_at_nothing_in_another_statement(con):
    chosen = "FROM reviews WHERE \"the topic\" IN (SELECT 'plot' UNION SELECT 'music')"
    assert con.uql(f"SELECT id {chosen}").cost.calls > 0
    other = con.uql(f"SELECT id, film {chosen}")
    assert other.quote().calls.high == 0 and other.cost.calls == 0


@pytest.mark.thorough
@pytest.mark.parametrize("statement", ['SELECT id FROM t WHERE "it is so"', 'SELECT COUNT(*) FROM t WHERE "it is so"'])
def test_paid_answers_are_looked_up_and_rows_are_given_many_at_once(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uql.kernels.finish.AT_ONCE", 1_000)
    con = uql.connect(model=HashModel({"it is so": 0.5}), ledger=str(tmp_path / "l.sqlite"))
    con.execute("CREATE TABLE t AS SELECT range AS id, 'text of number ' || range AS text FROM range(9000)")
    first = con.uql(f"{statement} WITH (budget = 'all')").fetchall()
    looked_up, joined = list[int](), list[int]()
    find, join = Ledger.get_paid, Relation.joined
    monkeypatch.setattr(
        Ledger, "get_paid", lambda own, keys, *when: looked_up.append(len(keys)) or find(own, keys, *when)
    )
    monkeypatch.setattr(
        Relation, "joined", lambda own, rids, *a, **k: joined.append(len(rids)) or join(own, rids, *a, **k)
    )
    again = con.uql(f"{statement} WITH (budget = 'all')")
    assert again.fetchall() == first and again.cost.calls == 0 and again.cost.cached == 9_000
    assert looked_up == [9_000]
    assert statement.startswith("SELECT COUNT") or (sum(joined) == len(first) and max(joined) <= 1_000)


@pytest.mark.parametrize("order", ["", " ORDER BY v DESC"])
def test_rows_that_limit_lacked_and_others_have_paid_for_since_are_not_of_the_same_statement_again(tmp_path, order):
    con = connect(tmp_path, HashModel(), rows=30, ledger=":memory:")
    statement = f'SELECT id FROM t WHERE "it is nice"{order} LIMIT 9 WITH (budget = 8)'
    first, again = con.uql(statement), con.uql(statement)
    assert first.partial and again.fetchall() == first.fetchall()
    assert "answered from run" in again.notes[-1]
    con.uql("SELECT id FROM t WHERE \"it is nice\" WITH (budget = 'all')").fetchall()
    assert said(con.uql(statement)) == said(first)
    more = con.uql(statement.replace("budget", "fresh = true, budget"))
    assert len(more) == 9 and more.exact and more.cost.calls == 0


def test_failures_of_the_run_that_drew_are_looked_up_only_where_an_answer_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    failures = Ledger.failures

    async def noted(ledger: Ledger, run: str, keys: Sequence[bytes]) -> Any:
        looked_up.append(len(keys))
        return await failures(ledger, run, keys)

    monkeypatch.setattr(Ledger, "failures", noted)
    for _ in range(2):
        with connect(tmp_path, HashModel({"it is so": 0.4}), rows=60) as con:
            con.uql("SELECT id FROM t WHERE \"it is so\" WITH (budget = 'all')").fetchall()
    assert not [n for n in looked_up if not n]


def test_failures_of_earlier_runs_are_read_once_a_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.llm.gate.CHUNK", 50)
    statement = "SELECT id FROM t WHERE \"it is so\" WITH (budget = 'all')"
    with connect(tmp_path, Patchy(), rows=400) as con:
        failed = [error.row for error in con.uql(statement).errors]
    read = list[tuple[str, int]]()
    failed_keys, failures = Ledger.failed_keys, Ledger.failures

    async def every(ledger: Ledger, root: str) -> Any:
        read.append(("keys", 1))
        return await failed_keys(ledger, root)

    async def some(ledger: Ledger, root: str, keys: Sequence[bytes]) -> Any:
        read.append(("failures", len(keys)))
        return await failures(ledger, root, keys)

    monkeypatch.setattr(Ledger, "failed_keys", every)
    monkeypatch.setattr(Ledger, "failures", some)
    with connect(tmp_path, Patchy(), rows=400) as con:
        again = con.uql(statement)
        assert [error.row for error in again.errors] == failed and again.cost.calls == 0
    assert [kind for kind, _ in read].count("keys") == 1 and sum(kind == "failures" for kind, _ in read) == 8
    assert sum(n for kind, n in read if kind == "failures") == len(failed)


class Patchy(Paid):
    """Of every fourth row beside others it leaves the answer out, and of half of these it gives none alone either, at first."""

    patchy = True

    def _lacks(self, request: Request, share: int) -> bool:
        return self.patchy and bool(request.row.cells) and digest(request.questions[0], request.row) % share == 0

    async def answer(self, request: Request) -> Reply:
        reply = await super().answer(request)
        if self._lacks(request, 8):
            raise CallError("refusal", "no")
        return reply

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        replies = [await Paid.answer(self, part) for part in request.single_requests()]
        none = Answer(problem=Problem("wrong_type", "left out"))
        by_row = zip(request.single_requests(), replies, strict=True)
        answers = ((none,) * len(r.answers) if self._lacks(part, 4) else r.answers for part, r in by_row)
        return RowsReply(tuple(answers), 30 * len(replies), len(replies))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["few rows", "count", "search"])
def test_rows_that_failed_under_a_larger_budget_are_not_of_a_smaller_one(tmp_path: Path, name: str) -> None:
    model = Patchy()
    with connect(tmp_path, model, rows_per_request=4) as con:
        texts = [f"{GOES_ON[name]} WITH (budget = {calls})" for calls in (40, 96)]
        runs = {text: said(con.uql(text)) for text in texts}
        paid = len(model.paid)
        assert 40 < paid <= 96
        for text, expected in runs.items():
            assert said(con.uql(text)) == expected and len(model.paid) == paid


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["count", "search", "stored groups"])
def test_rows_that_failed_stay_without_an_answer_until_they_are_asked_again(tmp_path: Path, name: str) -> None:
    model = Patchy()
    with connect(tmp_path, model) as con:
        first = con.uql(f"{STATEMENTS[name]} WITH (budget = 128)")
        expected = said(first)
        assert first.errors
        model.patchy = False
        con.uql("SELECT id, v FROM t WHERE \"it is so\" WITH (budget = 'all')").fetchall()
        paid = len(model.paid)
        for _ in range(2):
            again = con.uql(first.text)
            assert said(again) == expected and [e.row for e in again.errors] == [e.row for e in first.errors]
        retried = con.uql(first.text).retry_failed()
        values = retried.fetchall(), retried.estimates
        assert not retried.errors and values != expected[:2]
        again = con.uql(first.text)
        assert (again.fetchall(), again.estimates) == values and len(model.paid) == paid


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT id, (SELECT max(u.v) FROM t AS u WHERE u.k = t.k AND "{u.text} is so") AS x FROM t',
        'SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.id = t.id AND "{u.text} is so")',
        'SELECT t.id FROM t LEFT JOIN t AS u ON u.id = t.id AND "{u.text} is so"',
        'SELECT id, "{text} is so" AS x FROM t WHERE v >= (SELECT coalesce(min(v), 0) FROM other WHERE "{word} is so")',
    ],
)
def test_other_rows_are_not_answered_from_the_run_of_earlier_ones(tmp_path: Path, statement: str) -> None:
    with connect(tmp_path, Paid(), rows=12, budget="all") as con:
        con.sql("CREATE TABLE other AS SELECT 0 AS v, 'a word that stays as it is' AS word")
        con.uql(statement).fetchall()
        assert con.uql(statement).quote().calls.high == 0
        con.sql("UPDATE t SET text = 'now ' || text WHERE id < 4")
        again = con.uql(statement)
        foreseen = again.quote().calls
        assert foreseen.low <= again.cost.calls == 4 <= foreseen.high
        assert not any("lost meanwhile" in note or "answered from" in note for note in again.notes)
        assert con.uql(statement).cost.calls == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_over_two_sides_of_a_join_is_the_same_again(tmp_path, seed):
    """Each text on the right side stands beside several rows, so its answer is known for the later ones."""
    statement = (
        "SELECT a.id FROM t AS a JOIN (FROM t WHERE id < 12) AS b ON a.id % 11 = b.id AND a.id BETWEEN 20 AND 80"
        ' WHERE "it is so {a.text}" AND "it is nice {b.text}"'
    )
    rates = {"it is so {a.text}": 0.4, "it is nice {b.text}": 0.5}
    for budget in (16, 24):
        model = HashModel(rates)
        with connect(tmp_path, model, ledger=":memory:", budget=budget, seed=seed) as con:
            found = sorted(con.uql(statement).fetchall())
            calls = model.calls
            assert sorted(con.uql(statement).fetchall()) == found
            assert model.calls == calls <= budget
