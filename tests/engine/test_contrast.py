"""A model that leans to one answer for pairs: an attribute is still relied on where its log-odds rank pairs as the attribute does."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from row_model import RowModel

import uql
from uql.kernels.pair_conditions.log_odds_ranking import block, centred, rank_agreement
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import Choice, Predicate, Write

N = 12


class Leaning(RowModel):
    """Calls hardly any pair a match: each text pulls its pairs to no by its own number, and a match counts for `strength` alone."""

    name, is_local = "leaning", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def _one(self, question, row):
        if isinstance(question, Write):
            return Answer({"attribute": "the colour", "values": ["red", "blue"], "rule": "same", "pairs": []})
        texts = [cell.value for cell in row.cells] or [value for name, value in row.holes if "." in name]
        if isinstance(question, Choice):
            return Answer("red" if "red" in texts[0] else "blue")
        assert isinstance(question, Predicate)
        pull = sum(int(re.search(r"number (\d+)", text).group(1)) for text in texts) / N
        same = ("red" in texts[0]) == ("red" in texts[1])
        odds = self.strength * same - 1.5 - pull
        return Answer(odds > 0, 1 / (1 + math.exp(-odds)))


def joined(model: Leaning, budget: int):
    con = uql.connect(model=model, ledger=":memory:", budget=budget, seed=3)
    for name in ("l", "r"):
        con.sql(
            f"SELECT i AS id, 'the {name} number ' || i || ' is a ' || CASE WHEN hash(i) % 2 = 0 THEN 'red' ELSE 'blue' END || ' thing' AS text "
            f"FROM range({N}) t(i)"
        ).create(name)
    return con.uql(
        "SELECT l.id, r.id FROM l JOIN r ON \"{l.text} and {r.text} are of one colour\" ORDER BY 1, 2 WITH (method = 'attribute')"
    ), con


def test_pairs_are_joined_by_the_attribute_that_the_log_odds_rank_them_by():
    result, con = joined(Leaning(strength=1.0), budget=110)
    truth = con.sql(
        "SELECT a.i, b.i FROM range(12) a(i), range(12) b(i) WHERE (hash(a.i) % 2 = 0) = (hash(b.i) % 2 = 0) ORDER BY 1, 2"
    ).fetchall()
    assert result.fetchall() == truth
    assert result.cost.calls <= 110 < N * N
    assert not result.exact
    assert any("leans one way for pairs, but ranks them alike (AUC 1.00)" in note for note in result.notes)


def test_an_attribute_that_the_log_odds_know_nothing_of_is_not_relied_on():
    result, _ = joined(Leaning(strength=0.0), budget=110)
    assert result.fetchall() == []
    assert any("does not decide" in note for note in result.notes)


def test_a_block_lets_each_text_meet_several_and_holds_no_pair_twice():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 20, 300), rng.integers(0, 20, 300)
    some = block(first, second, rng)
    pairs = list(zip(first[some], second[some], strict=True))
    assert len(set(pairs)) == len(pairs) <= 36
    assert len(set(first[some])) <= 6 and len(set(second[some])) <= 6 and len(pairs) >= 12


def test_what_a_text_contributes_by_itself_is_taken_out_also_where_pairs_are_missing():
    rng = np.random.default_rng(2)
    first, second = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    kept = rng.permutation(36)[:28]
    first, second = first[kept], second[kept]
    odds = rng.normal(0, 3, 6)[first] + rng.normal(0, 3, 6)[second]
    assert np.abs(centred(odds, first, second)).max() < 1e-3


@pytest.mark.parametrize("p", [np.zeros(36), np.ones(36)], ids=["no", "yes"])
def test_verdicts_without_scores_rank_nothing(p):
    first, second = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    assert rank_agreement(p, first, second, first % 2 == second % 2) is None
