"""The main job on the real local model: real questions, real answers, the labels beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

import uql
from uql.base.errors import UQLError
from uql.llm import model_files as models

DATA = Path(__file__).parents[2] / "benchmarks" / "datasets" / "banking77"
INTENTS = ("lost_or_stolen_card", "exchange_rate", "apple_pay_or_google_pay", "top_up_failed")

pytestmark = pytest.mark.local_model


def have_model() -> bool:
    try:
        return models.find().exists()
    except UQLError:
        return False


@pytest.fixture(scope="module")
def con():
    if not have_model():
        pytest.skip("the local model is not there: uql models pull")
    with uql.connect(model="local", ledger=":memory:", budget="all", progress=False) as con:
        listed = ", ".join(f"'{intent}'" for intent in INTENTS)
        con.sql(
            f"CREATE TABLE questions AS SELECT d.id, d.text, l.intent FROM '{DATA}/data.parquet' d JOIN '{DATA}/labels.parquet' l "
            f"USING (id) WHERE l.intent IN ({listed}) QUALIFY row_number() OVER (PARTITION BY l.intent ORDER BY d.id) <= 4"
        )
        yield con


def test_a_condition_is_answered_mostly_as_the_labels_say(con):
    result = con.uql('SELECT id FROM questions WHERE "the customer\'s card was lost or stolen" ORDER BY id')
    found = {row[0] for row in result.fetchall()}
    truth = {row[0] for row in con.sql("SELECT id FROM questions WHERE intent = 'lost_or_stolen_card'").fetchall()}
    assert len(found ^ truth) <= 3  # of 16
    assert result.cost.calls == 16
    assert result.cost.output_tokens >= 16
    assert result.exact


def test_a_sample_under_a_budget_gives_a_count_with_an_interval(con):
    # A condition of its own: whatever another test has asked of all sixteen rows is known, and counting it is exact.
    result = con.uql(
        'SELECT COUNT(*) AS n FROM questions WHERE "the customer asks about an exchange rate" WITH (budget = 8, seed = 3)'
    )
    estimate = result.estimates["n"]
    assert 0 < result.cost.calls <= 8
    assert not estimate.exact
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 16


@pytest.mark.thorough
def test_labels_are_chosen_and_groups_are_found(con):
    result = con.uql(
        "SELECT id, \"the topic of the question\"::ENUM('lost card', 'exchange rate', 'Apple Pay or Google Pay', 'failed top-up') AS t, intent "
        "FROM questions ORDER BY id"
    )
    names = dict(zip(("lost card", "exchange rate", "Apple Pay or Google Pay", "failed top-up"), INTENTS, strict=True))
    right = sum(names.get(t) == intent for _, t, intent in result.fetchall())
    assert right >= 11  # of 16
    groups = con.uql('SELECT topic, COUNT(*) AS n FROM questions GROUP BY "the topic of the question" AS topic')
    rows = groups.fetchall()
    assert 2 <= len(rows) <= 20
    assert sum(n for _, n in rows) == 16


def test_a_value_is_extracted_or_null(con):
    con.sql(
        "CREATE OR REPLACE TABLE notes AS SELECT * FROM (VALUES (1, 'I paid 40 euros for the ticket to Paris last week'), "
        "(2, 'The driver was friendly and the car was clean and comfortable')) AS t(id, text)"
    )
    rows = con.uql('SELECT id, "the amount in euros"::INTEGER AS euros FROM notes ORDER BY id').fetchall()
    assert rows[0] == (1, 40)
    assert rows[1][1] is None


@pytest.mark.thorough
def test_pairs_are_told_from_the_rows_mostly_as_the_labels_say(con):
    """120 pairs of 16 questions: 24 match."""
    compared = '"the questions {a.text} and {b.text} ask about the same matter"'
    joined = f"questions AS a JOIN questions AS b ON a.id < b.id AND {compared}"
    result = con.uql(f"SELECT a.id, b.id FROM {joined}")
    found = {tuple(row) for row in result.fetchall()}
    truth = dict(con.sql("SELECT id, intent FROM questions").fetchall())
    every = [(a, b) for a in truth for b in truth if a < b]
    same = {pair for pair in every if truth[pair[0]] == truth[pair[1]]}
    recall = len(found & same) / len(same)
    wrong = len(found - same) / (len(every) - len(same))
    assert (recall + 1 - wrong) / 2 >= 0.7
    assert not result.exact and result.cost.calls < len(every)
    count = con.uql(f"SELECT COUNT(*) AS n FROM {joined}")
    told = count.estimates["n"]
    assert told.low <= count.fetchall()[0][0] <= told.high and told.low <= len(same) <= told.high and not count.exact


def test_limit_returns_rows_that_the_model_is_sure_of(con):
    result = con.uql('SELECT intent FROM questions WHERE "the customer\'s card was lost or stolen" LIMIT 3')
    assert [row[0] for row in result.fetchall()].count("lost_or_stolen_card") >= 2
    assert result.cost.calls <= 16
