"""docs/extending.md: each recipe shows the code of a file of this folder, and that code works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hash_model import HashModel
from sampler_contract import AGGREGATE_CHECKS
from wire_cases import PROTOCOLS, Case, asked, opened

import uql
from uql.llm.ledger_keys import encoded
from uql.llm.questions import Cell, Row
from uql.sampling import methods

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", ["keyword_model.py", "shuffled.py", "quotation.py", "double_negation.py"])
def test_the_page_shows_the_code_that_runs(file: str) -> None:
    page = (HERE.parents[1] / "docs" / "extending.md").read_text("utf-8")
    assert (HERE / file).read_text("utf-8") in page


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_provider_answers_the_operator_of_the_page(protocol: str) -> None:
    from docs.quotation import Quote

    question = Quote("the card was lost")
    assert encoded(question) == "Quote(text='the card was lost')"
    with opened(protocol) as (provider, transport):
        found = asked(provider, Case("", (question,), (Row((Cell("text", "My card was lost."),)),)))
        assert "Which sentence shows that the card was lost?" in str(transport.sent)
        assert provider.version(question).startswith("quotation-1/")
    if protocol not in ("chat-plain", "llama"):  # whose stand-ins say the same to everything
        assert found[0][0].value == "some text"


def test_the_provider_of_the_page_answers_a_query() -> None:
    from docs.keyword_model import KeywordModel

    duck = duckdb.connect(":memory:")
    duck.execute(
        "CREATE TABLE questions AS SELECT unnest(['my card was stolen', 'what is the rate', 'a stolen phone']) AS text"
    )
    with uql.attach(duck, model=KeywordModel("test"), ledger=":memory:") as con:
        found = con.uql('SELECT text FROM questions WHERE "something was stolen"').fetchall()
        assert sorted(found) == [("a stolen phone",), ("my card was stolen",)]
        refused = con.uql('SELECT "the tone" AS tone FROM questions')
        assert refused.df()["tone"].isna().all() and len(refused.errors) == 3


@pytest.fixture
def con() -> Iterator[uql.Connection]:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews AS SELECT i AS id, 'review number ' || i AS body FROM range(500) t(i)")
    with uql.attach(duck, model=HashModel(), ledger=":memory:", seed=1) as made:
        yield made


@pytest.mark.parametrize("check", AGGREGATE_CHECKS, ids=lambda check: check.__name__[6:])
def test_the_sampler_of_the_page_keeps_the_contract(check: Callable[[Any], None]) -> None:
    from docs.shuffled import shuffled

    check(methods.aggregate(shuffled))


def test_the_sampler_of_the_page_estimates_a_count(con: uql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    from docs.shuffled import shuffled

    monkeypatch.setitem(methods.AGGREGATE, "shuffled", methods.aggregate(shuffled))
    monkeypatch.setitem(methods.RETRIEVAL, "shuffled", methods.RETRIEVAL["uniform"])
    count = 'SELECT COUNT(*) AS n FROM reviews WHERE "it is good"'
    found = con.uql(f"{count} WITH (method = 'shuffled', budget = 100)").estimates["n"]
    truth = con.uql(f"{count} WITH (budget = 'all')").fetchall()[0][0]
    assert found.method == "shuffled" and 90 < found.calls <= 100
    assert found.low <= truth <= found.high
    rows = con.uql("""SELECT id FROM reviews WHERE "it is long" WITH (method = 'shuffled', budget = 100)""").fetchall()
    assert 0 < len(rows) <= 100


def test_the_rule_of_the_page_is_checked_and_keeps_the_answer(
    con: uql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from docs.double_negation import double_negation
    from logical_text import tree

    from uql.compiler import planner, rules
    from uql.compiler.binder import bind
    from uql.compiler.logical import build
    from uql.compiler.parser import parse

    query = 'SELECT id FROM reviews WHERE NOT (NOT "it is good") AND id < 50'
    plan = build(bind(parse(query), con.session.catalog, text=query).query)
    with_it = (*rules.RULES, double_negation)
    assert "\n".join(tree(rules.apply(plan))) == (
        'Project id\n  SemFilter NOT NOT "it is good"  reads=reviews.body\n    SqlFilter reviews.id < 50\n      Scan reviews'
    )
    assert "\n".join(tree(rules.apply(plan, rules=with_it))) == (
        'Project id\n  SemFilter "it is good"  reads=reviews.body\n    SqlFilter reviews.id < 50\n      Scan reviews'
    )
    without = con.uql(query).fetchall()
    monkeypatch.setattr(planner, "apply", partial(rules.apply, rules=with_it))
    assert con.uql(query).fetchall() == without
    assert 'SemFilter "it is good"' in con.uql(query).explain()
