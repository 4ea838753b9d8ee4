"""What fits in a budget: rows that the ledger knows, rows without a text and rows that are alike take no calls of their own."""

from __future__ import annotations

import pytest
from labels import Labels, both

import uql
from uql.errors import BudgetError

STATEMENTS = [
    "SELECT median(stars) FROM reviews WHERE <pos>",
    "SELECT avg(<rating>) FROM reviews",
    "SELECT film, count(*) FROM reviews WHERE <pos> GROUP BY ROLLUP (film) ORDER BY ALL",
    "SELECT id, CASE WHEN <pos> THEN 1 ELSE 0 END AS k FROM reviews ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY id) AS k FROM reviews WHERE <pos> ORDER BY id",
    "SELECT id FROM reviews WHERE <pos> ORDER BY <rating>::DOUBLE DESC, id",
    "SELECT id FROM reviews WHERE <pos> ORDER BY id",
    "SELECT id, <rating>::DOUBLE AS r FROM reviews WHERE id < 9 ORDER BY id",
    "SELECT a.id, b.id FROM films f JOIN reviews a USING (film) LEFT JOIN reviews b ON b.id = a.id + 1 AND <agree a.text b.text> WHERE a.id < 9 ORDER BY 1",
]


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return Labels(tmp_path_factory.mktemp("labels"))


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_was_paid_for_fits_in_any_budget(labels, tmp_path, statement):
    asked, over_labels, _ = both(statement)
    model = f"oracle:{labels.folder / 'oracle.toml'}"
    con = uql.attach(labels._tables(), model=model, ledger=str(tmp_path / "ledger.sqlite"), budget="all")
    paid = con.uql(asked).fetchall()
    with con.settings(budget=0):
        again = con.uql(asked)
        assert again.fetchall() == paid == labels.sql().execute(over_labels).fetchall()
        assert again.exact
        assert again.cost.calls == 0


@pytest.mark.parametrize("statement", [s for s in STATEMENTS[:6] if "ORDER BY <rating>" not in s])
def test_a_budget_is_enough_that_reaches_each_text_once(labels, statement):
    texts = {row["text"] for row in labels.rows} - {None}
    asked = both(statement)[0]
    found = labels.uql(budget=len(texts)).uql(asked)
    assert found.exact
    assert found.cost.calls <= len(texts) < len(labels.rows)


def test_a_refusal_names_the_calls_that_are_left_to_make(labels):
    texts = {row["text"] for row in labels.rows} - {None}
    with pytest.raises(BudgetError) as error:
        labels.uql(budget=3).uql(both("SELECT median(stars) FROM reviews WHERE <pos>")[0]).fetchall()
    assert f"{len(texts)} calls" in str(error.value)
