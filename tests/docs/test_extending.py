"""docs/extending.md: its provider is the one in keyword_model.py, and it works."""

from __future__ import annotations

from pathlib import Path

import duckdb

import uql

HERE = Path(__file__).parent


def test_the_page_shows_the_provider_that_runs() -> None:
    page = (HERE.parents[1] / "docs" / "extending.md").read_text("utf-8")
    assert (HERE / "keyword_model.py").read_text("utf-8") in page


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
