"""EXPLAIN asks nothing, SAMPLE pays for its rows once, ANALYZE puts what was measured beside what was predicted."""

from __future__ import annotations

import json

import pytest
from hash_model import HashModel

import uql
from uql.compiler.explain import q_error

QUERY = 'SELECT id FROM reviews WHERE "the music is praised" USING (text) AND "it was noisy" USING (remark)'


@pytest.fixture
def model() -> HashModel:
    return HashModel({"the music is praised": 0.9, "it was noisy": 0.1})


@pytest.fixture
def con(model: HashModel, tmp_path) -> uql.Connection:
    connection = uql.connect(model=model, ledger=str(tmp_path / "ledger.sqlite"), budget="all")
    connection._duck.execute(
        "CREATE TABLE reviews AS SELECT i AS id, 1 + i % 5 AS stars, "
        "'Number ' || i || ': a film that I shall not forget so soon' AS text, "
        "'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range(300) t(i)"
    )
    return connection


def lines(con: uql.Connection, text: str) -> list[str]:
    return [row[0] for row in con.uql(text).fetchall()]


def test_explain_asks_nothing(con, model):
    shown = lines(con, f"EXPLAIN {QUERY}")
    assert "\n".join(shown) == con.uql(QUERY).explain()
    assert model.calls == 0
    assert any(line.startswith("Calls: 400 (300–600)") for line in shown)


def test_explain_as_json_is_the_same_plan(con, model):
    found = json.loads("\n".join(lines(con, f"EXPLAIN (FORMAT json) {QUERY}")))
    assert found["plan"]["operator"] == "Project"
    filter_ = found["plan"]["inputs"][0]
    assert filter_["operator"] == "SemFilter"
    assert [i["operator"] for i in filter_["inputs"]] == ["Ask", "Ask", "DuckDB"]
    assert filter_["inputs"][0]["reads"] == ["reviews.text"]
    assert filter_["inputs"][0]["calls"] == {"low": 300, "expected": 300, "high": 300}
    assert found["price"]["calls"]["expected"] == 400
    assert found["price"]["usd"]["expected"] > 0
    assert found["budget_calls"] is None
    assert len(found["readings"]) == 2
    assert model.calls == 0


def test_explain_as_mermaid_is_a_chart_of_the_steps(con):
    shown = lines(con, f"EXPLAIN (FORMAT mermaid) {QUERY}")
    assert shown[0] == "flowchart TD"
    nodes = [line for line in shown if "[" in line]
    edges = [line for line in shown if "-->" in line]
    assert len(nodes) == 5
    assert len(edges) == len(nodes) - 1
    assert all(line.count('"') == 2 for line in nodes), "quotes inside a label are entities"
    assert "#quot;the music is praised#quot;" in nodes[1]


@pytest.mark.parametrize("format", ["text", "json", "mermaid"])
def test_analyze_runs_the_query_in_every_format(con, model, format):
    shown = "\n".join(lines(con, f"EXPLAIN ANALYZE (FORMAT {format}) {QUERY}"))
    assert 300 < model.calls < 600
    if format == "json":
        found = json.loads(shown)
        assert found["measured"]["calls"] == model.calls
        assert found["measured"]["rows"] == len(con.uql(QUERY).fetchall())
        assert found["q_error"]["calls"] == pytest.approx(q_error(400, model.calls), abs=1e-3)
        assert found["q_error"]["input_tokens"] >= 1
    elif format == "mermaid":
        assert f"{model.calls:,} made" in shown
    else:
        assert "Measured beside predicted" in shown
        assert f"calls: {model.calls:,}; predicted 400; q-error" in shown


def test_analyze_says_what_the_ledger_answered(con, model):
    con.uql(QUERY).fetchall()
    before = model.calls
    shown = "\n".join(lines(con, f"EXPLAIN ANALYZE {QUERY}"))
    assert model.calls == before
    assert "from the ledger" in shown


def test_sample_pays_for_its_rows_and_the_query_does_not_pay_again(con, model):
    sampled = con.uql(f"EXPLAIN SAMPLE 40 {QUERY}")
    shown = [row[0] for row in sampled.fetchall()]
    assert model.calls == 80, "both questions of each of the 40 rows"
    assert sampled.cost.calls == 80
    assert any(line.startswith("Sample: 40 random rows were asked, ") for line in shown)
    result = con.uql(QUERY)
    result.fetchall()
    assert result.cost.cached >= 40
    assert model.calls == 80 + result.cost.calls
    again = con.uql(f"EXPLAIN SAMPLE 40 {QUERY}")
    again.fetchall()
    assert again.cost.calls == 0, "the same rows are drawn again, and the ledger knows them"


def test_sample_prices_the_plan_with_what_it_saw(con, model):
    shown = json.loads("\n".join(lines(con, f"EXPLAIN SAMPLE 60 (FORMAT json) {QUERY}")))
    predicted = shown["price"]["calls"]
    assert shown["sample"]["rows"] == 60
    assert shown["sample"]["low"] <= shown["sample"]["passed"] / 60 <= shown["sample"]["high"]
    result = con.uql(QUERY)
    result.fetchall()
    assert q_error(predicted["expected"], result.cost.calls + result.cost.cached) < 1.25
    assert predicted["low"] <= result.cost.calls + result.cost.cached <= predicted["high"]


def test_sample_of_a_query_without_a_condition_asks_nothing(con, model):
    lines(con, 'EXPLAIN SAMPLE 5 SELECT id, "the name" AS n FROM reviews LIMIT 3')
    assert model.calls == 0


def test_sample_keeps_to_the_budget(con, model):
    shown = lines(con, f"EXPLAIN SAMPLE 100 {QUERY} WITH (budget = 30)")
    assert model.calls <= 30
    assert any(line.startswith("Sample:") for line in shown)


def test_sample_plans_again_with_what_it_saw(con):
    written = lines(con, f"EXPLAIN {QUERY}")
    sampled = lines(con, f"EXPLAIN SAMPLE 40 {QUERY}")
    assert "the music is praised" in written[2]
    assert "it was noisy" in sampled[2], "the term that few rows pass is asked first"
    assert "this order: " in sampled[1]
    assert "the written order: " in sampled[1]
    assert "it was noisy" in lines(con, f"EXPLAIN {QUERY}")[2], "and is remembered"
    assert "the music is praised" in lines(con, f"EXPLAIN {QUERY} WITH (disabled_rules = 'order_by_rates')")[2]


def test_an_order_learned_while_running_saves_calls_and_changes_no_answer(model):
    rows = {}
    for off in ("", "order_while_running, order_by_rates"):
        model.calls = 0
        con = uql.connect(model=model, ledger=":memory:", budget="all", disabled_rules=off)
        con._duck.execute(
            "CREATE TABLE reviews AS SELECT i AS id, 'Number ' || i || ': a film not to be forgotten so soon' AS text, "
            "'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range(400) t(i)"
        )
        rows[off] = con.uql(QUERY).fetchall(), model.calls
    (adapted, few), (planned, many) = rows.values()
    assert adapted == planned
    assert few < 0.7 * many
