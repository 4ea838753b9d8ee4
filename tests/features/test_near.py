"""Passages in the order of their nearness to a question."""

from __future__ import annotations

import pytest
from row_model import RowModel

import uql
from uql.features.similarity import near
from uql.llm.providers.base import Answer, Capabilities

pytest.importorskip("wordllama")

PASSAGES = [
    "The river flooded the lower town and houses stood under water.",
    "The choir sang and the organ was tuned before the festival.",
    "The price of wheat rose, and traders expect further increases.",
    "Two teachers of the school retired after long service.",
]


@pytest.mark.parametrize(
    ("question", "best"),
    [("there was a flood", 0), ("it is about music", 1), ("something became more expensive", 2), ("a pupil", 3)],
)
def test_the_passage_about_it_is_nearest(question, best):
    scores = near(question, PASSAGES)
    assert max(range(4), key=scores.__getitem__) == best


def test_equal_passages_are_equally_near_and_empty_ones_are_no_failure():
    scores = near("a flood", ["", PASSAGES[0], PASSAGES[0], ""])
    assert scores[1] == pytest.approx(scores[2])
    assert scores[1] > scores[0]


class ShortSighted(RowModel):
    """Takes 1,000 tokens at once, and says yes where it reads of a flood."""

    name, is_local = "short-sighted", True
    capabilities = Capabilities(context=1_000)

    def __init__(self):
        self.shown = []

    def tokens_at_most(self, request):
        return 900, 50

    def _one(self, question, row):
        self.shown.append(row.cells[0].value)
        yes = "flooded" in row.cells[0].value
        return Answer(yes, 0.9 if yes else 0.1)


def test_a_query_reads_the_passage_of_a_long_row_that_its_condition_is_about_first():
    model = ShortSighted()
    others = [text for text in PASSAGES[1:] for _ in range(60)]
    with uql.connect(model=model, ledger=":memory:") as con:
        con.execute(
            "CREATE TABLE reports AS SELECT 1 AS id, $text AS body", {"text": "\n".join([*others, *10 * [PASSAGES[0]]])}
        )
        assert con.uql('SELECT id FROM reports WHERE "the text tells of a flood"').fetchall() == [(1,)]
    assert len(model.shown) == 1
    assert "flooded" in model.shown[0]
