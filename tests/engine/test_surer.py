"""LIMIT on a model whose yes is a score: the rows that it is surest of, in place of the first ones."""

from __future__ import annotations

from typing import Any

import pytest
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer, Capabilities, Limits, Price


class Leaning(RowModel):
    """Says yes to every second row; of those it is sure of every third alone, and right of these."""

    name, is_local = "leaning", True
    limits, price = Limits(concurrency=4), Price(0, 0)
    capabilities = Capabilities(probabilities=True, sure_from=0.73)

    def __init__(self) -> None:
        self.asked = 0

    def _one(self, question: Any, row: Any) -> Answer:
        self.asked += 1
        n = int(row.cells[0].value.split()[1])
        if question.text == "it is small":
            return Answer(n < 30, 0.95 if n < 30 else 0.05)
        p = 0.1 if n % 2 else 0.9 if n % 6 == 0 else 0.55
        return Answer(p > 0.5, p)


def connected(model: Any, rows: int = 40, **settings: Any) -> uql.Connection:
    con = uql.connect(model=model, ledger=":memory:", progress=False, **settings)
    con.sql(f"SELECT i AS id, 'Item ' || i || ' of the list that is shown' AS text FROM range({rows}) r(i)").create(
        "items"
    )
    return con


@pytest.mark.parametrize("rows", [40, 200])  # in their order, and as a search with features of the rows finds them
def test_limit_looks_a_little_further_for_rows_that_the_model_is_sure_of(rows: int) -> None:
    model = Leaning()
    with connected(model, rows) as con:
        result = con.uql('SELECT id FROM items WHERE "it is even" LIMIT 3 WITH (examples = off)')
        found = [row[0] for row in result.fetchall()]
        sure = sum(
            i % 6 == 0 for i in found
        )  # a sixth of the rows: a search that learns nothing comes to two of 20 more
        assert len(found) == 3 and sure == 3 if rows == 40 else sure >= 2
        assert found == sorted(found) and model.asked <= 8 + 12 + 8
        assert any("surest" in note for note in result.notes)


def test_it_looks_at_four_times_the_limit_and_no_further() -> None:
    class Unsure(Leaning):
        def _one(self, question: Any, row: Any) -> Answer:
            self.asked += 1
            return Answer(True, 0.6)

    model = Unsure()
    with connected(model) as con:
        assert con.uql('SELECT id FROM items WHERE "it is even" LIMIT 2').fetchall() == [(0,), (1,)]
        assert model.asked == 2 + 8


def test_the_budget_is_kept() -> None:
    model = Leaning()
    with connected(model) as con:
        result = con.uql('SELECT id FROM items WHERE "it is even" LIMIT 3 WITH (budget = 6)')
        assert len(result.fetchall()) == 3 and result.cost.calls <= 6


def test_an_order_by_is_an_exact_prefix_and_stays_one() -> None:
    model = Leaning()
    with connected(model) as con:
        result = con.uql('SELECT id FROM items WHERE "it is even" ORDER BY id LIMIT 3')
        assert result.fetchall() == [(0,), (2,), (4,)] and model.asked <= 8


def test_of_two_conditions_the_less_likely_one_counts() -> None:
    model = Leaning()
    with connected(model) as con:
        result = con.uql('SELECT id FROM items WHERE "it is even" AND "it is small" LIMIT 2')
        assert [row[0] for row in result.fetchall()] == [0, 6]


@pytest.mark.parametrize("condition", ['NOT "it is even"', '("it is even" OR "it is small")'])
def test_other_formulas_take_the_first_rows_with_a_yes(condition: str) -> None:
    with connected(Leaning()) as con:
        result = con.uql(f"SELECT id FROM items WHERE {condition} LIMIT 2")
        assert len(result.fetchall()) == 2 and not any("surest" in note for note in result.notes)


def test_a_model_without_such_a_bound_stops_at_the_limit() -> None:
    class Plain(Leaning):
        capabilities = Capabilities(probabilities=True)

    model = Plain()
    with connected(model) as con:
        assert con.uql('SELECT id FROM items WHERE "it is even" LIMIT 3').fetchall() == [(0,), (2,), (4,)]
        assert model.asked <= 8
