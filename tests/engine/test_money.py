"""Money decides where no budget is set: every row where that is cheap and quick, as many as `max_cost` pays for, else the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.llm.providers.base import Price, Reply, Request

COUNT = 'SELECT COUNT(*) AS n FROM notes WHERE "it is so"'
SEARCH = 'SELECT id FROM notes WHERE "it is so" ORDER BY id'
ORACLE = """data = "d.parquet"
labels = "d.parquet"
key = "id"
price = { input = PRICE, output = 0.4 }

[answers]
"it is so" = "so"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """900 notes, of which 300 are so, and an oracle that asks 0.1 USD a million tokens: 0.005 USD for all of them."""
    monkeypatch.chdir(tmp_path)
    duckdb.sql(
        "COPY (SELECT i AS id, 'note number ' || i || ' of some words that make it a text' AS text, i % 3 = 0 AS so"
        " FROM range(900) t(i)) TO 'd.parquet'"
    )
    write(tmp_path, 0.1)
    return tmp_path


def write(folder: Path, price: float) -> None:
    (folder / "o.toml").write_text(ORACLE.replace("PRICE", str(price)))


@pytest.fixture
def con(folder: Path) -> Iterator[uql.Connection]:
    with uql.connect(model="oracle:o.toml", ledger=":memory:", progress=False) as con:
        con.sql("SELECT id, text FROM 'd.parquet'").create("notes")
        yield con


def test_what_costs_less_than_a_cent_is_exact(con: uql.Connection) -> None:
    result = con.uql(COUNT)
    assert "exact_below = 0.01 USD" in result.explain()
    predicted = result.quote()
    assert predicted.usd is not None and predicted.usd.high < 0.01 and predicted.calls.expected == 900
    estimate = result.estimates["n"]
    assert estimate.exact and estimate.value == 300 and result.cost.calls == 900
    assert result.cost.usd is not None and result.cost.usd < 0.01
    found = con.uql(SEARCH).fetchall()
    assert [i for (i,) in found] == list(range(0, 900, 3)), "a search too"


@pytest.mark.parametrize("option", ["exact_below = 0", "exact_below = 0.001", "exact_seconds = 0", "budget = 128"])
def test_what_is_too_dear_or_too_slow_is_a_sample(con: uql.Connection, option: str) -> None:
    result = con.uql(f"{COUNT} WITH ({option})")
    assert not result.estimates["n"].exact and 120 < result.cost.calls <= 128


def test_max_cost_alone_decides_how_many_rows_are_asked(con: uql.Connection) -> None:
    result = con.uql(f"{COUNT} WITH (max_cost = 0.002)")
    assert "what max_cost = 0.002 pays for" in result.explain()
    estimate = result.estimates["n"]
    assert 200 < result.cost.calls < 500 and not estimate.exact and not result.partial
    assert result.cost.usd is not None and 0.0005 < result.cost.usd <= 0.002
    assert con.uql(f"{COUNT} WITH (max_cost = 0.5)").estimates["n"].exact
    assert con.uql(f"{COUNT} WITH (max_cost = 0.5, budget = 64, fresh = true)").cost.calls <= 64, "a budget is a budget"


@pytest.mark.parametrize(
    ("options", "pays"),
    [("max_cost = 0.0003, budget = 128", "about 51 of 128 calls"), ("max_cost = 0.000001", "no call")],
)
def test_explain_says_that_max_cost_ends_the_run_before_its_end(con: uql.Connection, options: str, pays: str) -> None:
    result = con.uql(f"{COUNT} WITH ({options})")
    assert f"pays for {pays}: the run ends there, and its result is partial" in result.explain()
    assert "what max_cost" not in result.explain() and result.partial
    assert "its result is partial" not in con.uql(f"{COUNT} WITH (max_cost = 0.5)").explain()


def test_the_same_statement_again_has_the_same_limit_and_makes_no_calls(folder: Path) -> None:
    """A sample of 128 leaves less than a cent to pay for the others: they are not asked for that."""
    write(folder, 0.22)
    with uql.connect(model="oracle:o.toml", ledger=str(folder / "ledger.sqlite"), progress=False) as con:
        con.sql("SELECT id, text FROM 'd.parquet'").create("notes")
        first = con.uql(COUNT)
        assert 120 < first.cost.calls <= 128
        again = con.uql(COUNT)
        assert again.estimates["n"] == first.estimates["n"] and again.cost.calls == 0


def test_explain_prints_every_row_and_a_sample_with_their_prices(con: uql.Connection) -> None:
    shown = con.uql(f"{COUNT} WITH (exact_below = 0.001)").explain().partition("Alternatives:")[2].strip().splitlines()
    assert shown[0].startswith("128 rows: 0.0007 USD, 128") and "± 8.0% of the rows at 95%; chosen" in shown[0]
    assert shown[1].strip().startswith("every row: 0.005") and "exact; above exact_below = 0.001 USD" in shown[1]
    assert all(" s; " in line for line in shown[:2]), "seconds too"
    chosen = con.uql(COUNT).explain().partition("Alternatives:")[2].strip().splitlines()
    assert chosen[0].startswith("every row") and "exact; chosen" in chosen[0]
    assert "every row" not in con.uql(f"{COUNT} WITH (budget = 128)").explain()


@pytest.mark.parametrize("price", [Price(0.0, 0.0), Price(0.1, 0.4), None])
def test_a_model_of_the_caller_or_without_a_price_keeps_the_default_budget(price: Price | None) -> None:
    model = HashModel()
    model.price = price
    with uql.connect(model=model, ledger=":memory:", progress=False) as con:
        con.sql("SELECT i AS id, 'note number ' || i AS text FROM range(900) t(i)").create("notes")
        assert 120 < con.uql(COUNT).cost.calls <= 128


def test_a_free_model_by_name_keeps_the_default_budget(folder: Path) -> None:
    write(folder, 0.0)
    (folder / "o.toml").write_text((folder / "o.toml").read_text().replace("0.4", "0.0"))
    with uql.connect(model="oracle:o.toml", ledger=":memory:", progress=False) as con:
        con.sql("SELECT id, text FROM 'd.parquet'").create("notes")
        result = con.uql(COUNT)
        assert 120 < result.cost.calls <= 128 and "Alternatives" not in result.explain()


def test_the_judged_rows_of_an_audit_are_in_the_quote(con: uql.Connection) -> None:
    con.sql("SELECT text, id % 3 = 0 AS answer FROM notes WHERE id % 30 < 2").create("judged")
    plain = con.uql(f"{COUNT} WITH (budget = 128, fresh = true)").quote()
    result = con.uql(f"{COUNT} WITH (budget = 128, audit = 'judged', fresh = true)")
    quote = result.quote()
    assert quote.calls.expected == plain.calls.expected + 60
    assert quote.usd is not None and plain.usd is not None
    assert quote.usd.expected == pytest.approx(plain.usd.expected * (1 + 60 / plain.calls.expected))
    assert quote.calls.low <= result.cost.calls <= quote.calls.high


@pytest.fixture
def two(folder: Path) -> Iterator[uql.Connection]:
    """Models of 0.1 and 2 USD a million tokens over 5,000 notes."""
    duckdb.sql(
        "COPY (SELECT i AS id, 'note number ' || i || ' of some words that make it a text' AS text, i % 3 = 0 AS so"
        " FROM range(5000) t(i)) TO 'd.parquet'"
    )
    for name, price in (("cheap", 0.1), ("dear", 2)):
        write(folder, price)
        (folder / "o.toml").rename(folder / f"{name}.toml")
    with uql.connect(models=["oracle:cheap.toml", "oracle:dear.toml"], ledger=":memory:", progress=False) as con:
        con.sql("SELECT id, text FROM 'd.parquet'").create("notes")
        yield con


@pytest.mark.thorough
@pytest.mark.parametrize(("query", "options"), [(COUNT, ""), (SEARCH, ""), (SEARCH, "precision = 0.9, recall = 0.9, ")])
def test_max_cost_pays_for_both_models(two: uql.Connection, query: str, options: str) -> None:
    result = two.uql(f"{query} WITH ({options}max_cost = 0.1)")
    predicted = result.quote()
    assert predicted.usd is not None and 0.05 < predicted.usd.expected <= 0.1
    result.fetchall()
    assert result.cost.usd is not None and result.cost.usd <= 0.1 and not result.partial


def test_explain_prints_the_cheap_model_alone_a_sample_by_the_dear_one_and_both(two: uql.Connection) -> None:
    shown = two.uql(f"{SEARCH} WITH (precision = 0.9, max_cost = 0.1)").explain()
    assert "what max_cost = 0.1 pays for beside 0.0291 USD for the scores of oracle:cheap.toml" in shown
    alternatives = shown.partition("Alternatives:")[2]
    for one in (
        "cheap.toml scores all rows, oracle:dear.toml answers a sample: 0.0",
        "cheap.toml alone, all rows: 0.0291 USD",
    ):
        assert one in alternatives
    sampled = alternatives.partition("oracle:dear.toml alone, ")[2]
    assert " rows: 0.05" in sampled.splitlines()[0], "less than all"
    by_cascade = two.uql(f"{SEARCH} WITH (max_cost = 2)").explain().partition("Alternatives:")[2]
    assert "cheap.toml first, oracle:dear.toml where it is not sure: " in by_cascade
    assert "oracle:dear.toml alone: " in by_cascade and "cheap.toml alone: 0.0" in by_cascade


@pytest.mark.parametrize("options", ["precision = 0.9, ", ""])
def test_each_of_two_models_costs_in_their_plan_what_it_costs_alone(
    options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision model is sent other words, and more, than one that answers by a word."""
    monkeypatch.setenv("JEV_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    small, large = "systemone:jev-latest", "openai:gpt-5-mini"
    with uql.connect(ledger=":memory:", budget="all", rows_per_request=1, progress=False) as con:
        con.sql("SELECT i AS id, 'note number ' || i || ' of some words' AS text FROM range(5000) t(i)").create("notes")
        both = con.uql(f"{SEARCH} WITH ({options}models = ['{small}', '{large}'])").explain()
        for model in (small, large):
            alone = con.uql(f"{SEARCH} WITH (model = '{model}')").quote()
            assert alone.usd is not None
            line = next(line for line in both.splitlines() if line.strip().startswith(f"{model} alone"))
            expected = f"{alone.usd.expected:.4f} USD", f"{alone.input_tokens.expected:,.0f} tokens in"
            assert all(part in line for part in expected), (line, expected)


def test_the_vectors_of_a_vendor_are_in_the_quote_of_a_sample(con: uql.Connection) -> None:
    embedder = "embedder = 'openai:text-embedding-3-large'"
    plain = con.uql(f"{COUNT} WITH (budget = 128)").quote()
    result = con.uql(f"{COUNT} WITH (budget = 128, {embedder})")
    found = result.quote()
    assert found.embedded.low == 0 and found.embedded.high == pytest.approx(900 * 52 / 4, rel=0.1)
    assert found.usd is not None and plain.usd is not None
    assert found.usd.expected == pytest.approx(plain.usd.expected + found.embedded.expected * 0.13e-6)
    assert "Embeddings: " in result.explain()
    whole = con.uql(f"{COUNT} WITH (budget = 'all', {embedder})")
    assert not whole.quote().embedded.high and "Embeddings" not in whole.explain()


def test_the_price_of_texts_in_another_script_follows_their_bytes() -> None:
    """Chinese has about one token a character: a quote by characters was a third of the bill."""

    class ByBytes(HashModel):
        async def answer(self, request: Request) -> Reply:
            reply = await super().answer(request)
            shown = sum(len(str(cell.value).encode()) for cell in request.row.cells)
            return replace(reply, input_tokens=40 + shown // 4)

    text = "剧情很无聊但演员们尽力了结局让我很惊讶" * 20
    with uql.connect(model=ByBytes(), ledger=":memory:", progress=False) as con:
        con.execute("CREATE TABLE notes AS SELECT i AS id, i || $text AS text FROM range(900) t(i)", {"text": text})
        result = con.uql(f"{COUNT} WITH (budget = 128)")
        predicted = result.quote()
        result.fetchall()
        assert predicted.usd is not None and result.cost.usd is not None
        assert predicted.usd.expected == pytest.approx(result.cost.usd, rel=0.05)
