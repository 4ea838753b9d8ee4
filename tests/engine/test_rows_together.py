"""Rows that share requests, from a query to its cost: the same rows, as many calls, fewer requests and tokens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import uql
from uql.base.settings import Settings
from uql.benchmarks.optimizer.hashed import Hashed
from uql.compiler.cost import Pace, Range
from uql.llm.ledger import Ledger
from uql.pricing.learned import keep_rows_a_request
from uql.pricing.model_prices import ROWS_APART, rows_of

QUERY = 'SELECT id, "the name" USING (text) AS n FROM t WHERE "it is rare" USING (text)'
COUNT = 'SELECT COUNT(*) AS n FROM t WHERE "it is rare" USING (text)'
GROUPS = 'SELECT g, COUNT(*) AS n FROM t GROUP BY "the topic" USING (text) AS g ORDER BY g'


class Elsewhere(Hashed):
    is_local = False


def connected(text: str = "a few words", rows: int = 200, **settings) -> uql.Connection:
    con = uql.connect(model=Elsewhere({"rare": 0.1}), budget="all", **{"ledger": ":memory:", **settings})
    con.sql(f"SELECT i AS id, 'Note ' || i || ': {text}' AS text FROM range({rows}) r(i)").create("t")
    return con


@pytest.mark.parametrize("query", [QUERY, GROUPS])
def test_the_answer_is_the_same_with_fewer_requests_and_tokens(query: str, tmp_path) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    with connected(rows_per_request=1) as alone, connected(rows_per_request=8, ledger=ledger) as shared:
        one, eight = alone.uql(query), shared.uql(query)
        assert one.fetchall() == eight.fetchall()
        assert eight.cost.calls == one.cost.calls
        assert eight.cost.requests < 0.25 * one.cost.requests
        assert eight.cost.input_tokens < 0.7 * one.cost.input_tokens
        events = shared.uql("SELECT COUNT(*), SUM(requests) FROM uql_calls() WHERE kind = 'call'").fetchall()
        assert events == [(eight.cost.calls, eight.cost.requests)]


def measured(tmp_path: Path, rows: int = 8) -> str:
    """A ledger in which `uql eval --packed` noted that so many rows keep their answers."""
    with Ledger(tmp_path / "measured.sqlite") as ledger:
        keep_rows_a_request(ledger, Elsewhere.name, rows)
        return ledger.path


def test_by_default_each_row_is_asked_alone_and_explain_says_what_a_measurement_could_save() -> None:
    with connected() as con:
        plan, _, others = con.uql(GROUPS).explain().partition("Alternatives:")
        assert "rows a request" not in plan and "8 rows a request" in others
        saved = re.search(r"saves (\d+)%; taken where uql eval … --packed 8 found that answers stay the same", others)
        assert saved is not None and int(saved[1]) >= 20
        quote = con.uql(GROUPS).quote()
        assert quote.requests.expected == quote.calls.expected
        result = con.uql(GROUPS)
        result.fetchall()
        assert result.cost.requests == result.cost.calls


@pytest.mark.parametrize("rows", [1, None], ids=["measured to change answers", "of this machine"])
def test_explain_offers_no_shared_requests_where_they_were_measured_or_cost_nothing(rows: int | None, tmp_path) -> None:
    model = Elsewhere() if rows else Hashed()
    with uql.connect(model=model, budget="all", ledger=measured(tmp_path, rows) if rows else ":memory:") as con:
        con.sql("SELECT i AS id, 'Note ' || i AS text FROM range(50) r(i)").create("t")
        assert "rows a request" not in con.uql(GROUPS).explain()


def test_rows_share_requests_where_that_was_measured_and_never_to_a_model_here(tmp_path) -> None:
    with connected(ledger=measured(tmp_path)) as con:
        result = con.uql(GROUPS)
        result.fetchall()
        assert result.cost.requests < 0.25 * result.cost.calls
        one_condition = con.uql(COUNT)
        one_condition.fetchall()
        assert one_condition.cost.requests == one_condition.cost.calls, "one word costs less than a place in a list"
    with uql.connect(model=Hashed({"rare": 0.1}), budget="all", ledger=":memory:") as con:
        con.sql("SELECT i AS id, 'Note ' || i AS text FROM range(50) r(i)").create("t")
        result = con.uql(COUNT)
        result.fetchall()
        assert result.cost.requests == result.cost.calls


@pytest.mark.parametrize(
    ("model", "unmeasured", "rows"),
    [
        ("openai:gpt-5-mini", 1, 8),
        ("openai:gpt-6-luna", 1, 8),
        ("systemone:jev-1", ROWS_APART, 8),
        ("https://gateway.example/v1#m", 1, 8),
        ("local", 1, 1),
    ],
)
def test_how_many_rows_share_a_request_is_known_before_the_model_is_opened(
    model: str, unmeasured: int, rows: int
) -> None:
    assert rows_of(None, Settings(model=model)) == unmeasured
    assert rows_of(None, Settings(model=model), measured=8) == rows
    assert rows_of(None, Settings(model=model), measured=1) == 1
    assert rows_of(None, Settings(model=model, rows_per_request=8), measured=1) == rows


def test_explain_says_how_many_rows_share_a_request_and_what_one_a_row_would_cost() -> None:
    with connected(rows_per_request=8) as con:
        shown = con.uql(QUERY).explain()
        assert "8 rows a request" in shown and " requests\n" in shown
        assert "rows_per_request = 8" in shown.partition("Alternatives:")[2]
        predicted = con.uql(QUERY).quote()
        result = con.uql(QUERY)
        result.fetchall()
        assert predicted.requests.low <= result.cost.requests <= predicted.requests.high


def test_where_the_engine_chooses_short_rows_share_requests_and_long_ones_do_not(tmp_path) -> None:
    ledger = measured(tmp_path)
    with connected(ledger=ledger) as short, connected("many words " * 120, ledger=ledger) as long:
        assert "8 rows a request" in short.uql(GROUPS).explain().partition("Alternatives:")[0]
        shown = long.uql(GROUPS).explain()
        assert "rows a request" not in shown.partition("Alternatives:")[0]
        assert "less than the 20% for which rows share requests" in shown


def test_the_setting_can_be_switched_off_as_a_rule_and_is_checked() -> None:
    with connected(rows_per_request=8, disabled_rules="rows_together") as con:
        assert "rows a request" not in con.uql(QUERY).explain()
        with pytest.raises(uql.base.errors.ConfigError, match="whole number from 1"):
            con.uql(f"{QUERY} WITH (rows_per_request = 0)")


def test_a_text_with_a_hole_is_asked_of_each_row_alone() -> None:
    with connected(rows_per_request=8) as con:
        result = con.uql('SELECT id FROM t WHERE "note {id} is rare" USING (text)')
        result.fetchall()
        assert result.cost.requests == result.cost.calls == 200


def test_why_finds_the_answer_of_a_row_that_shared_its_request() -> None:
    with connected(rows_per_request=8) as con:
        result = con.uql(QUERY)
        result.fetchall()
        evidence = result.why(0).evidence[0]
        assert evidence.ledger_id and evidence.value is True and re.search(r"<\w{4}1>", evidence.prompt)


def test_seconds_count_requests_and_what_each_further_row_takes() -> None:
    alone = Pace(1, Range.exactly(1.0)).seconds(Range.exactly(80), Range.exactly(0))
    shared = Pace(1, Range.exactly(1.0)).seconds(Range.exactly(10), Range.exactly(0), Range.exactly(80))
    assert alone.expected == 80 and 10 < shared.expected < 40
    limited = Pace(100, Range.exactly(0.1), requests_per_minute=60)
    assert limited.seconds(Range.exactly(10), Range.exactly(0), Range.exactly(80)).expected == 10


@pytest.mark.parametrize("settings", [{"soft": True}, {"models": [Hashed(), Hashed()]}], ids=["soft", "cascade"])
def test_rows_share_no_request_where_their_probabilities_are_needed(settings: dict) -> None:
    model = {} if "models" in settings else {"model": Hashed()}
    with uql.connect(**model, ledger=":memory:", rows_per_request=4, **settings) as con:
        con.sql("SELECT i AS id, 'a text of row ' || i AS text FROM range(60) r(i)").create("t")
        shown = con.uql('SELECT COUNT(*) FROM t WHERE "it is even"').explain()
    assert "rows a request" not in shown
    assert "rows_per_request = 4 is left aside" in shown and "rows that share a request have none" in shown


def test_explain_says_that_answers_of_shared_requests_have_no_probabilities() -> None:
    with uql.connect(model=Hashed(), ledger=":memory:", rows_per_request=4) as con:
        con.sql("SELECT i AS id, 'a text of row ' || i AS text FROM range(60) r(i)").create("t")
        assert (
            "4 rows a request: answers have no probabilities"
            in con.uql('SELECT id FROM t WHERE "it is even"').explain()
        )
