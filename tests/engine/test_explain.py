"""EXPLAIN asks nothing, SAMPLE pays for its rows once, ANALYZE puts what was measured beside what was predicted."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
from hash_model import HashModel
from two_models import Dear

import uql
from uql.base.errors import BudgetError, UnknownTableError
from uql.compiler.explain import q_error

QUERY = 'SELECT id FROM reviews WHERE "the music is praised" USING (text) AND "it was noisy" USING (remark)'


@pytest.fixture
def model() -> HashModel:
    return HashModel({"the music is praised": 0.9, "it was noisy": 0.1})


@pytest.fixture
def con(model: HashModel, tmp_path) -> uql.Connection:
    connection = uql.connect(model=model, ledger=str(tmp_path / "ledger.sqlite"), budget="all")
    connection.session.duck.execute(
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
    assert any(line.startswith("Calls: 400 (308–592)") for line in shown)


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


NOISY = 'SELECT id FROM reviews WHERE "it was noisy" USING (remark)'


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "step"),
    [
        (f"CREATE TABLE noisy AS {NOISY}", "CREATE TABLE noisy"),
        (f"INSERT INTO chosen {NOISY}", "INSERT INTO chosen"),
        (f"COPY ({NOISY}) TO '{{folder}}/noisy.csv'", "COPY TO {folder}/noisy.csv"),
        (f"CREATE SEMANTIC TABLE noisy AS {NOISY} KEY (id)", "CREATE SEMANTIC TABLE noisy"),
        ("REFRESH made", "REFRESH made  [60 rows new, changed or without an answer; 0 gone]"),
    ],
)
def test_explain_of_a_statement_that_writes_prints_plan_and_price_and_analyze_runs_it(
    con, model, tmp_path, statement, step
):
    statement, step = statement.format(folder=tmp_path), step.format(folder=tmp_path)
    con.execute("CREATE TABLE chosen AS SELECT id FROM reviews LIMIT 0")
    kept = NOISY.replace("it was noisy", "it is kept")
    con.execute("CREATE TABLE later AS FROM reviews WHERE id < 60; DELETE FROM reviews WHERE id < 60")
    con.uql(f"CREATE SEMANTIC TABLE made AS {kept} KEY (id)")
    con.execute("INSERT INTO reviews FROM later")
    tables, calls = con.tables, model.calls
    price = 60 if statement.startswith("REFRESH") else 300
    shown = lines(con, f"EXPLAIN {statement}")
    assert shown[0] == step and f"Calls: {price}" in shown
    found = json.loads("\n".join(lines(con, f"EXPLAIN (FORMAT json) {statement}")))
    assert found["plan"]["line"] == step and found["price"]["calls"]["high"] == price
    assert model.calls == calls and con.tables == tables and not (tmp_path / "noisy.csv").exists()
    analyzed = con.uql(f"EXPLAIN ANALYZE {statement}")
    assert "measured" not in analyzed.explain() and model.calls == calls and con.tables == tables  # it is a plan so far
    analyzed.show()
    assert model.calls == calls + price
    name = step.split()[-1] if "[" not in step else "made"
    rows = con.execute(f"SELECT count(*) FROM '{name}'").fetchall()[0][0]
    assert rows == len(con.uql(kept if name == "made" else NOISY)) > 0
    assert model.calls == calls + price


def test_explain_analyze_of_an_insert_says_what_was_paid(con):
    con.execute("CREATE TABLE chosen AS SELECT id FROM reviews LIMIT 0")
    shown = lines(con, f"EXPLAIN ANALYZE INSERT INTO chosen {NOISY}")
    assert "  calls: 300; predicted 300; q-error 1.00" in shown
    plain = con.uql("EXPLAIN INSERT INTO chosen SELECT 1").fetchall()
    assert plain == con.execute("EXPLAIN INSERT INTO chosen SELECT 1").fetchall()  # DuckDB's own


def test_a_script_knows_that_explain_makes_no_table_and_analyze_makes_one(con):
    with pytest.raises(UnknownTableError, match="no table noisy"):
        con.uql(f"EXPLAIN CREATE TABLE noisy AS {NOISY}; SELECT count(*) FROM noisy")
    assert con.uql(f"EXPLAIN ANALYZE CREATE TABLE noisy AS {NOISY}; SELECT count(*) FROM noisy").fetchall()[0][0] > 0


@pytest.mark.parametrize(
    "around",
    [
        "INSERT INTO chosen {} RETURNING id",
        "UPDATE chosen SET id = 1 WHERE id IN ({})",
        "SUMMARIZE {}",
        "PIVOT ({}) ON id USING count(*)",
    ],
)
def test_explain_as_json_of_a_statement_around_sub_queries_has_the_same_facts(con, model, around):
    con.execute("CREATE TABLE chosen AS SELECT id FROM reviews LIMIT 0")
    statement = around.format('SELECT id FROM reviews WHERE "it was noisy" USING (remark)')
    found = json.loads("\n".join(lines(con, f"EXPLAIN (FORMAT JSON) {statement}")))
    (plan,) = found["sub_queries"]
    assert any(
        line.strip() == f"Calls: {plan['price']['calls']['expected']:.0f}"
        for line in lines(con, f"EXPLAIN {statement}")
    )
    assert plan["price"]["calls"]["expected"] == 300
    assert model.calls == 0


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "SELECT id, id AS id, text FROM reviews",
        'SELECT stars, COUNT(*) AS n FROM reviews WHERE "the music is praised" GROUP BY stars',
        "SELECT a.id, \"the tone\"::ENUM('calm', 'loud') AS tone FROM reviews a JOIN (SELECT id FROM reviews "
        'WHERE "it was noisy") b ON a.id = b.id ORDER BY 1 LIMIT 3',
        'SELECT id FROM reviews WHERE "it was noisy" UNION ALL SELECT stars FROM reviews',
    ],
)
def test_a_step_names_its_kernel_and_the_columns_that_it_gives(con, query):
    def visit(step):
        assert step["kernel"] == "duckdb" or find_spec(f"uql.kernels.{step['kernel']}"), step["line"]
        assert step["schema"], step["line"]
        assert (step["kernel"] != "duckdb") or not step["calls"]
        for below in step["inputs"]:
            visit(below)

    plan = json.loads("\n".join(lines(con, f"EXPLAIN (FORMAT JSON) {query}")))["plan"]
    visit(plan)
    result = con.uql(query)
    shown = [(column["name"], column["type"]) for column in plan["schema"]]
    assert shown == list(zip(result.columns, result.types, strict=True))


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
    with uql.attach(con.session.duck, model=model, ledger=":memory:", budget="all") as unpaid:
        result = unpaid.uql(QUERY)
        result.fetchall()
    assert q_error(predicted["expected"], result.cost.calls) < 1.25
    assert predicted["low"] <= result.cost.calls <= predicted["high"]


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
        con.session.duck.execute(
            "CREATE TABLE reviews AS SELECT i AS id, 'Number ' || i || ': a film not to be forgotten so soon' AS text, "
            "'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range(400) t(i)"
        )
        rows[off] = con.uql(QUERY).fetchall(), model.calls
    (adapted, few), (planned, many) = rows.values()
    assert adapted == planned
    assert few < 0.7 * many


def measured_steps(shown: str) -> list[tuple[str, float, int]]:
    """(text, calls expected, measured) of each step that was asked."""
    found = []

    def look(step) -> None:
        if "measured" in step:
            found.append((step["what"], step["calls"]["expected"], step["measured"]))
        for below in step["inputs"]:
            look(below)

    look(json.loads(shown)["plan"])
    return found


def analyzed(con, query: str) -> list[tuple[str, float, int]]:
    return measured_steps("\n".join(row[0] for row in con.uql(f"EXPLAIN ANALYZE (FORMAT json) {query}").fetchall()))


def test_what_with_names_is_run_once_and_priced_once(con, model):
    query = (
        'WITH p AS (SELECT id FROM reviews WHERE "the review is positive" USING (text)) '
        "SELECT a.id FROM p a JOIN p b ON a.id + 1 = b.id WITH (budget = 'all')"
    )
    ((_, expected, measured),) = analyzed(con, query)
    assert expected == measured
    assert "Derived b  [the rows of a]" in con.uql(query).explain()
    assert con.uql(query).quote().calls.expected == 0, "it has run"
    assert con.uql(query.replace("positive", "negative")).quote().calls.expected == expected


def test_the_same_text_over_two_tables_is_measured_for_each(con):
    con.session.duck.execute("CREATE TABLE few AS SELECT id, 'Seldom: ' || text AS text FROM reviews WHERE id < 40")
    found = analyzed(
        con,
        'SELECT id FROM (SELECT id FROM reviews WHERE "it is a joke" USING (text)) UNION ALL '
        "SELECT id FROM few WHERE \"it is a joke\" USING (text) WITH (budget = 'all')",
    )
    assert [m for _, _, m in found] == [e for _, e, _ in found] and found[0][2] != found[1][2]


def test_rows_that_a_sub_query_with_limit_leaves_are_not_priced_as_a_third_of_all(con):
    query = (
        'SELECT id FROM reviews WHERE id IN (SELECT id FROM reviews WHERE "it is a joke" USING (text) LIMIT 5) '
        'AND "it was noisy" USING (remark)'
    )
    outer, inner = analyzed(con, query)
    assert outer[1] <= 5 and q_error(outer[1], outer[2]) <= 2
    assert q_error(inner[1], inner[2]) <= 4


def test_terms_that_duckdb_decides_are_counted_not_guessed(con):
    quote = con.uql('SELECT id FROM reviews WHERE stars = 2 OR "it was noisy" USING (remark)').quote()
    assert quote.calls.low <= 240 <= quote.calls.high <= 1.02 * quote.calls.low + 2


@pytest.mark.parametrize(
    "query",
    [
        'SELECT id, row_number() OVER (ORDER BY id) AS k FROM reviews WHERE "it was noisy" QUALIFY k < 4',
        'SELECT id FROM reviews WHERE "it was noisy" ORDER BY "how loud it was" LIMIT 3',
        'SELECT stars, COUNT(*) FROM reviews WHERE "it was noisy" GROUP BY ROLLUP (stars)',
    ],
)
def test_explain_says_that_a_run_would_be_refused(con, query):
    text = f"{query} WITH (budget = 50)"
    assert "a run would be refused (UQL401)" in con.uql(text).explain()
    with pytest.raises(BudgetError):
        con.uql(text).fetchall()


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "query",
    [
        'SELECT COUNT(*) AS n FROM notes WHERE "it is half" WITH (error = 0.1)',
        'SELECT COUNT(*) AS n FROM notes WHERE "it is rare" WITH (error = 0.3)',
        'SELECT COUNT(*) AS n FROM notes WHERE "it is common" WITH (error = 0.3)',
        'SELECT k, COUNT(*) AS n FROM notes WHERE "it is half" GROUP BY k WITH (error = 0.3)',
        'SELECT AVG("the score"::DOUBLE) AS a FROM notes WITH (error = 0.1)',
        'SELECT COUNT(*) FILTER (WHERE "it is rare") AS n FROM notes WITH (error = 0.3)',
        'SELECT COUNT(*) AS n FROM notes WHERE "it is rare" WITH (error = 0.1, budget = 300)',
    ],
)
def test_an_error_is_priced_by_the_rows_that_it_takes_and_not_by_the_default_budget(query):
    con = uql.connect(
        model=HashModel({"it is half": 0.5, "it is rare": 0.1, "it is common": 0.9}), ledger=":memory:", seed=2
    )
    con.sql("SELECT i AS id, i % 2 AS k, 'Note number ' || i || ' of the table' AS text FROM range(1500) r(i)").create(
        "notes"
    )
    result = con.uql(query)
    low, high = (result.quote().calls.low, result.quote().calls.high)
    assert ("Budget: 300 calls" if "budget" in query else "Budget: what error =") in result.explain()
    assert low <= result.cost.calls <= high


def test_rows_that_are_asked_again_are_counted_once_it_is_known_how_many_there_are(tmp_path):
    class Mumbler(Dear):
        unreadable = 0.15

    with uql.connect(model=Mumbler(), ledger=str(tmp_path / "ledger.sqlite"), budget="all") as con:
        con.sql("SELECT i AS id, 'Note ' || i || ', about something or other' AS text FROM range(400) r(i)").create(
            "notes"
        )
        assert con.uql('SELECT id FROM notes WHERE "it is good"').cost.calls > 420
    with uql.connect(model=Mumbler(), ledger=str(tmp_path / "ledger.sqlite"), budget="all") as con:
        con.sql("SELECT i AS id, 'Note ' || i || ', about something or other' AS text FROM range(400) r(i)").create(
            "notes"
        )
        result = con.uql('SELECT id FROM notes WHERE "it is nice"')
        price = result.quote().calls
        assert 420 < result.cost.calls <= price.high < 600
        assert price.expected == pytest.approx(result.cost.calls, rel=0.05)
